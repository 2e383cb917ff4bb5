"""Interval and p-value of a comparison lead to the same conclusion."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

import trueodds as to
from tests.slow_parameters import slow_except


@pytest.mark.parametrize(
    "name", slow_except(["brier", "log_loss", "murphy_loss", "ks", "ece", "debiased_l2"], ["brier", "ece"])
)
@pytest.mark.parametrize("level", slow_except([0.99, 0.95, 0.9], [0.9]))
def test_an_interval_excludes_zero_exactly_if_the_pvalue_is_at_most_one_minus_its_level(name, level):
    # In rankings, the bound of max-T was one draw too high: [0, 0.15] with the adjusted p-value .0997 at level 90 %.
    for seed in range(6):
        rng = np.random.default_rng([5, seed])
        logit = rng.normal(-1.5 * (seed % 2), 1.5, [60, 150, 400][seed % 3])
        y = (rng.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)
        logits = (
            logit * rng.uniform(0.8, 1.6) + 0.3 * rng.normal(size=len(logit)),
            logit + 0.4 * rng.normal(size=len(logit)) + 0.15,
            0.7 * logit,
        )
        models = {f"m{i}": to.Predictions(y, 1 / (1 + np.exp(-z))) for i, z in enumerate(logits)}
        lens = {} if name in ("brier", "log_loss") else {"lens": "positive"}
        ranking = to.compare(models, estimator=name, level=level, resamples=300, **lens)
        pair = to.compare(models["m0"], models["m1"], name, level=level, resamples=300, **lens)
        for comparison in (*ranking.pairs, pair):
            interval = comparison.interval
            assert (not interval.low <= 0 <= interval.high) == (comparison.pvalue <= 1 - level)


def test_the_pvalue_of_two_brier_scores_does_not_depend_on_the_level():
    # The t test rejects at 5 % (p = .041), but the interval of the resamples contains 0 from the level .938 on. The
    # p-value was .062 at level .95, and .041 at the others.
    rng = np.random.default_rng(8)
    p = rng.beta(0.4, 0.4, 200)
    y = (rng.random(200) < p).astype(int)
    q = np.clip(p + 0.1 + 0.05 * rng.normal(size=200), 0, 1)
    models = to.Predictions(y, p), to.Predictions(y, q)

    def compare(level):
        return to.compare(*models, "brier", level=level, resamples=300)

    assert len({compare(level).pvalue for level in (0.5, 0.9, 0.95, 0.99)}) == 1
    pvalue = compare(0.95).pvalue
    assert ttest_rel((p - y) ** 2, (q - y) ** 2).pvalue < 0.05 < pvalue
    shorter, longer = compare(1 - pvalue - 1e-6).interval, compare(1 - pvalue + 1e-6).interval
    assert shorter.high < 0 < longer.high


def test_a_difference_of_means_without_contradicting_resamples_has_the_pvalue_of_the_t_test():
    # The smallest of 300 resampled differences is above 0, so the interval excludes 0 at every level.
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.4, 200)
    y = (rng.random(200) < p).astype(int)
    q = np.clip(p + 0.3, 0, 1)
    pvalue = to.compare(to.Predictions(y, q), to.Predictions(y, p), "brier", resamples=300).pvalue
    assert pvalue == pytest.approx(ttest_rel((q - y) ** 2, (p - y) ** 2).pvalue, rel=1e-6)


def test_equal_values_of_a_rate_are_ties_in_the_bca_interval():
    # One event in 500 rows: 37 % of the resamples have none and 37 % one, so z0 = Φ⁻¹(.368 + .184) = .13 and a = 1/6.
    # The upper limit is at Φ(.13 + 2.09 / (1 − 2.09/6)) = .9996 of Poisson(1), which is 5 events. Rounding of the sums
    # had separated equal values, with the limit at 3 events.
    interval = to.measure([1] + [0] * 499, np.full(500, 0.02), "calibration_in_the_large", lens="positive").interval
    assert interval.high == pytest.approx(5 / 500 - 0.02)
