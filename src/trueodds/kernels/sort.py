"""Sort scores together with their outcomes, and sum weights and outcomes at each distinct score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, count_threads, map_blocks

_PLACED_ROWS = 2**17
_BUCKETS = 4096  # a power of two, so that a score's bucket is exact


@compile_kernel
def _key(bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the bits of each score followed by its outcome to `keys`; return the number of invalid outcomes.

    An outcome is invalid if it is neither 0 nor 1.
    """
    others = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        others += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return others


@compile_kernel
def _distinct(keys):  # type: ignore[no-untyped-def]
    count = 1
    for i in range(1, keys.shape[0]):
        count += (keys[i] >> 1) != (keys[i - 1] >> 1)
    return count


@compile_kernel
def _counts(keys, bits, n, events):  # type: ignore[no-untyped-def]
    j, total, before = 0, 0, keys[0] >> 1
    for i in range(keys.shape[0]):
        score = keys[i] >> 1
        j += score != before
        total += keys[i] & 1
        bits[j], n[j], events[j] = score, i + 1, total
        before = score
    for j in range(n.shape[0] - 1, 0, -1):
        n[j] -= n[j - 1]
        events[j] -= events[j - 1]


@compile_kernel
def _sum_rows(p, y, w, order, s, mass, events):  # type: ignore[no-untyped-def]
    m = 0
    for k in range(order.shape[0]):
        i = order[k]
        if w[i] > 0:
            x = np.float64(p[i]) + 0.0
            if m == 0 or x != s[m - 1]:
                s[m], mass[m], events[m] = x, 0.0, 0.0
                m += 1
            mass[m - 1] += w[i]
            events[m - 1] += w[i] * y[i]
    return m


@compile_kernel
def _starts(s, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first sorted score in each bucket or a later one to `starts` (buckets + 1,)."""
    b = 0
    for j in range(s.shape[0]):
        bucket = int(min(s[j] * _BUCKETS, _BUCKETS - 1))
        while b <= bucket:
            starts[b] = j
            b += 1
    starts[b:] = s.shape[0]


@compile_kernel
def _place_sorted(p, s, starts, out):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        x = np.float64(p[i])
        b = int(min(x * _BUCKETS, _BUCKETS - 1))
        low, high = max(starts[b] - 1, 0), starts[b + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if s[middle] <= x:
                low = middle
            else:
                high = middle
        out[i] = low


def encode_and_sort(p: Array, y: Array) -> Array | None:
    """Return the scores p (n,) ≥ 0 with their outcomes as sortable integers, or None if an outcome is neither 0 nor 1.

    The bits of a nonnegative float have the same order as the float, and integers are sorted several times as fast as
    rows.
    """
    encoded = encode_rows(p, y)
    if encoded is not None:
        encoded.sort()
    return encoded


def encode_rows(p: Array, y: Array) -> Array | None:
    """Return the keys of `encode_and_sort` in the order of the rows, or None if an outcome is neither 0 nor 1."""
    bits = score_bits(p)
    y = as_plain_array(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    encoded = np.empty(len(bits), dtype=bits.dtype)
    others = sum(map_blocks(lambda a, b: _key(bits[a:b], y[a:b], encoded[a:b]), len(bits), _PLACED_ROWS))
    return None if others else encoded


def scores_of_keys(keys: Array) -> Array:
    """Return the score of each key as float64."""
    return decode_scores(keys).astype(np.float64, copy=False)


def count_by_score(keys: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of sorted keys, with the number of rows and events at each; float64."""
    if not len(keys):
        return np.empty(0), np.empty(0), np.empty(0)
    keys = as_plain_array(keys)
    m = int(_distinct(keys))
    bits, n, events = np.empty(m, dtype=keys.dtype), np.empty(m), np.empty(m)
    _counts(keys, bits, n, events)
    return _floats(bits).astype(np.float64, copy=False), n, events


def sum_by_score(p: Array, y: Array, w: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of rows with weight, with Σw and Σwy at each, given their order; float64."""
    s, mass, events = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    rows = [as_plain_array(x) for x in (p, y.astype(np.float64, copy=False), w.astype(np.float64, copy=False), order)]
    m = int(_sum_rows(*rows, s, mass, events))
    return (s, mass, events) if m == len(p) else (s[:m].copy(), mass[:m].copy(), events[:m].copy())


def find_scores(p: Array, s: Array) -> Array:
    """Return the index of the last of the sorted scores `s` (m,) that is at most `p` (n,); the first if none is."""
    starts, out = np.empty(_BUCKETS + 1, dtype=np.int64), np.empty(len(p), dtype=np.int64)
    p, s = as_plain_array(p), as_plain_array(s)
    _starts(s, starts)
    map_blocks(lambda a, b: _place_sorted(p[a:b], s, starts, out[a:b]), len(p), _PLACED_ROWS)
    return out


def argsort_scores(p: Array) -> Array:
    """Return the indices that sort the scores, (n,) int64; the sort is stable for float32 scores."""
    bits = score_bits(p)
    if bits.dtype == np.uint64:
        return np.argsort(p)
    encoded = (bits & np.uint32(2**31 - 1)).astype(np.uint64)  # without the sign, as −0 is 0
    encoded <<= np.uint64(32)
    encoded |= np.arange(len(p), dtype=np.uint64)
    encoded.sort()
    encoded &= np.uint64(2**32 - 1)
    return encoded.view(np.int64)


def score_bits(p: Array) -> Array:
    """Return the bits of scores as unsigned integers, which have the same order as nonnegative scores."""
    x = as_plain_array(p)
    return x.view(np.uint64 if x.dtype == np.float64 else np.uint32)


def decode_scores(keys: Array) -> Array:
    """Return the score of each key, in its original precision."""
    return _floats(keys >> keys.dtype.type(1))


def _floats(bits: Array) -> Array:
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)


T = TypeVar("T")

_VALUES = 1024  # number of values converted to keys at a time, so that they stay in the L1 cache
_BLOCK = 2**18  # minimum number of values per thread task
_MAX_KEYS = 2**24  # number of keys in memory at a time, as for a million rows of sixteen classes


@compile_kernel
def _encode(p, scores, bits, words):  # type: ignore[no-untyped-def]
    """Write the keys of scores p, with outcome 0, to `words`; return the number of scores that are not exact.

    `scores` is a buffer of the target precision, and `bits` its view as integers.
    """
    misfits, one = 0, words.dtype.type(1)
    for j in range(p.shape[0]):
        scores[j] = p[j]
    for j in range(p.shape[0]):
        misfits += scores[j] != p[j]
    for j in range(p.shape[0]):
        words[j] = bits[j] << one  # the sign is shifted out, so that −0 is 0
    return misfits


@compile_kernel
def _put_keys(words, k, start, keys):  # type: ignore[no-untyped-def]
    for c in range(k):
        own = keys[c]
        for i in range(words.shape[0] // k):
            own[start + i] = words[i * k + c]


@compile_kernel
def _of_shares(P, Y, scores, bits, words, keys):  # type: ignore[no-untyped-def]
    """Write the keys of every class to `keys` (K, n), for outcomes Y (n, K).

    Return the number of scores that are not exact in this precision, and of outcomes that are neither 0 nor 1.
    """
    n, k = P.shape
    rows = words.shape[0] // k
    predicted, outcomes = P.reshape(-1), Y.reshape(-1)
    one, none = words.dtype.type(1), words.dtype.type(0)
    misfits = others = 0
    for start in range(0, n, rows):
        m = min(rows, n - start) * k
        block, y = words[:m], outcomes[start * k : start * k + m]
        misfits += _encode(predicted[start * k : start * k + m], scores, bits, block)
        for j in range(m):
            block[j] |= one if y[j] == 1.0 else none
        for j in range(m):
            others += (y[j] != 1.0) & (y[j] != 0.0)
        _put_keys(block, k, start, keys)
    return misfits, others


@compile_kernel
def _of_labels(P, y, first, scores, bits, words, keys):  # type: ignore[no-untyped-def]
    """Write the keys of every class to `keys` (K, n), for class numbers y (n,); the columns are first, first + 1, …

    Return the number of scores that are not exact in this precision, and 0.
    """
    n, k = P.shape
    rows = words.shape[0] // k
    predicted, one = P.reshape(-1), words.dtype.type(1)
    misfits = 0
    for start in range(0, n, rows):
        m = min(rows, n - start)
        block = words[: m * k]
        misfits += _encode(predicted[start * k : (start + m) * k], scores, bits, block)
        for i in range(m):
            c = y[start + i] - first
            if 0 <= c < k:
                block[i * k + c] |= one
        _put_keys(block, k, start, keys)
    return misfits, 0


def map_sorted_keys(P: Array, Y: Array, work: Callable[[Array], T], classes: range | None = None) -> list[T] | None:
    """Apply `work(keys)` to the sorted keys (see `sort`) of every class; return None if an outcome is neither 0 nor 1.

    P is (n, K), Y (n, K) or class numbers (n,); `classes` are the selected columns, all by default. Scores that float32
    represents exactly are sorted as float32, in half the time of float64.
    """
    n, classes = len(P), range(P.shape[1]) if classes is None else classes
    if n == 0:
        return [work(np.empty(0, dtype=np.uint32)) for _ in classes]
    results: list[T] = []
    batch_size = max(count_threads(), _MAX_KEYS // n)
    for first in range(classes.start, classes.stop, batch_size):
        keys = _of_classes(P, Y, first, min(first + batch_size, classes.stop))
        if keys is None:
            return None

        def work_on(start: int, stop: int, keys: Array = keys) -> list[T]:
            keys[start:stop].sort(axis=1)
            return [work(one) for one in keys[start:stop]]

        results += [one for some in map_blocks(work_on, len(keys), max(1, 2**14 // n)) for one in some]
    return results


def _of_classes(P: Array, Y: Array, first: int, last: int) -> Array | None:
    n, k = len(P), last - first
    sample = P[:64, first:last]
    narrow = P.dtype != np.float64 or bool((sample.astype(np.float32) == sample).all())
    for dtype, word in ((np.float32, np.uint32), (np.float64, np.uint64))[not narrow :]:
        keys = np.empty((k, n), dtype=word)

        def work(start: int, stop: int, dtype: Any = dtype, keys: Array = keys) -> tuple[int, int]:
            scores = np.empty(max(1, _VALUES // k) * k, dtype=dtype)
            room = (scores, scores.view(keys.dtype), np.empty(len(scores), dtype=keys.dtype), keys[:, start:stop])
            p, y = (
                as_plain_array(P[start:stop, first:last]),
                Y[start:stop] if Y.ndim == 1 else Y[start:stop, first:last],
            )
            if y.ndim == 1:
                return tuple(_of_labels(p, as_plain_array(y.astype(np.int64, copy=False)), first, *room))
            return tuple(_of_shares(p, as_plain_array(y.astype(np.float64, copy=False)), *room))

        looks = map_blocks(work, n, max(1, _BLOCK // k))
        if any(others for _, others in looks):
            return None
        if not any(misfits for misfits, _ in looks):
            return keys
    raise AssertionError("float64 holds every score")
