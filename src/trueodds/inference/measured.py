"""One error through one lens in full, from rows or from a tally."""

from __future__ import annotations

import numpy as np

from trueodds.core.results import Estimate
from trueodds.estimators.base import Estimator
from trueodds.inference import tallied
from trueodds.inference.estimand import Estimand
from trueodds.inference.estimate import IntervalSpec, estimates
from trueodds.inference.floors import REDRAWS, floors
from trueodds.problem.lens import Lens
from trueodds.problem.predictions import Predictions
from trueodds.tally.tally import Tally


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
