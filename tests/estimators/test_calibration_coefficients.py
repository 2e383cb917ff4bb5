"""Are calibration slope and intercept those of Cox's regression everywhere, by hand and with one interval?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import binom

import trueodds as to
from trueodds import InputError, Predictions
from trueodds.core.typing import Array
from trueodds.estimators.calibration_coefficients import CalibrationIntercept, CalibrationSlope
from trueodds.lenses.classes import Canonical
from trueodds.lenses.view import View

NAMES = ("calibration_slope", "calibration_intercept")
LOG_3, LOG_9 = math.log(3), math.log(9)
# Odds of 1 : 9 and 9 : 1 are predicted, and 1 : 3 and 3 : 1 observed: slope log 3 / log 9, and shift 0 by symmetry.
TWO_SCORES = ([0, 0, 0, 1, 0, 1, 1, 1], [0.1] * 4 + [0.9] * 4)


def cohort(n: int = 500, seed: int = 0, slope: float = 0.7, shift: float = -0.3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.normal(-0.5, 1.2, n)
    return (rng.random(n) < expit(slope * x + shift)).astype(int), expit(x)


def three_classes(n: int = 400, seed: int = 0, exponent: float = 0.7) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, 3))
    thresholds = softmax(exponent * z, axis=1).cumsum(axis=1)[:, :-1]
    return (thresholds <= rng.random((n, 1))).sum(axis=1), softmax(z, axis=1)


# By hand


def test_slope_and_interval_of_two_scores_by_hand() -> None:
    # The fitted probabilities are 1/4 and 3/4, so the information on the slope is 8 · 3/16 · log² 9.
    estimate = to.measure(*TWO_SCORES, "calibration_slope")
    half_width = 1.959964 / (LOG_9 * math.sqrt(1.5))
    assert estimate.value == pytest.approx(0.5, rel=1e-9)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((0.5 - half_width, 0.5 + half_width))
    assert (estimate.interval.method, estimate.noise_floor, estimate.debiased) == ("normal", 1.0, None)


def test_intercept_and_interval_of_one_score_by_hand() -> None:
    # Odds of 1 : 3 are predicted and 1 : 1 observed. The information is 4/4, and so is the sum of squared residuals.
    estimate = to.measure([0, 1, 0, 1], [0.25] * 4, "calibration_intercept")
    assert estimate.value == pytest.approx(LOG_3, rel=1e-9)
    assert estimate.interval.high - estimate.value == pytest.approx(1.959964)
    assert (estimate.noise_floor, estimate.debiased) == (0.0, None)


def test_weights_and_votes_are_rows() -> None:
    weighted = View([0.1, 0.1, 0.9, 0.9], [0, 1, 0, 1], [3, 1, 1, 3])
    assert CalibrationSlope().value(weighted) == pytest.approx(0.5, rel=1e-9)
    votes = Predictions([[3, 1], [1, 3]], [0.1, 0.9])
    assert to.measure(votes, "calibration_slope", interval=None).value == pytest.approx(0.5, rel=1e-9)


def test_the_exponent_of_vectors_by_hand() -> None:
    # (1/2, 1/4, 1/4) to the power b has the odds 2^b : 1 : 1; four, one and one of six rows make them 4 : 1 : 1.
    estimate = to.measure([0, 0, 0, 0, 1, 2], [[0.5, 0.25, 0.25]] * 6, "calibration_slope")
    assert estimate.value == pytest.approx(2.0, rel=1e-9)
    assert estimate.lens == "canonical"
    # The log-ratio to the first class is −log 2 with probability 1/3: variance 2/9 log² 2 of each row. The residuals
    # are log 2 · (1/3, −2/3), of which 4 and 2 rows have the squared sum 4/3 log² 2, times 6/5.
    half_width = 1.959964 * math.sqrt(4 / 3 * 6 / 5) / (6 * 2 / 9 * math.log(2))
    assert estimate.interval.high - estimate.value == pytest.approx(half_width)


def test_log_odds_stay_those_of_the_logits() -> None:
    # Log odds of ±50 have the probabilities 0 and 1, rounded: the slope is log 3 / 50.
    y = np.array(TWO_SCORES[0])
    preds = Predictions.from_logits(y, np.repeat([-50.0, 50.0], 4))
    assert to.measure(preds, "calibration_slope", interval=None).value == pytest.approx(LOG_3 / 50, rel=1e-9)


# One number and one interval


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [None, 25])
def test_measure_audit_test_groups_and_table_agree(clusters: int | None) -> None:
    y, p = cohort()
    cluster = None if clusters is None else np.arange(500) % clusters
    preds = Predictions(y, p, cluster=cluster, group={"site": ["north"] * 500})
    measures = {entry["name"]: entry for entry in to.audit(preds, resamples=99).to_dict()["standard_measures"]}
    coefficients = to.test(preds, "cox").coefficients
    for name, coefficient in zip(NAMES, ("slope", "in_the_large"), strict=True):
        estimate = to.measure(preds, name)
        interval = estimate.interval
        assert (estimate.value, interval) == (coefficients[coefficient].value, coefficients[coefficient].interval)
        assert (measures[name]["value"], measures[name]["interval"]) == (estimate.value, interval.to_dict())
        (group,) = to.by_group(preds, name, resamples=99).groups
        assert (group.estimate.value, group.estimate.interval) == (estimate.value, interval)
        (column,) = to.table({"model": preds}, name).columns
        assert column.estimates["model"].interval == interval
        assert interval.method == ("normal" if clusters is None else "t")


@pytest.mark.slow
def test_the_audit_of_several_classes_and_of_confidences_has_the_slope_of_measure() -> None:
    y, P = three_classes()
    confidences = Predictions.from_confidence(P.max(axis=1), P.argmax(axis=1) == y)
    for preds in (Predictions(y, P), Predictions(y, P, cluster=np.arange(400) % 30), confidences):
        slope = to.audit(preds, resamples=99).to_dict()["standard_measures"][1]
        estimate = to.measure(preds, "calibration_slope")
        assert (slope["name"], slope["value"]) == ("calibration_slope", estimate.value)
        assert slope["interval"] == estimate.interval.to_dict()


def test_two_classes_have_one_slope_through_both_lenses() -> None:
    preds = Predictions(*cohort())
    positive, canonical = (to.measure(preds, "calibration_slope", lens=lens) for lens in (None, "canonical"))
    assert (positive.lens, positive.value) == ("positive", canonical.value)


def test_the_coefficients_of_a_verdict_are_those_of_its_parts() -> None:
    verdict = to.test(*cohort(), "cox")
    assert list(verdict.coefficients) == ["in_the_large", "intercept", "slope"]
    intercept = verdict.coefficients["intercept"]
    assert (intercept.value, intercept.se) == (
        verdict.parts["joint"]["intercept"], verdict.parts["joint"]["intercept_se"],
    )  # fmt: skip
    assert intercept.interval_at(0.5).high == pytest.approx(intercept.value + 0.6744898 * intercept.se)
    assert to.test(*cohort(), "spiegelhalter").coefficients == {}


# Undefined coefficients


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_of_0_and_1_need_a_limit(name: str) -> None:
    y, p = cohort()
    y, p = np.append(y, [0, 1]), np.append(p, [0.0, 1.0])
    undefined, clipped = to.measure(y, p, name), to.measure(y, p, name, min_prob=0.001)
    assert math.isnan(undefined.value)
    assert undefined.interval is None
    (note,) = (note for note in undefined.notes if note.code == "TN268")
    assert note.text.startswith("2 of 502 probabilities are exactly 0 or 1")
    assert f"clipped at 0.001, {clipped.value:.2f}".replace("-", "\N{MINUS SIGN}") in note.text
    assert "TN106" in {note.code for note in clipped.notes}
    assert clipped.settings["min_prob"] == 0.001
    assert clipped.interval.low < clipped.value < clipped.interval.high


@pytest.mark.parametrize(
    ("y", "p", "name", "code"),
    [
        ([0, 1, 0, 1], [0.25] * 4, "calibration_slope", "TN218"),
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], "calibration_slope", "TN217"),
        ([1, 1, 1, 1], [0.1, 0.2, 0.3, 0.4], "calibration_intercept", "TN217"),
        ([0, 0, 1, 2], [[0.4, 0.3, 0.3]] * 2 + [[0.3, 0.4, 0.3], [0.2, 0.2, 0.6]], "calibration_slope", "TN217"),
        ([0, 1, 2, 0], [[0.0, 0.5, 0.5], *[[0.2, 0.3, 0.5]] * 3], "calibration_slope", "TN268"),
    ],
)
def test_an_undefined_coefficient_says_why(y: list[int], p: list[float], name: str, code: str) -> None:
    estimate = to.measure(y, p, name)
    assert math.isnan(estimate.value)
    assert code in {note.code for note in estimate.notes}


def test_the_intercept_of_separated_outcomes_is_defined() -> None:
    # Scores of ±log 3 and one outcome of each kind: the shift is 0 by symmetry, and no slope is finite.
    assert to.measure([0, 1], [0.25, 0.75], "calibration_intercept", interval=None).value == pytest.approx(0, abs=1e-12)


def test_too_few_clusters_leave_the_value_without_an_interval() -> None:
    y, p = cohort()
    estimate = to.measure(Predictions(y, p, cluster=np.arange(500) % 2), "calibration_slope")
    assert estimate.value == to.measure(y, p, "calibration_slope").value
    assert estimate.interval is None
    assert any(note.code == "TN201" and "too few clusters" in note.text for note in estimate.notes)


def test_several_views_are_not_averaged_and_the_intercept_needs_one_score() -> None:
    preds = Predictions(*three_classes())
    for name in NAMES:
        with pytest.raises(InputError, match="cannot be averaged"):
            to.measure(preds, name, lens="classwise")
    with pytest.raises(InputError, match="one score per row"):
        to.measure(preds, "calibration_intercept", lens="canonical")


# Draws, resamples and tallies


@pytest.mark.parametrize("classes", [2, 3])
def test_many_draws_at_once_are_the_values_of_each(classes: int) -> None:
    y, p = cohort(60) if classes == 2 else three_classes(60)
    (view,) = Canonical().views(Predictions(y, p))
    rng = np.random.default_rng(1)
    members = [CalibrationSlope()] if view.joint else [CalibrationSlope(), CalibrationIntercept()]
    for estimator in members:
        statistic = estimator.cell_statistic(view)
        outcomes = np.stack([view.y[rng.permutation(60)] for _ in range(4)])
        values = [estimator.value(view.with_y(outcome)) for outcome in outcomes]
        assert statistic.statistic(view.w[None], view.p[None], outcomes) == pytest.approx(values, rel=1e-7, nan_ok=True)
        multiplicities = rng.multinomial(60, np.full(60, 1 / 60), 4).astype(float)
        weighted_outcomes = multiplicities.reshape(4, 60, *[1] * (view.y.ndim - 1)) * view.y
        values = [estimator.value(view.take(np.repeat(np.arange(60), row.astype(int)))) for row in multiplicities]
        resampled = statistic.statistic(multiplicities, view.p[None], weighted_outcomes)
        assert resampled == pytest.approx(values, rel=1e-7, nan_ok=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_tally_has_the_coefficient_of_its_cells(name: str) -> None:
    # 3,840 cells of the mean prediction move the log odds by at most about 4/3,840, against a standard error of .1.
    preds = Predictions(*cohort())
    rows, cells = to.measure(preds, name), to.measure(to.tally(preds), name)
    assert cells.value == pytest.approx(rows.value, abs=0.002)
    assert cells.interval.high == pytest.approx(rows.interval.high, abs=0.002)
    assert cells.noise_floor == rows.noise_floor
    with pytest.raises(InputError, match="TO40"):
        to.measure(to.tally(Predictions(*three_classes())), "calibration_slope")


@pytest.mark.parametrize("name", NAMES)
def test_bootstrap_intervals_are_about_as_long(name: str) -> None:
    # A standard deviation of 300 resamples has a relative standard error of 1/√600 = 4 %; four of them.
    preds = Predictions(*cohort())
    wald, bootstrap = (to.measure(preds, name, interval=method, resamples=300) for method in ("auto", "percentile"))
    lengths = [estimate.interval.high - estimate.interval.low for estimate in (wald, bootstrap)]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.2)


# Comparisons, groups, names


def test_scaled_log_odds_differ_by_a_known_factor() -> None:
    # Log odds twice as far from 0 have half the slope s/2, for any outcomes: the difference of the two is s/2, and its
    # standard error half of that of s.
    y, p = cohort(1500, slope=0.6)
    sharp = expit(2 * logit(p))
    slope = to.measure(y, p, "calibration_slope")
    comparison = to.compare(y, sharp, p, "calibration_slope")
    half_width = (slope.interval.high - slope.interval.low) / 2
    assert comparison.paired
    assert comparison.difference == pytest.approx((1 - slope.value / 2) - (1 - slope.value))
    assert comparison.interval.high == pytest.approx(slope.value / 2 + half_width / 2)
    assert comparison.settings["correlation"] == pytest.approx(1)
    assert "resamples" not in comparison.settings


def test_slopes_equally_far_from_1_on_opposite_sides_do_not_differ() -> None:
    # The log odds of b are such that the slopes are s and 2 − s.
    y, a = cohort(slope=0.8)
    slope = to.measure(y, a, "calibration_slope").value
    comparison = to.compare(y, a, expit(logit(a) * slope / (2 - slope)), "calibration_slope")
    assert comparison.difference == pytest.approx(0, abs=1e-9)
    assert comparison.pvalue > 0.9
    assert to.compare(y, a, a, "calibration_intercept").pvalue == 1


def test_independent_samples_add_their_variances() -> None:
    a, b = (Predictions(*cohort(seed=seed)) for seed in (1, 3))
    first, second = (to.test(preds, "cox").coefficients["slope"] for preds in (a, b))
    comparison = to.compare(a, b, "calibration_slope", paired=False)
    margin = 1.959964 * math.hypot(first.se, second.se)
    deviations = (first.value - 1, second.value - 1)
    assert max(deviations) < 0  # both too extreme: the difference of the distances is that of the slopes
    assert comparison.difference == pytest.approx(second.value - first.value)
    assert comparison.interval.high == pytest.approx(second.value - first.value + margin)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_intervals_of_paired_differences_cover(classes: int) -> None:
    # The slope of log odds c times as large is s/c, so the true difference of the slopes s and s/1.5 is s/3. Other
    # noise in the second model leaves its slope unchanged in the mean of three classes only approximately, so it has
    # none. 120 intervals of 95 % cover at least 106 times with probability .999.
    covered, sets = 0, 120
    for seed in range(sets):
        y, P = cohort(200, seed) if classes == 2 else three_classes(200, seed)
        Q = expit(1.5 * logit(P)) if classes == 2 else softmax(1.5 * np.log(P), axis=1)
        interval = to.compare(y, Q, P, "calibration_slope").interval
        covered += interval.low <= 0.7 - 0.7 / 1.5 <= interval.high
    assert covered >= binom.ppf(0.001, sets, 0.95)


def test_correlated_models_are_as_far_apart_as_resamples_say() -> None:
    # As above, the standard deviation of 300 resamples has a relative standard error of 4 %.
    y, p = cohort(800)
    noisy = expit(logit(p) + np.random.default_rng(3).normal(0, 0.5, 800))
    wald, bootstrap = (
        to.compare(y, p, noisy, "calibration_slope", interval=method, resamples=300)
        for method in ("auto", "percentile")
    )
    lengths = [comparison.interval.high - comparison.interval.low for comparison in (wald, bootstrap)]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.25)


def test_groups_are_tested_for_their_own_slope() -> None:
    y, p = cohort(600, slope=1, shift=0)
    y2, p2 = cohort(600, seed=1, slope=0.3, shift=0)
    group = np.repeat(["calibrated", "overconfident"], 600)
    preds = Predictions(np.r_[y, y2], np.r_[p, p2], group={"hospital": group})
    result = to.by_group(preds, "calibration_slope", resamples=199)
    assert [found.label for found in result.miscalibrated] == ["hospital=overconfident"]
    y2, p2 = cohort(600, seed=1, slope=1, shift=0.8)
    preds = Predictions(np.r_[y, y2], np.r_[p, p2], group={"hospital": np.repeat(["calibrated", "too low"], 600)})
    result = to.by_group(preds, "calibration_intercept", resamples=199)
    assert [found.label for found in result.miscalibrated] == ["hospital=too low"]


def test_groups_that_share_clusters_have_gaps() -> None:
    y, p = cohort(600)
    preds = Predictions(y, p, cluster=np.arange(600) % 40, group={"ward": np.arange(600) % 3})
    (first, *_) = to.by_group(preds, "calibration_slope", resamples=99).gaps
    assert first.interval.low < first.difference < first.interval.high


def test_scorers_penalize_both_directions() -> None:
    class Fixed:
        classes_ = np.array([0, 1])

        def predict_proba(self, X: Array) -> Array:
            return np.stack([1 - X, X], axis=1)

    y, p = TWO_SCORES
    assert to.scorer("calibration_slope")(Fixed(), np.array(p), np.array(y)) == pytest.approx(-0.5)
    assert to.scorer("calibration_intercept")(Fixed(), np.full(4, 0.75), np.array([0, 1, 0, 1])) == pytest.approx(
        -LOG_3
    )


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("slope", "calibration_slope"),
        ("calibration slope", "calibration_slope"),
        ("cox slope", "calibration_slope"),
        ("intercept", "calibration_intercept"),
        ("calibration intercept", "calibration_intercept"),
    ],
)
def test_other_names_lead_to_the_coefficients(word: str, name: str) -> None:
    with pytest.raises(InputError, match=f"Did you mean {name}"):
        to.measure(*TWO_SCORES, word)


def test_a_cluster_with_nearly_all_weight_leaves_the_slope_of_vectors_without_an_interval() -> None:
    rng = np.random.default_rng(1)
    P, cluster = rng.dirichlet([1, 1, 1], 40), np.arange(40) % 4
    y = (P.cumsum(axis=1) < rng.random((40, 1))).sum(axis=1)
    estimate = to.measure(
        Predictions(y, P, cluster=cluster, weight=np.where(cluster == 0, 1e6, 1.0)), "calibration_slope"
    )
    assert np.isfinite(estimate.value)
    assert estimate.interval is None or estimate.interval.high - estimate.interval.low > 100


def test_equal_clusters_of_vectors_widen_the_interval_of_the_slope() -> None:
    # Each row twice, in a cluster of its own: the standard error is that of the single rows times G/(G − 1).
    rng = np.random.default_rng(2)
    P = rng.dirichlet([1, 1, 1], 50)
    y = (P.cumsum(axis=1) < rng.random((50, 1))).sum(axis=1)
    single = to.measure(Predictions(y, P), "calibration_slope").interval
    doubled = to.measure(
        Predictions(np.tile(y, 2), np.tile(P, (2, 1)), cluster=np.tile(np.arange(50), 2)), "calibration_slope"
    )
    ratio = (doubled.interval.high - doubled.interval.low) / (single.high - single.low)
    assert 1.0 < ratio < 1.15  # Student's t with about 45 degrees of freedom, and the leverage of each cluster


def test_an_undefined_model_of_a_comparison_is_named() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    contradicted = np.where(np.arange(300) == np.flatnonzero(y == 0)[0], 1.0, p)
    text = to.compare(y, {"a": contradicted, "b": p}, "calibration_slope").describe()
    assert "no pair was compared; undefined: a" in text
