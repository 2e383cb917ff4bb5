"""Normal, Student t and Welch intervals from a standard error."""

from __future__ import annotations

from dataclasses import replace

from scipy.special import ndtri, stdtrit

from trueodds.core.results import Interval


def normal_interval(value: float, se: float, level: float) -> Interval:
    """Interval `value` ± z · `se` with the normal quantile z."""
    z = float(ndtri((1 + level) / 2))
    return Interval(value - z * se, value + z * se, level, "normal")


def t_interval(value: float, se: float, degrees: float, level: float) -> Interval:
    """Interval `value` ± t · `se` with the quantile t of Student's distribution with `degrees` degrees of freedom."""
    t = float(stdtrit(degrees, (1 + level) / 2))
    return Interval(value - t * se, value + t * se, level, "t")


def welch_interval(value: float, se: float, degrees: float, level: float) -> Interval:
    """t interval of a difference `value` with Welch's `degrees` of freedom.

    It excludes 0 exactly if the two-sided p-value of Welch's t-test is below 1 − level. Source: Welch (1947).
    """
    return replace(t_interval(value, se, degrees, level), method="welch")
