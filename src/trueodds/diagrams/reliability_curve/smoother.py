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
from trueodds.estimators.ece_kde import BELOW, KernelDensityError
from trueodds.lenses.view import View

Span = Literal["auto", "1/K"]  # start of the range of probabilities: 1/K, or chosen by the scores

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
    def h(self) -> float:
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

    def places(self, s: Array) -> tuple[Array, Array]:
        """The points of the curve: increasing probabilities within a bandwidth of a score, and their piece.

        Points of one piece follow each other without a gap. Probabilities are multiples of 1/200, or of a half, a
        quarter and so on of it; log odds are multiples of a third of the bandwidth, plus those of whole percentages.
        """
        if self.reflects:
            per = MIN_POINTS * 2 ** max(
                0, math.ceil(math.log2(POINTS_PER_BANDWIDTH / (MIN_POINTS * self.bandwidth)) - 1e-9)
            )
            x, step = np.clip(s, self.low, 1.0, dtype=np.float64), 1 / per
        else:
            x, step = log_odds(s, MIN_PROB), self.bandwidth / POINTS_PER_BANDWIDTH
        radius = math.floor(self.bandwidth / step + 1e-9)
        number = _neighborhood(np.unique(np.rint(x / step).astype(np.int64)), radius)
        if self.reflects:
            lowest = math.ceil(self.low * per - 1e-9)
            number = number[(number >= lowest - 1) & (number <= per)]
            # 1/K need not be a multiple of the step: it replaces the multiple below it.
            number = number[(number >= lowest) | (self.low < lowest / per - 1e-12)]
            at = np.maximum(number / per, self.low)
        else:
            full = np.arange(1, 100) / 100
            where = log_odds(full, MIN_PROB) / step
            among = np.isin(np.rint(where), number)
            at = np.concatenate([expit(number * step), full[among]])
            at[at <= MIN_PROB], at[1 - at <= MIN_PROB] = 0.0, 1.0
            number = np.concatenate([number, where[among]])
        order = np.argsort(number, kind="stable")
        piece = np.cumsum(np.diff(number[order], prepend=number[order[0]]) > 1 + 1e-9)
        at, first = np.unique(at[order], return_index=True)
        return at, piece[first]

    def groups(self, scores: DistinctScoreSums) -> DistinctScoreSums:
        """Merge neighboring scores within a quarter of a bandwidth."""
        z = self.on_scale(scores.score)
        cell = np.floor((z - z[0]) * (GROUPS_PER_BANDWIDTH / self.h)).astype(np.int64)
        return scores.merge_groups(np.flatnonzero(np.diff(cell, prepend=-1)))


def choose_smoother(
    view: View, scores: DistinctScoreSums, bandwidth: float | str, scale: str, range: Span | None
) -> CurveSmoother:
    """The smoother of a view, chosen from its scores alone, without the outcomes."""
    w = scores.w * (view.n_represented / view.total)
    low = _range_start(view, scores, range) if scale == "probability" else 0.0
    if scale == "probability":
        return CurveSmoother(scale, low, select_bandwidth(scores.score, w, bandwidth, scale))
    return CurveSmoother(
        scale, low, select_bandwidth(log_odds(scores.score, MIN_PROB), w, bandwidth, scale, -math.log(MIN_PROB))
    )


def smooth_view(
    view: View, bandwidth: float | str, scale: str, range: Span | None
) -> tuple[DistinctScoreSums, CurveSmoother, dict[str, Array]]:
    """The scores of a view, its smoother, and the columns of the curve: smoothed outcomes and smoothed predictions."""
    scores = sum_by_score(view)
    smoother = choose_smoother(view, scores, bandwidth, scale, range)
    at, piece = smoother.places(scores.score)
    z, x = smoother.on_scale(scores.score), smoother.on_scale(at)
    rate, reference = (
        kernel_regression(x, *bin_scores(z, scores.w, sums, smoother.h), smoother.h, smoother.reflects)[0]
        for sums in (scores.wy, scores.w * scores.score)
    )
    rate, reference = np.clip(rate, 0.0, 1.0), np.clip(reference, 0.0, 1.0)
    columns = {"piece": piece, "score": at, "rate": rate, "reference": reference}
    return (
        scores,
        smoother,
        columns | {"error": rate - reference, "probability": correct_smoothing_bias(rate, at, reference)},
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
    moved = np.where(rate > reference, above, below)
    return np.asarray(np.clip(np.where(np.minimum(reference, 1 - reference) > 0, moved, rate), 0.0, 1.0))


def _range_start(view: View, scores: DistinctScoreSums, range: Span | None) -> float:
    if range == "auto":
        known = view.name == "confidence" and view.classes >= 2
        return 1 / view.classes if known and scores.score[0] >= 1 / view.classes - BELOW else 0.0
    return KernelDensityError(range=range).span(view)[0]


def _neighborhood(numbers: Array, radius: int) -> Array:
    """All integers within `radius` of any of the increasing `numbers`."""
    starts = np.maximum(numbers - radius, np.concatenate([[numbers[0] - radius], numbers[:-1] + radius + 1]))
    counts = numbers + radius + 1 - starts
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return first + np.arange(counts.sum())


NORMAL_VARIANCE = 1e6  # variance of a count beyond which the normal approximation of its quantiles is accurate to 1e-6


@dataclass(frozen=True)
class SmootherBand:
    """The curve at some points and the groups of scores near each, which determine its variance."""

    groups: DistinctScoreSums
    near: Array  # (m, points), kernel weights between groups and points
    rate: Array  # (points,), the curve
    reference: Array  # (points,), the curve expected under calibration

    @classmethod
    def of(cls, scores: DistinctScoreSums, smoother: CurveSmoother, columns: dict[str, Array]) -> SmootherBand:
        """The band of a curve and its scores."""
        groups = smoother.groups(scores)
        near = kernel_weights(
            smoother.on_scale(groups.score), smoother.on_scale(columns["score"]), smoother.h, mirrored=smoother.reflects
        )
        return cls(groups, near, columns["rate"], columns["reference"])

    @cached_property
    def mass(self) -> Array:
        """The kernel-weighted sum of weights near each point."""
        return np.asarray(self.groups.w @ self.near)

    @cached_property
    def effective(self) -> Array:
        """The effective sample size near each point, (Σwk)²/Σw²k²."""
        return np.asarray(self.mass**2 / (self.groups.ww @ self.near**2))

    @cached_property
    def dispersion(self) -> float:
        """The variance of outcomes around the curve relative to that of labels: 1 except for votes."""
        if not self.groups.has_vote_shares:
            return 1.0
        fit = (self.near @ (self.rate / self.mass)) / (self.near @ (1 / self.mass))
        binomial_variance = float((self.groups.ww * fit * (1 - fit)).sum())
        return (
            min(max(float(self.groups.event_variance(fit).sum()) / binomial_variance, 1e-6), 1.0)
            if binomial_variance > 0
            else 1.0
        )

    def confidence(self, level: float, draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Confidence limits of the smoothed event rate, pointwise, or simultaneous if `rng` is not None.

        Clopper-Pearson limits for the effective sample size over the dispersion. Simultaneous: each tail has the
        probability beyond c standard errors of a normal distribution, where c is the quantile of the largest deviation
        of bootstrap curves in standard errors.
        """
        m, tail = self.effective / self.dispersion, (1 - level) / 2
        if rng is not None:
            g = self.groups
            w, wy = ResampledLabels(g, np.clip(g.wy / g.w, 0.0, 1.0)).draw_rows_and_events(draws, rng)
            # Divide by the observed weight, since that of a draw may be close to zero.
            deviation = np.abs(wy @ self.near - self.rate * (w @ self.near)) / self.mass
            std_error = np.sqrt(self.rate * (1 - self.rate) / m)
            largest = (deviation / np.where(std_error > 0, std_error, np.inf)).max(axis=1)
            tail = min(tail, float(ndtr(-_max_deviation_quantile(largest, level))))
        n_events, failed = m * self.rate, m * (1 - self.rate)
        some, fail = np.maximum(n_events, 1e-12), np.maximum(failed, 1e-12)
        low = np.where(n_events > some / 2, betaincinv(some, failed + 1, tail), 0.0)
        high = np.where(failed > fail / 2, betaincinv(n_events + 1, fail, 1 - tail), 1.0)
        return np.minimum(low, self.rate), np.maximum(high, self.rate)

    def consistency(self, level: float, draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Range of the curve if labels are drawn from the predictions, pointwise, or simultaneous given `rng`.

        Quantiles of a binomial distribution, interpolated between integers, with the mean and variance of the curve.
        Simultaneous: the pointwise tail probability is calibrated so that, in simulations, the whole curve stays inside
        the band with probability `level`.
        """
        g, p, tail = self.groups, self.reference, (1 - level) / 2
        predicted = np.clip(g.score, 0.0, 1.0)
        variance = (g.event_variance(predicted) @ self.near**2) / self.mass**2
        free = (variance > 0) & (p > 0) & (p < 1)  # where the curve is random
        m, p = (p * (1 - p))[free] / variance[free], p[free]
        if rng is not None and free.any():
            deviation = (
                (ResampledLabels(g, predicted).draw_events(draws, rng) - g.w * predicted)
                @ self.near[:, free]
                / self.mass[free]
            )
            above = _binomial_tail(np.clip(p + deviation, 0.0, 1.0), m, p)
            min_tail = np.minimum(above, 1 - above).min(axis=1)
            tail = min(tail, -_max_deviation_quantile(-min_tail, level))
        low, high = self.reference.copy(), self.reference.copy()
        for limit, q in ((low, tail), (high, 1 - tail)):
            limit[free] = _binomial_quantile(q, m, p)
        return np.clip(np.minimum(low, self.reference), 0, 1), np.clip(np.maximum(high, self.reference), 0, 1)


def kernel_weights(z: Array, x: Array, h: float, *, mirrored: bool) -> Array:
    """Kernel weights of each score (m,) at each point (k,), (m, k), with images if reflected at 0 and 1."""
    gaussian = KERNELS["gaussian"]
    images = [x]
    if mirrored:
        n_images = math.ceil((gaussian.radius * h + 1) / 2)
        every = [sign * x + 2 * j for j in range(-n_images, n_images + 1) for sign in (1, -1)]
        images = [i for i in every if i.max() >= -gaussian.radius * h and i.min() <= 1 + gaussian.radius * h]
    return np.asarray(sum(gaussian.profile((z[:, None] - i) / h) for i in images))


def _binomial_tail(share: Array, m: Array, p: Array) -> Array:
    """The probability that a binomial share, interpolated between integers, exceeds this one."""
    many = m * p * (1 - p) > NORMAL_VARIANCE
    trials = np.where(many, 1.0, m)
    x = trials * share
    normal = ndtr((p - share) * np.sqrt(m / (p * (1 - p))))
    return np.where(many, normal, betainc(x + 0.5, trials - x + 0.5, p))


def _binomial_quantile(q: float, m: Array, p: Array) -> Array:
    """The quantile q of a binomial share, interpolated between integers."""
    many = m * p * (1 - p) > NORMAL_VARIANCE
    trials = np.where(many, 1.0, m)
    k = bdtrik(q, trials, p)
    return np.where(many, p + ndtri(q) * np.sqrt(p * (1 - p) / m), np.where(k > 0, (k + 0.5) / trials, 0.0))


def _max_deviation_quantile(largest: Array, level: float) -> float:
    """The smallest draw that a further one exceeds with probability at most 1 − level, or the largest draw."""
    rank = math.ceil(level * (len(largest) + 1) - 1e-9)
    return float(np.sort(largest)[min(rank, len(largest)) - 1])
