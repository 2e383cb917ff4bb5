"""The formula of a fitted map as a SQL expression, as source text that needs only NumPy, or as an ONNX graph."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._curves.one_vs_rest import LOGIT
from trueodds.calibrators._glm.log_probabilities import MIN_PROB_OF_LOGITS
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.histogram import BinnedSigmoid, StepCurve
from trueodds.calibrators.isotonic import IrovaTsMap, MonotoneCurve, PiecewiseLinearCurve
from trueodds.calibrators.logistic import BetaCurve, Sigmoid
from trueodds.calibrators.spline import LogOddsSpline
from trueodds.calibrators.uniform_mixture import IdentityMap, MixedMap
from trueodds.calibrators.venn_abers import VennAbersCurve
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, install_command
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


class TextTarget(Target):
    """Writes each operation as an expression of the texts of its terms."""

    functions: ClassVar[Mapping[str, str]]  # names in the language, where they are others

    def apply(self, function: str, *arguments: Term) -> Term:
        if function in "+-*/":
            return Term(self, f"({arguments[0].text} {function} {arguments[1].text})")
        name = self.functions.get(function, function)
        return Term(self, f"{name}({', '.join(each.text for each in arguments)})")


class Sql(TextTarget):
    """Expressions of DuckDB and PostgreSQL, in double precision, which is also the type of their columns."""

    language = "SQL"
    functions: ClassVar[Mapping[str, str]] = {"log": "ln"}

    def number(self, value: float) -> str:
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"

    def where_less(self, x: Term, limit: float, then: Term, otherwise: Term) -> Term:
        return Term(self, f"CASE WHEN {x.text} < {self.number(limit)} THEN {then.text} ELSE {otherwise.text} END")

    def piecewise(self, x: Term, pieces: Pieces) -> Term:
        comparison, cases = "<" if pieces.right else "<=", []
        polynomials = [self._polynomial(x, *each) for each in zip(pieces.origins, pieces.coefficients.T, strict=True)]
        for limit, polynomial in zip(pieces.breaks, polynomials, strict=False):
            cases.append(f"WHEN {x.text} {comparison} {self.number(limit)} THEN {polynomial}")
        return Term(self, f"CASE {' '.join(cases)} ELSE {polynomials[-1]} END" if cases else polynomials[0])

    def _polynomial(self, x: Term, origin: float, coefficients: Array) -> str:
        degree = int(np.max(np.flatnonzero(coefficients), initial=0))
        value = self.constant(coefficients[degree])
        for coefficient in coefficients[:degree][::-1]:
            value = value * (x - origin) + coefficient
        return value.text

    def softmax_mixture(self, terms: Sequence[SoftmaxTerm], columns: Sequence[Term], on_logits: bool) -> list[Term]:
        k = len(columns)
        totals = [self.constant(0.0)] * k
        for term in terms:
            logs = list(columns) if on_logits else self._logs(term, columns)
            W = np.diag(term.W) if term.W.ndim == 1 else term.W
            eta = [self._linear(logs, W[j], term.b[j]) for j in range(k)]
            for j in range(k):
                divisor = self.constant(1.0)
                for other in (eta[i] for i in range(k) if i != j):
                    divisor = divisor + self.exp(other - eta[j])
                totals[j] = totals[j] + self.constant(term.weight) / divisor
        return totals

    def _linear(self, logs: Sequence[Term], weights: Array, bias: float) -> Term:
        eta = self.constant(bias)
        for log, weight in zip(logs, weights, strict=True):
            eta = eta + log * float(weight) if weight else eta
        return eta

    def _logs(self, term: SoftmaxTerm, columns: Sequence[Term]) -> list[Term]:
        total = _add_up(columns)
        logs = [self.log(p, m, term.zeros_only) for p, m in zip(columns, term.min_prob_by_class.tolist(), strict=True)]
        return [log - self.apply("log", total) for log in logs] if term.normalized else logs


class NumPySource(TextTarget):
    """Statements of a Python function of P (n, K); each operation is an expression of its columns."""

    language = "NumPy source"
    functions: ClassVar[Mapping[str, str]] = {
        "log": "np.log",
        "exp": "np.exp",
        "least": "np.minimum",
        "greatest": "np.maximum",
    }

    def __init__(self) -> None:
        self.statements: list[str] = []

    def number(self, value: float) -> str:
        return repr(float(value))

    def where_less(self, x: Term, limit: float, then: Term, otherwise: Term) -> Term:
        return Term(self, f"np.where({x.text} < {limit!r}, {then.text}, {otherwise.text})")

    def assign(self, name: str, value: str) -> str:
        name = f"{name}{len(self.statements)}"
        self.statements.append(f"{name} = {value}")
        return name

    def piecewise(self, x: Term, pieces: Pieces) -> Term:
        x_name, side = self.assign("x", x.text), "right" if pieces.right else "left"
        i = self.assign("i", f"np.searchsorted({pieces.breaks.tolist()}, {x_name}, side={side!r})")
        if len(pieces.coefficients) == 1:
            return Term(self, f"np.array({pieces.coefficients[0].tolist()})[{i}]")
        t = self.assign("t", f"{x_name} - np.array({pieces.origins.tolist()})[{i}]")
        coefficients = f"np.array({pieces.coefficients.tolist()})[:, {i}]"
        return Term(self, self.assign("q", f"np.polynomial.polynomial.polyval({t}, {coefficients}, tensor=False)"))

    def softmax_mixture(self, terms: Sequence[SoftmaxTerm], columns: Sequence[Term], on_logits: bool) -> list[Term]:
        P = self.assign("P", f"np.stack([{', '.join(each.text for each in columns)}], axis=1)")
        parts = []
        for term in terms:
            L = P if on_logits else self._logs(term, P)
            product = f"{L} * {term.W.tolist()}" if term.W.ndim == 1 else f"{L} @ np.array({term.W.T.tolist()})"
            eta = self.assign("eta", f"{product} + {term.b.tolist()}")
            e = self.assign("e", f"np.exp({eta} - {eta}.max(axis=1, keepdims=True))")
            parts.append(f"{float(term.weight)!r} * {e} / {e}.sum(axis=1, keepdims=True)")
        Q = self.assign("Q", " + ".join(parts))
        return [Term(self, f"{Q}[:, {j}]") for j in range(len(columns))]

    def _logs(self, term: SoftmaxTerm, P: str) -> str:
        smallest, log_of_zero = _smallest_logs(term)
        limit = np.full(len(smallest), TINY) if term.zeros_only else smallest
        logs = f"np.where({P} < {limit.tolist()}, {log_of_zero.tolist()}, np.log(np.maximum({P}, {limit.tolist()})))"
        return self.assign("L", f"{logs} - np.log({P}.sum(axis=1, keepdims=True))" if term.normalized else logs)


def _smallest_logs(term: SoftmaxTerm) -> tuple[Array, Array]:
    """The smallest probability of each class that a logarithm takes, and the logarithm of an exact zero, both (K,)."""
    min_prob = term.min_prob_by_class
    smallest = np.maximum(min_prob, TINY)
    return smallest, np.where(min_prob > 0, np.log(smallest), LOG_OF_ZERO)


def write_sql(calibration_map: CalibrationMap, columns: Sequence[str], k: int) -> list[str]:
    """Expressions of the recalibrated probabilities of K classes, from one column for two classes or from K columns.

    They are NULL where a column is NULL, NaN or out of range, which functions such as GREATEST would hide.
    """
    if len(columns) != k and (len(columns), k) != (1, 2):
        fix = "Pass the columns of all classes" + (", or that of the second one." if k == 2 else ".")
        raise InputError("TO501", f"The calibrator has {k} classes.", f"{len(columns)} columns", fix)
    target = Sql()
    terms = [Term(target, f"CAST({_quote(name)} AS DOUBLE PRECISION)") for name in columns]
    in_range = "abs({}) <= 1e308" if calibration_map.logits else "{} BETWEEN 0 AND 1"
    condition = " AND ".join(in_range.format(term.text) for term in terms)
    if len(terms) == 1:
        terms = [target.constant(0.0) if calibration_map.logits else target.constant(1.0) - terms[0], *terms]
    return [f"CASE WHEN {condition} THEN {q.text} END" for q in write_map(target, calibration_map, terms)]


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def write_numpy(calibration_map: CalibrationMap, k: int, description: str) -> str:
    """Source text of a function `recalibrate(P)`, which takes and returns an array of shape (n, K).

    It raises a ValueError for other shapes, and for values that are no probabilities (no finite logits).
    """
    target = NumPySource()
    Q = write_map(target, calibration_map, [Term(target, f"P[:, {j}]") for j in range(k)])
    in_range, content = "np.isfinite(P)", "finite logits"
    if not calibration_map.logits:
        in_range, content = "(P >= 0) & (P <= 1)", "probabilities"
    lines = [
        f"# {description}",
        "import numpy as np",
        "",
        "",
        "def recalibrate(P):",
        "    P = np.asarray(P, dtype=np.float64)",
        f"    if P.ndim != 2 or P.shape[1] != {k} or not ({in_range}).all():",
        f'        raise ValueError("P must have the shape (n, {k}) and contain {content}.")',
        *(f"    {statement}" for statement in target.statements),
        f"    return np.stack([{', '.join(q.text for q in Q)}], axis=1)",
    ]
    return "\n".join(lines) + "\n"


OPSET = 17  # version of the ONNX operators
_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"} | {
    "log": "Log",
    "exp": "Exp",
    "least": "Min",
    "greatest": "Max",
}


def write_onnx(calibration_map: CalibrationMap, k: int, path: str | os.PathLike[str]) -> None:
    """Write the graph with input `probabilities` (n, K), or `logits`, and output `calibrated` (n, K), all float64.

    Raises InputError TO524 for a map without a formula, or if the library onnx is missing.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise InputError("TO524", "Writing ONNX needs onnx.", "no onnx", install_command("onnx")) from None

    builder = _GraphBuilder()
    input_name = "logits" if calibration_map.logits else "probabilities"
    stages, current = calibration_map.mixture_stages(k), input_name
    if stages is None:
        current = builder.join(write_map(builder, calibration_map, builder.split(input_name, k)))
    for i, terms in enumerate(stages or ()):
        current = builder.add_mixture(terms, current, calibration_map.logits and i == 0)
    builder.add_node("Identity", [current], "calibrated")
    shape = [None, k]
    graph = helper.make_graph(
        builder.nodes,
        f"trueodds_{calibration_map.name}",
        [helper.make_tensor_value_info(input_name, TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info("calibrated", TensorProto.DOUBLE, shape)],
        builder.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="trueodds")
    model.ir_version = 8  # the version of opset 17, which old runtimes can read
    onnx.checker.check_model(model)
    with open_atomic(path, "TO503") as file:
        file.write(model.SerializeToString())


class _GraphBuilder(Target):
    """The nodes and constants of an ONNX graph. Methods that add one return the name of its output tensor."""

    language, code = "ONNX", "TO524"

    def __init__(self) -> None:
        self.nodes: list[Any] = []  # of NodeProto
        self.constants: list[Any] = []  # of TensorProto

    def number(self, value: float) -> str:
        return self.add_constant(f"number_{len(self.constants)}", np.array([[value]]))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> Term:
        """Add a node that nothing else has to name."""
        return Term(self, self.add_node(operator, list(inputs), f"{operator}_{len(self.nodes)}", **attributes))

    def apply(self, function: str, *arguments: Term) -> Term:
        return self.add(_OPERATORS[function], *(each.text for each in arguments))

    def where_less(self, x: Term, limit: float, then: Term, otherwise: Term) -> Term:
        return self.add("Where", self.add("Less", x.text, self.number(limit)).text, then.text, otherwise.text)

    def piecewise(self, x: Term, pieces: Pieces) -> Term:
        from onnx import TensorProto

        breaks = self.add_constant(f"breaks_{len(self.constants)}", pieces.breaks[None])
        is_below = self.add("LessOrEqual" if pieces.right else "Less", breaks, x.text)  # (n, m)
        counts = self.add("Cast", is_below.text, to=TensorProto.INT64)
        axis = self.add_constant(f"axis_{len(self.constants)}", np.array([1]), np.int64)
        index = self.add("ReduceSum", counts.text, axis, keepdims=1)  # (n, 1)

        def of_piece(values: Any) -> Term:
            return self.add("Gather", self.add_constant(f"pieces_{len(self.constants)}", values), index.text)

        value = of_piece(pieces.coefficients[-1])
        for coefficients in pieces.coefficients[:-1][::-1]:
            value = value * (x - of_piece(pieces.origins)) + of_piece(coefficients)
        return value

    def split(self, P: str, k: int) -> list[Term]:
        """The columns (n, 1) of a matrix."""
        indices = [self.add_constant(f"column_{len(self.constants)}", np.array([j]), np.int64) for j in range(k)]
        return [self.add("Gather", P, index, axis=1) for index in indices]

    def join(self, columns: Sequence[Term]) -> str:
        return self.add("Concat", *(each.text for each in columns), axis=1).text

    def softmax_mixture(self, terms: Sequence[SoftmaxTerm], columns: Sequence[Term], on_logits: bool) -> list[Term]:
        return self.split(self.add_mixture(terms, self.join(columns), on_logits), len(columns))

    def add_mixture(self, terms: Sequence[SoftmaxTerm], input_name: str, on_logits: bool) -> str:
        """Add the sum of the components of a mixture."""
        start = len(self.nodes)
        first, *others = (
            self.add_softmax_term(f"{start}_{i}", term, input_name, on_logits) for i, term in enumerate(terms)
        )
        for other in others:
            first = self.add("Add", first, other).text
        return first

    def add_constant(self, name: str, value: Any, dtype: Any = np.float64) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add_node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def add_softmax_term(self, suffix: str, term: SoftmaxTerm, input_name: str, on_logits: bool) -> str:
        """Add the nodes of one component of a mixture, weight · softmax(W log p + b).

        `suffix` makes the names of its tensors unique. `on_logits` says whether the input holds logits, which take the
        place of log p.
        """
        logs = input_name if on_logits else self._add_logs(suffix, term, input_name)
        W = self.add_constant(f"W_{suffix}", term.W.T)
        product = self.add_node("MatMul" if term.W.ndim == 2 else "Mul", [logs, W], f"product_{suffix}")
        eta = self.add_node("Add", [product, self.add_constant(f"b_{suffix}", term.b)], f"eta_{suffix}")
        q = self.add_node("Softmax", [eta], f"softmax_{suffix}", axis=1)
        if term.weight == 1.0:
            return q
        weight = self.add_constant(f"weight_{suffix}", term.weight)
        return self.add_node("Mul", [q, weight], f"component_{suffix}")

    def _add_logs(self, suffix: str, term: SoftmaxTerm, input_name: str) -> str:
        """Add the nodes of the logarithms of probabilities, limited below and normalized as the term requires."""
        smallest, log_of_zero = _smallest_logs(term)
        threshold = TINY if term.zeros_only else smallest
        limited = self.add_node(
            "Max", [input_name, self.add_constant(f"threshold_{suffix}", threshold)], f"limited_{suffix}"
        )
        logs = self.add_node("Log", [limited], f"log_{suffix}")
        if term.zeros_only or not term.min_prob_by_class.all():
            is_zero = self.add_node("Less", [input_name, self.add_constant(f"tiny_{suffix}", TINY)], f"zero_{suffix}")
            replacement = self.add_constant(f"log_of_zero_{suffix}", log_of_zero)
            logs = self.add_node("Where", [is_zero, replacement, logs], f"logs_{suffix}")
        if term.normalized:
            ones = self.add_constant(f"ones_{suffix}", np.ones((len(term.b), 1)))
            total = self.add_node("MatMul", [input_name, ones], f"total_{suffix}")
            log_total = self.add_node("Log", [total], f"log_total_{suffix}")
            logs = self.add_node("Sub", [logs, log_total], f"normalized_{suffix}")
        return logs
