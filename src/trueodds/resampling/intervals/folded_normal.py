"""Confidence intervals of weighted means of absolute gaps, such as the ECE, with bounds of their bias.

The estimated gap of a bin with the true gap μ and the standard error s has a folded normal distribution, with the mean
E|N(μ, s²)| = |μ| + s f(|μ| / s). The "excess" f(z) = 2φ(z) − 2zΦ(−z) decreases from .80 at 0 to .05 at 1.6. The bias of
an expected calibration error is the sum of s f over its bins. It lies between 0 and the noise floor and depends on how
the error is distributed over the bins: it is near the noise floor if only one bin is miscalibrated, and near 0 if every
bin has a gap of two standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from trueodds.core.arithmetic import divide_or_zero, weighted_sum
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, aggregation_weights
from trueodds.lenses.effective_sample_size import EffectiveSampleSize, critical_value
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.intervals.closed_form import wilson_shift
from trueodds.resampling.intervals.residual_norm import lower_limit_near_null

GAP_SHRINKAGE = 1.2  # few cells: each gap shrinks by this many standard errors for the upper bound of the bias
# Few cells: lower bound of the bias, as a share of the plug-in bias, for small and for clear errors.
MIN_BIAS_SHARES = (0.75, 0.5)
CELLS_TRANSITION = (15.0, 45.0)  # effective numbers of cells between which bounds per cell give way to an estimate
UPPER_BIAS_FACTOR, LOWER_BIAS_FACTOR = 1.2, 0.6  # many cells: bounds of the bias, as multiples of its estimate
# Many cells: the uncertainty of the bias estimate, added to the lower and the upper margin per standard error of bias.
MARGIN_GROWTH = (0.75, 1.0)
MIN_INFORMATIVE_ROWS = 2.0  # number of rows from which the gap of a cell counts in full
N_PSEUDO_ROWS = 2.0  # pseudo-rows of null variance in the variance estimate of a cell
# Transition from the null variance to the mixed variance, in multiples of the noise floor.
CLEAR_ERROR_TRANSITION = (1.25, 1.75)
N_EM_STEPS = 150  # steps of the EM algorithm
GRID_STEP = 0.125  # distance of the grid points of observed standardized gaps, in standard errors


@dataclass(frozen=True, slots=True)
class CellGaps:
    """Cells of a weighted mean of absolute gaps; all values include the weights."""

    abs_gap: Array  # (cells,) |weighted mean residual|
    sampling_variance: Array  # (cells,) its variance, estimated from the residuals
    null_variance: Array  # (cells,) its variance under calibration
    n_rows: Array  # (cells,) number of independent rows or clusters
    skewness_sign: Array  # (cells,) 1 if more of the rarer outcome would widen the gap, −1 if it would narrow it, or 0

    @property
    def mixed_variance(self) -> Array:
        """Sampling variance with pseudo-rows of null variance, which is positive also if all outcomes are equal."""
        return divide_or_zero(
            self.n_rows * self.sampling_variance + N_PSEUDO_ROWS * self.null_variance, self.n_rows - 1 + N_PSEUDO_ROWS
        )

    def skewness(self, margin: float) -> tuple[float, float]:
        """Skewness of the value for its lower limit (−1 to 0) and upper limit (−1 to 1), in units of the largest one.

        More of the rarer outcome than in the sample widens some gaps and narrows others, which count by their variance.
        A gap that is narrowed by more than its size is wider again, with the other sign; `margin` is the half-width of
        the interval, by which it can change. The lower limit is only reduced, by at most the gaps that are narrowed.
        """
        variance = self.mixed_variance
        total_variance = float(variance.sum())
        if total_variance == 0 or margin == 0:
            return 0.0, 1.0
        is_narrowed = self.skewness_sign < 0
        lower = -min(1.0, self.abs_gap[is_narrowed].sum() / (2 * margin)) * variance[is_narrowed].sum()
        upper = np.where(is_narrowed, np.maximum(1 - self.abs_gap / margin, -1), 1) @ variance
        return float(lower) / total_variance, float(upper) / total_variance


@dataclass(frozen=True, slots=True)
class BiasBounds:
    """Bounds of the bias of a weighted mean of absolute gaps, and factors of both margins for its uncertainty."""

    low: float  # smallest plausible bias
    high: float  # largest plausible bias
    margin_factors: tuple[float, float] = (1.0, 1.0)  # of the lower and of the upper margin


def folded_excess(z: Array) -> Array:
    r"""Return the excess f(z) = E|N(z, 1)| − z for z ≥ 0.

    >>> folded_excess(np.array([0.0, 1.6])).round(3).tolist()
    [0.798, 0.046]
    """
    return np.asarray(math.sqrt(2 / math.pi) * np.exp(-z * z / 2) - 2 * z * ndtr(-z))


def has_gaps(estimand: Estimand) -> bool:
    """Whether the value is a weighted mean of absolute gaps in cells that do not depend on the labels."""
    if estimand.cell_statistics is None or estimand.aggregate == "max" or any(view.joint for view in estimand.views):
        return False
    return all(_gap_weights(cell_statistic) is not None for cell_statistic in estimand.cell_statistics)


def cell_gaps(estimand: Estimand, preds: Predictions | None) -> CellGaps:
    """Return the gaps of the cells of all views, multiplied by the weights of the views."""
    assert estimand.cell_statistics is not None
    cluster = None if preds is None else preds.cluster
    cells = [
        _cell_gaps_of_view(view, cell_statistic, weight, cluster)
        for view, cell_statistic, weight in zip(
            estimand.views, estimand.cell_statistics, _view_weights(estimand), strict=True
        )
        if weight > 0
    ]
    return CellGaps(*(np.concatenate(columns) for columns in zip(*cells, strict=True)))


def bias_bounds(gaps: CellGaps, null_mean: float, resampled_bias: float) -> BiasBounds:
    """Return bounds of the bias of a weighted mean of absolute gaps.

    With few cells the bounds are sums over cells of the excess at the observed gap. With many cells they are multiples
    of the mean excess over the estimated distribution of the true gaps (`mean_excess`). In between both are combined.

    `null_mean` is the mean error of the null draws, which is larger than under normality if cells are small.
    `resampled_bias` is the bias of the resamples, a lower bound of the bias of the value.
    """
    variance = np.maximum(gaps.sampling_variance, gaps.null_variance)
    noise_floor = float(folded_excess(np.zeros(1))[0] * np.sqrt(variance).sum())
    if noise_floor == 0:
        return BiasBounds(0.0, 0.0)
    # If the outcomes vary less than predicted, the bias is smaller than the null variance implies. This is used only
    # if a cell, or the total, is clearly miscalibrated. Elsewhere a low variance may be due to chance.
    overall_clear_share = _transition_share(gaps.abs_gap.sum() / noise_floor, CLEAR_ERROR_TRANSITION)
    cell_clear_share = np.clip(divide_or_zero(gaps.abs_gap, np.sqrt(variance)) - 1, 0.0, 1.0)
    clear_share = np.maximum(overall_clear_share, cell_clear_share)
    std_errors = np.sqrt((1 - clear_share) * variance + clear_share * gaps.mixed_variance)
    z_scores, total_std_error = divide_or_zero(gaps.abs_gap, std_errors), float(std_errors.sum())
    normal_null_mean = float(folded_excess(np.zeros(1))[0] * np.sqrt(gaps.null_variance).sum())
    small_cell_factor = max(1.0, null_mean / normal_null_mean) if normal_null_mean > 0 else 1.0
    # One row with probability .5 always has a gap of one standard error, so gaps of few rows are uninformative.
    informative_z = z_scores * np.clip((gaps.n_rows - 1) / (MIN_INFORMATIVE_ROWS - 1), 0.0, 1.0)
    bias_share = MIN_BIAS_SHARES[0] + overall_clear_share * (MIN_BIAS_SHARES[1] - MIN_BIAS_SHARES[0])
    low = bias_share * float(std_errors @ folded_excess(z_scores))
    high = float(std_errors @ folded_excess(np.maximum(informative_z - GAP_SHRINKAGE, 0.0)))
    effective_cells = total_std_error**2 / float(std_errors @ std_errors)
    many_cells_share = _transition_share(effective_cells, CELLS_TRANSITION)
    if many_cells_share == 0:
        return BiasBounds(low, max(small_cell_factor * high, resampled_bias))
    lower_excess = mean_excess(z_scores, std_errors)
    upper_excess = lower_excess if np.array_equal(informative_z, z_scores) else mean_excess(informative_z, std_errors)
    low += many_cells_share * (LOWER_BIAS_FACTOR * lower_excess * total_std_error - low)
    high += many_cells_share * (UPPER_BIAS_FACTOR * upper_excess * total_std_error - high)
    lower_factor = 1 + many_cells_share * MARGIN_GROWTH[0] * upper_excess
    upper_factor = 1 + many_cells_share * MARGIN_GROWTH[1] * lower_excess
    return BiasBounds(low, max(small_cell_factor * high, resampled_bias), (lower_factor, upper_factor))


def _transition_share(x: float, limits: tuple[float, float]) -> float:
    """Share from 0 at the lower limit to 1 at the upper limit, linear in between."""
    lower, upper = limits
    return float(np.clip((x - lower) / (upper - lower), 0.0, 1.0))


def mean_excess(z: Array, s: Array) -> float:
    """Return the mean excess f over the estimated distribution of the true standardized gaps |μ| / s.

    `z` (cells,) are the observed standardized gaps and `s` (cells,) their standard errors, which are the weights of the
    cells. The distribution is the nonparametric maximum likelihood estimate, by the EM algorithm on a grid. Source:
    Kiefer & Wolfowitz (1956); Laird (1978).

    >>> round(mean_excess(np.full(100, 6.0), np.ones(100)), 3)
    0.0
    """
    observed_grid = np.arange(0, 8 + GRID_STEP, GRID_STEP)
    true_grid = np.concatenate((np.arange(0, 4, 0.25), np.arange(4, 8.1, 0.5)))
    position = np.minimum(z / GRID_STEP, len(observed_grid) - 1 - 1e-9)
    lower_index = position.astype(np.int64)
    n_grid_points = len(observed_grid)
    mass = np.bincount(lower_index, s * (lower_index + 1 - position), n_grid_points) + np.bincount(
        lower_index + 1, s * (position - lower_index), n_grid_points
    )
    occupied = np.flatnonzero(mass)
    mass, x = mass[occupied] / mass.sum(), observed_grid[occupied, None]
    likelihood = np.exp(-((x - true_grid) ** 2) / 2) + np.exp(-((x + true_grid) ** 2) / 2)
    distribution = np.full(len(true_grid), 1 / len(true_grid))
    for _ in range(N_EM_STEPS):
        distribution = distribution * ((mass / (likelihood @ distribution)) @ likelihood)
    return float(distribution @ folded_excess(true_grid))


def folded_normal_interval(
    value: float,
    sd: float,
    gaps: CellGaps,
    bias: BiasBounds,
    null_quantile: float,
    level: float,
    n: float,
    max_influence: float,
    *,
    critical_value: float | None = None,
) -> Interval:
    r"""[V − b_high − m_low, V − b_low + m_high]: the value V minus its bias bounds, with margins of the resamples.

    With few cells the upper bound of the bias is the excess if every gap is smaller by 1.2 standard errors, and the
    lower bound is .75 of the plug-in excess, or .5 if the error is clear. With many cells both bounds use the estimated
    distribution of the gaps, and the margins include the uncertainty of this estimate. They are those of Wilson,

    .. math:: m_{high} = e + \sqrt{(z\,\mathrm{sd})^2 + e^2}, \quad
        m_{low} = \sqrt{(z\,\mathrm{sd})^2 + e^2} - e, \quad
        e = g\,\frac{z^2 h}{2n} \sqrt{1 - 4n\,\mathrm{sd}^2 / h^2}

    with h = n times the largest influence of one row (`max_influence`), n the effective number of independent rows, and
    g the `skewness` of the limit, from −1 to 0 for the lower and from −1 to 1 for the upper one. z is the normal
    quantile, or the `critical_value` for the variance of few clusters. The margins stay positive if outcomes are so
    rare that the resamples do not vary: without events in a single cell, the interval is the distance of the prediction
    from Wilson's interval of the rate. If the value is plausible under calibration, the lower limit is at most V minus
    the `null_quantile` of calibrated models, which is exact at 0. The interval is extended to contain the value.
    Coverage: study `intervals`.
    """
    z = float(ndtri((1 + level) / 2)) if critical_value is None else critical_value
    shift = z**2 * wilson_shift(sd, n, max_influence)
    lower_shift, upper_shift = (shift * skewness for skewness in gaps.skewness(math.hypot(z * sd, shift)))
    lower_factor, upper_factor = bias.margin_factors
    high = value - bias.low + upper_shift + math.hypot(upper_factor * z * sd, upper_shift)
    low = max(0.0, value - bias.high + lower_shift - math.hypot(lower_factor * z * sd, lower_shift))
    low = lower_limit_near_null(low, value, null_quantile)
    return Interval(low, max(high, value), level, "folded-normal")


@dataclass(frozen=True, slots=True)
class GapError:
    """Value, standard deviation and bias bounds of one error of a difference."""

    value: float  # the estimated error
    sd: float  # standard deviation of its resamples
    bias: BiasBounds
    wilson_shift: float  # h / 2n of Wilson's margin, without the factor z²
    clusters: EffectiveSampleSize | None = None  # effective numbers of rows and clusters; None for independent rows


def folded_normal_difference(a: GapError, b: GapError, correlation: float, level: float) -> Interval:
    """Interval of a difference of two weighted means of absolute gaps.

    Each value is reduced by the midpoint of its bias bounds. The margin is z times the standard error of the difference
    plus the root of the summed squared half-widths of the bounds. Size for equal pairs: docs/estimators.md.
    """
    z = max(critical_value(side.clusters, level) for side in (a, b))
    center = a.value - b.value - (a.bias.low + a.bias.high - b.bias.low - b.bias.high) / 2
    half_width = math.hypot(a.bias.high - a.bias.low, b.bias.high - b.bias.low) / 2
    sd_a, sd_b = (side.sd * max(side.bias.margin_factors) for side in (a, b))
    sd = math.sqrt(max(0.0, sd_a**2 + sd_b**2 - 2 * correlation * sd_a * sd_b))
    wilson_margin = z**2 * max(a.wilson_shift, b.wilson_shift)
    margin = half_width + math.hypot(z * sd, wilson_margin)
    return Interval(center - margin, center + margin, level, "folded-normal")


def max_influence(estimand: Estimand) -> float:
    """n times the largest influence of one row on the value: the sum of the weights of the views that it can change.

    Changing the label of a row affects two classes, each with its weight. If several events can occur together, it can
    affect all views.
    """
    weights = _view_weights(estimand)
    if len(weights) > 1 and not _events_can_cooccur(estimand):
        weights = np.sort(weights)[-2:]
    return max(float(weights.sum()), 1e-12)


def _view_weights(estimand: Estimand) -> Array:
    return np.ones(1) if len(estimand.views) == 1 else aggregation_weights(estimand.views, estimand.aggregate)


def _events_can_cooccur(estimand: Estimand) -> bool:
    """Whether the events of several views can occur in one row together."""
    total = sum(float(weighted_sum(view.w, view.p)) for view in estimand.views)
    return not math.isclose(total, estimand.views[0].total, rel_tol=1e-3)


def _gap_weights(cell_statistic: CellStatistic) -> Array | None:
    """Weight of each bin in a weighted mean of absolute gaps, (size,); None for other statistics."""
    gap_weights = getattr(cell_statistic, "gap_weights", None)
    return None if gap_weights is None else gap_weights()


def _cell_gaps_of_view(
    view: View, cell_statistic: CellStatistic, weight: float, cluster: Array | None
) -> tuple[Array, ...]:
    """The columns of `CellGaps` for the cells of one view, whose weight in the aggregate is `weight`."""
    weights = _gap_weights(cell_statistic)
    assert weights is not None
    binned = pooled_view(view, cell_statistic)
    assert binned.bin_index is not None
    share, w = weight * weights[binned.bin_index], binned.w
    gap, scale = binned.y - binned.p, (share / w) ** 2
    skewness_sign = np.sign(gap) * np.sign(0.5 - binned.y)
    if cluster is None:
        ww = binned.sums("ww")
        sampling_variance = np.maximum(binned.sums("wwr") - gap**2 * ww, 0.0)
        null_variance = np.maximum(binned.sums("wwv"), 0.0)
        return share * np.abs(gap), scale * sampling_variance, scale * null_variance, w**2 / ww, skewness_sign
    # The independent terms are the residual sums of the rows of a cluster in a cell, whose signs the null draws flip.
    code = cluster.astype(np.int64) * cell_statistic.size + cell_statistic.index  # one for each cluster and cell
    _, first_rows, term = np.unique(code, return_index=True, return_inverse=True)
    cell = cell_statistic.index[first_rows]
    mass, residual_sums = np.bincount(term, view.w), np.bincount(term, view.w * (view.y - view.p))
    means = np.zeros(cell_statistic.size)
    means[binned.bin_index] = gap

    def sum_by_cell(x: Array) -> Array:
        return np.bincount(cell, x, cell_statistic.size)[binned.bin_index]

    sampling_variance = sum_by_cell((residual_sums - mass * means[cell]) ** 2)
    null_variance = sum_by_cell(residual_sums**2)
    n_rows = divide_or_zero(w**2, sum_by_cell(mass**2))
    return share * np.abs(gap), scale * sampling_variance, scale * null_variance, n_rows, skewness_sign
