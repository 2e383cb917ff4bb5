"""The Poisson-binomial distribution against enumeration, SciPy and its moments."""

import itertools

import numpy as np
import pytest
from scipy import stats

from trueodds.resampling.poisson_binomial import count_quantiles

LEVELS = np.linspace(0.0005, 0.9995, 1000)


def one(n, p, u=LEVELS):
    n, p = np.asarray(n, float), np.asarray(p, float)
    return count_quantiles(np.zeros(len(n), int), n, p, np.asarray(u)[:, None])[:, 0]


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (40, 0.3), (90, 0.5), (3, 0.999), (10**6, 1e-6), (10**8, 1 - 1e-9)])
def test_one_cell_is_binomial(n, p):
    np.testing.assert_array_equal(one([n], [p]), stats.binom.ppf(LEVELS, n, p))


def test_outcomes_of_different_chances_by_enumeration():
    p = np.array([0.1, 0.5, 0.7, 0.95])
    pmf = np.zeros(5)
    for outcome in itertools.product([0, 1], repeat=4):
        pmf[sum(outcome)] += np.prod(np.where(outcome, p, 1 - p))
    u = np.append(LEVELS, np.cumsum(pmf)[:-1] - 1e-12)  # and right at the steps, from below
    np.testing.assert_array_equal(one([1, 1, 1, 1], p, u), np.searchsorted(np.cumsum(pmf), u))


def test_rare_and_nearly_certain_outcomes_together():
    # a sum of two binomials by convolution, shifted where many come
    n, p = [50_000, 7_000], [1e-4, 1 - 5e-4]
    k = np.arange(60)
    pmf = np.convolve(stats.binom.pmf(k, n[0], p[0]), stats.binom.pmf(k, n[1], 1 - p[1])[::-1])
    np.testing.assert_array_equal(one(n, p), n[1] - 59 + np.searchsorted(np.cumsum(pmf), LEVELS))


def test_bins_do_not_touch_each_other():
    rng = np.random.default_rng(0)
    bins = np.sort(np.append(np.arange(3000), rng.integers(0, 3000, 3000)))  # cells of two blocks
    n, p = rng.integers(1, 9, 6000).astype(float), rng.random(6000)
    u = rng.random((3, 3000))
    counts = count_quantiles(bins, n, p, u)
    for b in (0, 1, 1999, 2000, 2998, 2999):
        np.testing.assert_array_equal(counts[:, b], one(n[bins == b], p[bins == b], u[:, b]))


def test_chances_off_the_unit_interval_by_rounding_count_as_0_and_1():
    assert one([5, 4], [-1e-17, 1 + 1e-16]).tolist() == [4.0] * 1000
