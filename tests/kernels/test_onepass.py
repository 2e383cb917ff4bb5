"""Does one pass over the rows give what the single kernels give, and the covariance its definition?"""

import numpy as np
import pytest

from tests.kernels.samples import inside, rows
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES, N_CELLS
from trueodds.kernels.grid_sums import tally_labels, tally_outcomes, tally_rows
from trueodds.kernels.outcome_covariance import (
    add_shared_bin_covariances,
    covariance_matrix,
    first_bin_edge,
    zero_covariance_sums,
)
from trueodds.kernels.row_statistics import ROWS_PER_TILE, score_rows, summarize_rows

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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "k", "ranks", "bins"), [(40, 2, 1, 15), (40, 3, 3, 0), (50, 6, 3, 4), (ROWS_PER_TILE + 1, 3, 3, 2)]
)
def test_one_pass_equals_the_single_kernels(dtype, n, k, ranks, bins):
    P, y = rows(n, k, dtype)
    P, y, exact = inside(P), inside(y), dtype == np.float32
    at, first = report(max(bins, 1)), first_bin_edge(report(max(bins, 1)), k)
    size = (ranks + k) * N_CELLS
    cells, sums = np.zeros(size, dtype=np.int64), np.zeros((size, 4))
    counts, extremes, scores, pairs = (
        np.zeros(5, dtype=np.int64),
        np.zeros(2),
        np.zeros((2, 3)),
        zero_covariance_sums(k, bins, first),
    )
    tally_rows(
        P, y, ranks, 1e-3, exact, k <= 2, CELL_EDGES, cells, sums, counts, extremes, scores, at, bins, first, pairs
    )

    which, squares = np.empty((n, ranks), dtype=np.int32), np.empty(n)
    expected_counts, expected_extremes = np.zeros(5, dtype=np.int64), np.zeros(2)
    summarize_rows(P, P.view(np.int32 if exact else np.int64), 1e-3, which, squares, expected_counts, expected_extremes)
    np.testing.assert_array_equal(counts, expected_counts)
    np.testing.assert_array_equal(extremes, expected_extremes)

    expected = np.zeros(size, dtype=np.int64), np.zeros((size, 4))
    top = inside(np.take_along_axis(P, which, axis=1))
    hit = inside(which == y[:, None])
    tally_outcomes(top, hit, 0, ranks, CELL_EDGES, exact, *(table[: ranks * N_CELLS] for table in expected))
    tally_labels(P, y, 0, k, CELL_EDGES, exact, *(table[ranks * N_CELLS :] for table in expected))
    np.testing.assert_array_equal(cells, expected[0])
    np.testing.assert_allclose(sums, expected[1], rtol=1e-13)

    brier, loss = np.empty(n), np.empty(n)
    score_rows(P, y, squares, k <= 2, brier, loss)
    loss = loss[np.isfinite(loss)]
    np.testing.assert_allclose(scores[0], (n, brier.sum(), (brier**2).sum()), rtol=1e-12)
    np.testing.assert_allclose(scores[1], (len(loss), loss.sum(), (loss**2).sum()), rtol=1e-12)

    if bins:
        expected_pairs = zero_covariance_sums(k, bins, first)
        add_shared_bin_covariances(P, inside(NONE), at, bins, first, exact, CELL_EDGES, expected_pairs)
        # Sums of n terms in two loops whose order the compiler chooses: each is off by n rounding errors at most.
        tolerance = n * np.finfo(np.float64).eps
        np.testing.assert_allclose(
            covariance_matrix(pairs), covariance_matrix(expected_pairs), rtol=tolerance, atol=tolerance
        )
