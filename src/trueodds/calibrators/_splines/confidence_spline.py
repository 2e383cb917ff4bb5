"""Gupta et al.'s calibration of the top-class confidence by a spline through cumulative sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.sorted_scores import ByScore, group_starts
from trueodds.calibrators import saved_parameters
from trueodds.calibrators._splines.natural_spline import NaturalSpline
from trueodds.calibrators.base import CalibrationMap
from trueodds.core.typing import Array

MAX_SCORES = 4096  # places that the map keeps, where there are more scores
RANK_TOLERANCE = 1e-12  # of the largest curvature, below which the rows do not tell a direction


@dataclass(frozen=True, eq=False)
class ConfidenceMap(CalibrationMap):
    """Another confidence in the most probable class; the others share the rest as they did."""

    name: ClassVar[str] = "spline"
    scores: Array  # (m,) strictly rising: confidences as stated
    confidences: Array  # (m,) in [0, 1]: recalibrated
    clipped: int  # how many of them had left [0, 1]

    def confidence(self, x: Array) -> Array:
        """The recalibrated confidence at stated ones (n,): straight between neighbors, flat beyond the ends."""
        return np.interp(x, self.scores, self.confidences)

    def apply(self, P: Array) -> Array:
        """The confidence where it is at least what keeps the label, and (1 − confidence) shared by the others."""
        Q, top, x = self._split(P)
        rows = np.arange(len(Q))
        rest, others = Q.sum(axis=1), Q.shape[1] - 1
        confidence = np.maximum(self.confidence(x), self._min_confidence(Q, rest))
        Q = np.divide(Q, rest[:, None], out=np.full_like(Q, 1 / others), where=rest[:, None] > 0)
        Q *= (1 - confidence)[:, None]
        Q[rows, top] = confidence
        return Q

    def raised(self, P: Array) -> int:
        """In how many rows the confidence is too small to keep the label, and is raised."""
        Q, _, x = self._split(P)
        return int((self.confidence(x) < self._min_confidence(Q, Q.sum(axis=1))).sum())

    def describe(self) -> str:
        """Where it begins and ends."""
        ends = self.confidences[[0, -1]]
        return f"confidence {ends[0]:.3g} at {self.scores[0]:.3g} to {ends[1]:.3g} at {self.scores[-1]:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """The confidences as stated and as recalibrated."""
        return {"scores": self.scores.tolist(), "confidences": self.confidences.tolist(), "clipped": self.clipped}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> ConfidenceMap:  # noqa: ARG003 - any number of classes
        """Scores that rise, and a confidence for each."""
        saved_parameters.check_keys(parameters, ("scores", "confidences", "clipped"), "parameters")
        scores = saved_parameters.read_vector(
            parameters, "scores", 0, 2, increasing="strictly"
        )  # float16 may say a little more than 1
        confidences = saved_parameters.read_vector(parameters, "confidences", 0, 1, size=len(scores))
        return cls(scores, confidences, saved_parameters.read_count(parameters, "clipped"))

    @staticmethod
    def _split(P: Array) -> tuple[Array, Array, Array]:
        """The rows without their most probable class, which class that is, and its confidence."""
        Q = np.array(P, dtype=np.float64)
        rows, top = np.arange(len(Q)), Q.argmax(axis=1)
        x = Q[rows, top]
        Q[rows, top] = 0.0
        return Q, top, x

    @staticmethod
    def _min_confidence(Q: Array, rest: Array) -> Array:
        """The confidence at which the next class is as probable, and a hair more, which rounding takes no label for.

        If the next has the share s of what the others share, that is s / (1 + s).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(rest > 0, Q.max(axis=1) / rest, 1 / (Q.shape[1] - 1))
        return share / (1 + share) * (1 + 8 * np.finfo(np.float64).eps)


def fit_confidence(P: Array, Y: Array, w: Array, count: int) -> ConfidenceMap:
    """The spline through the running sums of what came less what was said, by least squares, and its slope."""
    P, Y, w = P[w > 0], Y[w > 0], w[w > 0]
    rows, top = np.arange(len(P)), P.argmax(axis=1)
    s, mass, events = ByScore(P[rows, top], Y[rows, top], w).sums()
    running = np.cumsum(events - mass * s) / mass.sum()
    if len(s) == 1:
        confidences = s + running
    else:
        # Places from 0 to 1: those of single rows are i/(n − 1), and scores that are equal share the last of theirs.
        t = np.cumsum(mass)
        t = (t - mass[0]) / (t[-1] - mass[0])
        confidences = s + fit_cumulative_spline(t, running, mass, count).slope(t)
    clipped = int(((confidences < 0) | (confidences > 1)).sum())
    keep = np.union1d(group_starts(mass, MAX_SCORES), len(s) - 1)
    return ConfidenceMap(s[keep], np.clip(confidences[keep], 0.0, 1.0), clipped)


def fit_cumulative_spline(t: Array, h: Array, w: Array, count: int) -> NaturalSpline:
    """The natural spline with even knots on [0, 1] of least squared distance from h at t; as level as the rows allow."""
    knots = np.arange(count) / (count - 1)
    unit = [NaturalSpline(knots, row) for row in np.eye(count)]
    gram, right = np.zeros((count, count)), np.zeros(count)
    for start in range(0, len(t), 1 << 14):
        part = slice(start, start + (1 << 14))
        B = np.stack([spline(t[part]) for spline in unit], axis=1)
        gram += (B * w[part, None]).T @ B
        right += (w[part] * h[part]) @ B
    return NaturalSpline(knots, np.linalg.pinv(gram, rcond=RANK_TOLERANCE, hermitian=True) @ right)
