"""Evaluate piecewise linear functions and step functions at many points, by a fast search among their knots.

The range [0, 1] is divided into buckets of equal width, whose first knots are stored. A value is compared only with the
knots in its bucket.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, map_blocks

_VALUES_PER_TASK = 2**15  # number of evaluated points per thread task
_COMPARISONS_PER_TASK = 2**17  # number of values that are only compared with a bound, per thread task
_MAX_BUCKETS = 4096  # maximum number of buckets
_VALUES_PER_TILE = 256  # number of values looked up at a time


@compile_inline
def _find_bucket(value, n_buckets):  # type: ignore[no-untyped-def]
    return np.int32(max(min(value * n_buckets, n_buckets - 1.0), 0.0))


@compile_kernel
def _index_knots(x, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first knot in each bucket or a later one to `starts` (buckets + 1,)."""
    n_buckets, next_bucket = np.float64(starts.shape[0] - 1), 0
    for j in range(x.shape[0]):
        bucket = _find_bucket(x[j], n_buckets)
        while next_bucket <= bucket:
            starts[next_bucket] = j
            next_bucket += 1
    starts[next_bucket:] = x.shape[0]


@compile_kernel
def _count_knots_below(p, x, starts, first_step, right, values, n_below):  # type: ignore[no-untyped-def]
    """Count the knots below each value of p (m,), or with `right` the knots not above it, in `n_below` (≥ m,).

    A binary search in the bucket takes the same steps, `first_step`, `first_step` / 2, …, 1, for all values, because
    branches would be unpredictable. It ends at the right knot because `first_step` is a power of two and no bucket has
    2 · `first_step` knots; a knot beyond the bucket (x is padded with ∞) is larger than the value.
    """
    n_buckets = np.float64(starts.shape[0] - 1)
    for i in range(p.shape[0]):
        values[i] = p[i]
        n_below[i] = starts[np.uint32(_find_bucket(values[i], n_buckets))]
    step = first_step
    while step > 0:
        for i in range(p.shape[0]):
            knot = x[np.uint32(n_below[i] + step - np.int32(1))]
            n_below[i] += step if (knot <= values[i] if right else knot < values[i]) else np.int32(0)
        step >>= np.int32(1)


@compile_kernel
def _interpolate_linearly(p, x, y, starts, first_step, out):  # type: ignore[no-untyped-def]
    values, n_below = np.empty(_VALUES_PER_TILE), np.empty(_VALUES_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _VALUES_PER_TILE):
        m = min(_VALUES_PER_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, first_step, True, values, n_below)
        for i in range(m):
            below = np.uint32(max(n_below[i] - np.int32(1), np.int32(0)))
            above = np.uint32(below + np.uint32(1))
            # Interpolated by the share of the distance, so that no slope overflows; clipped against rounding.
            share = max(values[i] - x[below], 0.0) / (x[above] - x[below])
            interpolated = y[below] + share * (y[above] - y[below])
            out[start + i] = min(max(interpolated, min(y[below], y[above])), max(y[below], y[above]))


@compile_kernel
def _evaluate_steps(p, x, y, starts, first_step, right, out):  # type: ignore[no-untyped-def]
    values, n_below = np.empty(_VALUES_PER_TILE), np.empty(_VALUES_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _VALUES_PER_TILE):
        m = min(_VALUES_PER_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, first_step, right, values, n_below)
        for i in range(m):
            out[start + i] = y[np.uint32(n_below[i])]


@compile_kernel
def _check_all_or_none_below(P, lower, out):  # type: ignore[no-untyped-def]
    """Write to `out` (n,) whether all or none of the values of a row of P are at or below `lower` (K,)."""
    for i in range(P.shape[0]):
        n_below = 0
        for c in range(P.shape[1]):
            n_below += P[i, c] <= lower[c]
        out[i] = n_below == 0 or n_below == P.shape[1]


class Knots:
    """Sorted knots x (m,) ≥ 0 of functions; evaluating one at a point takes O(1) if the knots are spread evenly."""

    def __init__(self, x: Array) -> None:
        n_buckets = min(_MAX_BUCKETS, 1 << max(4, 2 * len(x) - 1).bit_length())
        self._starts = np.empty(n_buckets + 1, dtype=np.int32)
        _index_knots(as_plain_array(np.asarray(x, dtype=np.float64)), self._starts)
        self._first_step = np.int32(1 << int(np.diff(self._starts).max()).bit_length() >> 1)
        self._x = as_plain_array(np.append(x, np.full(2 * int(self._first_step) + 1, np.inf)))

    def interpolate(self, p: Array, y: Array) -> Array:
        """Interpolate the values y (m,) at the knots linearly at each p (n,) ≥ 0; constant outside the knots."""
        y = as_plain_array(np.append(y, y[-1]))
        return _evaluate_in_blocks(
            p, lambda block, out: _interpolate_linearly(block, self._x, y, self._starts, self._first_step, out)
        )

    def evaluate_steps(self, p: Array, y: Array, *, right: bool) -> Array:
        """Return y[j] for each p (n,) ≥ 0, where j knots are below p, or with `right` at or below p; y is (m + 1,)."""
        y = as_plain_array(np.asarray(y, dtype=np.float64))
        return _evaluate_in_blocks(
            p, lambda block, out: _evaluate_steps(block, self._x, y, self._starts, self._first_step, right, out)
        )


def _evaluate_in_blocks(p: Array, work: Callable[[Array, Array], None]) -> Array:
    """Run `work(block, out)` on blocks of p (n,), where `out` is the part of the result for a block; return it (n,)."""
    out = np.empty(len(p))
    map_blocks(lambda start, stop: work(as_plain_array(p[start:stop]), out[start:stop]), len(p), _VALUES_PER_TASK)
    return out


def are_all_or_none_below(P: Array, lower: Array) -> Array:
    """Return whether all or none of the values of each row of P (n, K) are at or below `lower` (K,), as a mask (n,)."""
    out, lower = np.empty(len(P), dtype=np.bool_), as_plain_array(np.asarray(lower, dtype=np.float64))
    map_blocks(
        lambda start, stop: _check_all_or_none_below(as_plain_array(P[start:stop]), lower, out[start:stop]),
        len(P),
        max(1, _COMPARISONS_PER_TASK // max(1, P.shape[1])),
    )
    return out
