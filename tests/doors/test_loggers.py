"""Do Weights & Biases, offline, and TensorBoard hold the numbers and pictures that were logged?"""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from trueodds.integrations.loggers import log_to_tensorboard, log_to_wandb, result_scalars

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    return {"ece": to.measure(y, p, "ece"), "test": to.test(y, p), "diagram": to.draw(y, p, "reliability")}


def test_an_offline_run_of_wandb_has_numbers_and_image(results, tmp_path):
    wandb = pytest.importorskip("wandb")
    with wandb.init(mode="offline", dir=str(tmp_path), project="doors") as run:
        log_to_wandb(run, results, step=3)
        run.log({"epoch": 4}, step=4, commit=True)  # which completes step 3
        summary = dict(run.summary)
    expected = result_scalars(results)
    assert {name: summary[name] for name in expected} == pytest.approx(expected)
    assert list(tmp_path.rglob("media/images/*.png"))


def test_event_files_of_tensorboard_have_numbers_and_image(results, tmp_path):
    writer_type = pytest.importorskip("tensorboardX").SummaryWriter
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with writer_type(str(tmp_path)) as writer:
        log_to_tensorboard(writer, results, step=3)
    accumulator = events.EventAccumulator(str(tmp_path))
    accumulator.Reload()
    for name, value in result_scalars(results).items():
        (event,) = accumulator.Scalars(name)
        assert (event.step, event.value) == (3, pytest.approx(value, rel=1e-6))
    (image,) = accumulator.Images("diagram")
    assert image.encoded_image_string.startswith(b"\x89PNG")
