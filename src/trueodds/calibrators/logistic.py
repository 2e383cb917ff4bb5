"""Curves by logistic regression: Platt scaling, a sigmoid, and beta calibration, for two classes or for each class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import expit

from trueodds.calibrators._curves.one_vs_rest import IterativeOneVsRest, OneVsRestRows, OneVsRestSpec
from trueodds.calibrators._glm.fit_data import SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    binary_logs,
    logs_for_slopes,
    probability_pair,
)
from trueodds.calibrators._glm.logistic_regression import (
    MAX_COEFFICIENT,
    Coefficient,
    LogisticFit,
    LogisticRows,
    curve_notes,
    fit_finite_from_sums,
    fit_logistic_from_sums,
    intercept_and_score,
)
from trueodds.calibrators.base import SoftmaxTerm
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, PassCount, Saved, ZeroOrOne
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array

_INPUT_SCALES = ("logit", "raw")
_FLAT_CURVE = np.zeros(2)  # intercept and slope of the curve q = 1/2, which stay where the rows do not determine them


class Sigmoid(Saved):
    """1/(1 + exp(−(slope·x + intercept))), x being the probability or its log odds."""

    symbols: ClassVar[Mapping[str, str]] = {"a": "slope", "b": "intercept"}
    slope: Coefficient
    intercept: Coefficient
    on: Annotated[str, OneOf(_INPUT_SCALES)] = "logit"  # what x is: "logit" for log odds, "raw" for the probability
    n_passes: PassCount = 0
    converged: ZeroOrOne = True  # whether the optimum is finite without smoothed targets
    # Smallest probability of the fit on log odds; used if the slope is negative.
    min_prob: Annotated[MinProb, OMIT_DEFAULT] = MIN_PROB

    def __post_init__(self) -> None:
        if not self.slope < 0:  # then `min_prob` is not used, nor saved
            object.__setattr__(self, "min_prob", MIN_PROB)

    @property
    def takes_logs(self) -> bool:
        return self.on == "logit"

    @property
    def nonincreasing(self) -> bool:
        return self.slope <= 0

    def __call__(self, x: Array) -> Array:
        """The values at x; with a positive slope in log odds an exact zero stays zero."""
        if self.on == "logit":
            return self.apply_to_logs(binary_logs(x))[:, 1]
        return np.asarray(expit(self.slope * x.astype(np.float64) + self.intercept))

    def apply_to_logs(self, logs: Array) -> Array:
        if self.slope == 0:
            return probability_pair(np.full(len(logs), self.intercept))
        logs = logs_for_slopes(logs, self.slope, self.min_prob)
        return probability_pair(self.slope * (logs[:, 1] - logs[:, 0]) + self.intercept)


class PlattMap(IterativeOneVsRest):
    """A sigmoid for the second of two classes, or for every class."""

    curves: tuple[Sigmoid, ...]

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The sigmoid as a mixture, for two classes and log odds."""
        curve = self.curves[0]
        if k > 2 or curve.on == "raw":
            return None
        return (SoftmaxTerm(1.0, np.full(2, curve.slope), np.array([0.0, curve.intercept]), curve.min_prob),)

    def describe(self) -> str:
        """The parameters, such as `slope 0.55, intercept -0.45`, or the range of the slopes of several curves."""
        if len(self.curves) == 1:
            return f"slope {format_number(self.curves[0].slope)}, intercept {format_number(self.curves[0].intercept)}"
        slopes = [curve.slope for curve in self.curves]
        return f"slopes {format_number(min(slopes))} to {format_number(max(slopes))} in {len(slopes)} curves"


class PlattSpec(OneVsRestSpec):
    r"""Platt scaling: a sigmoid of the log odds, or of the probability itself, fitted by maximum likelihood.

    Two classes have one sigmoid, for the second class. With more classes each has its own sigmoid against the rest, so
    predicted classes may change; rows are then divided by their sums.

    Parameters
    ----------
    on : {"logit", "raw"}, default="logit"
        Input x of the sigmoid: log(p/(1 − p)), or p itself. `"raw"` is scikit-learn's "sigmoid" of a forest. It does
        not contain the identity.
    smooth : bool, default=True
        Whether the targets are smoothed to t. This keeps every fit finite and shrinks a little towards the base rate.
        With False the targets are y, and smoothed targets are used only where the scores separate the outcomes.

    Notes
    -----
    .. math:: q = \frac{1}{1 + e^{-(s x + b)}}, \qquad
        \max_{s, b} \sum_i w_i\,[t_i \log q_i + (1 - t_i)\log(1 - q_i)], \quad
        t = y\,\tfrac{N_1 + 1}{N_1 + 2} + (1 - y)\,\tfrac{1}{N_0 + 2}

    With `on="logit"` and `smooth=False` it is `llo`. A slope that is not positive is reported in a note.

    Cost: O(nK) per pass, about 7 passes.

    References
    ----------
    .. [1] Platt (1999).
    .. [2] Lin, Lin & Weng (2007).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> fitted = PlattSpec(smooth=False).fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8))
    >>> round(fitted.curves[0].slope, 6)
    0.5
    """

    name, map_type = "platt", PlattMap
    candidate = False
    on: Annotated[str, OneOf(_INPUT_SCALES)] = "logit"
    smooth: bool = True
    min_prob: MinProb = MIN_PROB

    def fit_curve(self, data: SummableRows) -> Sigmoid:
        rows = data.map_rows(partial(_score_rows, on=self.on))
        optimum = (
            fit_logistic_from_sums(rows, _FLAT_CURVE, smooth=True)
            if self.smooth
            else fit_finite_from_sums(rows, _FLAT_CURVE)
        )
        intercept, slope = optimum.theta.tolist()
        return Sigmoid(slope, intercept, self.on, optimum.n_passes, optimum.converged, self.min_prob)

    def notes_from_sums(self, calibration_map: PlattMap, data: SummableRows) -> list[Note]:
        if self.on == "raw":  # without logarithms
            return curve_notes(calibration_map.curves)
        return super().notes_from_sums(calibration_map, data)


def _score_rows(class_rows: OneVsRestRows, on: str) -> LogisticRows:
    """The rows of a logistic model of the log odds, or of the probability with `on="raw"`."""
    x = class_rows.logs[:, 1] - class_rows.logs[:, 0] if on == "logit" else class_rows.x.astype(np.float64)
    return LogisticRows(intercept_and_score(x), class_rows.y, class_rows.w)


_PARAMETER_CHOICES = ("abm", "am", "ab", "a")
_C, _A, _B, _EQUAL_AB = range(4)  # columns of the logistic model: those of c, a, b, and of a common value of a and b


class BetaCurve(Saved):
    """The beta curve logit q = c + a log p − b log(1 − p) of one class."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"a": "a", "b": "b", "c": "c"}
    a: Annotated[float, Range(0, MAX_COEFFICIENT)]
    b: Annotated[float, Range(0, MAX_COEFFICIENT)]
    c: Coefficient
    n_passes: PassCount = 0
    converged: ZeroOrOne = True  # whether the optimum is finite without smoothed targets

    @property
    def nonincreasing(self) -> bool:
        return self.a == self.b == 0

    def __call__(self, x: Array) -> Array:
        """The values at x; with a > 0 an exact zero stays zero, with b > 0 an exact one stays one."""
        return self.apply_to_logs(binary_logs(x))[:, 1]

    def apply_to_logs(self, logs: Array) -> Array:
        eta = np.full(len(logs), self.c)
        if self.a > 0:
            eta += self.a * logs[:, 1]
        if self.b > 0:
            eta -= self.b * logs[:, 0]
        return probability_pair(eta)


class BetaMap(IterativeOneVsRest):
    """A beta curve for the second of two classes, or for every class."""

    curves: tuple[BetaCurve, ...]

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        curve = self.curves[0]
        return (SoftmaxTerm(1.0, np.array([curve.b, curve.a]), np.array([0.0, curve.c])),) if k == 2 else None

    def describe(self) -> str:
        """The coefficients, such as `a = 0.40, b = 0.71, c = -0.76`, or the number of curves."""
        if len(self.curves) > 1:
            return f"{len(self.curves)} curves"
        return ", ".join(f"{name} = {format_number(getattr(self.curves[0], name))}" for name in "abc")


class BetaSpec(OneVsRestSpec):
    r"""Beta calibration: the curve that beta-distributed scores imply, fitted by maximum likelihood.

    The curve never decreases and may bend differently near 0 and near 1. a = b = 1, c = 0 is the identity. Two classes
    have one curve, for the second class. With more classes each has its own curve against the rest, so predicted
    classes may change; rows are then divided by their sums.

    Parameters
    ----------
    parameters : {"abm", "am", "ab", "a"}, default="abm"
        Free parameters: all three; a = b and c, which is `llo` with γ ≥ 0; a and b with q(1/2) = 1/2; or a = b with
        q(1/2) = 1/2.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. The fitted map has no such limit.

    Notes
    -----
    .. math:: \log\frac{q}{1 - q} = c + a \log p - b \log(1 - p), \quad a, b \ge 0

    The constrained maximum is exact: the loss is convex, so if the unconstrained optimum violates a bound, the
    constrained one lies on that bound, and the other bound is checked again there. If the scores separate the
    outcomes, the targets are smoothed by one added outcome of either kind, and `converged` is False. Scores in a few
    clusters do not determine three parameters.

    Cost: O(nK) per pass, some 7 passes.

    References
    ----------
    .. [1] Kull, Silva Filho & Flach (2017).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> BetaSpec(parameters="a").fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8)).describe()
    'a = 0.5, b = 0.5, c = 0'
    """

    name, map_type = "beta", BetaMap
    parameters: Annotated[str, OneOf(_PARAMETER_CHOICES)] = "abm"
    min_prob: MinProb = MIN_PROB

    def fit_curve(self, data: SummableRows) -> BetaCurve:
        logistic_rows = data.map_rows(partial(_log_rows, centered=self.parameters == "ab"))
        optimum = _fit_within_bounds(logistic_rows, self.parameters, smooth=False)
        converged = optimum.converged
        if not converged:
            optimum = _fit_within_bounds(logistic_rows, self.parameters, smooth=True)
        return BetaCurve(*_curve_coefficients(optimum, self.parameters), optimum.n_passes, converged)


def _log_rows(class_rows: OneVsRestRows, centered: bool) -> LogisticRows:
    """The columns `_C`, `_A`, `_B` and `_EQUAL_AB` (n, 4) of a logistic model of one class.

    With `centered`, c = 0 means q(1/2) = 1/2.
    """
    minus_log_rest, log_p = -class_rows.logs[:, 0], class_rows.logs[:, 1]
    if centered:
        log_p, minus_log_rest = log_p + np.log(2), minus_log_rest - np.log(2)
    return LogisticRows(
        np.stack([np.ones(len(log_p)), log_p, minus_log_rest, log_p + minus_log_rest]).T, class_rows.y, class_rows.w
    )


def _select_columns(rows: LogisticRows, used_columns: list[int]) -> LogisticRows:
    return rows._replace(X=rows.X.T[used_columns].T)


def _curve_coefficients(optimum: LogisticFit, parameters: str) -> tuple[float, float, float]:
    """The coefficients a, b and c of a fit with θ = (c, a, b); for "ab", c is that of q(1/2) = 1/2."""
    c, a, b = optimum.theta.tolist()
    return a, b, (a - b) * float(np.log(2)) if parameters == "ab" else c


def _fit_within_bounds(data: SummableRows, parameters: str, *, smooth: bool) -> LogisticFit:
    """The optimal (c, a, b) with a, b ≥ 0, from fits with some of the coefficients set to 0.

    The loss is convex. If the unconstrained optimum violates a bound, the constrained optimum lies on a bound that it
    violates, where another fit finds it; if that fit violates the other bound, both coefficients are 0.
    `data` are sums over `_log_rows`.
    """
    has_intercept = parameters.endswith("m")  # a free c, which moves the midpoint m of the curve

    def fit_columns(*columns: int) -> LogisticFit:
        """Fit the coefficients of these columns and c, if it is free; the others are 0."""
        used_columns = [_C, *columns] if has_intercept else list(columns)
        if not used_columns:
            value = data.summary.total_weight * float(np.log(2))
            return LogisticFit(theta=np.zeros(3), value=value, n_passes=1, converged=True, rank=0)
        default_theta = np.array([0.0 if j == _C else 1.0 for j in used_columns])
        rows = data.map_rows(partial(_select_columns, used_columns=used_columns))
        optimum = fit_logistic_from_sums(rows, default_theta, smooth=smooth, intercept=has_intercept)
        return _expand_to_all_coefficients(optimum, used_columns)

    if parameters in ("am", "a"):
        unconstrained = fit_columns(_EQUAL_AB)
        return unconstrained if _is_nondecreasing(unconstrained) else fit_columns()
    unconstrained = fit_columns(_A, _B)
    if _is_nondecreasing(unconstrained):
        return unconstrained
    _, a, b = unconstrained.theta
    fits_on_bounds = []
    if a < 0:
        fits_on_bounds.append(fit_columns(_B))
    if b < 0:
        fits_on_bounds.append(fit_columns(_A))
    candidates = [optimum if _is_nondecreasing(optimum) else fit_columns() for optimum in fits_on_bounds]
    return min(candidates, key=lambda optimum: optimum.value)


def _is_nondecreasing(optimum: LogisticFit) -> bool:
    """Whether a and b of θ = (c, a, b) are at least 0, so that the curve does not decrease."""
    return bool((optimum.theta[1:] >= 0).all())


def _expand_to_all_coefficients(optimum: LogisticFit, used_columns: list[int]) -> LogisticFit:
    """The fit with θ = (c, a, b), from one with a coefficient for each used column of `_log_rows`."""
    theta = np.zeros(3)
    for j, coefficient in zip(used_columns, optimum.theta, strict=True):
        theta[[_A, _B] if j == _EQUAL_AB else [j]] = coefficient
    return LogisticFit(theta, optimum.value, optimum.n_passes, optimum.converged, optimum.rank)
