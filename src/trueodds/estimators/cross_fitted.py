"""Cross-fitted calibration error and score regret, from a calibrator that was fitted on other rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators.uniform_mixture import mix_with_uniform, uniform_share
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import dataclass_settings
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators.out_of_sample import OutOfFoldRows, OutOfSampleGain
from trueodds.lenses.view import View

ROUNDING_TOLERANCE = 1e-9  # a smaller difference to the predicted probability is rounding error
NORM_POWERS = {"tv": 1.0, "l1": 1.0, "l2": 2.0, "max": math.inf}  # power of the norm by its name
SCORES = ("log_loss", "brier")


@dataclass(frozen=True)
class CrossFitted(OutOfSampleGain):
    r"""Cross-fitted calibration error: the part that an out-of-sample calibrator recovers, unbiased at calibration.

    ECE takes absolute gaps, so noise always counts as error. Here a calibrator fitted on other rows determines only the
    *direction* of the error of each row. The outcome of the row determines its size.

    Parameters
    ----------
    calibrator : str or CalibratorSpec, optional
        A name of `trueodds list calibrators`. The default is "isotonic" for one score and "temperature" for vectors.
    folds : int, default=5
        Number of random parts of the rows.
    fit_on : {"earlier", "others"}, default="earlier"
        Each part is evaluated by a fit on the parts before it (the first part is not evaluated) or on all other parts.
    rng : int, default=0
        Seed of the random parts.
    distance : {"tv", "l1", "l2", "max"} or "lp:3" and the like, default="tv"
        Norm of the error. s has the dual norm.

    Raises
    ------
    InputError
        TO201 if the calibrator is unknown. TO203 if another setting is invalid. TO205 if the view holds cells of many
        rows.

    See Also
    --------
    ScoreRegret : Loss of a proper score, selected by ``score="log_loss"`` or ``score="brier"`` instead of a distance.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \langle s_i, y_i - p_i \rangle, \quad
        s_i = \arg\max_{\|s\|_* \le 1} \langle s, \hat r_{-i}(p_i) - p_i \rangle

    For one score this is the mean of sign(r̂(p) − p)(y − p). The supremum over all s is the full error E‖r(p) − p‖. A
    calibrator with wrong directions recovers less, so the expectation is a lower bound of it. (The mean distance |r̂(p)
    − p| is as biased as ECE.) For one score `parts` holds `over`, the part from r̂ < p, where the model overpredicts,
    and `under`, the part from r̂ > p. They add up to the value. Shapes: a binary view (n,) or a joint view (n, m).

    Units: probability, in [-1, 1] for "tv"; 0 is best. A negative value means that nothing was recovered.

    Bias: none at calibration, else downward. The interval holds the fits fixed (BCa over rows) and covers what this
    calibrator recovers. In simulations it covered 92 to 97 % at 95 % with the default `fit_on`. The noise floor is
    exactly 0 without draws, because an outcome is independent of the fit that evaluates it, given the predictions. This
    requires independent rows: rows of one origin in two folds increase the value.

    Cost: `folds` fits. Rows are required. Their order determines the folds, so tallies are not supported.

    The estimator is the dual form of a cross-fitted error, with over- and underconfidence after [1]_.

    References
    ----------
    .. [1] Berta et al. (2026).

    Examples
    --------
    >>> import trueodds as to
    >>> error = to.measure([0] * 4, [0.9] * 4, "cross_fitted", folds=2, interval=None)
    >>> round(error.value, 4)  # no event: each fold is evaluated with an expectation below .9
    0.9
    """

    name: ClassVar[str] = "cross_fitted"
    distance: str = "tv"

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return (*dataclass_settings(cls), "score")

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> CrossFitted | ScoreRegret:
        if settings.get("score") is None:
            settings.pop("score", None)
            return cls(**settings)
        if "distance" in settings:
            raise InputError(
                "TO203",
                "score and distance exclude each other.",
                f"⟨distance={describe(settings['distance'])}⟩",
                "Pass only one of them.",
            )
        return ScoreRegret(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        _norm_power(self.distance)

    def values_by_outcome(self, out_of_fold: OutOfFoldRows, view: View) -> Array:
        """⟨s, y − p⟩ of each row for every possible outcome y."""
        s = self._direction(out_of_fold.P, out_of_fold.recalibrated)
        return s - (s * out_of_fold.P).sum(axis=1, keepdims=True)

    def parts(self, view: View) -> dict[str, float]:
        """Over- and underconfidence, for one score."""
        if view.joint:
            return {}
        out_of_fold = self.out_of_fold(view)
        row_contributions = out_of_fold.scale * view.w[out_of_fold.row] * self.row_gains(out_of_fold, view) / view.total
        predicted, recalibrated = out_of_fold.P[:, 1], out_of_fold.recalibrated[:, 1]
        return {
            "over": float(row_contributions[recalibrated < predicted].sum()),
            "under": float(row_contributions[recalibrated > predicted].sum()),
        }

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"distance": self.distance, **super().settings_used(view)}

    def _direction(self, P: Array, recalibrated: Array) -> Array:
        """Return the direction s (j, m) of each row: of dual norm 1, with the largest product with recalibrated − P.

        It is 0 where the recalibrated probabilities (j, m) equal the predicted ones, P (j, m).
        """
        difference = np.where(np.abs(recalibrated - P) > ROUNDING_TOLERANCE, recalibrated - P, 0.0)
        power = _norm_power(self.distance)
        if power == 1:
            return np.sign(difference) / (2 if self.distance == "tv" else 1)
        largest = np.abs(difference).max(axis=1, keepdims=True)
        # Scaled by the largest difference, so that no power underflows.
        scaled = np.divide(difference, largest, out=np.zeros_like(difference), where=largest > 0)
        if math.isinf(power):
            is_largest = (np.abs(scaled) >= 1 - ROUNDING_TOLERANCE) & (largest > 0)
            return np.sign(difference) * is_largest / np.maximum(is_largest.sum(axis=1, keepdims=True), 1)
        direction = np.sign(scaled) * np.abs(scaled) ** (power - 1)
        dual_power = power / (power - 1)
        dual_norm = (np.abs(direction) ** dual_power).sum(axis=1, keepdims=True) ** (1 / dual_power)
        return np.divide(direction, dual_norm, out=np.zeros_like(direction), where=dual_norm > 0)


def _norm_power(distance: Any) -> float:
    """Return the power of the norm with this name; raise TO203 for another name."""
    if distance in NORM_POWERS:
        return NORM_POWERS[distance]
    if isinstance(distance, str) and distance.startswith("lp:"):
        try:
            power = float(distance.removeprefix("lp:"))
        except ValueError:
            power = 0.0
        if power >= 1:
            return power
    raise InputError(
        "TO203",
        "distance must be the name of a norm.",
        describe(distance),
        "distance is 'tv', 'l1', 'l2', 'max' or 'lp:3' with a power of at least 1.",
    )


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
        if self.score == "log_loss":
            share = uniform_share(view.n_rows)
            return np.log(mix_with_uniform(out_of_fold.recalibrated, share)) - np.log(
                mix_with_uniform(out_of_fold.P, share)
            )
        return _brier_by_outcome(out_of_fold.P) - _brier_by_outcome(out_of_fold.recalibrated)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"score": self.score, **super().settings_used(view)}

    def notes(self, view: View) -> list[Note]:
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
