"""Which shift and slope of the log odds fit best? Linear in log odds, LLO."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, SummedSpec, Term
from trueodds.calibrators.likelihood.binary_logistic import LogisticFit, fit_finite_from_sums, line, logistic, separated
from trueodds.calibrators.likelihood.certainty import Certainty, read_certainty, saved
from trueodds.calibrators.likelihood.evidence import Evidence
from trueodds.calibrators.likelihood.fit_data import FitData
from trueodds.calibrators.likelihood.logs import MIN_PROB, MinProb, Probabilities, log_ratio, logs_of
from trueodds.calibrators.likelihood.moments import Lines
from trueodds.calibrators.likelihood.parameter_covariance import Scores
from trueodds.calibrators.likelihood.parameter_table import ParameterTable
from trueodds.calibrators.likelihood.row_sums import RowSums
from trueodds.core.errors import Note
from trueodds.core.results import figure
from trueodds.core.typing import Array

WIDE = 1e100  # beyond any coefficient that a fit can give
_KEYS = ("tau", "gamma", "n_passes", "converged")
UNCHANGED = np.array([0.0, 1.0])  # τ and γ of the identity


@dataclass(frozen=True)
class LloMap(CalibrationMap):
    """log odds → τ + γ log odds; with γ > 0 an exact zero stays zero."""

    name: ClassVar[str] = "llo"
    takes_logs: ClassVar[bool] = True
    tau: float
    gamma: float
    n_passes: int = 0
    converged: bool = True
    certainty: Certainty | None = field(default=None, compare=False)  # of τ and γ, on the rows of the fit

    @property
    def delta(self) -> float:
        """exp τ: what the odds are multiplied by where the model says even odds."""
        return math.exp(min(self.tau, 700.0))

    def apply(self, P: Probabilities) -> Array:
        """Both sides by themselves, so that small ones keep their digits."""
        logs = logs_of(P)
        eta = np.full(len(P), self.tau)
        if self.gamma != 0:
            eta += self.gamma * (logs[:, 1] - logs[:, 0])
        return np.stack([expit(-eta), expit(eta)], axis=1)

    def terms(self, k: int) -> tuple[Term, ...]:
        """Powers γ, and the shift on the second class."""
        return (Term(1.0, self.gamma * np.eye(2), np.array([0.0, self.tau])),)

    def describe(self) -> str:
        """`δ = 0.64, γ = 0.57`."""
        return f"δ = {figure(self.delta)}, γ = {figure(self.gamma)}"

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """δ and γ with their errors, in words too, and the evidence against no change."""
        if self.name != LloMap.name:  # of another method, which keeps no certainty
            return []
        own = (classes, 0, np.array([self.tau]), np.array([self.gamma]), self.certainty)
        return ParameterTable(*own, method=self.name).lines()

    def to_dict(self) -> dict[str, Any]:
        """τ and γ, the passes that finding them took, 1 if they are the best (0 if no finite ones are), how sure."""
        parameters = {"tau": self.tau, "gamma": self.gamma, "n_passes": self.n_passes, "converged": int(self.converged)}
        return parameters | saved(self.certainty)

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> LloMap:  # noqa: ARG003 - two classes always
        """Finite numbers."""
        certainty = read_certainty(parameters, _KEYS, 2)
        tau, gamma = (wire.number(parameters, key, -WIDE, WIDE) for key in ("tau", "gamma"))
        return cls(tau, gamma, wire.count(parameters, "n_passes"), bool(wire.count(parameters, "converged")), certainty)


@dataclass(frozen=True)
class LloSpec(SummedSpec):
    r"""Shift τ = log δ and slope γ of the log odds, by maximum likelihood. Two classes.

    .. math:: \frac{q}{1 - q} = \delta \Big(\frac{p}{1 - p}\Big)^{\gamma}, \qquad
        \min_{\tau, \gamma} \sum_i w_i\,[\log(1 + e^{\eta_i}) - y_i \eta_i], \quad \eta = \tau + \gamma \log\tfrac{p}{1-p}

    δ > 1: the class was said too seldom; γ < 1: the model was too sure, γ > 1 not sure enough, γ < 0: it points the
    wrong way. δ = γ = 1 changes nothing. Convex in τ, though not in δ. Fits take log(max(p, `min_prob`)); the map has no
    floor. Where the scores separate the outcomes no finite τ and γ are best: one more outcome of either kind is then
    imagined, and `converged` is False. A straight line in log odds sees no other bend: `beta` has one parameter more.
    `summary()` of the fit prints intervals of δ and γ, the likelihood ratio against the identity and the posterior
    probability of calibration, made of the rows of the fit, as for `mcllo`, which it is for two classes (`cox` tests it
    on others). Cost: O(n) per pass, about 7 passes. Sources: Turner et al. (2014); Guthrie & Franck (2024).

    >>> P = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> LloSpec().fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8)).describe()
    'δ = 1, γ = 0.5'
    """

    name: ClassVar[str] = "llo"
    complexity: ClassVar[int] = 5
    takes_logs: ClassVar[bool] = True
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = LloMap
    two_classes: ClassVar[bool] = True
    min_prob: MinProb = MIN_PROB

    def fit_data(self, data: RowSums) -> LloMap:
        """Shift and slope of these rows."""
        lines = data.prepared(_lines)
        optimum = fit_finite_from_sums(lines, UNCHANGED)
        certainty = _certainty(optimum, lines) if optimum.converged else Certainty("infinite")
        return LloMap(float(optimum.theta[0]), float(optimum.theta[1]), optimum.n_passes, optimum.converged, certainty)

    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Floored values, what cannot be told, and a curve that falls."""
        assert isinstance(calibration_map, LloMap)
        notes = data.facts.floored.notes()
        if not calibration_map.converged:
            notes.append(separated())
        return [*notes, *falling(int(calibration_map.gamma <= 0))]


def _lines(data: FitData) -> Lines:
    """The log odds of the second class."""
    return Lines(line(log_ratio(data.P, data.min_prob)), data.Y[:, 1], data.w)


@dataclass(frozen=True, slots=True, eq=False)
class _EvidenceSums:
    """What rows say of τ and γ once they are found, in a form that adds."""

    curvature: Array  # of (γ, τ′)
    squares: Array  # with squared weights, where they are asked for
    before: float  # minus the log-likelihood of no change, where the other is
    low: float
    high: float

    @classmethod
    def of(cls, lines: Lines, theta: Array, mean: float, weighted: bool) -> _EvidenceSums:
        """Of some rows."""
        x = lines.X[:, 1]
        around, at = line(x - mean), np.array([theta[0] + theta[1] * mean, theta[1]])

        def curvature(w: Array) -> Array:
            return logistic(around, lines.y, w, at).hessian[::-1, ::-1]

        squares = curvature(lines.w**2) if weighted else np.zeros((2, 2))
        before = 0.0 if weighted else logistic(lines.X, lines.y, lines.w, UNCHANGED).value
        return cls(curvature(lines.w), squares, before, float(x.min()), float(x.max()))

    def __add__(self, other: _EvidenceSums) -> _EvidenceSums:
        return _EvidenceSums(
            self.curvature + other.curvature,
            self.squares + other.squares,
            self.before + other.before,
            min(self.low, other.low),
            max(self.high, other.high),
        )


def _certainty(optimum: LogisticFit, data: RowSums) -> Certainty:
    """How sure shift and slope are. Cost: two passes in one."""
    assert optimum.means is not None
    mean, facts = float(optimum.means[1]), data.facts
    weighted = facts.errors == "weights"
    sums: _EvidenceSums = data.sum(partial(_EvidenceSums.of, theta=optimum.theta, mean=mean, weighted=weighted))

    def scores() -> Scores:
        (tau, gamma), rows = optimum.theta, data.rows
        x = rows.X[:, 1]
        return Scores((x - mean)[:, None], expit(tau + gamma * x)[:, None], rows.y[:, None], rows.w)

    return Evidence(
        facts, sums.curvature, np.array([mean]), np.array([sums.low <= 0 <= sums.high]), 0.0,
        None if data.rows is None else scores, lambda: sums.squares,
        lambda: max(2 * (sums.before - optimum.value), 0.0), optimum.rank,
    ).certainty()  # fmt: skip


def doubtful(lost: int, fallen: int, curves: int) -> list[Note]:
    """The notes on curves without a finite best, and on those that do not rise, of so many in all."""
    return [*([separated(lost)] if lost else []), *falling(fallen, curves)]


def falling(curves: int, of: int = 1) -> list[Note]:
    """Curves that do not rise with the score."""
    if not curves:
        return []
    which = "the curve does not rise" if of == 1 else f"{curves:,} of {of:,} curves do not rise"
    return [
        Note(
            "TN517",
            f"Outcomes are not more frequent where more was said: {which} with the score. It informs no better than chance or points the wrong way; are the classes in the right order?",
        )
    ]
