"""Compute statistics of each row of probabilities, such as largest values, sum, Brier score and log loss, and check it.

Short rows are transposed in tiles of ROWS_PER_TILE rows (ROWS in the shapes below), so that loops over the rows are
vectorized; long rows are processed one by one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering, map_blocks

# Number of rows transposed at a time, so that loops over the rows are vectorized. It is not a power of two, because
# columns would then share cache sets.
ROWS_PER_TILE = 240
_MAX_TRANSPOSED_COLUMNS = 64  # number of columns up to which transposing is faster
# Number of values per run of a long row. After removing the maximum, only its run is searched again.
_VALUES_PER_RUN = 32


@compile_inline
def tile_buffers(P):  # type: ignore[no-untyped-def]
    """Return the buffers of `summarize_tile`: Σp and Σp² (ROWS,), the largest values and their columns (3, ROWS)."""
    sums, largest = np.empty((2, ROWS_PER_TILE)), np.empty((6, ROWS_PER_TILE), dtype=P.dtype)
    return sums[0], sums[1], largest[:3], largest[3:]


@compile_inline
def transpose_rows(P, start, m, first, columns):  # type: ignore[no-untyped-def]
    """Write m rows of P from `start` on, transposed, to `columns` (k, ROWS), for k classes from `first` on."""
    rows, values, next_rows = P[start : start + m], P.reshape(-1), (start + m) * P.shape[1]
    for c in range(columns.shape[0]):
        column = columns[c]
        if columns.shape[0] == P.shape[1]:  # the next rows are contiguous
            for i in range(0, m, CACHE_LINE // P.itemsize):
                prefetch(values, next_rows + c * m + i)
        for i in range(m):
            column[i] = rows[i, first + c]


@compile_inline
def summarize_tile(columns, m, rounding_tolerance, ranks, buffers, counts, extremes):  # type: ignore[no-untyped-def]
    """Write the statistics of m transposed rows, `columns` (K, ROWS), to `buffers`; add to `counts` and `extremes`.

    If `ranks` is 0, the largest values are not determined.
    """
    total, square, top, top_class = buffers
    _sum_columns(columns, m, total, square)
    for i in range(m):
        _count_inexact(total[i], rounding_tolerance, counts, extremes)
    _count_special_values(columns, m, counts, extremes)
    if ranks > 0:
        _find_three_largest(columns, m, top[0], top[1], top[2], top_class[0], top_class[1], top_class[2])
        for i in range(m):
            counts[4] += top[0, i] == top[1, i]


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
    columns, buffers = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), tile_buffers(P)
    _, square, _, tile_top_classes = buffers
    for start in range(0, n, ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, n - start)
        transpose_rows(P, start, m, 0, columns)
        summarize_tile(columns, m, rounding_tolerance, top_classes.shape[1], buffers, counts, extremes)
        for i in range(m):
            squares[start + i] = square[i]
        for rank in range(top_classes.shape[1]):
            for i in range(m):
                top_classes[start + i, rank] = np.int32(tile_top_classes[rank, i])


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


@compile_inline
def score_row(p, square):  # type: ignore[no-untyped-def]
    """Return the Brier score Σ(p − y)² and the log loss of a row with probability p of its label and `square` = Σp²."""
    return square - 2.0 * p + 1.0, -math.log(p) if p > 0 else np.inf


@compile_inline
def score_binary_row(p, q_first, y):  # type: ignore[no-untyped-def]
    """Return the Brier score (p − y)², without the factor 2 of `score_row`, and the log loss of a binary row."""
    observed = p if y == 1 else q_first
    return (p - y) * (p - y), -math.log(observed) if observed > 0 else np.inf


@compile_kernel
def score_rows(P, y, squares, single_column, brier, loss):  # type: ignore[no-untyped-def]
    """Write the Brier score and the log loss of each row, with `single_column` those of the second of two classes."""
    k = P.shape[1]
    for i in range(P.shape[0]):
        if k <= 2:
            p = np.float64(P[i, k - 1])
            brier[i], loss[i] = score_binary_row(p, 1.0 - p if single_column else np.float64(P[i, 0]), y[i])
        else:
            brier[i], loss[i] = score_row(np.float64(P[i, y[i]]), squares[i])


CACHE_LINE = 64  # bytes per cache line


def _prefetch(_typing: Any, x: Any, index: Any) -> Any:
    """Generate the code of `prefetch`: one instruction, which never raises a fault, even at an invalid address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
        read_access, high_locality, data_cache = int32(0), int32(3), int32(1)
        address = builder.bitcast(builder.gep(data, [args[1]]), byte_pointer)
        builder.call(prefetch, [address, read_access, high_locality, data_cache])
        return context.get_dummy_value()

    return types.void(x, index), build


def _skip_prefetch(_x: Any, _index: Any) -> None:
    """Do nothing instead of `prefetch`, if compilation is disabled."""


# Prefetch the cache line of x[index], for a contiguous x (n,); `index` may be out of bounds.
prefetch: Any = _skip_prefetch if getattr(numba.config, "DISABLE_JIT", False) else intrinsic(_prefetch)


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
