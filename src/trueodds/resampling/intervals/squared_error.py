"""Intervals of debiased squared errors: Sun's normal approximation, and resamples centered on the plug-in value."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.estimators.debiased import mean_square
from trueodds.kernels.bootstrap import CellSums
from trueodds.lenses.effective_sample_size import effective_n
from trueodds.lenses.view import View
from trueodds.resampling.draws import Bootstrap
from trueodds.resampling.intervals.percentile import central_quantiles


def debiased_squared_error(binned: View) -> tuple[float, float]:
    r"""Return the debiased squared error T and the variance of its influence function, from the bins of a binary view.

    .. math:: T = \sum_b \frac{w_b}{w} \frac{(\sum wU)^2 - \sum w^2U^2}{(\sum w)^2 - \sum w^2}, \quad U = y - p

    (T_mn in the paper) is unbiased for the weighted mean of squared expected residuals per bin. Bins with one row carry
    no information and add 0. Source: Sun et al. (2024); weights by the same algebra.
    """
    w, ww = binned.w, binned.sums("ww")
    residual_sums = w * (binned.y - binned.p)
    share = w / w.sum()
    mean_residual = residual_sums / w
    mean_square_residual = (binned.sums("wyy") - 2 * binned.sums("wpy") + binned.sums("wpp")) / w
    variance = float(
        share @ (4 * mean_residual**2 * mean_square_residual - 3 * mean_residual**4) - (share @ mean_residual**2) ** 2
    )
    return float(mean_square(w, residual_sums, binned.sums("wwr"), ww)), max(variance, 0.0)


def sun_interval(binned: View, level: float) -> Interval:
    """Interval of Sun et al. (2024) for the root of the squared error on these bins.

    The target is the error of the binned predictions. Near zero the lower limit decreases continuously to 0.
    """
    t, variance = debiased_squared_error(binned)
    t = max(t, 0.0)
    se = float(np.sqrt(variance / effective_n(binned)))
    two_sided_margin, one_sided_margin = float(ndtri((1 + level) / 2)) * se, float(ndtri(level)) * se
    if t >= 2 * two_sided_margin:
        low = t - two_sided_margin
    elif t >= 2 * one_sided_margin:
        low = t / 2
    else:
        low = max(t - one_sided_margin, 0.0)
    return Interval(float(np.sqrt(low)), float(np.sqrt(t + two_sided_margin)), level, "sun")


def debiased_interval(debiased_value: float, plug_in_value: float, draws: Array, level: float) -> Interval:
    """[T − (q_hi(T*) − V), T − (q_lo(T*) − V)] for a debiased T whose plug-in value on the same rows is V.

    The resamples T* (`draws`) of a debiased statistic are centered on its plug-in value: drawing the same row several
    times adds the bias again. q_lo and q_hi are their quantiles at (1 ∓ level) / 2.
    """
    low, high = central_quantiles(draws, level)
    return Interval(
        float(debiased_value - (high - plug_in_value)), float(debiased_value - (low - plug_in_value)), level, "debiased"
    )


def pair_mean_interval(debiased_value: float, plug_in_value: float, draws: Array, level: float) -> Interval:
    """Return `debiased_interval` for a mean T over pairs of rows, with the larger of both margins as the upper one.

    The resamples of such a T are right-skewed, so the plain upper limit is too low: with it 86 to 93 % of the intervals
    of `skce` cover a truth of a few noise floors, with the larger margin 95 to 100 %.
    """
    low, high = central_quantiles(draws, level)
    return Interval(
        float(debiased_value - (high - plug_in_value)),
        float(debiased_value + max(high - plug_in_value, plug_in_value - low)),
        level,
        "debiased",
    )


def root_interval(interval: Interval) -> Interval:
    """Interval of the root of a square; negative limits become 0."""
    low, high = (float(np.sqrt(max(end, 0.0))) for end in (interval.low, interval.high))
    return Interval(low, high, interval.level, interval.method)


def squared_error_draws(view: View, index: Array, size: int, resamples: int, rng: np.random.Generator) -> Array:
    """Return the debiased squared error of each row resample, (resamples,), on `size` bins, for its interval."""
    residuals = view.w * (view.y - view.p)
    # `CellSums` adds up three values per row and accumulator. T needs four sums by bin, so every row adds to two
    # accumulators: the first with w, the residual and its square, the second with w² as its second value.
    accumulator_index = np.stack([index, size + index], axis=1).astype(np.int32)
    weights = np.stack([view.w, view.w], axis=1)
    second_values = np.stack([residuals, view.w**2], axis=1)
    third_values = np.stack([residuals**2, np.zeros_like(residuals)], axis=1)
    cell_sums = CellSums(accumulator_index, weights, second_values, third_values, 2 * size)

    def evaluate_draws(multiplicities: Array) -> Array:
        w, second_sums, third_sums = cell_sums.sum_cells(multiplicities)
        return mean_square(w[:, :size], second_sums[:, :size], third_sums[:, :size], second_sums[:, size:])

    return np.concatenate(Bootstrap(len(residuals), None, resamples, rng).map_blocks(evaluate_draws))
