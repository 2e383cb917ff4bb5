"""Sum the moments of residuals, or of other masses, in equal cells of an interval of scores.

The moments Σ mass · u^k, with u the position of a row in its cell, determine the sum of every polynomial in u of the
same degree. So kernel estimators need a single pass over the rows: their kernel, or the spline by which rows are
assigned to grid points, is a polynomial within each cell.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, sum_blocks

# Number of rows whose masses are computed at a time, so that they stay in the core's own cache.
_ROWS_PER_MASS_BLOCK = 2**15
_ROWS_PER_CELL_PASS = 1024  # number of rows assigned to cells at a time


@compile_inline
def add_block_moments(x, mass, m, first, cells_per_unit, middle, cell_offset, position_in_cell, out):  # type: ignore[no-untyped-def]
    """Add the moments of the first m masses at the scores x to `out` (cells, powers), see `cell_moments`.

    `first` is the start of the first cell, and `cells_per_unit` the inverse of the width of a cell. `middle` is the
    point of a cell at which u = 0, as a fraction of its width. `cell_offset` (int32) and `position_in_cell` (float64)
    are buffers of m or more.
    """
    cells, powers = out.shape
    last, sums = np.float64(cells - 1), out.reshape(-1)
    for i in range(m):
        position = (np.float64(x[i]) - first) * cells_per_unit
        cell = min(max(np.floor(position), 0.0), last)
        position_in_cell[i] = position - cell - middle
        cell_offset[i] = np.int32(cell) * powers
    if powers == 4:  # unrolled for the most frequent case
        for i in range(m):
            index, offset, moment0 = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            moment1 = moment0 * offset
            moment2 = moment1 * offset
            sums[index] += moment0
            sums[index + 1] += moment1
            sums[index + 2] += moment2
            sums[index + 3] += moment2 * offset
    else:
        for i in range(m):
            index, offset, term = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            for k in range(powers):
                sums[index + np.uint32(k)] += term
                term *= offset


@compile_kernel
def add_cell_moments(x, mass, first, cells_per_unit, middle, out):  # type: ignore[no-untyped-def]
    cell_offset, position_in_cell = np.empty(_ROWS_PER_CELL_PASS, dtype=np.int32), np.empty(_ROWS_PER_CELL_PASS)
    for start in range(0, x.shape[0], _ROWS_PER_CELL_PASS):
        m = min(_ROWS_PER_CELL_PASS, x.shape[0] - start)
        add_block_moments(
            x[start : start + m],
            mass[start : start + m],
            m,
            first,
            cells_per_unit,
            middle,
            cell_offset,
            position_in_cell,
            out,
        )


@compile_kernel
def _fill_residuals(p, y, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = np.float64(y[i]) - np.float64(p[i])


def residual_function(p: Array, y: Array, w: Array | None) -> Callable[[int, int], Array]:
    """Return a function that computes the residuals w(y − p) of the rows start..stop−1, for `cell_moments`."""

    def mass(start: int, stop: int) -> Array:
        out = np.empty(stop - start)
        _fill_residuals(as_plain_array(p[start:stop]), as_plain_array(y[start:stop]), out)
        return out if w is None else np.multiply(out, w[start:stop], out=out)

    return mass


def cell_moments(
    x: Array,
    mass: Callable[[int, int], Array],
    cells: int,
    powers: int,
    *,
    first: float = 0.0,
    last: float = 1.0,
    middle: float = 0.0,
) -> Array:
    """Return Σ mass · u^k in each of the equal cells of [first, last], for k = 0, …, powers − 1, (cells, powers).

    `mass(start, stop)` returns the masses of these rows, so that they need not be in memory at once. u is the position
    in a cell, as a fraction of its width, from −`middle` to 1 − `middle`. Scores beyond the ends belong to the outer
    cells.
    """
    x, cells_per_unit = as_plain_array(x), cells / (last - first)

    def add_rows(start: int, stop: int, out: Array) -> None:
        for block_start in range(start, stop, _ROWS_PER_MASS_BLOCK):
            block_stop = min(block_start + _ROWS_PER_MASS_BLOCK, stop)
            add_cell_moments(
                x[block_start:block_stop],
                as_plain_array(mass(block_start, block_stop)),
                first,
                cells_per_unit,
                middle,
                out,
            )

    return sum_blocks(add_rows, len(x), (cells, powers), block=2 * _ROWS_PER_MASS_BLOCK)
