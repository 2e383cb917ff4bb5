"""Bins between given edges: find the bin of each score, and sum predictions and outcomes per bin.

Scores are those of one column, or of every class against the rest. Rows of one column are given by their scores and
labels, by scores, outcomes and weights, or by integer keys (see `sorting`) in any order or sorted.

NumPy bins few rows, so that nothing is compiled for them. It adds in the same order, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering, map_blocks, sum_blocks
from trueodds.kernels.parallel import MAX_NUMPY_VALUES, MAX_SERIAL_ROWS, map_columns


def score_bits(p: Array) -> Array:
    """Return the bits of scores as unsigned integers, which have the same order as nonnegative scores."""
    x = as_plain_array(p)
    return x.view(np.uint64 if x.dtype == np.float64 else np.uint32)


def decode_scores(keys: Array) -> Array:
    """Return the score of each key, (n,), as float32 for keys of 32 bits and float64 for keys of 64 bits."""
    return floats_of_bits(keys >> keys.dtype.type(1))


def floats_of_bits(bits: Array) -> Array:
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)


Closed = Literal["left", "right"]


class FittedPartition(Protocol):
    """Interface of a fitted partition of the scores into cells, such as bins or the leaves of a tree."""

    @property
    def size(self) -> int: ...

    def index(self, values: Array) -> Array:
        """Return the cell index of each score, (n,) int64."""
        ...


@dataclass(frozen=True)
class Bins:
    """Bins between given edges, right-closed `(lo, hi]` with the first closed at its lower edge.

    A score is assigned by comparison with the stored edges, not by arithmetic. Scores outside the range belong to the
    first or the last bin.

    >>> import numpy as np
    >>> Bins(np.arange(11) / 10).index(np.array([0.0, 0.3, 0.7, 1.0])).tolist()
    [0, 2, 6, 9]
    """

    edges: Array  # (size + 1,)
    closed: Closed = "right"
    # (size + 1,) the edges as log odds, if bins are cut between log odds that are equal as probabilities (see
    # `View.assign`); several `edges` may then be equal.
    log_odds_edges: Array | None = None

    @cached_property
    def size(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def key(self) -> tuple[bytes, bytes | None, str]:
        log_odds_edges = None if self.log_odds_edges is None else self.log_odds_edges.tobytes()
        return self.edges.tobytes(), log_odds_edges, self.closed

    def index(self, values: Array) -> Array:
        """Return the bin index of each score, (n,) int64."""
        return find_bins(values, self.edges, self.closed)


MAX_COMPARED_EDGES = 64  # number of inner edges up to which comparison with all is faster than binary search
_EDGES_PER_PASS = 8  # number of edges compared in one pass over a buffer
_SCORES_PER_TASK = 2**16  # number of scores per thread task, which fit into the cache


def bin_search(edges: Array, closed: str, score_dtype: Any) -> tuple[Array, int, float]:
    """Return how `number_bins` finds the bins of scores of this dtype: thresholds, number of bins, and scale.

    A score lies beyond an inner edge if it exceeds its threshold. For right-closed bins that is the largest number of
    the dtype that is not above the edge, and for left-closed bins the predecessor of the smallest number that is not
    below it. The thresholds are padded with inf.

    The scale is the number of bins if ⌈x · bins⌉ numbers them from 1 exactly as comparison with the edges does, else 0.
    For such bins of equal width, a multiplication replaces the comparison. The product is monotone in x, so it is
    correct everywhere if it is correct on both sides of each edge.
    """
    dtype: Any = np.float64 if score_dtype == np.float64 else np.float32
    n_bins = len(edges) - 1
    inner = np.asarray(edges[1:-1], dtype=np.float64)
    rounded = inner.astype(dtype)
    if closed == "right":
        thresholds = np.where(rounded > inner, np.nextafter(rounded, dtype(-np.inf)), rounded)
    else:
        rounded_up = np.where(rounded < inner, np.nextafter(rounded, dtype(np.inf)), rounded)
        thresholds = np.nextafter(rounded_up, dtype(-np.inf))
    size = len(thresholds)
    if size <= MAX_COMPARED_EDGES:  # `number_bins` compares several thresholds at a time
        size = -(-size // _EDGES_PER_PASS) * _EDGES_PER_PASS
    else:  # it halves their number again and again
        size = 2 ** size.bit_length() - 1
    padded = np.full(size, np.inf, dtype=dtype)
    padded[: len(thresholds)] = thresholds
    padded.flags.writeable = False
    if edges[0] != 0 or edges[-1] != 1:  # of log odds, whose products may exceed the range of an integer
        return padded, n_bins, 0.0
    bin_number, successors = np.arange(1, n_bins), np.nextafter(thresholds, dtype(2))
    exact = (np.ceil(thresholds.astype(np.float64) * n_bins) == bin_number).all()
    exact &= (np.ceil(successors.astype(np.float64) * n_bins) == bin_number + 1).all()
    return padded, n_bins, float(n_bins) if exact else 0.0


@compile_kernel
def number_bins(x, m, thresholds, n_bins, scale, offset, bin_index):  # type: ignore[no-untyped-def]
    """Set bin_index[j] to offset[j] plus the bin number of x[j], for the first m values x; all three are (≥ m,).

    `offset` and `bin_index` must be separate arrays. Bins are numbered from 1. The numbers 0 and n_bins + 1 can occur
    for values in the first and the last bin (see `merge_outer_bins`). With `scale` > 0 values must be above −1/n_bins:
    the kernels that sum use the number as an unsigned index, and only `find_bins` clips it. `thresholds`, `n_bins`, and
    `scale` are the results of `bin_search`.
    """
    if scale > 0:
        limit = np.float64(n_bins + 1)
        for j in range(m):
            value = np.ceil(np.float64(x[j]) * scale)
            value = value if value < limit else limit
            bin_index[j] = offset[j] + np.int32(value)
        return
    if thresholds.shape[0] > MAX_COMPARED_EDGES:
        # Binary search among 2^k − 1 thresholds, one step for all values at a time: such a loop is vectorized.
        for j in range(m):
            bin_index[j] = 0
        half = np.int32((thresholds.shape[0] + 1) // 2)
        while half > 0:
            for j in range(m):
                is_above = x[j] > thresholds[np.uint32(bin_index[j] + half - np.int32(1))]
                bin_index[j] += half if is_above else np.int32(0)
            half >>= np.int32(1)
        for j in range(m):
            bin_index[j] += offset[j] + np.int32(1)
        return
    for j in range(m):
        bin_index[j] = offset[j] + np.int32(1)
    for first in range(0, thresholds.shape[0], _EDGES_PER_PASS):
        t0, t1, t2, t3 = thresholds[first], thresholds[first + 1], thresholds[first + 2], thresholds[first + 3]
        t4, t5, t6, t7 = thresholds[first + 4], thresholds[first + 5], thresholds[first + 6], thresholds[first + 7]
        for j in range(m):
            value = x[j]
            n_below = np.int32(value > t0) + np.int32(value > t1) + np.int32(value > t2) + np.int32(value > t3)
            bin_index[j] += (
                n_below + np.int32(value > t4) + np.int32(value > t5) + np.int32(value > t6) + np.int32(value > t7)
            )


def _number_few(x: Array, thresholds: Array, n_bins: int, scale: float) -> Array:
    """Return the bin numbers of `number_bins` without an offset, (n,) int64."""
    if scale > 0:
        return np.minimum(np.ceil(x.astype(np.float64) * scale), n_bins + 1).astype(np.int64)
    return 1 + np.searchsorted(thresholds, x)


def merge_outer_bins(table: Array) -> Array:
    """Convert sums by bin number of `number_bins` (…, bins + 2, sums) to sums by bin (…, bins, sums)."""
    sums = table[..., 1:-1, :].copy()
    sums[..., 0, :] += table[..., 0, :]
    sums[..., -1, :] += table[..., -1, :]
    return sums


def find_bins(x: Array, edges: Array, closed: str) -> Array:
    """Return the bin index of each value x (n,), from 0, as (n,) int64; values outside belong to the outer bins."""
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    thresholds, n_bins, scale = bin_search(edges, closed, x.dtype)
    if len(x) <= MAX_NUMPY_VALUES:
        return np.clip(_number_few(x, thresholds, n_bins, scale) - 1, 0, n_bins - 1)
    out = np.zeros(len(x), dtype=np.int64)

    def number_block(start: int, stop: int) -> None:
        no_offset, bin_index = np.zeros((2, stop - start), dtype=np.int32)
        number_bins(as_plain_array(x[start:stop]), stop - start, thresholds, n_bins, scale, no_offset, bin_index)
        out[start:stop] = np.clip(bin_index - 1, 0, n_bins - 1)

    if len(x) <= _SCORES_PER_TASK:
        number_block(0, len(x))
    else:
        map_blocks(number_block, len(x), _SCORES_PER_TASK)
    return out


def sums_by_cell(index: Array, x: Array, size: int, w: Array | None = None) -> Array:
    """Return Σwx over the rows of each cell, (size,) for x (n,), and (size, m) for the columns of x (n, m).

    `index` (n,) is the cell of each row, below `size`, and `w` (n,) its weight, by default 1.

    >>> sums_by_cell(np.array([0, 2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3).tolist()
    [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]
    """
    if x.ndim == 1:
        return np.bincount(index, x if w is None else w * x, size)
    sums = np.empty((size, x.shape[1]))

    def sum_column(column: int) -> None:
        sums[:, column] = sums_by_cell(index, x[:, column], size, w)

    map_columns(sum_column, x.shape[1], len(x))
    return sums


ROWS_PER_TILE = 1024  # number of rows binned at a time
_ROWS_PER_TASK = 2**16  # minimum number of rows per thread task
_KEYS_PER_TASK = 2**17  # minimum number of sorted keys per thread task
_KEYS_PER_PASS = 2**14  # number of sorted keys decoded at a time, so that the scores stay in the core's own cache
_VALUES_PER_TILE = 512  # number of values binned at a time, so that they stay in the L1 cache
_MAX_TILED_CLASSES = 256  # number of classes above which most values lie in the first bin, which requires no search
_VALUES_PER_RUN = 128  # number of values checked together for any above the first bin
_VALUES_PER_TASK = 2**18  # minimum number of values per thread task
_VALUES_PER_COPY = 2**18  # number of values copied at a time if the array is not C-contiguous


def add_bin_sums_by_label(
    p: Array, y: Array, label: int, thresholds: Array, n_bins: int, scale: float, out: Array
) -> None:
    """Add n, Σp and Σp² per bin number of the rows with other labels and with this one to `out` (2·(bins + 2), 3)."""
    if len(p) > MAX_SERIAL_ROWS:
        _add_sums_by_label(as_plain_array(p), as_plain_array(y), label, thresholds, n_bins, scale, out)
        return
    index, scores = 2 * _number_few(p, thresholds, n_bins, scale) + (y == label), p.astype(np.float64, copy=False)
    for column, values in enumerate((None, scores, scores * scores)):
        out[:, column] += np.bincount(index, values, len(out))


@compile_kernel
def _add_sums_by_label(p, y, label, thresholds, n_bins, scale, out):  # type: ignore[no-untyped-def]
    bin_index, no_offset, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.zeros(ROWS_PER_TILE, dtype=np.int32),
        zero_score_sums(out.shape[0]),
    )
    for start in range(0, p.shape[0], ROWS_PER_TILE):
        block, labels = p[start : start + ROWS_PER_TILE], y[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        number_bins(block, m, thresholds, n_bins, scale, no_offset, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(labels[i] == label)
        add_scores(block, m, bin_index, sums)
    add_to_columns(sums, out)


@compile_kernel
def _add_key_sums(keys, thresholds, n_bins, scale, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σp² per bin of non-events and events, given as keys, to `out` (2·(bins + 2), 3)."""
    bin_index, no_offset, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.zeros(ROWS_PER_TILE, dtype=np.int32),
        zero_score_sums(out.shape[0]),
    )
    bits = np.empty(ROWS_PER_TILE, dtype=keys.dtype)
    scores = bits.view(thresholds.dtype)
    for start in range(0, keys.shape[0], ROWS_PER_TILE):
        block = keys[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        for i in range(m):
            bits[i] = block[i] >> 1
        number_bins(scores, m, thresholds, n_bins, scale, no_offset, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(block[i] & 1)
        add_scores(scores, m, bin_index, sums)
    add_to_columns(sums, out)


@compile_inline
def zero_score_sums(size):  # type: ignore[no-untyped-def]
    """Return the zero arrays for `add_scores`: count, Σp and Σp² by index, each (size,)."""
    return np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)


@compile_inline
def add_scores(p, m, bin_index, sums):  # type: ignore[no-untyped-def]
    count, sum_p, sum_p2 = sums
    for i in range(m):
        index, score = np.uint32(bin_index[i]), np.float64(p[i])
        count[index] += 1
        sum_p[index] += score
        sum_p2[index] += score * score


@compile_inline
def add_to_columns(sums, out):  # type: ignore[no-untyped-def]
    count, sum_p, sum_p2 = sums
    for index in range(out.shape[0]):
        out[index, 0] += np.float64(count[index])
        out[index, 1] += sum_p[index]
        out[index, 2] += sum_p2[index]


@compile_kernel
def _add_weighted_sums(p, y, w, n, thresholds, n_bins, scale, out):  # type: ignore[no-untyped-def]
    """Add the ten sums of `weighted_bin_sums` per bin to `out` (bins + 2, 10)."""
    bin_index, no_offset = np.empty(ROWS_PER_TILE, dtype=np.int32), np.zeros(ROWS_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, p.shape[0] - start)
        block = p[start : start + m]
        number_bins(block, m, thresholds, n_bins, scale, no_offset, bin_index)
        for i in range(m):
            index = np.uint32(bin_index[i])
            weight, p_i, y_i = w[start + i], np.float64(block[i]), y[start + i]
            out[index, 0] += n[start + i]
            out[index, 1] += weight
            out[index, 2] += weight * p_i
            out[index, 3] += weight * y_i
            out[index, 4] += weight * weight
            out[index, 5] += weight * p_i * p_i
            out[index, 6] += weight * p_i * y_i
            out[index, 7] += weight * y_i * y_i
            out[index, 8] += weight * weight * p_i * (1.0 - p_i)
            out[index, 9] += weight * weight * (y_i - p_i) * (y_i - p_i)


def bin_sums_by_label(p: Array, y: Array, label: int, edges: Array, closed: str) -> Array:
    """Return n, Σp and Σp² per bin of the rows with other labels in y (n,) and with this one, (bins, 2, 3)."""
    thresholds, n_bins, scale = bin_search(edges, closed, p.dtype)

    def add_rows(start: int, stop: int, out: Array) -> None:
        for first in range(start, stop, _ROWS_PER_TASK):
            last = min(first + _ROWS_PER_TASK, stop)
            add_bin_sums_by_label(p[first:last], y[first:last], label, thresholds, n_bins, scale, out)

    table = sum_blocks(add_rows, len(p), (2 * (n_bins + 2), 3), block=_ROWS_PER_TASK)
    return merge_outer_bins(table.reshape(n_bins + 2, 6)).reshape(n_bins, 2, 3)


def bin_sums_of_keys(keys: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp and Σp² per bin of non-events and events, (bins, 2, 3), from keys (n,) in any order."""
    thresholds, n_bins, scale = bin_search(edges, closed, decode_scores(keys[:0]).dtype)
    keys = as_plain_array(keys)
    table = sum_blocks(
        lambda start, stop, out: _add_key_sums(keys[start:stop], thresholds, n_bins, scale, out),
        len(keys),
        (2 * (n_bins + 2), 3),
        block=_ROWS_PER_TASK,
    )
    return merge_outer_bins(table.reshape(n_bins + 2, 6)).reshape(n_bins, 2, 3)


def weighted_bin_sums(p: Array, y: Array, w: Array, n: Array, edges: Array, closed: str) -> Array:
    """Return n, Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)² per bin, (bins, 10).

    All arrays are (n,); y, w and n are float64.
    """
    thresholds, n_bins, scale = bin_search(edges, closed, p.dtype)
    if len(p) <= MAX_SERIAL_ROWS:
        index, p = _number_few(p, thresholds, n_bins, scale), p.astype(np.float64, copy=False)
        products = w * p, w * y, w * w, w * p * p, w * p * y, w * y * y, w * w * p * (1 - p), w * w * (y - p) * (y - p)
        return merge_outer_bins(np.stack([np.bincount(index, x, n_bins + 2) for x in (n, w, *products)], axis=1))

    def add_rows(start: int, stop: int, out: Array) -> None:
        for first in range(start, stop, _ROWS_PER_TASK):
            last = min(first + _ROWS_PER_TASK, stop)
            _add_weighted_sums(
                as_plain_array(p[first:last]),
                as_plain_array(y[first:last]),
                as_plain_array(w[first:last]),
                as_plain_array(n[first:last]),
                thresholds,
                n_bins,
                scale,
                out,
            )

    return merge_outer_bins(sum_blocks(add_rows, len(p), (n_bins + 2, 10), block=_ROWS_PER_TASK))


@compile_reordering
def _add_sorted_rows(p, keys, start, ends, out):  # type: ignore[no-untyped-def]
    """Add n, Σp, Σy, Σpy and Σp² per bin to `out` (bins, 5), for the sorted rows from number `start` on.

    `p` and `keys` belong to these rows; bin b contains the rows from number `ends[b − 1]` up to `ends[b]`.
    """
    i, bin_index = 0, np.searchsorted(ends, start, "right")
    while i < p.shape[0]:
        stop = min(ends[bin_index] - start, p.shape[0])
        sum_p = sum_y = sum_py = sum_p2 = 0.0
        for j in range(i, stop):
            x = np.float64(p[j])
            y = np.float64(keys[j] & 1)
            sum_p += x
            sum_y += y
            sum_py += x * y
            sum_p2 += x * x
        out[bin_index, 0] += stop - i
        out[bin_index, 1] += sum_p
        out[bin_index, 2] += sum_y
        out[bin_index, 3] += sum_py
        out[bin_index, 4] += sum_p2
        i, bin_index = stop, bin_index + 1


def edge_keys(edges: Array, closed: str, dtype: Any) -> list[Any]:
    """Return for each inner edge the largest key of a score not beyond the edge; None if every score is."""
    thresholds = bin_search(edges, closed, np.float64 if dtype == np.uint64 else np.float32)[0][: len(edges) - 2]
    # The largest key of a score is that of an event, so it has the outcome bit set.
    keys = (score_bits(np.maximum(thresholds, 0)) << dtype.type(1)) | dtype.type(1)
    return [None if threshold < 0 else key for threshold, key in zip(thresholds, keys, strict=True)]


def bin_sums_of_sorted_keys(keys: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp, Σy, Σpy and Σp² per bin, (bins, 5), from sorted keys (n,)."""
    n_bins = len(edges) - 1
    last_keys = edge_keys(edges, closed, keys.dtype)
    # Bin b contains the keys from number ends[b − 1] up to ends[b].
    ends = np.array([0 if key is None else np.searchsorted(keys, key, "right") for key in last_keys] + [len(keys)])
    keys = as_plain_array(keys)

    def add_rows(start: int, stop: int, out: Array) -> None:
        for first in range(start, stop, _KEYS_PER_PASS):
            block = keys[first : min(first + _KEYS_PER_PASS, stop)]
            _add_sorted_rows(decode_scores(block), block, first, ends, out)

    return sum_blocks(add_rows, len(keys), (n_bins, 5), block=_KEYS_PER_TASK)


@compile_kernel
def _add_tiled_classes(P, y, thresholds, n_bins, scale, out):  # type: ignore[no-untyped-def]
    """Add n, Σp, Σy and Σpy of every class, against the rest, and bin to `out` (K·(bins + 2), 4)."""
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


def _sum_few_classes(P: Array, y: Array, thresholds: Array, n_bins: int, scale: float) -> Array:
    """Return the sums that `_add_tiled_classes` adds, (K·(bins + 2), 4)."""
    k, size = P.shape[1], n_bins + 2
    index = _number_few(P.ravel(), thresholds, n_bins, scale).reshape(P.shape) + np.arange(k) * size
    p, rows = P.astype(np.float64, copy=False), np.arange(len(P))
    columns = (index.ravel(), None), (index.ravel(), p.ravel()), (index[rows, y], None), (index[rows, y], p[rows, y])
    return np.stack([np.bincount(cells, values, k * size) for cells, values in columns], axis=1, dtype=np.float64)


def class_bin_sums(P: Array, y: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp, Σy and Σpy of every class and bin, (K, bins, 4), for P (n, K) and labels y (n,) int64."""
    n, k = P.shape
    thresholds, n_bins, scale = bin_search(edges, closed, P.dtype)
    if n <= MAX_SERIAL_ROWS and P.size <= MAX_NUMPY_VALUES:
        return merge_outer_bins(_sum_few_classes(P, y, thresholds, n_bins, scale).reshape(k, n_bins + 2, 4))
    words = np.int64 if P.dtype == np.float64 else np.int32
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
