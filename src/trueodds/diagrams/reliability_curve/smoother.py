"""Gaussian kernel smoother of outcomes by score, and pointwise and simultaneous bands of the smoothed event rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import bdtrik, betainc, betaincinv, expit, ndtr, ndtri

from trueodds.calibrators._curves.kernel_regression import (
    MIN_BANDWIDTH,
    bin_scores,
    kernel_regression,
    select_bandwidth,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, log_odds
from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums, sum_by_score
from trueodds.diagrams.resampled_labels import ResampledLabels
from trueodds.estimators._smoothing.kernel_density import KERNELS
from trueodds.estimators.ece_kde import MAX_RANGE_SHORTFALL, KernelDensityError
from trueodds.lenses.view import View

RangeSetting = Literal["auto", "1/K"]  # start of the range of probabilities: 1/K, or chosen by the scores

POINTS_PER_BANDWIDTH = 3  # smallest number of points per bandwidth
MIN_POINTS = 200  # smallest number of points from 0 to 1
GROUPS_PER_BANDWIDTH = 4  # groups of scores per bandwidth, for bands


@dataclass(frozen=True)
class CurveSmoother:
    """A Gaussian kernel on a scale of the scores; probabilities are reflected at `low` and 1."""

    scale: str
    low: float  # smallest possible probability: 0 or 1/K
    bandwidth: float  # on the scale

    @property
    def reflects(self) -> bool:
        """Whether scores are reflected at the ends of the range."""
        return self.scale == "probability"

    @property
    def relative_bandwidth(self) -> float:
        """The bandwidth relative to the length of the range."""
        return self.bandwidth / (1 - self.low) if self.reflects else self.bandwidth

    @property
    def is_narrowest(self) -> bool:
        """Whether the bandwidth is the smallest allowed."""
        return self.bandwidth == MIN_BANDWIDTH[self.scale]

    def on_scale(self, p: Array) -> Array:
        """Transform probabilities to the scale; reflected ones to [0, 1]."""
        if self.reflects:
            return (np.clip(p, self.low, 1.0, dtype=np.float64) - self.low) / (1 - self.low)
        return log_odds(p, MIN_PROB)

    def curve_points(self, s: Array) -> tuple[Array, Array]:
        """The points of the curve: increasing probabilities within a bandwidth of a score, and their piece.

        Points of one piece follow each other without a gap. Probabilities are multiples of 1/200, or of a half, a
        quarter and so on of it; log odds are multiples of a third of the bandwidth, plus those of whole percentages.
        """
        if self.reflects:
            steps_per_unit = MIN_POINTS * 2 ** max(
                0, math.ceil(math.log2(POINTS_PER_BANDWIDTH / (MIN_POINTS * self.bandwidth)) - 1e-9)
            )
            x, step = np.clip(s, self.low, 1.0, dtype=np.float64), 1 / steps_per_unit
        else:
            x, step = log_odds(s, MIN_PROB), self.bandwidth / POINTS_PER_BANDWIDTH
        radius = math.floor(self.bandwidth / step + 1e-9)
        grid_index = _neighborhood(np.unique(np.rint(x / step).astype(np.int64)), radius)
        if self.reflects:
            first_step = math.ceil(self.low * steps_per_unit - 1e-9)
            grid_index = grid_index[(grid_index >= first_step - 1) & (grid_index <= steps_per_unit)]
            # 1/K need not be a multiple of the step: it replaces the multiple below it.
            grid_index = grid_index[(grid_index >= first_step) | (self.low < first_step / steps_per_unit - 1e-12)]
            point = np.maximum(grid_index / steps_per_unit, self.low)
        else:
            integer_percentages = np.arange(1, 100) / 100
            percentage_index = log_odds(integer_percentages, MIN_PROB) / step
            is_near = np.isin(np.rint(percentage_index), grid_index)
            point = np.concatenate([expit(grid_index * step), integer_percentages[is_near]])
            point[point <= MIN_PROB], point[1 - point <= MIN_PROB] = 0.0, 1.0
            grid_index = np.concatenate([grid_index, percentage_index[is_near]])
        order = np.argsort(grid_index, kind="stable")
        piece = np.cumsum(np.diff(grid_index[order], prepend=grid_index[order[0]]) > 1 + 1e-9)
        point, first = np.unique(point[order], return_index=True)
        return point, piece[first]

    def score_groups(self, score_sums: DistinctScoreSums) -> DistinctScoreSums:
        """Merge neighboring scores within a quarter of a bandwidth."""
        z = self.on_scale(score_sums.score)
        cell = np.floor((z - z[0]) * (GROUPS_PER_BANDWIDTH / self.relative_bandwidth)).astype(np.int64)
        return score_sums.merge_groups(np.flatnonzero(np.diff(cell, prepend=-1)))


def choose_smoother(
    view: View, score_sums: DistinctScoreSums, bandwidth: float | str, scale: str, range_setting: RangeSetting | None
) -> CurveSmoother:
    """The smoother of a view, chosen from its scores alone, without the outcomes."""
    w = score_sums.w * (view.n_represented / view.total)
    low = _range_start(view, score_sums, range_setting) if scale == "probability" else 0.0
    if scale == "probability":
        return CurveSmoother(scale, low, select_bandwidth(score_sums.score, w, bandwidth, scale))
    return CurveSmoother(
        scale, low, select_bandwidth(log_odds(score_sums.score, MIN_PROB), w, bandwidth, scale, -math.log(MIN_PROB))
    )


def smooth_view(
    view: View, bandwidth: float | str, scale: str, range_setting: RangeSetting | None
) -> tuple[DistinctScoreSums, CurveSmoother, dict[str, Array]]:
    """The scores of a view, its smoother, and the columns of the curve: smoothed outcomes and smoothed predictions."""
    score_sums = sum_by_score(view)
    smoother = choose_smoother(view, score_sums, bandwidth, scale, range_setting)
    point, piece = smoother.curve_points(score_sums.score)
    z, x = smoother.on_scale(score_sums.score), smoother.on_scale(point)
    rate, reference = (
        kernel_regression(
            x,
            *bin_scores(z, score_sums.w, sums, smoother.relative_bandwidth),
            smoother.relative_bandwidth,
            smoother.reflects,
        )[0]
        for sums in (score_sums.wy, score_sums.w * score_sums.score)
    )
    rate, reference = np.clip(rate, 0.0, 1.0), np.clip(reference, 0.0, 1.0)
    columns = {"piece": piece, "score": point, "rate": rate, "reference": reference}
    return (
        score_sums,
        smoother,
        columns | {"error": rate - reference, "probability": correct_smoothing_bias(rate, point, reference)},
    )


def correct_smoothing_bias(rate: Array, score: Array, reference: Array) -> Array:
    """Remove the bias that smoothing has on the diagonal, by mapping the reference to the score.

    The map is piecewise linear: 0 stays 0, the reference becomes the score, and 1 stays 1. Unlike a shift by score −
    reference, it keeps a rate of 0 at 0.

    >>> correct_smoothing_bias(np.array([0.0, 0.04, 0.08, 0.54, 1.0]), np.array(0.1), np.array(0.08)).round(4).tolist()
    [0.0, 0.05, 0.1, 0.55, 1.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # in the branch that np.where discards
        below, above = rate * score / reference, 1 - (1 - rate) * (1 - score) / (1 - reference)
    corrected = np.where(rate > reference, above, below)
    return np.asarray(np.clip(np.where(np.minimum(reference, 1 - reference) > 0, corrected, rate), 0.0, 1.0))


def _range_start(view: View, score_sums: DistinctScoreSums, range_setting: RangeSetting | None) -> float:
    """The lower end of the range of scores: 0, or 1/K for the largest of K probabilities."""
    if range_setting == "auto":
        is_largest_probability = view.name == "confidence" and view.classes >= 2
        return (
            1 / view.classes
            if is_largest_probability and score_sums.score[0] >= 1 / view.classes - MAX_RANGE_SHORTFALL
            else 0.0
        )
    return KernelDensityError(range=range_setting).span(view)[0]


def _neighborhood(numbers: Array, radius: int) -> Array:
    """All integers within `radius` of any of the increasing `numbers`."""
    starts = np.maximum(numbers - radius, np.concatenate([[numbers[0] - radius], numbers[:-1] + radius + 1]))
    counts = numbers + radius + 1 - starts
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return first + np.arange(counts.sum())


MIN_NORMAL_VARIANCE = 1e6  # variance of a count from which on normal quantiles are accurate to 1e-6


@dataclass(frozen=True)
class SmootherBand:
    """The curve at some points and the groups of scores near each, which determine its variance."""

    score_groups: DistinctScoreSums
    kernel: Array  # (m, points), kernel weights between groups and points
    rate: Array  # (points,), the curve
    reference: Array  # (points,), the curve expected under calibration

    @classmethod
    def from_curve(
        cls, score_sums: DistinctScoreSums, smoother: CurveSmoother, columns: dict[str, Array]
    ) -> SmootherBand:
        """The band of a curve and its scores."""
        score_groups = smoother.score_groups(score_sums)
        kernel = pairwise_kernel_weights(
            smoother.on_scale(score_groups.score),
            smoother.on_scale(columns["score"]),
            smoother.relative_bandwidth,
            has_images=smoother.reflects,
        )
        return cls(score_groups, kernel, columns["rate"], columns["reference"])

    @cached_property
    def kernel_weight_sum(self) -> Array:
        """The kernel-weighted sum of weights near each point."""
        return np.asarray(self.score_groups.w @ self.kernel)

    @cached_property
    def effective_n(self) -> Array:
        """The effective sample size near each point, (Σwk)²/Σw²k²."""
        return np.asarray(self.kernel_weight_sum**2 / (self.score_groups.ww @ self.kernel**2))

    @cached_property
    def dispersion(self) -> float:
        """The variance of outcomes around the curve relative to that of labels: 1 except for votes."""
        if not self.score_groups.has_vote_shares:
            return 1.0
        fit = (self.kernel @ (self.rate / self.kernel_weight_sum)) / (self.kernel @ (1 / self.kernel_weight_sum))
        binomial_variance = float((self.score_groups.ww * fit * (1 - fit)).sum())
        return (
            min(max(float(self.score_groups.event_variance(fit).sum()) / binomial_variance, 1e-6), 1.0)
            if binomial_variance > 0
            else 1.0
        )

    def confidence_limits(self, level: float, n_draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Confidence limits of the smoothed event rate, pointwise, or simultaneous if `rng` is not None.

        Clopper-Pearson limits for the effective sample size over the dispersion. Simultaneous: each tail has the
        probability beyond c standard errors of a normal distribution, where c is the quantile of the largest deviation
        of bootstrap curves in standard errors.
        """
        n_trials, tail = self.effective_n / self.dispersion, (1 - level) / 2
        if rng is not None:
            groups = self.score_groups
            w, wy = ResampledLabels(groups, np.clip(groups.wy / groups.w, 0.0, 1.0)).draw_rows_and_events(n_draws, rng)
            # Divide by the observed weight, since that of a draw may be close to zero.
            deviation = np.abs(wy @ self.kernel - self.rate * (w @ self.kernel)) / self.kernel_weight_sum
            std_error = np.sqrt(self.rate * (1 - self.rate) / n_trials)
            max_deviations = (deviation / np.where(std_error > 0, std_error, np.inf)).max(axis=1)
            tail = min(tail, float(ndtr(-_max_deviation_quantile(max_deviations, level))))
        n_events, n_nonevents = n_trials * self.rate, n_trials * (1 - self.rate)
        positive_events, positive_nonevents = np.maximum(n_events, 1e-12), np.maximum(n_nonevents, 1e-12)
        low = np.where(n_events > positive_events / 2, betaincinv(positive_events, n_nonevents + 1, tail), 0.0)
        high = np.where(
            n_nonevents > positive_nonevents / 2, betaincinv(n_events + 1, positive_nonevents, 1 - tail), 1.0
        )
        return np.minimum(low, self.rate), np.maximum(high, self.rate)

    def consistency_limits(self, level: float, n_draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Range of the curve if labels are drawn from the predictions, pointwise, or simultaneous given `rng`.

        Quantiles of a binomial distribution, interpolated between integers, with the mean and variance of the curve.
        Simultaneous: the pointwise tail probability is calibrated so that, in simulations, the whole curve stays inside
        the band with probability `level`.
        """
        groups, p, tail = self.score_groups, self.reference, (1 - level) / 2
        predicted = np.clip(groups.score, 0.0, 1.0)
        variance = (groups.event_variance(predicted) @ self.kernel**2) / self.kernel_weight_sum**2
        is_random = (variance > 0) & (p > 0) & (p < 1)  # where the curve is random
        n_trials, p = (p * (1 - p))[is_random] / variance[is_random], p[is_random]
        if rng is not None and is_random.any():
            deviation = (
                (ResampledLabels(groups, predicted).draw_events(n_draws, rng) - groups.w * predicted)
                @ self.kernel[:, is_random]
                / self.kernel_weight_sum[is_random]
            )
            above = _binomial_tail(np.clip(p + deviation, 0.0, 1.0), n_trials, p)
            min_tail = np.minimum(above, 1 - above).min(axis=1)
            tail = min(tail, -_max_deviation_quantile(-min_tail, level))
        low, high = self.reference.copy(), self.reference.copy()
        for limit, q in ((low, tail), (high, 1 - tail)):
            limit[is_random] = _binomial_quantile(q, n_trials, p)
        return np.clip(np.minimum(low, self.reference), 0, 1), np.clip(np.maximum(high, self.reference), 0, 1)


def pairwise_kernel_weights(z: Array, x: Array, bandwidth: float, *, has_images: bool) -> Array:
    """Kernel weights of each score (m,) at each point (k,), (m, k), with images if reflected at 0 and 1."""
    gaussian = KERNELS["gaussian"]
    images = [x]
    if has_images:
        n_images = math.ceil((gaussian.radius * bandwidth + 1) / 2)
        all_images = [sign * x + 2 * j for j in range(-n_images, n_images + 1) for sign in (1, -1)]
        images = [
            i
            for i in all_images
            if i.max() >= -gaussian.radius * bandwidth and i.min() <= 1 + gaussian.radius * bandwidth
        ]
    return np.asarray(sum(gaussian.density((z[:, None] - i) / bandwidth) for i in images))


def _binomial_tail(share: Array, n_trials: Array, p: Array) -> Array:
    """The probability that a binomial share, interpolated between integers, exceeds this one."""
    use_normal = n_trials * p * (1 - p) > MIN_NORMAL_VARIANCE
    trials = np.where(use_normal, 1.0, n_trials)
    x = trials * share
    normal = ndtr((p - share) * np.sqrt(n_trials / (p * (1 - p))))
    return np.where(use_normal, normal, betainc(x + 0.5, trials - x + 0.5, p))


def _binomial_quantile(q: float, n_trials: Array, p: Array) -> Array:
    """The quantile q of a binomial share, interpolated between integers."""
    use_normal = n_trials * p * (1 - p) > MIN_NORMAL_VARIANCE
    trials = np.where(use_normal, 1.0, n_trials)
    k = bdtrik(q, trials, p)
    return np.where(
        use_normal, p + ndtri(q) * np.sqrt(p * (1 - p) / n_trials), np.where(k > 0, (k + 0.5) / trials, 0.0)
    )


def _max_deviation_quantile(max_deviations: Array, level: float) -> float:
    """The smallest draw that a further one exceeds with probability at most 1 − level, or the largest draw."""
    rank = math.ceil(level * (len(max_deviations) + 1) - 1e-9)
    return float(np.sort(max_deviations)[min(rank, len(max_deviations)) - 1])
