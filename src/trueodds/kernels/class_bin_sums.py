"""Sum predicted probabilities and outcomes per bin, for every class against the rest."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, sum_blocks
from trueodds.kernels.bins import bin_thresholds, exact_scale, merge_outer_bins, number_bins
from trueodds.kernels.prefetch import CACHE_LINE, prefetch

_VALUES_PER_TILE = 512  # number of values binned at a time, so that they stay in the L1 cache
_MAX_TILED_CLASSES = 256  # number of classes above which most values lie in the first bin, which requires no search
_VALUES_PER_RUN = 128  # number of values checked together for any above the first bin
_VALUES_PER_TASK = 2**18  # minimum number of values per thread task
_VALUES_PER_COPY = 2**18  # number of values copied at a time if the array is not C-contiguous


@compile_kernel
def _add_tiled_classes(P, y, thresholds, n_bins, scale, out):  # type: ignore[no-untyped-def]
    """Add n, Σp, Σy and Σpy of every class and bin to `out` (K·(bins + 2), 4), for P (n, K) and labels y (n,).

    `thresholds`, `n_bins` and `scale` are those of `number_bins`. The class of the label has y = 1, the others y = 0.
    """
    n, k = P.shape
    size = n_bins + 2
    values = P.reshape(-1)
    rows = max(1, _VALUES_PER_TILE // k)
    class_offset, bin_index = np.empty(rows * k, dtype=np.int32), np.empty(rows * k, dtype=np.int32)
    count, total = np.zeros(k * size, dtype=np.int64), np.zeros(k * size)
    for j in range(rows * k):
        class_offset[j] = (j % k) * size
    for start in range(0, n, rows):
        m = min(rows, n - start)
        block = values[start * k : (start + m) * k]
        for j in range((start + 2 * m) * k, (start + 3 * m) * k, CACHE_LINE // P.itemsize):  # the rows after the next
            prefetch(values, j)
        number_bins(block, m * k, thresholds, n_bins, scale, class_offset, bin_index)
        for j in range(m * k):
            index = np.uint32(bin_index[j])
            count[index] += 1
            total[index] += np.float64(block[j])
        for i in range(m):
            j = i * k + y[start + i]
            index = np.uint32(bin_index[j])
            out[index, 2] += 1.0
            out[index, 3] += np.float64(block[j])
    for index_of_total in range(k * size):
        out[index_of_total, 0] += np.float64(count[index_of_total])
        out[index_of_total, 1] += total[index_of_total]


@compile_kernel
def _count_thresholds_below(x, thresholds):  # type: ignore[no-untyped-def]
    """Return the number of thresholds below x, which is the index of its bin, by binary search."""
    low, high = 0, thresholds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x > thresholds[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@compile_kernel
def _add_many_classes(P, bits, y, thresholds, first_edge_bits, n_bins, out):  # type: ignore[no-untyped-def]
    """Add the sums of `_add_tiled_classes`, faster if few values of a row lie above the first bin.

    `bits` is P as integers, and `first_edge_bits` the bits of the upper edge of the first bin.
    """
    n, k = P.shape
    size = n_bins + 2
    sum_p_first, n_beyond_first = np.zeros(k), np.zeros(k, dtype=np.int64)
    for i in range(n):
        row, row_bits = P[i], bits[i]
        for c in range(k):
            sum_p_first[c] += np.float64(row[c]) if row_bits[c] <= first_edge_bits else 0.0
        for first in range(0, k, _VALUES_PER_RUN):
            last = min(k, first + _VALUES_PER_RUN)
            largest = first_edge_bits
            for c in range(first, last):
                largest = max(largest, row_bits[c])
            if largest > first_edge_bits:
                for c in range(first, last):
                    if row_bits[c] > first_edge_bits:
                        index = c * size + 1 + _count_thresholds_below(row[c], thresholds)
                        out[index, 0] += 1.0
                        out[index, 1] += np.float64(row[c])
                        n_beyond_first[c] += 1
        index = y[i] * size + 1 + _count_thresholds_below(row[y[i]], thresholds)
        out[index, 2] += 1.0
        out[index, 3] += np.float64(row[y[i]])
    for c in range(k):
        out[c * size + 1, 0] += np.float64(n - n_beyond_first[c])
        out[c * size + 1, 1] += sum_p_first[c]


def class_bin_sums(P: Array, y: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp, Σy and Σpy of every class and bin, (K, bins, 4), for P (n, K) and labels y (n,) int64.

    y in the sums is 1 for the class of the label, else 0. `edges` (bins + 1,) are sorted, and `closed` is "left" or
    "right".
    """
    n, k = P.shape
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    thresholds, scale, n_bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    words = np.int64 if dtype == np.float64 else np.int32
    first_edge_bits = thresholds[:1].view(words)[0] if len(thresholds) else None
    needs_no_copy = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    rows_per_copy = n if needs_no_copy else max(1, _VALUES_PER_COPY // k)

    def add_rows(start: int, stop: int, out: Array) -> None:
        for first in range(start, stop, rows_per_copy):
            last = min(first + rows_per_copy, stop)
            block, labels = as_plain_array(P[first:last]), as_plain_array(y[first:last])
            if k > _MAX_TILED_CLASSES and first_edge_bits is not None and first_edge_bits >= 0:
                _add_many_classes(
                    block, as_plain_array(block.view(words)), labels, thresholds, first_edge_bits, n_bins, out
                )
            else:
                _add_tiled_classes(block, labels, thresholds, n_bins, scale, out)

    return merge_outer_bins(
        sum_blocks(add_rows, n, (k * (n_bins + 2), 4), block=max(1, _VALUES_PER_TASK // k)).reshape(k, n_bins + 2, 4)
    )
