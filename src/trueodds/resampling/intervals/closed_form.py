"""Limits of a rate in closed form, of Wilson and of Clopper and Pearson, and the asymmetry of Wilson's interval."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from trueodds.core.typing import Array


def wilson_shift(sd: float, n: float, max_influence: float) -> float:
    r"""Return Wilson's shift of both limits of a mean, divided by z²; 0 if the variance is the largest possible one.

    .. math:: \frac{h}{2n} \sqrt{1 - 4n\,\mathrm{sd}^2 / h^2}

    with h = n times the largest influence of one row (`max_influence`). For the rate p of an event it is
    :math:`|1 - 2p| / 2n`, and positive if the event is so rare that resamples do not vary.
    """
    return max_influence / (2 * n) * math.sqrt(max(0.0, 1 - 4 * n * (sd / max_influence) ** 2))


def wilson_limits(rate: Array | float, n: Array | float, quantile: float) -> tuple[Array, Array]:
    """Wilson's limits of a proportion `rate` of n rows, for the quantile z or t of the level.

    The arguments may be arrays, and n fractional for effective sample sizes. Source: Wilson (1927).

    >>> low, high = wilson_limits(0.5, 10.0, 1.96)
    >>> round(float(low), 4), round(float(high), 4)
    (0.2366, 0.7634)
    """
    z2 = quantile**2
    center = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half_width = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # Rounding must not put the rate outside its own interval.
    low = np.clip(np.minimum(center - half_width, rate), 0, 1)
    high = np.clip(np.maximum(center + half_width, rate), 0, 1)
    return np.where(np.equal(rate, 0), 0.0, low), np.where(np.equal(rate, 1), 1.0, high)


def clopper_pearson_limits(k: Array | float, n: Array | float, tail: float) -> tuple[Array, Array]:
    """Clopper-Pearson limits of a proportion k/n, each with tail probability `tail`.

    k and n may be arrays, and fractional for effective sample sizes. Source: Clopper & Pearson (1934).

    >>> low, high = clopper_pearson_limits(0.0, 10.0, 0.025)
    >>> float(low), round(float(high), 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    # A beta distribution with parameter 0 has no quantiles; the limit is then 0 or 1.
    has_no_event, has_only_events = k <= 0, k >= n
    low = np.where(has_no_event, 0.0, betaincinv(np.where(has_no_event, 1.0, k), n - k + 1, tail))
    high = np.where(has_only_events, 1.0, betaincinv(k + 1, np.where(has_only_events, 1.0, n - k), 1 - tail))
    return low, high
