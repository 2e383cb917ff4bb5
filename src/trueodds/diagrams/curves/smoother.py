"""Through which Gaussian is a view seen, and at which places?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from trueodds.calibrators.curves.reliability_curve import NARROWEST, bin_scores, smoothed, width
from trueodds.calibrators.likelihood.logs import MIN_PROB, log_odds
from trueodds.core.typing import Array
from trueodds.diagrams.monotone.scores import Scores, scores_of
from trueodds.estimators.ece_kde import BELOW, KernelDensityError
from trueodds.lenses.view import View

Span = Literal["auto", "1/K"]  # where a curve begins: at 0, at 1/K, or where the scores do

FINE = 3  # places in a bandwidth, at least
COARSEST = 200  # places from 0 to 1, at least
CELLS = 4  # groups of scores in a bandwidth, which bands tell apart


@dataclass(frozen=True)
class Smoother:
    """A Gaussian on a scale of the scores; probabilities are mirrored at `low` and 1."""

    scale: str
    low: float  # where probabilities begin: 0 or 1/K
    bandwidth: float  # on the scale

    @property
    def mirrored(self) -> bool:
        """Whether scores have images beyond the ends."""
        return self.scale == "probability"

    @property
    def h(self) -> float:
        """The bandwidth where the range is as long as from 0 to 1."""
        return self.bandwidth / (1 - self.low) if self.mirrored else self.bandwidth

    @property
    def is_narrowest(self) -> bool:
        """Whether the bandwidth is the narrowest there is."""
        return self.bandwidth == NARROWEST[self.scale]

    def on_scale(self, p: Array) -> Array:
        """Where probabilities lie, those mirrored from 0 to 1."""
        if self.mirrored:
            return (np.clip(p, self.low, 1.0, dtype=np.float64) - self.low) / (1 - self.low)
        return log_odds(p, MIN_PROB)

    def places(self, s: Array) -> tuple[Array, Array]:
        """Where the curve is read: rising probabilities within a bandwidth of some stated score, and their piece.

        Places of one piece follow each other without a gap. Probabilities are multiples of 1/200, or of a half, a
        quarter … of that; log odds of a third of the bandwidth, and those of full per cents.
        """
        if self.mirrored:
            per = COARSEST * 2 ** max(0, math.ceil(math.log2(FINE / (COARSEST * self.bandwidth)) - 1e-9))
            x, step = np.clip(s, self.low, 1.0, dtype=np.float64), 1 / per
        else:
            x, step = log_odds(s, MIN_PROB), self.bandwidth / FINE
        radius = math.floor(self.bandwidth / step + 1e-9)
        number = _around(np.unique(np.rint(x / step).astype(np.int64)), radius)
        if self.mirrored:
            lowest = math.ceil(self.low * per - 1e-9)
            number = number[(number >= lowest - 1) & (number <= per)]
            # 1/K need not be a multiple: the one below it gives its place to it.
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

    def groups(self, scores: Scores) -> Scores:
        """The scores, neighbors within a quarter of a bandwidth as one."""
        z = self.on_scale(scores.at)
        cell = np.floor((z - z[0]) * (CELLS / self.h)).astype(np.int64)
        return scores.pool(np.flatnonzero(np.diff(cell, prepend=-1)))


def choose_smoother(view: View, scores: Scores, bandwidth: float | str, scale: str, range: Span | None) -> Smoother:
    """The glass for a view: by its scores alone, never by what came."""
    w = scores.w * (view.counted / view.total)
    low = _low(view, scores, range) if scale == "probability" else 0.0
    if scale == "probability":
        return Smoother(scale, low, width(scores.at, w, bandwidth, scale))
    return Smoother(scale, low, width(log_odds(scores.at, MIN_PROB), w, bandwidth, scale, -math.log(MIN_PROB)))


def smooth_view(
    view: View, bandwidth: float | str, scale: str, range: Span | None
) -> tuple[Scores, Smoother, dict[str, Array]]:
    """The scores of a view, its glass, and the curve by columns: what came, and what was said, near each place."""
    scores = scores_of(view)
    smoother = choose_smoother(view, scores, bandwidth, scale, range)
    at, piece = smoother.places(scores.at)
    z, x = smoother.on_scale(scores.at), smoother.on_scale(at)
    rate, reference = (
        smoothed(x, *bin_scores(z, scores.w, sums, smoother.h), smoother.h, smoother.mirrored)[0]
        for sums in (scores.wy, scores.w * scores.at)
    )
    rate, reference = np.clip(rate, 0.0, 1.0), np.clip(reference, 0.0, 1.0)
    columns = {"piece": piece, "score": at, "rate": rate, "reference": reference}
    return scores, smoother, columns | {"error": rate - reference, "probability": freed(rate, at, reference)}


def freed(rate: Array, score: Array, reference: Array) -> Array:
    """Rates without what smoothing does to the diagonal, moved as a calibrated model's curve must be to the score.

    Along straight lines 0 stays 0, the reference becomes the score, and 1 stays 1. Where nothing came no rate above 0
    is read into it, as a shift by score − reference would.

    >>> freed(np.array([0.0, 0.04, 0.08, 0.54, 1.0]), np.array(0.1), np.array(0.08)).round(4).tolist()
    [0.0, 0.05, 0.1, 0.55, 1.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # the side that is not taken
        below, above = rate * score / reference, 1 - (1 - rate) * (1 - score) / (1 - reference)
    moved = np.where(rate > reference, above, below)
    return np.asarray(np.clip(np.where(np.minimum(reference, 1 - reference) > 0, moved, rate), 0.0, 1.0))


def _low(view: View, scores: Scores, range: Span | None) -> float:
    if range == "auto":
        known = view.name == "confidence" and view.classes >= 2
        return 1 / view.classes if known and scores.at[0] >= 1 / view.classes - BELOW else 0.0
    return KernelDensityError(range=range).span(view)[0]


def _around(numbers: Array, radius: int) -> Array:
    """All whole numbers within reach of some of the rising ones."""
    starts = np.maximum(numbers - radius, np.concatenate([[numbers[0] - radius], numbers[:-1] + radius + 1]))
    counts = numbers + radius + 1 - starts
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return first + np.arange(counts.sum())
