"""Compute the confidence of each row, and find out in the same pass whether all rows are surely valid."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel
from trueodds.kernels.confidence import MAX_TRANSPOSED_CLASSES, find_two_largest
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows


@compile_kernel
def _find_valid_maxima(P, y, tolerance, top, correct):  # type: ignore[no-untyped-def]
    """Write the largest value of each row to `top`, and to `correct` whether its lowest class is the label.

    Return the number of rows with a tied maximum, or −1 if a value is not in [0, 1], the sum of a row differs from 1 by
    more than `tolerance`, or a label is not a class.
    """
    k, ties, invalid = P.shape[1], 0, 0
    columns, second = np.empty((k, ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    total, lowest = np.empty(ROWS_PER_TILE), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    top_class = np.empty(ROWS_PER_TILE, dtype=np.int32)
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, 0, columns)
        largest, labels, is_correct = top[start : start + m], y[start : start + m], correct[start : start + m]
        find_two_largest(columns, m, largest, second, top_class)
        total[:], lowest[:] = 0.0, 0.0
        for c in range(k):
            column = columns[c]
            for i in range(m):
                total[i] += np.float64(column[i])
                lowest[i] = column[i] if column[i] < lowest[i] else lowest[i]
        for i in range(m):
            in_range = (lowest[i] >= 0) & (largest[i] <= 1) & (labels[i] >= 0) & (labels[i] < k)
            invalid += not (in_range & (abs(total[i] - 1.0) <= tolerance))  # as is a sum that is NaN
            ties += largest[i] == second[i]
            is_correct[i] = np.int64(top_class[i]) == labels[i]
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
    ties = int(_find_valid_maxima(as_plain_array(P), as_plain_array(y), tolerance, top, correct))
    return None if ties < 0 else (top, correct, ties)
