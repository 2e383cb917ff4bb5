"""Cells: sums by hand, how they add, and the views they give back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tallies.batches import softmaxed
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.lenses.ranked import Confidence
from trueodds.lenses.view import SUMS, View
from trueodds.tallies.cells import Cells, SimplexCells


def test_sums_by_hand():
    # Two rows at .25 with weights 1 and 3, outcomes 1 and .5: Σw = 4, Σwp = 1, Σwy = 2.5, Σw² = 10,
    # Σwp² = .25, Σwpy = .625, Σwy² = 1.75, Σw²p(1−p) = 10·.1875, Σw²(y−p)² = .5625 + 9·.0625 = 1.125.
    cells = Cells.from_scores([0.25, 0.25], [1, 0.5], [1, 3])
    assert cells.n.tolist() == [2]
    assert cells.sums.tolist() == [[4, 1, 2.5, 10, 0.25, 0.625, 1.75, 1.875, 1.125]]


def test_plain_rows_carry_the_same_sums_as_rows_of_weight_one():
    view = Confidence().views(softmaxed(500, 3, 1))[0]
    plain = Cells.from_scores(view.p, view.y)
    heavy = Cells.from_scores(view.p, view.y, np.full(500, 2.0))
    assert plain.is_unweighted
    assert not heavy.is_unweighted
    # Weight 2 doubles what is linear in w and quadruples what is quadratic.
    factors = np.array([2, 2, 2, 4, 2, 2, 2, 4, 4])
    np.testing.assert_allclose(heavy.sums, plain.with_explicit_sums().sums * factors, rtol=1e-12, atol=1e-12)


def test_adding_leaves_the_operands_alone_and_keeps_counts_whole():
    a, b = Cells.from_scores([0.1, 0.5], [0, 1]), Cells.from_scores([0.5, 0.9], [0, 1])
    before = [x.copy() for x in (a.index, a.n, a.sums, b.index, b.n, b.sums)]
    both = a + b
    for x, y in zip(before, (a.index, a.n, a.sums, b.index, b.n, b.sums), strict=True):
        np.testing.assert_array_equal(x, y)
    assert both.n.dtype == np.int64
    assert both.n.tolist() == [1, 2, 1]
    assert not np.shares_memory((a + a).sums, a.sums)


def test_plain_and_weighted_cells_add():
    a, b = Cells.from_scores([0.1, 0.5], [0, 1]), Cells.from_scores([0.5], [1], [2.0])
    both = Cells.from_scores([0.1, 0.5, 0.5], [0, 1, 1], [1, 1, 2])
    for total in (a + b, b + a):
        np.testing.assert_array_equal(total.index, both.index)
        np.testing.assert_allclose(total.sums, both.sums, rtol=1e-15)


@pytest.mark.parametrize("k", [1, 10, 15, 64, 3840])
@pytest.mark.parametrize("weighted", [False, True])
def test_binned_cells_are_the_bins_of_the_rows(k, weighted):
    rows = Confidence().views(softmaxed(3000, 3, 2))[0]
    w = np.random.default_rng(3).random(3000) if weighted else None
    cells, rows = Cells.from_scores(rows.p, rows.y, w).view(0), View(rows.p, rows.y, w)
    binned_cells, binned_rows = (
        view.pool(Uniform(k).fit(view).index(view.partition_values), k) for view in (cells, rows)
    )
    for name in ("n", "w", "p", "y"):
        np.testing.assert_allclose(getattr(binned_cells, name), getattr(binned_rows, name), rtol=1e-12)
    for name in SUMS:
        np.testing.assert_allclose(binned_cells.sums(name), binned_rows.sums(name), rtol=1e-12, atol=1e-12)


def test_rows_of_weight_zero_are_counted_and_change_nothing():
    view = Cells.from_scores([0.2, 0.7], [1, 0], [0, 1]).view(0)
    assert view.n.tolist() == [1, 1]
    assert view.total == 1
    assert np.isfinite(view.p).all()


def test_half_precision_counts_beyond_65504():
    # A peer's float16 sums overflow at n > 65,504 and give ECE = 0.0 where .167 is true.
    n = 70_000
    view = Cells.from_scores(np.full(n, 0.75, dtype=np.float16).astype(np.float32), np.arange(n) % 2).view(0)
    assert view.n.tolist() == [n]
    assert view.p[0] - view.y[0] == 0.25


def test_single_precision_sums_do_not_drift():
    # In float32, adding .7 a million times gives 699,944 or worse (a peer: .0316 for .00013 at 1e7 rows).
    n = 1_000_000
    p = np.full(n, 0.7, dtype=np.float32)
    view = Cells.from_scores(p, np.zeros(n)).view(0)
    assert float(np.cumsum(p)[-1]) != pytest.approx(n * float(p[0]), rel=1e-6)
    assert view.p[0] == pytest.approx(float(p[0]), rel=n * 2.0**-53)


def test_views_stand_side_by_side():
    both = Cells.concatenate_views([(0, Cells.from_scores([0.2], [1])), (1, Cells.from_scores([1.0], [0], [2.0]))])
    assert both.index.tolist() == [Cells.from_scores([0.2], [1]).index[0], 2 * N_CELLS - 1]
    assert [both.view(i).w.tolist() for i in (0, 1, 2)] == [[1], [2], []]


def test_simplex_cells_by_hand():
    # With 2 bins per axis (.5, .3, .2) and (.4, .4, .2) share the cell (0, 0, 0); (.1, .2, .7) is in (0, 0, 1).
    view = View([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], np.eye(3), [1, 2, 3])
    cells = SimplexCells.from_view(view, 2)
    assert cells.keys.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert cells.n.tolist() == [2, 1]
    assert cells.ww.tolist() == [10, 4]
    np.testing.assert_allclose(cells.wp, [[1.7, 1.5, 0.8], [0.2, 0.4, 1.4]], rtol=1e-15)
    assert (cells + cells).wy.tolist() == [[2, 0, 6], [0, 4, 0]]
    with pytest.raises(InputError, match="TO401"):
        cells + SimplexCells.from_view(view, 3)
