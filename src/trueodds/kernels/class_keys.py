"""Encode the scores and outcomes of every class as integers, and sort them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, count_threads, map_blocks

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
    """Write keys in row order (rows · K,) to the columns of the keys (K, n) from row `start` on."""
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
    """Apply `work(keys)` to the sorted keys of every class; return None if an outcome is neither 0 nor 1.

    P is (n, K), Y (n, K) or class numbers (n,); `classes` are the selected columns, all by default. Keys are those of
    `score_keys.encode_rows`. Scores that float32 represents exactly are sorted as float32, in half the time of float64.
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
            """Sort the keys of some classes in place and apply `work` to each."""
            keys[start:stop].sort(axis=1)
            return [work(class_keys) for class_keys in keys[start:stop]]

        results += [
            class_keys
            for block_results in map_blocks(work_on, len(keys), max(1, 2**14 // n))
            for class_keys in block_results
        ]
    return results


def _encode_classes(P: Array, Y: Array, first: int, last: int) -> Array | None:
    """Return the keys of the classes first..last−1, (K, n), or None if an outcome is neither 0 nor 1.

    Keys have 32 bits if all scores are exact in float32, else 64 bits.
    """
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
