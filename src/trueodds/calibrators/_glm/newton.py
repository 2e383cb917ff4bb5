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

GRADIENT_TOLERANCE = 1e-10  # the largest slope per row that is left, in any direction
MAX_EVALUATIONS = 100
SHORTER = 4  # halvings of a step that are looked at together, where that saves passes
ROUNDING = 1e-14  # of the largest curvature, below which another one is noise
FALLING = 0.6  # curvature along a step that is left of what it was: near a minimum 1, on the way to none 1/e
NOTHING = 1e-4  # nats in all that there are left to gain where the minimum is taken to be at infinity


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    r"""The penalty :math:`(\theta - c)^\top A (\theta - c)` on the mean loss per row."""

    strength: Array  # (m, m) A, positive semidefinite, or (m,) its diagonal where the rest is 0
    center: Array  # (m,) c

    def at(self, theta: Array) -> tuple[float, Array]:
        """Its value and gradient."""
        away = theta - self.center
        pull = self.strength * away if self.strength.ndim == 1 else self.strength @ away
        return float(away @ pull), 2 * pull

    def added(self, hessian: Array) -> Array:
        """The curvature with its own."""
        return hessian + 2 * (np.diag(self.strength) if self.strength.ndim == 1 else self.strength)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where Newton's method stopped."""

    theta: Array  # (m,)
    at: Likelihood  # the sums there, without the penalty
    n_passes: int  # over the rows
    converged: bool  # whether the slope vanishes at a finite place
    slope: float  # the largest one per row that is left


def minimize_newton(
    sums: Callable[[Array], Likelihood],
    start: Array,
    ridge: Ridge | None = None,
    *,
    nothing: float = NOTHING,
    several: Callable[[Sequence[Array]], Iterable[Likelihood]] | None = None,
    fallback: Array | None = None,
) -> Minimum:
    r"""The θ of least :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)`, from sums F with its derivatives.

    One call of `sums` is one pass over the rows; `several` gives those at several places, in one pass where rows are
    far, and is asked where a step has to be shortened. Where the first step has to be, or there is no curvature for one,
    and `fallback` is a better place than `start`, the search begins there: sharp predictions that are far off have next
    to no curvature at the identity. Directions in which F has no curvature are left where they started.
    Where no finite θ is best (the outcomes are separated) the sums fall towards a limit while θ grows by about one
    step per pass, and the curvature along it falls by a factor e each time: it stops where there are less than
    `nothing` nats left to gain over all rows, and `converged` is False.

    >>> F = lambda t: Likelihood(float((t[0] - 3) ** 2), 2 * (t - 3), np.array([[2.0]]), 1.0, 1)
    >>> minimize_newton(F, np.zeros(1)).theta.round(9).tolist()
    [3.0]
    """
    theta = np.array(start, dtype=np.float64)
    ridge = Ridge(np.zeros(len(theta)), theta) if ridge is None else ridge
    at, n_passes, endless = sums(theta), 1, False
    w = at.weight if at.weight > 0 else 1.0
    drag, pull = ridge.at(theta)
    value, slope, hessian = at.value / w + drag, at.gradient / w + pull, ridge.added(at.hessian / w)
    while True:
        steepest = float(np.abs(slope).max(initial=0.0))
        if steepest <= GRADIENT_TOLERANCE or n_passes >= MAX_EVALUATIONS:
            break
        step = -_solve_hessian(hessian, slope)
        promise = -float(slope @ step)
        if promise <= 0 and fallback is None:  # no direction has both a slope and a curvature
            break
        length, there, shorter = 1.0, theta + step, None
        following = sums(there)
        while True:
            n_passes += 1
            drag, pull = ridge.at(there)
            reached = following.value / w + drag
            # A value that rounding hides is as good as a lower one.
            enough = promise > 0 and reached <= value - 1e-4 * length * promise + 1e-14 * (1 + abs(value))
            if enough or n_passes >= MAX_EVALUATIONS:
                break
            if fallback is not None:
                other, fallback = np.array(fallback, dtype=np.float64), None
                at_other = sums(other)
                n_passes += 1
                drag, pull = ridge.at(other)
                if at_other.value / w + drag < value:
                    length, there, following, reached = 0.0, other, at_other, at_other.value / w + drag
                    break
            if promise <= 0:
                break
            shorter = shorter or _step_halvings(theta, step, several or partial(map, sums))
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
        hessian = ridge.added(hessian)
        little = promise * max(at.weight, at.n) < nothing or np.abs(slope).max() <= GRADIENT_TOLERANCE
        endless = bool(length and little and float(step @ hessian @ step) < FALLING * before)
        if endless:
            break
    steepest = float(np.abs(slope).max(initial=0.0))
    return Minimum(theta, at, n_passes, steepest <= 100 * GRADIENT_TOLERANCE and not endless, steepest)


def _step_halvings(
    theta: Array, step: Array, several: Callable[[Sequence[Array]], Iterable[Likelihood]]
) -> Iterator[tuple[float, Array, Likelihood]]:
    """The step halved ever again, where that leads, and the sums there."""
    for first in range(1, MAX_EVALUATIONS, SHORTER):
        lengths = [0.5**j for j in range(first, first + SHORTER)]
        places = [theta + length * step for length in lengths]
        yield from zip(lengths, places, several(places), strict=False)


def _solve_hessian(hessian: Array, slope: Array) -> Array:
    """The bend's inverse times the slope, by Cholesky; where it has none, without the directions that do not bend."""
    own = hessian.diagonal()
    if own.min(initial=np.inf) > 0:
        unit = 1 / np.sqrt(own)  # of equal curvature along every axis, however rare a class is
        root, failed = dpotrf(hessian * unit[:, None] * unit, lower=1)
        if not failed and root.diagonal().min() ** 2 > 1e3 * ROUNDING * len(own):
            return np.asarray(unit * dpotrs(root, unit * slope, lower=1)[0])
    values, turns = np.linalg.eigh(hessian)
    live = values > ROUNDING * max(len(own), 10) * max(float(values[-1]), 0.0)
    along = turns[:, live]
    return (along / values[live]) @ (along.T @ slope)


MIN_BETA, MAX_BETA = 1e-3, 1e3  # the range of β = 1/T: beyond it rows are uniform, or all but 0 and 1
_BETA_TOLERANCE = 1e-11  # of β, how far from the minimum it may stop
_SLOPE_FACTOR = 10  # times that, the slope per row that may be left
_MAX_BETA_EVALUATIONS = 200


def minimize_beta(
    sums: Callable[[float], Likelihood], start: float = 1.0, *, within: float = _BETA_TOLERANCE
) -> tuple[float, int]:
    """The minimizing β and the passes taken, from sums that may come from anywhere: one call is one pass.

    Newton's step, or that of the series where higher derivatives are known, where it stays inside the bracket and,
    once the minimum is enclosed, at least halves the last one; else the bracket's middle in log β. The ends of the
    range are tried once, when a step leads beyond them.
    """
    low, high, beta, last = MIN_BETA, MAX_BETA, start, math.inf
    untried = {MIN_BETA, MAX_BETA}
    for n_passes in range(1, _MAX_BETA_EVALUATIONS):
        at = sums(beta)
        g, h = float(at.gradient[0]), float(at.hessian[0, 0])
        untried.discard(beta)
        if g == 0:
            # Without curvature either the rows are uniform, or so sure already that nothing is left to weigh.
            return (beta if h > 0 else 1.0 if beta <= 1 else MAX_BETA), n_passes
        if (beta == MIN_BETA and g > 0) or (beta == MAX_BETA and g < 0):
            return beta, n_passes
        low, high = (low, beta) if g > 0 else (beta, high)
        step, left = _series_step(g, h, at.beyond.tolist(), beta)
        near = left <= within * beta and h * left <= _SLOPE_FACTOR * within * at.weight
        if near or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), n_passes
        following, closed = beta + step, low > MIN_BETA and high < MAX_BETA
        if n_passes == 1 and beta in (MIN_BETA, MAX_BETA):  # a start that was none
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
    """To where the slope vanishes, and about how far from there it ends.

    The slope is g + h s + b₀ s²/2! + b₁ s³/3! + …; its terms fall about geometrically, and so does what they leave out.
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
        if abs(s - before) <= 2**-52 * abs(s):  # no double lies nearer
            break
    return s, abs(newton) * ratio ** (len(terms) + 1) / (1 - ratio)


def local_minimum_beta(slopes: Callable[[float], tuple[float, float]], start: float = 1.0) -> tuple[float, int]:
    """The local minimum downhill from the start, of a loss that may have several, and the passes taken.

    `slopes` gives the loss's first and second derivative: β is doubled or halved until the slope turns, and Newton's
    steps inside that bracket end where it vanishes. Where it never turns, the end of the range.

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
        if there[0] == 0:  # where it is flat, too, it has fallen below what numbers hold, and falls on
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


_MAX_LBFGS_EVALUATIONS = 1000  # at the values
_ROUNDS, _TURNS = 6, 50  # of Newton's method at the end, and of conjugate gradients in each


def minimize_lbfgs(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge, scale: Array) -> Minimum:
    r"""The θ of least :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)`, by limited-memory BFGS.

    `scale` (m,) is about how far each parameter moves the sums: one over the root of its curvature. One call of `sums`
    is one pass over the rows; Hessians are not looked at. BFGS compares values, which leaves slopes near the root of
    rounding; Newton's method on the slopes, by conjugate gradients with differences of slopes in place of the
    curvature, takes them to `GRADIENT_TOLERANCE`.
    """
    from scipy.optimize import minimize

    n_passes = 0

    def looked(x: Array) -> tuple[float, Array, Likelihood]:
        nonlocal n_passes
        n_passes += 1
        theta = start + scale * x
        at = sums(theta)
        w = at.weight if at.weight > 0 else 1.0
        drag, pull = ridge.at(theta)
        return at.value / w + drag, scale * (at.gradient / w + pull), at

    options = {
        "maxcor": 20,
        "maxiter": _MAX_LBFGS_EVALUATIONS,
        "maxfun": _MAX_LBFGS_EVALUATIONS,
        "ftol": 0.0,
        "gtol": GRADIENT_TOLERANCE * float(scale.min()),
    }
    result = minimize(lambda x: looked(x)[:2], np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    x = result.x
    _, slope, at = looked(x)
    for _ in range(_ROUNDS):
        if np.abs(slope / scale).max() <= GRADIENT_TOLERANCE:
            break
        there = x + _newton_step(lambda x: looked(x)[1], x, slope)
        _, following, then = looked(there)
        if not np.abs(following).max() < np.abs(slope).max() / 2:
            break
        x, slope, at = there, following, then
    steepest = float(np.abs(slope / scale).max())
    return Minimum(start + scale * x, at, n_passes, steepest <= 100 * GRADIENT_TOLERANCE, steepest)


def _newton_step(slope_at: Callable[[Array], Array], x: Array, slope: Array) -> Array:
    """About −H⁻¹ slope, to a tenth of a percent."""
    step, rest = np.zeros(len(x)), -slope
    turn, size = rest, float(slope @ slope)
    goal = 1e-6 * size
    for _ in range(_TURNS):
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
