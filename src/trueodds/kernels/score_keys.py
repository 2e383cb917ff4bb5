"""Encode scores and their outcomes as integers (keys), which are sorted faster than rows, and group distinct scores.

A key consists of the bits of the score, followed by one bit for the outcome: 1 for an event. The bits of a nonnegative
float have the same order as the float, so sorting the keys sorts the rows by score, and among equal scores non-events
before events. Integers are sorted several times as fast as rows. Keys have 32 bits for float32 and 64 bits for float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, count_threads, map_blocks
from trueodds.kernels.piecewise_functions import Knots

T = TypeVar("T")

_ROWS_PER_TASK = 2**17  # minimum number of rows of one class per thread task
_VALUES_PER_TASK = 2**18  # minimum number of values of several classes per thread task
_VALUES_PER_TILE = 1024  # number of values converted to keys at a time, so that they stay in the L1 cache
_VALUES_PER_SORT = 2**14  # minimum number of keys sorted per thread task
_MAX_KEYS_IN_MEMORY = 2**24  # number of keys in memory at a time, as for a million rows of sixteen classes
_N_SAMPLED_ROWS = 64  # number of rows that are checked first for scores that float32 cannot represent


def encode_and_sort(p: Array, y: Array) -> Array | None:
    """Return the sorted keys (n,) of scores p (n,) ≥ 0 with outcomes y (n,); None if an outcome is neither 0 nor 1."""
    keys = encode_rows(p, y)
    if keys is not None:
        keys.sort()
    return keys


def encode_rows(p: Array, y: Array) -> Array | None:
    """Return the keys of `encode_and_sort` in the order of the rows, (n,); None if an outcome is neither 0 nor 1."""
    bits = score_bits(p)
    y = as_plain_array(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    keys = np.empty(len(bits), dtype=bits.dtype)
    n_invalid = sum(map_blocks(lambda a, b: _encode_keys(bits[a:b], y[a:b], keys[a:b]), len(bits), _ROWS_PER_TASK))
    return None if n_invalid else keys


@compile_kernel
def _encode_keys(bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the bits of each score followed by its outcome to `keys`; return the number of invalid outcomes."""
    n_invalid = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        n_invalid += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return n_invalid


def scores_of_keys(keys: Array) -> Array:
    return decode_scores(keys).astype(np.float64, copy=False)


def argsort_scores(p: Array) -> Array:
    """Return the indices that sort the scores, (n,) int64; the sort is stable for nonnegative float32 scores."""
    bits = score_bits(p)
    if bits.dtype == np.uint64 or (len(p) and p.min() < 0):  # negative floats have their bits in reverse order
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
    """Return the score of each key, (n,), as float32 for keys of 32 bits and float64 for keys of 64 bits."""
    return floats_of_bits(keys >> keys.dtype.type(1))


def floats_of_bits(bits: Array) -> Array:
    return bits.view(np.float64 if bits.dtype == np.uint64 else np.float32)


def map_sorted_keys(P: Array, Y: Array, work: Callable[[Array], T], classes: range | None = None) -> list[T] | None:
    """Apply `work(keys)` to the sorted keys of every class against the rest; classes are processed on several threads.

    Y are class numbers (n,), or outcomes (n, K); None is returned if one is neither 0 nor 1. Only the columns `classes`
    of P (n, K) are used. If float32 represents all scores exactly, keys have 32 bits, because they are sorted in half
    the time of 64 bits.
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
        results += _sort_and_map(keys, work)
    return results


def _sort_and_map(keys: Array, work: Callable[[Array], T]) -> list[T]:
    """Sort the keys of each class, (K, n), in place, and return the results of `work` for each class."""

    def sort_classes(start: int, stop: int) -> list[T]:
        keys[start:stop].sort(axis=1)
        return [work(class_keys) for class_keys in keys[start:stop]]

    classes_per_task = max(1, _VALUES_PER_SORT // keys.shape[1])
    return [result for results in map_blocks(sort_classes, len(keys), classes_per_task) for result in results]


def _encode_classes(P: Array, Y: Array, first: int, last: int) -> Array | None:
    """Return the keys of the classes first..last−1, (K, n), of 32 bits if exact; None if an outcome is invalid."""
    sample = P[:_N_SAMPLED_ROWS, first:last]
    if P.dtype != np.float64 or bool((sample.astype(np.float32) == sample).all()):
        keys, n_inexact, n_invalid = _encode_classes_as(np.float32, P, Y, first, last)
        if n_invalid > 0:
            return None
        if n_inexact == 0:
            return keys
        del keys  # frees the memory for the keys of 64 bits
    keys, _, n_invalid = _encode_classes_as(np.float64, P, Y, first, last)
    return None if n_invalid > 0 else keys


def _encode_classes_as(dtype: Any, P: Array, Y: Array, first: int, last: int) -> tuple[Array, int, int]:
    """Return the keys (K, n) of these classes, and the numbers of scores that are not exact and of invalid outcomes."""
    n, k = len(P), last - first
    keys = np.empty((k, n), dtype=np.uint32 if dtype == np.float32 else np.uint64)

    def encode_block(start: int, stop: int) -> tuple[int, int]:
        scores = np.empty(max(1, _VALUES_PER_TILE // k) * k, dtype=dtype)
        bits, buffer = scores.view(keys.dtype), np.empty(len(scores), dtype=keys.dtype)
        p, out = as_plain_array(P[start:stop, first:last]), keys[:, start:stop]
        if Y.ndim == 1:
            labels = as_plain_array(Y[start:stop].astype(np.int64, copy=False))
            n_inexact, n_invalid = _encode_labels(p, labels, first, scores, bits, buffer, out)
        else:
            outcomes = as_plain_array(Y[start:stop, first:last].astype(np.float64, copy=False))
            n_inexact, n_invalid = _encode_indicators(p, outcomes, scores, bits, buffer, out)
        return n_inexact, n_invalid

    counts = map_blocks(encode_block, n, max(1, _VALUES_PER_TASK // k))
    return keys, sum(n_inexact for n_inexact, _ in counts), sum(n_invalid for _, n_invalid in counts)


@compile_inline
def _encode_scores(p, scores, bits, keys):  # type: ignore[no-untyped-def]
    """Write the keys of scores p, with outcome 0, to `keys`; return the number of scores that are not exact."""
    n_inexact, one_bit = 0, keys.dtype.type(1)
    for j in range(p.shape[0]):
        scores[j] = p[j]
    for j in range(p.shape[0]):
        n_inexact += scores[j] != p[j]
    for j in range(p.shape[0]):
        keys[j] = bits[j] << one_bit  # the sign is shifted out, so that −0 is 0
    return n_inexact


@compile_inline
def _store_keys_by_class(row_keys, k, start, keys):  # type: ignore[no-untyped-def]
    for c in range(k):
        class_keys = keys[c]
        for i in range(row_keys.shape[0] // k):
            class_keys[start + i] = row_keys[i * k + c]


@compile_kernel
def _encode_indicators(P, Y, scores, bits, buffer, keys):  # type: ignore[no-untyped-def]
    """Write the keys of every class to `keys` for outcomes (n, K); return the numbers as `_encode_classes_as`."""
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
    """Write the keys of the classes from `first` on to `keys`, for class numbers; return the numbers likewise."""
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


@compile_kernel
def _count_distinct_scores(keys):  # type: ignore[no-untyped-def]
    count = 1
    for i in range(1, keys.shape[0]):
        count += (keys[i] >> 1) != (keys[i - 1] >> 1)
    return count


@compile_kernel
def _count_rows_and_events(keys, bits, n, events):  # type: ignore[no-untyped-def]
    """Write the bits of each distinct score, and its numbers of rows and events, to `bits`, `n` and `events` (m,)."""
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
def _sum_weighted_rows(p, y, w, order, scores, mass, events):  # type: ignore[no-untyped-def]
    """Write each distinct score with its Σw and Σwy to `scores`, `mass` and `events`; return their number."""
    m = 0
    for position in range(order.shape[0]):
        i = order[position]
        if w[i] > 0:
            score = np.float64(p[i]) + 0.0
            if m == 0 or score != scores[m - 1]:
                scores[m], mass[m], events[m] = score, 0.0, 0.0
                m += 1
            mass[m - 1] += w[i]
            events[m - 1] += w[i] * y[i]
    return m


def count_by_score(keys: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of sorted keys, with the number of rows and events at each, (m,) float64."""
    if not len(keys):
        return np.empty(0), np.empty(0), np.empty(0)
    keys = as_plain_array(keys)
    m = int(_count_distinct_scores(keys))
    bits, n, events = np.empty(m, dtype=keys.dtype), np.empty(m), np.empty(m)
    _count_rows_and_events(keys, bits, n, events)
    return floats_of_bits(bits).astype(np.float64, copy=False), n, events


def sum_by_score(p: Array, y: Array, w: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of the rows with positive weight, with Σw and Σwy at each, (m,) float64."""
    scores, mass, events = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    rows = [as_plain_array(x) for x in (p, y.astype(np.float64, copy=False), w.astype(np.float64, copy=False), order)]
    m = int(_sum_weighted_rows(*rows, scores, mass, events))
    return (scores, mass, events) if m == len(p) else (scores[:m].copy(), mass[:m].copy(), events[:m].copy())


def find_scores(p: Array, scores: Array) -> Array:
    """Return the index of the last of the sorted `scores` (m,) that is at most each p (n,); the first if none is."""
    last_not_above = np.maximum(np.arange(-1, len(scores)), 0)
    return Knots(scores).evaluate_steps(p, last_not_above, right=True).astype(np.int64)
