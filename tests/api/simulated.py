"""Predictions with a group column."""

import numpy as np

import trueodds as to


def grouped(n: int = 300) -> to.Predictions:
    """Predictions of a calibrated binary model with two groups."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return to.Predictions(rng.random(n) < p, p, group={"side": np.where(rng.random(n) < 0.5, "left", "right")})
