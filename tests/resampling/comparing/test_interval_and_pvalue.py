"""Interval and p-value of a comparison lead to the same conclusion."""

import numpy as np
import pytest

import trueodds as to


@pytest.mark.parametrize("name", ["brier", "log_loss", "murphy_loss", "ks", "ece", "debiased_l2"])
@pytest.mark.parametrize("level", [0.95, 0.9])
def test_an_interval_excludes_zero_exactly_if_the_pvalue_is_at_most_one_minus_its_level(name, level):
    # In rankings, the bound of max-T was one draw too high: [0, 0.15] with the adjusted p-value .0997 at level 90 %.
    for seed in range(12):
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


def test_equal_values_of_a_rate_are_ties_in_the_bca_interval():
    # One event in 500 rows: 37 % of the resamples have none and 37 % one, so z0 = Φ⁻¹(.368 + .184) = .13 and a = 1/6.
    # The upper limit is at Φ(.13 + 2.09 / (1 − 2.09/6)) = .9996 of Poisson(1), which is 5 events. Rounding of the sums
    # had separated equal values, with the limit at 3 events.
    interval = to.measure([1] + [0] * 499, np.full(500, 0.02), "calibration_in_the_large", lens="positive").interval
    assert interval.high == pytest.approx(5 / 500 - 0.02)
