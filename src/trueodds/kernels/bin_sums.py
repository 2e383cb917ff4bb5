"""Sum predicted probabilities and outcomes per bin, for one column, every class against the rest, or sorted scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, sum_blocks
from trueodds.kernels.bins import bin_thresholds, exact_scale, merge_outer_bins, number_bins
from trueodds.kernels.prefetch import CACHE_LINE, prefetch
from trueodds.kernels.sort import decode_scores, score_bits

ROWS_PER_TILE = 1024  # number of rows binned at a time
_COLUMN_ROWS = 2**16  # minimum number of rows per thread task


@compile_kernel
def add_label_sums(p, y, label, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σp² per bin of the rows with other labels and with this label to `out` (2·(bins + 2), 3)."""
    bin_index, none, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.zeros(ROWS_PER_TILE, dtype=np.int32),
        zero_score_sums(out.shape[0]),
    )
    for start in range(0, p.shape[0], ROWS_PER_TILE):
        block, labels = p[start : start + ROWS_PER_TILE], y[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        number_bins(block, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(labels[i] == label)
        add_scores(block, m, bin_index, sums)
    add_to_columns(sums, out)


@compile_kernel
def _of_keys(keys, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σp² per bin of non-events and events, given as keys (see `sort.row_keys`), to `out`."""
    bin_index, none, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.zeros(ROWS_PER_TILE, dtype=np.int32),
        zero_score_sums(out.shape[0]),
    )
    bits = np.empty(ROWS_PER_TILE, dtype=keys.dtype)
    scores = bits.view(bounds.dtype)
    for start in range(0, keys.shape[0], ROWS_PER_TILE):
        block = keys[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        for i in range(m):
            bits[i] = block[i] >> 1
        number_bins(scores, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + np.int32(block[i] & 1)
        add_scores(scores, m, bin_index, sums)
    add_to_columns(sums, out)


@compile_kernel
def zero_score_sums(size):  # type: ignore[no-untyped-def]
    """Return the zero arrays for `add_scores`: count, Σp and Σp² by index, each (size,)."""
    return np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)


@compile_kernel
def add_scores(p, m, bin_index, sums):  # type: ignore[no-untyped-def]
    """Add the first m scores p to the count, Σp and Σp² at their indices `bin_index`."""
    count, one, two = sums
    for i in range(m):
        s, x = np.uint32(bin_index[i]), np.float64(p[i])
        count[s] += 1
        one[s] += x
        two[s] += x * x


@compile_kernel
def add_to_columns(sums, out):  # type: ignore[no-untyped-def]
    """Add the arrays (size,) of `sums` to the columns of `out` (size, 3)."""
    count, one, two = sums
    for t in range(out.shape[0]):
        out[t, 0] += np.float64(count[t])
        out[t, 1] += one[t]
        out[t, 2] += two[t]


@compile_kernel
def _of_rows(p, y, w, n, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """Add the ten sums of `row_sums` per bin to `out` (bins + 2, 10)."""
    bin_index, none = np.empty(ROWS_PER_TILE, dtype=np.int32), np.zeros(ROWS_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, p.shape[0] - start)
        block = p[start : start + m]
        number_bins(block, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            s = np.uint32(bin_index[i])
            a, x, z = w[start + i], np.float64(block[i]), y[start + i]
            out[s, 0] += n[start + i]
            out[s, 1] += a
            out[s, 2] += a * x
            out[s, 3] += a * z
            out[s, 4] += a * a
            out[s, 5] += a * x * x
            out[s, 6] += a * x * z
            out[s, 7] += a * z * z
            out[s, 8] += a * a * x * (1.0 - x)
            out[s, 9] += a * a * (z - x) * (z - x)


def label_sums(p: Array, y: Array, label: int, edges: Array, closed: str) -> Array:
    """Return n, Σp and Σp² per bin of the rows with other labels and with this label, (bins, 2, 3).

    p (n,) are the scores, y (n,) int64 the labels.
    """
    bounds, bins, by = _bounds(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _COLUMN_ROWS):
            b = min(a + _COLUMN_ROWS, stop)
            add_label_sums(as_plain_array(p[a:b]), as_plain_array(y[a:b]), label, bounds, bins, by, out)

    table = sum_blocks(add, len(p), (2 * (bins + 2), 3), block=_COLUMN_ROWS)
    return merge_outer_bins(table.reshape(bins + 2, 6)).reshape(bins, 2, 3)


def key_sums(keys: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp and Σp² (bins, 2, 3) of non-events and events, from keys (see `sort.row_keys`) in any order."""
    bounds, bins, by = _bounds(decode_scores(keys[:0]), edges, closed)
    keys = as_plain_array(keys)
    table = sum_blocks(
        lambda a, b, out: _of_keys(keys[a:b], bounds, bins, by, out), len(keys), (2 * (bins + 2), 3), block=_COLUMN_ROWS
    )
    return merge_outer_bins(table.reshape(bins + 2, 6)).reshape(bins, 2, 3)


def row_sums(p: Array, y: Array, w: Array, n: Array, edges: Array, closed: str) -> Array:
    """Return n, Σw, Σwp, Σwy, Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)² per bin, (bins, 10).

    All arrays are (n,); y, w and n are float64.
    """
    bounds, bins, by = _bounds(p, edges, closed)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _COLUMN_ROWS):
            b = min(a + _COLUMN_ROWS, stop)
            _of_rows(
                as_plain_array(p[a:b]),
                as_plain_array(y[a:b]),
                as_plain_array(w[a:b]),
                as_plain_array(n[a:b]),
                bounds,
                bins,
                by,
                out,
            )

    return merge_outer_bins(sum_blocks(add, len(p), (bins + 2, 10), block=_COLUMN_ROWS))


def _bounds(p: Array, edges: Array, closed: str) -> tuple[Array, int, float]:
    dtype = np.float64 if p.dtype == np.float64 else np.float32
    return bin_thresholds(edges, closed, dtype), len(edges) - 1, exact_scale(edges, closed, dtype)


_BUFFER = 512  # number of values binned at a time, so that they stay in the L1 cache
_MANY = 256  # number of classes above which most values lie in the first bin, which requires no search
_RUN = 128  # number of values checked together for any above the first bin
_CLASS_VALUES = 2**18  # minimum number of values per thread task
_COPIED_VALUES = 2**18  # number of values copied at a time if the array is not C-contiguous


@compile_kernel
def _add_every_class(P, y, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """Add n, Σp, Σy and Σpy of every class and bin to `out` (K·(bins + 2), 4)."""
    n, k = P.shape
    size = bins + 2
    values = P.reshape(-1)
    rows = max(1, _BUFFER // k)
    base, bin_index = np.empty(rows * k, dtype=np.int32), np.empty(rows * k, dtype=np.int32)
    count, total = np.zeros(k * size, dtype=np.int64), np.zeros(k * size)
    for j in range(rows * k):
        base[j] = (j % k) * size
    for start in range(0, n, rows):
        m = min(rows, n - start)
        block = values[start * k : (start + m) * k]
        for j in range((start + 2 * m) * k, (start + 3 * m) * k, CACHE_LINE // P.itemsize):  # the rows after the next
            prefetch(values, j)
        number_bins(block, m * k, bounds, bins, by, base, bin_index)
        for j in range(m * k):
            s = np.uint32(bin_index[j])
            count[s] += 1
            total[s] += np.float64(block[j])
        for i in range(m):
            j = i * k + y[start + i]
            s = np.uint32(bin_index[j])
            out[s, 2] += 1.0
            out[s, 3] += np.float64(block[j])
    for t in range(k * size):
        out[t, 0] += np.float64(count[t])
        out[t, 1] += total[t]


@compile_kernel
def _bin(x, bounds):  # type: ignore[no-untyped-def]
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x > bounds[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@compile_kernel
def _every_of_many(P, bits, y, bounds, limit, bins, out):  # type: ignore[no-untyped-def]
    """Add the sums of `_add_every_class`, faster if few values of a row lie above the first bin.

    `bits` is P as integers, and `limit` the bits of the upper edge of the first bin.
    """
    n, k = P.shape
    size = bins + 2
    low, beyond_first = np.zeros(k), np.zeros(k, dtype=np.int64)
    for i in range(n):
        row, word = P[i], bits[i]
        for c in range(k):
            low[c] += np.float64(row[c]) if word[c] <= limit else 0.0
        for first in range(0, k, _RUN):
            last = min(k, first + _RUN)
            largest = limit
            for c in range(first, last):
                largest = max(largest, word[c])
            if largest > limit:
                for c in range(first, last):
                    if word[c] > limit:
                        t = c * size + 1 + _bin(row[c], bounds)
                        out[t, 0] += 1.0
                        out[t, 1] += np.float64(row[c])
                        beyond_first[c] += 1
        t = y[i] * size + 1 + _bin(row[y[i]], bounds)
        out[t, 2] += 1.0
        out[t, 3] += np.float64(row[y[i]])
    for c in range(k):
        out[c * size + 1, 0] += np.float64(n - beyond_first[c])
        out[c * size + 1, 1] += low[c]


def class_sums(P: Array, y: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp, Σy and Σpy of every class and bin, (K, bins, 4), for P (n, K) and labels y (n,) int64."""
    n, k = P.shape
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    bounds, by, bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    words = np.int64 if dtype == np.float64 else np.int32
    limit = bounds[:1].view(words)[0] if len(bounds) else None
    ready = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    step = n if ready else max(1, _COPIED_VALUES // k)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, step):
            b = min(a + step, stop)
            block, labels = as_plain_array(P[a:b]), as_plain_array(y[a:b])
            if k > _MANY and limit is not None and limit >= 0:
                _every_of_many(block, as_plain_array(block.view(words)), labels, bounds, limit, bins, out)
            else:
                _add_every_class(block, labels, bounds, bins, by, out)

    return merge_outer_bins(
        sum_blocks(add, n, (k * (bins + 2), 4), block=max(1, _CLASS_VALUES // k)).reshape(k, bins + 2, 4)
    )


_SORTED_ROWS = 2**17
_PART_ROWS = 2**14  # number of keys decoded at a time, so that the scores stay in the core's own cache


@compile_reordering
def _add_sorted_rows(p, keys, start, ends, out):  # type: ignore[no-untyped-def]
    """Add n, Σp, Σy, Σpy and Σp² per bin to `out` (bins, 5), for the sorted rows from number `start` on.

    `p` and `keys` belong to these rows; bin b contains the rows from number `ends[b − 1]` up to `ends[b]`.
    """
    i, b = 0, np.searchsorted(ends, start, "right")
    while i < p.shape[0]:
        stop = min(ends[b] - start, p.shape[0])
        sum_p = sum_y = both = squares = 0.0
        for j in range(i, stop):
            x = np.float64(p[j])
            y = np.float64(keys[j] & 1)
            sum_p += x
            sum_y += y
            both += x * y
            squares += x * x
        out[b, 0] += stop - i
        out[b, 1] += sum_p
        out[b, 2] += sum_y
        out[b, 3] += both
        out[b, 4] += squares
        i, b = stop, b + 1


def edge_keys(edges: Array, closed: str, dtype: Any) -> list[Any]:
    """Return the largest key within each inner edge, or None if there is none."""
    bounds = bin_thresholds(edges, closed, np.float64 if dtype == np.uint64 else np.float32)[: len(edges) - 2]
    # The largest key of a score is that of an event, so it has the outcome bit set.
    keys = (score_bits(np.maximum(bounds, 0)) << dtype.type(1)) | dtype.type(1)
    return [None if bound < 0 else key for bound, key in zip(bounds, keys, strict=True)]


def sorted_key_sums(keys: Array, edges: Array, closed: str) -> Array:
    """Return n, Σp, Σy, Σpy and Σp² per bin, (bins, 5), from sorted keys (see `sort.row_keys`)."""
    bins = len(edges) - 1
    within = edge_keys(edges, closed, keys.dtype)
    ends = np.array([0 if key is None else np.searchsorted(keys, key, "right") for key in within] + [len(keys)])
    keys = as_plain_array(keys)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _PART_ROWS):
            block = keys[a : min(a + _PART_ROWS, stop)]
            _add_sorted_rows(decode_scores(block), block, a, ends, out)

    return sum_blocks(add, len(keys), (bins, 5), block=_SORTED_ROWS)
