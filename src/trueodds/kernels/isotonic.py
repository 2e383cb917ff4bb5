"""Fit isotonic regression by pooling adjacent violators, also with one more row at any score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, sort


class PooledBlocks(NamedTuple):
    """Blocks of an isotonic fit: intervals of sorted scores with strictly increasing means; each (b,) float64."""

    low: Array  # first score of the block
    high: Array  # last score of the block
    mass: Array  # Σw
    events: Array  # Σwy


@compile_kernel
def pool_block(mass, events, last, k):  # type: ignore[no-untyped-def]
    """Pool the last of k blocks with all preceding blocks whose mean is not lower; return the number of blocks left.

    Means are compared without division, so the result is exact for integers.
    """
    while k > 1 and events[k - 2] * mass[k - 1] >= events[k - 1] * mass[k - 2]:
        mass[k - 2] += mass[k - 1]
        events[k - 2] += events[k - 1]
        last[k - 2] = last[k - 1]
        k -= 1
    return k


@compile_kernel
def _of_keys(keys, mass, events, last):  # type: ignore[no-untyped-def]
    """Compute the isotonic blocks of sorted keys and return their number; `last` receives the index of their last key.

    A block can begin only after a score that has a non-event, and at a score that has an event. Outcomes are sorted
    among equal scores, so the first key of a score shows whether all of its rows are events.
    """
    n, one = keys.shape[0], keys.dtype.type(1)
    k, start, ones = 0, 0, np.int64(0)
    before, all_events = keys[0] >> one, keys[0] & one == one
    for i in range(n):
        score, event = keys[i] >> one, keys[i] & one
        if score != before:
            if not all_events and (event == one or (i + 1 < n and keys[i + 1] >> one == score)):
                mass[k], events[k], last[k] = i - start, ones, i - 1
                k = pool_block(mass, events, last, k + 1)
                start, ones = i, np.int64(0)
            before, all_events = score, event == one
        ones += np.int64(event)
    mass[k], events[k], last[k] = n - start, ones, n - 1
    return pool_block(mass, events, last, k + 1)


@compile_kernel
def _of_rows(p, y, w, order, low, high, mass, events):  # type: ignore[no-untyped-def]
    """Compute the isotonic blocks of the rows with positive weight, in the given order by score; return their number.

    Rows with equal scores are summed first.
    """
    k, x, a, wy = 0, 0.0, 0.0, 0.0
    for j in range(order.shape[0] + 1):
        i = order[min(j, order.shape[0] - 1)]
        if j < order.shape[0] and not w[i] > 0.0:
            continue
        score = np.float64(p[i]) + 0.0
        if a > 0.0 and (j == order.shape[0] or score != x):
            low[k], high[k], mass[k], events[k] = x, x, a, wy
            k = pool_block(mass, events, high, k + 1)
            a = wy = 0.0
        x = score
        a += w[i]
        wy += w[i] * y[i]
    return k


@compile_kernel
def _means(w, wy, fit):  # type: ignore[no-untyped-def]
    m = wy.shape[1]
    mass, events, last = np.empty(m), np.empty(m), np.empty(m, dtype=np.int64)
    for b in range(wy.shape[0]):
        a = b if w.shape[0] > 1 else 0
        blocks = 0
        for j in range(m):
            if w[a, j] > 0.0:
                mass[blocks], events[blocks], last[blocks] = w[a, j], wy[b, j], j
                blocks = pool_block(mass, events, last, blocks + 1)
        if blocks == 0:
            fit[b, :] = np.nan
            continue
        last[blocks - 1] = m - 1
        start = 0
        for k in range(blocks):
            mean = events[k] / mass[k]
            # Cells without weight take the mean of the preceding block, those before the first block that of the first.
            for j in range(start, last[k] + 1):
                fit[b, j] = mean
            start = last[k] + 1
            while k + 1 < blocks and start < m and not w[a, start] > 0.0:
                fit[b, start] = mean
                start += 1


def fit_sorted_keys(keys: Array) -> PooledBlocks:
    """Return the isotonic blocks of sorted keys (see `sort`) of rows of weight 1. The result is exact."""
    n = len(keys)
    if n == 0:
        return PooledBlocks(*np.empty((4, 0)))
    mass, events, last = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    k = _of_keys(as_plain_array(keys), mass, events, last)
    last = last[:k]
    first = np.append(0, last[:-1] + 1)
    return PooledBlocks(
        sort.scores_of_keys(keys[first]),
        sort.scores_of_keys(keys[last]),
        mass[:k].astype(float),
        events[:k].astype(float),
    )


def fit_rows(p: Array, y: Array, w: Array) -> PooledBlocks:
    """Return the isotonic blocks of scores p (n,) ≥ 0 with outcome shares y and weights w; weights of 0 are ignored."""
    buffers = np.empty((4, len(p)))
    if len(p) == 0:
        return PooledBlocks(*buffers)
    # Weights are scaled by a power of two, which does not round, so that products neither overflow nor underflow.
    power = int(np.frexp(w.max())[1])
    narrow = p.astype(np.float32)  # float32 is sorted several times as fast
    p = narrow if (narrow == p).all() else p
    rows = (p, y.astype(np.float64, copy=False), np.ldexp(w, -power, dtype=np.float64), sort.argsort_scores(p))
    k = _of_rows(*(as_plain_array(x) for x in rows), *buffers)
    low, high, mass, events = (x[:k].copy() for x in buffers)
    return PooledBlocks(low, high, np.ldexp(mass, power), np.ldexp(events, power))


def isotonic_means(w: Array, wy: Array) -> Array:
    r"""Return the isotonic least-squares fit of the means of ordered cells, (…, m), from Σw and Σwy (…, m).

    .. math:: \min_{r_1 \le \dots \le r_m} \sum_j w_j (y_j - r_j)^2

    The fit is optimal for every other proper score, too. Leading axes broadcast. Cells without weight do not affect
    the fit; they receive the value of the preceding cell, or of the first cell with weight, so that sums over cells
    can include them. Cost: O(m) per draw.
    Source: Ayer et al. (1955), pool adjacent violators.

    >>> isotonic_means(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    shape = np.broadcast_shapes(w.shape, wy.shape)
    mass = np.ascontiguousarray(w, dtype=np.float64).reshape(-1, shape[-1])
    events = np.ascontiguousarray(np.broadcast_to(wy, shape), dtype=np.float64).reshape(-1, shape[-1])
    if len(mass) not in (1, len(events)):  # axes that broadcast in the middle
        mass = np.ascontiguousarray(np.broadcast_to(w, shape), dtype=np.float64).reshape(-1, shape[-1])
    fit = np.empty(events.shape)
    _means(mass, events, fit)
    return fit.reshape(shape)


@compile_kernel
def _cross_product(ax, ay, bx, by, cx, cy):  # type: ignore[no-untyped-def]
    """Return the cross product of the vectors a → b and b → c, which is positive if the path turns left."""
    return (bx - ax) * (cy - by) - (by - ay) * (cx - bx)


@compile_kernel
def _with_added_event(mass, events, rise, run):  # type: ignore[no-untyped-def]
    """Compute the isotonic mean (rise/run) of an added event of weight 1, just below each of the sorted scores.

    The cumulative sums (Σw, Σwy) are points, and the isotonic means are slopes of their greatest convex minorant. The
    added row is a step (1, 1). As it moves up by one score, one point changes. The slope over it never decreases, so
    corners on its left are not needed again.
    """
    m = mass.shape[0]
    x, y = np.empty(m + 1), np.empty(m + 1)  # corners of the minorant, eventually from right to left
    x[0], y[0] = -1.0, -1.0  # built from left to right, with the added row before all others
    corners, w, wy = 1, 0.0, 0.0
    for i in range(m):
        w += mass[i]
        wy += events[i]
        while (
            corners > 1 and _cross_product(x[corners - 2], y[corners - 2], x[corners - 1], y[corners - 1], w, wy) <= 0.0
        ):
            corners -= 1
        x[corners], y[corners] = w, wy
        corners += 1
    for i in range(corners // 2):
        j = corners - 1 - i
        x[i], x[j], y[i], y[j] = x[j], x[i], y[j], y[i]
    w, wy = -1.0, -1.0
    for i in range(m):
        top = corners - 1
        rise[i], run[i] = y[top - 1] - y[top], x[top - 1] - x[top]
        w += mass[i]
        wy += events[i]
        if _cross_product(x[top], y[top], w, wy, x[top - 1], y[top - 1]) <= 0.0:
            continue  # the new point is not below the segment over the added row
        corners -= 1
        while (
            corners > 1 and _cross_product(w, wy, x[corners - 1], y[corners - 1], x[corners - 2], y[corners - 2]) <= 0.0
        ):
            corners -= 1
        x[corners], y[corners] = w, wy
        corners += 1


def added_row_means(mass: Array, events: Array) -> tuple[Array, Array]:
    """Return the isotonic means of an added non-event and of an added event of weight 1, each (m,).

    Given Σw and Σwy at sorted scores s (m,). The first mean applies from s_j up to, but excluding, the next score, and
    is 0 below all scores; the second applies above the previous score up to and including s_j, and is 1 above all.
    Cost: O(m). Source: Vovk, Petej & Fedorova (2015), algorithms 1 to 4.
    """
    rise, run = np.empty((2, len(mass))), np.empty((2, len(mass)))
    # A non-event is an event of the complementary outcome, with the scores in reverse order.
    ways = ((mass - events)[::-1], events)
    for way, wy in enumerate(ways):
        _with_added_event(as_plain_array(mass[::-1] if way == 0 else mass), as_plain_array(wy), rise[way], run[way])
    run = np.maximum(run, 1.0)  # the added row is lost in rounding if weights exceed 2⁵³
    low, high = ((run[0] - rise[0]) / run[0])[::-1], rise[1] / run[1]
    # Weighted sums are rounded: keep the means nondecreasing and within [0, 1].
    low, high = (np.clip(np.maximum.accumulate(means), 0.0, 1.0) for means in (low, high))
    return np.minimum(low, high), high
