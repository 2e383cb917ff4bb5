"""Covariance of fitted parameters: the sandwich estimator, and the jackknife over rows or clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.calibrators._glm.wald import whitening_matrix
from trueodds.core.typing import Array

_CG_TOLERANCE = 1e-12  # of the squared norm of a unit's score: residual at which conjugate gradients stop
_MAX_CG_STEPS = 60  # steps of conjugate gradients


@dataclass(frozen=True, slots=True, eq=False)
class ParameterCovariance:
    """Covariance of the fitted parameters, and how many units it was estimated from."""

    covariance: Array  # (d, d) of (γ, τ) of each class in turn
    effective_units: float | None = None  # effective number of units; None if the covariance is model-based


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVectors:
    """Gradient contributions of the rows at the fitted parameters, for the classes that have parameters."""

    x: Array  # (n, m) log odds
    q: Array  # (n, m) fitted probabilities
    y: Array  # (n, m) outcome shares
    w: Array  # (n,) weights

    def hessian_vector_product(self, units: IndependentUnits, directions: Array) -> Array:
        """The Hessian of each unit's rows times its direction, (G, d); `directions` is (G, d)."""
        at = directions[units.unit_of_row]
        pull = self.x * at[:, ::2] + at[:, 1::2]
        pull -= (self.q * pull).sum(axis=1, keepdims=True)
        return units.sums(self.x, self.w[:, None] * self.q * pull)

    def leverages(self, units: IndependentUnits, bread: Array) -> Array:
        """Leverage of each unit, (G,): the trace of its Hessian times the inverse total Hessian `bread` (d, d)."""
        x, q = self.x, self.q
        own = bread.diagonal()
        across = bread[np.arange(0, len(bread), 2), np.arange(1, len(bread), 2)]
        alone = (q * (x * x * own[::2] + 2 * x * across + own[1::2])).sum(axis=1)
        mean = np.stack([q * x, q], axis=2).reshape(len(x), -1)
        return units.totals(self.w * np.maximum(alone - ((mean @ bread) * mean).sum(axis=1), 0.0))


def sandwich_covariance(bread: Array, squares: Array) -> ParameterCovariance:
    """Sandwich covariance with the model's variance; `squares` is the Hessian with squared weights."""
    return ParameterCovariance(bread @ squares @ bread)


def jackknife_covariance(
    bread: Array, hessian: Array, scores: ScoreVectors, units: IndependentUnits
) -> ParameterCovariance:
    r"""Jackknife covariance: the variation of the parameters when one unit is left out.

    With s and B a unit's score and Hessian and H the total Hessian (penalty included), the step is :math:`z = (H -
    B)^{-1} s`, and the covariance is :math:`\tfrac{G-1}{G}\sum zz^\top`. The fit adapts to a unit of high leverage,
    which makes its own score too small; leaving it out corrects that. Steps are found by conjugate gradients from H for
    all units together: one iteration if no unit has high leverage, at most d.

    The covariance of few or unequal units is itself uncertain, as that of G equal units with G the smaller of (Σh)²/Σh²
    with leverages h, for unequal sizes, and (d + 2)d/Σ|u|⁴ with whitened steps u, for single dominating units; of
    normal steps the latter is the number of units. Cost: O(nK) per step, O(nK²) for h. Source: Bell & McCaffrey (2002);
    the degrees of freedom are our own.
    """
    S = units.sums(scores.x, scores.w[:, None] * (scores.q - scores.y))
    z = _leave_one_out_steps(bread, hessian, scores, units, S)
    V = z.T @ z / units.bias_correction
    leverage = scores.leverages(units, bread)
    heights = ((z @ whitening_matrix(z.T @ z)) ** 2).sum(axis=1)
    d, fourth, square = len(bread), float((heights**2).sum()), float((leverage**2).sum())
    equal = float(leverage.sum()) ** 2 / square if square > 0 else 0.0
    kurtosis_units = (d + 2) * d / fourth if fourth > 0 else 0.0
    return ParameterCovariance((V + V.T) / 2, min(equal, kurtosis_units, float(units.n_units)))


def _leave_one_out_steps(
    bread: Array, hessian: Array, scores: ScoreVectors, units: IndependentUnits, S: Array
) -> Array:
    z, left = np.zeros_like(S), S.copy()
    step = left @ bread
    along, length = step, (left * step).sum(axis=1)
    goal = _CG_TOLERANCE * length
    for _ in range(min(len(bread) + 2, _MAX_CG_STEPS)):
        hessian_product = along @ hessian
        bent = hessian_product - scores.hessian_vector_product(units, along)
        curved, full_curvature = (bent * along).sum(axis=1), (hessian_product * along).sum(axis=1)
        # A direction that one unit alone determines has no curvature without it, and no finite step.
        step_size = np.divide(length, curved, out=np.zeros_like(length), where=curved > _CG_TOLERANCE * full_curvature)
        z += step_size[:, None] * along
        left -= step_size[:, None] * bent
        step = left @ bread
        before, length = length, (left * step).sum(axis=1)
        if (length <= goal).all() or not step_size.any():
            break
        along = step + np.divide(length, before, out=np.zeros_like(length), where=before > 0)[:, None] * along
    return z


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Independent units: rows, or clusters of rows."""

    unit_of_row: Array  # (n,) the number of each row's unit
    n_units: int  # G, those with weight

    @classmethod
    def from_rows(cls, w: Array) -> IndependentUnits:
        """Each row is a unit."""
        return cls(np.arange(len(w)), int((w > 0).sum()))

    @classmethod
    def from_clusters(cls, w: Array, cluster: Array) -> IndependentUnits:
        """The rows of a cluster are a unit."""
        names, of = np.unique(cluster, return_inverse=True)
        return cls(of.reshape(-1), int((np.bincount(of.reshape(-1), w > 0, len(names)) > 0).sum()))

    @property
    def bias_correction(self) -> float:
        """G/(G − 1), which corrects the variance for the estimated mean."""
        return self.n_units / (self.n_units - 1) if self.n_units > 1 else 1.0

    def totals(self, values: Array) -> Array:
        """The sum over each unit, (G,)."""
        return np.bincount(self.unit_of_row, values, int(self.unit_of_row.max(initial=0)) + 1)

    def sums(self, x: Array, residuals: Array) -> Array:
        """Σ r x and Σ r of each unit, (G, d) with the columns of each class in turn; x and r are (n, m)."""
        size = int(self.unit_of_row.max(initial=0)) + 1
        unit_sums = np.empty((size, 2 * x.shape[1]))
        for j, (column, r) in enumerate(zip(x.T, residuals.T, strict=True)):
            unit_sums[:, 2 * j] = np.bincount(self.unit_of_row, r * column, size)
            unit_sums[:, 2 * j + 1] = np.bincount(self.unit_of_row, r, size)
        return unit_sums
