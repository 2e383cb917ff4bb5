"""Group rows by distinct scores: sum their weights and outcomes at each score, and find the score of each row."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks
from trueodds.kernels.score_keys import floats_of_bits

_ROWS_PER_TASK = 2**17  # minimum number of rows per thread task
_N_BUCKETS = 4096  # a power of two, so that a score's bucket is exact


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


@compile_kernel
def _index_buckets(scores, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first score in each bucket of equal width, or a later one, to `starts` (buckets + 1,)."""
    next_bucket = 0
    for j in range(scores.shape[0]):
        bucket = int(min(scores[j] * _N_BUCKETS, _N_BUCKETS - 1))
        while next_bucket <= bucket:
            starts[next_bucket] = j
            next_bucket += 1
    starts[next_bucket:] = scores.shape[0]


@compile_kernel
def _find_last_not_above(p, scores, starts, out):  # type: ignore[no-untyped-def]
    """Write the index of the last of the sorted scores that is at most p to `out`, by binary search in a bucket."""
    for i in range(p.shape[0]):
        score = np.float64(p[i])
        bucket = int(min(score * _N_BUCKETS, _N_BUCKETS - 1))
        low, high = max(starts[bucket] - 1, 0), starts[bucket + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if scores[middle] <= score:
                low = middle
            else:
                high = middle
        out[i] = low


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
    starts, out = np.empty(_N_BUCKETS + 1, dtype=np.int64), np.empty(len(p), dtype=np.int64)
    p, scores = as_plain_array(p), as_plain_array(scores)
    _index_buckets(scores, starts)
    map_blocks(lambda a, b: _find_last_not_above(p[a:b], scores, starts, out[a:b]), len(p), _ROWS_PER_TASK)
    return out
