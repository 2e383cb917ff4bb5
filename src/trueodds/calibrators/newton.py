"""Where is a convex likelihood highest? Newton's method on sums that may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.tally.likelihood import Likelihood

Array = NDArray[Any]

STEEP = 1e-10  # the largest slope per row that is left, in any direction
PASSES = 100
ROUNDING = 1e-14  # of the largest curvature, below which another one is noise
FLAT = 1e-6  # the share of the curvature at the start at which the minimum is taken to be at infinity


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    r"""The penalty :math:`\sum_j a_j(\theta_j - c_j)^2` on the mean loss per row."""

    strength: Array  # (m,) a ≥ 0
    center: Array  # (m,) c


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where Newton's method stopped."""

    theta: Array  # (m,)
    at: Likelihood  # the sums there, without the penalty
    passes: int  # over the rows
    converged: bool  # whether the slope vanishes at a finite place
    slope: float  # the largest one per row that is left


def minimum(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge | None = None) -> Minimum:
    r"""The θ of least :math:`F(\theta)/w + \sum_j a_j (\theta_j - c_j)^2`, from sums F with its derivatives.

    One call of `sums` is one pass over the rows. Directions in which F has no curvature are left where they started.
    Where no finite θ is best (the outcomes are separated) the sums fall towards a limit while θ grows by about one
    step per pass: it stops where the slope is below `STEEP` per row, and `converged` is False.

    >>> F = lambda t: Likelihood(float((t[0] - 3) ** 2), 2 * (t - 3), np.array([[2.0]]), 1.0, 1)
    >>> minimum(F, np.zeros(1)).theta.tolist()
    [3.0]
    """
    theta = np.array(start, dtype=np.float64)
    a = np.zeros(len(theta)) if ridge is None else ridge.strength
    c = theta if ridge is None else ridge.center
    at = sums(theta)
    passes, first = 1, None
    w = at.weight if at.weight > 0 else 1.0
    value = at.value / w + float(a @ (theta - c) ** 2)
    while True:
        slope = at.gradient / w + 2 * a * (theta - c)
        bend = at.hessian / w + np.diag(2 * a)
        values, turns = np.linalg.eigh(bend)
        first = float(values[-1]) if first is None else first
        live = values > ROUNDING * max(float(values[-1]), 0.0)
        steepest = float(np.abs(slope).max(initial=0.0))
        if steepest <= STEEP or passes >= PASSES or not live.any():
            break
        along = turns[:, live]
        step = -(along / values[live]) @ (along.T @ slope)
        promise = -float(slope @ step)
        far = 1.0
        while True:
            there = theta + far * step
            following = sums(there)
            passes += 1
            reached = following.value / w + float(a @ (there - c) ** 2)
            # A value that rounding hides is as good as a lower one.
            if reached <= value - 1e-4 * far * promise + 1e-14 * (1 + abs(value)) or passes >= PASSES:
                break
            far /= 2
        if not reached <= value + 1e-13 * (1 + abs(value)):
            break
        theta, at, value = there, following, reached
    curved = values[live].min(initial=np.inf) > FLAT * first if first else True
    return Minimum(theta, at, passes, bool(steepest <= 100 * STEEP and curved), steepest)
