"""Do the sums that rows add to cells equal plain loops?"""

import numpy as np
import pytest

from tests.kernels.samples import inside, rows
from trueodds.kernels.fine_grid import (
    CELL_EDGES,
    N_CELLS,
    ROWS_PER_TILE,
    merge_cells,
    pop_occupied_cells,
    tally_labels,
    tally_outcomes,
    tally_weighted_shares,
)

DTYPES = (np.float32, np.float64)
SIZES = (0, 1, 7, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS_PER_TILE + 1)


def cell(x):
    return int(np.searchsorted(CELL_EDGES[1:-1], float(x), "left"))


def empty(classes, width):
    return np.zeros(classes * N_CELLS, dtype=np.int64), np.zeros((classes * N_CELLS, width))


def by_loops(P, outcome, first, last):
    n, sums = empty(last - first, 4)
    for i in range(len(P)):
        for c in range(first, last):
            s, x, z = (c - first) * N_CELLS + cell(P[i, c]), float(P[i, c]), float(outcome[i, c])
            n[s] += 1
            sums[s] += (x, x * x, z, z * x)
    return n, sums


def same(actual, expected):
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_sums_by_label(dtype, n):
    P, y = rows(n, 4, dtype)
    expected = by_loops(P, y[:, None] == np.arange(4), 1, 3)  # labels of other classes add no outcome
    actual = empty(2, 4)
    tally_labels(inside(P), inside(y), 1, 3, CELL_EDGES, dtype == np.float32, *actual)
    same(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_sums_by_yes_and_no(dtype, n):
    P, _ = rows(n, 3, dtype)
    hit = np.random.default_rng(n).random((n, 3)) < 0.5
    actual = empty(2, 4)
    tally_outcomes(inside(P), inside(hit[:, 1:]), 1, 3, CELL_EDGES, dtype == np.float32, *actual)
    same(actual, by_loops(P, hit, 1, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_sums_of_weighted_shares(dtype, n):
    P, _ = rows(n, 2, dtype)
    rng = np.random.default_rng(n)
    Y, w = rng.random((n, 2)), rng.integers(0, 3, n) / 2
    expected = empty(2, 9)
    for i in range(n):
        for c in range(2):
            s, a, x, z = c * N_CELLS + cell(P[i, c]), w[i], float(P[i, c]), Y[i, c]
            expected[0][s] += 1
            expected[1][s] += (
                a, a * x, a * z, a * a, a * x * x, a * x * z, a * z * z, a * a * x * (1 - x), a * a * (z - x) ** 2,
            )  # fmt: skip
    actual = empty(2, 9)
    tally_weighted_shares(inside(P), inside(Y), inside(w), 0, 2, CELL_EDGES, dtype == np.float32, *actual)
    np.testing.assert_array_equal(actual[0], expected[0])
    # Σw²p(1−p) of a p above 1 by rounding is a difference of numbers near 1
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-12, atol=1e-15)


def some(indices, width=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.array(indices, dtype=np.int64), rng.integers(1, 9, len(indices)), rng.random((len(indices), width))


def test_the_occupied_cells_are_listed_and_the_table_is_left_empty():
    n, sums = np.zeros(12, dtype=np.int64), np.zeros((12, 4))
    index, count, values = some([0, 3, 4, 11])
    n[index], sums[index] = count, values
    for actual, expected in zip(pop_occupied_cells(n, sums), (index, count, values), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert not n.any()
    assert not sums.any()
    assert [len(array) for array in pop_occupied_cells(n, sums)] == [0, 0, 0]


@pytest.mark.parametrize("width", [4, 9])
@pytest.mark.parametrize(
    ("a", "b"),
    [([], []), ([], [2]), ([2], []), ([1], [1]), ([1, 5], [2, 3, 9]), ([2, 3, 9], [1, 5]), ([0, 1, 2, 7], [1, 2, 8])],
)
def test_two_tables_together_hold_the_cells_of_both(a, b, width):
    one, other = some(a, width, 1), some(b, width, 2)
    n, sums = np.zeros(10, dtype=np.int64), np.zeros((10, width))
    for index, count, values in (one, other):
        n[index] += count
        sums[index] += values
    index = sorted({*a, *b})
    for actual, expected in zip(merge_cells(*one, *other), (index, n[index], sums[index]), strict=True):
        np.testing.assert_array_equal(actual, expected)
