"""Is one temperature too rigid? Tempered, unchanged and uniform rows, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, Term
from trueodds.calibrators.curves.by_score import in_row_blocks
from trueodds.calibrators.likelihood.logs import (
    MIN_PROB,
    MinProb,
    Probabilities,
    logs_of,
    probabilities,
    touched,
)
from trueodds.calibrators.likelihood.parts import as_shares, in_parts
from trueodds.calibrators.likelihood.shares import likeliest, nearest
from trueodds.calibrators.likelihood.steepness import HIGHEST, LOWEST, valley
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, ends, in_words
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

_LOSSES = ("log", "brier")
_MIN_UNCHANGED = (
    1e-6  # what is left to the stated probabilities where the uniform alone is best, so that labels survive
)


@dataclass(frozen=True)
class EnsembleTemperatureMap(CalibrationMap):
    """v₁ p^β/Σp^β + v₂ p + v₃/K."""

    name: ClassVar[str] = "ensemble_temperature"
    takes_logs: ClassVar[bool] = True
    beta: float
    shares: tuple[float, float, float]  # of the tempered row, the row itself, the uniform; with sum 1
    n_passes: int = 0

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether β lies inside its range."""
        return LOWEST < self.beta < HIGHEST

    def apply(self, P: Probabilities) -> Array:
        """The mixture of rows over their sums."""
        return in_row_blocks(self._rows, P)

    def _rows(self, P: Probabilities) -> Array:
        tempered, unchanged, uniform = self.shares
        Q, p = TemperatureMap(self.beta).apply(P), probabilities(P)
        Q *= tempered
        Q += p * (unchanged / p.sum(axis=1, keepdims=True, dtype=np.float64))
        Q += uniform / P.shape[1]
        return Q

    def terms(self, k: int) -> tuple[Term, ...]:
        """softmax(β log p), softmax(log p), softmax(0)."""
        powers = (self.beta, 1.0, 0.0)
        return tuple(Term(v, b * np.eye(k), np.zeros(k)) for v, b in zip(self.shares, powers, strict=True))

    def describe(self) -> str:
        """`T = 3.02 for 63 %, 24 % unchanged, 13 % uniform`."""
        tempered, unchanged, uniform = (round(100 * v) for v in self.shares)
        return f"{in_words(self.beta)} for {tempered} %, {unchanged} % unchanged, {uniform} % uniform"

    def to_dict(self) -> dict[str, Any]:
        """β, the shares, and the passes that finding β took."""
        return {"beta": self.beta, "shares": list(self.shares), "n_passes": self.n_passes}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> EnsembleTemperatureMap:  # noqa: ARG003 - any number
        """β within its range, shares that sum to 1."""
        wire.keys(parameters, ("beta", "shares", "n_passes"), "parameters")
        shares = wire.vector(parameters, "shares", 0, 1, size=3)
        if abs(shares.sum() - 1) > 1e-9:
            raise InputError(
                "TO505",
                "In a saved calibrator shares must sum to 1.",
                f"{shares.sum()!r}",
                "Fit it again and save it with .save(path).",
            )
        tempered, unchanged, uniform = shares.tolist()
        return cls(
            wire.number(parameters, "beta", LOWEST, HIGHEST),
            (tempered, unchanged, uniform),
            wire.count(parameters, "n_passes"),
        )


@dataclass(frozen=True)
class EnsembleTemperatureSpec(CalibratorSpec):
    r"""A mixture of the tempered row, the row itself and the uniform one.

    .. math:: q_i = v_1\,\frac{p_i^\beta}{\sum_k p_{ik}^\beta} + v_2\,p_i + \frac{v_3}{K}, \quad
        v \ge 0, \; v_1 + v_2 + v_3 = 1

    β first, then the shares v given β, both by the same `loss`: `"log"` (both problems are convex) or `"brier"` (β by
    the minimum downhill from the likeliest one; the shares exactly). Where several shares are best, those of the
    fewest parts. The uniform part bounds the loss of surprises that one temperature would answer by making every row
    less sure; for a model that is only too sure, the shares are (1, 0, 0). Keeps the order within each row, hence
    every label. The fit of β by log loss takes log(max(p, `min_prob`)). Cost: that of `temperature` and one more pass;
    with `"brier"` about 10 passes. Source: Zhang, Kailkhura & Han (2020), whose code uses the Brier score throughout.

    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> EnsembleTemperatureSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4)).describe()
    'T = 2.00 for 100 %, 0 % unchanged, 0 % uniform'
    """

    name: ClassVar[str] = "ensemble_temperature"
    complexity: ClassVar[int] = 2
    keeps_argmax: ClassVar[bool] = True
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = EnsembleTemperatureMap
    accepts_raw_arrays: ClassVar[bool] = True
    loss: Annotated[str, OneOf(tuple(_LOSSES))] = "log"
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EnsembleTemperatureMap:
        """The temperature and the shares of these rows."""
        temperature_map = TemperatureSpec(self.min_prob).fit(P, Y, w)
        beta, n_passes = temperature_map.beta, temperature_map.n_passes
        if self.loss == "brier":
            beta, more = valley(partial(_slopes, P, Y, w), beta)
            n_passes += more
        shares = (_by_likelihood if self.loss == "log" else _by_squares)(P, Y, w, beta)
        if shares[2] > 1 - _MIN_UNCHANGED:
            shares = np.array([0.0, _MIN_UNCHANGED, 1 - _MIN_UNCHANGED])
        tempered, unchanged, uniform = shares.tolist()
        return EnsembleTemperatureMap(beta, (tempered, unchanged, uniform), n_passes)

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Floored values, a β at an end of its range, and rows that inform of nothing."""
        assert isinstance(calibration_map, EnsembleTemperatureMap)
        fit_notes = touched(P, Y, self.min_prob) if self.loss == "log" else []
        if calibration_map.shares[2] == 1 - _MIN_UNCHANGED:
            fit_notes.append(
                Note(
                    "TN511",
                    f"No share of what was said does better than the uniform; {_MIN_UNCHANGED:g} of it is kept, so that the order within each row survives.",
                )
            )
        return fit_notes + (ends(calibration_map.beta) if calibration_map.shares[0] > 0 else [])


def _by_likelihood(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """One row per outcome that came: what each part gave it."""
    likelihoods, mass = [], []
    for p, y, m in in_parts(P, Y, w):
        rows, classes = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)
        tempered, stated = TemperatureMap(beta).apply(p)[rows, classes], probabilities(p)
        unchanged = stated[rows, classes] / stated.sum(axis=1)[rows]
        likelihoods.append(np.stack([tempered, unchanged, np.full(len(rows), 1 / P.shape[1])], axis=1))
        mass.append(m if y.ndim == 1 else m[rows] * y[rows, classes])
    return likeliest(np.concatenate(likelihoods), np.concatenate(mass))


def _by_squares(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """The sums of products that the squares consist of."""
    k = P.shape[1]
    G, c = np.zeros((3, 3)), np.zeros(3)
    for p, y, m in in_parts(P, Y, w):
        outcomes = as_shares(y, k)
        stated = probabilities(p)
        unchanged = stated / stated.sum(axis=1, keepdims=True)
        parts = [TemperatureMap(beta).apply(p), unchanged, np.full(p.shape, 1 / k)]
        for i, one in enumerate(parts):
            c[i] += m @ (one * outcomes).sum(axis=1)
            for j, other in enumerate(parts[: i + 1]):
                G[i, j] += m @ (one * other).sum(axis=1)
    return nearest(np.tril(G) + np.tril(G, -1).T, c)


def _slopes(P: Probabilities, Y: Array, w: Array, beta: float) -> tuple[float, float]:
    """The first and second derivative of the Brier score's sum by β."""
    first = second = 0.0
    for p, y, m in in_parts(P, Y, w):
        q = TemperatureMap(beta).apply(p)
        logs = logs_of(p)
        logs = np.where(np.isneginf(logs), 0.0, logs)  # of a zero, q is 0 for every β, so that its log is idle
        residual = q - as_shares(y, p.shape[1])
        d = logs - (q * logs).sum(axis=1, keepdims=True)
        qd = q * d
        curvature = qd * d - q * (qd * d).sum(axis=1, keepdims=True)
        first += 2 * float(m @ (residual * qd).sum(axis=1))
        second += 2 * float(m @ (qd * qd + residual * curvature).sum(axis=1))
    return first, second
