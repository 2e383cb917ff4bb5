"""Find the confidence (largest probability) of each row and whether its class was observed, and sum both per bin.

If several classes have the largest probability, the lowest class number counts. Short rows are transposed in tiles of
ROWS_PER_TILE rows (ROWS in shapes), so that loops over the rows are vectorized; long rows are searched one by one.
P is (n, K), and labels y are (n,) int64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering, map_blocks, sum_blocks
from trueodds.kernels.bin_sums import add_bin_sums_by_label
from trueodds.kernels.bins import bin_thresholds, exact_scale, merge_outer_bins
from trueodds.kernels.cell_moments import add_cell_moments
from trueodds.kernels.fine_grid import CELL_EDGES, find_column_cells
from trueodds.kernels.grid_sums import add_outcome
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows
from trueodds.kernels.score_keys import encode_rows, score_bits

MAX_TRANSPOSED_CLASSES = 16  # number of classes above which rows are searched without transposing
# Number of values per thread task: for short rows, for long rows, which are read faster, and for rows copied first.
_SHORT_ROW_VALUES_PER_TASK, _LONG_ROW_VALUES_PER_TASK, _COPIED_VALUES_PER_TASK = 2**19, 2**21, 2**18


@compile_inline
def find_two_largest(columns, m, top, second, top_class):  # type: ignore[no-untyped-def]
    """Find the largest value of each row, the lowest class that has it, and the second largest value.

    `columns` (K, ROWS) are m transposed rows. The results are written to `top`, `top_class` and `second`, (≥ m,). The
    second value is equal to the first one if the maximum is tied.
    """
    k = columns.shape[0]
    for i in range(m):
        top[i] = columns[0, i]
        second[i] = -1.0
        top_class[i] = 0
    for c in range(1, k - 1, 2):  # two columns at a time, to halve the number of stores
        column, next_column = columns[c], columns[c + 1]
        for i in range(m):
            value, largest, second_largest, largest_class = column[i], top[i], second[i], top_class[i]
            larger = value > largest
            smaller = largest if larger else value
            second_largest = smaller if smaller > second_largest else second_largest
            largest_class = np.int32(c) if larger else largest_class
            largest = value if larger else largest
            value = next_column[i]
            larger = value > largest
            smaller = largest if larger else value
            second[i] = smaller if smaller > second_largest else second_largest
            top_class[i] = np.int32(c + 1) if larger else largest_class
            top[i] = value if larger else largest
    if k % 2 == 0:
        column = columns[k - 1]
        for i in range(m):
            value, largest = column[i], top[i]
            larger = value > largest
            smaller = largest if larger else value
            second[i] = smaller if smaller > second[i] else second[i]
            top_class[i] = np.int32(k - 1) if larger else top_class[i]
            top[i] = value if larger else largest


@compile_kernel
def _find_maxima_of_short_rows(P, columns, second, top, top_class):  # type: ignore[no-untyped-def]
    """Write the maximum of each short row to `top` and its lowest class to `top_class`; return the number of ties."""
    ties = 0
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, 0, columns)
        values = top[start : start + m]
        find_two_largest(columns, m, values, second, top_class[start : start + m])
        for i in range(m):
            ties += values[i] == second[i]
    return ties


@compile_kernel
def _find_maxima_of_long_rows(bits, top, top_class):  # type: ignore[no-untyped-def]
    """Write the bits of the largest value of each long row to `top`, and the lowest class that has it to `top_class`.

    Values are compared by their bits, which is faster: bits of nonnegative floats have the same order as the floats.
    Return the number of ties.
    """
    ties, k = 0, np.int32(bits.shape[1])
    for i in range(bits.shape[0]):
        row = bits[i]
        highest = row[0]
        for c in range(k):
            highest = max(highest, row[c])
        first, count = k, np.int32(0)
        for c in range(k):
            is_maximum = row[c] == highest
            count += np.int32(is_maximum)
            first = min(first, np.int32(c) if is_maximum else k)
        top_class[i], top[i] = first, highest
        ties += int(count > 1)
    return ties


@compile_kernel
def _compare_with_labels(top_class, y, correct):  # type: ignore[no-untyped-def]
    for i in range(correct.shape[0]):
        correct[i] = np.int64(top_class[i]) == y[i]


def _as_integers(P: Array) -> Array:
    return P.view(np.int32 if P.dtype == np.float32 else np.int64)


def _kernel_layout(P: Array) -> tuple[Array, int]:
    """Return the rows P and the number of rows per thread task; a layout that requires a copy is made per task."""
    needs_no_copy = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    if not needs_no_copy:
        return P, max(1, _COPIED_VALUES_PER_TASK // P.shape[1])
    has_long_rows = P.shape[1] > MAX_TRANSPOSED_CLASSES
    values_per_task = _LONG_ROW_VALUES_PER_TASK if has_long_rows else _SHORT_ROW_VALUES_PER_TASK
    return as_plain_array(P), max(1, values_per_task // P.shape[1])


def _find_largest(P: Array, top: Array, top_class: Array) -> int:
    """Write the largest value of each row of a block P (m, K) and its lowest class; return the number of ties."""
    if P.shape[1] > MAX_TRANSPOSED_CLASSES:
        return int(_find_maxima_of_long_rows(_as_integers(P), _as_integers(top), top_class))
    columns, second = np.empty((P.shape[1], ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    return int(_find_maxima_of_short_rows(P, columns, second, top, top_class))


def _find_correctness(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return each row's largest value, whether its class is the label y (1 or 0), and the number of ties."""
    top, correct = np.empty(len(P), dtype=P.dtype), np.empty(len(P), dtype=np.int64)
    top_class = np.empty(len(P), dtype=np.int32)
    ties = _find_largest(P, top, top_class)
    _compare_with_labels(top_class, y, correct)
    return top, correct, ties


def _iterate_blocks(P: Array, start: int, stop: int, rows_per_block: int) -> Iterator[tuple[Array, slice]]:
    for first in range(start, stop, rows_per_block):
        rows = slice(first, min(first + rows_per_block, stop))
        yield as_plain_array(P[rows]), rows


def confidence_sums(
    P: Array, y: Array, edges: Array, closed: str, sample: Array | None = None, step: int = 1
) -> tuple[Array, int]:
    """Return n, Σp and Σp² of the top probability per bin, (bins, 2, 3), for incorrect and correct rows, and the ties.

    `sample` (⌈n / step⌉,) receives the top probability of every `step`-th row.
    """
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    thresholds, scale, n_bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    (P, rows_per_task), y = _kernel_layout(P), as_plain_array(y)
    ties: list[int] = []

    def add_rows(start: int, stop: int, out: Array) -> None:
        for block, rows in _iterate_blocks(P, start, stop, rows_per_task):
            top, correct, tied = _find_correctness(block, y[rows])
            add_bin_sums_by_label(as_plain_array(top), as_plain_array(correct), 1, thresholds, n_bins, scale, out)
            ties.append(tied)
            if sample is not None:
                first = -(-rows.start // step)  # number of the first sampled row from here on
                sampled = top[first * step - rows.start :: step]
                sample[first : first + len(sampled)] = sampled

    table = sum_blocks(add_rows, len(P), (2 * (n_bins + 2), 3), block=rows_per_task)
    return merge_outer_bins(table.reshape(n_bins + 2, 6)).reshape(n_bins, 2, 3), sum(ties)


def confidence_moments(P: Array, y: Array, cells: int, powers: int) -> tuple[Array, int]:
    """Return the moments (see `cell_moments`) of correctness minus confidence per cell, and the number of tied rows."""
    (P, rows_per_task), y = _kernel_layout(P), as_plain_array(y)
    ties: list[int] = []

    def add_rows(start: int, stop: int, out: Array) -> None:
        for block, rows in _iterate_blocks(P, start, stop, rows_per_task):
            top, correct, tied = _find_correctness(block, y[rows])
            add_cell_moments(as_plain_array(top), correct - top.astype(np.float64), 0.0, float(cells), 0.0, out)
            ties.append(tied)

    return sum_blocks(add_rows, len(P), (cells, powers), block=2 * rows_per_task), sum(ties)


def row_maxima(P: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, the lowest class that has it (int32), and the number of tied rows."""
    top, top_class = _empty_maxima(P), np.empty(len(P), dtype=np.int32)
    P, rows_per_task = _kernel_layout(P)

    def find_maxima(start: int, stop: int) -> int:
        return _find_largest(as_plain_array(P[start:stop]), top[start:stop], top_class[start:stop])

    return top, top_class, sum(map_blocks(find_maxima, len(P), rows_per_task))


def confidence_and_correctness(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, whether its (lowest) class is the label, and the number of tied rows."""
    top, correct = _empty_maxima(P), np.empty(len(P), dtype=np.bool_)
    (P, rows_per_task), y = _kernel_layout(P), as_plain_array(y)

    def find_maxima(start: int, stop: int) -> int:
        top[start:stop], correct[start:stop], ties = _find_correctness(as_plain_array(P[start:stop]), y[start:stop])
        return ties

    return top, correct, sum(map_blocks(find_maxima, len(P), rows_per_task))


def confidence_keys(P: Array, y: Array) -> tuple[Array, int]:
    """Return keys of the largest values and their correctness as `encode_rows` does, and the number of tied rows."""
    keys = np.empty(len(P), dtype=score_bits(_empty_maxima(P[:0])).dtype)
    (P, rows_per_task), y = _kernel_layout(P), as_plain_array(y)

    def encode_maxima(start: int, stop: int) -> int:
        top, correct, ties = _find_correctness(as_plain_array(P[start:stop]), y[start:stop])
        keys[start:stop] = encode_rows(top, correct.astype(np.bool_))
        return ties

    return keys, sum(map_blocks(encode_maxima, len(P), rows_per_task))


def _empty_maxima(P: Array) -> Array:
    return np.empty(len(P), dtype=np.float32 if P.dtype == np.float16 else P.dtype)


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
    differ from 1 by more than `tolerance`, or a label is not a class; the sums are then incomplete. `bits` are the
    values as signed integers; `edges` and `exact` are as in `find_cells`.
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
    """Add the count, and Σp, Σp², Σc and Σpc by cell of the fine grid, to `n` (CELLS,) and `sums` (CELLS, 4).

    p is the largest value of a row of P (n, K), and c whether its lowest class is the label; sums of rows may differ
    from 1 by `tolerance`. The rows are validated in the same pass, so that a table is read from memory only once. The
    validation is conservative: rows that it does not accept may be valid, and are then processed by the general code,
    which reports errors. Returns the number of ties.

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
