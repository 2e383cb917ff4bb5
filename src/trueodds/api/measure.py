"""Measure the calibration error or a proper score, with a confidence interval and a noise floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_seed,
    call_settings,
    data_notes,
    pairs_arrays,
    resolve_lens,
    resolve_method,
    restrict_to_region,
)
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.results import Estimate
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.measure import estimate_error


@pairs_arrays
def measure(
    data: Any,
    estimator: str | Estimator = "ece",
    *,
    lens: Any = None,
    interval: str | None = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    resample: str = "auto",
    aggregate: str | None = None,
    region: Any = None,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Estimate:
    """How far off the probabilities are: an error with its interval and its noise floor.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Of two arrays `measure(y_true, y_prob, "ece")` says the same. A Source is collected where it fits into memory
        and tallied where it does not (`mode` decides by hand).
    estimator : str or Estimator
        A name of `trueodds list estimators`, or an instance with its settings.
    lens : str, Lens or callable, optional
        Which claim is examined; `positive` for two classes, else `confidence`; `canonical` for proper scores.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None
        None gives the bare number, without interval and noise floor, for inner loops.
    level : float
        Of the interval.
    resamples : int, optional
        Bootstrap resamples, 2,000 if not said.
    resample : {"auto", "rows", "cells"}
        What is drawn with replacement; rows up to 200,000 of them, beyond that bins and outcomes.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the views of a lens such as `classwise` make one number: the mean, if not said (`weight` for `top-label`).
    region : str, mapping or callable, optional
        Only the rows whose predictions lie there: `"confidence > 0.9"`, `{"class:cat": (0.2, 0.8)}`, or P -> mask.
    mode : {"exact", "tally"}, optional
        Rows in memory, or cells of the fine grid.
    weight_kind : {"importance", "frequency"}
        Whether a weight of two is two observed rows (`frequency`) or one row that counts double.
    rng : int or Generator
        The same call with the same seed gives the same number.
    **settings
        The estimator's own: bins, partition, min_size, closed, range, distance, order, floor, …

    >>> preds = Predictions([1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25)
    >>> print(round(measure(preds, "brier").value, 4))
    0.0925
    """
    interval_spec = IntervalSpec(
        interval, check("level", level, Level, 0.95), 2000 if resamples is None else resamples, resample
    )
    aggregate = check("aggregate", aggregate, Aggregate | None)
    generator = as_generator(rng)
    method = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
    rows = restrict_to_region(resolve_data(data, mode, weight_kind), region)
    chosen = resolve_lens(rows, lens, method)
    aggregation = aggregate or chosen.aggregate
    estimate = estimate_error(rows, method, chosen, aggregation, interval_spec, generator)
    settings_used = dict(estimate.settings) | call_settings(rng, rows, weight_kind, region)
    return replace(estimate, settings=settings_used, notes=tuple(dict.fromkeys([*data_notes(rows), *estimate.notes])))
