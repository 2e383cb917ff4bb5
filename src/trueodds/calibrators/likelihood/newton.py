"""Where is a convex likelihood highest? Newton's method on sums that may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from trueodds.core.typing import Array
from trueodds.tallies.likelihood import Likelihood

STEEP = 1e-10  # the largest slope per row that is left, in any direction
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


def minimum(
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
    >>> minimum(F, np.zeros(1)).theta.round(9).tolist()
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
        if steepest <= STEEP or n_passes >= MAX_EVALUATIONS:
            break
        step = -_solved(hessian, slope)
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
            shorter = shorter or _halved(theta, step, several or partial(map, sums))
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
        little = promise * max(at.weight, at.n) < nothing or np.abs(slope).max() <= STEEP
        endless = bool(length and little and float(step @ hessian @ step) < FALLING * before)
        if endless:
            break
    steepest = float(np.abs(slope).max(initial=0.0))
    return Minimum(theta, at, n_passes, steepest <= 100 * STEEP and not endless, steepest)


def _halved(
    theta: Array, step: Array, several: Callable[[Sequence[Array]], Iterable[Likelihood]]
) -> Iterator[tuple[float, Array, Likelihood]]:
    """The step halved ever again, where that leads, and the sums there."""
    for first in range(1, MAX_EVALUATIONS, SHORTER):
        lengths = [0.5**j for j in range(first, first + SHORTER)]
        places = [theta + length * step for length in lengths]
        yield from zip(lengths, places, several(places), strict=False)


def _solved(hessian: Array, slope: Array) -> Array:
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
