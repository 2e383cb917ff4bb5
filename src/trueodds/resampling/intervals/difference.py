"""Intervals of the difference of two errors: MOVER from their own intervals, or resamples of debiased squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from trueodds.core.results import Interval
from trueodds.core.typing import Array


@dataclass(frozen=True, slots=True)
class IntervalEnds:
    """One model's error: its value, the ends of its own interval, and how far its resamples scatter."""

    value: float
    low: float
    high: float
    sd: float


def mover_interval(a: IntervalEnds, b: IntervalEnds, correlation: float, level: float) -> Interval:
    r"""The method of variance estimates recovery, for errors that are biased upward and cannot be below 0.

    Of the lower margin :math:`A = \hat\theta_a - l_a` only a part is chance; the rest allows for bias, which does not
    vary and so does not shrink when it meets the upper margin :math:`m_b = u_b - \hat\theta_b` of the other model:

    .. math:: L = \hat\theta_a - \hat\theta_b - (A - r) - \sqrt{r^2 + m_b^2 - 2 \rho\, r\, m_b}, \quad
        r = \min(A, z\,\mathrm{sd}_a) \min(1, l_a / A)

    and the upper end likewise. With r = A it is Zou and Donner's interval, which covers 76 to 86 % where one
    model is calibrated and the other far from it, or where one says too much and the other too little. Where an
    interval touches 0 nothing of its margin is chance, and L is l_a − u_b. The correlation is that of resamples that
    both models share, 0 for models of different rows; a negative one is taken half as large again, because an error
    that cannot pass below 0 hides some of it near there. Source: Zou & Donner (2008); Zou (2007) for correlated
    estimates; the split of the margin is ours.

    >>> a, b = IntervalEnds(0.5, 0.2, 0.8, 0.2), IntervalEnds(0.1, 0.0, 0.3, 0.1)
    >>> round(mover_interval(a, b, 0.0, 0.95).low, 4)
    0.0172
    """
    z = float(ndtri((1 + level) / 2))
    a, b = _inside(a), _inside(b)
    correlation = correlation if correlation > 0 else max(-1.0, 1.5 * correlation)
    low = _lower(a, b, correlation, z)
    high = -_lower(b, a, correlation, z)
    return Interval(low, high, level, "mover")


def _inside(ends: IntervalEnds) -> IntervalEnds:
    """A plug-in may lie beyond the interval of the debiased error; the nearest end then stands for it."""
    return IntervalEnds(min(max(ends.value, ends.low), ends.high), ends.low, ends.high, ends.sd)


def _lower(a: IntervalEnds, b: IntervalEnds, correlation: float, z: float) -> float:
    below, above = a.value - a.low, b.high - b.value
    chance = min(below, z * a.sd) * min(1.0, max(a.low, 0.0) / below) if below > 0 else 0.0
    square = chance**2 + above**2 - 2 * correlation * chance * above
    return a.value - b.value - (below - chance) - math.sqrt(max(square, 0.0))


def debiased_difference(t: float, v: float, draws: Array, level: float) -> Interval:
    r"""[T − m, T + m] for the difference T of two debiased statistics whose plug-ins differ by V.

    The resamples scatter around V; m is the longer of q_hi(T*) − V and V − q_lo(T*), because with the margins as
    they are 93 to 100 % of the intervals cover, with this one 95 to 100 %.
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    margin = float(max(high - v, v - low))
    return Interval(t - margin, t + margin, level, "debiased")


def root_difference(squares: Interval, a: Interval, b: Interval) -> Interval:
    r"""The interval of √θ_a − √θ_b from that of θ_a − θ_b, and from the intervals of both roots.

    .. math:: \sqrt{\theta_a} - \sqrt{\theta_b} = \frac{\theta_a - \theta_b}{s}, \quad
        s = \sqrt{\theta_a} + \sqrt{\theta_b} \ge \sqrt{|\theta_a - \theta_b|}

    An end that lies away from 0 is divided by the least possible s, one that lies toward 0 by the largest, so that 0
    is inside exactly where it is inside the interval of the squares.
    """
    min_sum, max_sum = a.low + b.low, a.high + b.high
    low, high = (_root(end, min_sum if outward else max_sum) for end, outward in _ends(squares))
    if high > 0:
        high = min(high, a.high - b.low) if a.high > b.low else high
    if low < 0:
        low = max(low, a.low - b.high) if a.low < b.high else low
    # The limits of the roots can cross if a debiased square is negative by more than the width of the interval.
    return Interval(min(low, high), max(low, high), squares.level, squares.method)


def _ends(squares: Interval) -> list[tuple[float, bool]]:
    return [(squares.low, squares.low < 0), (squares.high, squares.high > 0)]


def _root(square: float, total: float) -> float:
    total = max(total, math.sqrt(abs(square)))
    return square / total if total > 0 else 0.0
