"""Intervals of errors with upward bias, which is estimated by the norm of the residual noise or by the noise floor."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.resampling.intervals.closed_form import wilson_shift

# Multiples of the upper null quantile between which the adjustment near the null fades out.
NULL_TRANSITION = (1.15, 1.3)
NOISE_FLOOR_SHARES = (0.35, 1.05)  # lower and upper bound of the bias of an excess loss, as share of its noise floor


def residual_norm_interval(
    value: float,
    draws: Array,
    centered_norms: Array,
    null_draws: Array,
    level: float,
    n: float,
    max_influence: float,
    *,
    null_quantile: float,
    smooth: bool = True,
    critical_value: float | None = None,
) -> Interval:
    r"""[max(0, V − q), V + m] with the quantile q of the norm of the residual noise and the upper margin m.

    By the triangle inequality the error exceeds the truth by at most the norm of the residual noise, so the lower limit
    is valid despite the upward bias. q is the larger one of the quantile of the resamples and the `null_quantile`,
    because a bin with one row has no variance in the resamples. If the error is clearly larger than the noise (from 2.5
    to 3.5 times the mean norm of the resamples and of the null draws), it behaves like a mean: the lower limit is then
    V − bias − z sd(V*), with the bias of the resamples, if that is higher. This is not used for the maximum over bins,
    which is not `smooth`. The upper margin

    .. math:: m = e + \sqrt{(z\,\mathrm{sd})^2 + e^2}

    with z² times the `wilson_shift` as e stays positive if outcomes are so rare that the resamples do not vary. n is
    the effective number of independent rows, and `max_influence` n times the largest influence of one of them. z is
    the normal quantile, or the `critical_value` for the variance of few clusters. Coverage is measured by `python -m
    benchmarks coverage`; at truth 0 no interval can cover from both sides.
    """
    z, resampled_quantile = float(ndtri((1 + level) / 2)), float(np.quantile(centered_norms, (1 + level) / 2))
    if critical_value is not None:  # for few clusters all quantiles are scaled by the same factor
        z, resampled_quantile = critical_value, resampled_quantile * critical_value / z
    norm_quantile = max(resampled_quantile, null_quantile)
    margin = z * float(draws.std(ddof=1))
    low = max(0.0, value - norm_quantile)
    noise = max(float(centered_norms.mean()), float(null_draws.mean()))
    if smooth and value > 2.5 * noise:
        clear_share = 1.0 if noise == 0 else min(1.0, value / noise - 2.5)  # continuous in the value
        low += clear_share * max(0.0, value - max(0.0, float(draws.mean()) - value) - margin - low)
    shift = z**2 * wilson_shift(margin / z, n, max_influence)
    return Interval(low, value + shift + math.hypot(margin, shift), level, "residual-norm")


def noise_floor_interval(
    value: float,
    draws: Array,
    null_draws: Array,
    level: float,
    n: float,
    power: float = 1.0,
    *,
    critical_value: float | None = None,
) -> Interval:
    """Interval of an error that is not a norm but has upward bias, which is estimated from the null draws.

    It is `residual_norm_interval` with the null draws as residual noise. For the square of a norm (`power` 2) the root
    is taken first, because noise is additive on that scale. Coverage is measured by the study `coverage`.
    """
    value_root, draw_roots, null_roots = (np.maximum(x, 0.0) ** (1 / power) for x in (value, draws, null_draws))
    interval = residual_norm_interval(
        float(value_root),
        draw_roots,
        null_roots,
        null_roots,
        level,
        n,
        1.0,
        null_quantile=float(np.quantile(null_roots, (1 + level) / 2)),
        critical_value=critical_value,
    )
    return Interval(interval.low**power, interval.high**power, level, "noise-floor")


def noise_floor_bounds_interval(
    value: float,
    draws: Array,
    noise_floor: float,
    null_draws: Array,
    level: float,
    n: float,
    *,
    critical_value: float | None = None,
) -> Interval:
    """[V − 1.05 φ − z sd, V − 0.35 φ + m] for an excess loss V with the noise floor φ of the recalibration curve.

    The gain of a refit from noise is at most about the noise floor. It is smaller if the outcomes vary less than
    predicted or the curve is flat: measured .4 to 1.05 of φ, where φ is the noise floor corrected for underdispersion.
    The margin m is Wilson's as in `residual_norm_interval`, with a typical influence of 2√V + z²/n: a row whose rate
    differs by d from its prediction changes V by up to 2d, and V of the Brier score is the mean of d². Single rows can
    have a larger influence. The interval is extended to contain the value. If the value is plausible under calibration,
    the lower limit is that of `lower_limit_near_null`. Coverage: study `intervals`.
    """
    z = float(ndtri((1 + level) / 2)) if critical_value is None else critical_value
    sd = float(draws.std(ddof=1))
    shift = z**2 * wilson_shift(sd, n, min(1.0, 2 * math.sqrt(value) + z**2 / n))
    high = value - NOISE_FLOOR_SHARES[0] * noise_floor + shift + math.hypot(z * sd, shift)
    low = max(0.0, value - NOISE_FLOOR_SHARES[1] * noise_floor - z * sd)
    low = lower_limit_near_null(low, value, float(np.quantile(null_draws, (1 + level) / 2)))
    return Interval(low, max(high, value), level, "floor-bounds")


def lower_limit_near_null(low: float, value: float, null_quantile: float) -> float:
    """Return the lower limit, reduced to the value minus the upper null quantile if the value is near that quantile.

    The interval then excludes a true value of 0 no more often than the nominal rate. The reduction fades out between
    NULL_TRANSITION multiples of the quantile, because a discontinuity would make the limit depend on the seed.

    >>> lower_limit_near_null(0.5, 1.0, 0.9), lower_limit_near_null(0.5, 2.0, 0.9)
    (0.09999999999999998, 0.5)
    """
    if value >= NULL_TRANSITION[1] * null_quantile:
        return low
    share = min(1.0, (NULL_TRANSITION[1] - value / null_quantile) / (NULL_TRANSITION[1] - NULL_TRANSITION[0]))
    return low - share * max(0.0, low - max(0.0, value - null_quantile))
