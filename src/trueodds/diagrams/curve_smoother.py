"""Event rates smoothed by a Gaussian kernel or by loess, with pointwise and simultaneous bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import bdtrik, betainc, betaincinv, expit, ndtr, ndtri

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, log_odds
from trueodds.calibrators.kernel import (
    MIN_BANDWIDTH,
    bin_scores,
    kernel_regression,
    select_bandwidth,
)
from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums, ResampledLabels, sum_by_score
from trueodds.estimators._smoothing.kernel_density import KERNELS
from trueodds.estimators._smoothing.local_regression import SMOOTHERS, LocalFit
from trueodds.estimators.ece_kde import MAX_RANGE_SHORTFALL, KernelDensityError
from trueodds.lenses.effective_sample_size import n_represented, unit_weight
from trueodds.lenses.view import View

RangeSetting = Literal["auto", "1/K"]  # start of the range of probabilities: 1/K, or chosen by the scores

POINTS_PER_BANDWIDTH = 3  # smallest number of points per bandwidth
MIN_POINTS = 200  # smallest number of points from 0 to 1
MIN_SUPPORTING_ROWS = 10  # effective sample size near a point from which the curve is drawn there
GROUPS_PER_BANDWIDTH = 4  # groups of scores per bandwidth, for bands


CURVE_SMOOTHERS = ("kernel", "loess")  # kernel regression, and the local regression of `ici`


@dataclass(frozen=True)
class CurveSmoother:
    """A Gaussian kernel on the log odds or on the probabilities, which are reflected at `low` and 1."""

    scale: str  # "logit" or "probability"
    low: float  # smallest possible probability: 0 or 1/K
    bandwidth: float  # standard deviation of the kernel on the scale

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
        """The points at which the curve is evaluated, increasing, and the number of the piece of each, (points,) each.

        All lie within a bandwidth of one of the scores `s` (m,). Points of one piece follow each other without a gap.
        Probabilities are multiples of 1/200, or of a half, a quarter and so on of it; log odds are multiples of a third
        of the bandwidth, plus those of whole percentages.
        """
        position, point = self._reflected_grid(s) if self.reflects else self._log_odds_grid(s)
        order = np.argsort(position, kind="stable")
        # A gap is where a multiple of the step is missing.
        piece = np.cumsum(np.diff(position[order], prepend=position[order[0]]) > 1 + 1e-9)
        point, first = np.unique(point[order], return_index=True)
        return point, piece[first]

    def _reflected_grid(self, s: Array) -> tuple[Array, Array]:
        """Positions, in steps from 0, and probabilities of the points of a curve on the scale of probabilities."""
        halvings = math.ceil(math.log2(POINTS_PER_BANDWIDTH / (MIN_POINTS * self.bandwidth)) - 1e-9)
        steps_per_unit = MIN_POINTS * 2 ** max(0, halvings)
        position = self._near_grid(np.clip(s, self.low, 1.0, dtype=np.float64), 1 / steps_per_unit)
        first_step = math.ceil(self.low * steps_per_unit - 1e-9)
        position = position[(position >= first_step - 1) & (position <= steps_per_unit)]
        # 1/K need not be a multiple of the step: it replaces the multiple below it.
        position = position[(position >= first_step) | (self.low < first_step / steps_per_unit - 1e-12)]
        return position, np.maximum(position / steps_per_unit, self.low)

    def _log_odds_grid(self, s: Array) -> tuple[Array, Array]:
        """Positions, in steps from log odds of 0, and probabilities of the points of a curve on the log-odds scale."""
        step = self.bandwidth / POINTS_PER_BANDWIDTH
        position = self._near_grid(log_odds(s, MIN_PROB), step)
        percentages = np.arange(1, 100) / 100
        percentage_position = log_odds(percentages, MIN_PROB) / step
        is_near = np.isin(np.rint(percentage_position), position)
        point = np.concatenate([expit(position * step), percentages[is_near]])
        point[point <= MIN_PROB], point[1 - point <= MIN_PROB] = 0.0, 1.0
        return np.concatenate([position, percentage_position[is_near]]), point

    def _near_grid(self, x: Array, step: float) -> Array:
        """The multiples of `step` within a bandwidth of any of x (m,), as increasing integers."""
        radius = math.floor(self.bandwidth / step + 1e-9)
        return _neighborhood(np.unique(np.rint(x / step).astype(np.int64)), radius)

    def rates(self, score_sums: DistinctScoreSums, columns: dict[str, Array]) -> SmoothedRates:
        """The curve with the groups of scores and the kernel weights that determine its variance."""
        score_groups = self.score_groups(score_sums)
        kernel = pairwise_kernel_weights(
            self.on_scale(score_groups.score),
            self.on_scale(columns["score"]),
            self.relative_bandwidth,
            has_images=self.reflects,
        )
        return SmoothedRates(score_groups, kernel, columns["rate"], columns["reference"])

    def score_groups(self, score_sums: DistinctScoreSums) -> DistinctScoreSums:
        """Merge neighboring scores within a quarter of a bandwidth."""
        z = self.on_scale(score_sums.score)
        cell = np.floor((z - z[0]) * (GROUPS_PER_BANDWIDTH / self.relative_bandwidth)).astype(np.int64)
        return score_sums.merge_groups(np.flatnonzero(np.diff(cell, prepend=-1)))


@dataclass(frozen=True)
class LoessSmoother:
    """The local regression of `ici`, fitted to some scores: a parabola with tricube weights of 75 % of the rows."""

    fit: LocalFit
    scale: ClassVar[str] = "probability"
    low: ClassVar[float] = 0.0
    bandwidth: ClassVar[float] = math.nan  # windows hold a share of the rows, not a width
    is_narrowest: ClassVar[bool] = False

    def rates(self, score_sums: DistinctScoreSums, columns: dict[str, Array]) -> SmoothedRates:
        """The curve with the cells of scores and their weights, some of them negative, that determine its variance."""
        score_groups = score_sums.merge_groups(self.fit.starts)
        return SmoothedRates(score_groups, self.fit.weights, columns["rate"], columns["reference"])


class SmoothedView(NamedTuple):
    """The smoothed curve of a view.

    The columns are the points of the curve (`score`) with their `piece`, the smoothed outcomes (`rate`), the smoothed
    predictions (`reference`), their difference (`error`), and the rate without smoothing bias (`probability`).
    """

    score_sums: DistinctScoreSums
    smoother: CurveSmoother | LoessSmoother
    columns: dict[str, Array]  # (points,) each


def loess_view(view: View) -> SmoothedView:
    """Smooth the outcomes of a view by the local regression of its scores.

    A parabola reproduces the predictions of a calibrated model, so the reference is the score itself.
    """
    score_sums = sum_by_score(view)
    total = score_sums.w.sum()
    row_share = (unit_weight(view) or 0.0) / view.total
    fit = LocalFit(SMOOTHERS["loess"], score_sums.score, score_sums.w / total, row_share)
    rate = np.clip(fit.at_evaluated(score_sums.wy / total), 0.0, 1.0)
    point = fit.evaluated
    columns = {
        "piece": np.zeros(len(point), dtype=np.int64),
        "score": point,
        "rate": rate,
        "reference": point,
        "error": rate - point,
        "probability": rate,
    }
    return SmoothedView(score_sums, LoessSmoother(fit), columns)


def choose_smoother(
    view: View, score_sums: DistinctScoreSums, bandwidth: float | str, scale: str, range_setting: RangeSetting | None
) -> CurveSmoother:
    """The smoother of a view, chosen from its scores alone, without the outcomes."""
    w = score_sums.w * (n_represented(view) / view.total)
    if scale == "probability":
        low = _range_start(view, score_sums, range_setting)
        return CurveSmoother(scale, low, select_bandwidth(score_sums.score, w, bandwidth, scale))
    scores = log_odds(score_sums.score, MIN_PROB)
    return CurveSmoother(scale, 0.0, select_bandwidth(scores, w, bandwidth, scale, -math.log(MIN_PROB)))


def smooth_view(view: View, bandwidth: float | str, scale: str, range_setting: RangeSetting | None) -> SmoothedView:
    """Smooth the outcomes and the predictions of a view by a Gaussian kernel."""
    score_sums = sum_by_score(view)
    smoother = choose_smoother(view, score_sums, bandwidth, scale, range_setting)
    point, piece = smoother.curve_points(score_sums.score)
    z, x = smoother.on_scale(score_sums.score), smoother.on_scale(point)

    def smooth(sums: Array) -> Array:
        """Kernel-weighted means near each point, from the sums at each score, (m,)."""
        binned_scores = bin_scores(z, score_sums.w, sums, smoother.relative_bandwidth)
        means = kernel_regression(x, *binned_scores, smoother.relative_bandwidth, smoother.reflects)[0]
        return np.clip(means, 0.0, 1.0)

    rate, reference = smooth(score_sums.wy), smooth(score_sums.w * score_sums.score)
    columns = {
        "piece": piece,
        "score": point,
        "rate": rate,
        "reference": reference,
        "error": rate - reference,
        "probability": correct_smoothing_bias(rate, point, reference),
    }
    return SmoothedView(score_sums, smoother, columns)


def correct_smoothing_bias(rate: Array, score: Array, reference: Array) -> Array:
    """Remove the bias that smoothing has on the diagonal, by mapping the reference to the score.

    The map is piecewise linear: 0 stays 0, the reference becomes the score, and 1 stays 1. Unlike a shift by score −
    reference, it keeps a rate of 0 at 0.

    >>> correct_smoothing_bias(np.array([0.0, 0.04, 0.08, 0.54, 1.0]), np.array(0.1), np.array(0.08)).round(4).tolist()
    [0.0, 0.05, 0.1, 0.55, 1.0]
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # in the branch that np.where discards
        below, above = rate * score / reference, 1 - (1 - rate) * (1 - score) / (1 - reference)
    corrected = np.where(rate > reference, above, below)
    return np.asarray(np.clip(np.where(np.minimum(reference, 1 - reference) > 0, corrected, rate), 0.0, 1.0))


def _range_start(view: View, score_sums: DistinctScoreSums, range_setting: RangeSetting | None) -> float:
    """The lower end of the range of scores: 0, or 1/K for the largest of K probabilities."""
    if range_setting != "auto":
        return KernelDensityError(range=range_setting).span(view)[0]
    if view.name != "confidence" or view.classes < 2:
        return 0.0
    return 1 / view.classes if score_sums.score[0] >= 1 / view.classes - MAX_RANGE_SHORTFALL else 0.0


def _neighborhood(numbers: Array, radius: int) -> Array:
    """All integers within `radius` of any of the increasing integers `numbers`, increasing.

    >>> _neighborhood(np.array([0, 3, 9]), 1).tolist()
    [-1, 0, 1, 2, 3, 4, 8, 9, 10]
    """
    # Each number contributes the integers of its neighborhood that are not in that of the previous number.
    starts = np.maximum(numbers - radius, np.concatenate([[numbers[0] - radius], numbers[:-1] + radius + 1]))
    counts = numbers + radius + 1 - starts
    n_before = np.cumsum(counts) - counts
    return np.repeat(starts - n_before, counts) + np.arange(counts.sum())


MIN_NORMAL_VARIANCE = 1e6  # variance of a count above which normal quantiles are accurate to 1e-6


@dataclass(frozen=True)
class SmoothedRates:
    """A smoothed curve at some points, with the groups of scores near each point, which determine its variance."""

    score_groups: DistinctScoreSums
    kernel: Array  # (groups, points), kernel weights of the groups at the points
    rate: Array  # (points,), the curve
    reference: Array  # (points,), the curve expected under calibration

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
        # The curve at the scores: the mean of its points, weighted by the kernel.
        fit = (self.kernel @ (self.rate / self.kernel_weight_sum)) / (self.kernel @ (1 / self.kernel_weight_sum))
        binomial_variance = float((self.score_groups.ww * fit * (1 - fit)).sum())
        if binomial_variance <= 0:
            return 1.0
        observed_variance = float(self.score_groups.event_variance(fit).sum())
        return min(max(observed_variance / binomial_variance, 1e-6), 1.0)

    def confidence_limits(self, level: float, n_draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Confidence limits of the smoothed event rate, pointwise, or simultaneous if `rng` is not None.

        They are Clopper-Pearson limits for the effective sample size divided by the dispersion. Simultaneous limits use
        a smaller tail probability, that of a normal distribution beyond c standard errors, where c is the quantile at
        `level` of the largest deviation of a bootstrap curve in standard errors.
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

        The ends are quantiles of a binomial distribution, interpolated between integers, with the mean and variance of
        the curve. Simultaneous limits use a smaller tail probability, so that in simulations the whole curve stays
        inside the band with probability `level`.
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


def is_supported(effective_n: Array) -> Array:
    """Whether enough rows lie near each point: an effective sample size (points,) of 10, or a quarter of the largest.

    >>> is_supported(np.array([200.0, 10.0, 9.0])).tolist(), is_supported(np.array([8.0, 2.0, 1.0])).tolist()
    ([True, True, False], [True, True, False])
    """
    return np.asarray(effective_n >= min(MIN_SUPPORTING_ROWS, float(effective_n.max()) / 4))


def pairwise_kernel_weights(z: Array, x: Array, bandwidth: float, *, has_images: bool) -> Array:
    """Gaussian kernel weights of each score z (m,) at each point x (k,), (m, k).

    With `has_images`, scores and points are reflected at 0 and 1: the images of a point contribute to its weight.
    """
    gaussian = KERNELS["gaussian"]
    images = [x]
    if has_images:
        radius = gaussian.radius * bandwidth  # beyond this distance the kernel is 0
        n_images = math.ceil((radius + 1) / 2)
        all_images = [sign * x + 2 * j for j in range(-n_images, n_images + 1) for sign in (1, -1)]
        images = [image for image in all_images if image.max() >= -radius and image.min() <= 1 + radius]
    return np.asarray(sum(gaussian.density((z[:, None] - image) / bandwidth) for image in images))


def _binomial_tail(share: Array, n_trials: Array, p: Array) -> Array:
    """The probability that a binomial share, interpolated between integers, exceeds `share`."""
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
    """The quantile of simulated largest deviations: a further one exceeds it with probability at most 1 − `level`.

    With too few draws for that, it is the largest draw.
    """
    rank = math.ceil(level * (len(max_deviations) + 1) - 1e-9)
    return float(np.sort(max_deviations)[min(rank, len(max_deviations)) - 1])
