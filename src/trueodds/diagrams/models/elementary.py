"""What do decisions at each threshold cost: as the model has it, recalibrated, and by the overall rate alone?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.binning.by_score import by_score, grouped
from trueodds.core.typing import Array
from trueodds.estimators.smoothing.isotonic_fit import isotonic_fit
from trueodds.lenses.view import View

EXACT = 1000  # thresholds at which curves turn or jump, up to which all of them are drawn
EVEN, GROUPS = 200, 100  # else so many evenly, and so many by the predictions of each model
AFTER, OPEN, BEFORE = 0.0, 0.5, 1.0  # which share of the rows that state the threshold itself acts


def places(p: Array, thresholds: Array) -> Array:
    """Where each score is: 2j + 1 at the j-th threshold, 2j below it and above the one before."""
    exact = p.astype(np.float64, copy=False)
    return np.searchsorted(thresholds, exact, "left") + np.searchsorted(thresholds, exact, "right")


def costs(w: Array, wy: Array, thresholds: Array, acting: float = OPEN) -> Array:
    r"""The mean elementary score at each threshold, (…, t), from Σw and Σwy by place, (…, 2t + 1).

    .. math:: S_\theta = 2\theta\, P[p > \theta, y = 0] + 2(1 - \theta)\, P[p < \theta, y = 1]

    as `murphy_loss` has it: who states θ itself pays half of either cost. With `acting` = 1 that row acts, which is
    the limit from below θ, and with 0 it does not, the limit from above. Units: cost.
    """
    nonevents, events = np.cumsum(w - wy, axis=-1), np.cumsum(wy, axis=-1)
    at = slice(1, None, 2)
    false = nonevents[..., -1:] - nonevents[..., at] + acting * (w - wy)[..., at]
    missed = events[..., 0:-1:2] + (1 - acting) * wy[..., at]
    total = nonevents[..., -1:] + events[..., -1:]
    cost: Array = 2 * (thresholds * false + (1 - thresholds) * missed) / total
    return cost


class Decisions:
    """One view's costs by threshold, told apart into MCB, DSC and UNC; sums of shares at each distinct score."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.s, w, wy = by_score(view).sums()
        self.w, self.wy = w / w.sum(), wy / w.sum()
        self.fit = np.clip(isotonic_fit(self.w, self.wy), 0.0, 1.0)
        self.rate = float(self.wy.sum())

    @property
    def turns(self) -> Array:
        """Where the curves jump or turn: at the scores, the recalibrated rates and the overall rate."""
        return np.concatenate([self.s, self.fit, [self.rate]])

    def score(self, thresholds: Array, acting: float = OPEN) -> Array:
        """The mean cost of acting on these probabilities."""
        return _costs(self.s, self.w, self.wy, thresholds, acting)

    def recalibrated(self, thresholds: Array) -> Array:
        """The same after the best non-falling recalibration; where the rate is θ either decision costs the same."""
        return _costs(self.fit, self.w, self.w * self.fit, thresholds, OPEN)

    def unc(self, thresholds: Array) -> Array:
        """The same for who knows the overall rate alone."""
        rate = np.array([self.rate])
        return _costs(rate, np.ones(1), rate, thresholds, OPEN)

    def parts(self, thresholds: Array, acting: float = OPEN) -> dict[str, Array]:
        """S = MCB − DSC + UNC at each threshold."""
        score, recalibrated, unc = self.score(thresholds, acting), self.recalibrated(thresholds), self.unc(thresholds)
        # Isotonic rates are best at every threshold; rounding alone makes a part negative.
        return {
            "score": score,
            "mcb": np.maximum(score - recalibrated, 0.0),
            "dsc": np.maximum(unc - recalibrated, 0.0),
            "unc": unc,
        }


def _costs(s: Array, w: Array, wy: Array, thresholds: Array, acting: float) -> Array:
    place, size = places(s, thresholds), 2 * len(thresholds) + 1
    return costs(np.bincount(place, w, size), np.bincount(place, wy, size), thresholds, acting)


def turning_points(models: Sequence[Decisions]) -> Array | None:
    """All thresholds at which some curve jumps or turns, with 0 and 1; None where these are too many to draw."""
    if sum(len(model.s) for model in models) > 2 * EXACT * len(models):
        return None
    points = np.unique(np.concatenate([[0.0, 1.0], *(model.turns for model in models)]))
    return points if len(points) <= EXACT else None


def grid(models: Sequence[Decisions], even: int = EVEN) -> Array:
    """Even thresholds, and more where the predictions are: rare events have all of theirs near 0."""
    by_weight = [model.s[grouped(model.w, GROUPS)] for model in models]
    points = np.unique(np.concatenate([np.arange(even + 1) / even, *by_weight]))
    return points[(points >= 0) & (points <= 1)]
