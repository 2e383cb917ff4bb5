"""Bias bounds of mean absolute gaps: worked values, comparison with draws, and coverage."""

import numpy as np
import pytest
from scipy.special import softmax

import trueodds as to
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals import folded_normal
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import null_draws


def make_estimand(preds, name="ece", lens="positive", **settings):
    return Estimand.from_predictions(ESTIMATORS.make(name, settings), as_lens(lens), preds)


def make_gaps(gap, s):
    """Cells of 100 rows whose residuals scatter as the model says."""
    gap, s = np.asarray(gap, dtype=float), np.asarray(s, dtype=float)
    return folded_normal.CellGaps(gap, s**2, s**2, np.full(len(gap), 100.0), np.ones(len(gap)))


def test_gaps_of_two_bins_by_hand():
    # bins (0, .5] and (.5, 1] hold 2 and 3 of 5 rows. Residuals y − p: .8, −.2 and .4, .4, −.6, means .3 and .0667.
    preds = Predictions([1, 0, 1, 1, 0], [0.2, 0.2, 0.6, 0.6, 0.6])
    gaps = folded_normal.cell_gaps(make_estimand(preds, bins=2), preds)
    np.testing.assert_allclose(gaps.abs_gap, [0.4 * 0.3, 0.6 * 0.2 / 3])
    # scatter Σ(u − ū)² = 2 · .25 and 2(1/3)² + (2/3)² = 2/3; null Σp(1 − p) = .32 and .72; all over 5²
    np.testing.assert_allclose(gaps.sampling_variance, [0.5 / 25, 2 / 3 / 25])
    np.testing.assert_allclose(gaps.null_variance, [0.32 / 25, 0.72 / 25])
    np.testing.assert_allclose(gaps.n_rows, [2, 3])


@pytest.mark.parametrize(
    ("name", "lens", "settings"),
    [
        ("ece", "confidence", {}),
        ("ece", "classwise", {}),
        ("ace", "classwise", {}),
        ("average_ce", "confidence", {}),
        ("tace", "classwise", {}),
        ("tace", "classwise", {"normalize": "all"}),
    ],
)
def test_the_gaps_add_up_to_the_error(name, lens, settings):
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 3, 600), rng.dirichlet([1, 1, 1], 600), weight=rng.integers(1, 4, 600))
    question = make_estimand(preds, name, lens, **settings)
    value = float(question.combine_views(question.values))
    assert folded_normal.cell_gaps(question, preds).abs_gap.sum() == pytest.approx(value, rel=1e-10)


def test_single_rows_as_clusters_have_the_same_scatter():
    rng = np.random.default_rng(1)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    plain, single = Predictions(y, p), Predictions(y, p, cluster=np.arange(80))
    one, other = (
        folded_normal.cell_gaps(make_estimand(plain), plain),
        folded_normal.cell_gaps(make_estimand(single), single),
    )
    np.testing.assert_allclose(one.sampling_variance, other.sampling_variance, atol=1e-15)
    np.testing.assert_allclose(one.n_rows, other.n_rows)


@pytest.mark.parametrize("z", [0.0, 1.0, 1.6, 3.0])
@pytest.mark.parametrize("cells", [15, 150])
def test_the_bounds_hold_the_bias_on_average(z, cells):
    # Of 300 draws; the standard error of a mean bound is below .3 / √(15 · 300) = .005 of a standard error of a cell.
    # Of few cells the upper bound is allowed to fall short by .1, which the margin of the interval covers.
    rng = np.random.default_rng(2)
    low, high = [], []
    for _ in range(300):
        bias = folded_normal.bias_bounds(
            make_gaps(np.abs(z + rng.standard_normal(cells)) / cells, np.full(cells, 1 / cells)), 0.0, 0.0
        )
        low.append(bias.low)
        high.append(bias.high)
    true = float(folded_normal.folded_excess(np.array([z]))[0])
    assert np.mean(low) <= true + 0.03
    assert np.mean(high) >= true - (0.11 if cells == 15 else 0.02)


def test_many_gaps_tell_their_own_law():
    # 400 gaps of 1.6 standard errors have a mean excess of .046, and 400 of none .798
    rng = np.random.default_rng(3)
    for z, upper in ((1.6, 0.12), (0.0, 0.80)):
        excess = folded_normal.mean_excess(np.abs(z + rng.standard_normal(400)), np.ones(400))
        true = float(folded_normal.folded_excess(np.array([z]))[0])
        assert 0.75 * true < excess < upper


def test_the_interval_by_hand():
    # V = .5, sd .1, bias between .05 and .2: low .5 − .2 − .196, high .45 + e + √(.196² + e²), e from n = 100
    z, gaps = 1.959963984540054, make_gaps([0.5], [0.1])
    interval = folded_normal.folded_normal_interval(
        0.5, 0.1, gaps, folded_normal.BiasBounds(0.05, 0.2), 0.1, 0.95, 100, 1.0
    )
    assert interval.low == pytest.approx(0.3 - 0.1 * z)
    assert interval.high == pytest.approx(0.45 + 0.1 * z)  # 4 n sd² = 4 > 1: outcomes vary as much as they can
    rare = folded_normal.folded_normal_interval(0.5, 0.0, gaps, folded_normal.BiasBounds(0.0, 0.2), 0.1, 0.95, 100, 1.0)
    assert rare.high == pytest.approx(0.5 + z**2 / 100)
    near = folded_normal.folded_normal_interval(
        0.5, 0.1, gaps, folded_normal.BiasBounds(0.05, 0.2), 0.45, 0.95, 100, 1.0
    )
    assert near.low == pytest.approx(0.05)  # V less the largest null draw


@pytest.mark.parametrize(("n", "events"), [(100, 0), (500, 0), (2000, 0), (500, 1), (500, 3), (2000, 3)])
def test_with_one_prediction_the_interval_is_the_distance_from_that_of_the_event_rate(n, events):
    # The error |p − rate| is between the distances of p from both ends of Wilson's interval of the rate. The lower end
    # differs from it by at most two rows, because the rates of resamples are multiples of 1/n, and it is lower if the
    # error is near the noise floor. Without events the error cannot be larger than p.
    z, p, rate = 1.959963984540054, 0.02, events / n
    center, half = (events + z**2 / 2) / (n + z**2), z * np.sqrt(rate * (1 - rate) * n + z**2 / 4) / (n + z**2)
    low, high = max(0.0, center - half), center + half
    nearest = 0.0 if low <= p <= high else min(abs(p - low), abs(p - high))
    farthest = max(abs(p - low), abs(p - high))
    for y, x in ((np.arange(n) < events, p), (np.arange(n) >= events, 1 - p)):
        interval = to.measure(y.astype(int), np.full(n, x), "ece", lens="positive").interval
        assert interval.low == pytest.approx(nearest, abs=2 / n)
        assert interval.high == pytest.approx(farthest, abs=0.0005)
        if events == 0:
            assert interval.high == pytest.approx(p, rel=1e-9)


def test_bins_without_events_can_have_a_smaller_error_but_no_larger_one():
    # Two bins with p = .02 and .1, 300 rows each and no event: the rates may be up to 3.84 / 600 of all rows higher.
    p = np.repeat([0.02, 0.1], 300)
    estimate = to.measure(np.zeros(600, dtype=int), p, "ece", lens="positive")
    # The numbers of rows in the bins vary too, which changes the error by ±1.96 · .04 / √600 = .0032 at most.
    assert 0.06 <= estimate.interval.high < 0.0632
    assert 0.06 - 3.84 / 600 - 0.0032 < estimate.interval.low < 0.06 - 3.84 / 600 + 0.0032


def test_the_middle_of_two_biases_is_taken_off_a_difference():
    a = folded_normal.GapError(0.5, 0.1, folded_normal.BiasBounds(0.0, 0.2), 0.0)
    b = folded_normal.GapError(0.3, 0.1, folded_normal.BiasBounds(0.0, 0.0), 0.0)
    interval = folded_normal.folded_normal_difference(
        a, b, 1.0, 0.95
    )  # equal scatter, wholly correlated: only the bias is unsure
    assert (interval.low, interval.high) == (pytest.approx(0.0), pytest.approx(0.2))


@pytest.mark.slow
def test_one_bad_bin_beside_good_ones_is_covered():
    # 6 % of 5,000 rows are off, where 15 bins hold .6 floors of error: the bias is nearly the whole floor, and an
    # interval that takes an error of two floors for one without bias covers 80 %. 60 sets, 95 %: at least 49 by 99.9 %.
    rng, hits = np.random.default_rng(4), 0
    p = (np.arange(50) + 0.5) / 50
    wrong = (p > 0.6) & (p < 0.66)
    truth = 0.55 * wrong.mean()
    for _ in range(60):
        x = np.repeat(p, 100)
        y = (rng.random(5000) < np.clip(x - 0.55 * np.repeat(wrong, 100), 0, 1)).astype(int)
        preds = Predictions(y, x)
        question = make_estimand(preds)
        null = null_draws(preds, [question], 99, rng)
        (estimate,) = estimate_all(preds, [question], IntervalSpec(resamples=100), rng, lambda _every, null=null: null)
        hits += estimate.interval.low <= truth <= estimate.interval.high
    assert hits >= 49


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "n"), [(0.7, 1000), (0.5, 500)])
def test_an_error_near_the_noise_of_many_cells_is_covered(exponent, n):
    # Ten classes, whose 150 bins have a noise floor of 60 to 80 % of the true error. Nearly all misses are intervals
    # above it, so the bounds of the bias of many cells matter. Of 60 sets, 95 %: at least 49 by 99.9 %.
    def draw(rng, n_rows):
        """Probabilities and true probabilities, which are overconfident by a power."""
        P = softmax(2.5 * rng.standard_normal((n_rows, 10)), axis=1)
        return P, P**exponent / (P**exponent).sum(axis=1, keepdims=True)

    P, Q = draw(np.random.default_rng(99), 50_000)
    truth = np.mean([ESTIMATORS.make("ece", {}).value(View(P[:, k], Q[:, k])) for k in range(10)])
    rng, hits = np.random.default_rng(6), 0
    for _ in range(60):
        P, Q = draw(rng, n)
        preds = Predictions((rng.random((n, 1)) > Q.cumsum(axis=1)).sum(axis=1).clip(0, 9), P)
        question = make_estimand(preds, lens="classwise")
        null = null_draws(preds, [question], 99, rng)
        (estimate,) = estimate_all(preds, [question], IntervalSpec(resamples=100), rng, lambda _every, null=null: null)
        hits += estimate.interval.low <= truth <= estimate.interval.high
    assert hits >= 49


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("rmsce", 1.0),
        ("debiased_l1", 1.0),
        ("debiased_l2", 1.0),
        ("ece", 1.0),
        ("ece", 0.2),
        ("corp", 1.0),
        ("sweep", 1.0),
    ],
)
def test_no_value_lies_outside_its_own_interval(name, slope):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(0, 1.5, 200)
        y = (rng.random(200) < 1 / (1 + np.exp(-slope * x))).astype(int)
        estimate = to.measure(Predictions(y, 1 / (1 + np.exp(-x))), name, resamples=100, rng=seed)
        assert estimate.interval.low <= estimate.value <= estimate.interval.high
        assert estimate.interval.high <= 1


def test_no_interval_reaches_beyond_what_an_error_can_be():
    preds = Predictions([0] * 30, np.linspace(0.98, 0.999, 30))
    for name in (
        "ece",
        "ace",
        "tace",
        "rmsce",
        "debiased_l1",
        "debiased_l2",
        "ece_linear",
        "ks",
        "smece",
        "corp",
        "sweep",
    ):
        estimate = to.measure(preds, name, resamples=100, lens="positive")
        assert estimate.interval is None or estimate.interval.high <= 1, name
