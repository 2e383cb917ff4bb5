"""Intervals of upward biased errors from the norm of the residual noise, or from the noise floor."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from trueodds.core.results import Interval
from trueodds.core.typing import Array

NEAR_NULL = (1.15, 1.3)  # multiples of the upper null quantile between which the adjustment near the null fades out
NOISE_FLOOR_SHARES = (0.35, 1.05)  # lower and upper bound of the bias of an excess loss, as share of its noise floor


def residual_norm_interval(
    value: float, draws: Array, centered_norms: Array, null: Array, level: float, n: float, *, smooth: bool = True
) -> Interval:
    r"""[max(0, V − q), V + m]: q is the quantile of the norm of the residuals' own noise, m a margin above.

    By the triangle inequality the error cannot exceed the truth by more than the norm of the residuals' noise,
    which keeps the lower end honest although the error is biased upward. That noise is read from the resamples
    and from the null draws, whichever is larger: a bin of one row shows a resample no noise at all. Where the error
    stands clear of both (from two and a half to three and a half times their means on) it behaves like a mean: the lower end is then
    V − bias − z sd(V*), with the bias that the resamples show, if that is higher; the worst of several bins, which is
    not `smooth`, never does. The upper margin

    .. math:: m = \frac{z^2}{2n} + \sqrt{(z\,\mathrm{sd})^2 + \frac{z^4}{4n^2}}

    keeps its length where outcomes are so rare that no resample varies; n is the number of rows, as many equal ones
    as the weights are worth, or of clusters. Coverage is measured by `python -m benchmarks coverage`; at truth 0 no
    interval can cover from both sides.
    """
    q = max(float(np.quantile(centered_norms, (1 + level) / 2)), float(np.quantile(null, (1 + level) / 2)))
    z = float(ndtri((1 + level) / 2))
    margin = z * float(draws.std(ddof=1))
    low = max(0.0, value - q)
    noise = max(float(centered_norms.mean()), float(null.mean()))
    if smooth and value > 2.5 * noise:
        clear = 1.0 if noise == 0 else min(1.0, value / noise - 2.5)  # continuous in the value
        low += clear * max(0.0, value - max(0.0, float(draws.mean()) - value) - margin - low)
    return Interval(low, value + z**2 / (2 * n) + math.hypot(margin, z**2 / (2 * n)), level, "residual-norm")


def noise_floor_interval(
    value: float, draws: Array, null: Array, level: float, n: float, power: float = 1.0
) -> Interval:
    r"""The interval of an error that is no norm, but biased upward like one: the null draws alone say by how much.

    As `residual_norm_interval` with the null draws in place of the residuals' own noise; an error that is the square of a
    norm (`power` 2) is taken to its root first, where noise adds rather than multiplies. Coverage is measured by
    the study `estimators`.
    """
    v, d, z = (np.maximum(x, 0.0) ** (1 / power) for x in (value, draws, null))
    interval = residual_norm_interval(float(v), d, z, z, level, n)
    return Interval(interval.low**power, interval.high**power, level, "noise-floor")


def noise_floor_bounds_interval(
    value: float, draws: Array, noise_floor: float, null: Array, level: float, n: float
) -> Interval:
    r"""[V − 1.05 φ − z sd, V − 0.35 φ + m] for an excess loss V whose refitted curve follows noise worth φ.

    What the refit gains from noise is at most about the noise floor, and falls where the outcomes vary less than the
    model says or the curve is flat: measured .4 to 1.05 of φ, the noise floor less what the outcomes vary too little.
    The margin m is Wilson's as in `residual_norm_interval`, and the interval reaches to the value. Where that is the loss of
    many a calibrated model, the lower end is `lower_end_near_null`'s. Coverage: study `intervals`.
    """
    z = float(ndtri((1 + level) / 2))
    sd, extra = float(draws.std(ddof=1)), z**2 / (2 * n)
    extra *= math.sqrt(max(0.0, 1 - 4 * n * sd**2))
    high = value - NOISE_FLOOR_SHARES[0] * noise_floor + extra + math.hypot(z * sd, extra)
    low = lower_end_near_null(max(0.0, value - NOISE_FLOOR_SHARES[1] * noise_floor - z * sd), value, null, level)
    return Interval(low, max(high, value), level, "floor-bounds")


def lower_end_near_null(low: float, value: float, null: Array, level: float) -> float:
    """A lower end that is at most the value less the upper quantile of null draws, where the value is near that.

    So 0 is excluded no more often than it should be where it is the truth. Farther out the rule fades, since a step
    would make the end jump from seed to seed.

    >>> lower_end_near_null(0.5, 1.0, np.array([0.9]), 0.95), lower_end_near_null(0.5, 2.0, np.array([0.9]), 0.95)
    (0.09999999999999998, 0.5)
    """
    upper_quantile = float(np.quantile(null, (1 + level) / 2))
    if value >= NEAR_NULL[1] * upper_quantile:
        return low
    share = min(1.0, (NEAR_NULL[1] - value / upper_quantile) / (NEAR_NULL[1] - NEAR_NULL[0]))
    return low - share * max(0.0, low - max(0.0, value - upper_quantile))
