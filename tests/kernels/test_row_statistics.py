"""Does one look at each row tell what plain loops tell?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS, c_order
from tests.kernels.samples import inside, rows
from trueodds.data.predictions import Predictions
from trueodds.kernels.row_statistics import ROWS_PER_TILE, check_table, score_rows, summarize_rows
from trueodds.tallies.block_sums import sum_block
from trueodds.tallies.row_block import RowBlock

DTYPES = (np.float32, np.float64)


def by_loops(P, tolerance, ranks):
    which, squares, counts, extremes = np.zeros((len(P), ranks), int), np.zeros(len(P)), np.zeros(5, int), np.zeros(2)
    for i, row in enumerate(P.astype(np.float64).tolist()):
        order = sorted(range(len(row)), key=lambda c: (-row[c], c))
        which[i] = order[:ranks]
        squares[i] = math.fsum(x * x for x in row)
        deviation = abs(math.fsum(row) - 1)
        counts += (
            row.count(0),
            row.count(1),
            sum(x > 1 for x in row),
            deviation > tolerance,
            row[order[0]] == row[order[1]],
        )
        extremes = np.maximum(extremes, (max(row) - 1, deviation if deviation > tolerance else 0))
    return which, squares, counts, extremes


def look(P, tolerance, ranks):
    which, squares = np.full((len(P), ranks), -1, dtype=np.int32), np.empty(len(P))
    counts, extremes = np.zeros(5, dtype=np.int64), np.zeros(2)
    P = inside(P)
    summarize_rows(
        P, P.view(np.int32 if P.dtype == np.float32 else np.int64), tolerance, which, squares, counts, extremes
    )
    return which, squares, counts, extremes


def same(actual, expected, ranks):
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-13)
    n_counts = 5 if ranks else 4  # ties are told where ranks are
    np.testing.assert_array_equal(actual[2][:n_counts], expected[2][:n_counts])
    np.testing.assert_allclose(actual[3], expected[3], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("k", "ranks"), [(2, 1), (3, 3), (5, 0), (10, 3), (64, 3), (65, 3), (96, 2), (130, 0)])
def test_a_survey_equals_plain_loops(dtype, k, ranks):
    P, _ = rows(40, k, dtype)
    P[7, 0] += dtype(0.01)  # no rounding
    same(look(P, 1e-3, ranks), by_loops(P, 1e-3, ranks), ranks)


@pytest.mark.parametrize("n", [0, 1, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS_PER_TILE + 1])
def test_a_survey_at_the_boundaries_of_tiles(n):
    P, _ = rows(n, 3)
    same(look(P, 1e-3, 3), by_loops(P, 1e-3, 3), 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [65, 70, 100])
def test_of_equal_values_of_a_long_row_the_lowest_classes_come_first(dtype, k):
    P = np.zeros((6, k), dtype=dtype)
    P[0, [40, 5, 39]] = 1 / 3  # in two runs
    P[1, [33, 34]] = 0.5  # side by side
    P[2, k - 1] = 1  # in the last run, the others all equal
    P[3] = 1 / k
    P[4, 0], P[4, 64] = -0.0, 1  # −0 is 0
    P[5, [31, 32, 63, 64]] = (0.1, 0.3, 0.3, 0.3)
    same(look(P, 1e-3, 3), by_loops(P, 1e-3, 3), 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_scores_equal_their_definitions(dtype, k):
    P, y = rows(60, k, dtype)
    wide = P.astype(np.float64)
    y = np.random.default_rng(0).integers(0, 2, 60) if k == 1 else y
    brier, loss = np.empty(60), np.empty(60)
    score_rows(inside(P), inside(y), (wide**2).sum(axis=1), k <= 2, brier, loss)
    p = wide[:, -1]
    likelihoods = np.where(y == 1, p, 1 - p) if k <= 2 else wide[np.arange(60), y]
    expected = (p - y) ** 2 if k <= 2 else ((wide - np.eye(k)[y]) ** 2).sum(axis=1)
    np.testing.assert_allclose(brier, expected, rtol=1e-12, atol=1e-14)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(
            loss, np.where(likelihoods > 0, -np.log(likelihoods), np.inf), rtol=1e-13, atol=1e-300
        )


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float16, *DTYPES])
@pytest.mark.parametrize("k", [3, 70])
def test_any_layout_is_counted_by_way_of_predictions(dtype, layout, k):
    P = np.random.default_rng(k).dirichlet(np.ones(k), 20).astype(dtype)
    y, bins = np.arange(20) % k, 5 if k == 3 else None
    expected, actual = (
        sum_block(
            RowBlock.from_predictions(Predictions(y, arrange(P), sum_tolerance=0.1), slice(None)), 3, range(k), bins
        )
        for arrange in (c_order, layout)
    )
    for name in ("index", "n", "sums"):
        np.testing.assert_array_equal(getattr(actual.cells, name), getattr(expected.cells, name))
    np.testing.assert_array_equal(actual.null, expected.null)
    assert (actual.scores, actual.counts) == (expected.scores, expected.counts)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (255, 3), (257, 16), (40, 17), (3, 300)])
def test_a_look_sees_the_extremes_and_the_worst_row(n, k, dtype, layout):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(k), n).astype(dtype)
    P[n // 2, 0] += dtype(0.01)
    check = check_table(layout(P), 1e-3)
    assert (check.lowest, check.highest) == (P.min(), P.max())
    assert (check.worst_row, check.n_inexact) == (n // 2, 1)
    assert check.largest_deviation == pytest.approx(abs(P[n // 2].sum(dtype=np.float64) - 1), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, -1e-30, -0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [4, 20])
def test_what_is_no_probability_is_the_lowest_or_no_finite_highest(bad, dtype, k):
    P = np.full((300, k), 1 / k, dtype=dtype)
    P[77, 2] = bad
    check = check_table(P, 1e-3)
    assert not (check.lowest >= 0 and np.isfinite(check.highest) and not np.signbit(check.lowest))


def test_of_equally_bad_rows_the_first_is_reported():
    P = np.full((600_000, 2), 0.5, dtype=np.float32)
    P[[70_000, 400_000], 0] = 0.75
    assert check_table(P, 1e-3)[2:] == (70_000, 0.25, 2)
