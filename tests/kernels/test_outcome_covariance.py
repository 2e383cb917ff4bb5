"""Do the sums of covariances equal their definition?"""

import numpy as np
import pytest

from tests.kernels.samples import inside, rows
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES, ROWS_PER_TILE
from trueodds.kernels.outcome_covariance import (
    add_shared_bin_covariances,
    covariance_matrix,
    first_bin_edge,
    zero_covariance_sums,
)

DTYPES = (np.float32, np.float64)
SIZES = (0, 1, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS_PER_TILE + 1)
NONE = np.empty(0)


def report(bins):
    return np.searchsorted(np.arange(1, bins) / bins, CELL_MIDDLES, "left").astype(np.uint32)


def covariance(P, w, bins):
    """Row by row: w²(diag(p) − pp′) at the bins of its values."""
    n, k = P.shape
    cov, P = np.zeros((k * bins, k * bins)), P.astype(np.float64)
    for i in range(n):
        bin_index = [c * bins + report(bins)[np.searchsorted(CELL_EDGES[1:-1], P[i, c], "left")] for c in range(k)]
        for c in range(k):
            cov[bin_index[c], bin_index[c]] += w[i] ** 2 * P[i, c] * (1 - P[i, c])
            for d in range(c + 1, k):
                cov[bin_index[c], bin_index[d]] -= w[i] ** 2 * P[i, c] * P[i, d]
    return cov


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "k", "bins"), [(30, 2, 15), (30, 4, 5), (30, 5, 15), (30, 6, 1), (30, 9, 7), (9, 21, 3)])
def test_the_covariance_of_classes_and_bins_equals_its_definition(dtype, weighted, n, k, bins):
    P, _ = rows(n, k, dtype)
    w = np.random.default_rng(n).random(n) if weighted else np.ones(n)
    first = first_bin_edge(report(bins), k)
    sums = zero_covariance_sums(k, bins, first)
    weights = inside(w if weighted else NONE)
    add_shared_bin_covariances(inside(P), weights, report(bins), bins, first, dtype == np.float32, CELL_EDGES, sums)
    # sums of n terms of size 1 in another order; where no two values ever meet it is 0
    expected = covariance(P, w, bins)
    cov = covariance_matrix(sums)
    np.testing.assert_allclose(cov, expected, rtol=1e-12, atol=1e-15 * n)
    np.testing.assert_array_equal(cov == 0, expected == 0)


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("n", SIZES)
def test_the_covariance_at_the_boundaries_of_tiles(n, k):
    P, _ = rows(n, k)
    first = first_bin_edge(report(2), k)
    sums = zero_covariance_sums(k, 2, first)
    add_shared_bin_covariances(inside(P), inside(NONE), report(2), 2, first, False, CELL_EDGES, sums)
    np.testing.assert_allclose(
        covariance_matrix(sums), covariance(P, np.ones(n), 2), rtol=1e-12, atol=1e-15 * ROWS_PER_TILE
    )
