"""Confidence and consistency bands of a kernel-smoothed event rate, pointwise or simultaneous."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrik, betainc, betaincinv, ndtr, ndtri

from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.reliability_curve.smoother import CurveSmoother
from trueodds.diagrams.resampled_labels import ResampledLabels
from trueodds.estimators._smoothing.kernel_density import KERNELS

MIN_NORMAL_VARIANCE = 1e6  # variance of a count above which normal quantiles are accurate to 1e-6


@dataclass(frozen=True)
class SmoothedRates:
    """A smoothed curve at some points, with the groups of scores near each point, which determine its variance."""

    score_groups: DistinctScoreSums
    kernel: Array  # (groups, points), kernel weights of the groups at the points
    rate: Array  # (points,), the curve
    reference: Array  # (points,), the curve expected under calibration

    @classmethod
    def from_curve(
        cls, score_sums: DistinctScoreSums, smoother: CurveSmoother, columns: dict[str, Array]
    ) -> SmoothedRates:
        """Group the scores of a curve, given by the columns that `smooth_view` returns."""
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
