"""Wald statistics of parameters and their reference distributions: chi-squared, F and Student's t."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtr, chdtrc, fdtr, fdtrc, stdtrit

from trueodds.core.typing import Array

NORMAL_CRITICAL_VALUE = 1.959963984540054  # standard errors to the ends of a 95 % interval: Φ⁻¹(0.975)
MIN_STD = 1e-100  # smaller standard deviations count as 0: their inverse squared would overflow
RANK_TOLERANCE = 1e-10  # relative to the largest variance: directions below it are not identifiable


def upper_tail(statistic: float, df: int, effective_units: float | None = None) -> float:
    """P(χ² > statistic), or P(T² > statistic) if the covariance was estimated from `effective_units`; NaN if df is 0.

    Hotelling's T² for d parameters and G independent units is such that T² (G − d)/((G − 1) d) has an F distribution
    with d and G − d degrees of freedom.

    >>> round(upper_tail(5.991465, 2), 6), round(upper_tail(5.991465, 2, 20), 6)
    (0.05, 0.084851)
    """
    if not df:
        return math.nan
    if effective_units is None:
        return float(chdtrc(df, statistic))
    return (
        float(fdtrc(df, effective_units - df, _hotelling_to_f(statistic, df, effective_units)))
        if effective_units > df
        else math.nan
    )


def lower_tail(statistic: float, df: int, effective_units: float | None = None) -> float:
    """P(χ² ≤ statistic), or P(T² ≤ statistic) as for `upper_tail`, with full relative precision."""
    if not df:
        return math.nan
    if effective_units is None:
        return float(chdtr(df, statistic))
    return (
        float(fdtr(df, effective_units - df, _hotelling_to_f(statistic, df, effective_units)))
        if effective_units > df
        else math.nan
    )


def _hotelling_to_f(statistic: float, df: int, effective_units: float) -> float:
    """The F statistic (G − d)/((G − 1) d) T² of Hotelling's T², with d = `df` and G = `effective_units`."""
    return statistic * (effective_units - df) / (df * (effective_units - 1))


def critical_value(effective_units: float | None = None) -> float:
    """Number of standard errors to the ends of a 95 % interval: that of the normal distribution or of Student's t.

    The latter applies if the standard errors were estimated from `effective_units`; NaN for a single unit.

    >>> round(critical_value(), 6), round(critical_value(11), 6)
    (1.959964, 2.228139)
    """
    if effective_units is None:
        return NORMAL_CRITICAL_VALUE
    return float(stdtrit(effective_units - 1, 0.975)) if effective_units > 1 else math.nan


def whitening_matrix(V: Array) -> Array:
    """W (d, rank) with WᵀVW = 1 for a covariance V (d, d), without the null directions of V.

    >>> whitening_matrix(np.diag([4.0, 0.0])).tolist()
    [[0.5], [0.0]]
    """
    std = np.sqrt(V.diagonal())
    scale = np.divide(1.0, std, out=np.zeros(len(std)), where=std > MIN_STD)
    eigenvalues, eigenvectors = np.linalg.eigh(V * np.outer(scale, scale))
    has_variance = eigenvalues > RANK_TOLERANCE * max(float(eigenvalues.max(initial=0.0)), 1e-300)
    return np.asarray(scale[:, None] * eigenvectors[:, has_variance] / np.sqrt(eigenvalues[has_variance]))


def wald_statistic(deviation: Array, V: Array) -> float:
    """Wald statistic dᵀV⁺d of a deviation (d,) with covariance V (d, d).

    >>> round(wald_statistic(np.array([1.0, 1.0]), np.diag([4.0, 1.0])), 9)
    1.25
    """
    return float(((deviation @ whitening_matrix(V)) ** 2).sum())
