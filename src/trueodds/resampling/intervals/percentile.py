"""Percentile, basic and BCa bootstrap intervals, and the jackknife that BCa needs."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from trueodds.binning.row_selections import RowSelections
from trueodds.core.errors import InputError
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Mean
from trueodds.kernels.bins import sums_by_cell
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.pvalues import TIE_TOLERANCE, divide_by_largest


def percentile_interval(draws: Array, level: float) -> Interval:
    """Interval between the central quantiles of the resamples.

    For a statistic with upward bias it is shifted upward and can miss the truth.
    """
    low, high = central_quantiles(draws, level)
    return Interval(low, high, level, "percentile")


def basic_interval(value: float, draws: Array, level: float) -> Interval:
    """Percentile interval reflected at the estimate, 2θ̂ − q."""
    low, high = central_quantiles(draws, level)
    return Interval(2 * value - high, 2 * value - low, level, "basic")


def central_quantiles(draws: Array, level: float) -> tuple[float, float]:
    return _quantiles(draws, np.array([(1 - level) / 2, (1 + level) / 2]))


def _quantiles(draws: Array, probabilities: Array) -> tuple[float, float]:
    """Two quantiles of draws, which may be infinite: instead of an interpolation that is undefined, the lower draw."""
    with np.errstate(invalid="ignore"):
        quantiles = np.quantile(draws, probabilities)
    if np.isnan(quantiles).any():
        quantiles = np.where(np.isnan(quantiles), np.quantile(draws, probabilities, method="lower"), quantiles)
    return float(quantiles[0]), float(quantiles[1])


def bca_interval(value: float, draws: Array, jackknife_values: Array, level: float) -> Interval:
    r"""Efron's bias-corrected and accelerated interval.

    .. math:: \alpha = \Phi\Big(z_0 + \frac{z_0 + z}{1 - a (z_0 + z)}\Big)

    is the level of the percentile that replaces Φ(z), with :math:`z_0` from the share of resamples below the estimate
    (and half of those equal to it) and the acceleration a from the skewness of the delete-one values
    `jackknife_values`, which is 0 if one of these is infinite. If all resamples are strictly on one side of the
    estimate, the percentile interval is returned.
    Source: Efron (1987).
    """
    # Rounding must not separate equal values: of a rate with few events, many resamples have the observed value.
    tolerance = TIE_TOLERANCE * np.abs(draws[np.isfinite(draws)]).max(initial=abs(value))
    share_below = ((draws < value - tolerance).sum() + (draws <= value + tolerance).sum()) / (2 * len(draws))
    if not 0 < share_below < 1:
        return percentile_interval(draws, level)
    z0 = ndtri(share_below)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = divide_by_largest(jackknife_values.mean() - jackknife_values)  # the skewness has no scale
    squares = deviations * deviations  # products are much faster than the third power
    scale = 6 * squares.sum() ** 1.5  # 0 without deviations, NaN if a delete-one value is infinite
    acceleration = (squares * deviations).sum() / scale if scale > 0 else 0.0
    z = z0 + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = _quantiles(draws, ndtr(z0 + z / (1 - acceleration * z)))
    return Interval(low, high, level, "bca")


MAX_JACKKNIFE_EVALUATIONS = 5_000  # a statistic without bins is recomputed for each row left out


def jackknife(preds: Predictions, estimand: Estimand) -> Array:
    """Value of each view with each unit, a row or a cluster, left out, (views, units).

    Raises InputError for statistics without bins on more than MAX_JACKKNIFE_EVALUATIONS units.
    """
    unit_of_row = np.arange(preds.n) if preds.cluster is None else preds.cluster
    if isinstance(estimand.estimator, Mean):
        return np.stack(
            [jackknife_mean(estimand.estimator.row_scores(view), view.w, unit_of_row) for view in estimand.views]
        )
    n_units = int(np.max(unit_of_row)) + 1
    is_fast = not any(statistic.is_refitted for statistic in estimand.cell_statistics or ())
    if estimand.cell_statistics is not None and (is_fast or n_units <= MAX_JACKKNIFE_EVALUATIONS):
        return np.stack(
            [
                _jackknife_bins(view, cell_statistic, unit_of_row)
                for view, cell_statistic in zip(estimand.views, estimand.cell_statistics, strict=True)
            ]
        )
    if n_units > MAX_JACKKNIFE_EVALUATIONS:
        raise InputError(
            "TO205",
            f"BCa would recompute {estimand.estimator.name} {n_units:,} times, once for each row left out.",
            "⟨interval='bca'⟩",
            "Use ⟨interval='percentile'⟩ or 'basic'.",
        )
    remaining = [np.flatnonzero(unit_of_row != g) for g in range(n_units)]
    return np.array([estimand.estimator.evaluate_selections(RowSelections(view, remaining)) for view in estimand.views])


def jackknife_mean(score: Array, w: Array, unit_of_row: Array) -> Array:
    """Means of a score (n,) with each unit (a row or a cluster) left out, (units,)."""
    weights, total = np.bincount(unit_of_row, w), np.bincount(unit_of_row, w * score)
    with np.errstate(invalid="ignore"):  # 0/0 if the view has one row
        return np.asarray((total.sum() - total) / (weights.sum() - weights))


def _jackknife_bins(view: View, cell_statistic: CellStatistic, unit_of_row: Array) -> Array:
    """Values (units,) of one view with each unit left out, from the bin sums minus those of the unit."""
    m = view.p.shape[1] if view.joint else 1
    n_units = int(np.max(unit_of_row)) + 1
    values = np.empty(n_units)
    step = max(1, 2**21 // (cell_statistic.size * m))
    order = np.argsort(unit_of_row, kind="stable")
    unit_starts = np.searchsorted(unit_of_row[order], np.arange(n_units + 1))
    w, p, y = view.w, view.p.reshape(len(view.w), m), view.y.reshape(len(view.w), m)
    size, index = cell_statistic.size, cell_statistic.index
    shape = (size,) if m == 1 else (size, m)
    summands = (w[:, None], w[:, None] * p, w[:, None] * y)
    full_sums = [sums_by_cell(index, x, size) for x in summands]
    for start in range(0, n_units, step):  # a block of units
        stop = min(start + step, n_units)
        rows = order[unit_starts[start] : unit_starts[stop]]
        cell_of_unit = (unit_of_row[rows] - start) * size + index[rows]
        remaining_sums = []
        for full_sum, x in zip(full_sums, summands, strict=True):
            unit_sums = sums_by_cell(cell_of_unit, x[rows], (stop - start) * size).reshape(stop - start, size, -1)
            remaining_sums.append(full_sum[None] - unit_sums)
        # A bin whose rows are all left out contains only rounding errors and is set to 0.
        weights = np.where(remaining_sums[0][..., 0] > 1e-12 * w.sum(), remaining_sums[0][..., 0], 0.0)
        predicted, observed = (x.reshape(stop - start, *shape) for x in remaining_sums[1:])
        values[start:stop] = cell_statistic.statistic(weights, predicted, observed)
    return values
