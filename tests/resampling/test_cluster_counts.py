"""Intervals of means of few clusters, whose resamples take few values."""

import numpy as np
import pytest
from scipy.stats import t

import trueodds as to
from tests.rates import rate_is_at_level
from trueodds.diagrams.decision_curve import NetBenefitCurve
from trueodds.lenses.lens_by_name import as_lens


def halves(rate, other_rate, p=0.5):
    """Two clusters of 100 rows with the prediction p and these event rates."""
    rank = np.tile(np.arange(100), 2)
    y = (rank < 100 * np.repeat([rate, other_rate], 100)).astype(int)
    return to.Predictions(y, np.full(200, p), cluster=np.repeat([0, 1], 100))


def test_the_interval_of_two_clusters_is_students():
    # Gaps of .1 and .2 have the mean .15 and the standard error .05, and 12.706 is the quantile of one degree of
    # freedom. The relative standard error of the standard deviation of 2,000 resamples, each −1, 0 or 1 with the
    # probabilities 1/4, 1/2 and 1/4 (kurtosis 2), is √(1 / 8,000) = 1.1 %.
    interval = to.measure(halves(0.6, 0.7), "calibration_in_the_large", lens="positive").interval
    assert interval.method == "t"
    assert interval.high - 0.15 == pytest.approx(0.05 * t.ppf(0.975, 1), rel=0.04)
    assert 0.15 - interval.low == pytest.approx(interval.high - 0.15)


def test_no_limit_lies_beyond_what_a_mean_can_be():
    for name in ("brier", "o_e"):
        interval = to.measure(halves(0.2, 0.9, p=0.3), name, lens="positive").interval
        assert interval.low == 0
        assert interval.method == "t"
    assert interval.high > 3  # of the O:E ratio, 1.83 ± 12.7 · 1.17


def test_the_decision_curve_has_the_same_interval():
    rows = halves(0.6, 0.7)
    (view,) = as_lens("positive").views(rows)
    limits, _ = NetBenefitCurve(view, np.array([0.3])).limits(rows.cluster, 0.95, 2000, np.random.default_rng(0))
    interval = to.measure(rows, "net_benefit", threshold=0.3, lens="positive").interval
    assert interval.method == "t"
    assert limits.low[0] == pytest.approx(interval.low, rel=0.04)


def test_ten_clusters_keep_their_percentiles():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(12), 50)
    p = rng.random(600)
    rows = to.Predictions(
        (rng.random(600) < np.clip(p + rng.normal(0, 0.1, 12)[cluster], 0, 1)).astype(int), p, cluster=cluster
    )
    assert to.measure(rows, "brier", lens="positive").interval.method == "bca"


@pytest.mark.parametrize(("n_clusters", "earlier"), [(2, 0.49), (3, 0.24)])
def test_few_clusters_exclude_the_true_mean_in_5_percent(n_clusters, earlier):
    # The gaps of clusters are normal with a standard deviation of .1, which is much more than the √(.25 / 300) = .03 of
    # their rows.
    def excludes_0(seed):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(n_clusters), 300)
        y = rng.random(len(cluster)) < np.clip(0.5 + rng.normal(0, 0.1, n_clusters), 0, 1)[cluster]
        rows = to.Predictions(y.astype(int), np.full(len(y), 0.5), cluster=cluster)
        interval = to.measure(rows, "calibration_in_the_large", lens="positive", resamples=400).interval
        return not interval.low <= 0 <= interval.high

    assert rate_is_at_level(map(excludes_0, range(400)), 0.05, excluded=earlier)
