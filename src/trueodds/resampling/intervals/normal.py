"""Normal, Student t and Welch intervals from a standard error, and the asymmetry of Wilson's interval."""

from __future__ import annotations

import math
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


def wilson_shift(sd: float, n: float, max_influence: float) -> float:
    r"""Return Wilson's shift of both limits of a mean, divided by z²; 0 if the variance is the largest possible one.

    .. math:: \frac{h}{2n} \sqrt{1 - 4n\,\mathrm{sd}^2 / h^2}

    with h = n times the largest influence of one row (`max_influence`). For the rate p of an event it is
    :math:`|1 - 2p| / 2n`, and positive if the event is so rare that resamples do not vary.
    """
    return max_influence / (2 * n) * math.sqrt(max(0.0, 1 - 4 * n * (sd / max_influence) ** 2))
