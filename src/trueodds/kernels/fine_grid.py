"""The fine grid on [0, 1]: its edges, the cell of each probability, and sums per class and cell.

Tallies store sums per cell of this grid. Bins whose edges are edges of the grid, such as 10, 15 or 20 bins of equal
width, can be computed from these sums exactly. Near 0 and 1, where small differences matter for logarithms, cells are
halved repeatedly. In shapes, K or k is the number of classes, CELLS is
N_CELLS, the number of cells, and ROWS is ROWS_PER_TILE.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel

# Number of rows transposed at a time, so that loops over the rows are vectorized. It is not a power of two, because
# columns would then share cache sets.
ROWS_PER_TILE = 240
# Saved: tallies number their cells by this grid.
N_EQUAL_CELLS = 3840  # number of equal cells, 2⁸·3·5: a multiple of 10, 12, 15, 16, 20, 30 and 64 bins
N_HALVINGS = 20  # number of times the first and the last cell are halved
N_CELLS = N_EQUAL_CELLS + 2 * N_HALVINGS


def _fine_edges() -> Array:
    halved_edges = 1 / N_EQUAL_CELLS / 2.0 ** np.arange(1, N_HALVINGS + 1)
    # Not linspace: with i/k, i/3840 and j/15 are the same float wherever the numbers are equal.
    return np.concatenate(
        ([0.0], halved_edges[::-1], np.arange(1, N_EQUAL_CELLS) / N_EQUAL_CELLS, 1 - halved_edges, [1.0])
    )


CELL_EDGES: Array = _fine_edges()  # (CELLS + 1,)
CELL_EDGES.flags.writeable = False
# Strictly inside the cells, so that a coarser bin contains the middle of each cell whose values it contains; (CELLS,).
CELL_MIDDLES: Array = (CELL_EDGES[:-1] + CELL_EDGES[1:]) / 2
CELL_MIDDLES.flags.writeable = False

# The bits of positive floats have the same order as the floats, so a shift by the mantissa's width finds the halved
# cell without a search.
_CELL_WIDTH_BITS = int(np.float64(1 / N_EQUAL_CELLS).view(np.int64))
_MANTISSA_WIDTH = 52  # bits of the mantissa of a float64
_MANTISSA_MASK = (1 << _MANTISSA_WIDTH) - 1
_CELL_WIDTH_MANTISSA = _CELL_WIDTH_BITS & _MANTISSA_MASK
_CELL_WIDTH_EXPONENT = _CELL_WIDTH_BITS >> _MANTISSA_WIDTH
# The exponent of x at the first cell, and the cell of a complement 1 − x with exponent 0.
_EXPONENT_OF_FIRST_CELL = _CELL_WIDTH_EXPONENT - 1 - N_HALVINGS
_CELL_OF_ZERO_EXPONENT = N_EQUAL_CELLS + N_HALVINGS - 1 + _CELL_WIDTH_EXPONENT - 1
_FIRST_EQUAL_EDGE = 1 / N_EQUAL_CELLS
_LAST_EQUAL_EDGE = (N_EQUAL_CELLS - 1) / N_EQUAL_CELLS
# 1 − x is exact, but the stored edges near 1 are rounded, by less than this difference of mantissas.
_EDGE_MANTISSA_TOLERANCE = 1 << 31


@compile_inline
def transpose_rows(P, start, m, first, columns):  # type: ignore[no-untyped-def]
    """Write m rows of P from `start` on, transposed, to `columns` (k, ROWS), for k classes from `first` on."""
    rows = P[start : start + m]
    for c in range(columns.shape[0]):
        column = columns[c]
        for i in range(m):
            column[i] = rows[i, first + c]


@compile_inline
def find_cells(x, complement, edges, exact, cells):  # type: ignore[no-untyped-def]
    """Write the fine cell of each x to `cells`, given `complement` = 1 − x, both float64.

    With `exact`, x · N_EQUAL_CELLS is taken to be exact, as for values that come from float32. `edges` is CELL_EDGES.
    """
    x_bits = x.view(np.int64)
    complement_bits = complement.view(np.int64)
    for j in range(x.shape[0]):
        equal_cell = np.int64(np.int32(np.ceil(x[j] * N_EQUAL_CELLS))) + (N_HALVINGS - 1)
        exponent = (x_bits[j] - 1 - _CELL_WIDTH_MANTISSA) >> _MANTISSA_WIDTH
        complement_exponent = (complement_bits[j] - _CELL_WIDTH_MANTISSA) >> _MANTISSA_WIDTH
        halved_first = max(exponent - _EXPONENT_OF_FIRST_CELL, 0)
        halved_last = min(_CELL_OF_ZERO_EXPONENT - complement_exponent, N_CELLS - 1)
        cells[j] = (
            halved_first if x[j] <= _FIRST_EQUAL_EDGE else (halved_last if x[j] > _LAST_EQUAL_EDGE else equal_cell)
        )
    if exact:
        return
    # The float64 product can round across an edge, by less than 1e-12; x is then compared with the edges.
    n_near_edges = 0
    for j in range(x.shape[0]):
        scaled = x[j] * N_EQUAL_CELLS
        is_near_edge = (x[j] > _FIRST_EQUAL_EDGE) & (abs(scaled - np.rint(scaled)) < 1e-11)
        n_near_edges += (
            abs((complement_bits[j] & _MANTISSA_MASK) - _CELL_WIDTH_MANTISSA) < _EDGE_MANTISSA_TOLERANCE
            if x[j] > _LAST_EQUAL_EDGE
            else is_near_edge
        )
    if n_near_edges > 0:
        for j in range(x.shape[0]):
            cell = np.int64(cells[j])
            cell += np.int64(x[j] > edges[cell + 1]) - np.int64(x[j] <= edges[cell])
            cells[j] = min(max(cell, 0), N_CELLS - 1)


@compile_inline
def find_column_cells(column, m, edges, exact, x, complement, cells):  # type: ignore[no-untyped-def]
    """Write the fine cells of the first m values of a column to `cells`; `x` and `complement` are float64 buffers."""
    for i in range(m):
        x[i] = column[i] + 0.0  # −0 becomes 0, whose bits are the lowest
    for i in range(m):
        complement[i] = 1.0 - x[i]
    find_cells(x[:m], complement[:m], edges, exact, cells[:m])


@compile_inline
def find_tile_cells(P, start, m, first, edges, exact, columns, x, complement, cells):  # type: ignore[no-untyped-def]
    """Transpose m rows of P from `start` into `columns` (k, ROWS), from class `first` on, and find their `cells`."""
    transpose_rows(P, start, m, first, columns)
    for c in range(columns.shape[0]):
        find_column_cells(columns[c], m, edges, exact, x, complement, cells[c])


@compile_kernel
def find_class_cells(P, first, last, edges, exact, out):  # type: ignore[no-untyped-def]
    """Write the fine cell of every value of the classes first..last−1 of P to `out` (last − first, n) uint16."""
    k = last - first
    columns = np.empty((k, ROWS_PER_TILE), dtype=P.dtype)
    x, complement, cells = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE, dtype=np.int32)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, first, columns)
        for c in range(k):
            find_column_cells(columns[c], m, edges, exact, x, complement, cells)
            for i in range(m):
                out[c, start + i] = cells[i]


def count_subcells(p: Array, index: Array, size: int) -> tuple[Array, Array, Array]:
    """Split bins into their fine cells; return bin, number of rows and mean score of each part, without empty parts."""
    p, index = as_plain_array(p), as_plain_array(index)
    cell = np.empty((1, len(p)), dtype=np.uint16)
    find_class_cells(p[:, None], 0, 1, CELL_EDGES, p.dtype == np.float32, cell)
    low, high = np.full(size, N_CELLS), np.full(size, -1)
    _find_cell_ranges(index, cell[0], low, high)
    width = np.maximum(high - low + 1, 0)
    sums = np.zeros((int(width.sum()), 2))
    _add_subcells(index, cell[0], p, np.cumsum(width) - width - low, sums)
    occupied = sums[:, 0] > 0
    n, total = sums[occupied].T
    return np.repeat(np.arange(size), width)[occupied], n, total / n


@compile_kernel
def _find_cell_ranges(index, cell, low, high):  # type: ignore[no-untyped-def]
    for i in range(index.shape[0]):
        bin_of_row, cell_of_row = index[i], np.int64(cell[i])
        low[bin_of_row] = min(low[bin_of_row], cell_of_row)
        high[bin_of_row] = max(high[bin_of_row], cell_of_row)


@compile_kernel
def _add_subcells(index, cell, p, first, out):  # type: ignore[no-untyped-def]
    """Add the count and Σp of each value to `out` (…, 2), at its fine cell plus the offset `first` of its bin."""
    for i in range(index.shape[0]):
        subcell = first[index[i]] + np.int64(cell[i])
        out[subcell, 0] += 1.0
        out[subcell, 1] += np.float64(p[i])


@compile_kernel
def pop_occupied_cells(table_n, table):  # type: ignore[no-untyped-def]
    """Return index (m,), count (m,) and sums (m, columns) of the occupied cells of a table, and set the table to zero.

    `table_n` (CELLS,) has the count of each cell, and `table` (CELLS, columns) its sums.
    """
    size = 0
    for i in range(table_n.shape[0]):
        size += table_n[i] > 0
    index, n = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    sums = np.empty((size, table.shape[1]))
    n_occupied = 0
    for i in range(table_n.shape[0]):
        if table_n[i] > 0:
            index[n_occupied], n[n_occupied] = i, table_n[i]
            table_n[i] = 0
            for c in range(table.shape[1]):
                sums[n_occupied, c] = table[i, c]
                table[i, c] = 0.0
            n_occupied += 1
    return index, n, sums


@compile_kernel
def merge_cells(index_a, n_a, sums_a, index_b, n_b, sums_b):  # type: ignore[no-untyped-def]
    """Merge two tables of occupied cells, as `pop_occupied_cells` returns them; cells with the same index are added."""
    positions_a, positions_b = np.empty(index_a.shape[0], dtype=np.uint32), np.empty(index_b.shape[0], dtype=np.uint32)
    i = j = n_merged = 0
    while i < index_a.shape[0] and j < index_b.shape[0]:  # without branches, which would be unpredictable
        cell_a, cell_b = index_a[i], index_b[j]
        positions_a[i], positions_b[j] = n_merged, n_merged
        i += cell_a <= cell_b
        j += cell_b <= cell_a
        n_merged += 1
    for remaining in range(i, index_a.shape[0]):
        positions_a[remaining] = n_merged + remaining - i
    for remaining in range(j, index_b.shape[0]):
        positions_b[remaining] = n_merged + remaining - j
    size = n_merged + index_a.shape[0] - i + index_b.shape[0] - j
    index, n = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    sums = np.zeros((size, sums_a.shape[1]))
    _add_cells_at(positions_a, index_a, n_a, sums_a, index, n, sums)
    _add_cells_at(positions_b, index_b, n_b, sums_b, index, n, sums)
    return index, n, sums


@compile_kernel
def _add_cells_at(positions, index, n, sums, out_index, out_n, out_sums):  # type: ignore[no-untyped-def]
    """Write the index of each cell to its position in `out_index`, and add its count and sums there."""
    for i in range(positions.shape[0]):
        position = positions[i]
        out_index[position] = index[i]
        out_n[position] += n[i]
        for c in range(sums.shape[1]):
            out_sums[position, c] += sums[i, c]


@compile_inline
def add_tile_sums(columns, cells, m, n, sums):  # type: ignore[no-untyped-def]
    """Add the counts of m rows to n (k·CELLS,), and their Σp and Σp² to the first two columns of sums (k·CELLS, …).

    `columns` (k, ROWS) are the transposed rows, and `cells` (k, ROWS) the cells of their values.
    """
    for c in range(columns.shape[0]):
        column, cell = columns[c], cells[c]
        count, total = n[c * N_CELLS : (c + 1) * N_CELLS], sums[c * N_CELLS : (c + 1) * N_CELLS]
        for i in range(m):
            index, value = np.uint32(cell[i]), np.float64(column[i])
            count[index] += 1
            total[index, 0] += value
            total[index, 1] += value * value


@compile_kernel
def tally_labels(P, y, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (k·CELLS,) and Σp, Σp², Σy, Σpy to sums (k·CELLS, 4) by class and cell, for labels (n,).

    Only the k classes first..last−1 of P are used; in the sums, y is 1 for the class of the label and 0 for the others.
    `edges` and `exact` are as in `find_cells`.
    """
    k = last - first
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, first, edges, exact, columns, x, complement, cells)
        add_tile_sums(columns, cells, m, n, sums)
        for i in range(m):
            c = y[start + i] - first
            if 0 <= c < k:
                index = c * N_CELLS + np.int64(cells[c, i])
                sums[index, 2] += 1.0
                sums[index, 3] += np.float64(columns[c, i])


@compile_kernel
def tally_outcomes(P, outcomes, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add the sums of `tally_labels` for binary outcomes of each class separately, `outcomes` (n, last − first)."""
    k = last - first
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((k, ROWS_PER_TILE), dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        find_tile_cells(P, start, m, first, edges, exact, columns, x, complement, cells)
        add_tile_sums(columns, cells, m, n, sums)
        for c in range(k):
            for i in range(m):
                index, outcome = c * N_CELLS + np.int64(cells[c, i]), np.float64(outcomes[start + i, c])
                sums[index, 2] += outcome
                sums[index, 3] += outcome * np.float64(columns[c, i])


@compile_kernel
def tally_weighted_shares(P, Y, w, first, last, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (k·CELLS,) and the nine sums of `add_weighted_outcome` to sums (k·CELLS, 9) by class and cell.

    The rows have weights w (n,) and outcome shares Y (n, last − first). The other arguments are those of
    `tally_labels`.
    """
    k = last - first
    columns, cell = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=np.int32)
    x, complement = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, first, columns)
        for c in range(k):
            find_column_cells(columns[c], m, edges, exact, x, complement, cell)
            count, total = n[c * N_CELLS : (c + 1) * N_CELLS], sums[c * N_CELLS : (c + 1) * N_CELLS]
            for i in range(m):
                add_weighted_outcome(np.uint32(cell[i]), w[start + i], x[i], Y[start + i, c], count, total)


@compile_kernel
def tally_bins(P, Y, w, bin_index, n, sums):  # type: ignore[no-untyped-def]
    """Add counts to n (m,) and the sums of `add_outcome` to sums (m, 4), by given bins instead of cells of the grid.

    P, the outcomes Y and `bin_index`, from 0 to m − 1, are (n, k), and the weights w (n,). If sums is (m, 9), it
    receives the sums of `add_weighted_outcome`.
    """
    for i in range(P.shape[0]):
        for c in range(P.shape[1]):
            index, p, outcome = bin_index[i, c], np.float64(P[i, c]), Y[i, c]
            if sums.shape[1] > 4:
                add_weighted_outcome(index, w[i], p, outcome, n, sums)
            else:
                add_outcome(index, p, outcome, n, sums)


@compile_inline
def add_outcome(index, p, y, n, sums):  # type: ignore[no-untyped-def]
    """Add a value p with outcome y to the count, Σp, Σp², Σy and Σpy at an index of `n` and `sums`."""
    n[index] += 1
    sums[index, 0] += p
    sums[index, 1] += p * p
    sums[index, 2] += y
    sums[index, 3] += y * p


@compile_inline
def add_weighted_outcome(index, w, p, y, n, sums):  # type: ignore[no-untyped-def]
    """Add a value p with outcome share y and weight w to the count and the weighted sums at an index.

    The sums are Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1 − p) and Σw²(y − p)².
    """
    n[index] += 1
    sums[index, 0] += w
    sums[index, 1] += w * p
    sums[index, 2] += w * y
    sums[index, 3] += w * w
    sums[index, 4] += w * p * p
    sums[index, 5] += w * p * y
    sums[index, 6] += w * y * y
    sums[index, 7] += w * w * p * (1.0 - p)
    sums[index, 8] += w * w * (y - p) * (y - p)
