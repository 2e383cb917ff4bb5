"""How much of a proper score does an out-of-sample calibrator win back?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators.choosing.gain import mixed, mixing
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators.acting.out_of_sample import OutOfFold, OutOfSample
from trueodds.lenses.view import View

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
            share = mixing(view.n_rows)
            return np.log(mixed(out_of_fold.Q, share)) - np.log(mixed(out_of_fold.P, share))
        return _brier(out_of_fold.P) - _brier(out_of_fold.Q)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The score, calibrator and folds."""
        return {"score": self.score, **super().settings_used(view)}

    def notes(self, view: View) -> list[Note]:
        """As for every cross-fit, and what was mixed in before logs were taken."""
        note_list = super().notes(view)
        if self.score == "log_loss":
            text = f"Log losses are after mixing in {mixing(view.n_rows):.2g} of the uniform on both sides."
            note_list.append(Note("TN139", text))
        return note_list


def _brier(P: Array) -> Array:
    """Σ(p − y)² for every y that is one outcome, (n, m); of two outcomes (p − y)² of the second, half as much."""
    loss = (P * P).sum(axis=1, keepdims=True) - 2 * P + 1
    return loss / 2 if P.shape[1] == 2 else loss
