"""Ensemble temperature scaling: a mixture of tempered, unchanged and uniform probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks, one_hot_shares
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floor_notes,
    logs_of,
    probabilities,
)
from trueodds.calibrators._glm.newton import MAX_BETA, MIN_BETA, local_minimum_beta
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, Term
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, boundary_notes, format_temperature
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
        return MIN_BETA < self.beta < MAX_BETA

    def apply(self, P: Probabilities) -> Array:
        """The mixture of rows over their sums."""
        return apply_in_blocks(self._rows, P)

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
        return f"{format_temperature(self.beta)} for {tempered} %, {unchanged} % unchanged, {uniform} % uniform"

    def to_dict(self) -> dict[str, Any]:
        """β, the shares, and the passes that finding β took."""
        return {"beta": self.beta, "shares": list(self.shares), "n_passes": self.n_passes}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> EnsembleTemperatureMap:  # noqa: ARG003 - any number
        """β within its range, shares that sum to 1."""
        saved_parameters.check_keys(parameters, ("beta", "shares", "n_passes"), "parameters")
        shares = saved_parameters.read_vector(parameters, "shares", 0, 1, size=3)
        if abs(shares.sum() - 1) > 1e-9:
            raise InputError(
                "TO505",
                "In a saved calibrator shares must sum to 1.",
                f"{shares.sum()!r}",
                "Fit it again and save it with .save(path).",
            )
        tempered, unchanged, uniform = shares.tolist()
        return cls(
            saved_parameters.read_number(parameters, "beta", MIN_BETA, MAX_BETA),
            (tempered, unchanged, uniform),
            saved_parameters.read_count(parameters, "n_passes"),
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
            beta, more = local_minimum_beta(partial(_slopes, P, Y, w), beta)
            n_passes += more
        shares = (_by_likelihood if self.loss == "log" else _by_squares)(P, Y, w, beta)
        if shares[2] > 1 - _MIN_UNCHANGED:
            shares = np.array([0.0, _MIN_UNCHANGED, 1 - _MIN_UNCHANGED])
        tempered, unchanged, uniform = shares.tolist()
        return EnsembleTemperatureMap(beta, (tempered, unchanged, uniform), n_passes)

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Floored values, a β at an end of its range, and rows that inform of nothing."""
        assert isinstance(calibration_map, EnsembleTemperatureMap)
        fit_notes = floor_notes(P, Y, self.min_prob) if self.loss == "log" else []
        if calibration_map.shares[2] == 1 - _MIN_UNCHANGED:
            fit_notes.append(
                Note(
                    "TN511",
                    f"No share of what was said does better than the uniform; {_MIN_UNCHANGED:g} of it is kept, so that the order within each row survives.",
                )
            )
        return fit_notes + (boundary_notes(calibration_map.beta) if calibration_map.shares[0] > 0 else [])


def _by_likelihood(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """One row per outcome that came: what each part gave it."""
    likelihoods, mass = [], []
    for p, y, m in iterate_blocks(P, Y, w):
        rows, classes = (np.arange(len(y)), y) if y.ndim == 1 else np.nonzero(y)
        tempered, stated = TemperatureMap(beta).apply(p)[rows, classes], probabilities(p)
        unchanged = stated[rows, classes] / stated.sum(axis=1)[rows]
        likelihoods.append(np.stack([tempered, unchanged, np.full(len(rows), 1 / P.shape[1])], axis=1))
        mass.append(m if y.ndim == 1 else m[rows] * y[rows, classes])
    return maximum_likelihood_weights(np.concatenate(likelihoods), np.concatenate(mass))


def _by_squares(P: Probabilities, Y: Array, w: Array, beta: float) -> Array:
    """The sums of products that the squares consist of."""
    k = P.shape[1]
    G, c = np.zeros((3, 3)), np.zeros(3)
    for p, y, m in iterate_blocks(P, Y, w):
        outcomes = one_hot_shares(y, k)
        stated = probabilities(p)
        unchanged = stated / stated.sum(axis=1, keepdims=True)
        parts = [TemperatureMap(beta).apply(p), unchanged, np.full(p.shape, 1 / k)]
        for i, one in enumerate(parts):
            c[i] += m @ (one * outcomes).sum(axis=1)
            for j, other in enumerate(parts[: i + 1]):
                G[i, j] += m @ (one * other).sum(axis=1)
    return least_squares_weights(np.tril(G) + np.tril(G, -1).T, c)


def _slopes(P: Probabilities, Y: Array, w: Array, beta: float) -> tuple[float, float]:
    """The first and second derivative of the Brier score's sum by β."""
    first = second = 0.0
    for p, y, m in iterate_blocks(P, Y, w):
        q = TemperatureMap(beta).apply(p)
        logs = logs_of(p)
        logs = np.where(np.isneginf(logs), 0.0, logs)  # of a zero, q is 0 for every β, so that its log is idle
        residual = q - one_hot_shares(y, p.shape[1])
        d = logs - (q * logs).sum(axis=1, keepdims=True)
        qd = q * d
        curvature = qd * d - q * (qd * d).sum(axis=1, keepdims=True)
        first += 2 * float(m @ (residual * qd).sum(axis=1))
        second += 2 * float(m @ (qd * qd + residual * curvature).sum(axis=1))
    return first, second


_CLOSE = 1e-10  # of the whole weight, what another forecast must promise to be let in
_MAX_STEPS = 100


def maximum_likelihood_weights(A: Array, w: Array) -> Array:
    r"""Shares v (m,) ≥ 0 with sum 1 of the largest :math:`\sum_r w_r \log(A_r v)`, A (r, m) ≥ 0.

    The likelihood is concave, so they are best once no other forecast gains: Σ w a/(A v) ≤ Σ w for each. Forecasts
    are tried alone, then in pairs, and so on; where several shares are best, those of the first fewest.

    >>> maximum_likelihood_weights(np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]]), np.ones(3)).round(6).tolist()
    [0.416667, 0.583333]
    """
    live = w > 0
    A, w = A[live], w[live]
    total = float(w.sum())
    closest, optimal = np.inf, np.full(A.shape[1], 1 / A.shape[1])
    for face in _faces(A.shape[1]):
        shares = _newton_on_simplex(A[:, face], w)
        q = A[:, face] @ shares
        if not (q > 0).all():
            continue
        short = float(((w / q) @ A).max(initial=total)) / total - 1
        if short < closest:
            closest, optimal = short, _embed(shares, face, A.shape[1])
        if short <= _CLOSE:
            break
    return optimal


def least_squares_weights(G: Array, c: Array) -> Array:
    r"""Shares v (m,) ≥ 0 with sum 1 of the least :math:`v^\top G v - 2c^\top v`, G (m, m) positive semidefinite.

    >>> least_squares_weights(np.eye(2), np.array([0.7, 0.5])).round(6).tolist()
    [0.6, 0.4]
    """
    size = max(float(np.abs(G).max()), float(np.abs(c).max()))
    closest, optimal = np.inf, np.full(len(c), 1 / len(c))
    for face in _faces(len(c)):
        m = len(face)
        bordered = np.ones((m + 1, m + 1))
        bordered[:m, :m], bordered[m, m] = G[np.ix_(face, face)], 0.0
        shares = np.linalg.lstsq(bordered, np.append(c[face], 1.0), rcond=1e-14)[0][:m]
        if (shares < 0).any():
            continue
        v = _embed(shares / shares.sum(), face, len(c))
        slope = G @ v - c
        short = (float(slope[face].min()) - float(slope.min())) / size if size else 0.0
        if short < closest:
            closest, optimal = short, v
        if short <= _CLOSE:
            break
    return optimal


def _faces(m: int) -> list[list[int]]:
    return [list(face) for size in range(1, m + 1) for face in combinations(range(m), size)]


def _embed(shares: Array, face: list[int], m: int) -> Array:
    v = np.zeros(m)
    v[face] = shares
    return v


def _newton_on_simplex(A: Array, w: Array) -> Array:
    """The best shares of all the forecasts by Newton's method; it stays inside, where every share is positive."""
    m = A.shape[1]
    v = np.full(m, 1 / m)
    along = np.eye(m)[:, :-1] - np.eye(m)[:, -1:]  # directions in which the sum stays 1
    if m == 1:
        return v
    q = A @ v
    if not (q > 0).all():
        return v
    value = float(w @ np.log(q))
    for _ in range(_MAX_STEPS):
        slope = ((w / q) @ A) @ along
        if np.abs(slope).max() <= 1e-13 * w.sum():
            break
        tilt = (np.sqrt(w) / q)[:, None] * (A @ along)
        step = along @ np.linalg.lstsq(tilt.T @ tilt, slope, rcond=1e-15)[0]
        falling = step < 0
        length = min(1.0, 0.99 * float((v[falling] / -step[falling]).min(initial=np.inf)))
        while length > 1e-12:
            there = v + length * step
            reached = float(w @ np.log(A @ there))
            if reached >= value - 1e-15 * abs(value):
                break
            length /= 2
        else:
            break
        if np.abs(there - v).max() <= 1e-16:
            break
        v, q, value = there / there.sum(), A @ there, reached
    return v
