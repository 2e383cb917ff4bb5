"""Spline calibration: a penalized spline of the log odds, or Gupta et al.'s spline of the confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal

import numpy as np
from scipy.special import expit

from trueodds.binning.sorted_scores import SortedScores, group_starts, weighted_std
from trueodds.calibrators._curves.natural_spline import (
    NaturalSpline,
    OutcomeCounts,
    fit_shift,
    fit_spline,
    place_knots,
)
from trueodds.calibrators._curves.one_vs_rest import (
    KNOT_RANGE,
    LOGIT,
    MAX_DECREASE,
    PROBABILITY,
    SCORE_RANGE,
    IterativeOneVsRest,
    decrease_note,
    effective_rows,
    fit_curves_of_logs,
    score_scale,
    sums_by_log_odds,
    total_decrease,
)
from trueodds.calibrators._glm.fit_data import rows_with_weight
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    binary_logs,
    probability_pair,
    raise_to_min_prob,
    replacement_notes,
    to_probabilities,
)
from trueodds.calibrators._glm.logistic_regression import fit_logistic, intercept_and_score
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.saved_parameters import MISSING_IN_OLD_FILES, NOT_SAVED, Key, Numbers, PassCount, Saved
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf, Positive, Range
from trueodds.core.typing import Array

_DEFAULT_KNOTS = {"natural": 12, "gupta": 6}  # number of knots by kind
_N_CURVE_POINTS = 1001  # evaluations of a curve between its first and its last knot, to find where it decreases


class LogOddsSpline(Saved):
    """A natural cubic spline from log odds to recalibrated log odds.

    Both the fit and the curve raise probabilities to at least `min_prob`: beyond the scores of the fit the linear
    extrapolation is unreliable, and the log odds of an exact zero are infinite.
    """

    takes_logs = True
    knots: Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], ("m+1",), "strictly"), Key("x")]  # log odds
    values: Annotated[Array, Numbers(-1e9, 1e9, ("m+1",)), Key("f")]  # recalibrated log odds
    degrees_of_freedom: Annotated[float, Range(0, 1e6), Key("freedom")] = 2.0  # effective ones; a line has 2
    converged: Annotated[bool, Key("settled")] = True  # whether a finite minimum was found
    n_passes: PassCount = 0  # over the scores or groups of them
    # Smallest probability inside a logarithm; 0 for none.
    min_prob: Annotated[float, Range(0, 0.5, closed="left"), MISSING_IN_OLD_FILES] = 0.0
    penalty: Annotated[float, NOT_SAVED] = np.inf  # λ of the fit; infinite for a line

    @cached_property
    def spline(self) -> NaturalSpline:
        return NaturalSpline(self.knots, self.values)

    def __call__(self, x: Array) -> Array:
        return self.apply_to_logs(binary_logs(x))[:, 1]

    def apply_to_logs(self, logs: Array) -> Array:
        if self.min_prob > 0:
            logs = raise_to_min_prob(logs, self.min_prob)
        return probability_pair(self.spline(logs[:, 1] - logs[:, 0]))

    def total_decrease(self) -> float:
        """Sum of all decreases of the probability between the first and the last knot."""
        low, high = self.knots[[0, -1]]
        probabilities = expit(self.spline(low + (high - low) * np.arange(_N_CURVE_POINTS) / (_N_CURVE_POINTS - 1)))
        return float(np.maximum(-np.diff(probabilities), 0.0).sum())


def fit_log_odds_spline(
    logs: Array, y: Array, w: Array, n_knots: int, penalty: float | None, min_prob: float, *, standardized: bool = False
) -> LogOddsSpline:
    """Fit the curve of one class to log(1 − p) and log p (n, 2), outcome shares y (n,) and weights w (n,).

    `penalty` None selects the penalty automatically. If the scores separate the outcomes, the curve is a line fitted to
    smoothed targets. With `standardized`, the log odds are divided by their standard deviation for the fit, so that
    neither convergence nor the grid of penalties depends on their unit.
    """
    x, mass, events = sums_by_log_odds(logs[:, 1] - logs[:, 0], y, effective_rows(w)[1])
    unit = float(weighted_std(x, mass)) if standardized else 1.0
    if unit not in (0.0, 1.0):
        # The roughness of f(x) is that of f as a function of x/unit, divided by unit³.
        curve = fit_log_odds_spline(
            np.stack([np.zeros_like(x), x / unit], axis=1), events / mass, mass, n_knots,
            None if penalty is None else penalty / unit**3, min_prob,
        )  # fmt: skip
        return replace(curve, knots=curve.knots * unit, penalty=curve.penalty * unit**3)
    data = OutcomeCounts(x, events, np.maximum(mass - events, 0.0)).pool_scores(len(x))
    if data.separated:
        smoothed_fit = fit_logistic(
            intercept_and_score(data.x), data.events / data.mass, data.mass, np.array([0.0, 1.0]), smooth=True
        )
        ends = np.array([data.x[0], max(data.x[-1], data.x[0] + 1.0)])
        return LogOddsSpline(
            ends,
            intercept_and_score(ends) @ smoothed_fit.theta,
            degrees_of_freedom=2.0,
            converged=False,
            n_passes=smoothed_fit.n_passes,
            min_prob=min_prob,
        )
    fit = fit_spline(data, place_knots(data, n_knots), penalty) if len(data.x) > 1 else fit_shift(data)
    return LogOddsSpline(
        fit.curve.knots, fit.curve.values, fit.degrees_of_freedom, fit.converged, fit.n_passes, min_prob, fit.penalty
    )


class SplineMap(IterativeOneVsRest):
    """A spline in the log odds of the second of two classes, or of every class."""

    curves: tuple[LogOddsSpline, ...]

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Passes of all curves, over single scores or groups of them."""
        return sum(curve.n_passes for curve in self.curves)

    def describe(self) -> str:
        """The effective degrees of freedom; a straight line has 2."""
        degrees_of_freedom = [curve.degrees_of_freedom for curve in self.curves]
        if len(degrees_of_freedom) == 1:
            return f"{degrees_of_freedom[0]:.1f} degrees of freedom"
        low, high = min(degrees_of_freedom), max(degrees_of_freedom)
        return f"{len(degrees_of_freedom)} curves of {low:.1f} to {high:.1f} degrees of freedom"

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int = 2) -> Any:
        """Read the curves, or the map of the confidence if the file has scores."""
        if "scores" in parameters:
            return ConfidenceMap.from_dict(parameters, k)
        return super().from_dict(parameters, k)


class SplineSpec(CalibratorSpec):
    r"""Spline calibration: a smooth curve of the log odds with a roughness penalty.

    The identity and LLO are special cases, and a large penalty gives LLO. Two classes have one curve, for the second
    class. With more classes each has a curve against the rest, and rows are divided by their sums. Predicted classes
    may change.

    Parameters
    ----------
    kind : {"natural", "gupta"}, default="natural"
        A natural cubic spline of the log odds, or the spline of the confidence by Gupta et al.
    knots : int, optional
        Number of knots, 3 to 100. By default 12 for `"natural"` and 6 for `"gupta"`.
    penalty : float or {"auto"}, default="auto"
        Roughness penalty λ of `"natural"`. `"auto"` minimizes minus the log-likelihood plus 1.4 times the degrees of
        freedom (AIC would count them once) on a fixed grid, so that row order does not matter. Where logits are known
        (`Predictions.from_logits`), the grid is that for log odds divided by their standard deviation.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm, in the fit and in the map: an exact zero is treated as in the fit and
        not extrapolated. Where log-probabilities are known (`Predictions.from_logits`), the default applies to exact
        zeros only.

    Notes
    -----
    .. math:: q = \sigma(f(\mathrm{logit}\,p)), \quad
        \min_f \sum_i w_i\,[\log(1 + e^{f(x_i)}) - y_i f(x_i)] + \lambda \int f''(x)^2\,dx

    With `kind="natural"`, f is a natural cubic spline with knots at equally spaced quantiles of x = logit p, and linear
    beyond them. Straight lines have no penalty. The curve may decrease, which a note reports. Weights that are not
    counts are scaled to sum to the number of rows. Where the scores separate the outcomes no curve is optimal, and a
    line with Platt's smoothed targets is used. Fitted to n rows it loses about its degrees of freedom / 2n nats per new
    row to the best curve; with fewer than some hundred rows it is mostly a line.

    With `kind="gupta"` only the confidence is recalibrated. Rows are sorted by confidence s. A natural cubic spline h
    with equally spaced knots is fitted by least squares to the cumulative sums of (correct − s)/n over the rank t from
    0 to 1. The confidence becomes s + h'(t), linear between neighboring scores and limited to [0, 1]. The other classes
    share the rest in proportion, and the confidence is raised where the predicted class would change. Equal scores are
    pooled.

    Cost: O(K n log n), about 5 passes over the scores and up to 80 over 1,024 groups of them.

    References
    ----------
    .. [1] Lucena (2018).
    .. [2] Green & Silverman (1994), for the roughness penalty.
    .. [3] Kim & Gu (2004), for the factor 1.4.
    .. [4] Gupta et al. (2021).

    Examples
    --------
    >>> p = np.arange(1, 100) / 100
    >>> m = SplineSpec().fit(np.stack([1 - p, p], axis=1), np.stack([1 - p**2, p**2], axis=1), np.full(99, 100.0))
    >>> m.apply(np.array([[0.5, 0.5]])).round(2).tolist()
    [[0.75, 0.25]]
    """

    name, map_type = "spline", SplineMap
    takes_logs = True
    kind: Annotated[str, OneOf(tuple(_DEFAULT_KNOTS))] = "natural"
    knots: Annotated[int, Range(3, 100)] | None = None
    penalty: Positive | Literal["auto"] = "auto"
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "gupta" and self.penalty != "auto":
            raise InputError("TO203", "kind='gupta' has no penalty.", repr(self.penalty), "Leave it out.")

    def settings(self) -> dict[str, Any]:
        """The settings, with the default number of knots of the kind."""
        return {**super().settings(), "knots": self._n_knots}

    @property
    def _n_knots(self) -> int:
        return int(self.knots or _DEFAULT_KNOTS[self.kind])

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CalibrationMap:
        if self.kind == "gupta":
            return fit_confidence_map(to_probabilities(P), Y, w, self._n_knots)
        penalty = None if isinstance(self.penalty, str) else float(self.penalty)
        fit_curve = partial(
            fit_log_odds_spline, n_knots=self._n_knots, penalty=penalty, min_prob=self.min_prob,
            standardized=score_scale(P) == LOGIT,
        )  # fmt: skip
        return SplineMap(fit_curves_of_logs(fit_curve, P, Y, w, self.min_prob))

    def notes(self, calibration_map: SplineMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        if isinstance(calibration_map, ConfidenceMap):
            return _clipping_notes(calibration_map, to_probabilities(P))
        fit_notes = replacement_notes(P, Y, self.min_prob)
        n_separated = sum(not curve.converged for curve in calibration_map.curves)
        if n_separated:
            which_curves = f" of {n_separated:,} classes" if len(calibration_map.curves) > 1 else ""
            text = (
                f"The scores{which_curves} separate events from non-events, or all outcomes are the same: no finite"
                " curve is optimal. A line in the log odds with smoothed targets was fitted, which add one outcome of"
                " either kind."
            )
            fit_notes.append(Note("TN528", text))
        return [*fit_notes, *_decrease_notes(calibration_map, P)]


def _decrease_notes(calibration_map: SplineMap, P: Probabilities) -> list[Note]:
    """Note TN529 on the curve with the largest decrease, which states its penalty, or none."""
    if len(calibration_map.curves) == 1:
        (curve,), decrease, which = calibration_map.curves, total_decrease(calibration_map, P), "curve"
    else:
        curve, which = max(calibration_map.curves, key=lambda curve: curve.total_decrease()), "curve of a class"
        decrease = curve.total_decrease()
    if decrease <= MAX_DECREASE:
        return []
    penalty = f", with the penalty λ = {format_number(curve.penalty)}"
    hint = "; a larger one may increase the decrease, until the curve is nearly a line"
    return [decrease_note(decrease, which, penalty + hint)]


def _clipping_notes(calibration_map: ConfidenceMap, P: Array) -> list[Note]:
    """Note TN531 on clipped values and raised confidences, or none."""
    n_raised = calibration_map.count_raised(P)
    if not calibration_map.n_clipped and not n_raised:
        return []
    text = (
        f"The spline was clipped to [0, 1] at {calibration_map.n_clipped:,} scores; in {n_raised:,} of {len(P):,} rows"
        " the confidence was raised to keep the predicted class."
    )
    return [Note("TN531", text)]


MAX_SCORES = 4096  # largest number of points of its curve that a map keeps
_SCORES_PER_BLOCK = 1 << 14  # so that temporaries stay in cache
MIN_RELATIVE_EIGENVALUE = 1e-12  # of least squares: directions below it, relative to the largest, are not identifiable
TIE_MARGIN = 8  # times the machine epsilon: relative margin by which a confidence stays above the runner-up


class ConfidenceMap(CalibrationMap):
    """A recalibrated confidence in the predicted class; the other classes are scaled in proportion."""

    name = "spline"
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
        Q, _, x = self._split_predicted_class(P)
        return int((self.confidence(x) < self._min_confidence(Q, Q.sum(axis=1))).sum())

    def describe(self) -> str:
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
        return share / (1 + share) * (1 + TIE_MARGIN * np.finfo(np.float64).eps)


def fit_confidence_map(P: Array, Y: Array, w: Array, n_knots: int) -> ConfidenceMap:
    """Fit the calibration map of the confidence to P, Y (n, K) and w (n,).

    A spline is fitted by least squares to the cumulative sums of observed minus predicted, by increasing confidence.
    Its derivative corrects the confidence. Source: Gupta et al. (2021).
    """
    P, Y, w = rows_with_weight(P, Y, w)
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
    return NaturalSpline(knots, np.linalg.pinv(gram, rcond=MIN_RELATIVE_EIGENVALUE, hermitian=True) @ projections)
