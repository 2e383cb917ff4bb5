"""Do the sums of resampled vectors equal plain loops, for any cells, weights and clusters?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trueodds.kernels.bootstrap_sums import _ROWS_PER_TILE, VectorCellSums


def by_loops(cell: Any, w: Any, wp: Any, wy: Any, size: int, unit: Any, times: Any) -> list[Any]:
    m = wp.shape[1]
    out = [np.zeros((times.shape[1], size, *tail)) for tail in ((), (m,), (m,))]
    for r in range(times.shape[1]):
        for i in range(len(cell)):
            for table, x in zip(out, (w, wp, wy), strict=True):
                table[r, cell[i]] += int(times[unit[i], r]) * x[i]
    return out


def _data(n: int, m: int, size: int, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    w = rng.random(n)
    return rng.integers(0, size, n), w, w[:, None] * rng.random((n, m)), w[:, None] * rng.random((n, m))


def _close(actual: Any, expected: Any) -> bool:
    # at most 200 terms below 3, in another order
    return all(np.allclose(one, other, rtol=0, atol=1e-12) for one, other in zip(actual, expected, strict=True))


@pytest.mark.parametrize("n", [0, 1, _ROWS_PER_TILE - 1, _ROWS_PER_TILE, _ROWS_PER_TILE + 1, 3 * _ROWS_PER_TILE])
@pytest.mark.parametrize("m", [2, 3, 7])
@pytest.mark.parametrize("resamples", [1, 5])
def test_sums_equal_plain_loops(n: int, m: int, resamples: int) -> None:
    data = _data(n, m, 4, 10 * n + m)
    times = np.random.default_rng(1).integers(0, 4, (n, resamples)).astype(np.uint8)
    made = VectorCellSums(*data, 4)
    assert _close(made.sum_vectors(made.sort_multiplicities(times)), by_loops(*data, 4, np.arange(n), times))
    assert made.n_sums == 4 * (2 * m + 1)


def test_rows_of_one_cluster_come_together() -> None:
    unit, data = np.array([0, 2, 1, 2, 0, 0, 1]), _data(7, 3, 3, 0)
    times = np.random.default_rng(2).integers(0, 5, (3, 4)).astype(np.uint8)
    made = VectorCellSums(*data, 3, unit)
    assert _close(made.sum_vectors(made.sort_multiplicities(times)), by_loops(*data, 3, unit, times))


def test_a_row_without_weight_is_not_looked_at() -> None:
    # Its vector may be anything, even none.
    wp = np.array([[0.5, 0.5], [np.nan, np.nan]])
    made = VectorCellSums(np.zeros(2, int), np.array([1.0, 0.0]), wp, wp, 1)
    w, predicted, _ = made.sum_vectors(made.sort_multiplicities(np.ones((2, 1), np.uint8)))
    assert w.tolist() == [[1.0]]
    assert predicted.tolist() == [[[0.5, 0.5]]]


def test_more_cells_than_sixteen_bits_hold() -> None:
    cell, one = np.array([70_000, 3, 65_536, 0, 3]), np.ones((5, 2))
    made = VectorCellSums(cell, np.ones(5), one, one, 70_001)
    counts = made.sum_vectors(made.sort_multiplicities(np.array([[1], [2], [3], [4], [5]], dtype=np.uint8)))[0][0]
    assert {int(i): counts[i] for i in np.flatnonzero(counts)} == {70_000: 1, 3: 7, 65_536: 3, 0: 4}


def test_some_of_the_resamples_will_do() -> None:
    data = _data(90, 3, 5, 3)
    times = np.random.default_rng(4).integers(0, 4, (90, 10)).astype(np.uint8)
    made = VectorCellSums(*data, 5)
    some, every = (
        made.sum_vectors(made.sort_multiplicities(times)[3:7]),
        made.sum_vectors(made.sort_multiplicities(times)),
    )
    for one, other in zip(some, every, strict=True):
        np.testing.assert_array_equal(one, other[3:7])
