"""Do the streamed sums of resamples equal plain loops, for any slots, weights, columns and clusters?"""

import numpy as np
import pytest

from trueodds.kernels.bootstrap_sums import CellSums


def by_loops(slots, w, wp, wy, size, unit, times):
    out = np.zeros((3, times.shape[1], size))
    for r in range(times.shape[1]):
        for i in range(len(slots)):
            for c in range(slots.shape[1]):
                out[:, r, slots[i, c]] += int(times[unit[i], r]) * np.array([w[i, c], wp[i, c], wy[i, c]])
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 23])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("resamples", [1, 7, 16])
def test_sums_equal_plain_loops(n, columns, resamples):
    rng = np.random.default_rng(100 * n + 10 * columns + resamples)
    bins = 4
    slots = rng.integers(0, bins, (n, columns)) + bins * np.arange(columns)
    w, wp, wy = rng.random((3, n, columns))
    times = rng.integers(0, 4, (n, resamples)).astype(np.uint8)
    sums = CellSums(slots, w, wp, wy, bins * columns).sum_cells(times)
    # one sum of at most 23·3 terms of size 3, in another order
    np.testing.assert_allclose(
        sums, by_loops(slots, w, wp, wy, bins * columns, np.arange(n), times), rtol=0, atol=1e-13
    )


def test_rows_of_one_cluster_come_together():
    rng = np.random.default_rng(0)
    unit = np.array([0, 2, 1, 2, 0, 0, 1])
    slots, (w, wp, wy) = rng.integers(0, 3, (7, 1)), rng.random((3, 7, 1))
    times = rng.integers(0, 5, (3, 4)).astype(np.uint8)
    sums = CellSums(slots, w, wp, wy, 3, unit).sum_cells(times)
    np.testing.assert_allclose(sums, by_loops(slots, w, wp, wy, 3, unit, times), rtol=0, atol=1e-13)


def test_a_row_without_weight_is_not_looked_at():
    # Its score may be anything, even none.
    w = np.array([[1.0], [0.0]])
    sums = CellSums(np.zeros((2, 1), int), w, np.array([[0.5], [np.nan]]), w, 1).sum_cells(np.ones((2, 1), np.uint8))
    assert sums[:, 0, 0].tolist() == [1.0, 0.5, 1.0]


def test_more_slots_than_sixteen_bits_hold():
    slots = np.array([[70_000], [3], [65_536], [0], [3]])
    one, times = np.ones((5, 1)), np.array([[1], [2], [3], [4], [5]], dtype=np.uint8)
    sums = CellSums(slots, one, one, one, 70_001).sum_cells(times)[0, 0]
    assert {int(i): sums[i] for i in np.flatnonzero(sums)} == {70_000: 1, 3: 7, 65_536: 3, 0: 4}


def test_a_slice_of_multiplicities_will_do():
    rng = np.random.default_rng(1)
    slots, (w, wp, wy) = rng.integers(0, 3, (9, 1)), rng.random((3, 9, 1))
    times = rng.integers(0, 4, (9, 10)).astype(np.uint8)
    made = CellSums(slots, w, wp, wy, 3)
    np.testing.assert_array_equal(made.sum_cells(times[:, 3:7]), made.sum_cells(times)[:, 3:7])
