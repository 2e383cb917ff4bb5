"""Arithmetic of arrays: sums of products, the same on every number of cores, the variance of a sum, and divisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array

ROWS_PER_BLOCK = 8192  # from 10,000 on, OpenBLAS starts threads, which take longer than the sum if a core is busy


def weighted_sum(weights: Array, values: Array) -> Any:
    """Return the sum over the rows of the weight times the value.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Weight of each row.
    values : ndarray of shape (n,) or (n, m)
        One or m values of each row.

    Returns
    -------
    float or ndarray of shape (m,)
        ``weights @ values``, added up in blocks of 8192 rows.

    Examples
    --------
    >>> import numpy as np
    >>> float(weighted_sum(np.array([1.0, 2.0]), np.array([0.5, 0.25])))
    1.0
    """
    total = weights[:ROWS_PER_BLOCK] @ values[:ROWS_PER_BLOCK]
    for start in range(ROWS_PER_BLOCK, len(weights), ROWS_PER_BLOCK):
        stop = start + ROWS_PER_BLOCK
        total = total + weights[start:stop] @ values[start:stop]
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
