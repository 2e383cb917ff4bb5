"""Where is a convex function lowest among vectors without negative entries? Newton's method under bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from trueodds.core.typing import Array

TOLERANCE = 1e-12  # of the gradient, which the caller scales to about 1
MAX_EVALUATIONS = 200
_DAMPING = 1e-8  # the share of its own curvature that is added to that of each entry
_SHORTEST = 2.0**-40  # part of a step
_EXCHANGES = 3  # of many entries at a time that may bring nothing before one is exchanged at a time


@dataclass(frozen=True, slots=True, eq=False)
class NonnegativeMinimum:
    """Where Newton's method under bounds stopped."""

    x: Array  # (m,) ≥ 0
    evaluations: int  # of the function, and of its derivatives
    converged: bool


def minimize_nonnegative(
    value: Callable[[Array], float],
    derivatives: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    max_evaluations: int = MAX_EVALUATIONS,
) -> NonnegativeMinimum:
    r"""The x ≥ 0 of least f(x), from its values and its derivatives :math:`(\nabla f, \nabla^2 f)`.

    It has converged where no entry of the gradient is below 0 and none is above 0 beside a positive entry of x, up to
    `TOLERANCE`. Each step leads to the least value among x ≥ 0 of the quadratic function that agrees with f here, and is
    halved until f falls. A slight damping keeps directions without curvature where they started. Convergence is
    quadratic and its limit does not depend on the path, so that rounding decides no more than the last digits.

    >>> A, b = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    >>> f, df = lambda x: x @ A @ x / 2 - b @ x, lambda x: (A @ x - b, A)
    >>> minimize_nonnegative(f, df, np.ones(2)).x.round(9).tolist()
    [0.5, 0.0]
    """
    x = np.array(start, dtype=np.float64)
    current, evaluations = value(x), 1
    while True:
        gradient, hessian = derivatives(x)
        evaluations += 1
        violation = float(np.abs(x - np.maximum(x - gradient, 0.0)).max(initial=0.0))
        if violation <= TOLERANCE or evaluations >= max_evaluations:
            break
        curvature = hessian.diagonal()
        damped = hessian + np.diag(np.where(curvature > 0, _DAMPING * curvature, 1.0))
        step = minimize_quadratic(damped, damped @ x - gradient, x > 0) - x
        decrease, length = -float(gradient @ step), 1.0
        while length >= _SHORTEST and evaluations < max_evaluations:
            candidate = x + length * step
            candidate_value = value(candidate)
            evaluations += 1
            # A value that rounding hides is as good as a lower one.
            if candidate_value <= current - 1e-4 * length * decrease + 1e-14 * (1 + abs(current)):
                x, current = candidate, candidate_value
                break
            length /= 2
        else:
            break
    return NonnegativeMinimum(x, evaluations, violation <= 100 * TOLERANCE)


def minimize_quadratic(H: Array, c: Array, active: Array) -> Array:
    r"""The x ≥ 0 of least :math:`x^\top H x / 2 - c^\top x`, H positive definite; `active` guesses where x > 0.

    Entries on the wrong side of their bound change it together, or the last of them alone where that brings nothing,
    which ends. Source: Júdice & Pires (1994); Murty (1974).
    """
    scale = 1 / np.sqrt(H.diagonal())
    H, c, active = H * scale[:, None] * scale, c * scale, active.copy()
    tolerance = 1e-15 * float(np.abs(c).max(initial=0.0))
    fewest, exchanges = len(c) + 1, _EXCHANGES
    for _ in range(100 + 10 * len(c)):
        x, indices = np.zeros(len(c)), np.flatnonzero(active)
        if len(indices):
            x[indices] = dposv(H[np.ix_(indices, indices)], c[indices])[1]
        wrong = np.flatnonzero(np.where(active, x < 0, H @ x - c < -tolerance))
        if not len(wrong):
            break
        if len(wrong) < fewest:
            fewest, exchanges = len(wrong), _EXCHANGES
        elif exchanges:
            exchanges -= 1
        else:
            wrong = wrong[-1:]
        active[wrong] = ~active[wrong]
    return np.maximum(x, 0.0) * scale
