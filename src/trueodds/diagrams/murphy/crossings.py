"""Where piecewise linear curves cross, where one is below another, and which of several is lowest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array

RELATIVE_TOLERANCE = 1e-12  # relative differences up to this are rounding errors


class SignSegment(NamedTuple):
    """A range of x in which a difference of curves has one sign."""

    low: float
    high: float
    sign: int  # −1, 0 or 1


def sign_segments(x: Array, difference: Array) -> list[SignSegment]:
    """Divide x into segments in which a piecewise linear difference of two curves has a constant sign.

    The difference is given at the increasing points `x` (m,). Two equal points are a jump.

    >>> segments = sign_segments(np.array([0.0, 1.0, 1.0, 2.0]), np.array([-1.0, 1.0, -2.0, -2.0]))
    >>> [tuple(segment) for segment in segments]
    [(0.0, 0.5, -1), (0.5, 1.0, 1), (1.0, 2.0, -1)]
    """
    segments: list[SignSegment] = []
    tolerance = RELATIVE_TOLERANCE * max(1.0, float(np.abs(difference).max(initial=0.0)))
    for (start, difference_at_start), (stop, difference_at_stop) in pairwise(zip(x, difference, strict=True)):
        if stop <= start:
            continue
        sign_at_start, sign_at_stop = _sign(difference_at_start, tolerance), _sign(difference_at_stop, tolerance)
        if sign_at_start * sign_at_stop < 0:
            root = float(start + (stop - start) * difference_at_start / (difference_at_start - difference_at_stop))
            _append_segment(segments, float(start), root, sign_at_start)
            _append_segment(segments, root, float(stop), sign_at_stop)
        else:  # where the difference is 0 at one end, it has the sign of the other end
            _append_segment(segments, float(start), float(stop), sign_at_start or sign_at_stop)
    return segments


def _sign(value: float, tolerance: float) -> int:
    """The sign of a difference, which counts as 0 up to `tolerance`."""
    return int(value > tolerance) - int(value < -tolerance)


def _append_segment(segments: list[SignSegment], low: float, high: float, sign: int) -> None:
    """Append a segment, or extend the last one if it has the same sign."""
    if segments and segments[-1].sign == sign:
        low = segments.pop().low
    segments.append(SignSegment(low, high, sign))


def length_with_sign(segments: list[SignSegment], sign: int) -> float:
    """The total length of the segments with that sign."""
    return sum(segment.high - segment.low for segment in segments if segment.sign == sign)


def find_crossings(segments: list[SignSegment]) -> list[float]:
    """Where the sign changes; segments of equality in between are skipped."""
    signed_segments = [segment for segment in segments if segment.sign]
    return [following.low for segment, following in pairwise(signed_segments) if segment.sign != following.sign]


def pointwise_signs(difference: Array) -> Array:
    """The sign of the difference at each point, 0 within rounding error."""
    tolerance = RELATIVE_TOLERANCE * max(1.0, float(np.abs(difference).max(initial=0.0)))
    sign: Array = (difference > tolerance).astype(int) - (difference < -tolerance)
    return sign


def lowest_curves(x: Array, curves: Sequence[Array]) -> dict[tuple[int, ...], float]:
    """The length of x on which each set of curves, given by their indices, is lowest; curves that coincide are a set.

    The curves are piecewise linear between the increasing points `x` (m,), where two equal points are a jump.

    >>> lowest_curves(np.array([0.0, 1.0]), [np.array([0.0, 1.0]), np.array([0.75, 0.75]), np.array([0.0, 1.0])])
    {(0, 2): 0.75, (1,): 0.25}
    """
    y = np.stack(curves)
    has_width = np.diff(x) > 0
    y_start, y_stop = y[:, :-1][:, has_width], y[:, 1:][:, has_width]  # (curves, intervals)
    width = np.diff(x)[has_width]
    tolerance = RELATIVE_TOLERANCE * max(1.0, float(np.abs(y).max(initial=0.0)))
    # Cut each interval where two curves cross. Between the cuts the order of the curves does not change, so that the
    # midpoint determines it. Cuts are fractions of the width of the interval.
    cut_fractions = [np.zeros_like(width), np.ones_like(width)]
    for i, j in combinations(range(len(y)), 2):
        difference_at_start, difference_at_stop = y_start[i] - y_start[j], y_stop[i] - y_stop[j]
        crosses = difference_at_start * difference_at_stop < 0
        change = np.where(crosses, difference_at_start - difference_at_stop, 1.0)
        cut_fractions.append(np.where(crosses, difference_at_start / change, 0.0))
    bounds = np.sort(np.stack(cut_fractions), axis=0)
    centers = (bounds[1:] + bounds[:-1]) / 2
    values = y_start[:, None] + centers * (y_stop - y_start)[:, None]
    return _sum_by_set(values <= values.min(axis=0) + tolerance, np.diff(bounds, axis=0) * width)


def lowest_curves_at_points(curves: Sequence[Array]) -> dict[tuple[int, ...], float]:
    """The number of points at which each set of curves, given by their indices, is lowest; tied curves are a set.

    >>> lowest_curves_at_points([np.array([0.0, 1.0]), np.array([0.0, 2.0])])
    {(0,): 1.0, (0, 1): 1.0}
    """
    y = np.stack(curves)
    tolerance = RELATIVE_TOLERANCE * max(1.0, float(np.abs(y).max(initial=0.0)))
    return _sum_by_set(y <= y.min(axis=0) + tolerance, np.ones(y.shape[1]))


def _sum_by_set(is_lowest: Array, weight: Array) -> dict[tuple[int, ...], float]:
    """Sum `weight` (…) by the set of the curves that are lowest there, the largest sum first.

    `is_lowest` (curves, …) tells which curves are lowest. The keys are the indices of the curves of a set.
    """
    # Bit i of a code is set if curve i belongs to the set.
    set_codes = np.tensordot(1 << np.arange(len(is_lowest)), is_lowest, axes=1).ravel()
    weight_by_set: dict[tuple[int, ...], float] = {}
    for set_code, weight_of_set in enumerate(np.bincount(set_codes, weight.ravel()).tolist()):
        if weight_of_set > 0:
            curve_set = tuple(i for i in range(len(is_lowest)) if set_code >> i & 1)
            weight_by_set[curve_set] = weight_of_set
    return dict(sorted(weight_by_set.items(), key=lambda item: -item[1]))
