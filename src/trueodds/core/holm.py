"""Adjust several p-values with Holm's step-down method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, valid under any dependence of the tests; NaN stays NaN.

    Source: Holm (1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")  # NaN is sorted last
    increasing = np.maximum.accumulate([(len(pvalues) - i) * pvalues[j] for i, j in enumerate(order)])
    adjusted = np.empty(len(pvalues))
    adjusted[order] = np.where(np.isnan(increasing), np.nan, np.minimum(increasing, 1.0))
    return [float(p) for p in adjusted]
