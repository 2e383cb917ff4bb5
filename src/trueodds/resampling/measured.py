"""One error through one lens in full, from rows or from a tally."""

from __future__ import annotations

import numpy as np

from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.lens import Lens
from trueodds.resampling import tallied
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimates
from trueodds.resampling.floors import REDRAWS, floors
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.tallies.tally import Tally


def measured(
    rows: Predictions | Tally,
    error: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
) -> Estimate:
    """The value with its interval and its noise floor."""
    if isinstance(rows, Tally):
        return tallied.estimate(rows, error, lens, aggregate, interval_spec, REDRAWS, rng)
    estimands = [Estimand.of(error, lens, rows, aggregate)]
    (estimate,) = estimates(rows, estimands, interval_spec, rng, lambda every: floors(rows, every, rng))
    return estimate
