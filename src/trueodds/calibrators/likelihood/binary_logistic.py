"""How likely are the outcomes if their log odds are linear? Sums that add, and the coefficients that fit best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators.likelihood.newton import STEEP, Minimum, minimum
from trueodds.core.errors import Note
from trueodds.tally.likelihood import Likelihood

Array = NDArray[Any]

_BLOCK = 1 << 13  # rows per block: temporaries stay in cache, and linear algebra stays in one thread
_ALIKE = 1e-9  # a column that varies by less, relative to its size, is constant
_SAME = 1e-8  # the share of the variance below which columns are linear in each other


def logistic(X: Array, y: Array, w: Array, theta: Array, offset: Array | None = None) -> Likelihood:
    r"""The sums of the model :math:`\mathrm{logit}\,q_i = \eta_i = o_i + X_i\theta`.

    .. math:: F = \sum_i w_i\,[\log(1 + e^{\eta_i}) - y_i\eta_i], \quad
        \nabla F = \sum_i w_i (q_i - y_i) X_i, \quad \nabla^2 F = \sum_i w_i q_i (1 - q_i) X_i^\top X_i

    Convex in θ. X is (n, m), best column by column in memory, y (n,) shares, w (n,), θ (m,), o (n,). No difference is taken of numbers that are all
    but equal, so a slope of 1e-12 per row is as exact as one of 0.1. Cost: O(nm²) time, O(m²) memory beyond a block.

    >>> one = logistic(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), np.ones(4), np.log([3.0]))
    >>> one.gradient.round(12).tolist(), one.hessian.round(12).tolist()
    ([0.0], [[0.75]])
    """
    m = X.shape[1]
    total = Likelihood(0.0, np.zeros(m), np.zeros((m, m)), 0.0, 0)
    for start in range(0, len(X), _BLOCK):
        part = slice(start, start + _BLOCK)
        total = total + _block(X[part], y[part], w[part], theta, None if offset is None else offset[part])
    return total


def _block(X: Array, y: Array, w: Array, theta: Array, offset: Array | None) -> Likelihood:
    columns = X.T
    eta = np.zeros(len(X)) if offset is None else offset.copy()
    for j, column in enumerate(columns):
        eta += theta[j] * column
    above = eta >= 0
    size = np.abs(eta)
    e = np.exp(-size)
    near = 1 / (1 + e)  # of the side that η is on
    far = e * near
    # What came of the other side: the slope is w(q − y), written without the difference.
    missed = np.where(above, 1 - y, y)
    value = float(w @ (np.log1p(e) + size * missed))
    slope = w * np.where(above, 1.0, -1.0) * (missed * near - (1 - missed) * far)
    weighted = [(w * near * far) * column for column in columns]
    gradient = np.array([slope @ column for column in columns])
    hessian = np.array([[one @ other for other in columns] for one in weighted])
    return Likelihood(value, gradient, hessian.reshape(len(theta), len(theta)), float(w.sum()), len(w))


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The coefficients of largest likelihood."""

    theta: Array  # (m,)
    value: float  # minus the log-likelihood there
    passes: int
    converged: bool  # whether they are finite
    told: int  # in how many directions the rows say something


def best(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> Best:
    """The θ of largest likelihood; the first column is the intercept's.

    Directions of which the rows say nothing stay as in `rest`. Newton's method on columns that are turned so that
    they are uncorrelated: scores close to each other, or columns close to each other, are no worse than others.
    """
    found, theta, told = _highest(X, y, w, rest, intercept)
    return Best(theta, found.at.value, found.passes, found.converged, told)


def tame(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> Best:
    """The θ of largest likelihood of the `held` shares, which is always finite."""
    found, theta, told = _highest(X, held(y, w), w, rest, intercept)
    return Best(theta, found.at.value, found.passes, found.slope <= 100 * STEEP, told)


def finite(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> Best:
    """The best coefficients; where none are finite the tame ones, with `converged` False."""
    found = best(X, y, w, rest, intercept=intercept)
    return found if found.converged else replace(tame(X, y, w, rest, intercept=intercept), converged=False)


def _highest(X: Array, y: Array, w: Array, rest: Array, intercept: bool) -> tuple[Minimum, Array, int]:
    columns, turn, back = _turned(X, w, intercept)
    start = -back @ rest
    if intercept:
        came, gone = float(w @ y), float(w @ (1 - y))
        start = start + back[:, 0] * np.log((came + 1) / (gone + 1))
    offset = X @ rest
    if not len(start):  # no column says anything
        at = logistic(columns, y, w, start, offset)
        return Minimum(start, at, 1, True, 0.0), rest, 0
    found = minimum(lambda beta: logistic(columns, y, w, beta, offset), start)
    return found, rest + turn @ found.theta, len(start)


def held(y: Array, w: Array) -> Array:
    r"""Platt's shares, which keep every fit finite: one more outcome of either kind is imagined.

    .. math:: t = y\,\frac{N_1 + 1}{N_1 + 2} + (1 - y)\,\frac{1}{N_0 + 2}

    >>> held(np.array([1.0, 0.0, 0.0]), np.ones(3)).round(4).tolist()
    [0.6667, 0.25, 0.25]
    """
    came, gone = float(w @ y), float(w @ (1 - y))
    return y * ((came + 1) / (came + 2)) + (1 - y) / (gone + 2)


def _turned(X: Array, w: Array, intercept: bool) -> tuple[Array, Array, Array]:
    """Uncorrelated columns Z = X·turn of variance 1, the turn (m, r), and the way back (r, m), for which back·turn = 1."""
    m, total = X.shape[1], float(w.sum())
    center = np.eye(m)
    if intercept:
        center[0, 1:] = [-(w @ column) / total for column in X.T[1:]]
    Z = X.T + np.where(np.arange(m) > 0, center[0], 0.0)[:, None]
    size, whole = (np.sqrt([w @ column**2 / total for column in columns]) for columns in (Z, X.T))
    told = size > _ALIKE * whole
    Z, size = Z * told[:, None], np.where(told, size, 1.0)
    spread = np.array([[(w * one) @ other for other in Z] for one in Z]) / total / np.outer(size, size)
    values, turns = np.linalg.eigh(spread)
    live = values > _SAME * max(float(values[-1]), _SAME)
    values, turns = np.sqrt(values[live]), turns[:, live]
    turn = turns / size[:, None] / values
    back = (turns * size[:, None] * values).T @ np.linalg.inv(center)
    turned = np.zeros((len(values), len(X)))
    for i, j in np.ndindex(turned.shape[0], m):
        turned[i] += turn[j, i] * Z[j]
    return turned.T, center @ turn, back


def log_ratio(P: Array, floor: float) -> Array:
    """log(p₁ / p₀) of two columns (n, 2), each floored; the digits near 0 and 1 are those of P."""
    p = np.maximum(P, floor, dtype=np.float64)
    return np.log(p[:, 1]) - np.log(p[:, 0])


def line(x: Array) -> Array:
    """The columns (1, x)."""
    return np.stack([np.ones(len(x)), x]).T


def separated(curves: int = 1) -> Note:
    """No finite coefficients are best."""
    which = "" if curves == 1 else f" in {curves:,} curves"
    return Note(
        "TN515",
        f"The scores separate what came from what did not{which}, or all outcomes are the same: no finite coefficients fit best, so one more outcome of either kind was imagined, as Platt does.",
    )
