"""How likely are the outcomes if their log odds are linear? Sums that add, and the coefficients that fit best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from trueodds.calibrators.likelihood.moments import Lines, Moments
from trueodds.calibrators.likelihood.newton import STEEP, Minimum, minimum
from trueodds.calibrators.likelihood.row_sums import InMemory, RowSums
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.tallies.likelihood import Likelihood

_BLOCK = 1 << 13  # rows per block: temporaries stay in cache, and linear algebra stays in one thread


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
    opposite = e * near
    # What came of the other side: the slope is w(q − y), written without the difference.
    missed = np.where(above, 1 - y, y)
    value = float(w @ (np.log1p(e) + size * missed))
    slope = w * np.where(above, 1.0, -1.0) * (missed * near - (1 - missed) * opposite)
    weighted = [(w * near * opposite) * column for column in columns]
    gradient = np.array([slope @ column for column in columns])
    hessian = np.array([[one @ other for other in columns] for one in weighted])
    return Likelihood(value, gradient, hessian.reshape(len(theta), len(theta)), float(w.sum()), len(w))


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """The coefficients of largest likelihood."""

    theta: Array  # (m,)
    value: float  # minus the log-likelihood there
    n_passes: int
    converged: bool  # whether they are finite
    rank: int  # in how many directions the rows say something
    means: Array | None = None  # (m,) of the columns, 0 of the first


def fit_logistic(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """The θ of largest likelihood; the first column is the intercept's.

    Directions of which the rows say nothing stay as in `rest`. Newton's method on columns that are turned so that
    they are uncorrelated: scores close to each other, or columns close to each other, are no worse than others.
    """
    return fit_logistic_from_sums(InMemory(Lines(X, y, w)), rest, intercept=intercept)


def fit_smoothed(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """The θ of largest likelihood of the `smoothed_targets` shares, which is always finite."""
    return fit_smoothed_from_sums(InMemory(Lines(X, y, w)), rest, intercept=intercept)


def fit_finite(X: Array, y: Array, w: Array, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """The best coefficients; where none are finite the tame ones, with `converged` False."""
    return fit_finite_from_sums(InMemory(Lines(X, y, w)), rest, intercept=intercept)


def fit_logistic_from_sums(data: RowSums, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """`fit_logistic` from passes over `Lines`."""
    return _fit_logistic(data, data.sum(partial(Moments.of, intercept=intercept)), rest, intercept)


def fit_smoothed_from_sums(data: RowSums, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """`fit_smoothed` from passes over `Lines`."""
    return _fit_smoothed(data, data.sum(partial(Moments.of, intercept=intercept)), rest, intercept)


def fit_finite_from_sums(data: RowSums, rest: Array, *, intercept: bool = True) -> LogisticFit:
    """`fit_finite` from passes over `Lines`."""
    moments = data.sum(partial(Moments.of, intercept=intercept))
    optimum = _fit_logistic(data, moments, rest, intercept)
    return optimum if optimum.converged else replace(_fit_smoothed(data, moments, rest, intercept), converged=False)


def _fit_logistic(data: RowSums, moments: Moments, rest: Array, intercept: bool) -> LogisticFit:
    optimum, theta, rank = _highest(data, moments, (moments.n_events, moments.n_nonevents), rest, intercept)
    return LogisticFit(theta, optimum.at.value, optimum.n_passes, optimum.converged, rank, moments.means)


def _fit_smoothed(data: RowSums, moments: Moments, rest: Array, intercept: bool) -> LogisticFit:
    smoothed = data.prepared(partial(_smooth_targets, n_events=moments.n_events, n_nonevents=moments.n_nonevents))
    n_events, n_nonevents = moments.n_events, moments.n_nonevents
    imagined = n_events * ((n_events + 1) / (n_events + 2)) + n_nonevents / (n_nonevents + 2)
    optimum, theta, rank = _highest(smoothed, moments, (imagined, n_events + n_nonevents - imagined), rest, intercept)
    return LogisticFit(theta, optimum.at.value, optimum.n_passes, optimum.slope <= 100 * STEEP, rank, moments.means)


def _highest(
    data: RowSums, moments: Moments, outcomes: tuple[float, float], rest: Array, intercept: bool
) -> tuple[Minimum, Array, int]:
    """From the weight of what came, and of what did not."""
    turns = moments.turns
    start = -turns.back @ rest
    if intercept:
        start = start + turns.back[:, 0] * np.log((outcomes[0] + 1) / (outcomes[1] + 1))
    turned = data.prepared(partial(turns.turned, rest=rest))
    if not len(start):  # no column says anything
        return Minimum(start, turned.sum(partial(_at, theta=start)), 1, True, 0.0), rest, 0
    optimum = minimum(
        lambda theta: turned.sum(partial(_at, theta=theta)), start,
        several=lambda places: turned.sums(partial(_at, theta=theta) for theta in places),
    )  # fmt: skip
    return optimum, rest + turns.turn @ optimum.theta, len(start)


def _at(lines: Lines, theta: Array) -> Likelihood:
    return logistic(lines.X, lines.y, lines.w, theta, lines.offset)


def _smooth_targets(lines: Lines, n_events: float, n_nonevents: float) -> Lines:
    return lines._replace(y=_shares(lines.y, n_events, n_nonevents))


def smoothed_targets(y: Array, w: Array) -> Array:
    r"""Platt's shares, which keep every fit finite: one more outcome of either kind is imagined.

    .. math:: t = y\,\frac{N_1 + 1}{N_1 + 2} + (1 - y)\,\frac{1}{N_0 + 2}

    >>> smoothed_targets(np.array([1.0, 0.0, 0.0]), np.ones(3)).round(4).tolist()
    [0.6667, 0.25, 0.25]
    """
    return _shares(y, float(w @ y), float(w @ (1 - y)))


def _shares(y: Array, n_events: float, n_nonevents: float) -> Array:
    return y * ((n_events + 1) / (n_events + 2)) + (1 - y) / (n_nonevents + 2)


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
