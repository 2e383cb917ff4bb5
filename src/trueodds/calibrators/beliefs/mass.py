"""What do all parameters that fit nearly as well say of a row? Belief and plausibility from a likelihood's contour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.calibrators import wire
from trueodds.calibrators.beliefs.cubic import on_line
from trueodds.calibrators.likelihood.logs import softmax
from trueodds.core.typing import Array
from trueodds.tallies.likelihood import Likelihood

# The level γ of a cut is uniform. With γ = exp(−t²/2) ends of cuts are smooth in t, so few nodes are enough.
MAX_T = 6.0
T, MASS = np.polynomial.legendre.leggauss(16)
T = (T + 1) * MAX_T / 2
MASS = MASS * T * np.exp(-(T**2) / 2)
MASS /= MASS.sum()

_GAP = 0.75  # of t, between the places where the likelihood is looked at
_BLOCK = 1 << 15
WIDE = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Per class, (n, K): what is certain of it, what is not ruled out, and ignorance split evenly."""

    belief: Array
    plausibility: Array
    pignistic: Array


@dataclass(frozen=True, eq=False)
class OneSlope:
    r"""softmax(θ s) with the ends of the cuts {θ: L(θ) ≥ γ L(θ̂)}, at the nodes of γ.

    With γ and Z uniform the focal set is :math:`\{j : F_{j-1}(\theta) \le Z < F_j(\theta)\}` over all θ of the cut,
    F being the cumulative probabilities. It is an interval of classes, so the ends of F over the cut say all.
    """

    theta: float
    low: Array  # (t,) falling
    high: Array  # (t,) rising

    @classmethod
    def around(cls, theta: float, sums: Callable[[float], Likelihood]) -> tuple[OneSlope, int]:
        """The cuts around the θ of largest likelihood, and the passes that finding them took."""
        sides = [_trace_cut_ends(theta, sums, sign) for sign in (-1.0, 1.0)]
        return cls(theta, sides[0][0], sides[1][0]), sides[0][1] + sides[1][1]

    @classmethod
    def alone(cls, theta: float) -> OneSlope:
        """No other θ than this one, where the rows tell none from another."""
        return cls(theta, *np.full((2, len(T)), theta))

    def point(self, S: Array) -> Array:
        """softmax(θ̂ s)."""
        return _at(self.theta, S)

    def of(self, S: Array) -> Beliefs:
        """Belief, plausibility and pignistic probability of the scores S (n, K)."""
        parts = [np.empty(S.shape) for _ in range(3)]
        rows = max(1, _BLOCK // S.shape[1])
        for start in range(0, len(S), rows):
            part = slice(start, start + rows)
            for out, values in zip(parts, self._block(S[part]), strict=True):
                out[part] = values
        return Beliefs(*parts)

    def _block(self, S: Array) -> tuple[Array, Array, Array]:
        belief, plausibility, pignistic = (np.zeros(S.shape) for _ in range(3))
        lower = upper = _cumulative(self.theta, S)
        for low, high, mass in zip(self.low, self.high, MASS, strict=True):
            ends = [_cumulative(theta, S) for theta in (low, high)]
            lower, upper = np.minimum(lower, np.minimum(*ends)), np.maximum(upper, np.maximum(*ends))
            belief += mass * np.maximum(lower[:, 1:] - upper[:, :-1], 0.0)
            plausibility += mass * (upper[:, 1:] - lower[:, :-1])
            pignistic += mass * _shared(lower[:, :-1], upper[:, 1:])
        return belief, plausibility, pignistic

    def to_dict(self) -> dict[str, Any]:
        """θ̂ and the ends of the cuts."""
        return {"theta": self.theta, "low": self.low.tolist(), "high": self.high.tolist()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> OneSlope:
        """Ends below and above θ̂."""
        wire.keys(parameters, ("theta", "low", "high"), "a contour")
        theta = wire.number(parameters, "theta", -WIDE, WIDE)
        low = wire.vector(parameters, "low", -WIDE, theta, size=len(T))
        return cls(theta, low, wire.vector(parameters, "high", theta, WIDE, size=len(T)))


def _at(theta: float, S: Array) -> Array:
    return softmax(theta * S if theta != 0 else np.zeros(S.shape))


def _cumulative(theta: float, S: Array) -> Array:
    """0, F₁, …, F_K = 1, (n, K + 1)."""
    F = np.zeros((len(S), S.shape[1] + 1))
    np.minimum(np.cumsum(_at(theta, S), axis=1), 1.0, out=F[:, 1:])
    F[:, -1] = 1.0
    return F


def _shared(start: Array, end: Array) -> Array:
    """Of the intervals [start, end] of Z in each row (n, K), which cover [0, 1]: each one's share where some overlap."""
    k = start.shape[1]
    places = np.concatenate([start, end], axis=1)
    order = places.argsort(axis=1, kind="stable")
    sorted_places = np.take_along_axis(places, order, axis=1)
    open_there = np.where(order < k, 1, -1).cumsum(axis=1)[:, :-1]
    shares = np.diff(sorted_places, axis=1) / np.maximum(open_there, 1)
    until = np.zeros(places.shape)
    np.put_along_axis(until, order[:, 1:], shares.cumsum(axis=1), axis=1)
    return until[:, k:] - until[:, :k]


def _trace_cut_ends(theta: float, sums: Callable[[float], Likelihood], sign: float) -> tuple[Array, int]:
    """The end of each cut on one side, from places about `_GAP` of t apart; dθ/dt = t / F′ joins them."""
    at = sums(theta)
    base, current = at.value, theta
    t, places, slopes = [0.0], [theta], [sign / float(np.sqrt(at.hessian[0, 0]))]
    for _ in range(200):
        rise = ((t[-1] + _GAP) ** 2 - t[-1] ** 2) / 2
        g, h = abs(float(at.gradient[0])), float(at.hessian[0, 0])
        current += sign * 2 * rise / (g + float(np.sqrt(g * g + 2 * h * rise)))
        at = sums(current)
        t.append(float(np.sqrt(2 * max(at.value - base, 0.0))))
        places.append(current)
        slopes.append(t[-1] / float(at.gradient[0]))
        if t[-1] >= MAX_T:
            break
    ends = on_line(T, np.array(t), np.array(places), np.array(slopes))[0]
    return np.maximum(ends, theta) if sign > 0 else np.minimum(ends, theta), len(t) - 1
