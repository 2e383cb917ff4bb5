"""Check that all values of a table are probabilities and that its rows sum to 1, reading the table once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_reordering, map_blocks

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
