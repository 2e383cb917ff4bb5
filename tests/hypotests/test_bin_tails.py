"""Tail probabilities of bin counts: exact by enumeration and convolution, vectors against reference values."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests import reference
from trueodds.hypotests.bins import CountTails, VectorTails
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import poisson_binomial_pmf


def one_bin(p, count, w=None):
    view = View(p, np.zeros(len(p)), w)
    tails = CountTails(view, np.zeros(len(p), dtype=int), 1)
    unit = 1.0 if w is None else w[0]
    return np.exp(tails.log_p(np.asarray(count, dtype=float)[:, None] * unit))[:, 0]


def doubled(pmf):
    return np.minimum(2 * np.minimum(np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]), 1)


def test_few_rows_by_all_their_outcomes():
    p = np.array([0.05, 0.3, 0.3, 0.6, 0.97])
    pmf = np.zeros(6)
    for y in product((0, 1), repeat=5):
        pmf[sum(y)] += np.prod(np.where(y, p, 1 - p))
    np.testing.assert_allclose(one_bin(p, range(6)), doubled(pmf), rtol=1e-12)
    # weights that are all alike change no law
    np.testing.assert_allclose(one_bin(p, range(6), np.full(5, 2.5)), doubled(pmf), rtol=1e-12)


def test_a_tiny_tail_keeps_its_digits():
    # 300 times .9 and none came: 2 · .1^300
    assert np.log(one_bin(np.full(300, 0.9), [0])[0]) == pytest.approx(np.log(2) + 300 * np.log(0.1), rel=1e-12)


@pytest.mark.parametrize("p", [0.999, 1e-3])
def test_many_rows_of_rare_outcomes_are_exact_down_to_1e_14(p):
    count = np.arange(30) if p < 0.5 else 5000 - np.arange(30)
    exact = doubled(stats.binom.pmf(np.arange(5001), 5000, p))[count]
    pvalues = one_bin(np.full(5000, p), count)
    np.testing.assert_allclose(pvalues[exact > 1e-10], exact[exact > 1e-10], rtol=1e-3)
    assert (pvalues >= 1e-14 * (1 - 1e-9)).all()


@pytest.mark.parametrize(("a", "b"), [(2, 5), (0.05, 5), (5, 0.04)])
def test_many_rows_have_a_fitted_law_that_errs_toward_large_p(a, b):
    # The gamma law has the skewness of the sum and a heavier tail; the variances are 26 to 900, skewness at most .2.
    p = np.random.default_rng(1).beta(a, b, 5000)
    exact = doubled(poisson_binomial_pmf(p))
    std = np.sqrt((p * (1 - p)).sum())
    assert std > 5
    count = np.unique(np.rint(p.sum() + np.linspace(-4, 4, 41) * std)).astype(int)
    count = count[(count >= 0) & (count <= 5000)]
    pvalues, exact = one_bin(p, count), exact[count]
    usual = exact > 1e-3
    np.testing.assert_allclose(pvalues[usual], exact[usual], rtol=0.12)
    assert (pvalues > 0.97 * exact).all()
    assert (pvalues < 2 * exact).all()


def test_unequal_weights_are_normal_and_votes_by_their_residuals():
    p, w, y = np.array([0.2, 0.5, 0.9]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0])
    tails = CountTails(View(p, y, w), np.zeros(3, dtype=int), 1)
    z = (0.8 + 1 - 2.7) / np.sqrt(0.16 + 4 * 0.25 + 9 * 0.09)
    wy = np.array([(w * y).sum()])
    assert tails.statistic(wy)[0] == pytest.approx(z)
    assert np.exp(tails.log_p(wy)[0]) == pytest.approx(2 * stats.norm.sf(abs(z)))
    votes = CountTails(View(p, [0.5, 0.5, 0.5]), np.zeros(3, dtype=int), 1)
    assert votes.statistic(np.array([1.5]))[0] == pytest.approx(-0.1 / np.sqrt(0.09 + 0 + 0.16))


def test_bins_of_all_kinds_side_by_side():
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.random(40), np.full(3000, 1e-3), rng.random(3000), rng.random(20), [1.0]])
    w = np.concatenate([np.ones(6040), rng.gamma(1, 1, 20), [1.0]])
    index = np.repeat([0, 2, 3, 5, 6], [40, 3000, 3000, 20, 1])
    y = (rng.random(len(p)) < p).astype(float)
    tails = CountTails(View(p, y, w), index, 8)
    assert tails.bin_index.tolist() == [0, 2, 3, 5, 6]
    wy = np.bincount(index, w * y, 8)[tails.bin_index]
    joint = tails.log_p(np.stack([wy, wy]))
    for b, bin_index in enumerate(tails.bin_index):
        inside = index == bin_index
        alone = CountTails(View(p[inside], y[inside], w[inside]), np.zeros(inside.sum(), dtype=int), 1)
        assert joint[1, b] == pytest.approx(alone.log_p(wy[b : b + 1])[0], rel=1e-9, abs=1e-12)
    assert np.isneginf(tails.log_p(wy - [0, 0, 0, 0, 1])[-1])  # what was sure did not come


def groups(score):
    """Ten groups between type-7 quantiles, right-closed."""
    edges = np.unique(np.quantile(score, np.arange(11) / 10))
    return np.clip(np.searchsorted(edges, score, "left") - 1, 0, len(edges) - 2)


def test_the_sum_of_z_squared_is_the_exact_variance_hosmer_lemeshow():
    rows = reference.frame("estimators/c_binary500.csv")
    index, view = groups(rows["p"]), View(rows["p"], rows["y"])
    tails = CountTails(view, index, 10)
    statistic = (tails.statistic(tails.binned.w * tails.binned.y) ** 2).sum()
    known = reference.estimators()["c.hosmer_lemeshow_exactvar.g10"]
    assert statistic == pytest.approx(known["value"]["stat"], rel=1e-9)


@pytest.mark.parametrize("ref", [0, 3])
def test_the_sum_over_cells_is_the_exact_multinomial_hosmer_lemeshow(ref):
    rows = reference.frame("estimators/b_multi1000.csv")
    P = reference.columns(rows)
    view = View(P, np.eye(4)[rows["y"].astype(int)])
    order = np.argsort(1 - P[:, ref], kind="stable")
    index = np.empty(1000, dtype=int)
    index[order] = np.repeat(np.arange(10), 100)
    tails = VectorTails(view, index, 10)
    assert (tails.df == 3).all()
    statistic = tails.statistic(tails.binned.w[:, None] * tails.binned.y).sum()
    known = reference.estimators()[f"b.multinomial_hl_exactcov.g10.ref{ref}"]
    assert statistic == pytest.approx(known["value"]["stat"], rel=1e-9)


def test_vectors_of_two_are_z_squared_whatever_is_left_out():
    p = np.array([0.2, 0.5, 0.9, 0.4])
    y = np.array([1, 0, 1, 1])
    w = np.array([1.0, 2.0, 0.5, 0.0])
    index = np.zeros(4, dtype=int)
    one = CountTails(View(p, y, w), index, 1)
    two = VectorTails(View(np.stack([1 - p, p], axis=1), np.stack([1 - y, y], axis=1), w), index, 1)
    z = one.statistic(np.array([(w * y).sum()]))[0]
    wy = np.array([[(w * (1 - y)).sum(), (w * y).sum()]])
    assert two.statistic(wy)[0] == pytest.approx(z**2)
    assert np.exp(two.log_p(wy)[0]) == pytest.approx(stats.chi2.sf(z**2, 1))


def test_vectors_with_impossible_classes_lose_a_degree_of_freedom_and_miss_nothing():
    P = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    index = np.array([0, 0, 1])
    tails = VectorTails(View(P, np.eye(3)[[0, 1, 2]]), index, 2)
    assert tails.df.tolist() == [1, 0]
    observed = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.isfinite(tails.log_p(observed)).all()
    assert tails.log_p(observed)[1] == 0
    assert np.isneginf(tails.log_p(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))).all()


def test_rounded_rows_of_float32_gain_no_degree_of_freedom():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(5), 40).astype(np.float32)
    view = View(P, np.eye(5)[rng.integers(0, 5, 40)])
    tails = VectorTails(view, np.zeros(40, dtype=int), 1)
    assert tails.df.tolist() == [4]


def test_far_tails_of_vectors_stay_finite_and_fall():
    P = np.full((2000, 3), 1 / 3)
    tails = VectorTails(View(P, np.eye(3)[np.zeros(2000, dtype=int)]), np.zeros(2000, dtype=int), 1)
    steps = np.arange(700, 2001, 100)
    rest = (2000 - steps) / 2
    log_p = tails.log_p(np.stack([steps, rest, rest], axis=1)[:, None, :])[:, 0]
    assert np.isfinite(log_p).all()
    assert (np.diff(log_p) < 0).all()


def test_shares_of_votes_have_one_dispersion_for_all_bins_by_hand() -> None:
    # Σp(1 − p) is .25 + .25 = .5 and .16; Σ(y − p)² is 0 + .25 = .25 and .01, so the dispersion is .26/.66.
    tails = CountTails(View([0.5, 0.5, 0.2], [0.5, 1.0, 0.3]), np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(tails.standard_error**2, [0.5 * 26 / 66, 0.16 * 26 / 66], rtol=1e-12)
    # The third row alone has the label 0: its bin has the variance of labels, and no part in the dispersion.
    labeled = CountTails(View([0.5, 0.5, 0.2], [0.5, 1.0, 0.0]), np.array([0, 0, 1]), 2)
    np.testing.assert_allclose(labeled.standard_error**2, [0.25, 0.16], rtol=1e-12)
