"""Where is a likelihood highest that has too many parameters for their curvature? By its slope alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.calibrators.likelihood.newton import STEEP, Minimum, Ridge
from trueodds.core.typing import Array
from trueodds.tallies.likelihood import Likelihood

_LOOKS = 1000  # at the values
_ROUNDS, _TURNS = 6, 50  # of Newton's method at the end, and of conjugate gradients in each


def descent(sums: Callable[[Array], Likelihood], start: Array, ridge: Ridge, scale: Array) -> Minimum:
    r"""The θ of least :math:`F(\theta)/w + (\theta - c)^\top A (\theta - c)`, by limited-memory BFGS.

    `scale` (m,) is about how far each parameter moves the sums: one over the root of its curvature. One call of `sums`
    is one pass over the rows; Hessians are not looked at. BFGS compares values, which leaves slopes near the root of
    rounding; Newton's method on the slopes, by conjugate gradients with differences of slopes in place of the
    curvature, takes them to `STEEP`.
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

    options = {"maxcor": 20, "maxiter": _LOOKS, "maxfun": _LOOKS, "ftol": 0.0, "gtol": STEEP * float(scale.min())}
    result = minimize(lambda x: looked(x)[:2], np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    x = result.x
    _, slope, at = looked(x)
    for _ in range(_ROUNDS):
        if np.abs(slope / scale).max() <= STEEP:
            break
        there = x + _newton_step(lambda x: looked(x)[1], x, slope)
        _, following, then = looked(there)
        if not np.abs(following).max() < np.abs(slope).max() / 2:
            break
        x, slope, at = there, following, then
    steepest = float(np.abs(slope / scale).max())
    return Minimum(start + scale * x, at, n_passes, steepest <= 100 * STEEP, steepest)


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
