"""Minimize a loss of many parameters with a ridge penalty by limited-memory BFGS, from sums over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.calibrators._glm.newton import GRADIENT_TOLERANCE, MAX_FINAL_GRADIENT, Minimum, Ridge
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood

_MAX_LBFGS_EVALUATIONS = 1000  # of values
_N_CORRECTIONS = 20  # pairs of steps and gradient changes that approximate the Hessian
_MAX_FINAL_NEWTON_STEPS, _MAX_CG_STEPS = 6, 50  # final Newton steps, and conjugate gradient steps in each
_CG_TOLERANCE = 1e-6  # of the squared norm of the gradient: the step is then accurate to a tenth of a percent
_DIFFERENCE_STEP = 1e-5  # largest change of a scaled parameter in a difference of gradients


def minimize_lbfgs(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge, scale: Array) -> Minimum:
    r"""Minimize :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)` by limited-memory BFGS.

    `sums` evaluates F and its gradient at θ (m,), in one pass over the rows; no Hessian is computed. `scale` (m,) is
    one over the root of each parameter's curvature.

    BFGS compares values of the loss, which leaves gradients near the square root of the rounding error. Some Newton
    steps then reduce them to `GRADIENT_TOLERANCE`. They are computed by conjugate gradients, with differences of
    gradients in place of products with the Hessian.
    """
    from scipy.optimize import minimize

    loss = _ScaledLoss(sums, start, ridge, scale)
    options = {
        "maxcor": _N_CORRECTIONS,
        "maxiter": _MAX_LBFGS_EVALUATIONS,
        "maxfun": _MAX_LBFGS_EVALUATIONS,
        "ftol": 0.0,
        "gtol": GRADIENT_TOLERANCE * float(scale.min()),
    }
    result = minimize(
        lambda x: loss.evaluate(x)[:2], np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options
    )
    x = result.x
    _, gradient, likelihood = loss.evaluate(x)
    for _ in range(_MAX_FINAL_NEWTON_STEPS):
        if np.abs(gradient / scale).max() <= GRADIENT_TOLERANCE:
            break
        next_x = x + _newton_step_by_cg(lambda x: loss.evaluate(x)[1], x, gradient)
        _, next_gradient, next_likelihood = loss.evaluate(next_x)
        if not np.abs(next_gradient).max() < np.abs(gradient).max() / 2:
            break
        x, gradient, likelihood = next_x, next_gradient, next_likelihood
    max_gradient = float(np.abs(gradient / scale).max())
    return Minimum(start + scale * x, likelihood, loss.n_passes, max_gradient <= MAX_FINAL_GRADIENT, max_gradient)


@dataclass(slots=True, eq=False)
class _ScaledLoss:
    """The penalized mean loss per row as a function of x with θ = start + scale · x, and the number of passes."""

    sums: Callable[[Array], Likelihood]
    start: Array  # (m,)
    ridge: Ridge
    scale: Array  # (m,)
    n_passes: int = 0

    def evaluate(self, x: Array) -> tuple[float, Array, Likelihood]:
        """Value, gradient (m,) by x, and the sums without the penalty."""
        self.n_passes += 1
        theta = self.start + self.scale * x
        likelihood = self.sums(theta)
        w = likelihood.weight if likelihood.weight > 0 else 1.0
        penalty, penalty_gradient = self.ridge.value_and_gradient(theta)
        return likelihood.value / w + penalty, self.scale * (likelihood.gradient / w + penalty_gradient), likelihood


def _newton_step_by_cg(gradient_at: Callable[[Array], Array], x: Array, gradient: Array) -> Array:
    """Approximately −H⁻¹ times the gradient (m,) at x, by conjugate gradients."""
    step, residual = np.zeros(len(x)), -gradient
    direction, squared_norm = residual, float(gradient @ gradient)
    tolerance = _CG_TOLERANCE * squared_norm
    for _ in range(_MAX_CG_STEPS):
        epsilon = _DIFFERENCE_STEP / np.abs(direction).max()
        hessian_product = (gradient_at(x + epsilon * direction) - gradient) / epsilon
        curvature = float(direction @ hessian_product)
        if curvature <= 0:
            break
        step = step + squared_norm / curvature * direction
        residual = residual - squared_norm / curvature * hessian_product
        previous_norm, squared_norm = squared_norm, float(residual @ residual)
        if squared_norm <= tolerance:
            break
        direction = residual + squared_norm / previous_norm * direction
    return step
