"""Which shift and slope of the log odds fit best? Linear in log odds, LLO."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit

from trueodds.calibrators import wire
from trueodds.calibrators.base import Map, Rule, Term
from trueodds.calibrators.likelihood.binary_logistic import best, finite, line, log_ratio, logistic, separated
from trueodds.calibrators.likelihood.logs import FLOOR, check_floor, touched
from trueodds.core.errors import Note
from trueodds.core.results import figure

Array = NDArray[Any]

WIDE = 1e100  # beyond any coefficient that a fit can give
UNCHANGED = np.array([0.0, 1.0])  # τ and γ of the identity


@dataclass(frozen=True)
class LloMap(Map):
    """log odds → τ + γ log odds; with γ > 0 an exact zero stays zero."""

    name: ClassVar[str] = "llo"
    tau: float
    gamma: float
    passes: int = 0
    converged: bool = True

    @property
    def delta(self) -> float:
        """exp τ: what the odds are multiplied by where the model says even odds."""
        return math.exp(min(self.tau, 700.0))

    def apply(self, P: Array) -> Array:
        """Both sides by themselves, so that small ones keep their digits."""
        with np.errstate(divide="ignore"):
            logs = np.log(P, dtype=np.float64)
        eta = np.full(len(P), self.tau)
        if self.gamma != 0:
            eta += self.gamma * (logs[:, 1] - logs[:, 0])
        return np.stack([expit(-eta), expit(eta)], axis=1)

    def terms(self, k: int) -> tuple[Term, ...]:
        """Powers γ, and the shift on the second class."""
        return (Term(1.0, self.gamma * np.eye(2), np.array([0.0, self.tau])),)

    def said(self) -> str:
        """`δ = 0.64, γ = 0.57`."""
        return f"δ = {figure(self.delta)}, γ = {figure(self.gamma)}"

    def to_dict(self) -> dict[str, Any]:
        """τ and γ, the passes that finding them took, and 1 if they are the best (0 if no finite ones are)."""
        return {"tau": self.tau, "gamma": self.gamma, "passes": self.passes, "converged": int(self.converged)}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> LloMap:  # noqa: ARG003 - two classes always
        """Finite numbers."""
        wire.keys(parameters, ("tau", "gamma", "passes", "converged"), "parameters")
        tau, gamma = (wire.number(parameters, key, -WIDE, WIDE) for key in ("tau", "gamma"))
        return cls(tau, gamma, wire.count(parameters, "passes"), bool(wire.count(parameters, "converged")))


@dataclass(frozen=True)
class LloRule(Rule):
    r"""Shift τ = log δ and slope γ of the log odds, by maximum likelihood. Two classes.

    .. math:: \frac{q}{1 - q} = \delta \Big(\frac{p}{1 - p}\Big)^{\gamma}, \qquad
        \min_{\tau, \gamma} \sum_i w_i\,[\log(1 + e^{\eta_i}) - y_i \eta_i], \quad \eta = \tau + \gamma \log\tfrac{p}{1-p}

    δ > 1: the class was said too seldom; γ < 1: the model was too sure, γ > 1 not sure enough, γ < 0: it points the
    wrong way. δ = γ = 1 changes nothing. Convex in τ, though not in δ. Fits take log(max(p, `floor`)); the map has no
    floor. Where the scores separate the outcomes no finite τ and γ are best: one more outcome of either kind is then
    imagined, and `converged` is False. A straight line in log odds sees no other bend: `beta` has one parameter more.
    The notes hold standard errors of τ and γ, the likelihood ratio against the identity and the posterior probability
    of calibration, made of the rows of the fit; with weights, standard errors by the sandwich and no ratio (`cox`
    tests it). Cost: O(n) per pass, about 7 passes. Sources: Turner et al. (2014); Guthrie & Franck (2024).

    >>> said = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> LloRule().fit(said, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8)).said()
    'δ = 1, γ = 0.5'
    """

    name: ClassVar[str] = "llo"
    complexity: ClassVar[int] = 5
    whole_rows: ClassVar[bool] = True
    keeps_argmax: ClassVar[bool] = False
    map: ClassVar[type[Map] | None] = LloMap
    two_classes: ClassVar[bool] = True
    floor: float = FLOOR

    def __post_init__(self) -> None:
        check_floor(self.floor)

    def fit(self, P: Array, Y: Array, w: Array) -> LloMap:
        """Shift and slope of these rows."""
        found = finite(line(log_ratio(P, self.floor)), Y[:, 1], w, UNCHANGED)
        return LloMap(float(found.theta[0]), float(found.theta[1]), found.passes, found.converged)

    def notes(self, fitted: Map, P: Array, Y: Array, w: Array) -> list[Note]:
        """Floored values, what cannot be told, and how sure shift and slope are."""
        assert isinstance(fitted, LloMap)
        said = touched(P, Y, self.floor)
        if not fitted.converged:
            said.append(separated())
        return [*said, *falling(int(fitted.gamma <= 0)), evidence(fitted, P, Y, w, self.floor).note()]


@dataclass(frozen=True, slots=True)
class Evidence:
    """How sure shift and slope are, and how far they are from none; NaN for what cannot be told."""

    tau: float
    gamma: float
    se_tau: float
    se_gamma: float
    ratio: float  # twice the gain in log-likelihood over the identity
    df: int  # directions of which the rows say something: 1 where all scores are equal
    pvalue: float
    posterior: float  # of calibration, by BIC with prior odds of 1
    loglik: tuple[float, float]  # of the identity, and the largest

    def note(self) -> Note:
        """The same in words."""
        text = f"log δ = {figure(self.tau)} (standard error {figure(self.se_tau)}), γ = {figure(self.gamma)} ({figure(self.se_gamma)})"
        if math.isnan(self.se_tau):
            text = "Shift and slope have no standard errors"
        if not math.isnan(self.ratio):
            text += f". Against no change, on the rows of the fit: likelihood ratio {figure(self.ratio)}, χ² with {self.df} df, p={figure(self.pvalue)}; posterior probability of calibration {figure(self.posterior)} by BIC"
        return Note("TN516", text + ".")


def evidence(fitted: LloMap, P: Array, Y: Array, w: Array, floor: float = FLOOR) -> Evidence:
    """What the rows of the fit say about shift and slope. Cost: that of another fit."""
    X, y, even = line(log_ratio(P, floor)), Y[:, 1], bool((w == 1).all())
    top = best(X, y, w, UNCHANGED)
    before, after = -logistic(X, y, w, UNCHANGED).value, -top.value
    ratio = max(2 * (after - before), 0.0) if even else math.nan
    nan = math.nan
    se = _errors(X, y, w, top.theta, even) if fitted.converged and top.told == 2 else (nan, nan)
    posterior = float(expit((top.told * math.log(len(P)) - ratio) / 2))
    return Evidence(
        fitted.tau, fitted.gamma, *se, ratio, top.told, float(chdtrc(top.told, ratio)), posterior, (before, after)
    )


def _errors(X: Array, y: Array, w: Array, theta: Array, even: bool) -> tuple[float, float]:
    """Standard errors by the information; with weights by the sandwich."""
    bread = np.linalg.inv(logistic(X, y, w, theta).hessian)
    if not even:
        scores = (w * (expit(X @ theta) - y))[:, None] * X
        bread = bread @ (scores.T @ scores) @ bread
    return float(np.sqrt(bread[0, 0])), float(np.sqrt(bread[1, 1]))


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
