"""Calibration slope and calibration intercept: coefficients of a logistic regression on the predicted log odds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.formatting import with_minus_signs
from trueodds.core.results import Coefficient
from trueodds.core.typing import Array
from trueodds.estimators._glm.calibration_exponent import (
    calibration_exponent,
    contradicted_rows,
    exponent_draws,
    exponent_influence,
)
from trueodds.estimators._glm.calibration_regression import CalibrationRegression
from trueodds.estimators._glm.logits import Logits, MinProb, clipping_notes
from trueodds.estimators.base import MIN_GROUP_EXPECTED, CellStatistic, WaldEstimator, require_one_score
from trueodds.lenses.view import View

MIN_GROUP_EVENTS = 10  # events, and non-events, of a group whose slope is compared with that of others
MAX_GROUP_SHIFT = 30.0  # of the log odds of a group from those of all groups, within which its intercept is sought
CLIPPING_LIMITS = (1e-6, 1e-3)  # two settings of min_prob, to show how much a coefficient depends on it


class _Fit(NamedTuple):
    """The coefficient of independent rows, and the notes on the fit."""

    coefficient: Coefficient
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class _CalibrationCoefficient(WaldEstimator):
    """Base class of the coefficients of Cox's regression of a binary view."""

    is_averageable: ClassVar[bool] = False  # values above and below the best value would cancel
    is_unbiased: ClassVar[bool] = True
    has_fixed_expectation: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = {"cells": "a cell has one log odds, that of its mean prediction"}
    coefficient_name: ClassVar[str]  # in the regression
    description: ClassVar[str]  # what notes call it

    min_prob: MinProb = 0.0

    @property
    def is_in_probability_units(self) -> bool:
        """False: a coefficient refers to log odds."""
        return False

    def value(self, view: View) -> float:
        return self._fit(view).coefficient.value

    def coefficient(self, view: View, cluster: Array | None = None) -> Coefficient:
        """The estimate with its standard error, that of the test `cox`."""
        if cluster is None:
            return self._fit(view).coefficient
        regression = self._regression(view)
        if regression is None:
            return Coefficient(math.nan, math.nan, math.nan)
        return regression.coefficient(self.coefficient_name, cluster)

    def influence(self, view: View) -> Array:
        regression = self._regression(view)
        assert regression is not None
        return regression.influence(self.coefficient_name)

    def cell_statistic(self, view: View) -> RowCoefficients:
        """The coefficient as a function of the weights and outcomes of all rows."""
        return RowCoefficients(self, view)

    def draws(self, view: View, w: Array, wy: Array) -> Array:
        """Coefficients (draws,) for weights w (n,) or (draws, n) and weighted outcomes wy (draws, n, …)."""
        regression = self._regression(view)
        if regression is None:
            return np.full(len(wy), np.nan)
        return regression.draws(self.coefficient_name, w, wy)

    def expected_if_calibrated(self, view: View) -> float:
        """The coefficient of a calibrated model."""
        return self.best_value

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"min_prob": self.min_prob} if self.min_prob else {}

    def notes(self, view: View) -> list[Note]:
        return list(self._fit(view).notes)

    def _fit(self, view: View) -> _Fit:
        """The fit of independent rows, which is computed once for a view."""
        return view.cached((self.name, self.min_prob), lambda: self._fit_view(view))

    def _fit_view(self, view: View) -> _Fit:
        regression = self._regression(view)
        if regression is None:
            return _Fit(Coefficient(math.nan, math.nan), (self._note_on_certain_rows(view),))
        notes = (*regression.logits.notes(view, self.min_prob), *self._notes_on_fit(regression))
        return _Fit(regression.coefficient(self.coefficient_name), notes)

    def _regression(self, view: View) -> CalibrationRegression | None:
        """The regression of a binary view; None if a row has infinite log odds."""
        require_one_score(view, self.name)
        if not self.min_prob and Logits.certain_rows(view).any():
            return None
        return CalibrationRegression.from_view(view, self.min_prob, self.name)

    def _notes_on_fit(self, regression: CalibrationRegression) -> tuple[Note, ...]:
        """Why the coefficient is undefined; empty if it is finite."""
        if np.isfinite(regression.value(self.coefficient_name)):
            return ()
        if self.coefficient_name == "slope" and regression.powers.degree == 0:
            return (Note("TN218", f"All predictions are equal, so the {self.description} is undefined."),)
        reason = "the predictions separate the outcomes, or all outcomes are equal"
        return (
            no_maximum_note(reason if self.coefficient_name == "slope" else "all outcomes are equal", self.description),
        )

    def _note_on_certain_rows(self, view: View) -> Note:
        """Note on probabilities of exactly 0 or 1, with the coefficient for clipped ones."""
        n_certain = int(view.n[Logits.certain_rows(view)].sum())
        values = describe_clipped(view, (self.coefficient_name,))
        return Note(
            "TN268",
            certain_probabilities_text(n_certain, view.n_rows, f"{self.description} is")
            + f" Clipped at {CLIPPING_LIMITS[0]:g}, it is {values[0]}; clipped at {CLIPPING_LIMITS[1]:g}, {values[1]}."
            + " Pass ⟨min_prob=⟩ for an interval.",
        )


def certain_probabilities_text(n_certain: int, n: int, subject: str) -> str:
    """Return that probabilities of 0 or 1 make coefficients undefined; `subject` is "calibration slope is", say."""
    is_are, has_have = ("is", "has") if n_certain == 1 else ("are", "have")
    return (
        f"{n_certain:,} of {n:,} probabilities {is_are} exactly 0 or 1 and {has_have} no finite log odds, so the"
        f" {subject} undefined."
    )


def describe_clipped(view: View, names: Sequence[str]) -> list[str]:
    """Return coefficients as text, with probabilities clipped at each of CLIPPING_LIMITS."""
    texts = []
    for min_prob in CLIPPING_LIMITS:
        regression = CalibrationRegression.from_view(view, min_prob)
        values = (with_minus_signs(f"{regression.value(name):.2f}").replace("nan", "undefined") for name in names)
        texts.append(" and ".join(values))
    return texts


def no_maximum_note(reason: str, subject: str) -> Note:
    """Return the note on a coefficient without a finite maximum likelihood estimate."""
    return Note("TN217", f"No finite maximum likelihood estimate exists, because {reason}: the {subject} is undefined.")


@dataclass(frozen=True)
class CalibrationIntercept(_CalibrationCoefficient):
    r"""Calibration intercept: the shift of the log odds that fits best, with the slope fixed at 1.

    Above 0 the model underpredicts on average, below 0 it overpredicts. It is also called calibration-in-the-large on
    the logit scale, and is the part `in_the_large` of the test `cox`. `calibration_in_the_large` is another number: the
    mean gap between outcomes and predictions, in probability.

    Parameters
    ----------
    min_prob : float, default=0.0
        Lower limit of the probabilities; 1 − min_prob is the upper limit. A note counts the clipped rows. 0 clips
        nothing.

    Raises
    ------
    InputError : as in `require_one_score`

    See Also
    --------
    calibration_slope : The slope of the log odds.
    calibration_in_the_large : Mean observed outcome minus mean predicted probability.

    Notes
    -----
    The intercept a of the model

    .. math:: \mathrm{logit}\,P(y = 1) = a + \mathrm{logit}\,p

    maximizes the weighted likelihood. It is not the intercept that is estimated together with a slope, which the test
    `cox` calls `intercept`. Shapes: a binary view (n,). Several views are not averaged, because intercepts of several
    classes cancel.

    Units: log odds, in (−∞, ∞); 0 is best. It is undefined (NaN) if all outcomes are equal (note TN217), or if a
    probability is exactly 0 or 1, which has no finite log odds (note TN268, unless `min_prob` is given).

    Bias: none to first order, so the expected value of a calibrated model is 0. The interval is the one that `cox`
    prints: normal with the sandwich standard error of the residuals; with clusters, and with shares of votes, Student's
    t with the jackknife standard error over clusters or rows.

    Cost: O(n) per Newton step, about 5 steps. From a tally, p is the mean of its cell.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Van Calster et al. (2016).

    Examples
    --------
    Two events of four, where odds of 1 : 3 predict one: the odds are three times as large, and log 3 = 1.0986.

    >>> import trueodds as to
    >>> round(to.measure([0, 1, 0, 1], [0.25] * 4, "calibration_intercept").value, 4)
    1.0986
    """

    name: ClassVar[str] = "calibration_intercept"
    coefficient_name: ClassVar[str] = "in_the_large"
    description: ClassVar[str] = "calibration intercept"

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        r"""The intercept by Firth's equation, which adds half an event, with its error at the overall intercept.

        With q the predictions at the intercept a, and v = q(1 − q), the equation is

        .. math:: \sum w (y - q) + \frac{\bar w}{2} \frac{\sum w v (1 - 2q)}{\sum w v} = 0

        It has a solution without events too. NaN if fewer than two events, or non-events, are expected at the overall
        intercept.

        References
        ----------
        .. [1] Firth (1993). Bias reduction of maximum likelihood estimates.
        """
        regression = self._regression(view)
        if regression is None or not math.isfinite(overall):
            return Coefficient(math.nan, math.nan)
        x, w = regression.logits.x, regression.logits.w
        observed, one_row = float(weighted_sum(w, view.y)), view.total / view.n_rows
        q = expit(x + overall)
        expected, information = float(weighted_sum(w, q)), float(weighted_sum(w, q * (1 - q)))
        if min(expected, view.total - expected) < MIN_GROUP_EXPECTED * one_row:
            return Coefficient(math.nan, math.nan)

        def equation(a: float) -> float:
            q = expit(x + a)
            v = w * q * expit(-x - a)
            return (
                observed - float(weighted_sum(w, q)) + one_row / 2 * float(weighted_sum(v, 1 - 2 * q)) / float(v.sum())
            )

        value = brentq(equation, overall - MAX_GROUP_SHIFT, overall + MAX_GROUP_SHIFT)
        error = math.sqrt(float(weighted_sum(regression.logits.ww, q * (1 - q)))) / information
        own = self.coefficient(view, cluster)
        if own.effective_units is not None and not math.isnan(own.value):  # of clusters, or votes, from the jackknife
            fitted = regression.intercept_only_probs
            jackknife = own.se * math.sqrt(float(weighted_sum(w, fitted * (1 - fitted))) / information)
            error = jackknife if cluster is None else float(np.maximum(error, jackknife))
        return Coefficient(float(value), error)

    def as_loss(self, values: Any) -> Any:
        """Absolute intercept, because both signs are errors."""
        return np.abs(values)


@dataclass(frozen=True)
class CalibrationSlope(_CalibrationCoefficient):
    r"""Calibration slope: the factor of the log odds that fits best, with any intercept.

    Below 1 the predictions are too extreme, as after overfitting; above 1 they are not extreme enough. It is the slope
    of the test `cox`. The mean level is described by `calibration_intercept` (in log odds) and
    `calibration_in_the_large` (in probability).

    Parameters
    ----------
    min_prob : as in `CalibrationIntercept`

    Raises
    ------
    InputError
        TO203 for an invalid `min_prob`.

    See Also
    --------
    calibration_intercept : The shift of the log odds with slope 1.
    calibration_in_the_large : Mean observed outcome minus mean predicted probability.

    Notes
    -----
    For a binary view (n,), b is estimated together with an intercept:

    .. math:: \mathrm{logit}\,P(y = 1) = a + b\,\mathrm{logit}\,p

    For probability vectors (n, K), the default with more than two classes, it is the exponent of

    .. math:: P(y = k) = \frac{p_k^b}{\sum_j p_j^b}

    that is, 1/T with the temperature T. Both maximize the weighted likelihood. Several views are not averaged, because
    slopes above and below 1 cancel.

    Units: a ratio of log odds, in (−∞, ∞); 1 is best. It is undefined (NaN) if all predictions are equal (note TN218),
    if they separate the outcomes, or all outcomes are equal (note TN217), or if a probability is exactly 0 or 1, which
    has no finite log odds (note TN268, unless `min_prob` is given). Of vectors, only an observed class of probability 0
    makes it undefined.

    Bias: none to first order, so the expected value of a calibrated model is 1. The interval is the one that `cox`
    prints: normal with the standard error of the fitted model; with clusters, and with shares of votes, Student's t
    with the jackknife standard error over clusters or rows. That of vectors has the sandwich standard error of the
    residuals, and with clusters that of the jackknife to first order.

    Cost: O(nK) per Newton step, about 5 steps. From a tally, p is the mean of its cell; vectors require the rows.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Van Calster et al. (2016).

    Examples
    --------
    Odds of 1 : 9 and 9 : 1 are predicted, and 1 : 3 and 3 : 1 observed: log 3 / log 9 = 1/2.

    >>> import trueodds as to
    >>> round(to.measure([0, 0, 0, 1, 0, 1, 1, 1], [0.1] * 4 + [0.9] * 4, "calibration_slope").value, 4)
    0.5
    """

    name: ClassVar[str] = "calibration_slope"
    directions: ClassVar[tuple[str, str] | None] = ("too extreme", "too moderate")
    lens_of_several_classes: ClassVar[str | None] = "canonical"
    best_value: ClassVar[float] = 1.0
    coefficient_name: ClassVar[str] = "slope"
    description: ClassVar[str] = "calibration slope"

    def coefficient(self, view: View, cluster: Array | None = None) -> Coefficient:
        """The estimate with its standard error: that of the test `cox`, or the sandwich estimate for vectors."""
        if view.joint and cluster is not None:
            return calibration_exponent(view, cluster, self.min_prob)
        return super().coefficient(view, cluster)

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        """The coefficient; NaN with fewer than ten events or non-events, whose standard error is unreliable."""
        observed = np.atleast_1d(weighted_sum(view.w, view.y)) / view.total * view.n_rows
        if min(float(observed.min()), float((view.n_rows - observed).min())) < MIN_GROUP_EVENTS:
            return Coefficient(math.nan, math.nan)
        return self.coefficient(view, cluster)

    def influence(self, view: View) -> Array:
        return exponent_influence(view, self.value(view), self.min_prob) if view.joint else super().influence(view)

    def draws(self, view: View, w: Array, wy: Array) -> Array:
        return exponent_draws(view, w, wy, self.min_prob) if view.joint else super().draws(view, w, wy)

    def _fit_view(self, view: View) -> _Fit:
        if not view.joint:
            return super()._fit_view(view)
        exponent = calibration_exponent(view, min_prob=self.min_prob)
        return _Fit(exponent, tuple(self._notes_on_exponent(view, exponent)))

    def _notes_on_exponent(self, view: View, exponent: Coefficient) -> list[Note]:
        """Notes on clipped probabilities of vectors, and on an undefined exponent."""
        if self.min_prob:
            n_clipped = int(((view.log_P < math.log(self.min_prob)).any(axis=1) & (view.w > 0)).sum())
            if n_clipped:
                return list(clipping_notes(self.min_prob, n_clipped))
        elif n_contradicted := int(contradicted_rows(view).sum()):
            return [contradiction_note(n_contradicted, len(view))]
        if np.isfinite(exponent.value):
            return []
        reason = "every observed class is the most probable one of its row, or every one the least probable"
        return [no_maximum_note(reason, self.description)]


def contradiction_note(n_contradicted: int, n: int) -> Note:
    """Return the note on rows of several classes whose observed class has predicted probability 0."""
    text = f"In {n_contradicted:,} of {n:,} rows the observed class has predicted probability 0, so the calibration"
    return Note("TN268", f"{text} slope is undefined.")


class RowCoefficients(CellStatistic):
    """A coefficient as a function of the weights and outcomes of all rows."""

    is_refitted = True

    def __init__(self, estimator: _CalibrationCoefficient, view: View) -> None:
        self.estimator, self.view = estimator, view
        self.size = len(view)
        self.index = np.arange(self.size)

    def value(self) -> float:
        return self.estimator.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The coefficient of each draw, (draws,), from Σw (draws, n) or (1, n) and Σwy (draws, n, …)."""
        return self.estimator.draws(self.view, w[0] if len(w) == 1 else w, wy)
