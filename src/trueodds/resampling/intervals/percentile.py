"""Percentile, basic and BCa bootstrap intervals, and the jackknife that BCa needs."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from trueodds.core.arithmetic import divide_by_largest
from trueodds.core.errors import InputError
from trueodds.core.pvalues import TIE_TOLERANCE
from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean
from trueodds.resampling.draws import Jackknife, evaluate
from trueodds.resampling.estimand import Estimand


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
    draws = Jackknife(unit_of_row)
    uses_sums = estimand.cell_statistics is not None
    is_refitted = any(statistic.is_refitted for statistic in estimand.cell_statistics or ())
    if (is_refitted or not uses_sums) and draws.n_units > MAX_JACKKNIFE_EVALUATIONS:
        raise InputError(
            "TO205",
            f"BCa would recompute {estimand.estimator.name} {draws.n_units:,} times, once for each row left out.",
            "⟨interval='bca'⟩",
            "Use ⟨interval='percentile'⟩ or 'basic'.",
        )
    return evaluate([estimand], draws)[0]


def jackknife_mean(score: Array, w: Array, unit_of_row: Array) -> Array:
    """Means of a score (n,) with each unit (a row or a cluster) left out, (units,)."""
    weights, total = np.bincount(unit_of_row, w), np.bincount(unit_of_row, w * score)
    with np.errstate(invalid="ignore"):  # 0/0 if the view has one row
        return np.asarray((total.sum() - total) / (weights.sum() - weights))
