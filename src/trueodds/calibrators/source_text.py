"""A fitted map as a SQL expression, or as Python source text that needs only NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.formula import LOG_OF_ZERO, TINY, Pieces, Target, Term, write_map
from trueodds.core.errors import InputError
from trueodds.core.typing import Array


class Sql(Target):
    """Expressions of DuckDB and PostgreSQL, in double precision, which is also the type of their columns."""

    language = "SQL"

    def number(self, value: float) -> str:
        text = repr(float(value))
        return text if "e" in text else f"{text}e0"

    def apply(self, function: str, *arguments: Term) -> Term:
        if function in "+-*/":
            return Term(self, f"({arguments[0].text} {function} {arguments[1].text})")
        name = {"log": "ln"}.get(function, function)
        return Term(self, f"{name}({', '.join(each.text for each in arguments)})")

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
        total = columns[0]
        for column in columns[1:]:
            total = total + column
        logs = [self.log(p, m, term.zeros_only) for p, m in zip(columns, term.min_prob_by_class.tolist(), strict=True)]
        return [log - self.apply("log", total) for log in logs] if term.normalized else logs


class NumPySource(Target):
    """Statements of a Python function of P (n, K); each operation is an expression of its columns."""

    language = "NumPy source"

    def __init__(self) -> None:
        self.statements: list[str] = []

    def number(self, value: float) -> str:
        return repr(float(value))

    def apply(self, function: str, *arguments: Term) -> Term:
        if function in "+-*/":
            return Term(self, f"({arguments[0].text} {function} {arguments[1].text})")
        name = {"least": "minimum", "greatest": "maximum"}.get(function, function)
        return Term(self, f"np.{name}({', '.join(each.text for each in arguments)})")

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
        m = term.min_prob_by_class
        limit = np.full(len(m), TINY) if term.zeros_only else np.maximum(m, TINY)
        log_of_zero = np.where(m > 0, np.log(np.maximum(m, TINY)), LOG_OF_ZERO)
        if not term.zeros_only:
            log_of_zero = np.where(m > 0, np.log(limit), log_of_zero)
        logs = f"np.where({P} < {limit.tolist()}, {log_of_zero.tolist()}, np.log(np.maximum({P}, {limit.tolist()})))"
        return self.assign("L", f"{logs} - np.log({P}.sum(axis=1, keepdims=True))" if term.normalized else logs)


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
