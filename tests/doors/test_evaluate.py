"""Does `evaluate.load` load the metric from its file, without a network?"""

from __future__ import annotations

import os

import numpy as np
import pytest

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
evaluate = pytest.importorskip("evaluate")
pytestmark = pytest.mark.filterwarnings("ignore")

import trueodds as to  # noqa: E402
from trueodds.integrations import evaluate_metric  # noqa: E402


@pytest.mark.parametrize("k", [2, 3])
def test_the_metric_is_that_of_measure(k, tmp_path):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(k), 300)
    y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    scores = P[:, 1] if k == 2 else P
    metric = evaluate.load(evaluate_metric.__file__, cache_dir=str(tmp_path))
    for label, score in zip(y.tolist(), scores.tolist(), strict=True):
        metric.add(references=label, predictions=score)
    values = metric.compute()
    error = to.measure(y, scores, "ece")
    assert values["ece"] == pytest.approx(error.value)
    assert values["ece_noise_floor"] == pytest.approx(error.noise_floor)
    assert values["ece_low"] == pytest.approx(error.interval.low)


def test_settings_are_those_of_measure(tmp_path):
    metric = evaluate.load(evaluate_metric.__file__, cache_dir=str(tmp_path))
    y, p = [0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20
    values = metric.compute(references=y, predictions=p, estimator="brier", interval=None)
    assert values["brier"] == pytest.approx(to.measure(y, p, "brier", interval=None).value)
