"""Measure the calibration error or a proper score, with a confidence interval and a noise floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_seed,
    data_notes,
    reported_call_settings,
    resolve_data,
    resolve_lens,
    resolve_method,
)
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.results import Estimate
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.resampling.estimate import estimate_error, value_from_tally
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally


@accept_separate_arrays
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
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Estimate:
    """Estimate a calibration error or a proper score, with a confidence interval and a noise floor.

    The noise floor is the value that a perfectly calibrated model with these predictions would have on average.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Predictions with their outcomes. The two arrays may also be passed separately, as in
        ``measure(y_true, y_prob, "ece")``. Whatever `read` accepts (a path, a data frame) is read first.
    estimator : str or Estimator, default="ece"
        Name of an estimator (``trueodds list estimators`` prints them). An instance with its settings is accepted too.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. Each is compared with an outcome of its own:

        - ``"positive"``: the probability of the second of two classes.
        - ``"confidence"``: the largest probability, and whether that class was observed.
        - ``"top-label"``: the confidence, separately for every predicted class.
        - ``"class:NAME"``: the probability of one class, by name or number.
        - ``"classwise"``: every class against the rest, averaged over the classes.
        - ``"canonical"``: the whole probability vector.
        - ``"rank:2"``: the second largest probability, and whether that class was observed.
        - ``"top-2"``: the two largest probabilities and the rest, as one vector.
        - ``"groups:[[0,1],[2]]"``: groups of classes with their summed probabilities.

        The default is that of the method if it has one (``"canonical"`` for proper scores), else ``"positive"`` for two
        classes and ``"confidence"`` for more.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None, default="auto"
        Method of the confidence interval. None omits the interval and the noise floor, which is fast.
    level : float, default=0.95
        Confidence level of the interval.
    resamples : int, optional
        Number of bootstrap resamples, 2,000 by default.
    resample : {"auto", "rows", "cells"}, default="auto"
        What the bootstrap draws with replacement. ``"auto"`` draws rows if there are at most 200,000 of them, otherwise
        cells (pairs of a bin and an outcome) for one view, and random groups of rows for several.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the values of several views, such as the classes of ``"classwise"``, are combined into one number. The
        default is the mean (``"weight"`` for ``"top-label"``).
    region : as in `resolve_data`
    mode, weight_kind : as in `resolve_data`
    rng : as in `as_generator`
    **settings
        Settings of the estimator, such as `bins`, `partition`, `min_size`, `closed`, `range`, `distance`, `order` or
        `min_prob`.

    Returns
    -------
    Estimate
        The value, its interval and noise floor, the settings used and notes. It prints in one line.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid arrays, TO301 to TO313 for files and columns, TO201 for an unknown name, TO202 for an
        unknown setting, TO203 for an invalid value, TO204 for an unknown or unsuitable lens, TO205 for settings that
        exclude each other, TO403 if a tally was passed and single rows are needed.

    See Also
    --------
    test : Test whether the predictions are calibrated.
    compare : Compare the errors or scores of two models.
    by_group : Estimate and test the error of every subgroup.
    power : Plan the number of rows for an interval of a given width.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25)
    >>> print(round(to.measure(preds, "brier").value, 4))
    0.0925
    """
    interval_spec = IntervalSpec(
        interval, check("level", level, Level, 0.95), 2000 if resamples is None else resamples, resample
    )
    aggregate = check("aggregate", aggregate, Aggregate | None, None)
    generator = as_generator(rng)
    method = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
    method, rows = method.prepare(resolve_data(data, mode, weight_kind, region))
    resolved_lens = resolve_lens(rows, lens, method)
    aggregation = aggregate or resolved_lens.aggregate
    estimate = estimate_error(rows, method, resolved_lens, aggregation, interval_spec, generator)
    settings_used = dict(estimate.settings) | reported_call_settings(rng, rows, weight_kind, region, resolved_lens)
    return replace(
        estimate, settings=settings_used, notes=tuple(dict.fromkeys([*data_notes(rows, source=data), *estimate.notes]))
    )


def measure_value(tally: Tally, estimator: str | Estimator = "ece", *, lens: Any = None, **settings: Any) -> float:
    """Return the value that `measure` estimates from a tally, alone and several times as fast.

    Parameters
    ----------
    tally : Tally
        The sums of the rows.
    estimator : str or Estimator, default="ece"
        Name of an estimator, or an instance with its settings.
    lens : str or Lens, optional
        As for `measure`.
    **settings
        Settings of the estimator.

    Returns
    -------
    float
        The value.

    Raises
    ------
    InputError
        As for `measure`.
    """
    method = resolve_method(ESTIMATORS, Estimator, estimator, settings)
    resolved_lens = resolve_lens(tally, lens, method)
    return value_from_tally(tally, method, resolved_lens, resolved_lens.aggregate)
