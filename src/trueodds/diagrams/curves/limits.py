"""How far may the curve through a Gaussian lie from what it shows, at each place or at all of them together?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrik, betainc, betaincinv, ndtr, ndtri

from trueodds.core.typing import Array
from trueodds.diagrams.curves.smoother import Smoother
from trueodds.diagrams.monotone.bands import Labels
from trueodds.diagrams.monotone.scores import Scores
from trueodds.estimators.smoothing.density import KERNELS

MANY = 1e6  # a variance of a count beyond which its law is normal: its quantiles are then right to 1e-6


@dataclass(frozen=True)
class Limits:
    """A curve at some places, and the groups of scores near each, by which it varies."""

    groups: Scores
    near: Array  # (m, places), the kernel between groups and places
    rate: Array  # (places,), the curve
    reference: Array  # (places,), what a calibrated model's curve would be

    @classmethod
    def of(cls, scores: Scores, smoother: Smoother, columns: dict[str, Array]) -> Limits:
        """Of a curve and the scores behind it."""
        groups = smoother.groups(scores)
        near = kernel(
            smoother.on_scale(groups.at), smoother.on_scale(columns["score"]), smoother.h, mirrored=smoother.mirrored
        )
        return cls(groups, near, columns["rate"], columns["reference"])

    @cached_property
    def mass(self) -> Array:
        """The weight near each place."""
        return np.asarray(self.groups.w @ self.near)

    @cached_property
    def effective(self) -> Array:
        """As many rows of equal weight, all at the place, as those near it are worth: (Σwk)²/Σw²k²."""
        return np.asarray(self.mass**2 / (self.groups.ww @ self.near**2))

    @cached_property
    def dispersion(self) -> float:
        """How much less than labels the outcomes vary around the curve: 1 but for votes."""
        if not self.groups.voted:
            return 1.0
        fit = (self.near @ (self.rate / self.mass)) / (self.near @ (1 / self.mass))
        binomial_variance = float((self.groups.ww * fit * (1 - fit)).sum())
        return (
            min(max(float(self.groups.residual(fit).sum()) / binomial_variance, 1e-6), 1.0)
            if binomial_variance > 0
            else 1.0
        )

    def confidence(self, level: float, draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Limits of the rate that the curve shows, at each place by itself; given rng at all places together.

        Clopper & Pearson's for as many rows as are effective over the dispersion. Together: both tails have the
        probability beyond c standard errors of a normal law, c the quantile, over draws of rows with replacement, of
        the largest deviation of the curve in standard errors.
        """
        m, tail = self.effective / self.dispersion, (1 - level) / 2
        if rng is not None:
            g = self.groups
            w, wy = Labels(g, np.clip(g.wy / g.w, 0.0, 1.0)).with_rows(draws, rng)
            # Divided by the weight that is there: that of a draw may be all but none.
            deviation = np.abs(wy @ self.near - self.rate * (w @ self.near)) / self.mass
            std_error = np.sqrt(self.rate * (1 - self.rate) / m)
            largest = (deviation / np.where(std_error > 0, std_error, np.inf)).max(axis=1)
            tail = min(tail, float(ndtr(-_quantile(largest, level))))
        n_events, failed = m * self.rate, m * (1 - self.rate)
        some, fail = np.maximum(n_events, 1e-12), np.maximum(failed, 1e-12)
        low = np.where(n_events > some / 2, betaincinv(some, failed + 1, tail), 0.0)
        high = np.where(failed > fail / 2, betaincinv(n_events + 1, fail, 1 - tail), 1.0)
        return np.minimum(low, self.rate), np.maximum(high, self.rate)

    def consistency(self, level: float, draws: int, rng: np.random.Generator | None) -> tuple[Array, Array]:
        """Where the curve falls if every outcome comes with its stated probability, at each place or at all together.

        Quantiles of a binomial law, continued between whole numbers, with the mean and variance of the curve.
        Together: at the tail probability that the least of all places goes below with probability 1 − level in draws.
        """
        g, p, tail = self.groups, self.reference, (1 - level) / 2
        predicted = np.clip(g.at, 0.0, 1.0)
        variance = (g.residual(predicted) @ self.near**2) / self.mass**2
        free = (variance > 0) & (p > 0) & (p < 1)  # where chance has a say
        m, p = (p * (1 - p))[free] / variance[free], p[free]
        if rng is not None and free.any():
            deviation = (
                (Labels(g, predicted).drawn(draws, rng) - g.w * predicted) @ self.near[:, free] / self.mass[free]
            )
            above = _above(np.clip(p + deviation, 0.0, 1.0), m, p)
            min_tail = np.minimum(above, 1 - above).min(axis=1)
            tail = min(tail, -_quantile(-min_tail, level))
        low, high = self.reference.copy(), self.reference.copy()
        for limit, q in ((low, tail), (high, 1 - tail)):
            limit[free] = _share(q, m, p)
        return np.clip(np.minimum(low, self.reference), 0, 1), np.clip(np.maximum(high, self.reference), 0, 1)


def kernel(z: Array, x: Array, h: float, *, mirrored: bool) -> Array:
    """How much each score (m,) counts at each place (k,), (m, k); mirrored at 0 and 1 it has images."""
    gaussian = KERNELS["gaussian"]
    images = [x]
    if mirrored:
        n_images = math.ceil((gaussian.radius * h + 1) / 2)
        every = [sign * x + 2 * j for j in range(-n_images, n_images + 1) for sign in (1, -1)]
        images = [i for i in every if i.max() >= -gaussian.radius * h and i.min() <= 1 + gaussian.radius * h]
    return np.asarray(sum(gaussian.profile((z[:, None] - i) / h) for i in images))


def _above(share: Array, m: Array, p: Array) -> Array:
    """The probability of a larger share than this of a binomial law, continued between whole numbers."""
    many = m * p * (1 - p) > MANY
    trials = np.where(many, 1.0, m)
    x = trials * share
    normal = ndtr((p - share) * np.sqrt(m / (p * (1 - p))))
    return np.where(many, normal, betainc(x + 0.5, trials - x + 0.5, p))


def _share(q: float, m: Array, p: Array) -> Array:
    """The share of a binomial law that is exceeded with probability 1 − q."""
    many = m * p * (1 - p) > MANY
    trials = np.where(many, 1.0, m)
    k = bdtrik(q, trials, p)
    return np.where(many, p + ndtri(q) * np.sqrt(p * (1 - p) / m), np.where(k > 0, (k + 0.5) / trials, 0.0))


def _quantile(largest: Array, level: float) -> float:
    """The smallest of the numbers drawn that a further one exceeds with probability 1 − level at most, if one is."""
    rank = math.ceil(level * (len(largest) + 1) - 1e-9)
    return float(np.sort(largest)[min(rank, len(largest)) - 1])
