"""Compute the confidence of each row, and find out in the same pass whether all rows are surely valid."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering
from trueodds.kernels.confidence import MAX_TRANSPOSED_CLASSES, find_two_largest
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows


@compile_reordering
def _find_sign_bits(bits):  # type: ignore[no-untyped-def]
    """Return a negative number if any of the values, whose bits these are, is negative, −0 or a negative NaN."""
    combined = bits.dtype.type(0)
    for i in range(bits.shape[0]):
        combined |= bits[i]
    return combined


@compile_kernel
def _find_valid_maxima(P, bits, y, tolerance, top, correct):  # type: ignore[no-untyped-def]
    """Write the largest value of each row to `top`, and to `correct` whether its lowest class is the label.

    Return the number of rows with a tied maximum, or −1 if a value may be outside of [0, 1], the sum of a row may
    differ from 1 by more than `tolerance`, or a label is not a class. `bits` are the values of P, row by row, as
    signed integers.
    """
    k, ties, invalid = P.shape[1], 0, 0
    columns, second = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    total, top_class = np.empty(ROWS_PER_TILE, dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=np.int32)
    one, highest_deviation = P.dtype.type(1.0), P.dtype.type(tolerance)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, 0, columns)
        largest, labels, is_correct = top[start : start + m], y[start : start + m], correct[start : start + m]
        find_two_largest(columns, m, largest, second, top_class)
        total[:m] = columns[0, :m]
        for c in range(1, k):
            column = columns[c]
            for i in range(m):
                total[i] += column[i]
        invalid += _find_sign_bits(bits[start * k : (start + m) * k]) < 0
        for i in range(m):
            is_sum_valid = abs(total[i] - one) <= highest_deviation  # which the sum of a NaN or an infinity is not
            invalid += not (is_sum_valid & (largest[i] <= one))
        for i in range(m):
            invalid += (labels[i] < 0) | (labels[i] >= k)
            is_correct[i] = np.int64(top_class[i]) == labels[i]
        for i in range(m):
            ties += largest[i] == second[i]
    return ties if invalid == 0 else -1


def confidence_of_valid_rows(P: Array, y: Array, tolerance: float) -> tuple[Array, Array, int] | None:
    """Return the largest value of each row, whether its (lowest) class is the label, and the number of tied rows.

    Return None for rows of which one may be invalid, for rows of many classes, and for other dtypes than float32 and
    float64 with labels of int64. P is (n, K), y (n,); row sums may differ from 1 by `tolerance`.
    """
    is_fast = P.ndim == 2 and 2 < P.shape[1] <= MAX_TRANSPOSED_CLASSES and P.flags.c_contiguous and P.flags.aligned
    if not is_fast or P.dtype not in (np.float32, np.float64) or y.dtype != np.int64 or y.shape != (len(P),):
        return None
    top, correct = np.empty(len(P), dtype=P.dtype), np.empty(len(P), dtype=np.bool_)
    P, eps = as_plain_array(P), float(np.finfo(P.dtype).eps)
    bits = P.view(np.int32 if P.dtype == np.float32 else np.int64).reshape(-1)
    # the sum of a row is rounded less than k times
    surely_valid = tolerance - P.shape[1] * eps
    ties = int(_find_valid_maxima(P, as_plain_array(bits), as_plain_array(y), surely_valid, top, correct))
    return None if ties < 0 else (top, correct, ties)
