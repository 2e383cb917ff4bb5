"""Score regret: reduction of log loss or Brier score by a calibrator that was fitted on other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators.uniform_mixture import mix_with_uniform, uniform_share
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators._decision.out_of_sample import OutOfFoldRows, OutOfSampleGain
from trueodds.lenses.view import View

SCORES = ("log_loss", "brier")


@dataclass(frozen=True)
class ScoreRegret(OutOfSampleGain):
    r"""Score regret: reduction of log loss or Brier score by an out-of-sample calibrator.

    It is `cross_fitted` with the setting `score`. For a proper score S the best recalibration map is the calibration
    function r. The gain of any other map r̂ is therefore a lower bound of the loss from miscalibration:

    .. math:: \tfrac1w \sum_i w_i \big[S(p_i, y_i) - S(\hat r_{-i}(p_i), y_i)\big] \lesssim E[S(p, Y) - S(r(p), Y)]

    For one score the Brier form is the mean of (p − y)² − (r̂ − y)². Shapes: a binary view (n,) or a joint view (n, m).
    Units: nats or squared probability; 0 is best, and a negative value means that the calibrator increased the loss.
    Bias: downward. The expectation for a calibrated model is at most 0, hence the noise floor of 0. For log loss, 1/(n
    + 1) of the uniform distribution is mixed into both sides, so that an exact zero has a finite loss. Cost: `folds`
    fits. Rows are required, and their order determines the folds. Raises TO201 for an unknown calibrator, TO203 for
    other settings. Source: the score form of a cross-fitted error, after Berta et al. (2026).

    Parameters
    ----------
    score : {"log_loss", "brier"}
        The proper score.
    calibrator, folds, fit_on, rng
        As for `cross_fitted`.

    Examples
    --------
    >>> view = View(p=[0.9, 0.9, 0.9, 0.9], y=[0, 0, 0, 0])
    >>> round(ScoreRegret(score="brier", folds=2).value(view), 4)  # .9² − 0: the other folds have no event
    0.81
    """

    name: ClassVar[str] = "cross_fitted"
    recovered_quantity_text: ClassVar[str] = "loss"
    expected_value_text: ClassVar[str] = "at most 0"
    lens: ClassVar[str | None] = "canonical"
    score: Annotated[str, OneOf(SCORES)] = "log_loss"

    def values_by_outcome(self, out_of_fold: OutOfFoldRows, view: View) -> Array:
        """Reduction of the score by the calibrator, for each row and possible outcome."""
        if self.score == "log_loss":
            share = uniform_share(view.n_rows)
            return np.log(mix_with_uniform(out_of_fold.recalibrated, share)) - np.log(
                mix_with_uniform(out_of_fold.P, share)
            )
        return _brier_by_outcome(out_of_fold.P) - _brier_by_outcome(out_of_fold.recalibrated)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The score, calibrator and folds."""
        return {"score": self.score, **super().settings_used(view)}

    def notes(self, view: View) -> list[Note]:
        """The notes of cross-fitting, and the mixture with the uniform distribution."""
        note_list = super().notes(view)
        if self.score == "log_loss":
            text = (
                f"Log losses are computed after mixing {uniform_share(view.n_rows):.2g} of the uniform distribution"
                " into both sides."
            )
            note_list.append(Note("TN139", text))
        return note_list


def _brier_by_outcome(P: Array) -> Array:
    """Σ(p − y)² for every possible outcome, (n, m). For two outcomes it is (p − y)² of the second, half as much."""
    loss = (P * P).sum(axis=1, keepdims=True) - 2 * P + 1
    return loss / 2 if P.shape[1] == 2 else loss
