"""Two models of the same rows, for the tests of comparisons."""

from __future__ import annotations

import numpy as np

from tests import reference
from trueodds.data.predictions import Predictions


def odds(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True log odds, and outcomes drawn from them."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(0, 1.5, n)
    return eta, (rng.random(n) < odds(eta)).astype(int)


def calibrated_and_overconfident(n: int = 400, seed: int = 0) -> tuple[Predictions, Predictions]:
    """A calibrated model and one that is too sure."""
    eta, y = rows(n, seed)
    return Predictions(y, odds(eta)), Predictions(y, odds(2 * eta))


def golden() -> tuple[Predictions, Predictions]:
    """The two models of the reference numbers, one thousand rows of four classes."""
    a, b = (reference.frame(f"estimators/{name}.csv") for name in ("b_multi1000", "b2_multi1000_modelB"))
    y = a["y"].astype(int)
    return Predictions(y, reference.columns(a)), Predictions(y, reference.columns(b))
