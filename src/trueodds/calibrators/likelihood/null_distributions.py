"""How large are such statistics by chance? χ² and the normal, or F and t where few units tell the variance."""

from __future__ import annotations

import math

from scipy.special import chdtr, chdtrc, fdtr, fdtrc, stdtrit

WITHIN = 1.959963984540054  # standard errors to the ends of a 95 % interval


def beyond(statistic: float, df: int, units: float | None = None) -> float:
    """P(χ² > statistic), or that of Hotelling's T² where the variance rests on so many independent units; else NaN.

    T² (G − d)/((G − 1) d) is F with d and G − d degrees of freedom.

    >>> round(beyond(5.991465, 2), 6), round(beyond(5.991465, 2, 20), 6)
    (0.05, 0.084851)
    """
    if not df:
        return math.nan
    if units is None:
        return float(chdtrc(df, statistic))
    return float(fdtrc(df, units - df, _ratio(statistic, df, units))) if units > df else math.nan


def below(statistic: float, df: int, units: float | None = None) -> float:
    """P(χ² ≤ statistic) or that of T², with all its digits where it is tiny."""
    if not df:
        return math.nan
    if units is None:
        return float(chdtr(df, statistic))
    return float(fdtr(df, units - df, _ratio(statistic, df, units))) if units > df else math.nan


def _ratio(statistic: float, df: int, units: float) -> float:
    return statistic * (units - df) / (df * (units - 1))


def within(units: float | None = None) -> float:
    """Standard errors to the ends of a 95 % interval; NaN where a single unit tells them.

    >>> round(within(), 6), round(within(11), 6)
    (1.959964, 2.228139)
    """
    if units is None:
        return WITHIN
    return float(stdtrit(units - 1, 0.975)) if units > 1 else math.nan
