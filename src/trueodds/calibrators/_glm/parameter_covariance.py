"""Covariance of fitted parameters (sandwich estimator, jackknife), and Wald statistics with their distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtr, chdtrc, fdtr, fdtrc, stdtrit

from trueodds.core.typing import Array

NORMAL_CRITICAL_VALUE = 1.959963984540054  # standard errors to the ends of a 95 % interval: Φ⁻¹(0.975)
MIN_STD = 1e-100  # smaller standard deviations count as 0: their inverse squared would overflow
RANK_TOLERANCE = 1e-10  # relative to the largest variance: directions below it are not identifiable


def upper_tail(statistic: float, df: int, effective_units: float | None = None) -> float:
    """P(χ² > statistic), or P(T² > statistic) if the covariance was estimated from `effective_units`; NaN if df is 0.

    Hotelling's T² for d parameters and G independent units is such that T² (G − d)/((G − 1) d) has an F distribution
    with d and G − d degrees of freedom.

    >>> round(upper_tail(5.991465, 2), 6), round(upper_tail(5.991465, 2, 20), 6)
    (0.05, 0.084851)
    """
    return _tail(chdtrc, fdtrc, statistic, df, effective_units)


def lower_tail(statistic: float, df: int, effective_units: float | None = None) -> float:
    """P(χ² ≤ statistic), or P(T² ≤ statistic) as for `upper_tail`, with full relative precision."""
    return _tail(chdtr, fdtr, statistic, df, effective_units)


def _tail(chi_square: Any, f_tail: Any, statistic: float, df: int, effective_units: float | None) -> float:
    """A tail of χ² or of T², from these functions of SciPy for the same tail of χ² and of F."""
    if not df or (effective_units is not None and effective_units <= df):
        return math.nan
    if effective_units is None:
        return float(chi_square(df, statistic))
    return float(f_tail(df, effective_units - df, statistic * (effective_units - df) / (df * (effective_units - 1))))


def critical_value(effective_units: float | None = None) -> float:
    """Number of standard errors to the ends of a 95 % interval: that of the normal distribution or of Student's t.

    The latter applies if the standard errors were estimated from `effective_units`; NaN for a single unit.

    >>> round(critical_value(), 6), round(critical_value(11), 6)
    (1.959964, 2.228139)
    """
    if effective_units is None:
        return NORMAL_CRITICAL_VALUE
    return float(stdtrit(effective_units - 1, 0.975)) if effective_units > 1 else math.nan


def whitening_matrix(V: Array) -> Array:
    """W (d, rank) with WᵀVW = 1 for a covariance V (d, d), without the null directions of V.

    >>> whitening_matrix(np.diag([4.0, 0.0])).tolist()
    [[0.5], [0.0]]
    """
    std = np.sqrt(V.diagonal())
    scale = np.divide(1.0, std, out=np.zeros(len(std)), where=std > MIN_STD)
    eigenvalues, eigenvectors = np.linalg.eigh(V * np.outer(scale, scale))
    has_variance = eigenvalues > RANK_TOLERANCE * max(float(eigenvalues.max(initial=0.0)), 1e-300)
    return np.asarray(scale[:, None] * eigenvectors[:, has_variance] / np.sqrt(eigenvalues[has_variance]))


def wald_statistic(deviation: Array, V: Array) -> float:
    """Wald statistic dᵀV⁺d of a deviation (d,) with covariance V (d, d).

    >>> round(wald_statistic(np.array([1.0, 1.0]), np.diag([4.0, 1.0])), 9)
    1.25
    """
    return float(((deviation @ whitening_matrix(V)) ** 2).sum())


_CG_TOLERANCE = 1e-12  # of the squared norm of a unit's score: residual at which conjugate gradients stop
_MAX_CG_STEPS = 60  # steps of conjugate gradients


@dataclass(frozen=True, slots=True, eq=False)
class ParameterCovariance:
    """Covariance of the fitted parameters, and how many units it was estimated from."""

    covariance: Array  # (d, d) of (γ, τ) of each class in turn
    effective_units: float | None = None  # effective number of units; None if the covariance is model-based


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVectors:
    """Gradient contributions of the rows at the fitted parameters, for the m classes that have parameters.

    The d = 2m parameters are γ and τ of each class in turn, in all results and arguments.
    """

    x: Array  # (n, m) log odds
    q: Array  # (n, m) fitted probabilities
    y: Array  # (n, m) outcome shares
    w: Array  # (n,) weights

    def unit_sums(self, units: IndependentUnits) -> Array:
        """The gradient contribution of each unit, (G, d)."""
        return units.sums(self.x, self.w[:, None] * (self.q - self.y))

    def hessian_vector_product(self, units: IndependentUnits, directions: Array) -> Array:
        """The Hessian of each unit's rows times its direction, (G, d); `directions` is (G, d)."""
        row_directions = directions[units.unit_of_row]
        eta_changes = self.x * row_directions[:, ::2] + row_directions[:, 1::2]
        eta_changes -= (self.q * eta_changes).sum(axis=1, keepdims=True)
        return units.sums(self.x, self.w[:, None] * self.q * eta_changes)

    def leverages(self, units: IndependentUnits, bread: Array) -> Array:
        """Leverage of each unit, (G,): the trace of its Hessian times the inverse total Hessian `bread` (d, d)."""
        x, q = self.x, self.q
        variances = bread.diagonal()
        covariances = bread[np.arange(0, len(bread), 2), np.arange(1, len(bread), 2)]
        second_moments = (q * (x * x * variances[::2] + 2 * x * covariances + variances[1::2])).sum(axis=1)
        mean_features = np.stack([q * x, q], axis=2).reshape(len(x), -1)
        return units.totals(
            self.w * np.maximum(second_moments - ((mean_features @ bread) * mean_features).sum(axis=1), 0.0)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ShiftScores:
    """Gradient contributions of the rows at a fitted shift of the log odds, which is the only parameter."""

    q: Array  # (n,) fitted probabilities
    y: Array  # (n,) outcomes
    w: Array  # (n,) weights

    def unit_sums(self, units: IndependentUnits) -> Array:
        return units.totals(self.w * (self.q - self.y))[:, None]

    def hessian_vector_product(self, units: IndependentUnits, directions: Array) -> Array:
        return self._curvatures(units)[:, None] * directions

    def leverages(self, units: IndependentUnits, bread: Array) -> Array:
        """Leverage of each unit, (G,): its share of the second derivative, whose inverse is `bread` (1, 1)."""
        return self._curvatures(units) * bread[0, 0]

    def _curvatures(self, units: IndependentUnits) -> Array:
        """The second derivative of each unit's rows, (G,)."""
        return units.totals(self.w * self.q * (1 - self.q))


def sandwich_covariance(bread: Array, squared_weight_hessian: Array) -> ParameterCovariance:
    """Sandwich covariance with the model's variance, from two matrices (d, d).

    `bread` is the inverse of the Hessian, penalty included, and `squared_weight_hessian` the Hessian with squared
    weights.
    """
    return ParameterCovariance(bread @ squared_weight_hessian @ bread)


def jackknife_covariance(
    bread: Array, hessian: Array, scores: ScoreVectors | ShiftScores, units: IndependentUnits
) -> ParameterCovariance:
    r"""Jackknife covariance: the variation of the parameters when one unit is left out.

    `hessian` (d, d) is the total Hessian H of the loss, penalty included, and `bread` its inverse. `scores` are the
    gradient contributions of the rows at the fitted parameters, and `units` the G rows or clusters.

    .. math:: V = \frac{G-1}{G} \sum_g z_g z_g^\top, \qquad z_g = (H - B_g)^{-1} s_g

    Here s is the score (gradient) of a unit, B its Hessian, and z the step of the parameters when it is left out. The
    fit adapts to a unit of high leverage, which makes its own score too small; leaving it out corrects that. The steps
    are found by conjugate gradients, preconditioned by H, for all units together: in one iteration if no unit has high
    leverage, in at most d otherwise.

    The covariance of few or unequal units is itself uncertain. It is about as uncertain as that of G* equal units,
    where G* is the smaller of two numbers. For units of unequal sizes it is (Σh)²/Σh² with the leverages h. For single
    dominating units it is (d + 2)d/Σ|u|⁴ with the whitened steps u, which is the number of units if steps are normal.

    Cost: O(nK) per step, O(nK²) for h. Source: Bell & McCaffrey (2002). The effective number of units is our own.
    """
    unit_scores = scores.unit_sums(units)
    z = _leave_one_out_steps(bread, hessian, scores, units, unit_scores)
    V = z.T @ z / units.bias_correction
    leverages = scores.leverages(units, bread)
    squared_norms = ((z @ whitening_matrix(z.T @ z)) ** 2).sum(axis=1)
    d = len(bread)
    sum_of_fourth_powers, sum_of_squared_leverages = float((squared_norms**2).sum()), float((leverages**2).sum())
    leverage_units = float(leverages.sum()) ** 2 / sum_of_squared_leverages if sum_of_squared_leverages > 0 else 0.0
    kurtosis_units = (d + 2) * d / sum_of_fourth_powers if sum_of_fourth_powers > 0 else 0.0
    return ParameterCovariance((V + V.T) / 2, min(leverage_units, kurtosis_units, float(units.n_units)))


def _leave_one_out_steps(
    bread: Array, hessian: Array, scores: ScoreVectors | ShiftScores, units: IndependentUnits, unit_scores: Array
) -> Array:
    """Steps (G, d) of the parameters when each unit is left out, from the score (G, d) of each unit.

    Solves (H − B) z = s for all units at once, by conjugate gradients with the preconditioner `bread` = H⁻¹.
    """
    z, residuals = np.zeros_like(unit_scores), unit_scores.copy()
    preconditioned = residuals @ bread
    directions, squared_norms = preconditioned, (residuals * preconditioned).sum(axis=1)
    norm_tolerances = _CG_TOLERANCE * squared_norms
    for _ in range(min(len(bread) + 2, _MAX_CG_STEPS)):
        hessian_products = directions @ hessian
        reduced_products = hessian_products - scores.hessian_vector_product(units, directions)
        curvatures = (reduced_products * directions).sum(axis=1)
        full_curvatures = (hessian_products * directions).sum(axis=1)
        # A direction that one unit alone determines has no curvature without it, and no finite step.
        step_sizes = np.divide(
            squared_norms,
            curvatures,
            out=np.zeros_like(squared_norms),
            where=curvatures > _CG_TOLERANCE * full_curvatures,
        )
        z += step_sizes[:, None] * directions
        residuals -= step_sizes[:, None] * reduced_products
        preconditioned = residuals @ bread
        previous_norms, squared_norms = squared_norms, (residuals * preconditioned).sum(axis=1)
        if (squared_norms <= norm_tolerances).all() or not step_sizes.any():
            break
        norm_ratios = np.divide(
            squared_norms, previous_norms, out=np.zeros_like(squared_norms), where=previous_norms > 0
        )
        directions = preconditioned + norm_ratios[:, None] * directions
    return z


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Independent units: rows, or clusters of rows."""

    unit_of_row: Array  # (n,) the number of each row's unit
    n_units: int  # G, those with weight

    @classmethod
    def from_rows(cls, w: Array) -> IndependentUnits:
        return cls(np.arange(len(w)), int((w > 0).sum()))

    @classmethod
    def from_clusters(cls, w: Array, cluster: Array) -> IndependentUnits:
        names, unit_of_row = np.unique(cluster, return_inverse=True)
        return cls(unit_of_row.reshape(-1), int((np.bincount(unit_of_row.reshape(-1), w > 0, len(names)) > 0).sum()))

    @property
    def bias_correction(self) -> float:
        """G/(G − 1), which corrects the variance for the estimated mean."""
        return self.n_units / (self.n_units - 1) if self.n_units > 1 else 1.0

    def totals(self, values: Array) -> Array:
        """The sum of the values (n,) of the rows of each unit, (G,)."""
        return np.bincount(self.unit_of_row, values, int(self.unit_of_row.max(initial=0)) + 1)

    def sums(self, x: Array, residuals: Array) -> Array:
        """Σ r x and Σ r of each unit, (G, 2m), for x and residuals r (n, m); both columns of a class are adjacent."""
        size = int(self.unit_of_row.max(initial=0)) + 1
        unit_sums = np.empty((size, 2 * x.shape[1]))
        for j, (column, r) in enumerate(zip(x.T, residuals.T, strict=True)):
            unit_sums[:, 2 * j] = np.bincount(self.unit_of_row, r * column, size)
            unit_sums[:, 2 * j + 1] = np.bincount(self.unit_of_row, r, size)
        return unit_sums
