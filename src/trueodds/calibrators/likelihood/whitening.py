"""In which directions does a covariance tell something? Coordinates in which they are independent, of variance 1."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

MIN_STD = 1e-100  # standard deviation, below which there is none: its inverse squared would overflow
RANK_TOLERANCE = 1e-10  # of the variance in the best told direction, below which a direction is not told at all


def whitened(V: Array) -> Array:
    """W (d, rank) with WᵀVW = 1, without the directions in which V is 0.

    >>> whitened(np.diag([4.0, 0.0])).tolist()
    [[0.5], [0.0]]
    """
    own = np.sqrt(V.diagonal())
    unit = np.divide(1.0, own, out=np.zeros(len(own)), where=own > MIN_STD)
    values, turns = np.linalg.eigh(V * np.outer(unit, unit))
    live = values > RANK_TOLERANCE * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(unit[:, None] * turns[:, live] / np.sqrt(values[live]))


def quadratic(deviation: Array, V: Array) -> float:
    """off' V⁺ off.

    >>> round(quadratic(np.array([1.0, 1.0]), np.diag([4.0, 1.0])), 9)
    1.25
    """
    return float(((deviation @ whitened(V)) ** 2).sum())
