"""The Clopper-Pearson interval of a proportion."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from trueodds.core.typing import Array


def clopper_pearson_limits(k: Array | float, n: Array | float, tail: float) -> tuple[Array, Array]:
    """Clopper-Pearson limits of a proportion k/n, each with tail probability `tail`.

    k and n may be arrays, and fractional for effective sample sizes. Source: Clopper & Pearson (1934).

    >>> low, high = clopper_pearson_limits(0.0, 10.0, 0.025)
    >>> float(low), round(float(high), 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    # A beta distribution with parameter 0 has no quantiles; the limit is then 0 or 1.
    has_no_event, has_only_events = k <= 0, k >= n
    low = np.where(has_no_event, 0.0, betaincinv(np.where(has_no_event, 1.0, k), n - k + 1, tail))
    high = np.where(has_only_events, 1.0, betaincinv(k + 1, np.where(has_only_events, 1.0, n - k), 1 - tail))
    return low, high
