"""Proper scores row by row, and their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def brier(p: Array, y: Array) -> Array:
    """(p − y)² for a binary view, the sum over classes for a joint one; a vote of .7 is .7 of a row and .3.

    >>> brier(np.array([0.5]), np.array([0.7])).round(4).tolist()
    [0.25]
    """
    p = p.astype(np.float64, copy=False)
    if p.ndim == 1:
        return p * p - 2 * p * y + y if y.dtype.kind == "f" else (p - y) ** 2
    squares = (p * p).sum(axis=1) - 2 * (p * y).sum(axis=1)
    total: Array = squares + y.sum(axis=1)
    return total


def log_loss(p: Array, y: Array, floor: float = 0.0) -> Array:
    """−Σ y log p in nats; infinite where something came that was said to be impossible, unless floored.

    >>> log_loss(np.array([0.0, 1.0]), np.array([1.0, 1.0])).tolist()
    [inf, 0.0]
    """
    p = p.astype(np.float64, copy=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        if p.ndim == 1:
            yes, no = -np.log(np.maximum(p, floor)), -np.log(np.maximum(1 - p, floor))
            return np.where(y > 0, y * yes, 0.0) + np.where(y < 1, (1 - y) * no, 0.0)
        total: Array = np.where(y > 0, -y * np.log(np.maximum(p, floor)), 0.0).sum(axis=1)
        return total


def below(p: Array, floor: float) -> int:
    """How many rows have a probability below the floor."""
    low = p < floor if p.ndim == 2 else (p < floor) | (1 - p < floor)
    return int((low.any(axis=1) if low.ndim == 2 else low).sum())
