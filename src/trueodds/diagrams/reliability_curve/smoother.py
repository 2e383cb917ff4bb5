"""Gaussian kernel smoother of outcomes by score, and the smoothed curve of a view."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.calibrators._curves.kernel_regression import (
    MIN_BANDWIDTH,
    bin_scores,
    kernel_regression,
    select_bandwidth,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, log_odds
from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums, sum_by_score
from trueodds.estimators.ece_kde import MAX_RANGE_SHORTFALL, KernelDensityError
from trueodds.lenses.view import View

RangeSetting = Literal["auto", "1/K"]  # start of the range of probabilities: 1/K, or chosen by the scores

POINTS_PER_BANDWIDTH = 3  # smallest number of points per bandwidth
MIN_POINTS = 200  # smallest number of points from 0 to 1
GROUPS_PER_BANDWIDTH = 4  # groups of scores per bandwidth, for bands


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
    if scale == "probability":
        low = _range_start(view, score_sums, range_setting)
        return CurveSmoother(scale, low, select_bandwidth(score_sums.score, w, bandwidth, scale))
    scores = log_odds(score_sums.score, MIN_PROB)
    return CurveSmoother(scale, 0.0, select_bandwidth(scores, w, bandwidth, scale, -math.log(MIN_PROB)))


def smooth_view(
    view: View, bandwidth: float | str, scale: str, range_setting: RangeSetting | None
) -> tuple[DistinctScoreSums, CurveSmoother, dict[str, Array]]:
    """The scores of a view, its smoother, and the columns of the smoothed curve.

    The columns are the points of the curve (`score`) with their `piece`, the smoothed outcomes (`rate`), the smoothed
    predictions (`reference`), their difference (`error`), and the rate without smoothing bias (`probability`).
    """
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
    return score_sums, smoother, columns


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
