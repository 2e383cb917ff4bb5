"""Interval settings, the interval method that suits an estimand, and its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.results import Interval
from trueodds.core.settings import OneOf, Probability, Range, Settings
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean
from trueodds.estimators.binned import BinnedError, BinSums
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS
from trueodds.resampling.cell_bootstrap import Resampled
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.intervals import residual_norm, squared_error
from trueodds.resampling.intervals.folded_normal import (
    bias_bounds,
    folded_normal_interval,
    gaps_of,
    has_gaps,
    influence_bound,
)
from trueodds.resampling.intervals.percentile import basic_interval, bca_interval, jackknife, percentile_interval
from trueodds.resampling.intervals.squared_error import squared_error_draws

UNITS = ("auto", "rows", "cells")  # resampling units
METHODS = ("auto", "percentile", "basic", "bca", "sun", "debiased")


@dataclass(frozen=True)
class IntervalSpec(Settings):
    """Settings of a confidence interval."""

    interval: Annotated[str, OneOf(METHODS)] | None = "auto"
    level: Probability = 0.95
    resamples: Annotated[int, Range(2, 100_000_000)] = 2000
    resample: Annotated[str, OneOf(UNITS)] = "auto"


UNDEFINED = "the value is infinite or undefined"


RESAMPLING_METHODS = (
    "percentile",
    "basic",
    "bca",
    "residual-norm",
    "folded-normal",
    "noise-floor",
    "floor-bounds",
    "debiased",
)  # methods that use bootstrap resamples
PLAIN_BOOTSTRAP_METHODS = (
    "percentile",
    "basic",
    "bca",
)  # methods that use nothing but the resamples; their interval need not contain a biased estimate


def method_for(estimand: Estimand, interval_spec: IntervalSpec, *, clustered: bool, cells: bool) -> str | None:
    """Interval method, with "auto" resolved; None if no method has measured coverage."""
    method = _method(estimand, interval_spec, clustered=clustered, cells=cells)
    if cells and method in ("bca", "debiased"):
        raise InputError(
            "TO205", f"The {method} interval requires the rows.", "a tally", "Use interval='auto', or mode='exact'."
        )
    return method


def _method(estimand: Estimand, interval_spec: IntervalSpec, *, clustered: bool, cells: bool) -> str | None:
    if interval_spec.interval != "auto":
        _check_method(estimand, interval_spec.interval, clustered=clustered)
        return interval_spec.interval
    if isinstance(estimand.estimator, Mean):
        return "normal" if cells else "bca"
    if is_root_mean_square(estimand) and not clustered and _rows_per_bin(estimand) >= 10:
        return "sun"
    if estimand.estimator.interval == "residual-norm":
        return "folded-normal" if has_gaps(estimand) else "residual-norm" if _has_norm(estimand) else None
    if estimand.estimator.interval == "bca" and cells:
        return "percentile"  # approximately equal to BCa for a smooth statistic of many rows
    return estimand.estimator.interval


def _has_norm(estimand: Estimand) -> bool:
    """Whether the error is a norm, so that the noise of the resamples can be measured by it."""
    if estimand.linear is None:
        return False
    return all(one.distance.norm for one in estimand.linear if isinstance(one, BinSums))


def _rows_per_bin(estimand: Estimand) -> float:
    """Rows per occupied bin; with few of them Sun's 95 % interval covers only 88 %."""
    assert estimand.linear is not None
    return estimand.views[0].n_rows / len(pooled_view(estimand.views[0], estimand.linear[0]).w)


def is_root_mean_square(estimand: Estimand) -> bool:
    """Whether the error is a root mean square over the bins of one score, which has an unbiased square."""
    error = estimand.estimator
    if not (isinstance(error, BinnedError) and error.order == 2 and str(error.distance) == "tv"):
        return False
    return len(estimand.views) == 1 and not estimand.views[0].joint and estimand.linear is not None


def _check_method(estimand: Estimand, method: str | None, *, clustered: bool) -> None:
    if method in ("sun", "debiased") and clustered:
        raise InputError(
            "TO205",
            f"The {method} interval assumes independent rows, and these rows are clustered.",
            f"interval={method!r}",
            "Use interval='auto', which resamples whole clusters.",
        )
    debiased = estimand.estimator.interval == "debiased" and method == "debiased"
    if method in ("sun", "debiased") and not is_root_mean_square(estimand) and not debiased:
        raise InputError(
            "TO205",
            f"The {method} interval is for the squared error of one score.",
            f"{estimand.estimator.name} through {estimand.lens}",
            "Use rmsce through a binary lens, or interval='auto'.",
        )


def uses_resamples(estimand: Estimand, method: str | None) -> bool:
    """Whether the method uses bootstrap resamples; those of the squared error are computed from separate sums."""
    return method in RESAMPLING_METHODS and not (method == "debiased" and is_root_mean_square(estimand))


def too_many_views(preds: Predictions, estimand: Estimand, interval_spec: IntervalSpec) -> bool:
    """Whether several views would be resampled by cells, which do not retain their covariance."""
    by_cells = interval_spec.resample == "auto" and preds.n > MAX_RESAMPLED_ROWS and preds.cluster is None
    return by_cells and len(estimand.views) > 1 and not isinstance(estimand.estimator, Mean)


def interval_of(
    preds: Predictions | None,
    estimand: Estimand,
    method: str | None,
    interval_spec: IntervalSpec,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
) -> tuple[Interval | None, str]:
    """Interval of an estimand by the chosen method, or the reason why there is none."""
    value = float(estimand.combined(estimand.values))
    if not np.isfinite(value):
        return None, UNDEFINED
    if method is None:
        return (
            None,
            "no method with measured coverage exists for this error; use interval='percentile' for the plain bootstrap",
        )
    if preds is not None and n_independent_units(preds) < 2:
        return None, "the variance cannot be estimated from one row or cluster"
    if uses_resamples(estimand, method) and resampled is None:
        return None, "with more than 200,000 rows several views are resampled jointly only with resample='rows'"
    interval = _interval_by_method(preds, estimand, method, interval_spec, resampled, null, rng, value)
    if interval.low < interval.high:
        return interval, ""
    if np.isnan(interval.low + interval.high):
        return None, "the value is undefined in resamples without a row of some class or group"
    return None, "the outcomes do not vary, so resampling cannot estimate the uncertainty"


def n_independent_units(preds: Predictions) -> int:
    """Number of independent rows or clusters."""
    return preds.n if preds.cluster is None else int(preds.cluster.max()) + 1


def _interval_by_method(
    preds: Predictions | None,
    estimand: Estimand,
    method: str,
    interval_spec: IntervalSpec,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
    value: float,
) -> Interval:
    if method == "sun" or (method == "debiased" and is_root_mean_square(estimand)):
        assert estimand.linear is not None
        view, one = estimand.views[0], estimand.linear[0]
        binned = pooled_view(view, one)
        if method == "sun":
            return squared_error.sun_interval(binned, interval_spec.level)
        assert preds is not None
        t, _ = squared_error.debiased_squared_error(binned)
        draws = squared_error_draws(preds, view, one.index, one.size, interval_spec.resamples, rng)
        return squared_error.root_interval(
            squared_error.debiased_interval(t, float(estimand.values[0]) ** 2, draws, interval_spec.level)
        )
    assert resampled is not None
    draws = estimand.combined(resampled.values)
    if method == "percentile":
        return percentile_interval(draws, interval_spec.level)
    if method == "basic":
        return basic_interval(value, draws, interval_spec.level)
    if method == "bca":
        assert preds is not None
        return bca_interval(value, draws, estimand.combined(jackknife(preds, estimand)), interval_spec.level)
    if method == "debiased":
        plug_in = estimand.combined(np.array([estimand.estimator.plug_in(view) for view in estimand.views]))
        return squared_error.pair_mean_interval(value, float(plug_in), draws, interval_spec.level)
    assert null is not None
    n = estimand.views[0].effective_n if preds is None or preds.cluster is None else n_independent_units(preds)
    if method == "noise-floor":
        return residual_norm.noise_floor_interval(
            value, draws, estimand.combined(null), interval_spec.level, n, estimand.estimator.power
        )
    if method == "floor-bounds":
        null_means = null.mean(axis=-1)
        parts = [
            estimand.estimator.noise_share(view, float(one)) * one
            for view, one in zip(estimand.views, null_means, strict=True)
        ]
        noise_floor = estimand.combined(np.array(parts))
        return residual_norm.noise_floor_bounds_interval(
            value, draws, float(noise_floor), estimand.combined(null), interval_spec.level, n
        )
    if method == "folded-normal":
        drawn = estimand.combined(null)
        bias = bias_bounds(gaps_of(estimand, preds), float(drawn.mean()), float(draws.mean()) - value)
        return folded_normal_interval(
            value, float(draws.std(ddof=1)), bias, drawn, interval_spec.level, n, influence_bound(estimand)
        )
    assert resampled.centered_norms is not None
    centered_norms, floors = estimand.combined(resampled.centered_norms), estimand.combined(null)
    smooth = (
        estimand.estimator.smooth
        and estimand.aggregate != "max"
        and not np.isinf(getattr(estimand.estimator, "order", 1.0))
    )
    return residual_norm.residual_norm_interval(
        value, draws, centered_norms, floors, interval_spec.level, n, smooth=smooth
    )
