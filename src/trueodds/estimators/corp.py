"""CORP miscalibration: the reduction of a proper score by isotonic recalibration, and the CORP decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import entr

from trueodds.binning.sorted_scores import group_starts, sort_by_rank
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.bins import sums_by_cell
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.view import View, has_rounded_ranks
from trueodds.tallies.proper_score_sums import log_loss_from_logs


def _mean_brier_score(s: Array, w: Array, wy: Array, _logs: Array) -> Array:
    """Mean Brier score (…,) of scores s (m,) from Σw and Σwy at each score, (…, m)."""
    return (w * s * s - 2 * s * wy + wy).sum(axis=-1)  # y² = y for each vote


def _mean_log_loss(_s: Array, w: Array, wy: Array, logs: Array) -> Array:
    """Mean log loss (…,) from Σw and Σwy at each score, (…, m), and log-probabilities `logs` (m, 2)."""
    is_certain, is_impossible = np.isneginf(logs).T  # predicted probability of the event 1, and 0
    non_event_loss, event_loss = -np.where(np.isneginf(logs), 0.0, logs).T
    loss = (wy * event_loss + (w - wy) * non_event_loss).sum(axis=-1)
    # The loss is infinite if an outcome of predicted probability 0 was observed. Outcomes that do not occur in a cell
    # can have a tiny weight by rounding, which must not make it infinite.
    w_certain, w_impossible = w[..., is_certain], w[..., is_impossible]
    has_event = (wy[..., is_impossible] > 1e-12 * w_impossible).any(axis=-1)
    has_non_event = (w_certain - wy[..., is_certain] > 1e-12 * w_certain).any(axis=-1)
    return np.where(has_event | has_non_event, np.inf, loss)


def _expected_brier_score(rate: Array) -> Array:
    """Expected Brier score of a correct event rate."""
    return rate * (1 - rate)


def _entropy(rate: Array) -> Array:
    """Entropy of a correct event rate in nats, its expected log loss."""
    rate = np.clip(rate, 0.0, 1.0)  # with flipped residuals a mean can lie outside [0, 1]
    return entr(rate) + entr(1 - rate)


class ScoreFunctions(NamedTuple):
    """The functions of a proper score that its decomposition needs."""

    mean_score: Callable[[Array, Array, Array, Array], Array]  # of predicted probabilities
    expected_score: Callable[[Array], Array]  # of event rates that are correct


SCORES = {
    "brier": ScoreFunctions(_mean_brier_score, _expected_brier_score),
    "log_loss": ScoreFunctions(_mean_log_loss, _entropy),
}


@dataclass(frozen=True)
class Corp(DistinctScoreError):
    r"""CORP miscalibration (MCB): reduction of a proper score by isotonic recalibration.

    Isotonic regression replaces every probability by an event rate and preserves the order of the scores. MCB is the
    loss that this recalibration avoids. The remainder is split into discrimination and uncertainty.

    Parameters
    ----------
    score : {"brier", "log_loss"}, default="brier"
        The proper score.

    Notes
    -----
    .. math:: \text{MCB} = S(p) - S(\hat r), \quad \text{DSC} = S(\bar y) - S(\hat r), \quad \text{UNC} = S(\bar y),
        \qquad S(p) = \text{MCB} - \text{DSC} + \text{UNC}

    S is the mean score, :math:`\hat r` the isotonic fit to the outcomes with equal scores pooled, and :math:`\bar y`
    the overall event rate. All three terms are at least 0. `parts` holds `mcb`, `dsc`, `unc` and `score`. Shapes: a
    binary view (n,).

    Units: those of the score, which are squared probability in [0, 1] for "brier" and nats in [0, ∞] for "log_loss"; 0
    is best. An observed outcome with predicted probability 0 makes the log loss and its MCB infinite, while DSC and UNC
    stay finite. In the recalibrated score, 0 log 0 counts as 0.

    Bias: upward, because the isotonic fit follows noise. A calibrated model has about :math:`n^{-2/3} / 2` for "brier",
    which `noise_floor` reports. Event rates that decrease with the score are not detected. The interval subtracts a
    part of the noise floor and refits every draw.

    Cost: O(n log n) time, O(n) memory. Draws distinguish 4,096 scores. Tallies merge from sums per distinct score, at
    the resolution of their grid.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021).

    Examples
    --------
    The event rates at 0.2 and 0.4 are in the wrong order, so both become 1/2:
    MCB = (.64 + .16 + .04)/3 − (.25 + .25)/3.

    >>> import trueodds as to
    >>> round(to.measure([1, 0, 1], [0.2, 0.4, 0.8], "corp", interval=None).value, 4)
    0.1133
    """

    name: ClassVar[str] = "corp"
    interval: ClassVar[str | None] = "floor-bounds"
    by_rank: ClassVar[bool] = True
    is_norm: ClassVar[bool] = False
    norm_power: ClassVar[float] = 2.0  # a squared distance for Brier, and nearly one for log loss
    exemptions: ClassVar[dict[str, str]] = {"cells": "scores within a cell differ, and the cell keeps only their mean"}
    score: Annotated[str, OneOf(tuple(SCORES))] = "brier"

    def terms(self, s: Array, w: Array, wy: Array, logs: Array) -> tuple[Array, Array, Array]:
        """Mean score (…) of the predictions, of the recalibrated event rates and of the overall event rate.

        w and wy (…, m) are Σw and Σwy at the scores s (m,), as shares of the total weight. `logs` (m, 2) are the
        log-probabilities of both outcomes at each score.
        """
        mean_score, expected_score = SCORES[self.score]
        # A fitted rate is the mean outcome of its block, so its score equals the expected score of a correct rate.
        recalibrated = (w * expected_score(isotonic_means(w, wy))).sum(axis=-1)
        return mean_score(s, w, wy, logs), recalibrated, expected_score(wy.sum(axis=-1))

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """MCB, with the isotonic regression refitted to every draw."""
        logs = self._mean_logs(s, view)

        def statistic(w: Array, _wp: Array, wy: Array) -> Array:
            score, recalibrated, _ = self.terms(s, w, wy, logs)
            return np.maximum(score - recalibrated, 0.0)  # rounding alone makes it negative

        return statistic

    def value(self, view: View) -> float:
        return view.cached(self, lambda: self.parts(view)["mcb"])

    def parts(self, view: View) -> dict[str, float]:
        """MCB, DSC and UNC, and the score that they add up to."""
        s, w, _, wy = DistinctScores(self, view).shares()
        score, recalibrated, uncertainty = (float(term) for term in self.terms(s, w, wy, self._mean_logs(s, view)))
        if self.score == "log_loss" and view.exact is not None:  # by row: rows of equal p can have different 1 − p
            has_weight = view.w > 0
            losses = log_loss_from_logs(view.log_P, view.Y)
            score = float(weighted_sum(view.w[has_weight], losses[has_weight]) / view.total)
        mcb, dsc = max(score - recalibrated, 0.0), max(uncertainty - recalibrated, 0.0)
        return {"mcb": mcb, "dsc": dsc, "unc": uncertainty, "score": score}

    @property
    def max_value(self) -> float:
        """Largest possible value: 1 for `brier`, infinity for a log loss."""
        return 1.0 if self.score == "brier" else math.inf

    def noise_fraction(self, view: View, noise_floor: float) -> float:
        r"""For `brier`, the ratio of the variance after recalibration to that of the model, to the power 2/3.

        The isotonic fit gains in proportion to :math:`\sigma^{4/3}` from noise of variance :math:`\sigma^2`.
        """
        if self.score != "brier":
            return 1.0
        s, w, _, wy = DistinctScores(self, view).shares()
        predicted_variance = float(weighted_sum(w, s * (1 - s)))
        # The fit also removed a part of the noise, which is about the noise floor and is added again.
        remaining_variance = float(weighted_sum(w, _expected_brier_score(isotonic_means(w, wy)))) + noise_floor
        return min(1.0, (remaining_variance / predicted_variance) ** (2 / 3)) if predicted_variance > 0 else 1.0

    def _mean_logs(self, s: Array, view: View) -> Array:
        """Mean log-probabilities of both outcomes among the rows at each score, (m, 2).

        Rows with the same score may differ in the complement: 1 − p is rounded to 0 for some p below 1.
        """
        if self.score != "log_loss" or view.exact is None:
            with np.errstate(divide="ignore"):
                return np.log(np.maximum(np.stack([1 - s, s], axis=1), 0.0))
        rows = view.w > 0
        index = self._nearest_scores(s, view)[rows]
        w, logs = view.w[rows], view.log_P[rows]
        mass = np.bincount(index, w, len(s))[:, None]
        sums = sums_by_cell(index, logs, len(s), w)
        # A group of neighboring scores has no rows here if all of them are nearer to the mean of another group.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mass > 0, sums / mass, np.log(np.stack([1 - s, s], axis=1)))

    def _nearest_scores(self, s: Array, view: View) -> Array:
        """Index (n,) of the nearest score of each row; where scores are groups of log odds, that of its group."""
        if not has_rounded_ranks(view):
            return np.searchsorted((s[1:] + s[:-1]) / 2, view.p.astype(np.float64), "right")
        by_rank = sort_by_rank(view)
        scores, w, _ = by_rank.sums_by_score()
        return by_rank.find_rows(view.p, scores, np.arange(len(s)) if len(s) == len(w) else group_starts(w, len(s)))

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"score": self.score}

    def notes(self, view: View) -> list[Note]:
        if self.score != "log_loss" or np.isfinite(self.value(view)):
            return []
        text = (
            "An observed outcome had predicted probability 0: the log loss and its MCB are infinite. DSC and UNC are"
            " finite."
        )
        return [Note("TN124", text)]
