"""Minimize convex losses: Newton's method, its bracketed form for one parameter, and limited-memory BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood

GRADIENT_TOLERANCE = 1e-10  # largest remaining gradient per row
MAX_EVALUATIONS = 100  # of the sums, by Newton's method
HALVINGS_PER_PASS = 4  # halvings of a step that are evaluated together, which saves passes
MIN_RELATIVE_CURVATURE = 1e-14  # relative to the largest curvature: smaller ones are rounding error
MAX_CURVATURE_RATIO = (
    0.6  # ratio of successive curvatures along a step: 1 near a minimum, 1/e where the minimum is at infinity
)
MIN_TOTAL_GAIN = 1e-4  # nats left to gain in all at which the minimum is taken to be at infinity


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    r"""The penalty :math:`(\theta - c)^\top A (\theta - c)` on the mean loss per row."""

    strength: Array  # (m, m) A, positive semidefinite, or (m,) its diagonal where the rest is 0
    center: Array  # (m,) c

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient of the penalty."""
        away = theta - self.center
        pull = self.strength * away if self.strength.ndim == 1 else self.strength @ away
        return float(away @ pull), 2 * pull

    def add_hessian(self, hessian: Array) -> Array:
        """The Hessian plus that of the penalty."""
        return hessian + 2 * (np.diag(self.strength) if self.strength.ndim == 1 else self.strength)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Result of a minimization."""

    theta: Array  # (m,)
    likelihood: Likelihood  # the sums there, without the penalty
    n_passes: int  # over the rows
    converged: bool  # whether the gradient vanishes at a finite point
    max_gradient: float  # largest remaining gradient per row


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

    One call of `sums` is one pass over the rows. `sums_at_points` evaluates the sums at several points, with streamed
    rows in one pass, and is used when a step has to be shortened. If the first step has to be shortened, or there is no
    curvature, and `fallback` is a better point than `start`, the search continues there: confident predictions with
    large errors have almost no curvature at the identity. Directions in which F has no curvature stay at their start.
    If no finite θ is optimal (separated outcomes), the sums approach a limit while θ grows by about one step per pass
    and the curvature along it decreases by a factor e: the search stops when less than `min_gain` nats are left to gain
    over all rows, and `converged` is False.

    >>> F = lambda t: Likelihood(float((t[0] - 3) ** 2), 2 * (t - 3), np.array([[2.0]]), 1.0, 1)
    >>> minimize_newton(F, np.zeros(1)).theta.round(9).tolist()
    [3.0]
    """
    theta = np.array(start, dtype=np.float64)
    ridge = Ridge(np.zeros(len(theta)), theta) if ridge is None else ridge
    at, n_passes, endless = sums(theta), 1, False
    w = at.weight if at.weight > 0 else 1.0
    drag, pull = ridge.value_and_gradient(theta)
    value, slope, hessian = at.value / w + drag, at.gradient / w + pull, ridge.add_hessian(at.hessian / w)
    while True:
        steepest = float(np.abs(slope).max(initial=0.0))
        if steepest <= GRADIENT_TOLERANCE or n_passes >= MAX_EVALUATIONS:
            break
        step = -_solve_hessian(hessian, slope)
        promise = -float(slope @ step)
        if promise <= 0 and fallback is None:  # no direction has both a gradient and a curvature
            break
        length, there, shorter = 1.0, theta + step, None
        following = sums(there)
        while True:
            n_passes += 1
            drag, pull = ridge.value_and_gradient(there)
            reached = following.value / w + drag
            # A difference within rounding error counts as a decrease.
            enough = promise > 0 and reached <= value - 1e-4 * length * promise + 1e-14 * (1 + abs(value))
            if enough or n_passes >= MAX_EVALUATIONS:
                break
            if fallback is not None:
                other, fallback = np.array(fallback, dtype=np.float64), None
                at_other = sums(other)
                n_passes += 1
                drag, pull = ridge.value_and_gradient(other)
                if at_other.value / w + drag < value:
                    length, there, following, reached = 0.0, other, at_other, at_other.value / w + drag
                    break
            if promise <= 0:
                break
            shorter = shorter or _step_halvings(theta, step, sums_at_points or partial(map, sums))
            length, there, following = next(shorter)
        if not reached <= value + 1e-13 * (1 + abs(value)):
            break
        before = float(step @ hessian @ step)
        fallback = None
        theta, at, value, slope, hessian = (
            there,
            following,
            reached,
            following.gradient / w + pull,
            following.hessian / w,
        )
        hessian = ridge.add_hessian(hessian)
        little = promise * max(at.weight, at.n) < min_gain or np.abs(slope).max() <= GRADIENT_TOLERANCE
        endless = bool(length and little and float(step @ hessian @ step) < MAX_CURVATURE_RATIO * before)
        if endless:
            break
    steepest = float(np.abs(slope).max(initial=0.0))
    return Minimum(theta, at, n_passes, steepest <= 100 * GRADIENT_TOLERANCE and not endless, steepest)


def _step_halvings(
    theta: Array, step: Array, sums_at_points: Callable[[Sequence[Array]], Iterable[Likelihood]]
) -> Iterator[tuple[float, Array, Likelihood]]:
    """Successive halvings of the step, with the points and the sums there."""
    for first in range(1, MAX_EVALUATIONS, HALVINGS_PER_PASS):
        lengths = [0.5**j for j in range(first, first + HALVINGS_PER_PASS)]
        places = [theta + length * step for length in lengths]
        yield from zip(lengths, places, sums_at_points(places), strict=False)


def _solve_hessian(hessian: Array, slope: Array) -> Array:
    """The inverse Hessian times the gradient, by Cholesky; if it is singular, without its null directions."""
    own = hessian.diagonal()
    if own.min(initial=np.inf) > 0:
        unit = 1 / np.sqrt(own)  # scaled to equal curvature along every axis, however rare a class is
        root, failed = dpotrf(hessian * unit[:, None] * unit, lower=1)
        if not failed and root.diagonal().min() ** 2 > 1e3 * MIN_RELATIVE_CURVATURE * len(own):
            return np.asarray(unit * dpotrs(root, unit * slope, lower=1)[0])
    values, turns = np.linalg.eigh(hessian)
    live = values > MIN_RELATIVE_CURVATURE * max(len(own), 10) * max(float(values[-1]), 0.0)
    along = turns[:, live]
    return (along / values[live]) @ (along.T @ slope)


MIN_BETA, MAX_BETA = 1e-3, 1e3  # the range of β = 1/T: beyond it rows are uniform, or all but 0 and 1
_BETA_TOLERANCE = 1e-11  # tolerance of β
_GRADIENT_TOLERANCE_FACTOR = 10  # times that: tolerance of the gradient per row
_MAX_BETA_EVALUATIONS = 200


def minimize_beta(
    sums: Callable[[float], Likelihood], start: float = 1.0, *, tolerance: float = _BETA_TOLERANCE
) -> tuple[float, int]:
    """The minimizing β and the number of passes; one call of `sums` is one pass.

    A Newton step, or that of a series of higher derivatives, is taken if it stays inside the bracket and, once the
    minimum is enclosed, at least halves the last step; otherwise the bracket is bisected in log β. The ends of the
    range are tried once, when a step leads beyond them.
    """
    low, high, beta, last = MIN_BETA, MAX_BETA, start, math.inf
    untried = {MIN_BETA, MAX_BETA}
    for n_passes in range(1, _MAX_BETA_EVALUATIONS):
        at = sums(beta)
        g, h = float(at.gradient[0]), float(at.hessian[0, 0])
        untried.discard(beta)
        if g == 0:
            # Without curvature the rows are either uniform, or so confident that derivatives underflow.
            return (beta if h > 0 else 1.0 if beta <= 1 else MAX_BETA), n_passes
        if (beta == MIN_BETA and g > 0) or (beta == MAX_BETA and g < 0):
            return beta, n_passes
        low, high = (low, beta) if g > 0 else (beta, high)
        step, left = _series_step(g, h, at.higher_derivatives.tolist(), beta)
        near = left <= tolerance * beta and h * left <= _GRADIENT_TOLERANCE_FACTOR * tolerance * at.weight
        if near or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), n_passes
        following, closed = beta + step, low > MIN_BETA and high < MAX_BETA
        if n_passes == 1 and beta in (MIN_BETA, MAX_BETA):  # the start was an end of the range
            following = 1.0
        elif following <= MIN_BETA and MIN_BETA in untried:
            following = MIN_BETA
        elif following >= MAX_BETA and MAX_BETA in untried:
            following = MAX_BETA
        elif not low < following < high or (abs(step) > 0.5 * last and (closed or n_passes > 20)):
            following = math.sqrt(low * high)
        last, beta = abs(following - beta), following
    return beta, n_passes


def _series_step(g: float, h: float, beyond: list[float], beta: float) -> tuple[float, float]:
    """The step to a zero of the gradient, and an estimate of its error.

    The gradient is g + h s + b₀ s²/2! + b₁ s³/3! + …; its terms decrease about geometrically, which bounds the
    remainder.
    """
    if h <= 0:
        return -math.copysign(math.inf, g), math.inf
    newton = -g / h
    terms = [b / h / math.factorial(j) for j, b in enumerate(beyond, 2)]  # relative to h
    if not any(terms):
        return newton, 1e3 * newton * newton / beta
    ratio = max((abs(a) ** (1 / j) for j, a in enumerate(terms, 1) if a), default=0.0) * abs(newton)
    if not ratio < 0.3:
        return newton, math.inf
    s = newton
    for _ in range(50):
        slope = s - newton + sum(a * s ** (j + 1) for j, a in enumerate(terms, 1))
        derivative = 1 + sum((j + 1) * a * s**j for j, a in enumerate(terms, 1))
        before, s = s, s - slope / derivative
        if abs(s - before) <= 2**-52 * abs(s):  # no float is closer
            break
    return s, abs(newton) * ratio ** (len(terms) + 1) / (1 - ratio)


def local_minimum_beta(slopes: Callable[[float], tuple[float, float]], start: float = 1.0) -> tuple[float, int]:
    """The local minimum reached downhill from the start, of a loss that may have several, and the number of passes.

    `slopes` gives the first and second derivative of the loss. β is doubled or halved until the derivative changes
    sign, and Newton steps inside that bracket find its zero. If the sign never changes, the end of the range is
    returned.

    >>> local_minimum_beta(lambda b: (b - 3, 1.0))[0]
    3.0
    """
    beta, (g, h) = start, slopes(start)
    ends, n_passes, curved = [MIN_BETA, MAX_BETA], 1, abs(h)
    if g == 0:
        return beta, n_passes
    while True:
        side = 0 if g < 0 else 1
        ends[side] = beta
        other = min(max(beta * (0.5 if side else 2.0), MIN_BETA), MAX_BETA)
        if other == beta:
            return beta, n_passes
        there = slopes(other)
        n_passes += 1
        if there[0] == 0:  # if flat too, the loss has underflowed and decreases further
            turns = abs(there[1]) > 1e-12 * curved
            return (other if turns else (MIN_BETA if side else MAX_BETA)), n_passes
        if (there[0] < 0) != (g < 0):
            ends[1 - side] = other
            break
        beta, (g, h) = other, there
    low, high = ends
    while n_passes < _MAX_BETA_EVALUATIONS:
        step = -g / h if h > 0 else math.inf
        if abs(step) <= 1e-8 * beta or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), n_passes
        beta = beta + step if low < beta + step < high else math.sqrt(low * high)
        g, h = slopes(beta)
        n_passes += 1
        if g == 0:
            break
        low, high = (beta, high) if g < 0 else (low, beta)
    return beta, n_passes


_MAX_LBFGS_EVALUATIONS = 1000  # of values
_MAX_FINAL_NEWTON_STEPS, _MAX_CG_STEPS = 6, 50  # final Newton steps, and conjugate gradient steps in each


def minimize_lbfgs(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge, scale: Array) -> Minimum:
    r"""Minimize :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)` by limited-memory BFGS.

    `scale` (m,) is one over the root of each parameter's curvature. One call of `sums` is one pass over the rows; no
    Hessian is computed. BFGS compares values, which leaves gradients near the square root of the rounding error.
    Newton's method, with conjugate gradients and differences of gradients in place of the Hessian, then reduces them to
    `GRADIENT_TOLERANCE`.
    """
    from scipy.optimize import minimize

    n_passes = 0

    def evaluate(x: Array) -> tuple[float, Array, Likelihood]:
        nonlocal n_passes
        n_passes += 1
        theta = start + scale * x
        at = sums(theta)
        w = at.weight if at.weight > 0 else 1.0
        drag, pull = ridge.value_and_gradient(theta)
        return at.value / w + drag, scale * (at.gradient / w + pull), at

    options = {
        "maxcor": 20,
        "maxiter": _MAX_LBFGS_EVALUATIONS,
        "maxfun": _MAX_LBFGS_EVALUATIONS,
        "ftol": 0.0,
        "gtol": GRADIENT_TOLERANCE * float(scale.min()),
    }
    result = minimize(lambda x: evaluate(x)[:2], np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    x = result.x
    _, slope, at = evaluate(x)
    for _ in range(_MAX_FINAL_NEWTON_STEPS):
        if np.abs(slope / scale).max() <= GRADIENT_TOLERANCE:
            break
        there = x + _newton_step_by_cg(lambda x: evaluate(x)[1], x, slope)
        _, following, then = evaluate(there)
        if not np.abs(following).max() < np.abs(slope).max() / 2:
            break
        x, slope, at = there, following, then
    steepest = float(np.abs(slope / scale).max())
    return Minimum(start + scale * x, at, n_passes, steepest <= 100 * GRADIENT_TOLERANCE, steepest)


def _newton_step_by_cg(slope_at: Callable[[Array], Array], x: Array, slope: Array) -> Array:
    """Approximately −H⁻¹ times the gradient, to a tenth of a percent, by conjugate gradients."""
    step, rest = np.zeros(len(x)), -slope
    turn, size = rest, float(slope @ slope)
    goal = 1e-6 * size
    for _ in range(_MAX_CG_STEPS):
        epsilon = 1e-5 / np.abs(turn).max()
        hessian_product = (slope_at(x + epsilon * turn) - slope) / epsilon
        curved = float(turn @ hessian_product)
        if curved <= 0:
            break
        step = step + size / curved * turn
        rest = rest - size / curved * hessian_product
        before, size = size, float(rest @ rest)
        if size <= goal:
            break
        turn = rest + size / before * turn
    return step
