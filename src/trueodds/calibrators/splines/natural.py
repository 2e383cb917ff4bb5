"""What is the smoothest curve through given points? The natural cubic spline, a line beyond its ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.core.typing import Array

LEVEL = 1e-10  # slopes that are none: over all log odds that a float can say they come to 1e-7


@dataclass(frozen=True, eq=False)
class Natural:
    """The natural cubic spline through points.

    >>> Natural(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0]))(np.array([-1.0, 0.5, 1.0])).tolist()
    [-1.5, 0.6875, 1.0]
    """

    knots: Array  # (m,) strictly rising, m ≥ 2
    values: Array  # (m,)

    def __call__(self, x: Array) -> Array:
        """The values at x (n,); at an infinite one, where the line at that end leads."""
        low, high = self.knots[0], self.knots[-1]
        j, u, width = self._place(np.clip(x, low, high))
        out = self.values[j] + u * (self.values[j + 1] - self.values[j])
        down = 1 - u
        out += (
            width
            * width
            / 6
            * (self.second_derivatives[j] * (down**3 - down) + self.second_derivatives[j + 1] * (u**3 - u))
        )
        first, last = self.slope(self.knots[[0, -1]]).tolist()
        # A level end stays level, however far, and rounding does not tilt it.
        if abs(first) > LEVEL:
            out += first * np.minimum(x - low, 0.0)
        if abs(last) > LEVEL:
            out += last * np.maximum(x - high, 0.0)
        return out

    def slope(self, x: Array) -> Array:
        """The first derivative at x (n,); beyond the knots that of the lines."""
        j, u, width = self._place(np.clip(x, self.knots[0], self.knots[-1]))
        rise = (self.values[j + 1] - self.values[j]) / width
        return rise + width / 6 * (
            self.second_derivatives[j + 1] * (3 * u**2 - 1) - self.second_derivatives[j] * (3 * (1 - u) ** 2 - 1)
        )

    @cached_property
    def second_derivatives(self) -> Array:
        """The second derivatives at the knots, (m,)."""
        return second_derivative_matrix(self.knots) @ self.values

    def _place(self, x: Array) -> tuple[Array, Array, Array]:
        j = np.clip(np.searchsorted(self.knots, x, "right") - 1, 0, len(self.knots) - 2)
        width = np.diff(self.knots)[j]
        return j, (x - self.knots[j]) / width, width


def second_derivative_matrix(knots: Array) -> Array:
    """What makes the second derivatives at the knots out of the values there, (m, m); at both ends they are 0."""
    Q, R = bands(knots)
    out = np.zeros((len(knots), len(knots)))
    out[1:-1] = np.linalg.solve(R, Q.T)
    return out


def bands(knots: Array) -> tuple[Array, Array]:
    r"""Q (m, m − 2) and R (m − 2, m − 2), by which values f and inner second derivatives γ belong together.

    .. math:: Q^\top f = R\gamma, \quad \int f''^2 = \gamma^\top R\gamma = f^\top Q R^{-1} Q^\top f

    Source: Green & Silverman (1994), section 2.1.
    """
    h, m = np.diff(knots), len(knots)
    i = np.arange(m - 2)
    Q, R = np.zeros((m, m - 2)), np.zeros((m - 2, m - 2))
    Q[i, i], Q[i + 1, i], Q[i + 2, i] = 1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]
    R[i, i] = (h[:-1] + h[1:]) / 3
    R[i[1:], i[:-1]] = R[i[:-1], i[1:]] = h[1:-1] / 6
    return Q, R


def roughness(knots: Array) -> Array:
    r"""K with :math:`\int f''(x)^2\,dx = f^\top K f` for the spline through the values f at the knots, (m, m)."""
    return bands(knots)[0] @ second_derivative_matrix(knots)[1:-1]
