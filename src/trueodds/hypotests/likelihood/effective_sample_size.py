"""On as many rows as what does chance rest?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trueodds.hypotests.likelihood.odds import Odds

_BLOCK = 2**18  # numbers held at once


def effective_n(odds: Odds) -> float:
    """As many rows as it rests on: d² over the sum of the squared sizes of single whitened scores.

    n equally informative rows are worth n; where a few rare outcomes carry the information it is about these. Squared
    sizes are those that the model expects.
    """
    k, rank = odds.P.shape[1], odds.rank
    slopes, shifts = np.zeros((2, k, rank))
    slopes[odds.others], shifts[odds.others] = odds.by_model[::2], odds.by_model[1::2]
    squared_weight, total = np.divide(odds.ww, odds.n, out=np.zeros(len(odds.n)), where=odds.n > 0), 0.0
    rows = max(1, _BLOCK // (k * max(rank, 1)))
    for start in range(0, len(odds.P), rows):
        part = slice(start, start + rows)
        P = odds.P[part]
        pulls = odds.x[part, :, None] * slopes + shifts
        pulls -= np.einsum("nk,nkr->nr", P, pulls)[:, None]
        sizes = squared_weight[part, None] * (pulls**2).sum(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):  # it rests on nothing then
            total += float((odds.n[part, None] * P * sizes**2).sum())
    return rank**2 / total if total > 0 else 0.0
