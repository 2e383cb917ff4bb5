"""Is the summary of an epoch made of the numbers that measure, test and fit give on the same predictions?"""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import trueodds as to
from tests.data.refused import refused
from trueodds.estimators.binned import BinnedError
from trueodds.integrations.epoch_summary import EpochSummarizer, summarize_epoch


def overconfident(n: int = 1500, k: int = 4, scale: float = 2.0) -> tuple[Any, Any]:
    """Logits that are `scale` times those from which the labels are drawn."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k))
    return scale * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


@pytest.mark.parametrize("estimator", ["ece", "debiased_l2", "brier"])
@pytest.mark.parametrize("lens", [None, "class:1"])
def test_every_value_is_that_of_the_public_functions(estimator: str, lens: str | None) -> None:
    z, y = overconfident()
    preds = to.Predictions.from_logits(y, z)
    summary = summarize_epoch(preds, estimator=estimator, lens=lens, rng=3)
    estimate = to.measure(preds, estimator, lens=lens, resamples=199, rng=3)
    verdict = to.test(preds, "consistency", statistic=estimator, lens=lens, resamples=199, rng=3)
    calibrator = to.fit(preds, "temperature")
    assert (summary.error, summary.noise_floor) == (estimate.value, estimate.noise_floor)
    assert (summary.pvalue, summary.min_pvalue) == (verdict.pvalue, verdict.min_pvalue)
    assert summary.temperature == 1 / calibrator.calibration_map.to_dict()["beta"]
    assert summary.log_loss == to.measure(preds, "log_loss").value
    recalibrated_loss = to.measure(calibrator.recalibrate(preds), "log_loss", interval=None).value
    np.testing.assert_allclose(summary.refinement, recalibrated_loss, rtol=1e-12)
    assert summary.accuracy == np.mean(z.argmax(axis=1) == y)
    assert summary.n == 1500
    assert (summary.estimator, summary.lens) == (estimator, estimate.lens)


def test_refinement_is_the_smallest_log_loss_at_any_temperature() -> None:
    z, y = overconfident()
    summary = summarize_epoch(to.Predictions.from_logits(y, z))
    optimum = minimize_scalar(lambda t: -log_softmax(z / t, axis=1)[np.arange(len(y)), y].mean(), bounds=(0.1, 10))
    np.testing.assert_allclose(summary.refinement, optimum.fun, rtol=1e-9)
    np.testing.assert_allclose(summary.temperature, optimum.x, rtol=1e-4)
    assert summary.refinement < summary.log_loss
    assert 1.7 < summary.temperature < 2.3


@pytest.mark.parametrize("y", [[1, 1, 1, 0, 0, 1], [[0, 3], [0, 3], [0, 3], [3, 0], [3, 0], [1, 2]]])
def test_a_row_of_weight_zero_whose_outcome_had_probability_zero_does_not_count(y: list[Any]) -> None:
    P = [[0.1, 0.9], [0.2, 0.8], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3], [1.0, 0.0]]
    weighted = summarize_epoch(to.Predictions(y, P, weight=[1, 1, 1, 1, 1, 0]))
    dropped = summarize_epoch(to.Predictions(y[:5], P[:5]))
    assert weighted.refinement == pytest.approx(dropped.refinement, rel=1e-12)
    assert math.isfinite(weighted.refinement)


def test_refinement_does_not_depend_on_the_scale_of_the_logits() -> None:
    z, y = overconfident()
    first, second = (summarize_epoch(to.Predictions.from_logits(y, c * z)) for c in (1.0, 5.0))
    np.testing.assert_allclose(first.refinement, second.refinement, rtol=1e-9)
    np.testing.assert_allclose(5 * first.temperature, second.temperature, rtol=1e-6)
    assert second.log_loss > 1.5 * first.log_loss


def test_refinement_is_finite_where_recalibrated_probabilities_underflow() -> None:
    z, y = np.zeros((10_000, 2)), np.zeros(10_000, dtype=int)
    z[:, 0], z[0] = 2000.0, [-9000.0, 9000.0]
    summary = summarize_epoch(to.Predictions.from_logits(y, z))
    assert np.isfinite(summary.refinement)
    assert summary.refinement <= summary.log_loss == 18_000 / 10_000


@pytest.mark.parametrize("shape", ["binary", "votes"])
def test_two_classes_and_votes_are_summarized(shape: str) -> None:
    rng = np.random.default_rng(1)
    if shape == "binary":
        p = rng.random(400)
        preds = to.Predictions(rng.random(400) < p, p)
    else:
        P = rng.dirichlet([1, 1, 1], 400)
        preds = to.Predictions(np.stack([rng.multinomial(5, row) for row in P]), P)
    summary = summarize_epoch(preds)
    calibrator = to.fit(preds, "temperature")
    expected = to.measure(calibrator.recalibrate(preds), "log_loss", interval=None).value
    np.testing.assert_allclose(summary.refinement, expected, rtol=1e-12)
    assert summary.error == to.measure(preds).value


def test_a_calibrated_model_is_near_its_noise_floor_and_an_overconfident_one_is_rejected() -> None:
    for scale, is_calibrated in ((1.0, True), (2.0, False)):
        z, y = overconfident(scale=scale)
        summary = summarize_epoch(to.Predictions.from_logits(y, z))
        assert summary.noise_floor is not None
        assert (summary.error < 2 * summary.noise_floor) == is_calibrated
        assert (summary.pvalue > 0.05) == is_calibrated


def test_the_text_is_one_line_and_the_dict_has_the_eight_numbers() -> None:
    z, y = overconfident()
    summary = summarize_epoch(to.Predictions.from_logits(y, z))
    line = str(summary)
    assert "\n" not in line
    for part in (
        "accuracy 0.",
        "at T = ",
        "ece 0.",
        "(noise floor 0.0",
        "consistency p ≤ 0.005",
        "n=1,500",
        "confidence",
    ):
        assert part in line, line
    names = ["n", "accuracy", "log_loss", "error", "noise_floor", "pvalue", "temperature", "refinement"]
    values = summary.to_dict("val/")
    assert list(values) == [f"val/{name}" for name in names]
    assert list(values.values()) == [getattr(summary, name) for name in names]
    assert all(type(value) is float for value in values.values())


def test_an_instance_of_an_estimator_and_another_test_are_taken() -> None:
    z, y = overconfident()
    preds = to.Predictions.from_logits(y, z)
    summary = summarize_epoch(preds, estimator=BinnedError(), test="omnibus", resamples=99)
    assert summary.error == to.measure(preds, BinnedError()).value
    assert summary.pvalue == to.test(preds, "omnibus", resamples=99).pvalue


def test_bad_arguments_are_refused() -> None:
    with refused("TO203"):
        summarize_epoch([0, 1])  # type: ignore[arg-type]
    with refused("TO502"):
        summarize_epoch(to.Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.9], [0.6, 0.7]]))
    with refused("TO202"):
        summarize_epoch(to.Predictions([0, 1], [0.2, 0.7]), bins=10)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("TO201", {"estimator": "eec"}),
        ("TO204", {"lens": "confidense"}),
        ("TO203", {"every": 0}),
        ("TO203", {"rng": -1}),
        ("TO203", {"logits": 1.5}),
        ("TO203", {"prefix": 3}),
        ("TO203", {"sum_tolerance": "small"}),
    ],
)
def test_settings_are_refused_before_training(code: str, settings: dict[str, Any]) -> None:
    arguments = {"logits": True, "estimator": "ece", "lens": None, "prefix": ""} | settings
    with refused(code):
        EpochSummarizer(**arguments)


def test_notes_on_the_data_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    monitor = EpochSummarizer(True, "ece", None, "")
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    with caplog.at_level(logging.INFO, logger="trueodds.integrations.epoch_summary"):
        for _ in range(2):
            collector = monitor.make_collector()
            collector.add(P, np.arange(50) % 3)  # probabilities, where logits are read as requested
            monitor.summarize(collector)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "TN108" in warnings[0]
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert lines == [str(monitor.latest)] * 2


def test_epochs_are_due_from_the_first_one_on() -> None:
    monitor = EpochSummarizer(True, "ece", None, "", every=3)
    assert [epoch for epoch in range(8) if monitor.is_due(epoch)] == [0, 3, 6]


def test_the_refinement_is_weighted_like_the_log_loss() -> None:
    z, y = overconfident(300, 3)
    weight = np.random.default_rng(1).gamma(0.2, size=300) + 1e-6
    preds = to.Predictions.from_logits(y, z, weight=weight)
    summary = summarize_epoch(preds, resamples=19)
    scaled = to.fit(preds, "temperature").recalibrate(preds)
    np.testing.assert_allclose(summary.refinement, to.measure(scaled, "log_loss", interval=None).value, rtol=1e-12)
    assert summary.refinement <= summary.log_loss
