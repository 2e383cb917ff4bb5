"""Rows of a calibrated model, and estimands on them."""

import numpy as np

from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.estimand import Estimand


def simulated(n=3000, k=3, seed=0, alpha=1.0, **extra):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, alpha), n)
    y = np.minimum((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1), k - 1)
    return Predictions(y, P, **extra)


def make_estimand(preds, name="ece", lens="confidence", **settings):
    return Estimand.from_predictions(ESTIMATORS.make(name, settings), as_lens(lens), preds)
