"""What each row or cluster contributes: the statistic with one left out, and resamples of the squared error."""

from __future__ import annotations

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Linear, Mean
from trueodds.estimators.pairing.pairs import mean_square
from trueodds.kernels.resample import Resampler
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.resamples import Resamples

MAX_EVALUATIONS = 5_000  # a statistic without bins is evaluated afresh for each row left out


def jackknife(preds: Predictions, estimand: Estimand) -> Array:
    """The statistic of each view with one row (or one cluster) left out, (views, n or clusters)."""
    unit = np.arange(preds.n) if preds.cluster is None else preds.cluster
    if isinstance(estimand.estimator, Mean):
        return np.stack([_mean(estimand.estimator.rows(view), view.w, unit) for view in estimand.views])
    if estimand.linear is not None:
        return np.stack([_bins(view, one, unit) for view, one in zip(estimand.views, estimand.linear, strict=True)])
    units = int(np.max(unit)) + 1
    if units > MAX_EVALUATIONS:
        raise InputError(
            "TO205",
            f"BCa leaves out each of {units:,} rows, and {estimand.estimator.name} has no short cut here.",
            "interval='bca'",
            "Use interval='percentile' or 'basic'.",
        )
    remaining = [np.flatnonzero(unit != g) for g in range(units)]
    return np.array([estimand.estimator.evaluate_selections(Selections(view, remaining)) for view in estimand.views])


def _mean(score: Array, w: Array, unit: Array) -> Array:
    mass, total = np.bincount(unit, w), np.bincount(unit, w * score)
    with np.errstate(invalid="ignore"):  # of a view of one row nothing is left
        return np.asarray((total.sum() - total) / (mass.sum() - mass))


def _bins(view: View, one: Linear, unit: Array) -> Array:
    """Left out through the bins' sums: a row changes only its own bin."""
    m = view.p.shape[1] if view.joint else 1
    units = int(np.max(unit)) + 1
    out = np.empty(units)
    step = max(1, 2**21 // (one.size * m))
    order = np.argsort(unit, kind="stable")
    first = np.searchsorted(unit[order], np.arange(units + 1))
    w, p, y = view.w, view.p.reshape(len(view.w), m), view.y.reshape(len(view.w), m)
    shape = (one.size,) if m == 1 else (one.size, m)
    total = [_sums(one.index, one.size, x) for x in (w[:, None], w[:, None] * p, w[:, None] * y)]
    for start in range(0, units, step):
        stop = min(start + step, units)
        rows = order[first[start] : first[stop]]
        cell = (unit[rows] - start) * one.size + one.index[rows]
        left = []
        for full_sum, x in zip(total, (w[:, None], w[:, None] * p, w[:, None] * y), strict=True):
            gone = _sums(cell, (stop - start) * one.size, x[rows]).reshape(stop - start, one.size, -1)
            left.append(full_sum[None] - gone)
        # What is left of an emptied bin is rounding; it counts as empty.
        mass = np.where(left[0][..., 0] > 1e-12 * w.sum(), left[0][..., 0], 0.0)
        predicted, observed = (x.reshape(stop - start, *shape) for x in left[1:])
        out[start:stop] = one.statistic(mass, predicted, observed)
    return out


def _sums(cell: Array, size: int, x: Array) -> Array:
    return np.stack([np.bincount(cell, column, size) for column in x.T], axis=1)


def squared_error_draws(
    preds: Predictions, view: View, index: Array, size: int, resamples: int, rng: np.random.Generator
) -> Array:
    """T_mn of each resample of rows, for the interval of the debiased squared error."""
    if preds.cluster is not None:
        raise InputError(
            "TO205",
            "The debiased interval treats rows as independent, and these come in clusters.",
            "interval='debiased'",
            "Use interval='auto': clusters are resampled whole.",
        )
    u = view.w * (view.y - view.p)
    slots = np.stack([index, size + index], axis=1).astype(np.int32)
    mass = np.stack([view.w, view.w], axis=1)
    first, second = np.stack([u, view.w**2], axis=1), np.stack([u**2, np.zeros_like(u)], axis=1)
    resampler = Resampler(slots, mass, first, second, 2 * size)

    def of(times: Array) -> Array:
        w, one, two = resampler.sums(times)
        return mean_square(w[:, :size], one[:, :size], two[:, :size], one[:, size:])

    return np.concatenate(Resamples(len(u), None, resamples, rng).mapped(of, 2 * size))
