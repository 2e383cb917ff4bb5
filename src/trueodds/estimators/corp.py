"""CORP miscalibration: the gain in a proper score by isotonic recalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import entr

from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators.unbinned import Reader, Scores, UnbinnedError
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.view import View
from trueodds.tallies.score_sums import log_score


def _brier(s: Array, w: Array, wy: Array, _logs: Array) -> Array:
    return (w * s * s - 2 * s * wy + wy).sum(axis=-1)  # y² = y for each vote


def _log_loss(_s: Array, w: Array, wy: Array, logs: Array) -> Array:
    ever, never = np.isneginf(logs).T
    relief, surprise = -np.where(np.isneginf(logs), 0.0, logs).T
    mean = (wy * surprise + (w - wy) * relief).sum(axis=-1)
    # What rounding leaves of outcomes that a cell has none of must not meet the logarithm of 0.
    impossible = (wy[..., never] > 1e-12 * w[..., never]).any(axis=-1)
    impossible = impossible | (w[..., ever] - wy[..., ever] > 1e-12 * w[..., ever]).any(axis=-1)
    return np.where(impossible, np.inf, mean)


def _gini(rate: Array) -> Array:
    return rate * (1 - rate)


def _entropy(rate: Array) -> Array:
    rate = np.clip(rate, 0.0, 1.0)  # flipped residuals can carry a mean past the ends
    return entr(rate) + entr(1 - rate)


SCORES: dict[str, tuple[Callable[[Array, Array, Array, Array], Array], Callable[[Array], Array]]] = {
    "brier": (_brier, _gini),  # the mean score of predicted probabilities, and that of rates which are right
    "log_loss": (_log_loss, _entropy),
}


@dataclass(frozen=True)
class Corp(UnbinnedError):
    r"""What the best non-falling recalibration would take off the score (CORP's MCB).

    Answers: how much better would the score be if every probability were replaced by the outcome rate that
    isotonic regression finds for it? The recalibration keeps the order of the scores, so MCB is loss that mere
    relabeling could avoid; what remains is told apart into discrimination and the outcome's own uncertainty:

    .. math:: \text{MCB} = S(p) - S(\hat r), \quad \text{DSC} = S(\bar y) - S(\hat r), \quad \text{UNC} = S(\bar y),
        \qquad S(p) = \text{MCB} - \text{DSC} + \text{UNC}

    where S is the mean score, :math:`\hat r` the isotonic fit to outcomes over equal scores pooled, and
    :math:`\bar y` the overall rate. All three are at least 0. `parts` holds `mcb`, `dsc`, `unc` and `score`.
    Shapes: a binary view (n,). Units: those of the score: for `brier` a squared probability, in [0, 1]; for
    `log_loss` nats, in [0, ∞]. 0 is best. An outcome that was said to be impossible makes log loss and its MCB
    infinite, while DSC and UNC stay finite; in the recalibrated score 0 log 0 counts as 0.
    Bias: upward, since the isotonic fit follows noise: a calibrated model has about :math:`n^{-2/3} / 2` for `brier`,
    which `noise_floor` reports. A truth that falls with the score is not seen.
    The interval takes a part of the noise floor off, refitting every draw. Cost: O(n log n) time, O(n) memory; draws tell 4,096
    scores apart. Merges from sums per distinct score, on a grid up to its resolution.
    Raises TO203 for an unknown score, TO205 for a lens with a vector per row (use `classwise`).
    Source: Dimitriadis, Gneiting & Jordan (2021).

    Parameters
    ----------
    score : str
        `brier` or `log_loss`.

    The scores .2 and .4 came in the wrong order, so both become 1/2: MCB = (.64 + .16 + .04)/3 − (.25 + .25)/3.

    >>> round(float(Corp()(View(p=[0.2, 0.4, 0.8], y=[1, 0, 1]))), 4)
    0.1133
    """

    name: ClassVar[str] = "corp"
    interval: ClassVar[str | None] = "floor-bounds"
    norm: ClassVar[bool] = False
    power: ClassVar[float] = 2.0  # a squared distance for Brier, and nearly one for log loss
    exempt: ClassVar[dict[str, str]] = {"cells": "scores within a cell differ, and the cell keeps only their mean"}
    score: Annotated[str, OneOf(tuple(SCORES))] = "brier"

    def terms(self, s: Array, w: Array, wy: Array, logs: Array) -> tuple[Array, Array, Array]:
        """The score, that of the recalibrated rates and that of the overall rate, from shares (…, m) at s (m,).

        `logs` (m, 2) are the log-probabilities of both outcomes at each score.
        """
        mean, entropy = SCORES[self.score]
        # A fitted rate is its block's mean outcome, so the score there is that of a rate which is right.
        recalibrated = (w * entropy(isotonic_means(w, wy))).sum(axis=-1)
        return mean(s, w, wy, logs), recalibrated, entropy(wy.sum(axis=-1))

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """MCB, with the recalibration fitted anew to every draw."""
        logs = self._logs(s, view)

        def reader(w: Array, _wp: Array, wy: Array) -> Array:
            score, recalibrated, _ = self.terms(s, w, wy, logs)
            return np.maximum(score - recalibrated, 0.0)  # rounding alone makes it negative

        return reader

    def value(self, view: View) -> float:
        """MCB."""
        return view.once(self, lambda: self.parts(view)["mcb"])

    def parts(self, view: View) -> dict[str, float]:
        """MCB, DSC and UNC, and the score that they add up to."""
        s, w, _, wy = Scores(self, view).shares()
        score, recalibrated, uncertain = (float(term) for term in self.terms(s, w, wy, self._logs(s, view)))
        if self.score == "log_loss" and view.exact is not None:  # of each row, where rows of one score differ in q
            rows = view.w > 0
            score = float(view.w[rows] @ log_score(view.log_P, view.Y)[rows] / view.total)
        mcb, dsc = max(score - recalibrated, 0.0), max(uncertain - recalibrated, 0.0)
        return {"mcb": mcb, "dsc": dsc, "unc": uncertain, "score": score}

    @property
    def max_value(self) -> float:
        """1 for `brier`; a log loss has no bound."""
        return 1.0 if self.score == "brier" else math.inf

    def noise_share(self, view: View, noise_floor: float) -> float:
        r"""For `brier` the ratio of the variance left by the recalibration to that of the model, to the power 2/3.

        The isotonic fit gains in proportion to :math:`\sigma^{4/3}` from noise of variance :math:`\sigma^2`.
        """
        if self.score != "brier":
            return 1.0
        s, w, _, wy = Scores(self, view).shares()
        predicted_variance = float(w @ (s * (1 - s)))
        left = float(w @ _gini(isotonic_means(w, wy))) + noise_floor  # what the fit took of the noise is noise, too
        return min(1.0, (left / predicted_variance) ** (2 / 3)) if predicted_variance > 0 else 1.0

    def _logs(self, s: Array, view: View) -> Array:
        """The mean log-probabilities of both outcomes among the rows at each score, (m, 2).

        Rows of one score may differ in what they leave to the complement: 1 − p is 0 for many a p that is not 1.
        """
        if self.score != "log_loss" or view.exact is None:
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(np.stack([1 - s, s], axis=1), 0.0))
        rows = view.w > 0
        index = np.searchsorted((s[1:] + s[:-1]) / 2, view.p[rows].astype(np.float64), "right")
        w, logs = view.w[rows], view.log_P[rows]
        mass = np.bincount(index, w, len(s))[:, None]
        sums = np.stack([np.bincount(index, w * column, len(s)) for column in logs.T], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # groups of neighbors may be nearer to another's mean
            return np.where(mass > 0, sums / mass, np.log(np.stack([1 - s, s], axis=1)))

    def settings_used(self, view: View) -> dict[str, Any]:
        """The score."""
        return {"score": self.score}

    def notes(self, view: View) -> list[Note]:
        """A word where the score is infinite."""
        if self.score != "log_loss" or np.isfinite(self.value(view)):
            return []
        text = "An outcome came that had probability 0: the log loss and its MCB are infinite; DSC and UNC are not."
        return [Note("TN124", text)]
