"""Sort scores together with their outcomes, and sum weights and outcomes at each distinct score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, count_threads, map_blocks

_ROWS_PER_TASK = 2**17
_N_BUCKETS = 4096  # a power of two, so that a score's bucket is exact


@compile_kernel
def _encode_keys(bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the bits of each score followed by its outcome to `keys`; return the number of invalid outcomes.

    An outcome is invalid if it is neither 0 nor 1.
    """
    n_invalid = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        n_invalid += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return n_invalid


@compile_kernel
def _count_distinct_scores(keys):  # type: ignore[no-untyped-def]
    count = 1
    for i in range(1, keys.shape[0]):
        count += (keys[i] >> 1) != (keys[i - 1] >> 1)
    return count


@compile_kernel
def _count_rows_and_events(keys, bits, n, events):  # type: ignore[no-untyped-def]
    j, total, previous_score = 0, 0, keys[0] >> 1
    for i in range(keys.shape[0]):
        score = keys[i] >> 1
        j += score != previous_score
        total += keys[i] & 1
        bits[j], n[j], events[j] = score, i + 1, total
        previous_score = score
    for j in range(n.shape[0] - 1, 0, -1):
        n[j] -= n[j - 1]
        events[j] -= events[j - 1]


@compile_kernel
def _sum_weighted_rows(p, y, w, order, s, mass, events):  # type: ignore[no-untyped-def]
    m = 0
    for position in range(order.shape[0]):
        i = order[position]
        if w[i] > 0:
            score = np.float64(p[i]) + 0.0
            if m == 0 or score != s[m - 1]:
                s[m], mass[m], events[m] = score, 0.0, 0.0
                m += 1
            mass[m - 1] += w[i]
            events[m - 1] += w[i] * y[i]
    return m


@compile_kernel
def _index_buckets(s, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first sorted score in each bucket or a later one to `starts` (buckets + 1,)."""
    next_bucket = 0
    for j in range(s.shape[0]):
        bucket = int(min(s[j] * _N_BUCKETS, _N_BUCKETS - 1))
        while next_bucket <= bucket:
            starts[next_bucket] = j
            next_bucket += 1
    starts[next_bucket:] = s.shape[0]


@compile_kernel
def _find_last_not_above(p, s, starts, out):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        score = np.float64(p[i])
        bucket = int(min(score * _N_BUCKETS, _N_BUCKETS - 1))
        low, high = max(starts[bucket] - 1, 0), starts[bucket + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if s[middle] <= score:
                low = middle
            else:
                high = middle
        out[i] = low


def encode_and_sort(p: Array, y: Array) -> Array | None:
    """Return the scores p (n,) ≥ 0 with their outcomes as sortable integers, or None if an outcome is neither 0 nor 1.

    The bits of a nonnegative float have the same order as the float, and integers are sorted several times as fast as
    rows.
    """
    keys = encode_rows(p, y)
    if keys is not None:
        keys.sort()
    return keys


def encode_rows(p: Array, y: Array) -> Array | None:
    """Return the keys of `encode_and_sort` in the order of the rows, or None if an outcome is neither 0 nor 1."""
    bits = score_bits(p)
    y = as_plain_array(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    keys = np.empty(len(bits), dtype=bits.dtype)
    n_invalid = sum(map_blocks(lambda a, b: _encode_keys(bits[a:b], y[a:b], keys[a:b]), len(bits), _ROWS_PER_TASK))
    return None if n_invalid else keys


def scores_of_keys(keys: Array) -> Array:
    """Return the score of each key as float64."""
    return decode_scores(keys).astype(np.float64, copy=False)


def count_by_score(keys: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of sorted keys, with the number of rows and events at each; float64."""
    if not len(keys):
        return np.empty(0), np.empty(0), np.empty(0)
    keys = as_plain_array(keys)
    m = int(_count_distinct_scores(keys))
    bits, n, events = np.empty(m, dtype=keys.dtype), np.empty(m), np.empty(m)
    _count_rows_and_events(keys, bits, n, events)
    return _as_floats(bits).astype(np.float64, copy=False), n, events


def sum_by_score(p: Array, y: Array, w: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of rows with weight, with Σw and Σwy at each, given their order; float64."""
    s, mass, events = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    rows = [as_plain_array(x) for x in (p, y.astype(np.float64, copy=False), w.astype(np.float64, copy=False), order)]
    m = int(_sum_weighted_rows(*rows, s, mass, events))
    return (s, mass, events) if m == len(p) else (s[:m].copy(), mass[:m].copy(), events[:m].copy())


def find_scores(p: Array, s: Array) -> Array:
    """Return the index of the last of the sorted scores `s` (m,) that is at most `p` (n,); the first if none is."""
    starts, out = np.empty(_N_BUCKETS + 1, dtype=np.int64), np.empty(len(p), dtype=np.int64)
    p, s = as_plain_array(p), as_plain_array(s)
    _index_buckets(s, starts)
    map_blocks(lambda a, b: _find_last_not_above(p[a:b], s, starts, out[a:b]), len(p), _ROWS_PER_TASK)
    return out


def argsort_scores(p: Array) -> Array:
    """Return the indices that sort the scores, (n,) int64; the sort is stable for float32 scores."""
    bits = score_bits(p)
    if bits.dtype == np.uint64:
        return np.argsort(p)
    bits_and_rows = (bits & np.uint32(2**31 - 1)).astype(np.uint64)  # without the sign, as −0 is 0
    bits_and_rows <<= np.uint64(32)
    bits_and_rows |= np.arange(len(p), dtype=np.uint64)
    bits_and_rows.sort()
    bits_and_rows &= np.uint64(2**32 - 1)
    return bits_and_rows.view(np.int64)


def score_bits(p: Array) -> Array:
    """Return the bits of scores as unsigned integers, which have the same order as nonnegative scores."""
    x = as_plain_array(p)
    return x.view(np.uint64 if x.dtype == np.float64 else np.uint32)


def decode_scores(keys: Array) -> Array:
    """Return the score of each key, in its original precision."""
    return _as_floats(keys >> keys.dtype.type(1))


def _as_floats(bits: Array) -> Array:
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)


T = TypeVar("T")

_VALUES_PER_TILE = 1024  # number of values converted to keys at a time, so that they stay in the L1 cache
_VALUES_PER_TASK = 2**18  # minimum number of values per thread task
_MAX_KEYS_IN_MEMORY = 2**24  # number of keys in memory at a time, as for a million rows of sixteen classes


@compile_kernel
def _encode_scores(p, scores, bits, keys):  # type: ignore[no-untyped-def]
    """Write the keys of scores p, with outcome 0, to `keys`; return the number of scores that are not exact.

    `scores` is a buffer of the target precision, and `bits` its view as integers.
    """
    n_inexact, one_bit = 0, keys.dtype.type(1)
    for j in range(p.shape[0]):
        scores[j] = p[j]
    for j in range(p.shape[0]):
        n_inexact += scores[j] != p[j]
    for j in range(p.shape[0]):
        keys[j] = bits[j] << one_bit  # the sign is shifted out, so that −0 is 0
    return n_inexact


@compile_kernel
def _store_keys_by_class(row_keys, k, start, keys):  # type: ignore[no-untyped-def]
    for c in range(k):
        class_keys = keys[c]
        for i in range(row_keys.shape[0] // k):
            class_keys[start + i] = row_keys[i * k + c]


@compile_kernel
def _encode_indicators(P, Y, scores, bits, buffer, keys):  # type: ignore[no-untyped-def]
    """Write the keys of every class to `keys` (K, n), for outcomes Y (n, K).

    Return the number of scores that are not exact in this precision, and of outcomes that are neither 0 nor 1.
    """
    n, k = P.shape
    rows_per_tile = buffer.shape[0] // k
    predicted, outcomes = P.reshape(-1), Y.reshape(-1)
    event_bit, no_event = buffer.dtype.type(1), buffer.dtype.type(0)
    n_inexact = n_invalid = 0
    for start in range(0, n, rows_per_tile):
        m = min(rows_per_tile, n - start) * k
        tile_keys, tile_outcomes = buffer[:m], outcomes[start * k : start * k + m]
        n_inexact += _encode_scores(predicted[start * k : start * k + m], scores, bits, tile_keys)
        for j in range(m):
            tile_keys[j] |= event_bit if tile_outcomes[j] == 1.0 else no_event
        for j in range(m):
            n_invalid += (tile_outcomes[j] != 1.0) & (tile_outcomes[j] != 0.0)
        _store_keys_by_class(tile_keys, k, start, keys)
    return n_inexact, n_invalid


@compile_kernel
def _encode_labels(P, y, first, scores, bits, buffer, keys):  # type: ignore[no-untyped-def]
    """Write the keys of every class to `keys` (K, n), for class numbers y (n,); the columns are first, first + 1, …

    Return the number of scores that are not exact in this precision, and 0.
    """
    n, k = P.shape
    rows_per_tile = buffer.shape[0] // k
    predicted, event_bit = P.reshape(-1), buffer.dtype.type(1)
    n_inexact = 0
    for start in range(0, n, rows_per_tile):
        m = min(rows_per_tile, n - start)
        tile_keys = buffer[: m * k]
        n_inexact += _encode_scores(predicted[start * k : (start + m) * k], scores, bits, tile_keys)
        for i in range(m):
            c = y[start + i] - first
            if 0 <= c < k:
                tile_keys[i * k + c] |= event_bit
        _store_keys_by_class(tile_keys, k, start, keys)
    return n_inexact, 0


def map_sorted_keys(P: Array, Y: Array, work: Callable[[Array], T], classes: range | None = None) -> list[T] | None:
    """Apply `work(keys)` to the sorted keys (see `sort`) of every class; return None if an outcome is neither 0 nor 1.

    P is (n, K), Y (n, K) or class numbers (n,); `classes` are the selected columns, all by default. Scores that float32
    represents exactly are sorted as float32, in half the time of float64.
    """
    n, classes = len(P), range(P.shape[1]) if classes is None else classes
    if n == 0:
        return [work(np.empty(0, dtype=np.uint32)) for _ in classes]
    results: list[T] = []
    batch_size = max(count_threads(), _MAX_KEYS_IN_MEMORY // n)
    for first in range(classes.start, classes.stop, batch_size):
        keys = _encode_classes(P, Y, first, min(first + batch_size, classes.stop))
        if keys is None:
            return None

        def work_on(start: int, stop: int, keys: Array = keys) -> list[T]:
            keys[start:stop].sort(axis=1)
            return [work(class_keys) for class_keys in keys[start:stop]]

        results += [
            class_keys
            for block_results in map_blocks(work_on, len(keys), max(1, 2**14 // n))
            for class_keys in block_results
        ]
    return results


def _encode_classes(P: Array, Y: Array, first: int, last: int) -> Array | None:
    n, k = len(P), last - first
    sample = P[:64, first:last]
    fits_float32 = P.dtype != np.float64 or bool((sample.astype(np.float32) == sample).all())
    for dtype, key_type in ((np.float32, np.uint32), (np.float64, np.uint64))[not fits_float32 :]:
        keys = np.empty((k, n), dtype=key_type)

        def work(start: int, stop: int, dtype: Any = dtype, keys: Array = keys) -> tuple[int, int]:
            scores = np.empty(max(1, _VALUES_PER_TILE // k) * k, dtype=dtype)
            buffers = (scores, scores.view(keys.dtype), np.empty(len(scores), dtype=keys.dtype), keys[:, start:stop])
            p, y = (
                as_plain_array(P[start:stop, first:last]),
                Y[start:stop] if Y.ndim == 1 else Y[start:stop, first:last],
            )
            if y.ndim == 1:
                return tuple(_encode_labels(p, as_plain_array(y.astype(np.int64, copy=False)), first, *buffers))
            return tuple(_encode_indicators(p, as_plain_array(y.astype(np.float64, copy=False)), *buffers))

        counts = map_blocks(work, n, max(1, _VALUES_PER_TASK // k))
        if any(n_invalid for _, n_invalid in counts):
            return None
        if not any(n_inexact for n_inexact, _ in counts):
            return keys
    raise AssertionError("float64 holds every score")
