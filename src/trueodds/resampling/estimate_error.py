"""Estimate an error with its confidence interval and noise floor, from rows or from a tally."""

from __future__ import annotations

import numpy as np

from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import DEFAULT_REDRAWS, noise_floor_draws
from trueodds.resampling.tally_estimates import estimate_from_tally
from trueodds.tallies.tally import Tally


def estimate_error(
    data: Predictions | Tally,
    error: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate an error through a lens; `aggregate` is how the values of several views are combined."""
    if isinstance(data, Tally):
        return estimate_from_tally(data, error, lens, aggregate, interval_spec, DEFAULT_REDRAWS, rng)
    estimands = [Estimand.from_predictions(error, lens, data, aggregate)]
    (estimate,) = estimate_all(
        data, estimands, interval_spec, rng, lambda simulated: noise_floor_draws(data, simulated, rng)
    )
    return estimate
