"""Sum the confidence of rows per cell of the fine grid, and validate the rows in the same pass.

So a table is read from memory only once. The validation is conservative: rows that it does not accept may be valid, and
are then processed by the general code, which reports errors.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering
from trueodds.kernels.confidence import MAX_TRANSPOSED_CLASSES, find_two_largest
from trueodds.kernels.fine_grid import CELL_EDGES, find_column_cells
from trueodds.kernels.grid_sums import add_outcome
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows


@compile_reordering
def _find_sign_bits(bits):  # type: ignore[no-untyped-def]
    """Return a negative number if any of the values, whose bits these are, is negative, −0 or a negative NaN."""
    combined = bits.dtype.type(0)
    for i in range(bits.shape[0]):
        combined |= bits[i]
    return combined


@compile_inline
def _count_invalid_rows(columns, bits, y, largest, tolerance, total):  # type: ignore[no-untyped-def]
    """Return 0 if all rows of a tile, transposed `columns` (K, ROWS), are valid, else a positive number.

    `bits` are the values, row by row, as signed integers; `largest` (m,) each row's largest; `total` (ROWS,) a buffer.
    """
    m, k, one = y.shape[0], columns.shape[0], columns.dtype.type(1.0)
    max_deviation = columns.dtype.type(tolerance)
    for i in range(m):
        total[i] = columns[0, i]
    for c in range(1, k):
        column = columns[c]
        for i in range(m):
            total[i] += column[i]
    invalid, outside = np.int32(0), np.int64(0)  # with these types, the loops are vectorized
    for i in range(m):
        is_sum_valid = abs(total[i] - one) <= max_deviation  # false for sums of a NaN or an infinity
        invalid += np.int32(not (is_sum_valid & (largest[i] <= one)))
    for i in range(m):
        outside |= y[i] | (k - 1 - y[i])  # negative if a label is not a class
    return np.int64(invalid) + np.int64(outside < 0) + np.int64(_find_sign_bits(bits) < 0)


@compile_kernel
def _sum_tiles(P, bits, y, tolerance, edges, exact, n, sums):  # type: ignore[no-untyped-def]
    """Add each row's largest value, and whether its lowest class is the label, to `n` (CELLS,) and `sums` (CELLS, 4).

    Return the number of rows with a tied maximum, or −1 if a value may be outside of [0, 1], the sum of a row may
    differ from 1 by more than `tolerance`, or a label is not a class; the sums are then incomplete.
    """
    k, ties = P.shape[1], np.int64(0)
    columns, cells = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=np.int32)
    largest, second = np.empty(ROWS_PER_TILE, dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    total, top_class = np.empty(ROWS_PER_TILE, dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=np.int32)
    x, complement, outcome = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        labels, tile_bits = y[start : start + m], bits[start * k : (start + m) * k]
        transpose_rows(P, start, m, 0, columns)
        find_two_largest(columns, m, largest, second, top_class)
        if _count_invalid_rows(columns, tile_bits, labels, largest, tolerance, total) > 0:
            return -1
        tied = np.int32(0)
        for i in range(m):
            tied += np.int32(largest[i] == second[i])
        ties += np.int64(tied)
        find_column_cells(largest, m, edges, exact, x, complement, cells)
        for i in range(m):  # a loop of its own, which is vectorized
            outcome[i] = 1.0 if np.int64(top_class[i]) == labels[i] else 0.0
        for i in range(m):
            add_outcome(np.uint32(cells[i]), x[i], outcome[i], n, sums)
    return ties


def sum_validated_confidence(P: Array, y: Array, tolerance: float, n: Array, sums: Array) -> int | None:
    """Add the count, Σp, Σp², Σy and Σpy of each row's confidence to `n` and `sums` by cell; return the number of ties.

    None if a row may be invalid, or if this code does not take the rows: with two or with many classes, or of other
    dtypes than float32 or float64 with labels of int64. `n` and `sums` are then incomplete.
    """
    has_fast_layout = P.ndim == 2 and P.flags.c_contiguous and P.flags.aligned and P.dtype in (np.float32, np.float64)
    if not has_fast_layout or not 2 < P.shape[1] <= MAX_TRANSPOSED_CLASSES:
        return None
    if y.dtype != np.int64 or y.shape != (len(P),):
        return None
    P, eps, is_float32 = as_plain_array(P), float(np.finfo(P.dtype).eps), P.dtype == np.float32
    bits = P.view(np.int32 if is_float32 else np.int64).reshape(-1)
    max_deviation = tolerance - P.shape[1] * eps  # the sum of a row is rounded less than K times
    ties = int(_sum_tiles(P, as_plain_array(bits), as_plain_array(y), max_deviation, CELL_EDGES, is_float32, n, sums))
    return None if ties < 0 else ties
