"""Does every value fall into the cell, and every pair of classes into the sums, that plain loops give?"""

from collections import defaultdict

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from tests.kernels.samples import inside, rows
from trueodds.kernels.fine_grid import (
    CELL_EDGES,
    N_CELLS,
    ROWS_PER_TILE,
    count_subcells,
    find_cells,
    find_class_cells,
    find_column_cells,
)
from trueodds.kernels.outcome_covariance import add_class_bin_covariances
from trueodds.tallies.cells import Cells

DTYPES = (np.float32, np.float64)


def compared(x):
    """By definition: right-closed cells between the stored edges, the first closed at 0; beyond 1 is the last."""
    return np.searchsorted(CELL_EDGES[1:-1], np.asarray(x, dtype=np.float64), "left").tolist()


def neighborhood(dtype):
    at = CELL_EDGES.astype(dtype)
    x = np.concatenate([at, np.nextafter(at, dtype(-1)), np.nextafter(at, dtype(2))])
    return x[(x >= 0) & (x <= np.nextafter(dtype(1), dtype(2)))]


def put(x, exact):
    """The cells by `find_column_cells`, as many values at a time as it has room for."""
    cell_index, room, q = np.empty(len(x), dtype=np.int32), np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, len(x), ROWS_PER_TILE):
        part = x[start : start + ROWS_PER_TILE]
        find_column_cells(part, len(part), CELL_EDGES, exact, room, q, cell_index[start : start + ROWS_PER_TILE])
    return cell_index.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_edges_and_their_neighbors_lie_where_comparing_puts_them(dtype):
    x = neighborhood(dtype)
    assert put(x, dtype == np.float32) == compared(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_any_number_of_values_is_placed(dtype, n):
    rng = np.random.default_rng(n)
    x = np.concatenate([rng.random(n), 10 ** (-12 * rng.random(n)), 1 - 10 ** (-12 * rng.random(n))]).astype(dtype)
    wide, cells = x.astype(np.float64), np.empty(len(x), dtype=np.int32)
    find_cells(wide, 1 - wide, CELL_EDGES, dtype == np.float32, cells)
    assert cells.tolist() == compared(x)


def test_a_float64_whose_product_rounds_across_an_edge_is_put_back():
    edges = np.arange(1, 3840) / 3840
    assert (np.ceil(edges * 3840) != np.arange(1, 3840)).any()
    assert put(edges, exact=False) == compared(edges)


@pytest.mark.parametrize("dtype", DTYPES)
def test_minus_zero_is_zero(dtype):
    # Once its bits, the highest there are, put it into a cell near .27.
    assert put(np.array([-0.0, 0.0], dtype=dtype), dtype == np.float32) == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS_PER_TILE + 1])
def test_the_cells_of_some_classes_of_a_table(dtype, n):
    P, _ = rows(n, 4, dtype)
    out = np.full((2, n), 9, dtype=np.uint16)
    find_class_cells(inside(P), 1, 3, CELL_EDGES, dtype == np.float32, out)
    assert out.tolist() == [compared(P[:, 1]), compared(P[:, 2])]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float16, *DTYPES])
def test_any_layout_is_placed_by_way_of_the_cells_of_a_view(dtype, layout):
    P, y = rows(60, 3, dtype)
    cells = Cells.from_scores(layout(P)[:, 1], y == 1)
    assert cells.index.tolist() == sorted(set(compared(P[:, 1])))
    assert cells.n.tolist() == np.bincount(compared(P[:, 1]), minlength=N_CELLS)[cells.index].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "k"), [(0, 2), (1, 2), (999, 2), (1000, 1), (1001, 2), (30, 5)])
def test_the_covariance_of_bins_equals_its_definition(dtype, weighted, n, k):
    P, _ = rows(n, k, dtype)
    rng = np.random.default_rng(n)
    w = rng.random(n) if weighted else np.ones(n)
    cells, report = rng.integers(0, 6, (k, n)), np.array([0, 0, 1, 2, 2, 0], dtype=np.uint16)
    pairs = [(c, d) for c in range(k) for d in range(c, k)]
    expected = np.zeros((len(pairs), 9))
    for i in range(n):
        for pair, (c, d) in enumerate(pairs):
            p, q = float(P[i, c]), float(P[i, d])
            expected[pair, report[cells[c, i]] * 3 + report[cells[d, i]]] += w[i] ** 2 * (p * (c == d) - p * q)
    out = np.zeros((len(pairs), 3, 3))
    add_class_bin_covariances(inside(P), inside(w if weighted else np.empty(0)), inside(report[cells]), out)
    # sums of n terms of size 1 in another order
    np.testing.assert_allclose(out.reshape(-1, 9), expected, rtol=1e-12, atol=1e-14 * max(n, 1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_pairs_of_bin_and_cell_equal_plain_loops(dtype, n):
    rng = np.random.default_rng(n)
    p = rng.choice([0.0, 1.0, 0.5, 1e-6, *rng.random(5)], n).astype(dtype)
    index = rng.integers(0, 6, n)
    index[index == 3] = 2  # a bin without rows
    groups = defaultdict(list)
    for x, b in zip(p.astype(np.float64), index, strict=True):
        cell = int(np.clip(np.searchsorted(CELL_EDGES, x, "left") - 1, 0, N_CELLS - 1))
        groups[int(b), cell].append(x)
    bins, count, mean = count_subcells(p, index, 6)
    assert bins.tolist() == [b for b, _ in sorted(groups)]
    assert count.tolist() == [len(groups[pair]) for pair in sorted(groups)]
    np.testing.assert_allclose(mean, [np.mean(groups[pair]) for pair in sorted(groups)], rtol=1e-15)
