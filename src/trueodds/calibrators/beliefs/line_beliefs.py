"""What do all lines of log odds that fit nearly as well say of a row? Belief and plausibility of two classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.calibrators import wire
from trueodds.calibrators.beliefs.contours import Surface, directions
from trueodds.calibrators.beliefs.cubic import on_circle, on_line
from trueodds.calibrators.beliefs.mass import MASS, WIDE, Beliefs, T
from trueodds.core.typing import Array

_ANGLES = 64
_MAX_LOG_ODDS = 1e12  # log odds that stand for infinite ones, so that a slope of 0 times them is 0


@dataclass(frozen=True, eq=False)
class Line:
    r"""σ(τ + γx) with the range of the log odds over each cut of the likelihood.

    A cut is convex, so the ends at x are its support function in the direction (1, x), kept with its slope on a circle
    of directions. Belief is the mean of the lower ends, :math:`\hat q - \int_0^{\hat q} pl_x`, likewise above.
    """

    theta: Array  # (2,) τ, γ
    turn: Array  # (2, 2) to the coordinates in which cuts are nearly round
    support: Array  # (t, a) at angles 2πi/a, over t
    slope: Array  # (t, a) its derivative by the angle

    @classmethod
    def around(cls, surface: Surface) -> Line:
        """The cuts of a likelihood surface around its maximum."""
        angles = 2 * np.pi * np.arange(_ANGLES) / _ANGLES
        support, slope = np.empty((2, len(T), _ANGLES))
        radii: Array | float = 1.0
        for i, t in enumerate(T):
            radii = surface.radii(angles, t**2 / 2, radii)
            points = radii[:, None] * directions(angles)
            normal = surface.gradients(t * points)
            psi = np.arctan2(normal[:, 1], normal[:, 0])
            out = directions(psi)
            h, dh = (points * out).sum(axis=1), points[:, 1] * out[:, 0] - points[:, 0] * out[:, 1]
            psi = np.maximum.accumulate(np.unwrap(psi))
            three = [
                np.concatenate([psi + shift for shift in (-2 * np.pi, 0, 2 * np.pi)]),
                *(np.tile(v, 3) for v in (h, dh)),
            ]
            support[i], slope[i] = on_line(angles, *three)
        return cls(surface.theta, surface.turn, support, slope)

    def point(self, x: Array) -> Array:
        """σ(τ̂ + γ̂x)."""
        q = self._middle(_within(x))
        return np.stack([expit(-q), expit(q)], axis=1)

    def _middle(self, x: Array) -> Array:
        return self.theta[0] + self.theta[1] * x

    def of(self, x: Array) -> Beliefs:
        """Belief, plausibility and pignistic probability at the scores x (n,)."""
        x = _within(x)
        way = np.stack([np.ones(len(x)), x], axis=1) @ self.turn
        length, angle = np.hypot(way[:, 0], way[:, 1]), np.arctan2(way[:, 1], way[:, 0])
        middle = self._middle(x)
        ends = np.zeros((len(x), 2)), np.zeros((len(x), 2))
        for t, mass, h, dh in zip(T, MASS, self.support, self.slope, strict=True):
            for end, sign, turned in zip(ends, (-1, 1), (angle + np.pi, angle), strict=True):
                eta = middle + sign * t * length * on_circle(turned, h, dh)
                end += mass * np.stack([expit(-eta), expit(eta)], axis=1)
        # The log odds of the first class are the negative ones: its belief is made of the upper ends.
        belief = np.stack([ends[1][:, 0], ends[0][:, 1]], axis=1)
        plausibility = np.stack([ends[0][:, 0], ends[1][:, 1]], axis=1)
        return Beliefs(belief, plausibility, (belief + plausibility) / 2)

    def to_dict(self) -> dict[str, Any]:
        """Maximum, coordinates, and the support of the cuts."""
        return {name: getattr(self, name).tolist() for name in ("theta", "turn", "support", "slope")}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Line:
        """Numbers of the right shapes; no cut's end lies inside."""
        wire.keys(parameters, ("theta", "turn", "support", "slope"), "a contour")
        turn = _matrix(parameters, "turn", (2, 2), -WIDE)
        support, slope = (
            _matrix(parameters, key, (len(T), _ANGLES), low) for key, low in (("support", 0.0), ("slope", -WIDE))
        )
        return cls(wire.vector(parameters, "theta", -WIDE, WIDE, size=2), turn, support, slope)


def _within(x: Array) -> Array:
    return np.clip(x, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def _matrix(mapping: Mapping[str, Any], key: str, shape: tuple[int, int], low: float) -> Array:
    rows = mapping[key] if isinstance(mapping[key], list) else []
    sized = {f"{key} row {i}": row for i, row in enumerate(rows)}
    wire.keys(sized, [f"{key} row {i}" for i in range(shape[0])], key)
    return np.stack([wire.vector(sized, row, low, WIDE, size=shape[1]) for row in sized])
