"""Calibration error and score regret estimated by cross-fitted calibrators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators.uniform_mixture import mix_with_uniform, uniform_share
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import settings_of
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators._decision.out_of_sample import OutOfFold, OutOfSample
from trueodds.lenses.view import View

SAME = 1e-9  # a recalibrated probability this near to the stated one is the same but for rounding

_POWERS = {"tv": 1.0, "l1": 1.0, "l2": 2.0, "max": math.inf}


@dataclass(frozen=True)
class CrossFitted(OutOfSample):
    r"""What an out-of-sample calibrator recovers of the calibration error: 0 in expectation if there is none.

    Answers: how far off are the probabilities, by a number that noise alone does not raise? ECE takes the absolute
    gap of each bin, so chance always counts as error. Here a calibrator fitted on other rows only says in which
    *direction* each row is off, and the row's own outcome says by how much:

    .. math:: \tfrac1w \sum_i w_i \langle s_i, y_i - p_i \rangle, \quad
        s_i = \arg\max_{\|s\|_* \le 1} \langle s, \hat r_{-i}(p_i) - p_i \rangle

    For one score this is the mean of sign(r̂(p) − p)(y − p). The supremum over all s is the full error
    E‖r(p) − p‖; a calibrator that errs about the direction recovers less, so the expectation is a lower bound of it.
    (The mean distance |r̂(p) − p| itself is as biased as ECE.) `parts`, for one score: `over`, where r̂ < p and the
    model said too much, and `under`, where r̂ > p; they add up to the value.

    Shapes: a binary view (n,) or a joint one (n, m). Units: probability, in [-1, 1] for `tv`; 0 is best, and below it
    nothing was recovered. Bias: none at calibration, else downward. The interval takes the fits as given (BCa over
    rows) and is for what this calibrator recovers; in simulations it covered 92 to 97 % at 95 % with the default
    `fit_on`. The noise floor is exactly 0 and needs no draws: given the predictions, an outcome is independent of the
    fit that judges it. That needs independent rows: those of one origin in two folds raise the value.
    Cost: `folds` fits. Needs rows, and their order decides the folds, so nothing merges. Raises TO201 for an unknown
    calibrator, TO203 for other settings, TO205 for cells of many rows.
    Source: the dual form of a cross-fitted error; over- and under-confidence after Berta et al. (2026).

    Parameters
    ----------
    distance : {"tv", "l1", "l2", "max"} or "lp:3" and the like
        The norm of the error; s has the dual one.
    calibrator : str or Rule, optional
        A name of `trueodds list calibrators`; `isotonic` for one score, `temperature` for vectors if not said.
    folds : int
        Rows are dealt into so many parts at random.
    fit_on : {"earlier", "others"}
        Each part is judged by a fit on the parts before it (the first is not judged), or on all others.
    rng : int
        The seed that deals the parts.
    score : {"log_loss", "brier"}, optional
        By name only, in place of a distance: what is lost of that proper score (see `ScoreRegret`).

    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> round(CrossFitted(folds=2).value(view), 4)  # no event: each fold is evaluated with an expectation below .9
    0.9
    """

    name: ClassVar[str] = "cross_fitted"
    distance: str = "tv"

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*settings_of(cls), "score")

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> CrossFitted | ScoreRegret:
        """The distance, or what is lost of a proper score."""
        if settings.get("score") is None:
            settings.pop("score", None)
            return cls(**settings)
        if "distance" in settings:
            raise InputError(
                "TO203",
                "A score is no distance.",
                f"distance={describe(settings['distance'])}",
                "Give one of score, distance.",
            )
        return ScoreRegret(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        _power(self.distance)

    def by_outcome(self, out_of_fold: OutOfFold, view: View) -> Array:
        """⟨s, y − p⟩ of each row, for every y that is one outcome."""
        s = self._direction(out_of_fold.P, out_of_fold.Q)
        return s - (s * out_of_fold.P).sum(axis=1, keepdims=True)

    def parts(self, view: View) -> dict[str, float]:
        """Over- and under-confidence, where there is one score."""
        if view.joint:
            return {}
        out_of_fold = self.out_of_fold(view)
        share = out_of_fold.scale * view.w[out_of_fold.row] * self.gained(out_of_fold, view) / view.total
        less, more = out_of_fold.Q[:, 1] < out_of_fold.P[:, 1], out_of_fold.Q[:, 1] > out_of_fold.P[:, 1]
        return {"over": float(share[less].sum()), "under": float(share[more].sum())}

    def settings_used(self, view: View) -> dict[str, Any]:
        """The distance, calibrator and folds."""
        return {"distance": self.distance, **super().settings_used(view)}

    def _direction(self, P: Array, Q: Array) -> Array:
        """The s of dual norm 1 that has the largest product with Q − P; 0 where they are the same."""
        d = np.where(np.abs(Q - P) > SAME, Q - P, 0.0)
        power = _power(self.distance)
        if power == 1:
            return np.sign(d) / (2 if self.distance == "tv" else 1)
        size = np.abs(d).max(axis=1, keepdims=True)
        scaled = np.divide(d, size, out=np.zeros_like(d), where=size > 0)  # so that no power underflows
        if math.isinf(power):
            largest = (np.abs(scaled) >= 1 - SAME) & (size > 0)
            return np.sign(d) * largest / np.maximum(largest.sum(axis=1, keepdims=True), 1)
        raw = np.sign(scaled) * np.abs(scaled) ** (power - 1)
        dual = power / (power - 1)
        norm = (np.abs(raw) ** dual).sum(axis=1, keepdims=True) ** (1 / dual)
        return np.divide(raw, norm, out=np.zeros_like(raw), where=norm > 0)


def _power(distance: Any) -> float:
    """The power of the norm behind a name."""
    if distance in _POWERS:
        return _POWERS[distance]
    if isinstance(distance, str) and distance.startswith("lp:"):
        try:
            power = float(distance.removeprefix("lp:"))
        except ValueError:
            power = 0.0
        if power >= 1:
            return power
    raise InputError(
        "TO203",
        "A cross-fitted error is measured in a norm.",
        describe(distance),
        "distance is 'tv', 'l1', 'l2', 'max' or 'lp:3' with a power of at least 1.",
    )


SCORES = ("log_loss", "brier")


@dataclass(frozen=True)
class ScoreRegret(OutOfSample):
    r"""What miscalibration costs in log loss or Brier score: the gain of a calibrator that has not seen the row.

    Answers: how much of the score is lost to miscalibration, said honestly? A proper score S has the calibration
    function as its best map of the predictions, so what any map gains is a lower bound of what is lost:

    .. math:: \tfrac1w \sum_i w_i \big[S(p_i, y_i) - S(\hat r_{-i}(p_i), y_i)\big] \lesssim E[S(p, Y) - S(r(p), Y)]

    For one score the Brier form is the mean of (p − y)² − (r̂ − y)². Shapes: a binary view (n,) or a joint one (n, m).
    Units: nats, or squared probability; 0 is best, and below it the calibrator made things worse. Bias: downward; of a
    calibrated model the expectation is at most 0, which is what the noise floor of 0 says. For log loss 1/(n + 1) of
    the uniform is mixed into both sides, so that an exact zero costs much but not infinitely much.
    Cost: `folds` fits. Needs rows, and their order decides the folds, so nothing merges. Raises TO201 for an unknown
    calibrator, TO203 for other settings. Source: the score form of a cross-fitted error, after Berta et al. (2026).

    Parameters
    ----------
    score : {"log_loss", "brier"}
    calibrator, folds, fit_on, rng
        As for `cross_fitted`.

    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> round(ScoreRegret(score="brier", folds=2).value(view), 4)  # .9² less 0: the judge was told it never comes
    0.81
    """

    name: ClassVar[str] = "cross_fitted"
    recovers: ClassVar[str] = "loss"
    at_calibration: ClassVar[str] = "at most 0"
    lens: ClassVar[str | None] = "canonical"
    score: Annotated[str, OneOf(SCORES)] = "log_loss"

    def by_outcome(self, out_of_fold: OutOfFold, view: View) -> Array:
        """What the calibrator wins back on each row, should the outcome come."""
        if self.score == "log_loss":
            share = uniform_share(view.n_rows)
            return np.log(mix_with_uniform(out_of_fold.Q, share)) - np.log(mix_with_uniform(out_of_fold.P, share))
        return _brier(out_of_fold.P) - _brier(out_of_fold.Q)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The score, calibrator and folds."""
        return {"score": self.score, **super().settings_used(view)}

    def notes(self, view: View) -> list[Note]:
        """As for every cross-fit, and what was mixed in before logs were taken."""
        note_list = super().notes(view)
        if self.score == "log_loss":
            text = f"Log losses are after mixing in {uniform_share(view.n_rows):.2g} of the uniform on both sides."
            note_list.append(Note("TN139", text))
        return note_list


def _brier(P: Array) -> Array:
    """Σ(p − y)² for every y that is one outcome, (n, m); of two outcomes (p − y)² of the second, half as much."""
    loss = (P * P).sum(axis=1, keepdims=True) - 2 * P + 1
    return loss / 2 if P.shape[1] == 2 else loss
