"""Student t intervals of means over repeated trainings, their signs, and their text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.results import Interval

LEVEL = 0.95


def mean_interval(values: Sequence[float]) -> tuple[float, Interval | None]:
    """Mean of independent values, and its 95 % Student t interval, which is None for fewer than two values.

    >>> mean, interval = mean_interval([1.0, 2.0, 3.0])
    >>> mean, round(interval.low, 2), round(interval.high, 2)
    (2.0, -0.48, 4.48)
    """
    x = np.asarray(values, dtype=np.float64)
    mean = float(x.mean())
    if len(x) < 2:
        return mean, None
    return mean, Interval.from_standard_error(mean, float(x.std(ddof=1)) / len(x) ** 0.5, LEVEL, len(x) - 1)


def interval_sign(interval: Interval | None) -> int:
    """1 if an interval is above 0, −1 if it is below 0, and 0 if it contains 0 or is None.

    >>> [interval_sign(Interval(low, high, 0.95, "t")) for low, high in ((0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1))]
    [1, 0, -1]
    """
    if interval is None:
        return 0
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0


def format_mean(values: Sequence[float], digits: int = 4, *, sign: bool = False) -> str:
    """Format a mean with its 95 % t interval as `mean [low, high]`; with fewer than two values the mean alone.

    >>> format_mean([1.0, 2.0, 3.0], 1), format_mean([1.0], 1, sign=True)
    ('2.0 [-0.5, 4.5]', '+1.0')
    """
    mean, interval = mean_interval(values)
    text = f"{mean:{'+' if sign else ''}.{digits}f}"
    return text if interval is None else f"{text} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
