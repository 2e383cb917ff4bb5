"""The formula of a fitted map as a SQL expression, as source text that needs only NumPy, or as nodes of a graph."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._curves.score_scale import LOGIT
from trueodds.calibrators._glm.log_probabilities import MIN_PROB_OF_LOGITS
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.beta import BetaCurve
from trueodds.calibrators.enir import PiecewiseLinearCurve
from trueodds.calibrators.histogram import StepCurve
from trueodds.calibrators.identity import IdentityMap
from trueodds.calibrators.isotonic import IrovaTsMap, MonotoneCurve
from trueodds.calibrators.platt import Sigmoid
from trueodds.calibrators.scaling_binning import BinnedSigmoid
from trueodds.calibrators.spline import LogOddsSpline
from trueodds.calibrators.uniform_mixture import MixedMap
from trueodds.calibrators.venn_abers import VennAbersCurve
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS

# Calibrators whose maps have a formula, or pieces of one.
WITH_FORMULA = (
    *("temperature", "bias_corrected_temperature", "vector", "structured", "dirichlet", "llo", "mcllo", "shift"),
    *("platt", "beta", "isotonic", "centered_isotonic", "histogram", "bbq", "scaling_binning", "spline", "venn_abers"),
)
LOG_OF_ZERO = -1e30  # the log of an exact zero: finite, so that 0 · log 0 is 0, and below every other
TINY = float(np.finfo(np.float64).tiny)
_MAX_EXPONENT = 700.0  # exp of more would overflow, and of less than its negative underflow: errors in PostgreSQL
_CURVES = (
    Sigmoid,
    BetaCurve,
    LogOddsSpline,
    BinnedSigmoid,
    StepCurve,
    MonotoneCurve,
    PiecewiseLinearCurve,
    VennAbersCurve,
)


class Pieces(NamedTuple):
    """Polynomials of (x − origin), one for each interval between breaks."""

    breaks: Array  # (m,) increasing
    origins: Array  # (m + 1,)
    coefficients: Array  # (degree + 1, m + 1), the constants first
    right: bool = False  # whether a break belongs to the interval above it


class Target(ABC):
    """Writes operations on columns of numbers in one language; `Term` has the text or the name of a result."""

    language: ClassVar[str]
    code: ClassVar[str] = "TO526"  # of the error for a map without a formula

    @abstractmethod
    def number(self, value: float) -> str:
        """A constant."""

    @abstractmethod
    def apply(self, function: str, *arguments: Term) -> Term:
        """One of `+ - * / log exp least greatest` of one or two terms."""

    @abstractmethod
    def where_less(self, x: Term, limit: float, then: Term, otherwise: Term) -> Term:
        """The term `then` where x < limit, else the other one."""

    @abstractmethod
    def piecewise(self, x: Term, pieces: Pieces) -> Term:
        """The polynomial of the interval of x."""

    @abstractmethod
    def softmax_mixture(self, terms: Sequence[SoftmaxTerm], columns: Sequence[Term], on_logits: bool) -> list[Term]:
        """The sum of the components softmax(W log p + b); with `on_logits`, the columns take the place of log p."""

    def constant(self, value: float) -> Term:
        return Term(self, self.number(float(value)))

    def log(self, p: Term, min_prob: float = 0.0, zeros_only: bool = False) -> Term:
        """The log of probabilities, of which `min_prob` replaces smaller ones, or exact zeros only."""
        if min_prob > MIN_PROB_OF_LOGITS and not zeros_only:
            return self.apply("log", self.apply("greatest", p, self.constant(min_prob)))
        log_of_zero = self.constant(math.log(min_prob) if min_prob > 0 else LOG_OF_ZERO)
        return self.where_less(p, TINY, log_of_zero, self.apply("log", self.apply("greatest", p, self.constant(TINY))))

    def sigmoid(self, eta: Term) -> Term:
        return self.constant(1.0) / (self.exp(eta * -1.0) + 1.0)

    def exp(self, x: Term) -> Term:
        """The exponential function, of numbers that are limited to ± 700."""
        limited = self.apply("least", x, self.constant(_MAX_EXPONENT))
        return self.apply("exp", self.apply("greatest", limited, self.constant(-_MAX_EXPONENT)))


class Term:
    """A column of numbers in the language of a target."""

    __slots__ = ("target", "text")

    def __init__(self, target: Target, text: str) -> None:
        self.target, self.text = target, text

    def _apply(self, operator: str, other: Term | float) -> Term:
        return self.target.apply(operator, self, other if isinstance(other, Term) else self.target.constant(other))

    def __add__(self, other: Term | float) -> Term:
        return self._apply("+", other)

    def __sub__(self, other: Term | float) -> Term:
        return self._apply("-", other)

    def __mul__(self, other: Term | float) -> Term:
        return self._apply("*", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self._apply("/", other)


def write_map(target: Target, calibration_map: CalibrationMap, columns: Sequence[Term]) -> list[Term]:
    """Write the recalibrated columns of K classes; raises the error of the target for a map without a formula."""
    k, logits = len(columns), calibration_map.logits
    if isinstance(calibration_map, IdentityMap):
        return list(columns)
    if (stages := calibration_map.mixture_stages(k)) is not None:
        for i, stage in enumerate(stages):
            columns = target.softmax_mixture(stage, columns, logits and i == 0)
        return list(columns)
    if isinstance(calibration_map, MixedMap):
        mixed = _divide_by_sum(target, write_map(target, calibration_map.base_map, columns))
        share = calibration_map.share
        return [q * (1 - share) + share / k for q in mixed]
    if isinstance(calibration_map, IrovaTsMap):
        tempered = write_map(target, calibration_map.temperature_map, columns)
        return write_map(target, calibration_map.curves, tempered)
    curves: Sequence[Any] = getattr(calibration_map, "curves", ())
    is_one_vs_rest = (
        calibration_map.one_vs_rest or getattr(calibration_map, "multiclass", "") == "one-vs-rest" or k == 2
    )
    if curves and is_one_vs_rest and isinstance(curves[0], _CURVES):
        if len(curves) == 1:
            q = _write_curve(target, curves[0], columns[1], columns[0])
            return [target.constant(1.0) - q, q]
        rests = [_add_up([p for j, p in enumerate(columns) if j != c]) for c in range(k)]
        values = [_write_curve(target, *each) for each in zip(curves, columns, rests, strict=True)]
        return _divide_by_sum(target, values)
    raise InputError(
        target.code,
        f"This map has no formula that could be written as {target.language}.",
        f"{calibration_map.name} with {k} classes",
        f"Fit {', '.join(WITH_FORMULA)}; or save it as JSON.",
    )


def _add_up(terms: Sequence[Term]) -> Term:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _divide_by_sum(target: Target, values: Sequence[Term]) -> list[Term]:
    """Divide by the sum; if all are 0, they become equal."""
    total, equal = _add_up(values), target.constant(1 / len(values))
    divisor = target.apply("greatest", total, target.constant(TINY))
    return [target.where_less(total, TINY, equal, value / divisor) for value in values]


def _write_curve(target: Target, curve: Any, p: Term, rest: Term) -> Term:
    """Write the curve of one class with the probability p; `rest` is that of all other classes."""

    def log_odds(min_prob: float = 0.0) -> Term:
        return target.log(p, min_prob) - target.log(rest, min_prob)

    if isinstance(curve, Sigmoid):
        x = p if curve.on == "raw" else log_odds(curve.min_prob if curve.slope < 0 else 0.0)
        return target.sigmoid(x * curve.slope + curve.intercept)
    if isinstance(curve, BetaCurve):
        return target.sigmoid(target.log(p) * curve.a - target.log(rest) * curve.b + curve.c)
    if isinstance(curve, LogOddsSpline):
        knots = curve.knots
        pieces = Pieces(knots, np.append(knots[0], knots), curve.spline.coefficients())
        return target.sigmoid(target.piecewise(log_odds(curve.min_prob), pieces))
    if isinstance(curve, BinnedSigmoid):
        return target.piecewise(_write_curve(target, curve.sigmoid, p, rest), _steps(curve.steps))
    x = p
    if curve.scale == LOGIT:
        limited = target.apply("greatest", log_odds(), target.constant(-MAX_LOG_ODDS))
        x = target.apply("least", limited, target.constant(MAX_LOG_ODDS))
    if isinstance(curve, VennAbersCurve):
        low = target.piecewise(x, _constants(curve.low_x, curve.low_y, right=True))
        high = target.piecewise(x, _constants(curve.high_x, curve.high_y))
        return high / (target.constant(1.0) - low + high)
    if isinstance(curve, StepCurve):
        return target.piecewise(x, _steps(curve))
    assert isinstance(curve, (MonotoneCurve, PiecewiseLinearCurve))
    if isinstance(curve, MonotoneCurve) and curve.between == "step":
        return target.piecewise(x, _constants(curve.x, np.append(curve.y[0], curve.y), right=True))
    slopes = np.concatenate([[0.0], np.diff(curve.y) / np.diff(curve.x), [0.0]])
    y = np.append(curve.y[0], curve.y)
    return target.piecewise(x, Pieces(curve.x, np.append(curve.x[0], curve.x), np.stack([y, slopes])))


def _constants(breaks: Array, values: Array, *, right: bool = False) -> Pieces:
    return Pieces(breaks, np.zeros(len(values)), values[None], right)


def _steps(curve: StepCurve) -> Pieces:
    return _constants(curve.edges[1:-1], curve.values)
