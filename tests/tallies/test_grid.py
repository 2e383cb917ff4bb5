"""The fine grid: every score lies in the cell that comparing with the stored edges gives."""

from __future__ import annotations

import numpy as np
import pytest

from trueodds.kernels import as_plain_array
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES, N_CELLS, N_EQUAL_CELLS, N_HALVINGS, find_class_cells
from trueodds.tallies.block_sums import report_bin_of_cells


def placed(x: np.ndarray) -> np.ndarray:
    out = np.empty((1, len(x)), dtype=np.uint16)
    find_class_cells(as_plain_array(x[:, None]), 0, 1, CELL_EDGES, x.dtype == np.float32, out)
    return out[0]


def compared(x: np.ndarray) -> np.ndarray:
    return np.searchsorted(CELL_EDGES[1:-1], x.astype(np.float64), "left")


def test_there_are_3838_cells_and_21_at_each_end():
    assert N_CELLS == 3838 + 2 * 21 == len(CELL_EDGES) - 1
    assert (np.diff(CELL_EDGES) > 0).all()
    assert CELL_EDGES[0] == 0
    assert CELL_EDGES[-1] == 1
    # The cell next to 0 is 1/3840 halved 20 times, as is the one next to 1 (to the rounding of 1 − x).
    assert CELL_EDGES[1] == 1 / N_EQUAL_CELLS / 2**20
    assert 1 - CELL_EDGES[-2] == pytest.approx(1 / N_EQUAL_CELLS / 2**20, abs=2**-53)
    np.testing.assert_array_equal(
        CELL_EDGES[N_HALVINGS + 1 : -N_HALVINGS - 1], np.arange(1, N_EQUAL_CELLS) / N_EQUAL_CELLS
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("location", ["uniform", "near 0", "near 1"])
def test_random_scores_are_placed_as_comparing_places_them(dtype, location):
    u = np.random.default_rng(1).random(200_000)
    tiny = 10 ** (-12 * u)
    x = {"uniform": u, "near 0": tiny, "near 1": 1 - tiny}[location].astype(dtype)
    np.testing.assert_array_equal(placed(x), compared(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_and_their_neighbors_are_placed_as_comparing_places_them(dtype):
    near = [CELL_EDGES.astype(dtype)]
    for _ in range(3):
        near.append(np.nextafter(near[-1], dtype(2)))
    near.append(np.nextafter(near[0], dtype(-1)))
    near.append(np.nextafter(near[-1], dtype(-1)))
    x = np.concatenate(near)
    x = x[(x >= 0) & (x <= 1)]
    np.testing.assert_array_equal(placed(x), compared(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decimals_and_small_fractions_are_placed_as_comparing_places_them(dtype):
    x = np.unique(np.concatenate([np.arange(k + 1) / k for k in range(1, 301)])).astype(dtype)
    np.testing.assert_array_equal(placed(x), compared(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_ulp_above_one_is_in_the_last_cell_and_zero_in_the_first(dtype):
    # A peer puts p = 1 into a phantom bin of its own, another softmaxes the batch over one ulp.
    x = np.array([0, 1, np.nextafter(dtype(1), dtype(2)), 1 + 1e-3], dtype=dtype)
    assert placed(x).tolist() == [0, N_CELLS - 1, N_CELLS - 1, N_CELLS - 1]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 12, 15, 16, 20, 30, 64, 3840])
def test_bins_that_divide_the_grid_nest(k):
    inner = np.arange(1, k) / k
    for side in (CELL_MIDDLES, CELL_EDGES[1:]):  # the middle and the upper edge of a cell fall into the bin of its rows
        np.testing.assert_array_equal(
            np.searchsorted(inner, side, "left"), np.searchsorted(inner, np.nextafter(CELL_EDGES[:-1], 2), "left")
        )
    np.testing.assert_array_equal(report_bin_of_cells(k), np.searchsorted(inner, CELL_EDGES[1:], "left"))


def test_bins_that_do_not_divide_the_grid_use_the_nearest_edges_of_cells():
    # 1/7 = 548.57/3840: the nearest edge of a cell is 549/3840.
    first = report_bin_of_cells(7) == 0
    assert CELL_EDGES[1:][first].max() == 549 / 3840
