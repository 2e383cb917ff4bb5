"""Gupta et al.'s calibration of the top-class confidence by a spline through cumulative sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from trueodds.binning.sorted_scores import SortedScores, group_starts
from trueodds.calibrators._curves.score_scale import KNOT_RANGE, PROBABILITY
from trueodds.calibrators._splines.natural_spline import NaturalSpline
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.saved_parameters import Key, Numbers
from trueodds.core.settings import Range
from trueodds.core.typing import Array

MAX_SCORES = 4096  # largest number of points of its curve that a map keeps
_SCORES_PER_BLOCK = 1 << 14  # so that temporaries stay in cache
RANK_TOLERANCE = 1e-12  # of least squares, relative to the largest eigenvalue: directions below it are not identifiable


@dataclass(frozen=True, eq=False)
class ConfidenceMap(CalibrationMap):
    """A recalibrated confidence in the predicted class; the other classes are scaled in proportion."""

    name: ClassVar[str] = "spline"
    scores: Annotated[Array, Numbers(*KNOT_RANGE[PROBABILITY], increasing="strictly")]  # (m,) predicted confidences
    confidences: Annotated[Array, Numbers(0, 1)]  # (m,) recalibrated
    n_clipped: Annotated[int, Range(0), Key("clipped")]  # how many of them were outside [0, 1]

    def confidence(self, x: Array) -> Array:
        """The recalibrated confidence at predicted ones (n,): linear between neighbors, constant beyond the ends."""
        return np.interp(x, self.scores, self.confidences)

    def apply(self, P: Array) -> Array:
        """Rows with the recalibrated confidence, raised where needed to keep the predicted class."""
        Q, predicted_class, x = self._split_predicted_class(P)
        rows = np.arange(len(Q))
        others_total, n_others = Q.sum(axis=1), Q.shape[1] - 1
        confidence = np.maximum(self.confidence(x), self._min_confidence(Q, others_total))
        Q = np.divide(Q, others_total[:, None], out=np.full_like(Q, 1 / n_others), where=others_total[:, None] > 0)
        Q *= (1 - confidence)[:, None]
        Q[rows, predicted_class] = confidence
        return Q

    def count_raised(self, P: Array) -> int:
        """Number of rows in which the confidence is raised to keep the predicted class."""
        Q, _, x = self._split_predicted_class(P)
        return int((self.confidence(x) < self._min_confidence(Q, Q.sum(axis=1))).sum())

    def describe(self) -> str:
        """The curve at its first and last score."""
        ends = self.confidences[[0, -1]]
        return f"confidence {ends[0]:.3g} at {self.scores[0]:.3g} to {ends[1]:.3g} at {self.scores[-1]:.3g}"

    @staticmethod
    def _split_predicted_class(P: Array) -> tuple[Array, Array, Array]:
        """The rows (n, K) with 0 for their predicted class, that class (n,), and its confidence (n,)."""
        Q = np.array(P, dtype=np.float64)
        rows, predicted_class = np.arange(len(Q)), Q.argmax(axis=1)
        x = Q[rows, predicted_class]
        Q[rows, predicted_class] = 0.0
        return Q, predicted_class, x

    @staticmethod
    def _min_confidence(Q: Array, others_total: Array) -> Array:
        """The confidence (n,) at which the runner-up would be equally probable, plus a margin for rounding.

        If the runner-up has the share s of the other classes' total, it is s / (1 + s).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(others_total > 0, Q.max(axis=1) / others_total, 1 / (Q.shape[1] - 1))
        return share / (1 + share) * (1 + 8 * np.finfo(np.float64).eps)


def fit_confidence_map(P: Array, Y: Array, w: Array, n_knots: int) -> ConfidenceMap:
    """Fit the calibration map of the confidence to P, Y (n, K) and w (n,).

    A spline is fitted by least squares to the cumulative sums of observed minus predicted, by increasing confidence.
    Its derivative corrects the confidence. Source: Gupta et al. (2021).
    """
    P, Y, w = P[w > 0], Y[w > 0], w[w > 0]
    rows, predicted_class = np.arange(len(P)), P.argmax(axis=1)
    s, mass, events = SortedScores(P[rows, predicted_class], Y[rows, predicted_class], w).sums_by_score()
    cumulative_residuals = np.cumsum(events - mass * s) / mass.sum()
    if len(s) == 1:
        confidences = s + cumulative_residuals
    else:
        # Ranks from 0 to 1: those of single rows are i/(n − 1), and equal scores share their last rank.
        t = np.cumsum(mass)
        t = (t - mass[0]) / (t[-1] - mass[0])
        confidences = s + fit_cumulative_spline(t, cumulative_residuals, mass, n_knots).slope(t)
    clipped = int(((confidences < 0) | (confidences > 1)).sum())
    point_index = np.union1d(group_starts(mass, MAX_SCORES), len(s) - 1)
    return ConfidenceMap(s[point_index], np.clip(confidences[point_index], 0.0, 1.0), clipped)


def fit_cumulative_spline(t: Array, h: Array, w: Array, n_knots: int) -> NaturalSpline:
    """The natural spline with equally spaced knots on [0, 1] that fits the values h (n,) at t (n,) by least squares.

    `w` (n,) are weights. If several splines are optimal, it is that of minimum norm.
    """
    knots = np.arange(n_knots) / (n_knots - 1)
    basis = [NaturalSpline(knots, row) for row in np.eye(n_knots)]
    gram, projections = np.zeros((n_knots, n_knots)), np.zeros(n_knots)
    for start in range(0, len(t), _SCORES_PER_BLOCK):
        block = slice(start, start + _SCORES_PER_BLOCK)
        B = np.stack([spline(t[block]) for spline in basis], axis=1)
        gram += (B * w[block, None]).T @ B
        projections += (w[block] * h[block]) @ B
    return NaturalSpline(knots, np.linalg.pinv(gram, rcond=RANK_TOLERANCE, hermitian=True) @ projections)
