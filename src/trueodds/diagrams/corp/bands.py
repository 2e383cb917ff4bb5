"""Consistency and confidence bands of the CORP curve: resampled, normal per score, or by Chernoff's distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import airy, ndtri

from trueodds.core.typing import Array
from trueodds.diagrams.distinct_score_sums import DistinctScoreSums
from trueodds.diagrams.resampled_labels import ResampledLabels
from trueodds.estimators._smoothing.kernel_density import BetaKernelSums
from trueodds.kernels.isotonic import isotonic_means

MAX_RESAMPLED_SCORES = 1024  # with more distinct scores, neighbors are merged into groups for resampling
MAX_BAND_POINTS = 256  # scores at which a band is evaluated, as many as a picture resolves
VALUES_PER_BLOCK = 2**18  # values of draws that are in memory at a time: 2 MB


@dataclass(frozen=True)
class Band:
    """Limits at scores, interpolated linearly between them; `x_low` and `x_high` are equal."""

    x_low: Array  # (k,) scores, increasing
    x_high: Array  # (k,) the same scores; of a `StepBand` the ends of its steps
    low: Array  # (k,) lower limits of the curve
    high: Array  # (k,) upper limits
    method: str  # how the band was computed

    def limits_at(self, x: Array) -> tuple[Array, Array]:
        """The limits at given scores."""
        return np.interp(x, self.x_low, self.low), np.interp(x, self.x_low, self.high)

    def restrict_to_range(self, low: float, high: float) -> Band:
        """The part of the band from one score to another, with interpolated limits at its ends."""
        inside = (self.x_low > low) & (self.x_low < high)
        last = [high] if high > low else []
        x = np.concatenate([[low], self.x_low[inside], last])
        lower, upper = self.limits_at(x)
        lower[1 : 1 + inside.sum()], upper[1 : 1 + inside.sum()] = self.low[inside], self.high[inside]
        return Band(x, x, lower, upper, self.method)


def choose_band_method(score_sums: DistinctScoreSums, band: str) -> str:
    """Dimitriadis, Gneiting & Jordan's choice between `resampling`, `discrete` and `continuous` asymptotics.

    `band` is `consistency` or `confidence`. Their thresholds compare the number of rows with that of distinct scores.
    Votes are always resampled, because the asymptotic distributions are those of labels.
    """
    n, n_distinct = float(score_sums.n.sum()), len(score_sums.score)
    if band == "confidence" or score_sums.has_vote_shares or n <= max(1000, min(5000, 50 * n_distinct)):
        return "resampling"
    return "discrete" if n >= 8 * n_distinct**2 else "continuous"


def resampled_band(
    score_sums: DistinctScoreSums,
    band: str,
    level: float,
    resamples: int,
    redraw: str,
    rng: np.random.Generator,
) -> Band:
    """Pointwise quantiles (1 ± level)/2 of isotonic fits to resampled labels.

    Labels are drawn with the predicted probability (`consistency`) or the fitted rate (`confidence`). `redraw="labels"`
    keeps the predictions fixed. `both` first draws rows with replacement, and interpolates the fit linearly between the
    scores that were drawn; it is not extrapolated. The sum of rows of one score with unequal weights is normal with
    variance Σw²r(1−r). Votes keep the size of their residual y − r and draw its sign, and are normal in a tally.
    Cost: O(resamples · m) for m ≤ 4,096 distinct scores or groups of them.
    """
    score_sums = score_sums.merge_for_isotonic_fit(MAX_RESAMPLED_SCORES)
    rates = np.clip(
        score_sums.score if band == "consistency" else isotonic_means(score_sums.w, score_sums.wy), 0.0, 1.0
    )
    labels = ResampledLabels(score_sums, rates)
    points = _band_points(score_sums.score)
    fits = np.empty((resamples, len(points)))
    draws_per_block = max(1, VALUES_PER_BLOCK // len(rates))
    for start in range(0, resamples, draws_per_block):
        n_draws = min(draws_per_block, resamples - start)
        if redraw == "labels":
            fits_of_block = isotonic_means(score_sums.w, labels.draw_events(n_draws, rng))[:, points]
        else:
            fits_of_block = _interpolate_fits(score_sums.score, *labels.draw_rows_and_events(n_draws, rng), points)
        fits[start : start + n_draws] = fits_of_block
    quantile_function = np.quantile if redraw == "labels" else np.nanquantile
    low, high = np.clip(quantile_function(fits, [(1 - level) / 2, (1 + level) / 2], axis=0), 0, 1)
    score = score_sums.score[points]
    return Band(score, score, low, high, f"{resamples:,} draws of labels{' and rows' if redraw == 'both' else ''}")


def discrete_band(score_sums: DistinctScoreSums, band: str, level: float) -> Band:
    """Normal limits around the rate of each score, to which isotonic regression converges with many rows per score.

    Where a confidence band would have zero width, at rates of 0 and 1 between other scores, it is interpolated.
    """
    z, score = ndtri((1 + level) / 2), score_sums.score
    rates = np.clip(score if band == "consistency" else isotonic_means(score_sums.w, score_sums.wy), 0.0, 1.0)
    half_width = z * np.sqrt(score_sums.event_variance(rates)) / score_sums.w
    low, high = np.clip(rates - half_width, 0, 1), np.clip(rates + half_width, 0, 1)
    if band == "confidence":
        has_width = (rates > 0) & (rates < 1)
        has_width[[0, -1]] = True
        low, high = (np.interp(score, score[has_width], limit[has_width]) for limit in (low, high))
    points = _band_points(score)
    return Band(score[points], score[points], low[points], high[points], "normal limits, many rows per score")


def continuous_band(score_sums: DistinctScoreSums, level: float) -> Band:
    r"""Limits around the diagonal for scores with a density f: :math:`x \pm q\, (4 x (1-x) / (n f(x)))^{1/3}`.

    q is the quantile of Chernoff's distribution, f the density of the scores by Chen's first beta kernel with bandwidth
    :math:`n^{-2/5}`, and n the effective sample size. The distribution holds for labels; votes vary less. On the grid
    0, .01, …, 1. Source: Dimitriadis, Gneiting & Jordan (2021); Chen (1999).
    """
    x, n = np.arange(101) / 100, score_sums.effective_n
    density = FirstBetaKernel(score_sums.score, n**-0.4, 0.0, 1.0).evaluate(x, score_sums.w / score_sums.w.sum())
    with np.errstate(divide="ignore"):
        scale = np.where((x > 0) & (x < 1), np.cbrt(4 * x * (1 - x) / (n * density)), 0.0)
    half_width = chernoff_quantile((1 + level) / 2) * scale
    return Band(
        x, x, np.maximum(x - half_width, 0), np.minimum(x + half_width, 1), "Chernoff's distribution, dense scores"
    )


class FirstBetaKernel(BetaKernelSums):
    """Chen's first beta kernel: the density of Beta(x/b + 1, (1 − x)/b + 1) at the score."""

    def _shape_parameter(self, u: Array) -> Array:
        """The first parameter of the beta density, for positions u in [0, 1]."""
        return u / self.width + 1


def _interpolate_fits(score: Array, w: Array, wy: Array, points: Array) -> Array:
    """The fit of each draw at these scores, interpolated linearly between the scores drawn."""
    fits = isotonic_means(w, wy)
    fits_at_points = np.empty((len(w), len(points)))
    for i, (weight, fit) in enumerate(zip(w, fits, strict=True)):
        has_weight = weight > 0
        fits_at_points[i] = np.interp(score[points], score[has_weight], fit[has_weight], left=np.nan, right=np.nan)
    return fits_at_points


def _band_points(score: Array) -> Array:
    """Indices of the scores at which a band is evaluated: all of few, else half by rank and half by value."""
    if len(score) <= MAX_BAND_POINTS:
        return np.arange(len(score))
    by_rank = np.linspace(0, len(score) - 1, MAX_BAND_POINTS // 2).astype(np.int64)
    along_x = np.searchsorted(score, np.linspace(score[0], score[-1], MAX_BAND_POINTS // 2))
    return np.unique(np.concatenate([by_rank, along_x]))


CHERNOFF_TABLE_END = 3.0  # the probability beyond is less than 1e-8


def chernoff_quantile(q: float) -> float:
    r"""The quantile of Chernoff's distribution, that of :math:`\arg\max_t W(t) - t^2` with two-sided Brownian motion W.

    For ½ ≤ q < 1. The density is :math:`g(z) g(-z) / 2`, where g has the Fourier transform
    :math:`2^{1/3} / \text{Ai}(i\, 2^{-1/3} λ)`. Accurate to 1e-6 for q up to 0.9999.
    Source: Groeneboom & Wellner (2001).

    >>> round(chernoff_quantile(0.95), 5), round(chernoff_quantile(0.975), 5)
    (0.84508, 0.99818)
    """
    z, cdf = _tabulate_cdf()
    return float(np.interp(q, cdf, z))


@lru_cache(maxsize=1)
def _tabulate_cdf() -> tuple[Array, Array]:
    """Points z ≥ 0 and the distribution function of Chernoff's distribution at them, (3001,) each."""
    frequency = np.linspace(0, 25, 601)  # 1/|Ai| is below 1e-17 beyond
    step = frequency[1]
    transform = 2 ** (1 / 3) / airy(1j * 2 ** (-1 / 3) * frequency)[0]
    transform[0] /= 2  # trapezoidal rule, exact up to rounding for so smooth a function
    z = np.linspace(0, CHERNOFF_TABLE_END, 3001)
    phase = np.outer(z, frequency)
    cosine_sum, sine_sum = np.cos(phase) @ transform.real, np.sin(phase) @ transform.imag
    density = (cosine_sum + sine_sum) * (cosine_sum - sine_sum) * (step / np.pi) ** 2 / 2
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return z, 0.5 + 0.5 * area / area[-1]


BAND_TOLERANCE = 1e-12  # equal counts must compare as equal


class BandSegment(NamedTuple):
    """Consecutive scores at all of which the model overpredicts, or at all of which it underpredicts."""

    low: float  # first score
    high: float  # last score
    overpredicts: bool  # whether the model overpredicts there, else it underpredicts
    share: float  # of all weight


def find_segments_outside(band: Band, score: Array, w: Array, fit: Array | None = None) -> tuple[BandSegment, ...]:
    """Find the segments of the increasing scores (m,) where the fit, or without one the diagonal, is outside the band.

    Only observed scores count. A band around the curve with zero width at a score is ignored there, because labels
    drawn from a rate of 0 or 1 cannot vary.
    """
    low, high = band.limits_at(score)
    if fit is None:
        has_width = low < high
        overpredicted, underpredicted = score - high > BAND_TOLERANCE, low - score > BAND_TOLERANCE
        overpredicted, underpredicted = overpredicted & has_width, underpredicted & has_width
    else:
        overpredicted, underpredicted = low - fit > BAND_TOLERANCE, fit - high > BAND_TOLERANCE
    total = w.sum()
    segments = []
    for is_outside, overpredicts in ((overpredicted, True), (underpredicted, False)):
        edges = np.flatnonzero(np.diff(is_outside, prepend=False, append=False))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            share = float(w[start:stop].sum() / total)
            segments.append(BandSegment(float(score[start]), float(score[stop - 1]), overpredicts, share))
    return tuple(sorted(segments))
