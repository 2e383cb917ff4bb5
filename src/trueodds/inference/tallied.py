"""What the statistic would be if every stated probability were right, drawn from cells instead of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.estimators.base import Linear
from trueodds.inference.asked import Asked
from trueodds.problem.view import View

Array = NDArray[Any]

NORMAL_FROM = 25.0  # a bin whose outcome count has at least this variance is drawn as normal


def cell_draws(asked: Asked, resamples: int, rng: np.random.Generator, covariance: Array | None = None) -> Array:
    """The statistic of each view when outcomes are drawn cell by cell, (views, draws).

    A bin's outcome count has mean Σwp and variance Σw²p(1−p). Large bins are normal; in small ones each fine
    cell is binomial at its mean probability. `covariance` (views · bins)² is the null covariance of class-wise
    report cells: with it the classes hang together as in the data (a normal copula), without it they are drawn
    apart.
    """
    if asked.linear is None:
        raise InputError(
            "TO403",
            f"{asked.estimator.name} with these settings needs the rows.",
            "a tally",
            "Use mode='exact', or fixed bins.",
        )
    if any(view.joint for view in asked.views):
        return np.stack(
            [_joint(view, one, resamples, rng) for view, one in zip(asked.views, asked.linear, strict=True)]
        )
    scores = None if covariance is None else _together(covariance, resamples, rng)
    found, start = [], 0
    for view, one in zip(asked.views, asked.linear, strict=True):
        z = rng.standard_normal((resamples, one.size)) if scores is None else scores[:, start : start + one.size]
        start += one.size
        w = np.bincount(one.index, view.w, one.size)
        wp = np.bincount(one.index, view.w * view.p, one.size)
        shape = (resamples, one.size)
        found.append(
            one.statistic(np.broadcast_to(w, shape), np.broadcast_to(wp, shape), _outcomes(view, one, wp, z, rng))
        )
    return np.stack(found)


def _together(covariance: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Standard normal scores whose correlation is that of the report cells."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(safe, safe))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scores: Array = rng.standard_normal((resamples, len(values))) @ root.T
    return scores


def _outcomes(view: View, one: Linear, wp: Array, z: Array, rng: np.random.Generator) -> Array:
    variance = np.bincount(one.index, view.sums("wwv"), one.size)
    drawn = wp + np.sqrt(np.maximum(variance, 0.0)) * z
    counts = np.array_equal(view.w, view.n)
    for b in np.flatnonzero((variance < NORMAL_FROM) & (wp > 0)) if counts else []:
        cells = np.flatnonzero(one.index == b)
        each = rng.binomial(view.n[cells].astype(np.int64), np.clip(view.p[cells], 0, 1), (len(z), len(cells)))
        # Sorted into the order of the scores: the bin keeps its law and its rank correlation with the others.
        drawn[np.argsort(z[:, b]), b] = np.sort(each.sum(axis=1))
    return drawn


def _joint(view: View, one: Linear, resamples: int, rng: np.random.Generator) -> Array:
    """Labels of a grid cell drawn as multinomial at its mean prediction."""
    m = view.p.shape[1]
    if not np.array_equal(view.w, view.n):
        raise InputError(
            "TO403", "The canonical null of a weighted tally needs the rows.", "a weighted tally", "Use mode='exact'."
        )
    wy = np.zeros((resamples, one.size, m))
    wp = np.zeros((1, one.size, m))
    for cell, (count, p) in enumerate(zip(view.n.astype(np.int64), view.p, strict=True)):
        wy[:, one.index[cell]] += rng.multinomial(count, p / p.sum(), resamples)
        wp[0, one.index[cell]] += count * p
    w = np.bincount(one.index, view.w, one.size)
    return one.statistic(np.broadcast_to(w, (resamples, one.size)), np.broadcast_to(wp, wy.shape), wy)
