"""How far out is the observed statistic among its draws?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

TIE = 1e-10  # a draw within this relative distance of the observed statistic ties with it


def pvalue(observed: float, draws: Array) -> float:
    """(1 + draws at least as large) / (1 + draws): never 0, and exact when the draws follow the null.

    A statistic that is not defined has no p-value (NaN).

    >>> pvalue(3.0, np.array([1.0, 2.0, 4.0]))
    0.5
    """
    if np.isnan(observed):
        return float("nan")
    threshold = observed if np.isinf(observed) else observed - TIE * abs(observed)
    return float((1 + (draws >= threshold).sum()) / (1 + len(draws)))
