"""The mean of labels that are known for few rows, made more precise by a score of every row, and its interval.

The scores of a judge are recalibrated first, by cross-fitted ridge logistic regression, which predicts every row once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.resampling.few_labels.judged_rows import SampledRows
from trueodds.resampling.intervals.closed_form import wilson_limits

MIN_DEGREES_OF_UNEQUAL_WEIGHTS = 3.0


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean with its standard error and what its interval needs."""

    value: float
    se: float
    label_mean: float  # weighted mean of the labels alone
    tuning: float  # λ: the share of the difference of the scores' means that is subtracted
    n_effective: float  # number of independent labels of equal weight
    degrees: float  # of Student's t
    label_variance: float
    residual_variance: float  # of y − λf

    def proportion_interval(self, level: float) -> Interval:
        """Wilson's interval with the effective sample size of the smoothed standard error (Korn & Graubard 1998)."""
        n = self.n_effective
        smoothed = (self.label_mean * n + 2) / (n + 4)
        variance = (n * self.se**2 + 2 * smoothed * (1 - smoothed) / n) / (n + 2)
        spread = self.value * (1 - self.value)
        size = spread / variance if spread > 0 else n
        return wilson_interval(self.value, size, float(stdtrit(self.degrees, (1 + level) / 2)), level)

    def difference_interval(self, level: float) -> Interval:
        """The interval of Bonett and Price (2012) for a difference of two paired proportions."""
        n, t = self.n_effective, float(stdtrit(self.degrees, (1 + level) / 2))
        center, half_width = self.value * n / (n + 2), t * math.sqrt(self.se**2 + 2 / (n + 2) ** 2)
        return Interval(max(-1.0, center - half_width), min(1.0, center + half_width), level, "bonett-price")


def wilson_interval(value: float, n: float, quantile: float, level: float) -> Interval:
    low, high = wilson_limits(value, n, quantile)
    return Interval(float(low), float(high), level, "wilson")


def prediction_powered(y: Array, f: Array | None, rows: SampledRows) -> PoweredMean:
    r"""Return the mean of the labels y (m,) with the help of the scores f (n,) of all rows; alone, if f is None.

    With weights w that add up to the number of rows N of each stratum,

    .. math:: \theta = \bar y - \lambda (\bar f_L - \bar f), \quad \lambda = \frac{\sum A B}{\sum B^2}, \quad
        A = w (y - \bar y), \quad B = w (f - \bar f_L) - (f - \bar f)

    where the means of labeled rows are weighted and w = 0 without a label. The standard error is that of the influence
    A − λB of each row or cluster.

    >>> rows = SampledRows(10, np.arange(4), np.full(4, 2.5), True, np.zeros(10, dtype=int), np.array([10.0]), None)
    >>> f = np.array([1, 1, 0, 0, 1, 1, 1, 1, 0, 0.0])
    >>> round(prediction_powered(np.array([1, 1, 0, 1.0]), f, rows).value, 4)  # λ = 1.875/3.65: .75 + .1 λ
    0.8014
    """
    influence = np.zeros(rows.n)
    label_means = _means_of_labeled(y, rows)
    deviation = y - label_means[rows.stratum[rows.labeled]]
    means, residual = label_means, deviation
    tuning, fitted_strata, inflation = 0.0, rows.n_strata, 1.0
    if f is not None:
        fitted_strata += 1
        labeled_means, all_means = _means_of_labeled(f[rows.labeled], rows), _means_of_all(f, rows)
        labeled_deviation = f[rows.labeled] - labeled_means[rows.stratum[rows.labeled]]
        difference = -(f - all_means[rows.stratum])
        difference[rows.labeled] += rows.weight * labeled_deviation
        sum_of_squares = float(np.sum(difference**2))
        if sum_of_squares > 0:
            tuning = float(np.sum(rows.weight * deviation * difference[rows.labeled])) / sum_of_squares
        means = label_means - tuning * (labeled_means - all_means)
        influence -= tuning * difference
        residual = deviation - tuning * labeled_deviation
        variance = float(np.sum(rows.weight * labeled_deviation**2)) / rows.n
        gap = float(np.sum(rows.rows_of_stratum * (labeled_means - all_means))) / rows.n
        inflation += gap**2 / variance if variance > 0 else 0.0
    influence[rows.labeled] += rows.weight * deviation
    value = float(np.sum(rows.rows_of_stratum * means)) / rows.n
    if rows.n_strata > 1:
        influence += (means - value)[rows.stratum]
    se, n_effective, degrees = _standard_error(influence, rows, fitted_strata)
    label_mean = float(np.sum(rows.rows_of_stratum * label_means)) / rows.n
    return PoweredMean(
        value, se * math.sqrt(inflation), label_mean, tuning, n_effective, degrees,
        float(np.sum(rows.weight * deviation**2)) / rows.n, float(np.sum(rows.weight * residual**2)) / rows.n,
    )  # fmt: skip


def _means_of_labeled(values: Array, rows: SampledRows) -> Array:
    """The weighted mean of the labeled rows of each stratum, without rounding error if all values are equal."""
    deviation = np.bincount(rows.stratum[rows.labeled], rows.weight * (values - values[0]))
    return np.asarray(values[0] + deviation / rows.rows_of_stratum)


def _means_of_all(values: Array, rows: SampledRows) -> Array:
    return np.bincount(rows.stratum, values) / rows.rows_of_stratum


def _standard_error(influence: Array, rows: SampledRows, n_fitted: int) -> tuple[float, float, float]:
    """Return the standard error of a sum of influences, the effective number of labels, and the degrees of freedom.

    `n_fitted` is the number of parameters that were estimated: the means of the strata, and the tuning.
    """
    m = len(rows.labeled)
    n_effective = float(m) if rows.has_equal_weights else rows.kish_n
    degrees = float(m - n_fitted)
    if not rows.has_equal_weights:
        degrees = max(MIN_DEGREES_OF_UNEQUAL_WEIGHTS, n_effective - n_fitted)
    se = math.sqrt(float(np.sum(influence**2)) * m / max(1, m - n_fitted)) / rows.n
    if rows.cluster is None:
        return se, n_effective, degrees
    units = rows.n_labeled_units
    degrees = float(units - n_fitted)
    between = float(np.sum(rows.cluster_sums(influence) ** 2)) * units / (units - n_fitted)
    cluster_se = math.sqrt(between) / rows.n
    if cluster_se > se > 0:
        return cluster_se, n_effective * (se / cluster_se) ** 2, degrees
    # Equal labels show no difference between clusters, which may still be all there is: each counts as one label.
    return se, n_effective if se > 0 else min(n_effective, float(units)), degrees


def labels_for_half_width(
    half_width: float, level: float, label_variance: float, residual_variance: float, n: int
) -> tuple[float | None, float]:
    """Return the number of labels for an interval ± `half_width`, and the smallest half width that n rows allow.

    The number is None if the half width needs more rows.
    """
    z = float(ndtri((1 + level) / 2))
    smallest = z * math.sqrt(label_variance / n)
    denominator = (half_width / z) ** 2 - (label_variance - residual_variance) / n
    if denominator <= 0 or half_width < smallest:
        return None, smallest
    return residual_variance / denominator, smallest


def rogan_gladen(
    n_positive: int, n: int, sensitivity: tuple[int, int], specificity: tuple[int, int], level: float
) -> tuple[float, Interval]:
    r"""Return the prevalence behind the answers of a yes-or-no judge with known error rates, and its interval.

    The counts are the right answers among positive and among negative rows, other than the n rows. The value is Rogan
    and Gladen's :math:`(t + \mathrm{sp} - 1) / (\mathrm{se} + \mathrm{sp} - 1)` for the share t of positive answers,
    the interval that of Lang and Reiczigel (2014), which adds z² answers and two rows to each of the counts.

    >>> round(rogan_gladen(700, 1000, (90, 100), (75, 100), 0.95)[0], 3)  # (.7 + .75 − 1) / (.9 + .75 − 1)
    0.692
    """
    z = float(ndtri((1 + level) / 2))
    se, sp, t = sensitivity[0] / sensitivity[1], specificity[0] / specificity[1], n_positive / n
    value = (t + sp - 1) / (se + sp - 1)
    n_t, n_se, n_sp = n + z**2, sensitivity[1] + 2, specificity[1] + 2
    t, se, sp = (n_positive + z**2 / 2) / n_t, (sensitivity[0] + 1) / n_se, (specificity[0] + 1) / n_sp
    center = (t + sp - 1) / (se + sp - 1)
    variance_se, variance_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * z**2 * (center * variance_se - (1 - center) * variance_sp)
    variance = t * (1 - t) / n_t + center**2 * variance_se + (1 - center) ** 2 * variance_sp
    half_width = z * math.sqrt(variance) / (se + sp - 1)
    low, high = (min(1.0, max(0.0, center + shift + sign * half_width)) for sign in (-1, 1))
    return value, Interval(low, high, level, "lang-reiczigel")


FOLDS = 5
SLOPE_PENALTY, INTERCEPT_PENALTY = 1.0, 0.1  # ridge, in nats per squared coefficient, times two
MAX_STEPS, STEP_TOLERANCE = 50, 1e-10
MIN_DISTANCE, MAX_DISTANCE = 1e-6, 0.25  # of scores of exactly 0 and 1 from these ends, where logits are taken


def standardized_logits(scores: Array) -> Array | None:
    """Return the logits of the scores with mean 0 and variance 1; None if all scores are equal.

    Scores of 0 and 1 count as half as far from the end as the nearest other score.

    >>> standardized_logits(np.array([0.0, 1.0, 1.0, 0.0])).tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """
    distances = np.minimum(scores, 1 - scores)
    nearest = float(distances.min(initial=1.0, where=distances > 0))
    distance = min(max(nearest / 2, MIN_DISTANCE), MAX_DISTANCE)
    p = np.clip(scores, distance, 1 - distance)
    logits: Array = np.log(p / (1 - p))
    logits -= logits.mean()
    sd = float(np.sqrt(logits @ logits / len(logits)))
    return None if sd < 1e-9 else logits / sd


def recalibrate_judge(scores: Array, y: Array, rows: SampledRows, rng: np.random.Generator) -> Array | None:
    """Return the recalibrated score of every row; None if all scores are equal.

    Each row is in a fold, with its cluster, and its score is recalibrated on labeled rows outside this fold, so that
    labeled and other rows are alike.
    """
    x = standardized_logits(scores)
    if x is None:
        return None
    fold = _assign_folds(rows, rng)
    is_fitted = fold[rows.labeled] != np.arange(FOLDS)[:, None]
    intercept, slope = _fit_ridge_logistic(x[rows.labeled], y, is_fitted.astype(np.float64))
    return np.asarray(expit(intercept[fold] + slope[fold] * x))


def _assign_folds(rows: SampledRows, rng: np.random.Generator) -> Array:
    """Return the fold (n,) of each row; the labeled rows, or clusters with a label, are divided evenly."""
    unit = np.arange(rows.n) if rows.cluster is None else rows.cluster
    labeled_units = np.unique(unit[rows.labeled])
    fold = rng.integers(FOLDS, size=rows.n if rows.cluster is None else int(unit.max()) + 1)
    fold[labeled_units] = rng.permutation(np.arange(len(labeled_units)) % FOLDS)
    return fold if rows.cluster is None else fold[unit]


def _fit_ridge_logistic(x: Array, y: Array, w: Array) -> tuple[Array, Array]:
    """Return intercepts and slopes (fits,) of logistic regressions on x (m,) with weights w (fits, m), by Newton."""
    a, b = np.zeros(len(w)), np.zeros(len(w))
    for _ in range(MAX_STEPS):
        q = expit(a[:, None] + b[:, None] * x)
        residual, curvature = w * (y - q), w * q * (1 - q)
        gradient_a, gradient_b = residual.sum(axis=1) - INTERCEPT_PENALTY * a, residual @ x - SLOPE_PENALTY * b
        h_aa, h_ab = curvature.sum(axis=1) + INTERCEPT_PENALTY, curvature @ x
        h_bb = curvature @ (x * x) + SLOPE_PENALTY
        determinant = h_aa * h_bb - h_ab**2
        step_a = (h_bb * gradient_a - h_ab * gradient_b) / determinant
        step_b = (h_aa * gradient_b - h_ab * gradient_a) / determinant
        # A step of more than two in a log odds could overshoot where the curvature is small.
        scale = 1 / np.maximum(1, np.abs(step_a[:, None] + step_b[:, None] * x).max(axis=1) / 2)
        a, b = a + scale * step_a, b + scale * step_b
        if max(np.abs(step_a).max(), np.abs(step_b).max()) < STEP_TOLERANCE:
            break
    return a, b
