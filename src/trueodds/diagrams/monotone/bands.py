"""Where does the CORP curve fall by chance, score by score, if the model is calibrated or the curve is right?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from trueodds.core.typing import Array
from trueodds.diagrams.monotone import chernoff
from trueodds.diagrams.monotone.scores import Scores
from trueodds.estimators.smoothing.density import Beta
from trueodds.estimators.smoothing.isotonic_fit import isotonic_fit

DRAWN = 1024  # scores that draws tell apart; beyond, neighbors share a group
POINTS = 256  # scores at which a band is read off
AT_ONCE = 2**18  # numbers of a block of draws


@dataclass(frozen=True)
class Band:
    """Limits at scores, between which they run along straight lines: `x_low` and `x_high` are the same."""

    x_low: Array  # (k,)
    x_high: Array
    low: Array
    high: Array
    method: str  # how it was got

    def at(self, x: Array) -> tuple[Array, Array]:
        """The limits at scores."""
        return np.interp(x, self.x_low, self.low), np.interp(x, self.x_low, self.high)

    def within(self, low: float, high: float) -> Band:
        """The part of the band between two scores."""
        cut = np.array([low, high] if high > low else [low])
        inside = (self.x_low > low) & (self.x_low < high)
        limits = zip(self.at(cut), (self.low, self.high), strict=True)
        lows, highs = (np.concatenate([ends[:1], limit[inside], ends[1:]]) for ends, limit in limits)
        x = np.concatenate([cut[:1], self.x_low[inside], cut[1:]])
        return Band(x, x, lows, highs, self.method)


def paper_rule(scores: Scores, band: str) -> str:
    """`resampling`, or `discrete` or `continuous` asymptotics: Dimitriadis, Gneiting & Jordan's choice.

    Votes are always resampled: the limit laws are those of labels.
    """
    n, unique = float(scores.n.sum()), len(scores.at)
    if band == "confidence" or scores.voted or n <= max(1000, min(5000, 50 * unique)):
        return "resampling"
    return "discrete" if n >= 8 * unique**2 else "continuous"


def resampled(
    scores: Scores,
    band: str,
    level: float,
    resamples: int,
    redraw: str,
    rng: np.random.Generator,
) -> Band:
    """Quantiles (1 ± level)/2, at each score, of isotonic fits to redrawn labels.

    Labels come with the stated probability (`consistency`) or the fitted rate (`confidence`). `redraw="labels"`
    keeps the predictions fixed; `both` draws rows with replacement first, and reads the fit between the scores that
    were drawn along straight lines, beyond them not at all. Rows of one score that weigh differently have a normal
    sum with variance Σw²r(1−r); votes keep the size of their residual y − r and draw its sign, and are normal where
    they were tallied. Cost: O(resamples · m) for m ≤ 4,096 distinct scores or groups of them.
    """
    scores = scores.by_place(DRAWN)
    rates = np.clip(scores.at if band == "consistency" else isotonic_fit(scores.w, scores.wy), 0.0, 1.0)
    labels = Labels(scores, rates)
    points = _points(scores.at)
    fits = np.empty((resamples, len(points)))
    block = max(1, AT_ONCE // len(rates))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        if redraw == "labels":
            drawn = isotonic_fit(scores.w, labels.drawn(size, rng))[:, points]
        else:
            drawn = _between(scores.at, *labels.with_rows(size, rng), points)
        fits[start : start + size] = drawn
    read = np.quantile if redraw == "labels" else np.nanquantile
    low, high = np.clip(read(fits, [(1 - level) / 2, (1 + level) / 2], axis=0), 0, 1)
    at = scores.at[points]
    return Band(at, at, low, high, f"{resamples:,} draws of labels{' and rows' if redraw == 'both' else ''}")


def discrete(scores: Scores, band: str, level: float) -> Band:
    """Normal limits around the rate of each score by itself: what isotonic regression does to few scores of many rows.

    Where a confidence band would be without width, at rates of 0 and 1 between other scores, it is interpolated.
    """
    z, at = ndtri((1 + level) / 2), scores.at
    rates = np.clip(at if band == "consistency" else isotonic_fit(scores.w, scores.wy), 0.0, 1.0)
    half = z * np.sqrt(scores.residual(rates)) / scores.w
    low, high = np.clip(rates - half, 0, 1), np.clip(rates + half, 0, 1)
    if band == "confidence":
        known = (rates > 0) & (rates < 1)
        known[[0, -1]] = True
        low, high = (np.interp(at, at[known], limit[known]) for limit in (low, high))
    points = _points(at)
    return Band(at[points], at[points], low[points], high[points], "normal limits, many rows per score")


def continuous(scores: Scores, level: float) -> Band:
    r"""Around the diagonal, for scores with a density: :math:`x \pm q\, (4 x (1-x) / (n f(x)))^{1/3}`.

    q is the quantile of Chernoff's law, f the density of the scores by Chen's first beta kernel with bandwidth
    :math:`n^{-2/5}`, n the number of rows of equal weight that the weights are worth. Votes vary less than labels,
    for which it holds. On the grid 0, .01, …, 1. Source: Dimitriadis, Gneiting & Jordan (2021); Chen (1999).
    """
    x, n = np.arange(101) / 100, scores.effective_n
    density = FirstBeta(scores.at, n**-0.4, 0.0, 1.0).at(x, scores.w / scores.w.sum())
    with np.errstate(divide="ignore"):
        scale = np.where((x > 0) & (x < 1), np.cbrt(4 * x * (1 - x) / (n * density)), 0.0)
    half = chernoff.quantile((1 + level) / 2) * scale
    return Band(x, x, np.maximum(x - half, 0), np.minimum(x + half, 1), "Chernoff's law, dense scores")


class FirstBeta(Beta):
    """Chen's first beta kernel: the density of Beta(x/b + 1, (1 − x)/b + 1) at the score."""

    def _shape(self, u: Array) -> Array:
        return u / self.width + 1


@dataclass(frozen=True)
class Labels:
    """Labels drawn at each score with given rates, as the sums Σwy that the fit reads."""

    scores: Scores
    rates: Array  # (m,)

    @cached_property
    def counted(self) -> Array:
        """Where the number of labels that came is binomial."""
        return np.zeros(len(self.rates), dtype=bool) if self.scores.voted else self.scores.even

    @cached_property
    def std(self) -> Array:
        """The standard deviation of Σwy."""
        return np.sqrt(self.scores.residual(self.rates))

    def drawn(self, size: int, rng: np.random.Generator) -> Array:
        """Σwy of so many draws, (size, m); the rows stay as they are."""
        of, (count,) = self.scores, (self.counted,)
        shape = size, len(self.rates)
        if count.all() and (of.n == 1).all():
            return of.w * (rng.random(shape) < self.rates)
        wy = np.empty(shape)
        wy[:, count] = (of.w / of.n)[count] * rng.binomial(
            of.n[count].astype(np.int64), self.rates[count], (size, int(count.sum()))
        )
        wy[:, ~count] = (of.w * self.rates)[~count] + self.std[~count] * self._noise(size, rng)
        return wy

    def with_rows(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Σw and Σwy, each (size, m), of rows drawn with replacement."""
        of, count = self.scores, self.counted
        rows = rng.multinomial(round(of.n.sum()), of.n / of.n.sum(), size)
        w = of.w / of.n * rows
        wy = np.empty(w.shape)
        wy[:, count] = (of.w / of.n)[count] * rng.binomial(rows[:, count], self.rates[count])
        noise = self._noise(size, rng) * np.sqrt((rows / of.n)[:, ~count])
        wy[:, ~count] = (w * self.rates)[:, ~count] + self.std[~count] * noise
        return w, wy

    def _noise(self, size: int, rng: np.random.Generator) -> Array:
        n = self.scores.n[~self.counted]
        noise = rng.standard_normal((size, len(n)))
        single = n == 1  # one residual keeps its size
        noise[:, single] = np.where(noise[:, single] < 0, -1.0, 1.0)
        return noise


def _between(at: Array, w: Array, wy: Array, points: Array) -> Array:
    """The fit of each draw at these scores, along straight lines between those that were drawn."""
    fits = isotonic_fit(w, wy)
    out = np.empty((len(w), len(points)))
    for i, (mass, fit) in enumerate(zip(w, fits, strict=True)):
        some = mass > 0
        out[i] = np.interp(at[points], at[some], fit[some], left=np.nan, right=np.nan)
    return out


def _points(at: Array) -> Array:
    """Which scores a band is read off at: all of few, else half of them evenly by rank and half evenly along x."""
    if len(at) <= POINTS:
        return np.arange(len(at))
    by_rank = np.linspace(0, len(at) - 1, POINTS // 2).astype(np.int64)
    along_x = np.searchsorted(at, np.linspace(at[0], at[-1], POINTS // 2))
    return np.unique(np.concatenate([by_rank, along_x]))
