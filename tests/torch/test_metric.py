"""Does CalibrationError behave as a metric of torchmetrics, and is it right where torchmetrics is not?"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from tests.torch.batches import predictions, split  # noqa: E402
from trueodds.torch import CalibrationError, TorchTally  # noqa: E402


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("ece", {}),
        ("ece", {"bins": 10}),
        ("ece", {"lens": "classwise"}),
        ("mce", {}),
        ("rmsce", {}),
        ("debiased_l2", {}),
    ],
)
def test_the_value_is_that_of_the_rows(estimator: str, settings: dict[str, Any]) -> None:
    z, y = predictions(3000, 4)
    metric = CalibrationError(4, estimator, logits=True, **settings)
    for batch in split(z, y):
        metric.update(*batch)
    rows = to.tally(to.Predictions.from_logits(y.numpy(), z.numpy()))
    expected = to.measure(rows, estimator, interval=None, **settings).value
    assert metric.compute().dtype == torch.float64
    assert metric.compute().item() == pytest.approx(expected, rel=1e-12)
    if settings.get("lens") != "classwise":  # a tally has no interval of a mean over classes
        assert metric.estimate().interval is not None
    assert metric.test("consistency", resamples=99).pvalue == 0.01


def test_values_of_torchmetrics_are_reproduced_where_it_is_right() -> None:
    """Its bins are left-closed, which differs only for values on edges; none are here."""
    z, y = predictions(5000, 6)
    P = z.double().softmax(1)
    norms = {"l1": "ece", "max": "mce", "l2": "rmsce"}
    for norm, estimator in norms.items():
        reference = torchmetrics.classification.MulticlassCalibrationError(6, n_bins=15, norm=norm)
        ours = CalibrationError(6, estimator)
        for batch in split(P, y):
            reference.update(*batch)
            ours.update(*batch)
        assert ours.compute().item() == pytest.approx(reference.compute().item(), rel=1e-5)


def test_a_probability_of_one_is_in_the_last_bin() -> None:
    """torchmetrics issue 3510: 0.525 instead of 0.475, from a bin of its own for 1.0."""
    P = torch.tensor([[0.05, 0.95], [0.0, 1.0]], dtype=torch.float64)
    metric = CalibrationError(2, bins=10)
    metric.update(P, torch.tensor([1, 0]))
    assert metric.compute().item() == pytest.approx(0.475, abs=1e-12)


@pytest.mark.parametrize("n", [100_000, 10_000_000])
def test_half_precision_of_many_rows_is_right(n: int) -> None:
    """BinaryCalibrationError of torchmetrics 1.9 sums in the dtype of the input: NaN for 100,000 rows in one bin."""
    metric = CalibrationError(2)
    size = 1_000_000
    P = torch.tensor([[0.25, 0.75], [0.75, 0.25]], dtype=torch.float16).repeat(min(n, size) // 2, 1)
    y = torch.tensor([1, 1]).repeat(min(n, size) // 2)
    for _ in range(max(1, n // size)):
        metric.update(P, y)
    assert int(metric.tally().n) == n
    assert metric.compute().item() == pytest.approx(0.5, abs=1e-12)  # |0.75 − 1| and |0.25 − 1|, half of the rows each


def test_forward_reset_clone_and_state_dict(tmp_path: Path) -> None:
    z, y = predictions(600, 3)
    metric = CalibrationError(3, logits=True)
    metric.persistent(True)
    parts = [metric(*batch).item() for batch in split(z, y)]
    for batch, value in zip(split(z, y), parts, strict=True):
        alone = CalibrationError(3, logits=True)
        alone.update(*batch)
        assert value == alone.compute().item()
    complete = CalibrationError(3, logits=True)
    complete.update(z, y)
    assert metric.compute().item() == pytest.approx(complete.compute().item(), rel=1e-12)
    torch.save(metric.state_dict(), tmp_path / "metric.pt")
    other = CalibrationError(3, logits=True)
    other.load_state_dict(torch.load(tmp_path / "metric.pt", weights_only=True))
    assert other.estimate(interval=None).value == metric.compute().item()
    assert copy.deepcopy(metric).compute().item() == metric.clone().compute().item() == metric.compute().item()
    metric.reset()
    with refused("TO108"), pytest.warns(UserWarning, match="before the"):
        metric.compute()


def test_it_works_in_a_collection_and_a_bootstrapper() -> None:
    z, y = predictions(400, 3)
    collection = torchmetrics.MetricCollection(
        {"ece": CalibrationError(3), "accuracy": torchmetrics.classification.MulticlassAccuracy(3, average="micro")}
    )
    collection.update(z.softmax(1), y)
    assert set(collection.compute()) == {"ece", "accuracy"}
    tracker = torchmetrics.MetricTracker(CalibrationError(3, logits=True), maximize=False)
    for scale in (1.0, 5.0):
        tracker.increment()
        tracker.update(scale * z, y)
    assert tracker.best_metric() == min(tracker.compute_all().tolist())


def test_all_lenses_allow_an_audit() -> None:
    z, y = predictions(800, 3)
    metric = CalibrationError(3, logits=True, all_lenses=True)
    metric.update(z, y)
    tally = TorchTally(3, logits=True)
    tally.update(z, y)
    assert str(metric.audit()) == str(tally.audit())
    with refused("TO346"):
        CalibrationError(3).audit()
    brier = CalibrationError(3, "brier", logits=True)  # a proper score, for which all lenses are kept
    brier.update(z, y)
    assert brier.compute().item() == pytest.approx(tally.estimate("brier", interval=None).value, rel=1e-12)


def test_bad_input_leaves_the_metric_as_it_was() -> None:
    z, y = predictions(50, 3)
    metric = CalibrationError(3)
    metric.update(z.softmax(1), y)
    before = metric.compute().item()
    with refused("TO102", fix="logits=True"):
        metric.update(z, y)
    with refused("TO340", fix="detach"):
        metric.update(z.softmax(1).requires_grad_(), y)
    with refused("TO105"):
        metric.update(z.softmax(1), y + 3)
    assert metric.estimate(interval=None).value == before
    with refused("TO203"):
        CalibrationError(0)


def test_sums_are_not_lowered_to_half_precision() -> None:
    z, y = predictions(50, 3)
    metric = CalibrationError(3, logits=True).half()
    metric.update(z, y)
    assert metric.cell_sums.dtype == torch.float64
    assert np.isfinite(metric.compute().item())


@pytest.mark.parametrize("device_path", [False, True])
def test_inference_mode_may_end_between_reset_and_update(device_path: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning validates in inference mode; torch refuses to change a tensor made in it afterwards."""
    z, y = predictions(50, 3)
    if device_path:
        monkeypatch.setattr("trueodds.torch.tensor_sums._must_use_host", lambda *batch: False)
    metric = CalibrationError(3, logits=True)
    with torch.inference_mode():
        metric.update(z, y)
        value = metric.compute().item()
        metric.reset()
    metric.update(z, y)
    metric.update(z, y)
    assert metric.compute().item() == pytest.approx(value, rel=1e-12)
    assert metric.tally().n == 100


def batch_forms() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Ten batches of 32 rows in the forms that the tests of torchmetrics use, as one batch, with the settings."""
    generator = torch.Generator().manual_seed(42)
    n, k, positions = 320, 5, 3
    logits = torch.randn(n, k, generator=generator)
    labels = torch.randint(k, (n,), generator=generator)
    images = torch.randn(n, k, positions, generator=generator).movedim(1, -1).reshape(-1, k)
    pixels = torch.randint(k, (n, positions), generator=generator).flatten()
    missing = torch.where(labels == 2, 1, labels)  # a class that is never observed
    binary, events = torch.rand(n, generator=generator), torch.randint(2, (n,), generator=generator)
    return {
        "probabilities": (logits.softmax(1), labels, {}),
        "logits": (logits, labels, {"logits": True}),
        "positions of images": (images.softmax(1), pixels, {}),
        "a missing class": (logits.softmax(1), missing, {}),
        "two classes": (binary, events, {"num_classes": 2}),
        "log odds of two classes": (torch.logit(binary), events, {"num_classes": 2, "logits": True}),
    }


@pytest.mark.parametrize("form", batch_forms())
@pytest.mark.parametrize(("norm", "estimator"), [("l1", "ece"), ("l2", "rmsce"), ("max", "mce")])
def test_the_forms_that_torchmetrics_tests_give_its_values(form: str, norm: str, estimator: str) -> None:
    scores, target, settings = batch_forms()[form]
    k = settings.pop("num_classes", 5)
    ours = CalibrationError(k, estimator, **settings)
    classification = torchmetrics.classification
    kind = classification.BinaryCalibrationError if k == 2 else classification.MulticlassCalibrationError
    peer = kind(n_bins=15, norm=norm) if k == 2 else kind(k, n_bins=15, norm=norm)
    for batch in split(scores, target, size=32):
        ours.update(*batch)
        peer.update(*batch)
    assert ours.compute().item() == pytest.approx(peer.compute().item(), rel=2e-6)
    rows = to.Predictions.from_logits if settings.get("logits") else to.Predictions
    exact = to.measure(rows(target.numpy(), scores.numpy()), estimator, interval=None).value
    assert ours.compute().item() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_module_of_half_precision_keeps_exact_sums(dtype: str, weighted: bool) -> None:
    """Lightning in half precision calls Module.to(dtype), against which torchmetrics does not protect its states."""
    z, y = predictions(600, 3)
    module = torch.nn.Module()
    module.metric = CalibrationError(3, "log_loss", logits=True, weighted=weighted)
    module.to(getattr(torch, dtype))
    module.metric.update(z, y)
    module.metric.reset()
    module.metric.update(z, y)
    assert module.metric.cell_sums.dtype == torch.float64
    assert module.metric.row_counts.dtype == torch.int64
    expected = torch.nn.functional.cross_entropy(z.double(), y).item()
    assert module.metric.compute().item() == pytest.approx(expected, rel=1e-12)


def test_an_unknown_estimator_or_setting_is_refused_when_the_metric_is_made() -> None:
    with refused("TO201", fix="ece"):
        CalibrationError(5, "eec")
    with refused("TO201"):
        CalibrationError(5, 15)  # the position of n_bins in torchmetrics
    with refused("TO203"):
        CalibrationError(5, bins=0)
    with refused("TO204"):
        CalibrationError(5, lens="confidense")
    with refused("TO403"):
        CalibrationError(5, "skce")


def test_a_value_is_plotted() -> None:
    z, y = predictions(100, 3)
    metric = CalibrationError(3, logits=True)
    metric.update(z, y)
    figure, axes = metric.plot()
    assert axes.has_data()
    figure.clear()


def test_an_invalid_batch_keeps_the_rows_before_it_in_forward_too() -> None:
    z, y = predictions(60, 3)
    metric = CalibrationError(3, logits=True)
    metric(z, y)
    with refused("TO105"):
        metric(z, y + 5)
    metric(z, y)
    assert (metric.tally().n, metric.update_count) == (120, 2)


def test_a_checkpoint_of_other_settings_is_refused() -> None:
    z, y = predictions(60, 3)
    metric = CalibrationError(3, logits=True)
    metric.persistent(True)
    metric.update(z, y)
    state = metric.state_dict()
    same, other = CalibrationError(3, logits=True), CalibrationError(3)
    same.load_state_dict(state)
    assert same.tally().n == 60
    with refused("TO401", fix="logits=False"):
        other.load_state_dict(state)
    with refused("TO402", "(1,)"):
        same.load_state_dict(state | {"row_counts": torch.zeros(1, dtype=torch.int64)})
    assert (same.tally().n, other.update_count) == (60, 0)
