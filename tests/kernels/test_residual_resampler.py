"""The bootstrap of residual norms cell by cell: equal to the norms of the sums of every resample."""

import numpy as np
import pytest

from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import BinnedError
from trueodds.kernels.bootstrap_multiplicities import BootstrapMultiplicities
from trueodds.kernels.bootstrap_sums import ResidualNorms, VectorCellSums
from trueodds.lenses.view import View


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
