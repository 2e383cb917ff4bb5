"""Consistency bars and confidence intervals of bins: exact distributions, their approximations and their coverage."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import betainc

from tests.reference import frame, golden
from trueodds.binning.uniform import Uniform
from trueodds.diagrams import bins
from trueodds.lenses.view import View
from trueodds.resampling import poisson_binomial


def one_bin(view, level=0.9, make_bars=bins.consistency_bars):
    bars = make_bars(view, np.zeros(len(view.w), dtype=int), 1, level)
    return float(bars.low[0]), float(bars.high[0]), bars.method[0]


def test_a_single_prediction_of_zero_one_half_and_one():
    # p=0: y is always 0. p=.5: P[y<=0] = .5 lies between .05 and .95. p=1: y is always 1.
    assert one_bin(View([0.0], [0])) == (0.0, 0.0, "exact")
    assert one_bin(View([0.5], [0])) == (0.0, 1.0, "exact")
    assert one_bin(View([1.0], [1])) == (1.0, 1.0, "exact")


def test_two_predictions_by_hand():
    # p = .1, .2: P[0] = .72, P[1] = .1*.8 + .9*.2 = .26, P[2] = .02; cumulated .72, .98, 1.
    np.testing.assert_allclose(
        poisson_binomial.poisson_binomial_pmf(np.array([0.1, 0.2])), [0.72, 0.26, 0.02], rtol=1e-14
    )
    assert one_bin(View([0.1, 0.2], [0, 0]), 0.9)[:2] == (0.0, 0.5)
    assert one_bin(View([0.1, 0.2], [0, 0]), 0.97)[:2] == (0.0, 1.0)


def test_the_law_is_the_sum_over_all_outcomes():
    p = np.array([0.05, 0.3, 0.3, 0.6, 0.97, 1.0, 0.0])
    pmf = np.zeros(8)
    for y in product((0, 1), repeat=7):
        pmf[sum(y)] += np.prod(np.where(y, p, 1 - p))
    np.testing.assert_allclose(poisson_binomial.poisson_binomial_pmf(p), pmf, atol=1e-15)


def test_a_quantile_that_is_reached_exactly_counts_as_reached():
    # P[y <= 0] = .95 is the upper quantile itself, though 1 - .05 and (1 + .9)/2 differ by a rounding.
    assert one_bin(View([0.05], [0]))[:2] == (0.0, 0.0)
    assert one_bin(View([0.95], [1]))[:2] == (0.0, 1.0)


def test_the_reference_bars_of_500_rows_in_10_bins():
    # golden c.consistency_bars.ew10, made from explicit convolutions.
    expected = golden("estimators/golden_part2.json")["c.consistency_bars.ew10"]["value"]
    c = frame("estimators/c_binary500.csv")
    view = View(c["p"], c["y"])
    index = Uniform(10).fit(view).index(view.partition_values)
    bars = bins.consistency_bars(view, index, 10, 0.9)
    for b in range(10):
        assert [bars.low[b], bars.high[b]] == expected[str(b)]["poisson_binomial_5_95"]
    # Pooled rows of one stated probability are binomial: the other column of the reference.
    binned = view.pool(index, 10)
    same = View(binned.p[index], view.y)
    bars = bins.consistency_bars(same, index, 10, 0.9)
    for b in range(10):
        assert [bars.low[b], bars.high[b]] == expected[str(b)]["binomial_5_95"]


@pytest.mark.parametrize(("a", "b"), [(2, 5), (0.05, 5), (5, 0.02), (0.01, 0.01)])
def test_beyond_2000_rows_the_refined_normal_is_within_one_row_of_the_exact_law(a, b):
    p = np.random.default_rng(0).beta(a, b, 3000)
    reached = np.cumsum(poisson_binomial.poisson_binomial_pmf(p))
    for level in (0.5, 0.9, 0.99):
        low, high, method = one_bin(View(p, np.zeros(3000)), level)
        assert method == "refined normal"
        exact = np.searchsorted(reached, [(1 - level) / 2, (1 + level) / 2])
        assert abs(round(low * 3000) - exact[0]) <= 1
        assert abs(round(high * 3000) - exact[1]) <= 1


def test_many_rows_without_chance_have_a_bar_without_length():
    assert one_bin(View(np.zeros(3000), np.zeros(3000)))[:2] == (0.0, 0.0)
    assert one_bin(View(np.ones(3000), np.ones(3000)))[:2] == (1.0, 1.0)


def test_a_probability_one_rounding_above_one_is_one():
    assert one_bin(View([1 + 2e-16, 0.5], [1, 1]))[:2] == one_bin(View([1.0, 0.5], [1, 1]))[:2]


def test_equal_weights_of_any_size_leave_the_exact_law():
    p = np.linspace(0.1, 0.6, 30)
    for weight in (2.0, 0.1):
        assert one_bin(View(p, np.zeros(30), np.full(30, weight))) == one_bin(View(p, np.zeros(30)))


def test_unequal_weights_are_normal():
    # p̄ = (1*.2 + 3*.4)/4 = .35; Σw²p(1-p) = .16 + 9*.24 = 2.32; sd = sqrt(2.32)/4 = .380789; z(.75) = .674490.
    low, high, method = one_bin(View([0.2, 0.4], [0, 1], [1.0, 3.0]), 0.5)
    assert method == "normal"
    np.testing.assert_allclose([low, high], [0.35 - 0.2568377, 0.35 + 0.2568377], atol=1e-6)


def test_a_row_without_weight_is_no_row():
    assert one_bin(View([0.3, 0.4, 0.9], [0, 1, 1], [1.0, 1.0, 0.0])) == one_bin(View([0.3, 0.4], [0, 1]))


def test_shares_of_votes_are_tested_by_their_residuals():
    # p̄ = .5; Σ(y-p)² = .01 + .01; sd = sqrt(.02)/2 = .0707107; z(.95) = 1.644854.
    low, high, method = one_bin(View([0.5, 0.5], [0.4, 0.6]))
    assert method == "residuals"
    np.testing.assert_allclose([low, high], [0.5 - 0.1163088, 0.5 + 0.1163088], atol=1e-6)


def test_cells_of_a_tally_give_the_bars_of_their_rows():
    rng = np.random.default_rng(3)
    p = rng.random(1500)
    view = View(p, rng.random(1500) < p)
    fine = Uniform(3840).fit(view)
    cells = view.pool(fine.index(view.partition_values), 3840)
    for n_bins in (1, 10):
        rows = bins.consistency_bars(view, Uniform(n_bins).fit(view).index(view.partition_values), n_bins, 0.9)
        tallied = bins.consistency_bars(cells, Uniform(n_bins).fit(cells).index(cells.partition_values), n_bins, 0.9)
        n = view.pool(Uniform(n_bins).fit(view).index(view.partition_values), n_bins).n
        # Within a cell predictions differ by less than 1/3840: quantiles move by one row at most.
        assert (np.abs(rows.low - tallied.low) * n <= 1 + 1e-9).all()
        assert (np.abs(rows.high - tallied.high) * n <= 1 + 1e-9).all()


def test_many_tallied_rows_have_the_refined_normal_of_their_rows():
    rng = np.random.default_rng(4)
    p = rng.beta(1, 3, 50_000)
    view = View(p, rng.random(50_000) < p)
    cells = view.pool(Uniform(3840).fit(view).index(view.partition_values), 3840)
    np.testing.assert_allclose(one_bin(view)[:2], one_bin(cells)[:2], atol=1 / 50_000 + 1e-12)


def test_wilson_by_hand():
    # 3 of 10 at 95 %: (.3 + 1.92073/10)/(1 + .384146) ± … = [.107789, .603222] (Wilson 1927, as in R's prop.test
    # without correction).
    low, high, _ = one_bin(View(np.full(10, 0.5), [1] * 3 + [0] * 7), 0.95, bins.wilson_intervals)
    np.testing.assert_allclose([low, high], [0.1077913, 0.6032219], atol=1e-6)


def test_wilson_counts_effective_rows():
    # Weights 1, 1, 2: n = 16/6. Doubling all weights changes nothing.
    p, y, w = [0.5] * 3, [1, 0, 1], np.array([1.0, 1.0, 2.0])
    once, twice = (one_bin(View(p, y, c * w), 0.9, bins.wilson_intervals) for c in (1, 2))
    np.testing.assert_allclose(once[:2], twice[:2], rtol=1e-14)
    unweighted = one_bin(View(p, y), 0.9, bins.wilson_intervals)
    assert once[1] - once[0] > unweighted[1] - unweighted[0] - 0.05
    # n = 8/3, rate .75, z² = 2.705543: middle .625909…, by the formula in the docstring of any textbook.
    n, z2 = 8 / 3, 2.705543
    middle = (0.75 + z2 / (2 * n)) / (1 + z2 / n)
    np.testing.assert_allclose((once[0] + once[1]) / 2, middle, atol=1e-6)


@pytest.mark.parametrize("n", [40, 400, 25_000])
def test_a_calibrated_model_stays_within_its_bars_as_often_as_promised(n):
    # Predictions fixed, labels drawn R times: the count of a bin inside its bar is Binomial(R, ≥ level). All of
    # 10 bins must reach level - 4.5 sd, which fails by chance less than 10 * 4e-6. The refined normal, used for
    # bins beyond 2,000 rows, may be off by 1e-3 in probability (Volkova 1996: its error is of order 1/variance).
    rng = np.random.default_rng(n)
    p = rng.random(n)
    view = View(p, np.zeros(n))
    index = Uniform(10).fit(view).index(view.partition_values)
    level, R = 0.9, 1000
    bars = bins.consistency_bars(view, index, 10, level)
    rows = np.bincount(index, minlength=10)
    occupied = rows > 0
    inside = np.zeros(int(occupied.sum()))
    for _ in range(R):
        rate = np.bincount(index, rng.random(n) < p, 10)[occupied] / rows[occupied]
        inside += (bars.low <= rate) & (rate <= bars.high)
    lower = level - 4.5 * np.sqrt(level * (1 - level) / R) - 1e-3 * (rows[occupied] > 2000)
    assert (inside / R >= lower).all()


def resampled_bin(view, level=0.9, resamples=999, seed=0):
    index = np.zeros(len(view.w), dtype=int)
    (bars,) = bins.resampled_consistency_bars(view, index, 1, (level,), resamples, np.random.default_rng(seed))
    return float(bars.low[0]), float(bars.high[0]), bars.method[0]


def test_several_levels_have_the_bars_of_each():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    for view in (View(p, p > 0.5), View(p, p > 0.5, rng.random(200)), View(p, p)):
        index = Uniform(5).fit(view).index(view.partition_values)
        for level, bars in zip((0.5, 0.9), bins.consistency_bars_at_levels(view, index, 5, (0.5, 0.9)), strict=True):
            alone = bins.consistency_bars(view, index, 5, level)
            assert (bars.low == alone.low).all()
            assert (bars.high == alone.high).all()
            assert bars.method == alone.method


def test_clopper_pearson_by_hand():
    # None of n: 1 - (α/2)^(1/n); all of n: (α/2)^(1/n). 3 of 10 as in R's binom.test: [.0667395, .6524529].
    assert one_bin(View([0.5] * 10, [0] * 10), 0.95, bins.clopper_pearson_intervals)[:2] == pytest.approx(
        (0, 1 - 0.025**0.1)
    )
    assert one_bin(View([0.5] * 10, [1] * 10), 0.95, bins.clopper_pearson_intervals)[:2] == pytest.approx(
        (0.025**0.1, 1)
    )
    interval = one_bin(View([0.5] * 10, [1] * 3 + [0] * 7), 0.95, bins.clopper_pearson_intervals)[:2]
    np.testing.assert_allclose(interval, [0.0667395, 0.6524529], atol=5e-8)


def test_clopper_pearson_makes_the_reference_band():
    # The honest band takes, at each score, the best limits of all runs of scores below or above it, each at level
    # α/(N(N+1)) to one side (golden honest_band_clopper_pearson, from calibrationband's own compiled code).
    want = golden("anchors/golden.json")["numpy_independent"]["honest_band_clopper_pearson"]["g2_300_ties_0.05"]
    c = frame("anchors/synthetic/g2_300_ties.csv")
    p, y = next(v for k, v in c.items() if k != "y"), c["y"]
    scores = np.unique(p)
    N = len(scores)
    level = 1 - 2 * want["alpha"] / (N * (N + 1))
    low, high = np.zeros((N, N)), np.ones((N, N))
    for j in range(N):
        for k in range(j, N):
            rows = (p >= scores[j]) & (p <= scores[k])
            low[j, k], high[j, k], _ = one_bin(View(p[rows], y[rows]), level, bins.clopper_pearson_intervals)
    lower = [max(low[j, m] for j in range(k + 1) for m in range(j, k + 1)) for k in range(N)]
    upper = [min(high[j, m] for j in range(k, N) for m in range(j, N)) for k in range(N)]
    np.testing.assert_allclose(scores, want["x"], atol=1e-12)
    np.testing.assert_allclose(lower, want["lower"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(upper, want["upper"], rtol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_clopper_pearson_covers_every_rate_at_least_so_often(level):
    # All 13 outcomes of 12 rows, each with its binomial probability, at 199 rates: no sampling, no tolerance.
    n, rate = 12, np.arange(1, 200) / 200
    covered = np.zeros(len(rate))
    for k in range(n + 1):
        low, high, _ = one_bin(View([0.5] * n, [1] * k + [0] * (n - k)), level, bins.clopper_pearson_intervals)
        covered += np.where((low <= rate) & (rate <= high), math.comb(n, k) * rate**k * (1 - rate) ** (n - k), 0)
    assert (covered >= level).all()


def test_clopper_pearson_counts_effective_rows():
    p, y, w = [0.5] * 3, [1, 0, 1], np.array([1.0, 1.0, 2.0])
    once, twice = (one_bin(View(p, y, c * w), 0.9, bins.clopper_pearson_intervals) for c in (1, 2))
    np.testing.assert_allclose(once[:2], twice[:2], rtol=1e-12)
    # n = 16/6, k = 2: I_low(2, n - 1) = .05.
    assert betainc(2, 16 / 6 - 1, once[0]) == pytest.approx(0.05)
    assert betainc(3, 16 / 6 - 2, once[1]) == pytest.approx(0.95)


@pytest.mark.parametrize("n", [7, 60, 500])
def test_resampled_bars_end_at_the_quantiles_of_the_exact_distribution(n):
    # The share of B draws at or below a count is Binomial(B, F)/B: an end at count k says F(k) >= q - 5 sd and
    # F(k - 1) <= q + 5 sd, which fails by chance less than 4 * 3e-7.
    p = np.random.default_rng(n).beta(2, 3, n)
    reached = np.concatenate(([0.0], np.cumsum(poisson_binomial.poisson_binomial_pmf(p))))
    B = 4999
    low, high, method = resampled_bin(View(p, np.zeros(n)), 0.9, B)
    assert method == "redrawn"
    for end, q in ((low, 0.05), (high, 0.95)):
        k, sd = round(end * n), np.sqrt(q * (1 - q) / B)
        assert reached[k + 1] >= q - 5 * sd
        assert reached[k] <= q + 5 * sd


def test_resampled_bars_keep_predictions_as_they_are():
    # A row at 0 and one at 1 always come to one half. ReliabilityDiagrams.jl draws rows anew as well, and says (0, 1).
    assert resampled_bin(View([0.0, 1.0], [0, 1]))[:2] == (0.5, 0.5)
    assert one_bin(View([0.0, 1.0], [0, 1]))[:2] == (0.5, 0.5)
    assert [resampled_bin(View([p], [0]))[:2] for p in (0.0, 0.5, 1.0)] == [(0, 0), (0, 1), (1, 1)]


def test_resampled_bars_hold_where_few_rows_weigh_differently():
    # Weights 1, 2, 4 and three fair coins: eight rates, each with probability 1/8. The middle half runs from the
    # second (1/7) to the sixth (5/7), where the normal law has .5 ± .674 * sqrt(21/4)/7 = [.279, .721].
    view = View([0.5] * 3, [0, 1, 0], [1.0, 2.0, 4.0])
    assert resampled_bin(view, 0.7)[:2] == pytest.approx((1 / 7, 6 / 7))  # quantiles .15 and .85 lie within steps
    low, high, method = one_bin(view, 0.7)
    assert method == "normal"
    assert (low, high) != pytest.approx((1 / 7, 6 / 7), abs=0.01)


def test_cells_are_resampled_as_their_rows():
    # The same law by rows, by cells of equal scores, and the exact one: ends within 5 sd of the quantile for each.
    p = np.repeat([0.2, 0.5, 0.9], [30, 20, 10])
    view = View(p, p > 0.4)
    cells = view.pool(Uniform(10).fit(view).index(view.partition_values), 10)
    assert not cells.is_rows
    reached = np.concatenate(([0.0], np.cumsum(poisson_binomial.poisson_binomial_pmf(p))))
    for data in (view, cells):
        low, high, _ = resampled_bin(data, 0.9, 4999)
        for end, q in ((low, 0.05), (high, 0.95)):
            sd = np.sqrt(q * (1 - q) / 4999)
            assert reached[round(end * 60) + 1] >= q - 5 * sd
            assert reached[round(end * 60)] <= q + 5 * sd


def test_cells_of_unequal_weights_and_of_votes_are_resampled_as_a_normal_sum():
    rng = np.random.default_rng(0)
    p, w = np.full(400, 0.3), rng.random(400) + 0.5
    for view in (View(p, rng.random(400) < 0.3, w), View(p, np.clip(0.3 + rng.normal(0, 0.1, 400), 0, 1))):
        cells = view.pool(np.zeros(400, dtype=int), 1)
        low, high, method = resampled_bin(cells, 0.9, 4999)
        exact = one_bin(view, 0.9)
        sd = (exact[1] - exact[0]) / (2 * 1.645)
        # A quantile of 4,999 draws has standard deviation sqrt(q(1 - q)/B)/φ(1.645) = .03 sd; five of them.
        assert abs(low - exact[0]) < 0.15 * sd
        assert abs(high - exact[1]) < 0.15 * sd
        assert method == ("redrawn" if exact[2] == "normal" else "flipped")


def test_shares_of_votes_have_their_signs_flipped():
    # Residuals ±.1 on two rows at .5: rates .4, .5, .5, .6.
    assert resampled_bin(View([0.5, 0.5], [0.4, 0.6])) == (pytest.approx(0.4), pytest.approx(0.6), "flipped")


@pytest.mark.parametrize("weighted", [False, True])
def test_a_calibrated_model_stays_within_resampled_bars(weighted):
    # Labels drawn R times: the count inside is Binomial(R, >= level - 1/(B+1)·2 in the mean over the bars' own draws);
    # the bar's coverage varies by sqrt(2 · .05 · .95 / 1999) = .007. Ten bins, 4.5 sd of both together: .05.
    rng = np.random.default_rng(8)
    n, R, level = 120, 1000, 0.9
    p, w = rng.random(n), rng.exponential(size=n) + 0.1 if weighted else np.ones(n)
    view = View(p, np.zeros(n), w)
    index = Uniform(10).fit(view).index(view.partition_values)
    (bars,) = bins.resampled_consistency_bars(view, index, 10, (level,), 1999, rng)
    mass = np.bincount(index, w, 10)
    occupied = mass > 0
    inside = np.zeros(int(occupied.sum()))
    for _ in range(R):
        rate = np.bincount(index, w * (rng.random(n) < p), 10)[occupied] / mass[occupied]
        inside += (bars.low - 1e-12 <= rate) & (rate <= bars.high + 1e-12)
    sd = np.sqrt(level * (1 - level) * (1 / R) + 2 * 0.05 * 0.95 / 1999)
    assert (inside / R >= level - 4.5 * sd).all()


def test_an_end_that_is_met_up_to_rounding_is_met():
    bars = bins.BinIntervals(np.array([0.3, 0.3]), np.array([0.6, 0.6]), ("exact",) * 2)
    assert bars.excludes(np.array([0.1 + 0.2, 0.1 * 6])).tolist() == [False, False]
    assert bars.excludes(np.array([0.2999, 0.6001])).tolist() == [True, True]


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_a_p_value_of_the_level_itself_is_beyond_it(level):
    assert bins.is_significant(np.array([round(1 - level, 6), 1.001 * (1 - level)]), level).tolist() == [
        True,
        False,
    ]
