"""Which neighbors share a mean, so that means never fall with the score? Pool adjacent violators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain, sort


class Blocks(NamedTuple):
    """Stretches of rising scores whose means rise strictly, each (b,) float64."""

    low: Array  # the first score of each
    high: Array  # and the last one
    mass: Array  # Σw
    events: Array  # Σwy


@compiled
def joined(mass, events, last, k):  # type: ignore[no-untyped-def]
    """The last of k blocks joins those before it whose mean is at least as high; how many blocks are left.

    No division, so no rounding of means; with whole numbers all of it is exact.
    """
    while k > 1 and events[k - 2] * mass[k - 1] >= events[k - 1] * mass[k - 2]:
        mass[k - 2] += mass[k - 1]
        events[k - 2] += events[k - 1]
        last[k - 2] = last[k - 1]
        k -= 1
    return k


@compiled
def _of_keys(keys, mass, events, last):  # type: ignore[no-untyped-def]
    """Blocks of sorted keys; `last` takes the number of their last key.

    Scores that all came pool with what follows, scores that never came with what is before: only elsewhere a block can
    begin. Among equal scores outcomes rise, so the first key of a score tells whether all of it came.
    """
    n, one = keys.shape[0], keys.dtype.type(1)
    k, start, ones = 0, 0, np.int64(0)
    before, all_events = keys[0] >> one, keys[0] & one == one
    for i in range(n):
        score, event = keys[i] >> one, keys[i] & one
        if score != before:
            if not all_events and (event == one or (i + 1 < n and keys[i + 1] >> one == score)):
                mass[k], events[k], last[k] = i - start, ones, i - 1
                k = joined(mass, events, last, k + 1)
                start, ones = i, np.int64(0)
            before, all_events = score, event == one
        ones += np.int64(event)
    mass[k], events[k], last[k] = n - start, ones, n - 1
    return joined(mass, events, last, k + 1)


@compiled
def _of_rows(p, y, w, order, low, high, mass, events):  # type: ignore[no-untyped-def]
    """Blocks of the rows that have weight, by rising score; equal scores are one before they meet others."""
    k, x, a, wy = 0, 0.0, 0.0, 0.0
    for j in range(order.shape[0] + 1):
        i = order[min(j, order.shape[0] - 1)]
        if j < order.shape[0] and not w[i] > 0.0:
            continue
        score = np.float64(p[i]) + 0.0
        if a > 0.0 and (j == order.shape[0] or score != x):
            low[k], high[k], mass[k], events[k] = x, x, a, wy
            k = joined(mass, events, high, k + 1)
            a = wy = 0.0
        x = score
        a += w[i]
        wy += w[i] * y[i]
    return k


@compiled
def _means(w, wy, fit):  # type: ignore[no-untyped-def]
    m = wy.shape[1]
    mass, events, last = np.empty(m), np.empty(m), np.empty(m, dtype=np.int64)
    for b in range(wy.shape[0]):
        a = b if w.shape[0] > 1 else 0
        blocks = 0
        for j in range(m):
            if w[a, j] > 0.0:
                mass[blocks], events[blocks], last[blocks] = w[a, j], wy[b, j], j
                blocks = joined(mass, events, last, blocks + 1)
        if blocks == 0:
            fit[b, :] = np.nan
            continue
        last[blocks - 1] = m - 1
        start = 0
        for k in range(blocks):
            mean = events[k] / mass[k]
            # Cells without weight behind a block's last belong to it, those before the first block to the first.
            for j in range(start, last[k] + 1):
                fit[b, j] = mean
            start = last[k] + 1
            while k + 1 < blocks and start < m and not w[a, start] > 0.0:
                fit[b, start] = mean
                start += 1


def of_keys(keys: Array) -> Blocks:
    """The blocks of sorted keys (see `sort`): rows of weight 1 that came or did not. Exact."""
    n = len(keys)
    if n == 0:
        return Blocks(*np.empty((4, 0)))
    mass, events, last = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    k = _of_keys(plain(keys), mass, events, last)
    last = last[:k]
    first = np.append(0, last[:-1] + 1)
    return Blocks(sort.scores(keys[first]), sort.scores(keys[last]), mass[:k].astype(float), events[:k].astype(float))


def of_rows(p: Array, y: Array, w: Array) -> Blocks:
    """The blocks of scores p (n,) ≥ 0 with outcome shares y and weights w; rows without weight are absent."""
    buffers = np.empty((4, len(p)))
    if len(p) == 0:
        return Blocks(*buffers)
    # By a power of two, which rounds nothing: products of the largest or the smallest weights stay numbers.
    power = int(np.frexp(w.max())[1])
    narrow = p.astype(np.float32)  # is put in order several times as fast
    p = narrow if (narrow == p).all() else p
    rows = (p, y.astype(np.float64, copy=False), np.ldexp(w, -power, dtype=np.float64), sort.order(p))
    k = _of_rows(*(plain(x) for x in rows), *buffers)
    low, high, mass, events = (x[:k].copy() for x in buffers)
    return Blocks(low, high, np.ldexp(mass, power), np.ldexp(events, power))


def means(w: Array, wy: Array) -> Array:
    r"""The non-falling means that fit cells in rising order best, (…, m) from Σw and Σwy (…, m).

    .. math:: \min_{r_1 \le \dots \le r_m} \sum_j w_j (y_j - r_j)^2

    which is also the best fit by every other proper score. Leading axes broadcast. Cells without weight take no
    part and show their lower neighbor's value (the first ones their upper neighbor's), so that sums over cells
    may run over them. Cost: O(m) per draw.
    Source: Ayer et al. (1955), pool adjacent violators.

    >>> means(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])).tolist()
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
