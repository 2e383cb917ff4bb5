"""How much do groups differ, and does the interval for a new group hold as often as it says?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, norm

import trueodds as to
from tests.data.refused import refused
from tests.slow_parameters import slow_except
from trueodds.estimators import CalibrationIntercept, ObservedExpected
from trueodds.estimators.base import Estimator
from trueodds.lenses.view import View
from trueodds.resampling.between_groups import BetweenGroups, between_variance, summarize_between_groups


def summary(y: np.ndarray, v: np.ndarray, seed: int = 0, method: str = "Nagashima") -> BetweenGroups:
    effects = [(str(i), float(y[i]), math.sqrt(v[i])) for i in range(len(y))]
    return summarize_between_groups("site", "identity", effects, 0.95, np.random.default_rng(seed), method)


def test_the_variance_between_groups_is_that_of_dersimonian_and_laird() -> None:
    """y = 0, 1, 3 with v = 1: Q = 14/3, so (14/3 − 2) / (3 − 1) = 4/3; equal values give 0."""
    assert between_variance(np.array([0.0, 1.0, 3.0]), np.ones(3)) == pytest.approx(4 / 3)
    assert between_variance(np.ones(3), np.ones(3)) == 0


def test_the_mean_has_the_interval_of_hksj_and_hts_that_of_riley() -> None:
    """τ² = 4/3 and w = 3/7: the mean 4/3 has the variance Σ(y − μ)² / (k (k − 1)) = 7/9, which is 1 / Σw too."""
    found = summary(np.array([0.0, 1.0, 3.0]), np.ones(3), method="HTS")
    assert found.mean == pytest.approx(4 / 3)
    assert found.sd == pytest.approx(math.sqrt(4 / 3))
    assert found.mean_interval is not None
    assert found.mean_interval.high - 4 / 3 == pytest.approx(4.302653 * math.sqrt(7 / 9), rel=1e-6)
    assert found.prediction is not None
    assert found.prediction.high - 4 / 3 == pytest.approx(12.706205 * math.sqrt(4 / 3 + 7 / 9), rel=1e-6)


def test_a_new_group_is_no_more_certain_than_the_mean() -> None:
    """Equal values: the draws of the mean do not vary, but the mean itself has the variance 1/k of the model."""
    found = summary(np.ones(3), np.ones(3))
    assert found.mean_interval is not None
    assert found.prediction is not None
    assert found.mean_interval.high - 1 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert found.prediction.low <= found.mean_interval.low < found.mean_interval.high <= found.prediction.high


def test_two_groups_have_no_interval_and_undefined_ones_are_named() -> None:
    found = summary(np.array([0.0, 1.0, math.nan]), np.ones(3))
    assert (found.n_groups, found.omitted, found.mean, found.prediction) == (2, ("2",), None, None)
    assert "requires at least 3 groups" in found.describe()


COVERAGE_SETS = 100


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 30])
@pytest.mark.parametrize("heterogeneity", [0.0, 0.3, 0.6, 0.9])
def test_the_interval_contains_a_new_group_in_at_least_92_percent(k: int, heterogeneity: float) -> None:
    """The mean conditional coverage over 100 sets is at least .92 less three standard errors."""
    rng, covered = np.random.default_rng([k, int(10 * heterogeneity)]), []
    for _ in range(COVERAGE_SETS):
        v = rng.uniform(0.2, 2.5, k) ** 2
        tau = math.sqrt(heterogeneity / (1 - heterogeneity) * float(np.exp(np.log(v).mean())))
        interval = summary(rng.normal(0, tau, k) + rng.normal(0, np.sqrt(v)), v).prediction
        assert interval is not None
        if tau > 0:
            covered.append(norm.cdf(interval.high / tau) - norm.cdf(interval.low / tau))
        else:
            covered.append(float(interval.low <= 0 <= interval.high))
    assert np.mean(covered) > 0.92 - 3 * max(np.std(covered), math.sqrt(0.92 * 0.08) * (tau == 0)) / 10


def hospitals(seed: int, k: int, n: int, tau: float) -> to.Predictions:
    """k hospitals of n patients on average, whose log odds deviate with the standard deviation tau."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, k, k * n)
    p = expit(rng.normal(-1.5, 1, k * n))
    y = rng.random(k * n) < expit(logit(p) + rng.normal(0, tau, k)[site])
    return to.Predictions(y.astype(int), p, group={"site": site})


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", slow_except(["o_e", "calibration_intercept", "calibration_slope"], ["calibration_intercept"])
)
def test_groups_of_a_column_are_summarized(estimator: str) -> None:
    preds = hospitals(3, 12, 150, 0.4)
    result = to.by_group(preds, estimator, between=True, interval=None, resamples=99)
    (between,) = result.between
    assert (between.column, between.n_groups, between.omitted) == ("site", 12, ())
    assert between.prediction is not None
    assert between.mean_interval is not None
    assert between.prediction.low < between.mean_interval.low < between.mean_interval.high < between.prediction.high
    assert result.to_dict()["between"][0]["n_groups"] == 12
    assert "between 12 groups of site: mean" in str(result)
    assert to.by_group(preds, estimator, between=True, interval=None, resamples=99).between == result.between
    plain = to.by_group(preds, estimator, interval=None, resamples=99)
    assert (plain.between, "between" in plain.to_dict()) == ((), False)


def test_a_group_without_events_counts_for_the_ratio_and_not_for_the_slope() -> None:
    """Half an event is added to its O:E; with fewer than ten events there is no slope."""
    preds = hospitals(1, 6, 200, 0.2)
    y = np.where(np.array(preds.group["site"]).astype(str) == "0", 0, preds.y)
    preds = to.Predictions(y, preds.p, group={"site": preds.group["site"]})
    ratio = to.by_group(preds, "o_e", between=True, interval=None, resamples=99)
    assert ratio.between[0].n_groups == 6
    slope = to.by_group(preds, "calibration_slope", between=True, interval=None, resamples=99)
    assert slope.between[0].omitted == ("site=0",)
    assert {"TN293"} <= {note.code for note in slope.notes}


@pytest.mark.parametrize("estimator", [ObservedExpected(), CalibrationIntercept()])
def test_groups_with_many_events_by_chance_have_no_more_weight(estimator: Estimator) -> None:
    """400 groups expect three events each, and 5 % of them have none: the mean is 0 up to four standard errors.

    With standard errors at the own number of events it would be .12, as 0, 1, … events would weigh ½, 1, …
    """
    events = np.random.default_rng(5).binomial(300, 0.01, 400)
    overall = float(events.mean() / 3 if estimator.name == "o_e" else logit(events.mean() / 300) - logit(0.01))
    effects = []
    for i, n_events in enumerate(events):
        view = View(p=np.full(300, 0.01), y=(np.arange(300) < n_events).astype(np.float64))
        effect = estimator.group_effect(view, None, overall)
        effects.append((str(i), effect.value, effect.se))
    assert len({se for _, _, se in effects}) == 1
    between = summarize_between_groups("site", "identity", effects, 0.95, np.random.default_rng(0))
    assert (between.n_groups, between.mean) == (400, pytest.approx(0, abs=4 / np.sqrt(3 * 400)))


def test_the_ratio_and_the_intercept_of_a_group_by_hand() -> None:
    """No event of 100 rows at .04: O:E is ½/4, and its variance 4 · .96/(4 · 8) if all groups have twice the events.

    The equation of Firth for equal rows is 0 at (O + ½)/(n + 1) events, here ½/101. With 49 rows or fewer, fewer than
    two events are expected at the ratio 1.
    """
    view = View(p=np.full(100, 0.04), y=np.zeros(100))
    ratio, intercept = (
        estimator.group_effect(view, None, 2.0) for estimator in (ObservedExpected(), CalibrationIntercept())
    )
    assert (ratio.value, ratio.se) == (pytest.approx(np.log(1 / 8)), pytest.approx(np.sqrt(0.12)))
    q = expit(logit(0.04) + 2)
    assert intercept.value == pytest.approx(logit(0.5 / 101) - logit(0.04), rel=1e-9)
    assert intercept.se == pytest.approx(1 / np.sqrt(100 * q * (1 - q)))
    small = View(p=np.full(49, 0.04), y=np.ones(49))
    assert np.isnan(ObservedExpected().group_effect(small, None, 1.0).value)
    assert np.isnan(CalibrationIntercept().group_effect(small, None, 0.0).value)


def test_few_groups_have_a_note() -> None:
    result = to.by_group(hospitals(1, 3, 200, 0.2), "o_e", between=True, interval=None, resamples=99)
    assert {"TN294"} <= {note.code for note in result.notes}


def test_what_cannot_be_summarized_is_refused() -> None:
    preds = hospitals(1, 3, 50, 0.2)
    with refused("TO205", "ece", fix="o_e"):
        to.by_group(preds, "ece", between=True)
    with refused("TO205", "max_groups=2"):
        to.by_group(preds, "o_e", between=True, max_groups=2)
    with refused("TO205", fix="between=True"):
        to.by_group(preds, "o_e", method="HTS")
    with refused("TO203", "REML"):
        to.by_group(preds, "o_e", between=True, method="REML")


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "estimator"), [(0.0, "o_e"), (0.4, "o_e"), (0.4, "calibration_intercept")])
def test_the_interval_of_simulated_labels_contains_a_new_hospital(tau: float, estimator: str) -> None:
    """A new hospital's intercept is N(0, τ²), and its O:E about exp of .8 times that.

    The value of a calibrated hospital is exactly that of the middle if τ is 0.
    """
    hits, n_sets = 0, 40
    for seed in range(n_sets):
        preds = hospitals(100 + seed, 10, 120, tau)
        prediction = to.by_group(preds, estimator, between=True, interval=None, resamples=19).between[0].prediction
        assert prediction is not None
        shift = np.random.default_rng(seed).normal(0, tau)
        p = expit(np.random.default_rng(1).normal(-1.5, 1, 20_000))
        ratio = float(expit(logit(p) + shift).mean() / p.mean())
        hits += prediction.low <= (shift if estimator == "calibration_intercept" else ratio) <= prediction.high
    assert hits >= binom.ppf(0.001, n_sets, 0.93)
