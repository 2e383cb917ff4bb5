"""Find the cell of the fine grid on [0, 1] for each value, and join tables of occupied cells."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows

N_EQUAL_CELLS = 3840  # number of equal cells, 2⁸·3·5: a multiple of 10, 12, 15, 16, 20, 30 and 64 bins
N_HALVINGS = 20  # number of times the first and the last cell are halved
N_CELLS = N_EQUAL_CELLS + 2 * N_HALVINGS


def _edges() -> Array:
    halves = 1 / N_EQUAL_CELLS / 2.0 ** np.arange(1, N_HALVINGS + 1)
    # Not linspace: with i/k, i/3840 and j/15 are the same float wherever the numbers are equal.
    return np.concatenate(([0.0], halves[::-1], np.arange(1, N_EQUAL_CELLS) / N_EQUAL_CELLS, 1 - halves, [1.0]))


CELL_EDGES: Array = _edges()  # (CELLS + 1,)
CELL_EDGES.flags.writeable = False
CELL_MIDDLES: Array = (
    CELL_EDGES[:-1] + CELL_EDGES[1:]
) / 2  # strictly inside: coarser bins contain a cell's middle with its rows
CELL_MIDDLES.flags.writeable = False

# The bits of positive floats have the same order as the floats, so a shift by the mantissa's width finds the halved
# cell without a search.
_BITS = int(np.float64(1 / N_EQUAL_CELLS).view(np.int64))
_FRACTION = (1 << 52) - 1
_MANTISSA = _BITS & _FRACTION
_EXPONENT = _BITS >> 52
_FIRST = 1 / N_EQUAL_CELLS
_LAST = (N_EQUAL_CELLS - 1) / N_EQUAL_CELLS
# 1 − x is exact, but the stored edges near 1 are rounded, by less than this difference of mantissas.
_NEAR_ONE = 1 << 31


@compile_kernel
def find_cells(x, q, edges, exact, cells):  # type: ignore[no-untyped-def]
    """Write the fine cell of each x to `cells`, given q = 1 − x; `exact` if arithmetic is exact, as for float32."""
    x_bits = x.view(np.int64)
    q_bits = q.view(np.int64)
    for j in range(x.shape[0]):
        middle = np.int64(np.int32(np.ceil(x[j] * N_EQUAL_CELLS))) + (N_HALVINGS - 1)
        low = max(((x_bits[j] - 1 - _MANTISSA) >> 52) - (_EXPONENT - 1 - N_HALVINGS), 0)
        high = min(N_EQUAL_CELLS + N_HALVINGS - 1 + (_EXPONENT - 1) - ((q_bits[j] - _MANTISSA) >> 52), N_CELLS - 1)
        cells[j] = low if x[j] <= _FIRST else (high if x[j] > _LAST else middle)
    if exact:
        return
    near = 0  # the float64 product can round across an edge, by less than 1e-12; x is then compared with the edges
    for j in range(x.shape[0]):
        t = x[j] * N_EQUAL_CELLS
        inner = (x[j] > _FIRST) & (abs(t - np.rint(t)) < 1e-11)
        near += abs((q_bits[j] & _FRACTION) - _MANTISSA) < _NEAR_ONE if x[j] > _LAST else inner
    if near > 0:
        for j in range(x.shape[0]):
            c = np.int64(cells[j])
            c += np.int64(x[j] > edges[c + 1]) - np.int64(x[j] <= edges[c])
            cells[j] = min(max(c, 0), N_CELLS - 1)


@compile_kernel
def find_column_cells(column, m, edges, exact, x, q, cells):  # type: ignore[no-untyped-def]
    """Write the fine cells of the first m values of a column to `cells`; x and q are float64 buffers of m or more."""
    for i in range(m):
        x[i] = column[i] + 0.0  # −0 becomes 0, whose bits are the lowest
    for i in range(m):
        q[i] = 1.0 - x[i]
    find_cells(x[:m], q[:m], edges, exact, cells[:m])


@compile_kernel
def find_tile_cells(P, start, m, first, edges, exact, columns, x, q, cells):  # type: ignore[no-untyped-def]
    """Transpose m rows of P from `start` into `columns` (k, ROWS), from class `first` on, and find their `cells`."""
    transpose_rows(P, start, m, first, columns)
    for c in range(columns.shape[0]):
        find_column_cells(columns[c], m, edges, exact, x, q, cells[c])


@compile_kernel
def find_class_cells(P, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """Write the fine cell of every value of the classes first..last−1 of P to `out` (n, last − first) uint16.

    `out` is best in Fortran order, because it is written class by class.
    """
    k = last - first
    columns = np.empty((k, ROWS_PER_TILE), dtype=P.dtype)
    x, q, cells = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE, dtype=np.int32)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, first, columns)
        for c in range(k):
            find_column_cells(columns[c], m, edges, exact, x, q, cells)
            column = out.T[c]
            for i in range(m):
                column[start + i] = cells[i]


def count_subcells(p: Array, index: Array, size: int) -> tuple[Array, Array, Array]:
    """Split bins into fine cells: return bin, number of rows and mean of p of each nonempty part, sorted by bin.

    p (n,) are the scores, `index` (n,) their bins and `size` the number of bins.
    """
    p, index = as_plain_array(p), as_plain_array(index)
    cell = np.empty((1, len(p)), dtype=np.uint16).T
    find_class_cells(p[:, None], 0, 1, CELL_EDGES, p.dtype == np.float32, cell)
    low, high = np.full(size, N_CELLS), np.full(size, -1)
    _cell_range(index, cell[:, 0], low, high)
    width = np.maximum(high - low + 1, 0)
    sums = np.zeros((int(width.sum()), 2))
    _add_subcells(index, cell[:, 0], p, np.cumsum(width) - width - low, sums)
    occupied = sums[:, 0] > 0
    n, total = sums[occupied].T
    return np.repeat(np.arange(size), width)[occupied], n, total / n


@compile_kernel
def _cell_range(index, cell, low, high):  # type: ignore[no-untyped-def]
    """Write the first and the last cell of each bin to `low` and `high`."""
    for i in range(index.shape[0]):
        b, c = index[i], np.int64(cell[i])
        low[b] = min(low[b], c)
        high[b] = max(high[b], c)


@compile_kernel
def _add_subcells(index, cell, p, first, out):  # type: ignore[no-untyped-def]
    for i in range(index.shape[0]):
        s = first[index[i]] + np.int64(cell[i])
        out[s, 0] += 1.0
        out[s, 1] += np.float64(p[i])


@compile_kernel
def pop_occupied_cells(table_n, table):  # type: ignore[no-untyped-def]
    """Return index, count and sums of the cells of a table with count table_n > 0; the table is set to zero."""
    size = 0
    for i in range(table_n.shape[0]):
        size += table_n[i] > 0
    index, n = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    sums = np.empty((size, table.shape[1]))
    m = 0
    for i in range(table_n.shape[0]):
        if table_n[i] > 0:
            index[m], n[m] = i, table_n[i]
            table_n[i] = 0
            for c in range(table.shape[1]):
                sums[m, c] = table[i, c]
                table[i, c] = 0.0
            m += 1
    return index, n, sums


@compile_kernel
def merge_cells(a, a_n, a_sums, b, b_n, b_sums):  # type: ignore[no-untyped-def]
    """Merge two tables of cells (sorted index, count, sums); cells with the same index are added."""
    at_a, at_b = np.empty(a.shape[0], dtype=np.uint32), np.empty(b.shape[0], dtype=np.uint32)
    i = j = m = 0
    while i < a.shape[0] and j < b.shape[0]:  # without branches, which would be unpredictable
        x, y = a[i], b[j]
        at_a[i], at_b[j] = m, m
        i += x <= y
        j += y <= x
        m += 1
    for rest in range(i, a.shape[0]):
        at_a[rest] = m + rest - i
    for rest in range(j, b.shape[0]):
        at_b[rest] = m + rest - j
    size = m + a.shape[0] - i + b.shape[0] - j
    index, n = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    sums = np.zeros((size, a_sums.shape[1]))
    _put_cell(at_a, a, a_n, a_sums, index, n, sums)
    _put_cell(at_b, b, b_n, b_sums, index, n, sums)
    return index, n, sums


@compile_kernel
def _put_cell(at, index, n, sums, into_index, into_n, into_sums):  # type: ignore[no-untyped-def]
    for i in range(at.shape[0]):
        m = at[i]
        into_index[m] = index[i]
        into_n[m] += n[i]
        for c in range(sums.shape[1]):
            into_sums[m, c] += sums[i, c]
