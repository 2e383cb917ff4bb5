"""What are the sorted scores of every class, with their outcomes, straight from the rows? Class by class on threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain, threads

T = TypeVar("T")

_VALUES = 1024  # turned into keys at a time, so that they stay in the nearest cache
_BLOCK = 2**18  # values worth a thread's while
_MAX_KEYS = 2**24  # keys held at a time: what a million rows of sixteen classes take


@compiled
def _encode(p, scores, bits, words):  # type: ignore[no-untyped-def]
    """Keys of scores p that did not come; how many scores do not fit. `bits` are the scores as whole numbers."""
    misfits, one = 0, words.dtype.type(1)
    for j in range(p.shape[0]):
        scores[j] = p[j]
    for j in range(p.shape[0]):
        misfits += scores[j] != p[j]
    for j in range(p.shape[0]):
        words[j] = bits[j] << one  # the sign is shifted out, so that −0 is 0
    return misfits


@compiled
def _placed(words, k, start, keys):  # type: ignore[no-untyped-def]
    for c in range(k):
        own = keys[c]
        for i in range(words.shape[0] // k):
            own[start + i] = words[i * k + c]


@compiled
def _of_shares(P, Y, scores, bits, words, keys):  # type: ignore[no-untyped-def]
    """The keys of every class, keys (K, n); how many scores do not fit, and how many outcomes are neither 0 nor 1."""
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
        _placed(block, k, start, keys)
    return misfits, others


@compiled
def _of_labels(P, y, first, scores, bits, words, keys):  # type: ignore[no-untyped-def]
    """The same for class numbers y (n,), of which the columns are first, first + 1, …"""
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
        _placed(block, k, start, keys)
    return misfits, 0


def map_sorted_keys(P: Array, Y: Array, work: Callable[[Array], T], classes: range | None = None) -> list[T] | None:
    """`work(keys)` of the sorted keys (see `sort`) of every class; None if an outcome is neither 0 nor 1.

    P is (n, K), Y (n, K) or class numbers (n,); `classes` are the columns that are asked for, all if not said. Scores
    that float32 holds exactly are sorted as such, in half the time of float64.
    """
    n, classes = len(P), range(P.shape[1]) if classes is None else classes
    if n == 0:
        return [work(np.empty(0, dtype=np.uint32)) for _ in classes]
    results: list[T] = []
    batch_size = max(threads(), _MAX_KEYS // n)
    for first in range(classes.start, classes.stop, batch_size):
        keys = _of_classes(P, Y, first, min(first + batch_size, classes.stop))
        if keys is None:
            return None

        def work_on(start: int, stop: int, keys: Array = keys) -> list[T]:
            keys[start:stop].sort(axis=1)
            return [work(one) for one in keys[start:stop]]

        results += [one for some in in_blocks(work_on, len(keys), max(1, 2**14 // n)) for one in some]
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
            p, y = plain(P[start:stop, first:last]), Y[start:stop] if Y.ndim == 1 else Y[start:stop, first:last]
            if y.ndim == 1:
                return tuple(_of_labels(p, plain(y.astype(np.int64, copy=False)), first, *room))
            return tuple(_of_shares(p, plain(y.astype(np.float64, copy=False)), *room))

        looks = in_blocks(work, n, max(1, _BLOCK // k))
        if any(others for _, others in looks):
            return None
        if not any(misfits for misfits, _ in looks):
            return keys
    raise AssertionError("float64 holds every score")
