"""Likelihood contours of the shift τ and the slope γ of binary log odds, computed from rows pooled by their score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from trueodds.binning.sorted_scores import group_starts
from trueodds.core.typing import Array

MAX_SCORE_GROUPS = 1 << 11  # largest number of groups of neighboring scores, which limits the cost of a contour
_INCREASE_TOLERANCE = 1e-10  # relative, of an increase of the loss; sums over 1e6 rows have no more digits
_EQUAL_SCORES_TOLERANCE = 1e-18  # relative variance below which scores are equal
_MAX_NEWTON_STEPS = 200  # toward a point of the contour


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCells:
    """Rows pooled by their score, which is the predicted log odds or probability."""

    x: Array  # (m,) scores, increasing
    w: Array  # (m,) Σw > 0 at each score
    wy: Array  # (m,) Σwy at each score

    def pool_neighbors(self) -> ScoreCells:
        """Pool the scores into at most `MAX_SCORE_GROUPS` groups of neighbors of about equal weight, at their means."""
        if len(self.x) <= MAX_SCORE_GROUPS:
            return self
        starts = group_starts(self.w, MAX_SCORE_GROUPS)
        w, wx, wy = (np.add.reduceat(values, starts) for values in (self.w, self.w * self.x, self.wy))
        return ScoreCells(wx / w, w, wy)


def group_by_score(x: Array, y: Array, w: Array) -> ScoreCells:
    """Pool rows x, y, w (n,) with positive weight by increasing distinct score, so that their order does not matter.

    >>> group_by_score(np.array([2.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0]), np.ones(3)).w.tolist()
    [1.0, 2.0]
    """
    has_weight = w > 0
    scores, score_index = np.unique(x[has_weight], return_inverse=True)
    return ScoreCells(scores, np.bincount(score_index, w[has_weight]), np.bincount(score_index, (w * y)[has_weight]))


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodSurface:
    r"""The loss F, minus the log-likelihood of log odds :math:`\tau + \gamma x`, around its minimum θ.

    The coordinates β are scaled by the curvature, so that F rises by about :math:`|\beta|^2 / 2` and its contours are
    nearly circles: :math:`(\tau, \gamma) = \theta + T\beta`. If all scores are equal the slope is fixed.
    """

    theta: Array  # (2,) τ and γ at the minimum
    beta_to_theta: Array  # (2, 2) T, the linear map from β to changes of (τ, γ)
    eta: Array  # (m,) log odds at the minimum
    eta_by_beta: Array  # (2, m) derivatives of the log odds by β
    rows: ScoreCells  # the rows, pooled by score
    slope_fixed: bool  # whether the rows do not determine the slope; F then has curvature 1 along it

    @classmethod
    def around_minimum(cls, rows: ScoreCells, theta: Array) -> LikelihoodSurface:
        """The surface around the minimum θ (2,) of the negative log-likelihood of these rows."""
        total_weight = float(rows.w.sum())
        mean = float(rows.w @ rows.x) / total_weight
        eta = theta[0] + theta[1] * rows.x
        curvature = rows.w * expit(eta) * expit(-eta)
        # β₁ changes the log odds at the curvature-weighted mean score, β₂ the slope around it: these are uncorrelated.
        center = float(curvature @ rows.x / curvature.sum()) if len(rows.x) > 1 else mean
        centered = rows.x - center
        shift_curvature, slope_curvature = float(curvature.sum()), float(curvature @ centered**2)
        slope_fixed = not slope_curvature > _EQUAL_SCORES_TOLERANCE * float(curvature @ rows.x**2)
        a, b = 1 / np.sqrt(shift_curvature), 0.0 if slope_fixed else 1 / np.sqrt(slope_curvature)
        return cls(
            theta,
            np.array([[a, -center * b], [0.0, b]]),
            eta,
            np.stack([np.full(len(centered), a), centered * b]),
            rows,
            slope_fixed,
        )

    def to_tau_gamma(self, beta: Array) -> Array:
        return self.theta + beta @ self.beta_to_theta.T

    def radii(self, angles: Array, loss_increase: float, start: Array | float = 1.0) -> Array:
        """Distance |β| in the direction of each angle at which F has risen by `loss_increase`, (a,).

        It is in units of √(2 loss_increase), which it would be if F were quadratic. `start` is a guess in these units.
        F is convex, so Newton's method from outside the contour is monotone.
        """
        directions = unit_vectors(angles)
        steps = directions @ self.eta_by_beta  # (a, m) derivatives of the log odds along each direction
        fixed_slope_curvature = directions[:, 1] ** 2 * float(self.slope_fixed)
        unit = np.sqrt(2 * loss_increase)
        r = np.full(len(angles), unit) * start
        softplus_at_minimum, q = _softplus_and_derivative(self.eta)
        expected = self.rows.w * q  # at a minimum observed and fitted sums are equal
        for _ in range(_MAX_NEWTON_STEPS):
            softplus, q = _softplus_and_derivative(self.eta + r[:, None] * steps)
            increases = (
                (softplus - softplus_at_minimum) @ self.rows.w
                - r * (steps @ expected)
                + fixed_slope_curvature * r**2 / 2
            )
            slopes = (steps * (self.rows.w * q - expected)).sum(axis=1) + fixed_slope_curvature * r
            if (np.abs(increases - loss_increase) <= _INCREASE_TOLERANCE * (loss_increase + 1)).all():
                break
            # From inside, a step leads outside; a step from outside does not go beyond r/16.
            r = np.maximum(r - (increases - loss_increase) / np.maximum(slopes, 1e-300), r / 16)
        return r / unit

    def gradients(self, beta: Array) -> Array:
        gradient = (self.rows.w * (expit(self.eta + beta @ self.eta_by_beta) - expit(self.eta))) @ self.eta_by_beta.T
        gradient[:, 1] += float(self.slope_fixed) * beta[:, 1]
        return gradient


def _softplus_and_derivative(eta: Array) -> tuple[Array, Array]:
    """log(1 + exp η) and its derivative, the probability 1/(1 + exp(−η)), from a single exponential."""
    e = np.exp(-np.abs(eta))
    return np.log1p(e) + np.maximum(eta, 0), np.where(eta >= 0, 1, e) / (1 + e)


def unit_vectors(angles: Array) -> Array:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
