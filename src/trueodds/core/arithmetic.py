"""Arithmetic of arrays: sums of products, the same on every number of cores, variances, divisions, and an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array

# From 10,000 rows or 460,800 values on, OpenBLAS starts threads. The last bits of a sum depend on how many, and they
# are slower than one thread if a core is busy.
ROWS_PER_BLOCK = 8192
_VALUES_PER_BLOCK = 2**18


def weighted_sum(weights: Array, values: Array) -> Any:
    """Return the sum over the rows of the weight times the value.

    Parameters
    ----------
    weights : ndarray of shape (n,) or (..., n)
        Weight of each row, or in each draw.
    values : ndarray of shape (n,) or (n, m)
        One or m values of each row.

    Returns
    -------
    float or ndarray of shape (m,), (...,) or (..., m)
        ``weights @ values``, added up in blocks of at most 8192 rows.

    Examples
    --------
    >>> import numpy as np
    >>> float(weighted_sum(np.array([1.0, 2.0]), np.array([0.5, 0.25])))
    1.0
    """
    block = min(ROWS_PER_BLOCK, max(1, _VALUES_PER_BLOCK // values.shape[1])) if values.ndim > 1 else ROWS_PER_BLOCK
    total = weights[..., :block] @ values[:block]
    for start in range(block, len(values), block):
        total = total + weights[..., start : start + block] @ values[start : start + block]
    return total


def variance_of_sum(terms: Array, cluster: Array | None) -> float:
    """Return the variance of a sum of terms (n,) of mean 0, which are independent by row or by cluster (n,).

    With m rows or clusters it is m/(m − 1) times the sum of their squared totals; NaN for fewer than two.
    """
    if cluster is not None:
        _, unit = np.unique(cluster, return_inverse=True)
        terms = np.bincount(unit, terms)
    n_units = len(terms)
    return float((terms**2).sum()) * n_units / (n_units - 1) if n_units > 1 else float("nan")


def divide_by_largest(values: Array) -> Array:
    """Return values divided by the largest absolute value, so that their squares do not overflow; zeros stay zeros."""
    return np.asarray(values / np.abs(values).max(initial=np.finfo(float).tiny))


def divide_or_zero(numerator: Array, denominator: Array) -> Array:
    """Return the quotient of two arrays, 0 where the denominator is 0."""
    return np.asarray(np.where(denominator != 0, numerator / np.where(denominator != 0, denominator, 1.0), 0.0))


def round_significant(x: float) -> float:
    """Round to nine significant digits.

    >>> round_significant(0.1 + 0.2) == round_significant(0.3)
    True
    """
    return float(f"{x:.9g}")


def decreasing_order(values: Iterable[float], *tie_breakers: Iterable[float]) -> Sequence[int]:
    """Return the indices that sort the values from the largest to the smallest.

    Values that agree to nine digits are ordered by the next of `tie_breakers`, also decreasing, and finally keep their
    order. NaN comes last.

    >>> decreasing_order([0.3, 0.5, 0.1 + 0.2])
    [1, 0, 2]
    >>> decreasing_order([0.3, 0.5, 0.1 + 0.2], [1, 2, 3])
    [1, 2, 0]
    """
    keys = [[-round_significant(value) for value in column] for column in (values, *tie_breakers)]
    return np.lexsort(keys[::-1]).tolist()
