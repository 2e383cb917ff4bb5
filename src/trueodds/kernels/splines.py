"""Evaluate piecewise linear and step functions, and sum the logistic likelihood of a cubic spline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks, sum_blocks

_EVALUATED_ROWS = 2**15  # number of values per thread task
_MAX_BUCKETS = 4096  # maximum number of buckets
_TILE = 256  # number of values looked up at a time


@compile_kernel
def _bucket(v, buckets):  # type: ignore[no-untyped-def]
    return np.int32(max(min(v * buckets, buckets - 1.0), 0.0))


@compile_kernel
def _index_knots(x, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first knot in each bucket or a later one to `starts` (buckets + 1,)."""
    buckets, b = np.float64(starts.shape[0] - 1), 0
    for j in range(x.shape[0]):
        bucket = _bucket(x[j], buckets)
        while b <= bucket:
            starts[b] = j
            b += 1
    starts[b:] = x.shape[0]


@compile_kernel
def _count_knots_below(p, x, starts, half, right, v, passed):  # type: ignore[no-untyped-def]
    """Write the values p (m,) as float64 to v, and count the knots below each (with `right`, the knots not above it).

    The search proceeds step by step for all values without branches, because branches would be unpredictable. No bucket
    has 2 · half knots, and what is beyond a bucket is larger than v.
    """
    buckets = np.float64(starts.shape[0] - 1)
    for i in range(p.shape[0]):
        v[i] = p[i]
        passed[i] = starts[np.uint32(_bucket(v[i], buckets))]
    step = half
    while step > 0:
        for i in range(p.shape[0]):
            knot = x[np.uint32(passed[i] + step - np.int32(1))]
            passed[i] += step if (knot <= v[i] if right else knot < v[i]) else np.int32(0)
        step >>= np.int32(1)


@compile_kernel
def _lines(p, x, y, starts, half, out):  # type: ignore[no-untyped-def]
    v, passed = np.empty(_TILE), np.empty(_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _TILE):
        m = min(_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, half, True, v, passed)
        for i in range(m):
            below = np.uint32(max(passed[i] - np.int32(1), np.int32(0)))
            above = np.uint32(below + np.uint32(1))
            # Interpolated by the share of the distance, so that no slope overflows; clipped against rounding.
            share = max(v[i] - x[below], 0.0) / (x[above] - x[below])
            there = y[below] + share * (y[above] - y[below])
            out[start + i] = min(max(there, min(y[below], y[above])), max(y[below], y[above]))


@compile_kernel
def _steps(p, x, y, starts, half, right, out):  # type: ignore[no-untyped-def]
    v, passed = np.empty(_TILE), np.empty(_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _TILE):
        m = min(_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, half, right, v, passed)
        for i in range(m):
            out[start + i] = y[np.uint32(passed[i])]


@compile_kernel
def _none_at(P, lower, out):  # type: ignore[no-untyped-def]
    for i in range(P.shape[0]):
        low = 0
        for c in range(P.shape[1]):
            low += P[i, c] <= lower[c]
        out[i] = low == 0 or low == P.shape[1]


class SplineKnots:
    """Sorted knots x (m,) ≥ 0 with their values; buckets find them in O(1) if they are spread evenly."""

    def __init__(self, x: Array) -> None:
        buckets = min(_MAX_BUCKETS, 1 << max(4, 2 * len(x) - 1).bit_length())
        self._starts = np.empty(buckets + 1, dtype=np.int32)
        _index_knots(as_plain_array(np.asarray(x, dtype=np.float64)), self._starts)
        self._half = np.int32(1 << int(np.diff(self._starts).max()).bit_length() >> 1)
        self._x = as_plain_array(np.append(x, np.full(2 * int(self._half) + 1, np.inf)))

    def interpolate(self, p: Array, y: Array) -> Array:
        """Interpolate the values y (m,) at the knots linearly at each p (n,) ≥ 0; constant outside the knots."""
        y = as_plain_array(np.append(y, y[-1]))
        return _map_blocks(p, lambda some, out: _lines(some, self._x, y, self._starts, self._half, out))

    def evaluate_steps(self, p: Array, y: Array, *, right: bool) -> Array:
        """Return y[j] for each p (n,) ≥ 0, where j knots are below p, or with `right` at or below p; y is (m + 1,)."""
        y = as_plain_array(np.asarray(y, dtype=np.float64))
        return _map_blocks(p, lambda some, out: _steps(some, self._x, y, self._starts, self._half, right, out))


def _map_blocks(p: Array, work: Callable[[Array, Array], None]) -> Array:
    out = np.empty(len(p))
    map_blocks(lambda a, b: work(as_plain_array(p[a:b]), out[a:b]), len(p), _EVALUATED_ROWS)
    return out


def all_or_none_below(P: Array, lower: Array) -> Array:
    """Return a mask (n,) of the rows of P (n, K) with no value at or below `lower` (K,) of its class, or only such."""
    out, lower = np.empty(len(P), dtype=np.bool_), as_plain_array(np.asarray(lower, dtype=np.float64))
    map_blocks(
        lambda a, b: _none_at(as_plain_array(P[a:b]), lower, out[a:b]), len(P), max(1, 2**17 // max(1, P.shape[1]))
    )
    return out


N_SUMS = 15  # sums per interval: the value, its gradient (4) and the lower triangle of its Hessian (10)
_BLOCK = 2**14


@compile_kernel
def _spline_likelihood(x, events, missed, knots, f, curvature, out):  # type: ignore[no-untyped-def]
    j, part = -1, np.empty(4)
    low = high = width = 0.0
    for i in range(x.shape[0]):
        if j < 0 or (x[i] > high and j < knots.shape[0] - 2):
            j = max(j, 0)
            while x[i] > knots[j + 1] and j < knots.shape[0] - 2:
                j += 1
            low, high = knots[j], knots[j + 1]
            width = high - low
        up = (x[i] - low) / width
        down = 1.0 - up
        part[0], part[1] = down, up
        # Outside the knots the spline is linear, without the cubic terms.
        part[2] = (max(down, 0.0) ** 3 - down) * width * width / 6.0
        part[3] = (max(up, 0.0) ** 3 - up) * width * width / 6.0
        eta = part[0] * f[j] + part[1] * f[j + 1] + part[2] * curvature[j] + part[3] * curvature[j + 1]
        e = np.exp(-abs(eta))
        near = 1.0 / (1.0 + e)
        complement = e * near
        q, rest = (near, complement) if eta >= 0.0 else (complement, near)
        n = events[i] + missed[i]
        # No difference of nearly equal numbers, so that the gradient keeps its digits for nearly certain outcomes.
        slope = missed[i] * q - events[i] * rest
        curve = n * near * complement
        out[j, 0] += n * np.log1p(e) + (missed[i] * eta if eta >= 0.0 else -events[i] * eta)
        place = 5
        for a in range(4):
            out[j, 1 + a] += slope * part[a]
            for b in range(a + 1):
                out[j, place] += curve * part[a] * part[b]
                place += 1


def spline_likelihood(x: Array, events: Array, missed: Array, knots: Array, f: Array, curvature: Array) -> Array:
    """Negative log-likelihood of sorted scores, with its derivatives, between each pair of knots (m − 1, 15).

    At a score the curve is linear in four numbers: its values and its second derivatives at the knots on both sides.
    Each row has the value, the gradient in these four numbers, and the lower triangle of the Hessian. x (n,) is sorted,
    `events` and `missed` (n,) are the weights of events and non-events. f and `curvature` (m,) are the values and the
    second derivatives of the spline at the knots (m,).
    """
    rows, fixed = [as_plain_array(v) for v in (x, events, missed)], [as_plain_array(v) for v in (knots, f, curvature)]

    def add(start: int, stop: int, out: Array) -> None:
        _spline_likelihood(*(v[start:stop] for v in rows), *fixed, out)

    shape = (len(knots) - 1, N_SUMS)
    if len(x) > _BLOCK:
        return sum_blocks(add, len(x), shape, block=_BLOCK)
    out = np.zeros(shape)
    add(0, len(x), out)  # few rows are faster without threads
    return out
