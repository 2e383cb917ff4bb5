"""Where the truth may lie: intervals from resamples, and Sun's for the squared error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.estimators.pairing.pairs import mean_square
from trueodds.lenses.view import View

NEAR = (1.15, 1.3)  # upper quantiles of the null between which a value stops being that of many a calibrated model
NOISE_FLOOR_SHARES = (0.35, 1.05)  # of its noise floor that an excess loss is biased by, least and most


def percentile(draws: Array, level: float) -> Interval:
    """The central part of the resamples. For a statistic biased upward it is shifted up and can miss the truth."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, "percentile")


def basic(value: float, draws: Array, level: float) -> Interval:
    """The percentile interval mirrored at the estimate, 2θ̂ − q."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(2 * value - high), float(2 * value - low), level, "basic")


def bca(value: float, draws: Array, jackknife: Array, level: float) -> Interval:
    r"""Efron's bias-corrected and accelerated interval.

    .. math:: \alpha = \Phi\Big(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\Big)

    with :math:`z_0` from the share of resamples below the estimate (half of those equal to it) and the
    acceleration from the skewness of the delete-one values. Falls back to percentiles where all resamples lie
    on one side. Source: Efron (1987).
    """
    share = ((draws < value).sum() + (draws <= value).sum()) / (2 * len(draws))
    if not 0 < share < 1:
        return percentile(draws, level)
    z0 = ndtri(share)
    gap = jackknife.mean() - jackknife
    scale = (gap**2).sum()
    a = (gap**3).sum() / (6 * scale**1.5) if scale > 0 else 0.0
    z = z0 + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(draws, ndtr(z0 + z / (1 - a * z)))
    return Interval(float(low), float(high), level, "bca")


def residual_norm(
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
        clear = 1.0 if noise == 0 else min(1.0, value / noise - 2.5)  # a step would make the end jump from seed to seed
        low += clear * max(0.0, value - max(0.0, float(draws.mean()) - value) - margin - low)
    return Interval(low, value + z**2 / (2 * n) + math.hypot(margin, z**2 / (2 * n)), level, "residual-norm")


def noise_floor(value: float, draws: Array, null: Array, level: float, n: float, power: float = 1.0) -> Interval:
    r"""The interval of an error that is no norm, but biased upward like one: the null draws alone say by how much.

    As `residual_norm` with the null draws in place of the residuals' own noise; an error that is the square of a
    norm (`power` 2) is taken to its root first, where noise adds rather than multiplies. Coverage is measured by
    the study `estimators`.
    """
    v, d, z = (np.maximum(x, 0.0) ** (1 / power) for x in (value, draws, null))
    interval = residual_norm(float(v), d, z, z, level, n)
    return Interval(interval.low**power, interval.high**power, level, "noise-floor")


def noise_floor_bounds(value: float, draws: Array, noise_floor: float, null: Array, level: float, n: float) -> Interval:
    r"""[V − 1.05 φ − z sd, V − 0.35 φ + m] for an excess loss V whose refitted curve follows noise worth φ.

    What the refit gains from noise is at most about the noise floor, and falls where the outcomes vary less than the
    model says or the curve is flat: measured .4 to 1.05 of φ, the noise floor less what the outcomes vary too little.
    The margin m is Wilson's as in `residual_norm`, and the interval reaches to the value. Where that is the loss of
    many a calibrated model, the lower end is `near_null`'s. Coverage: study `intervals`.
    """
    z = float(ndtri((1 + level) / 2))
    sd, extra = float(draws.std(ddof=1)), z**2 / (2 * n)
    extra *= math.sqrt(max(0.0, 1 - 4 * n * sd**2))
    high = value - NOISE_FLOOR_SHARES[0] * noise_floor + extra + math.hypot(z * sd, extra)
    low = near_null(max(0.0, value - NOISE_FLOOR_SHARES[1] * noise_floor - z * sd), value, null, level)
    return Interval(low, max(high, value), level, "floor-bounds")


def near_null(low: float, value: float, null: Array, level: float) -> float:
    """A lower end that is at most the value less the upper quantile of null draws, where the value is near that.

    So 0 is excluded no more often than it should be where it is the truth. Farther out the rule fades, since a step
    would make the end jump from seed to seed.

    >>> near_null(0.5, 1.0, np.array([0.9]), 0.95), near_null(0.5, 2.0, np.array([0.9]), 0.95)
    (0.09999999999999998, 0.5)
    """
    upper_quantile = float(np.quantile(null, (1 + level) / 2))
    if value >= NEAR[1] * upper_quantile:
        return low
    share = min(1.0, (NEAR[1] - value / upper_quantile) / (NEAR[1] - NEAR[0]))
    return low - share * max(0.0, low - max(0.0, value - upper_quantile))


def normal(value: float, se: float, level: float) -> Interval:
    """The estimate plus and minus its standard error times the normal quantile."""
    z = float(ndtri((1 + level) / 2))
    return Interval(value - z * se, value + z * se, level, "normal")


def student(value: float, se: float, degrees: float, level: float) -> Interval:
    """The estimate plus and minus its standard error times the quantile of Student's t."""
    t = float(stdtrit(degrees, (1 + level) / 2))
    return Interval(value - t * se, value + t * se, level, "t")


def welch(value: float, se: float, degrees: float, level: float) -> Interval:
    """The same with Welch's degrees of freedom of a difference.

    It excludes 0 exactly where the two-sided p-value of the t-test is below 1 − level. Source: Welch (1947).
    """
    return replace(student(value, se, degrees, level), method="welch")


def squared_error(binned: View) -> tuple[float, float]:
    r"""T_mn and the variance of its influence, from a binary view's bins.

    .. math:: T = \sum_b \frac{w_b}{w} \frac{(\sum wU)^2 - \sum w^2U^2}{(\sum w)^2 - \sum w^2}, \quad U = y - p

    is unbiased for the weighted mean of squared expected residuals per bin; bins of one row carry no
    information on it and add nothing. Source: Sun et al. (2024); weights by the same algebra.
    """
    w, ww = binned.w, binned.sums("ww")
    residual = w * (binned.y - binned.p)
    share = w / w.sum()
    mean = residual / w
    second = (binned.sums("wyy") - 2 * binned.sums("wpy") + binned.sums("wpp")) / w
    variance = float(share @ (4 * mean**2 * second - 3 * mean**4) - (share @ mean**2) ** 2)
    return float(mean_square(w, residual, binned.sums("wwr"), ww)), max(variance, 0.0)


def sun(binned: View, level: float) -> Interval:
    """The interval of Sun et al. (2024) for the root of the squared error on these bins.

    Its target is the error of the binned predictions; near zero the lower end moves smoothly to 0.
    """
    t, variance = squared_error(binned)
    t = max(t, 0.0)
    se = float(np.sqrt(variance / binned.effective_n))
    both, one = float(ndtri((1 + level) / 2)) * se, float(ndtri(level)) * se
    if t >= 2 * both:
        low = t - both
    elif t >= 2 * one:
        low = t / 2
    else:
        low = max(t - one, 0.0)
    return Interval(float(np.sqrt(low)), float(np.sqrt(t + both)), level, "sun")


def debiased(t: float, v: float, draws: Array, level: float) -> Interval:
    """[T − (q_hi(T*) − V), T − (q_lo(T*) − V)] for a debiased T whose plug-in on the same rows is V.

    The resamples of a debiased statistic scatter around its plug-in, so they are centred there.
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(t - (high - v)), float(t - (low - v)), level, "debiased")


def of_pairs(t: float, v: float, draws: Array, level: float) -> Interval:
    """As `debiased`, for the mean T over pairs of rows, with the longer of both margins above.

    The resamples of such a T scatter to the right, where the truth is then said to lie too near: with the margins as
    they are 86 to 93 % of the intervals of `skce` cover a truth of a few noise floors, with this one 95 to 100 %.
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(t - (high - v)), float(t + max(high - v, v - low)), level, "debiased")


def below(interval: Interval, upper_bound: float, n: float) -> Interval:
    """An interval that does not reach above the largest value there is; one of that value alone begins where Wilson's does.

    >>> interval = below(Interval(1.0, 1.2, 0.95, "normal"), 1.0, 30)
    >>> round(interval.low, 4), interval.high
    (0.8865, 1.0)
    """
    if interval.low > upper_bound:
        return interval
    z = float(ndtri((1 + interval.level) / 2))
    low = upper_bound * n / (n + z**2) if interval.low == upper_bound < interval.high else interval.low
    return replace(interval, low=low, high=min(interval.high, upper_bound))


def including(interval: Interval, value: float) -> Interval:
    """The interval, extended to a value beside it, as that of a debiased or an upward biased error may be."""
    low, high = min(interval.low, value), max(interval.high, value)
    return Interval(low, high, interval.level, interval.method)


def root(interval: Interval) -> Interval:
    """The interval of the root of a square; a negative end is 0."""
    low, high = (float(np.sqrt(max(end, 0.0))) for end in (interval.low, interval.high))
    return Interval(low, high, interval.level, interval.method)
