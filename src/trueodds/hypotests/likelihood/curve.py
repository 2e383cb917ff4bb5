"""Which curve of log odds on stated log odds was found, and how likely are those around it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from trueodds.core.typing import Array
from trueodds.hypotests.likelihood.logistic import Fit
from trueodds.hypotests.likelihood.logits import Logits, Powers
from trueodds.hypotests.likelihood.stepwise import NullDistribution


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """The polynomial of the stated log odds that forward selection stopped at."""

    logits: Logits
    powers: Powers
    fit: Fit
    degree: int
    wy: Array  # (n,)
    reached: float  # D
    null_distribution: NullDistribution | None  # its null law given the degree

    @property
    def probabilities(self) -> Array:
        """What the curve says of each row."""
        return self.fit.probabilities(self.powers.columns, self.logits.x)

    @property
    def parts(self) -> dict[str, dict[str, float]]:
        """The degree, and the coefficients of 1, x, x², …; NaN where no finite ones are best."""
        b = self.powers.coefficients(self.fit.beta[0])
        if not self.fit.finite[0]:
            b = np.full(len(b), np.nan)
        return {
            "curve": {"degree": float(self.degree), **{f"b{j}": float(coefficient) for j, coefficient in enumerate(b)}}
        }

    def likelihood(self, beta: Array) -> tuple[Array, Array, Array]:
        """The log-likelihood (draws,) above the null's, its slope and curvature, at each β (draws, m)."""
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        move = beta @ columns.T
        q = expit(logits.x + move)
        value = move @ self.wy - (np.logaddexp(0.0, logits.x + move) - np.logaddexp(0.0, logits.x)) @ logits.w
        hessian = np.einsum("dn,ni,nj->dij", logits.w * q * (1 - q), columns, columns, optimize=True)
        return value, (self.wy - logits.w * q) @ columns, hessian

    def inside(self, drop: float) -> Array:
        """The maximum or, where it is at infinity, the first β on the straight way there that is within `drop`."""
        maximum, low, high = self.fit.beta[0], 0.0, 1.0
        for _ in range(0 if self.fit.finite[0] else 50):
            middle = (low + high) / 2
            near = self.fit.gain[0] - self.likelihood(middle * maximum[None])[0][0] <= drop
            low, high = (low, middle) if near else (middle, high)
        return high * maximum

    def sandwich_ratio(self, at: Array) -> Array:
        """The variance of each a·β̂ by the sandwich, over the one by the information."""
        beta = self.fit.beta
        columns, logits = self.powers.columns[:, : beta.shape[1]], self.logits
        q = self.fit.probabilities(columns, logits.x)
        bread, meat = (columns.T @ ((q * (1 - q) * weight)[:, None] * columns) for weight in (logits.w, logits.ww))
        turned = np.linalg.solve(bread, at.T)
        return np.einsum("mg,mk,kg->g", turned, meat, turned) / (at.T * turned).sum(0)
