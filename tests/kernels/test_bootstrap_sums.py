"""Do the sums of resamples equal plain loops, for any cells, weights, columns and clusters, and norms those of sums?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import BinnedError
from trueodds.kernels.bootstrap import _ROWS_PER_TILE, BootstrapMultiplicities, CellSums, ResidualNorms, VectorCellSums
from trueodds.lenses.view import View

Sums = Callable[[Array], Any]  # Σw, Σwp and Σwy (resamples, cells, m) of the multiplicities (units, resamples)


def by_column(cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> Sums:
    """By `CellSums`, with a cell of its own for every cell and column."""
    m = wp.shape[1]
    made = CellSums(cell[:, None] * m + np.arange(m), np.repeat(w[:, None], m, axis=1), wp, wy, size * m, unit)
    return lambda times: made.sum_cells(times).reshape(3, times.shape[1], size, m)


def by_vector(cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array | None = None) -> Sums:
    made = VectorCellSums(cell, w, wp, wy, size, unit)
    m = wp.shape[1]
    assert made.n_sums == size * (2 * m + 1)

    def sums(times: Array) -> Any:
        total, *vectors = made.sum_vectors(made.sort_multiplicities(times))
        return np.stack([np.repeat(total[..., None], m, axis=2), *vectors])

    return sums


def by_loops(cell: Array, w: Array, wp: Array, wy: Array, size: int, unit: Array, times: Array) -> Array:
    m = wp.shape[1]
    out = np.zeros((3, times.shape[1], size, m))
    for r in range(times.shape[1]):
        for i in range(len(cell)):
            out[:, r, cell[i]] += int(times[unit[i], r]) * np.stack([np.full(m, w[i]), wp[i], wy[i]])
    return out


def data(n: int, m: int, size: int, seed: int) -> tuple[Array, Array, Array, Array, int]:
    rng = np.random.default_rng(seed)
    w = rng.random(n)
    return rng.integers(0, size, n), w, w[:, None] * rng.random((n, m)), w[:, None] * rng.random((n, m)), size


both = pytest.mark.parametrize("sums_of", [by_column, by_vector])


@both
@pytest.mark.parametrize(
    "n", [0, 1, 2, 3, 4, 5, 23, _ROWS_PER_TILE - 1, _ROWS_PER_TILE, _ROWS_PER_TILE + 1, 3 * _ROWS_PER_TILE]
)
@pytest.mark.parametrize(("m", "resamples"), [(1, 16), (2, 1), (3, 7), (7, 5)])
def test_sums_equal_plain_loops(sums_of: Callable[..., Sums], n: int, m: int, resamples: int) -> None:
    rows = data(n, m, 4, 100 * n + 10 * m + resamples)
    times = np.random.default_rng(1).integers(0, 4, (n, resamples)).astype(np.uint8)
    # one sum of a few hundred terms below 3, in another order
    np.testing.assert_allclose(sums_of(*rows)(times), by_loops(*rows, np.arange(n), times), rtol=0, atol=1e-12)


@both
@pytest.mark.parametrize("m", [1, 3])
def test_rows_of_one_cluster_come_together(sums_of: Callable[..., Sums], m: int) -> None:
    unit, rows = np.array([0, 2, 1, 2, 0, 0, 1]), data(7, m, 3, 0)
    times = np.random.default_rng(2).integers(0, 5, (3, 4)).astype(np.uint8)
    np.testing.assert_allclose(sums_of(*rows, unit)(times), by_loops(*rows, unit, times), rtol=0, atol=1e-13)


@both
def test_a_row_without_weight_is_not_looked_at(sums_of: Callable[..., Sums]) -> None:
    # Its vector may be anything, even none.
    wp = np.array([[0.5, 0.5], [np.nan, np.nan]])
    sums = sums_of(np.zeros(2, int), np.array([1.0, 0.0]), wp, wp, 1)(np.ones((2, 1), np.uint8))
    assert sums[:, 0, 0].tolist() == [[1.0, 1.0], [0.5, 0.5], [0.5, 0.5]]


@both
def test_more_cells_than_sixteen_bits_hold(sums_of: Callable[..., Sums]) -> None:
    cell, one = np.array([70_000, 3, 65_536, 0, 3]), np.ones((5, 1))
    times = np.array([[1], [2], [3], [4], [5]], dtype=np.uint8)
    counts = sums_of(cell, np.ones(5), one, one, 70_001)(times)[0, 0, :, 0]
    assert {int(i): counts[i] for i in np.flatnonzero(counts)} == {70_000: 1, 3: 7, 65_536: 3, 0: 4}


@both
def test_some_of_the_resamples_will_do(sums_of: Callable[..., Sums]) -> None:
    times = np.random.default_rng(4).integers(0, 4, (90, 10)).astype(np.uint8)
    sums = sums_of(*data(90, 3, 5, 3))
    np.testing.assert_array_equal(sums(times[:, 3:7]), sums(times)[:, 3:7])


def _rows(
    n: int, m: int, cells: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    p = rng.dirichlet(np.ones(m), n)
    y = np.eye(m)[rng.integers(0, m, n)]
    w = rng.integers(0, 3, n) * rng.uniform(0.5, 2, n)
    return p, y, w, rng.integers(0, cells, n)


@pytest.mark.parametrize(("n", "cells"), [(1, 1), (3, 5), (50, 7), (3_000, 100), (3_000, 4_000)])
@pytest.mark.parametrize("clustered", [False, True])
def test_norms_are_those_of_the_sums_of_each_resample(n: int, cells: int, clustered: bool) -> None:
    rng = np.random.default_rng(n + cells)
    p, y, w, cell = _rows(n, 4, cells, rng)
    w[0] = 1.0
    unit = rng.integers(0, n // 2 + 1, n) if clustered else None
    units = n if unit is None else int(unit.max()) + 1
    times = BootstrapMultiplicities(units, 3).draw(0, 40)
    arguments = (cell, w, w[:, None] * p, w[:, None] * y, cells, unit)
    values, norms = ResidualNorms(cell, w, p, y, cells, unit).residual_norms(times)

    vectors = VectorCellSums(*arguments)
    mass, wp, wy = vectors.sum_vectors(vectors.sort_multiplicities(times))
    ones = np.ones((units, 1), np.uint8)
    totals = [x[0] for x in vectors.sum_vectors(vectors.sort_multiplicities(ones))]
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.abs(wp - wy).sum(axis=(1, 2)) / mass.sum(axis=1)
        gap = np.abs((wp - wy) / mass[..., None] - ((totals[1] - totals[2]) / totals[0][:, None])).sum(axis=2)
    centered = np.where((mass > 0) & (totals[0] > 0), gap * totals[0], 0.0).sum(axis=1) / totals[0].sum()
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(norms, centered, rtol=1e-12, atol=1e-14)


def test_the_estimator_of_total_variation_is_the_one_whose_norms_are_summed() -> None:
    rng = np.random.default_rng(1)
    p, y, w, _ = _rows(200, 3, 1, rng)
    view = View(p, y, w + 0.1)
    linear = BinnedError().cell_statistic(view)
    error: Estimator
    for error, expected in ((BinnedError(), True), (BinnedError(order=2), False), (BinnedError(distance="l2"), False)):
        assert getattr(error.cell_statistic(view), "is_mean_total_variation", False) is expected
    binary = BinnedError().cell_statistic(View([0.2, 0.4], [0, 1]))
    assert linear is not None
    assert not getattr(binary, "is_mean_total_variation", False)
