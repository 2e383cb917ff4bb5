"""Compute statistics of each row of probabilities, such as its confidence (largest probability) and sum, and check it.

Confidence is summed per bin, with whether its class was observed. If several classes have the largest probability, the
lowest class number counts. Short rows are transposed in tiles of ROWS_PER_TILE rows (ROWS in the shapes below), so that
loops over the rows are vectorized; long rows are processed one by one. P is (n, K), and labels y are (n,) int64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering, map_blocks, sum_blocks
from trueodds.kernels.bins import add_bin_sums_by_label, bin_search, merge_outer_bins, score_bits
from trueodds.kernels.fine_grid import CELL_EDGES, ROWS_PER_TILE, add_outcome, find_column_cells, transpose_rows
from trueodds.kernels.parallel import MAX_NUMPY_VALUES
from trueodds.kernels.smoothing import add_cell_moments
from trueodds.kernels.sorting import encode_rows

_MAX_TRANSPOSED_COLUMNS = 64  # number of columns up to which transposing is faster
# Number of values per run of a long row. After removing the maximum, only its run is searched again.
_VALUES_PER_RUN = 32


@compile_kernel
def summarize_rows(P, bits, rounding_tolerance, top_classes, squares, counts, extremes):  # type: ignore[no-untyped-def]
    """Find the largest values of each row of P (n, K), its Σp², and the counts of special values, in one pass.

    `bits` is P as signed integers, which have the same order as the values. `top_classes` (n, ranks) receives the
    columns of the up to three largest values, lower columns first if tied. `counts` (5,) is increased by the numbers of
    exact zeros, exact ones, values above 1, rows whose sum differs from 1 by more than rounding, and rows with a tied
    maximum. `extremes` (2,) are the largest excess of a value over 1 and the largest such difference.
    """
    n, k = P.shape
    if k > _MAX_TRANSPOSED_COLUMNS:
        remaining, run_max = np.empty(k, dtype=bits.dtype), np.empty(-(-k // _VALUES_PER_RUN), dtype=bits.dtype)
        row_top_classes = np.empty(3, dtype=np.int64)
        for i in range(n):
            total, squares[i] = _sum_row(P[i])
            _count_inexact(total, rounding_tolerance, counts, extremes)
            _count_special_values(P[i : i + 1], k, counts, extremes)
            if top_classes.shape[1] > 0:
                counts[4] += _find_three_largest_of_long_row(bits[i], remaining, run_max, row_top_classes)
                for rank in range(top_classes.shape[1]):
                    top_classes[i, rank] = row_top_classes[rank]
        return
    ranks = top_classes.shape[1]
    columns, (total, square) = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty((2, ROWS_PER_TILE))
    top, top_class = np.empty((2, 3, ROWS_PER_TILE), dtype=P.dtype)
    for start in range(0, n, ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, n - start)
        transpose_rows(P, start, m, 0, columns)
        _sum_columns(columns, m, total, square)
        for i in range(m):
            _count_inexact(total[i], rounding_tolerance, counts, extremes)
            squares[start + i] = square[i]
        _count_special_values(columns, m, counts, extremes)
        if ranks > 0:
            _find_three_largest(columns, m, top[0], top[1], top[2], top_class[0], top_class[1], top_class[2])
            for i in range(m):
                counts[4] += top[0, i] == top[1, i]
            for rank in range(ranks):
                for i in range(m):
                    top_classes[start + i, rank] = np.int32(top_class[rank, i])


@compile_kernel
def summarize_row_groups(P, bits, rounding_tolerance, starts, top_classes, squares, counts, extremes):  # type: ignore[no-untyped-def]
    """Apply `summarize_rows` to each of G groups of rows, starts[g]..starts[g + 1] − 1."""
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        summarize_rows(
            P[start:stop],
            bits[start:stop],
            rounding_tolerance,
            top_classes[start:stop],
            squares[start:stop],
            counts[group],
            extremes[group],
        )


@compile_inline
def _sum_columns(columns, m, total, square):  # type: ignore[no-untyped-def]
    total[:], square[:] = 0.0, 0.0
    for j in range(columns.shape[0]):
        column = columns[j]
        for i in range(m):
            value = np.float64(column[i])
            total[i] += value
            square[i] += value * value


@compile_reordering
def _sum_row(row):  # type: ignore[no-untyped-def]
    total = square = 0.0
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        total += value
        square += value * value
    return total, square


@compile_inline
def _count_inexact(total, rounding_tolerance, counts, extremes):  # type: ignore[no-untyped-def]
    """Count a row sum that differs from 1 by more than rounding, and update the largest such difference."""
    distance = abs(total - 1.0)
    counts[3] += distance > rounding_tolerance
    extremes[1] = max(extremes[1], distance if distance > rounding_tolerance else 0.0)


@compile_reordering
def _count_special_values(columns, m, counts, extremes):  # type: ignore[no-untyped-def]
    """Add the numbers of values 0, 1 and above 1 to `counts`, and update the largest excess over 1 in `extremes`.

    The counters have the dtype of the values, so that the loop is vectorized.
    """
    one, zero = columns.dtype.type(1.0), columns.dtype.type(0.0)
    zeros, ones, above = zero, zero, zero
    for j in range(columns.shape[0]):
        column = columns[j]
        for i in range(m):
            value = column[i]
            zeros += one if value == zero else zero
            ones += one if value == one else zero
            above += one if value > one else zero
    counts[0] += np.int64(zeros)
    counts[1] += np.int64(ones)
    counts[2] += np.int64(above)
    if above > zero:
        for j in range(columns.shape[0]):
            for i in range(m):
                extremes[0] = max(extremes[0], np.float64(columns[j, i]) - 1.0)


@compile_inline
def _find_three_largest(columns, m, top1, top2, top3, class1, class2, class3):  # type: ignore[no-untyped-def]
    """Write the three largest values of m transposed rows to `top1`–`top3`, and their columns to `class1`–`class3`.

    Column numbers have the dtype of the values, so that the loop is vectorized.
    """
    low, first_class = columns.dtype.type(-1.0), columns.dtype.type(0.0)
    top1[:], top2[:], top3[:] = low, low, low
    class1[:], class2[:], class3[:] = first_class, first_class, first_class
    for j in range(columns.shape[0]):
        column, number = columns[j], columns.dtype.type(j)
        for i in range(m):
            value, first, second, third = column[i], top1[i], top2[i], top3[i]
            class_first, class_second, class_third = class1[i], class2[i], class3[i]
            top3[i] = second if value > second else (value if value > third else third)
            class3[i] = class_second if value > second else (number if value > third else class_third)
            top2[i] = first if value > first else (value if value > second else second)
            class2[i] = class_first if value > first else (number if value > second else class_second)
            top1[i] = value if value > first else first
            class1[i] = number if value > first else class_first


@compile_inline
def _find_three_largest_of_long_row(row_bits, remaining, run_max, top_classes):  # type: ignore[no-untyped-def]
    """Write the columns of a row's three largest values to `top_classes` (3,); return whether the maximum is tied.

    `remaining` (K,) and `run_max` (runs,) are buffers: values not selected yet, and the maximum of each run of them.
    """
    k, zero = row_bits.shape[0], row_bits.dtype.type(0)
    for c in range(k):
        remaining[c] = max(row_bits[c], zero)  # −0 is 0
    for run in range(run_max.shape[0]):
        run_max[run] = _max_value(remaining[run * _VALUES_PER_RUN : (run + 1) * _VALUES_PER_RUN])
    first, tied = zero, False
    for rank in range(3):
        top_run = np.argmax(run_max)  # the first one if tied
        top, values = run_max[top_run], remaining[top_run * _VALUES_PER_RUN : (top_run + 1) * _VALUES_PER_RUN]
        c = 0
        while values[c] != top:
            c += 1
        top_classes[rank], values[c] = top_run * _VALUES_PER_RUN + c, -1
        run_max[top_run] = _max_value(values)
        tied |= rank == 1 and top == first
        first = top
    return tied


@compile_inline
def _max_value(values):  # type: ignore[no-untyped-def]
    largest = values[0]
    for i in range(values.shape[0]):
        largest = max(largest, values[i])
    return largest


@compile_kernel
def score_rows(P, y, squares, single_column, brier, loss):  # type: ignore[no-untyped-def]
    """Write the Brier score Σ(p − y)² and the log loss of each row, given its `squares` Σp² (n,).

    With two classes, or with `single_column` the probability of the second one, the Brier score is that of the second
    class, without a factor of 2.
    """
    k = P.shape[1]
    for i in range(P.shape[0]):
        if k <= 2:
            p = np.float64(P[i, k - 1])
            observed = p if y[i] == 1 else (1.0 - p if single_column else np.float64(P[i, 0]))
            brier[i] = (p - y[i]) * (p - y[i])
        else:
            observed = np.float64(P[i, y[i]])
            brier[i] = squares[i] - 2.0 * observed + 1.0
        loss[i] = -math.log(observed) if observed > 0 else np.inf


_ROWS_PER_TILE = 256  # number of rows transposed at a time
_MAX_TRANSPOSED_CLASSES = 16  # number of classes above which rows are summed without transposing
_VALUES_PER_TASK = 2**18  # number of values per thread task


class TableCheck(NamedTuple):
    """Result of one validation pass over a table of probabilities."""

    lowest: float  # smallest value; a value with a sign bit (negative, −0 or NaN) takes precedence
    highest: float  # largest value
    worst_row: int  # index of the row whose sum is farthest from 1
    largest_deviation: float  # absolute difference of that sum from 1
    n_inexact: int  # number of rows whose sum differs from 1 by more than rounding


@compile_reordering
def _check_rows(P, bits, rounding_tolerance, extremes, bad_rows, distance):  # type: ignore[no-untyped-def]
    """Write the smallest and largest value of `bits` to `extremes` (2,), and check the row sums.

    `bad_rows` (2,) receives the number of rows whose sum differs from 1 by more than `rounding_tolerance`, and the
    index of the row with the largest difference; `distance` (1,) receives this difference. `bits` is P as signed
    integers. Those of nonnegative floats are ordered like the floats; those of numbers with a sign bit are negative,
    and those of NaN exceed all others.
    """
    n, k = P.shape
    all_bits = bits.reshape(-1)
    low, high = all_bits[0], all_bits[0]
    total, columns = (
        np.empty(_ROWS_PER_TILE),
        np.empty((k if k <= _MAX_TRANSPOSED_CLASSES else 1, _ROWS_PER_TILE), dtype=P.dtype),
    )
    for start in range(0, n, _ROWS_PER_TILE):
        m = min(_ROWS_PER_TILE, n - start)
        rows, values = P[start : start + m], all_bits[start * k : (start + m) * k]
        for j in range(m * k):
            low, high = min(low, values[j]), max(high, values[j])
        if k <= _MAX_TRANSPOSED_CLASSES:
            total[:m] = 0.0
            for c in range(k):
                column = columns[c]
                for i in range(m):
                    column[i] = rows[i, c]
                for i in range(m):
                    total[i] += np.float64(column[i])
        else:
            for i in range(m):
                row, row_sum = rows[i], 0.0
                for c in range(k):
                    row_sum += np.float64(row[c])
                total[i] = row_sum
        for i in range(m):
            difference = abs(total[i] - 1.0)
            bad_rows[0] += not difference <= rounding_tolerance
            if difference > distance[0]:
                distance[0] = difference
                bad_rows[1] = start + i
    extremes[0], extremes[1] = low, high


def check_table(P: Array, rounding_tolerance: float) -> TableCheck:
    """Check the values and row sums of P (n, K) in one pass; deviations up to the tolerance are rounding."""
    integer_type = np.int64 if P.dtype == np.float64 else np.int32

    def check_block(start: int, stop: int) -> tuple[Array, Array, Array]:
        block = as_plain_array(P[start:stop])
        extremes, bad_rows, distance = np.empty(2, dtype=integer_type), np.zeros(2, dtype=np.int64), np.zeros(1)
        _check_rows(block, as_plain_array(block.view(integer_type)), rounding_tolerance, extremes, bad_rows, distance)
        bad_rows[1] += start
        return extremes.view(block.dtype), bad_rows, distance

    blocks = map_blocks(check_block, len(P), max(1, _VALUES_PER_TASK // P.shape[1]))
    extremes, bad_rows, distance = (np.array(arrays) for arrays in zip(*blocks, strict=True))  # a row per block
    worst_block = int(np.argmax(distance[:, 0]))  # the first one if tied
    return TableCheck(
        lowest=_smallest_value(extremes[:, 0]),
        highest=float(np.max(extremes[:, 1])),
        worst_row=int(bad_rows[worst_block, 1]),
        largest_deviation=float(distance[worst_block, 0]),
        n_inexact=int(bad_rows[:, 0].sum()),
    )


def _smallest_value(block_minima: Array) -> float:
    """Return the smallest value of the blocks; a value with a sign bit takes precedence over all others."""
    signed = block_minima[np.signbit(block_minima)]
    return float(signed[0] if len(signed) else np.min(block_minima))


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
    if P.size <= MAX_NUMPY_VALUES:
        return _find_largest_of_few(P, top, top_class)
    columns, second = np.empty((P.shape[1], ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    return int(_find_maxima_of_short_rows(P, columns, second, top, top_class))


def _find_largest_of_few(P: Array, top: Array, top_class: Array) -> int:
    """Compute what `_find_maxima_of_short_rows` does, class by class with NumPy, so that nothing is compiled."""
    top[:], top_class[:] = P[:, 0], 0
    for c in range(1, P.shape[1]):
        np.copyto(top_class, c, where=P[:, c] > top)
        np.maximum(top, P[:, c], out=top)
    return int(np.count_nonzero((P.T == top).sum(axis=0) > 1))


def _find_correctness(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return each row's largest value, whether its class is the label y (1 or 0), and the number of ties."""
    top, correct = np.empty(len(P), dtype=P.dtype), np.empty(len(P), dtype=np.int64)
    top_class = np.empty(len(P), dtype=np.int32)
    ties = _find_largest(P, top, top_class)
    compare: Any = np.equal if P.size <= MAX_NUMPY_VALUES else _compare_with_labels
    compare(top_class, y, correct)
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
    thresholds, n_bins, scale = bin_search(edges, closed, P.dtype)
    (P, rows_per_task), y = _kernel_layout(P), as_plain_array(y)
    ties: list[int] = []

    def add_rows(start: int, stop: int, out: Array) -> None:
        for block, rows in _iterate_blocks(P, start, stop, rows_per_task):
            top, correct, tied = _find_correctness(block, y[rows])
            add_bin_sums_by_label(top, correct, 1, thresholds, n_bins, scale, out)
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
