"""Are AURC and the risk at a coverage those of the risk-coverage curve, for one model, two models, and groups?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.core.typing import Array
from trueodds.estimators.selective_prediction import RiskAtCoverage
from trueodds.lenses.selective_risk import selective_risk

# Confidences 0.9, 0.8 (twice), 0.6 and 0.5 (twice); the errors are one of the pair at 0.8 and one of the pair at 0.5.
CONFIDENCE, CORRECT = [0.5, 0.8, 0.9, 0.6, 0.8, 0.5], [0, 1, 1, 1, 0, 1]


def value(name: str, *data: Any, **settings: Any) -> float:
    return to.measure(*data, name, interval=None, **settings).value


def answers(n: int = 150, seed: int = 0) -> tuple[to.Predictions, to.Predictions]:
    """Two models with confidences for the same questions; decimal confidences tie."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.3, 1.0, n).round(1)
    correct = (rng.random(n) < first).astype(int)
    second = (0.2 * first + 0.8 * rng.uniform(0.3, 1.0, n)).round(1)
    return to.Predictions.from_confidence(first, correct), to.Predictions.from_confidence(second, correct)


def test_aurc_of_six_answers_with_ties_is_the_mean_over_their_orders() -> None:
    # Risks: 0; the pair in random order 1/2 / 2 and 1/3; 1/4; the last pair (1 + 1/2)/5 and 2/6.
    by_hand = (0 + 1 / 4 + 1 / 3 + 1 / 4 + 3 / 10 + 1 / 3) / 6
    assert value("aurc", to.Predictions.from_confidence(CONFIDENCE, CORRECT)) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize(
    ("coverage", "by_hand"),
    # One answer, two (half an error), three, five (1.5 errors), and three fifths of the six: 3.6 answers with 1 error.
    [(1 / 6, 0.0), (2 / 6, 1 / 4), (3 / 6, 1 / 3), (5 / 6, 3 / 10), (1.0, 1 / 3), (0.6, 1 / 3.6)],
)
def test_the_risk_of_six_answers_with_ties_is_the_mean_over_their_orders(coverage: float, by_hand: float) -> None:
    preds = to.Predictions.from_confidence(CONFIDENCE, CORRECT)
    assert value("risk", preds, coverage=coverage) == pytest.approx(by_hand, abs=1e-12)


def test_a_coverage_in_the_name_is_the_setting() -> None:
    preds, _ = answers()
    named = to.measure(preds, "risk@0.35")
    assert named == to.measure(preds, "risk", coverage=0.35) == to.measure(preds, RiskAtCoverage(0.35))
    assert (named.estimator, named.settings["coverage"]) == ("risk@0.35", 0.35)
    assert to.measure(preds, "risk").settings["coverage"] == 0.8
    with pytest.raises(to.InputError, match=r"TO205.*given twice"):
        to.measure(preds, "risk@0.5", coverage=0.4)
    with pytest.raises(to.InputError, match=r"TO203.*risk@0.8"):
        to.measure(preds, "risk@high")
    with pytest.raises(to.InputError, match="TO201"):
        to.measure(preds, "ece@0.8")


@pytest.mark.parametrize("has_clusters", [False, True])
def test_value_and_interval_are_those_of_the_curve_with_the_same_seed(has_clusters: bool) -> None:
    preds, _ = answers()
    if has_clusters:
        preds = to.Predictions.from_confidence(preds.p, preds.y, cluster=np.arange(preds.n) // 3)
    curve = selective_risk(preds, at=[0.7], resamples=500, rng=3)
    area, risk = (to.measure(preds, name, resamples=500, rng=3) for name in ("aurc", "risk@0.7"))
    assert area.interval is not None
    assert risk.interval is not None
    assert curve.interval is not None
    assert area.value == pytest.approx(curve.aurc)
    assert [area.interval.low, area.interval.high] == pytest.approx([curve.interval.low, curve.interval.high])
    assert [risk.value, risk.interval.low, risk.interval.high] == pytest.approx(
        [float(curve.at[name][0]) for name in ("risk", "low", "high")]
    )


def test_without_an_error_the_interval_is_exact() -> None:
    preds = to.Predictions.from_confidence(np.linspace(0.5, 1, 40), np.ones(40, int))
    curve, area = selective_risk(preds), to.measure(preds, "aurc")
    assert area.interval == curve.interval
    risk = to.measure(preds, "risk@0.5").interval
    assert risk is not None
    assert (risk.method, risk.low, risk.high) == ("exact", 0.0, pytest.approx(1 - 0.025 ** (1 / 20)))
    wrong = to.measure(to.Predictions.from_confidence(preds.p, np.zeros(40, int)), "risk@0.5").interval
    assert wrong is not None
    assert (wrong.low, wrong.high) == (pytest.approx(0.025 ** (1 / 20)), 1.0)


def area(confidence: Array, correct: Array) -> float:
    """AURC by its definition, as the mean over random orders of ties: errors are shared within each tie."""
    order = np.argsort(-confidence, kind="stable")
    c, z = confidence[order], 1.0 - correct[order]
    for level in np.unique(c):
        z[c == level] = z[c == level].mean()
    return float((np.cumsum(z) / np.arange(1, len(z) + 1)).mean())


def test_the_paired_interval_is_the_bootstrap_of_the_difference_on_the_same_rows() -> None:
    # Shared errors within a tie are the mean over its orders, because the curve is linear in the errors.
    first, second = answers()
    comparison = to.compare(first, second, "aurc", paired=True, resamples=400)
    resamples = np.random.default_rng([0]).integers(0, first.n, (400, first.n))  # the seed of the first model
    draws = [area(first.p[rows], first.y[rows]) - area(second.p[rows], second.y[rows]) for rows in resamples]
    assert comparison.interval is not None
    assert comparison.difference == pytest.approx(area(first.p, first.y) - area(second.p, second.y))
    limits = [comparison.interval.low, comparison.interval.high]
    assert limits == pytest.approx(np.quantile(draws, [0.025, 0.975]).tolist(), abs=1e-12)
    assert comparison.better == "a"
    assert not any(note.code == "TN228" for note in comparison.notes)  # the expected values are no noise


def test_two_models_without_an_error_are_not_called_equal() -> None:
    confident = to.Predictions.from_confidence(np.linspace(0.5, 1, 30), np.ones(30, int))
    other = to.Predictions.from_confidence(np.linspace(0.6, 0.9, 30), np.ones(30, int))
    interval = to.compare(confident, other, "risk@1", paired=True).interval
    assert interval is not None
    assert (interval.low, interval.high) == (
        pytest.approx(-(1 - 0.025 ** (1 / 30))),
        pytest.approx(1 - 0.025 ** (1 / 30)),
    )


def test_the_expected_values_are_those_of_calibrated_answers() -> None:
    # A risk is linear in the errors: at a coverage of 1/2 it is the mean doubt of the two surest, (0.1 + 0.2)/2.
    preds = to.Predictions.from_confidence([0.6, 0.9, 0.7, 0.8], [0, 0, 1, 1])
    assert to.measure(preds, "risk@0.5").noise_floor == pytest.approx(0.15)
    by_hand = (0.1 + 0.3 / 2 + 0.6 / 3 + 1.0 / 4) / 4
    estimate = to.measure(preds, "aurc")
    assert estimate.noise_floor == pytest.approx(by_hand)
    assert estimate.debiased is None  # it is no error of calibration


def test_a_calibrated_group_of_large_risk_is_not_miscalibrated() -> None:
    rng = np.random.default_rng(0)
    is_hard = np.arange(2000) < 1000
    confidence = np.where(is_hard, rng.uniform(0.4, 0.6, 2000), rng.uniform(0.9, 1.0, 2000))
    labels = rng.random(2000) < confidence
    preds = to.Predictions.from_confidence(
        confidence, labels.astype(int), group={"kind": np.where(is_hard, "hard", "easy")}
    )
    for name in ("aurc", "risk@0.8"):
        by_group = to.by_group(preds, name, resamples=199, min_effect=0.1)
        hard = next(group for group in by_group.groups if group.value == "hard")
        assert hard.estimate.value > 0.4
        assert hard.status != "miscalibrated"
        easy = next(group for group in by_group.groups if group.value == "easy")
        assert easy.estimate.interval is not None
        assert easy.estimate.interval.high < 0.1
        assert easy.status == "undecided"  # a small risk does not show calibration either
        assert by_group.widest[0].settled


def test_a_class_is_ranked_by_its_probability_and_its_risk_is_the_share_of_false_alarms() -> None:
    # Through positive, the two largest probabilities have one event.
    assert value("risk@0.5", [1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1], lens="positive") == 0.5
    # Through confidence, the surest are 0.9 and 0.1, and both are right.
    assert value("risk@0.5", [1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1]) == 0.0


def test_votes_and_weights_are_shares_of_rows() -> None:
    voted = to.Predictions([[7, 3], [1, 9]], [[0.9, 0.1], [0.2, 0.8]])
    assert value("risk@1", voted) == pytest.approx((0.3 + 0.1) / 2)
    doubled = to.Predictions.from_confidence(CONFIDENCE, CORRECT, weight=[2] * 6)
    twice = to.Predictions.from_confidence(CONFIDENCE * 2, CORRECT * 2)
    assert value("aurc", doubled) == pytest.approx(value("aurc", twice))


def test_a_tally_on_the_scores_has_the_same_values() -> None:
    # Scores of tenths are in cells of their own, so the tally loses nothing.
    preds, _ = answers()
    for name in ("aurc", "risk@0.6"):
        assert value(name, to.tally(preds)) == pytest.approx(value(name, preds))
        assert to.measure(to.tally(preds), name).interval is not None


def test_a_table_has_a_column_for_each_coverage() -> None:
    first, second = answers()
    table = to.table({"a": first, "b": second}, ["risk@0.5", "risk@0.9", "aurc"], resamples=99)
    assert [column.label for column in table.columns] == ["risk@0.5", "risk@0.9", "aurc"]
