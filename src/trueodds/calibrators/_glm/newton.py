"""Minimize a convex loss with a ridge penalty, by Newton's method or limited-memory BFGS, from sums over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood

GRADIENT_TOLERANCE = 1e-10  # largest remaining gradient per row
MAX_FINAL_GRADIENT = 100 * GRADIENT_TOLERANCE  # gradient per row up to which a search that stopped has converged
MAX_EVALUATIONS = 100  # of the sums, by Newton's method
HALVINGS_PER_PASS = 4  # halvings of a step that are evaluated together, which saves passes
_MIN_CHOLESKY_PIVOT = 1e3  # times the smallest curvature: below it, eigenvectors are computed
MIN_RELATIVE_CURVATURE = 1e-14  # relative to the largest curvature: smaller ones are rounding error
# Ratio of successive curvatures along a step: 1 near a minimum, 1/e where the minimum is at infinity.
MAX_CURVATURE_RATIO = 0.6
MIN_TOTAL_GAIN = 1e-4  # nats left to gain in all at which the minimum is taken to be at infinity
_MIN_DECREASE_SHARE = 1e-4  # share of the predicted decrease that a step must attain (Armijo's rule)
FALLBACK_RIDGE = 1e-3  # nats over all rows per squared parameter: the ridge that is used where no finite optimum exists
MIN_DIVERGING_GAIN = 1e-2  # nats left to gain over all rows at which a diverging fit stops
# Rounding error of a loss, relative to 1 + its size: of one comparison, and of the step that is taken in the end.
_COMPARISON_ROUNDING, _STEP_ROUNDING = 1e-14, 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    r"""The penalty :math:`(\theta - c)^\top A (\theta - c)` on the mean loss per row."""

    strength: Array  # (m, m) A, positive semidefinite, or (m,) its diagonal where the rest is 0
    center: Array  # (m,) c

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        deviation = theta - self.center
        half_gradient = self.strength * deviation if self.strength.ndim == 1 else self.strength @ deviation
        return float(deviation @ half_gradient), 2 * half_gradient

    def add_hessian(self, hessian: Array) -> Array:
        return hessian + 2 * (np.diag(self.strength) if self.strength.ndim == 1 else self.strength)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Result of a minimization."""

    theta: Array  # (m,)
    likelihood: Likelihood  # the sums there, without the penalty
    n_passes: int  # over the rows
    converged: bool  # whether the gradient vanishes at a finite point
    max_gradient: float  # largest remaining gradient per row


def minimize_with_fallback(minimize: Callable[[float, float], Minimum]) -> Minimum:
    """The result of `minimize(ridge, min_gain)` without a ridge, or with a slight one if no finite optimum exists."""
    optimum = minimize(0.0, MIN_DIVERGING_GAIN)
    if optimum.converged:
        return optimum
    ridge_fit = minimize(FALLBACK_RIDGE, 0.0)
    return replace(ridge_fit, n_passes=optimum.n_passes + ridge_fit.n_passes, converged=False)


@np.errstate(over="ignore", invalid="ignore")  # the curvature at probabilities near 0 may overflow
def minimize_newton(
    sums: Callable[[Array], Likelihood],
    start: Array,
    ridge: Ridge | None = None,
    *,
    min_gain: float = MIN_TOTAL_GAIN,
    sums_at_points: Callable[[Sequence[Array]], Iterable[Likelihood]] | None = None,
    fallback: Array | None = None,
) -> Minimum:
    r"""Minimize :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)` by Newton's method, from sums of F.

    Directions in which F has no curvature stay at their start. If no finite θ is optimal (separated outcomes), the sums
    approach a limit while θ grows by about one step per pass and the curvature along it decreases by a factor e: the
    search stops when less than `min_gain` nats are left to gain over all rows, and `converged` is False.

    `sums` evaluates F and its derivatives at θ (m,), in one pass over the rows. `sums_at_points` evaluates several
    points, with streamed rows in one pass, when a step is shortened. `fallback` (m,) is a point where the search
    continues if it is better than `start` and the first step has to be shortened, or there is no curvature: confident
    predictions with large errors have almost no curvature at the identity.

    >>> F = lambda t: Likelihood(float((t[0] - 3) ** 2), 2 * (t - 3), np.array([[2.0]]), 1.0, 1)
    >>> minimize_newton(F, np.zeros(1)).theta.round(9).tolist()
    [3.0]
    """
    theta = np.array(start, dtype=np.float64)
    ridge = Ridge(np.zeros(len(theta)), theta) if ridge is None else ridge
    loss = _PenalizedLoss(sums, sums_at_points or partial(map, sums), ridge)
    point = loss.evaluate(theta)
    gradient, hessian, diverges = loss.gradient(point), loss.hessian(point), False
    while not np.abs(gradient).max(initial=0.0) <= GRADIENT_TOLERANCE and loss.n_passes < MAX_EVALUATIONS:
        step = -_solve_hessian(hessian, gradient)
        predicted_decrease = -float(gradient @ step)
        if predicted_decrease <= 0 and fallback is None:  # no direction has both a gradient and a curvature
            break
        reached, length = _search_line(loss, point, step, predicted_decrease, fallback)
        if not reached.value <= point.value + _STEP_ROUNDING * (1 + abs(point.value)):
            break
        previous_curvature, fallback = float(step @ hessian @ step), None
        point, gradient, hessian = reached, loss.gradient(reached), loss.hessian(reached)
        possible_gain = predicted_decrease * max(point.likelihood.weight, point.likelihood.n)
        nothing_left = possible_gain < min_gain or np.abs(gradient).max() <= GRADIENT_TOLERANCE
        curvature_vanishes = float(step @ hessian @ step) < MAX_CURVATURE_RATIO * previous_curvature
        diverges = bool(length > 0 and nothing_left and curvature_vanishes)
        if diverges:
            break
    max_gradient = float(np.abs(gradient).max(initial=0.0))
    converged = max_gradient <= MAX_FINAL_GRADIENT and not diverges
    return Minimum(point.theta, point.likelihood, loss.n_passes, converged, max_gradient)


@dataclass(frozen=True, slots=True, eq=False)
class _LossAtPoint:
    """The penalized mean loss per row at a point."""

    theta: Array  # (m,)
    likelihood: Likelihood  # the sums there, without the penalty
    value: float  # with the penalty
    penalty_gradient: Array  # (m,)


@dataclass(slots=True, eq=False)
class _PenalizedLoss:
    """The penalized mean loss per row as a function of θ, and the number of passes that its evaluation took."""

    sums: Callable[[Array], Likelihood]
    sums_at_points: Callable[[Sequence[Array]], Iterable[Likelihood]]
    ridge: Ridge
    total_weight: float | None = None  # of the rows, from the first evaluation
    n_passes: int = 0

    def evaluate(self, theta: Array) -> _LossAtPoint:
        return self.add_penalty(theta, self.sums(theta))

    def evaluate_halvings(self, theta: Array, step: Array) -> Iterator[tuple[float, _LossAtPoint]]:
        """Evaluate the loss at successive halvings of a step from θ, with the length of each."""
        for first in range(1, MAX_EVALUATIONS, HALVINGS_PER_PASS):
            lengths = [0.5**j for j in range(first, first + HALVINGS_PER_PASS)]
            points = [theta + length * step for length in lengths]
            for length, point, likelihood in zip(lengths, points, self.sums_at_points(points), strict=False):
                yield length, self.add_penalty(point, likelihood)

    def add_penalty(self, theta: Array, likelihood: Likelihood) -> _LossAtPoint:
        """The penalized loss at θ from the sums there, counted as one pass."""
        self.n_passes += 1
        if self.total_weight is None:
            self.total_weight = likelihood.weight if likelihood.weight > 0 else 1.0
        penalty, penalty_gradient = self.ridge.value_and_gradient(theta)
        return _LossAtPoint(theta, likelihood, likelihood.value / self.total_weight + penalty, penalty_gradient)

    def gradient(self, point: _LossAtPoint) -> Array:
        return point.likelihood.gradient / self.total_weight + point.penalty_gradient

    def hessian(self, point: _LossAtPoint) -> Array:
        return self.ridge.add_hessian(point.likelihood.hessian / self.total_weight)


def _search_line(
    loss: _PenalizedLoss, start: _LossAtPoint, step: Array, predicted_decrease: float, fallback: Array | None
) -> tuple[_LossAtPoint, float]:
    """Backtracking line search: the first point after a step or its halvings at which the loss has decreased enough.

    Returns the point and the length of the step, 1 for the whole step. Before the first halving, the `fallback` is
    tried; if it is better than the start, it is returned with length 0.
    """
    length, point, halvings = 1.0, loss.evaluate(start.theta + step), None
    while True:
        # A difference within rounding error counts as a decrease.
        max_value = (
            start.value
            - _MIN_DECREASE_SHARE * length * predicted_decrease
            + _COMPARISON_ROUNDING * (1 + abs(start.value))
        )
        if (predicted_decrease > 0 and point.value <= max_value) or loss.n_passes >= MAX_EVALUATIONS:
            return point, length
        if fallback is not None:
            fallback_point, fallback = loss.evaluate(np.array(fallback, dtype=np.float64)), None
            if fallback_point.value < start.value:
                return fallback_point, 0.0
        if predicted_decrease <= 0:
            return point, length
        halvings = halvings or loss.evaluate_halvings(start.theta, step)
        length, point = next(halvings)


def _solve_hessian(hessian: Array, gradient: Array) -> Array:
    """The inverse Hessian (m, m) times the gradient (m,), by Cholesky, or by the pseudoinverse if it is singular."""
    diagonal = hessian.diagonal()
    if diagonal.min(initial=np.inf) > 0:
        scale = 1 / np.sqrt(diagonal)  # to equal curvature along every axis, however rare a class is
        factor, failed = dpotrf(hessian * scale[:, None] * scale, lower=1)
        if not failed and factor.diagonal().min() ** 2 > _MIN_CHOLESKY_PIVOT * MIN_RELATIVE_CURVATURE * len(diagonal):
            return np.asarray(scale * dpotrs(factor, scale * gradient, lower=1)[0])
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    is_curved = eigenvalues > MIN_RELATIVE_CURVATURE * max(len(diagonal), 10) * max(float(eigenvalues[-1]), 0.0)
    directions = eigenvectors[:, is_curved]
    return (directions / eigenvalues[is_curved]) @ (directions.T @ gradient)


_MAX_LBFGS_EVALUATIONS = 1000  # of values
_N_CORRECTIONS = 20  # pairs of steps and gradient changes that approximate the Hessian
_MAX_FINAL_NEWTON_STEPS, _MAX_CG_STEPS = 6, 50  # final Newton steps, and conjugate gradient steps in each
_CG_TOLERANCE = 1e-6  # of the squared norm of the gradient: the step is then accurate to a tenth of a percent
_DIFFERENCE_STEP = 1e-5  # largest change of a scaled parameter in a difference of gradients
_MIN_SCALING_CURVATURE = 1e-9  # relative to the largest: bounds the scale of parameters without curvature


def minimize_lbfgs(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge, curvature: Array) -> Minimum:
    r"""Minimize :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)` by limited-memory BFGS.

    `sums` evaluates F and its gradient at θ (m,), in one pass over the rows; no Hessian is computed. A is diagonal.
    `curvature` (m,) is about the second derivative of F/w by each parameter, by which parameters are scaled.

    BFGS compares values of the loss, which leaves gradients near the square root of the rounding error. Some Newton
    steps then reduce them to `GRADIENT_TOLERANCE`. They are computed by conjugate gradients, with differences of
    gradients instead of products with the Hessian.
    """
    from scipy.optimize import minimize

    scale = 1 / np.sqrt(curvature + 2 * ridge.strength + _MIN_SCALING_CURVATURE * curvature.max())
    loss = _PenalizedLoss(sums, partial(map, sums), ridge)

    def evaluate(x: Array) -> tuple[float, Array, Likelihood]:
        """Value and gradient (m,) by x at θ = start + scale · x, and the sums without the penalty."""
        point = loss.evaluate(start + scale * x)
        return point.value, scale * loss.gradient(point), point.likelihood

    options = {
        "maxcor": _N_CORRECTIONS,
        "maxiter": _MAX_LBFGS_EVALUATIONS,
        "maxfun": _MAX_LBFGS_EVALUATIONS,
        "ftol": 0.0,
        "gtol": GRADIENT_TOLERANCE * float(scale.min()),
    }
    result = minimize(lambda x: evaluate(x)[:2], np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    x = result.x
    _, gradient, likelihood = evaluate(x)
    for _ in range(_MAX_FINAL_NEWTON_STEPS):
        if np.abs(gradient / scale).max() <= GRADIENT_TOLERANCE:
            break
        next_x = x + _newton_step_by_cg(lambda x: evaluate(x)[1], x, gradient)
        _, next_gradient, next_likelihood = evaluate(next_x)
        if not np.abs(next_gradient).max() < np.abs(gradient).max() / 2:
            break
        x, gradient, likelihood = next_x, next_gradient, next_likelihood
    max_gradient = float(np.abs(gradient / scale).max())
    return Minimum(start + scale * x, likelihood, loss.n_passes, max_gradient <= MAX_FINAL_GRADIENT, max_gradient)


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
