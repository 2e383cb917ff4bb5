"""Spiegelhalter's z-test of the Brier score, and its generalization `Score` to other scores and to several classes.

Both compare a proper score with its expected value under calibration, in standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import ndtr

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.view import View

SCORES = ("brier", "log_loss")
MAX_SKEWNESS = 1.0  # null skewness at which a normal p-value of 1 % occurs with probability 2 % (simulated)
SCORE_TOLERANCE = 1e-12  # relative tolerance of rounding errors in the scores of a row, and in outcomes of 0 or 1


@dataclass(frozen=True)
class ExcessScore:
    """The weighted sum over rows of a proper score S minus its expected value under calibration, with its null moments.

    The sum is linear in the outcomes, Σ w (y − p) c with the `coefficients` c, so each redraw costs one product.
    """

    coefficients: Array  # (n,) score of the event minus that of the non-event; (n, m) score minus its expectation
    score_range: Array  # (n,) range between the best and the worst score of a row
    std: float  # standard deviation of the weighted sum
    skewness: float  # skewness of the weighted sum

    @classmethod
    def from_view(cls, view: View, score: str) -> ExcessScore:
        """Compute the coefficients and the null moments of the score "brier" or "log_loss"."""
        return _vector_excess(view, score) if view.joint else _binary_excess(view, score)

    def weighted_sum(self, wp: Array, wy: Array) -> Array:
        """Return the sum, (…), from wp and wy of each row, (…, n) or (…, n, m)."""
        if self.coefficients.ndim == 1:
            return np.asarray((wy - wp) @ self.coefficients)
        return np.asarray(np.tensordot(wy, self.coefficients, axes=2))


def score_z_test(view: View, score: str) -> ViewResult:
    """Return z of the excess score, its two-sided p-value, and a lower bound of the misplaced probability as effect.

    z is infinite if an outcome was observed that the predictions exclude and that makes the log loss infinite, or that
    contradicts predictions without any variance. Without variance and such an outcome z is undefined.
    """
    excess = ExcessScore.from_view(view, score)
    is_impossible, w = impossible_outcomes(view), view.w
    is_infinite = bool(is_impossible.any()) and (score == "log_loss" or excess.std == 0)
    weights = w[:, None] if view.joint else w
    excess_sum = float(excess.weighted_sum(weights * view.p, weights * view.y))
    notes: tuple[Note, ...] = ()
    if is_infinite:
        z = math.inf
    elif excess.std != 0:
        z = excess_sum / excess.std
    else:
        underflowed = bool((w[:, None] * (view.P <= 0) * (view.Y > SCORE_TOLERANCE)).any())
        if not underflowed:
            text = "The score has variance 0 under the predicted probabilities, so z is undefined."
            return ViewResult(float("nan"), float("nan"), float("nan"), notes=(Note("TN214", text),))
        z = math.copysign(math.inf, excess_sum)
        notes = (Note("TN215", "Outcomes were observed whose predicted probability underflows, so z is infinite."),)
    if is_impossible.any():
        suffix = ", and z is infinite" if is_infinite else ""
        text = f"Outcomes with predicted probability 0 were observed, which is impossible under calibration{suffix}."
        notes = (Note("TN215", text),)
    if score == "log_loss" and is_infinite:  # the effect is defined by the rows whose loss can be infinite
        effect = float(w[is_impossible].sum() / w[_rows_with_zero_probability(view)].sum())
    else:
        effect = excess_sum / float(weighted_sum(w, excess.score_range))
    warnings: tuple[str, ...] = ()
    if abs(excess.skewness) > MAX_SKEWNESS:
        warnings = ("A few rows, or rare outcomes, dominate the variance of the score, so z is skewed.",)
    return ViewResult(z, float(2 * ndtr(-abs(z))), effect, notes=notes, asymptotic_warnings=warnings)


def score_cells(view: View, score: str) -> CellFunction:
    """Return |z| as a function of the outcomes; an outcome that the predictions exclude counts as in `score_z_test`."""
    excess = ExcessScore.from_view(view, score)
    checks_impossible = score == "log_loss" or excess.std == 0
    has_zero_probability = _rows_with_zero_probability(view) & checks_impossible
    p, w = view.p[has_zero_probability].astype(np.float64), view.w[has_zero_probability]
    weight = w[:, None] if view.joint else w
    impossible = np.isneginf(view.log_P[has_zero_probability])
    has_fixed_outcome = impossible if view.joint else impossible.any(axis=1)
    # The event is certain if its absence is impossible.
    fixed_outcome = np.zeros_like(p) if view.joint else w * impossible[:, 0]
    tolerance = weight * (SCORE_TOLERANCE + 4 * np.maximum(p - 1, 0.0))  # p may be rounded to slightly more than 1
    min_weight = float(view.w.min(where=view.w > 0, initial=np.inf))

    def absolute_z(_w: Array, wp: Array, wy: Array) -> Array:
        """|z| of each draw, (draws,)."""
        if excess.std > 0:
            z = np.abs(excess.weighted_sum(wp, wy)) / excess.std
        else:
            exceeds_rounding = np.abs(excess.weighted_sum(wp, wy)) > min_weight / 2
            z = np.where(exceeds_rounding, np.inf, np.nan)
        if not checks_impossible:
            return z
        observed = wy[..., has_zero_probability, :] if view.joint else wy[..., has_zero_probability]
        violated = has_fixed_outcome & (np.abs(observed - fixed_outcome) > tolerance)
        return np.where(violated.any(axis=(-2, -1) if view.joint else -1), np.inf, z)

    return CellFunction.from_rows(view, absolute_z)


def impossible_outcomes(view: View) -> Array:
    """Return which rows observed an outcome of predicted probability 0, (n,) bool."""
    is_observed = view.Y > (0 if view.joint else np.array([SCORE_TOLERANCE, 0]))  # the first column is 1 − y, rounded
    return np.asarray((np.isneginf(view.log_P) & is_observed).any(axis=1) & (view.w > 0))


def _rows_with_zero_probability(view: View) -> Array:
    """Return which rows assign probability 0 to an outcome, (n,) bool."""
    return np.asarray(np.isneginf(view.log_P).any(axis=1))


def _binary_excess(view: View, score: str) -> ExcessScore:
    """Coefficients and null moments of a score of one probability per row."""
    p = view.p.astype(np.float64)
    if score == "brier":
        coefficients = 1 - 2 * p
    else:
        logs = np.where(_rows_with_zero_probability(view)[:, None], 0.0, view.log_P)  # the other outcome is certain
        coefficients = logs[:, 0] - logs[:, 1]
    second_moment = coefficients**2 * np.maximum(view.sums("wwv"), 0.0)
    third_moment = coefficients * (1 - 2 * p) * second_moment  # a Bernoulli y has E(y − p)³ = p(1 − p)(1 − 2p)
    std, skewness = _std_and_skewness(view, second_moment, third_moment)
    return ExcessScore(coefficients, score_range=np.abs(coefficients), std=std, skewness=skewness)


def _vector_excess(view: View, score: str) -> ExcessScore:
    """Coefficients and null moments of a score of probability vectors."""
    p, logs = np.maximum(view.p, 0.0, dtype=np.float64), view.log_P
    possible = ~np.isneginf(logs)
    scores = -2 * p if score == "brier" else -np.where(possible, logs, 0.0)
    normalized_p = p / p.sum(axis=1, keepdims=True)
    coefficients = scores - (normalized_p * scores).sum(axis=1, keepdims=True)
    coefficients[np.abs(coefficients) <= SCORE_TOLERANCE * np.abs(scores).max(axis=1, keepdims=True)] = 0.0
    if score == "log_loss":
        coefficients[~possible] = 0.0
        min_score = np.where(possible, scores, np.inf).min(axis=1)
        score_range = scores.max(axis=1) - min_score  # scores of outcomes of probability 0 were set to 0, the minimum
    else:
        score_range = scores.max(axis=1) - scores.min(axis=1)
    ww = view.sums("ww")
    second_moment = ww * (normalized_p * coefficients**2).sum(axis=1)
    third_moment = ww * (normalized_p * coefficients**3).sum(axis=1)
    std, skewness = _std_and_skewness(view, second_moment, third_moment)
    return ExcessScore(coefficients, score_range, std, skewness)


def _std_and_skewness(view: View, second_moment: Array, third_moment: Array) -> tuple[float, float]:
    """Standard deviation and skewness of the weighted sum.

    The arguments (n,) are w² times the second and the third central moment of the score of each row, or their sums over
    the rows of a cell. The third moment needs another factor w, which is Σw² / Σw in a cell of rows of equal weight.
    """
    std = float(np.sqrt(second_moment.sum()))
    if std == 0:
        return 0.0, 0.0
    w = np.divide(view.sums("ww"), view.w, out=np.zeros(len(view)), where=view.w > 0)
    return std, float((w * third_moment).sum() / std / std / std)  # the third power could underflow


@dataclass(frozen=True, kw_only=True)
class Spiegelhalter(ViewTest):
    r"""Spiegelhalter's z-test of the Brier score against its expected value under calibration.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Raises
    ------
    InputError
        TO205 for a lens with a probability vector per row. Use the test `score` for those.

    Notes
    -----
    .. math:: z = \frac{\sum_i w_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i w_i^2 (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is the Brier score minus its expected value under calibration, in standard errors. The p-value is two-sided and
    normal. The test detects predictions that are too extreme (z > 0) or not extreme enough (z < 0). It has no power
    against errors that cancel in this direction, such as a shift of probabilities around ½.

    Statistic: z, unbounded. Effect: the weighted mean of y − p toward ½ with weights |1 − 2p|, in probability units
    within [−1, 1], positive for overconfidence. If every p is 0, ½ or 1, z is undefined (NaN, note TN214). It is
    infinite if an outcome with predicted probability 0 was observed (note TN215). The normal distribution fails if few
    rows or rare outcomes dominate the variance; a note reports a skewness above 1 under the null.

    Shapes: binary views. Weights are importance weights. From a tally p is the mean of its cell.
    Cost: O(n); with redraws O(n) per draw.

    References
    ----------
    .. [1] Spiegelhalter (1986).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.test([1, 0, 1, 0], [0.9, 0.9, 0.8, 0.1], "spiegelhalter").statistic, 4)
    0.9167
    """

    name: ClassVar[str] = "spiegelhalter"
    asymptotic_null: ClassVar[str] = "z is standard normal"
    exemptions: ClassVar[dict[str, str]] = {"weight two": "importance weights: the variance grows with their squares"}

    def evaluate(self, view: View) -> ViewResult:
        """z, its two-sided p-value, and the mean residual toward ½."""
        return score_z_test(view, "brier")

    def cell_statistic(self, view: View) -> CellFunction:
        return score_cells(view, "brier")


@dataclass(frozen=True, kw_only=True)
class Score(ViewTest):
    r"""Z-test of a proper score against its expected value under calibration, for any number of classes.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    statistic : {"brier", "log_loss"}, default="brier"
        Proper score.

    Raises
    ------
    InputError
        TO203 for an unknown statistic.

    Notes
    -----
    .. math:: z = \frac{\sum_i w_i (S(p_i, y_i) - \mathrm{E}_i S)}{\sqrt{\sum_i w_i^2 \mathrm{Var}_i S}}, \qquad
              \mathrm{E}_i S = \sum_k p_{ik} S(p_i, k)

    where S is the Brier score :math:`\sum_k (p_k - 1\{y = k\})^2` or the log loss :math:`-\log p_y`, with mean and
    variance under the predicted probabilities. The p-value is two-sided and normal. Through a binary lens the Brier
    form is Spiegelhalter's z. The test detects predictions that are too extreme (z > 0) or not extreme enough (z < 0),
    but no errors that cancel in this direction. The log loss form is the score test of temperature 1.

    Statistic: z, unbounded. Effect: the excess score over the range between the best and the worst score of each row,

    .. math:: \frac{\sum_i w_i (S(p_i, y_i) - \mathrm{E}_i S)}{\sum_i w_i (\max_k S(p_i, k) - \min_k S(p_i, k))}

    in probability units within [−1, 1]. It is a lower bound of the misplaced probability: the total variation between
    the predicted and the true distribution, averaged with the ranges as weights. For one score it is the mean of y − p
    toward ½, weighted by |1 − 2p| in the Brier form. Outcomes of probability 0 are left out of the range of the log
    loss. Tiny probabilities make the range large and the bound weak.

    If an outcome with predicted probability 0 was observed, the log loss and z are infinite, p is 0 (note TN215), and
    the effect is the share of such rows among those that assign probability 0 to an outcome. Undefined (NaN, note
    TN214) if no score can vary. The normal distribution fails if few rows or rare outcomes dominate the variance,
    especially for the log loss; a note reports a skewness above 1 under the null.

    Shapes: binary and joint views. The Brier form works on the cells of a tally; the log loss requires rows.
    Cost: O(nK); with redraws O(nK) per draw.

    References
    ----------
    .. [1] Spiegelhalter (1986). Generalized here to any proper score and number of classes.

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1], [[0.7, 0.2, 0.1]], "score")  # expected score .46, observed 1.14
    >>> round(verdict.effect, 4), round(verdict.statistic, 4)  # .68 / (2 · .6); .68 / √.2416
    (0.5667, 1.3834)
    """

    name: ClassVar[str] = "score"
    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "z is standard normal"
    exemptions: ClassVar[dict[str, str]] = {"weight two": "importance weights: the variance grows with their squares"}
    statistic: Annotated[str, OneOf(tuple(SCORES))] = "brier"

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        """Whether rows are required: the log loss is nonlinear within a cell, which stores its mean prediction only."""
        return self.statistic == "log_loss"

    def evaluate(self, view: View) -> ViewResult:
        """z, its two-sided p-value, and a lower bound of the misplaced probability."""
        return replace(score_z_test(view, self.statistic), settings_used={"statistic": self.statistic})

    def cell_statistic(self, view: View) -> CellFunction:
        return score_cells(view, self.statistic)
