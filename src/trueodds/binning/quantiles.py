"""Where do rising scores lie, and how far from each other? Quantiles and spread, where a weight of two is two rows."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array


def weighted_std(x: Array, w: Array) -> Array:
    """The standard deviation with the weights (m,) as shares, of scores (…, m)."""
    mean = (w * x).sum(axis=-1, keepdims=True) / w.sum()
    deviation = x - mean
    deviation *= deviation
    deviation *= w
    return np.sqrt(deviation.sum(axis=-1) / w.sum())


def quantiles(s: Array, w: Array, at: tuple[float, ...]) -> list[Array]:
    """Quantiles of rising scores (…, m) with linear interpolation between neighbors, where a weight of two is two rows.

    The quantile q of n rows is the mean of the sorted rows from place q(n − 1) to one row further, which for equal
    weights is the usual interpolation.

    >>> quantiles(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 2.0]), (0.5, 1.0))
    [np.float64(3.0), np.float64(5.0)]
    """
    ends = np.cumsum(w)
    values = []
    for start in np.asarray(at) * (ends[-1] - 1):
        i, j = np.searchsorted(ends, start, "right"), np.searchsorted(ends, start + 1, "left")
        i, j = min(i, len(w) - 1), min(j, len(w) - 1)
        part = np.diff(np.clip(ends[i:j], start, start + 1), prepend=start, append=start + 1)
        values.append(s[..., i : j + 1] @ part)
    return values
