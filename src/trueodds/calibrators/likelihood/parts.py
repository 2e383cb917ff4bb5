"""Which rows are worked on at a time, where a whole table of temporary numbers would not fit?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trueodds.calibrators.likelihood.logs import LogProbabilities, Probabilities
from trueodds.core.typing import Array

_VALUES = 2**18  # probabilities of a part: what is made of them stays in a core's cache


def in_parts(P: Probabilities, Y: Array, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    """Rows that have weight, some at a time: probabilities as float64 or their logarithms, outcomes, weights."""
    rows = max(1, _VALUES // P.shape[1])
    for start in range(0, len(P), rows):
        part = slice(start, start + rows)
        p, y, m = P[part], Y[part], w[part]
        if not m.all():
            p, y, m = p[m > 0], y[m > 0], m[m > 0]
        yield p if isinstance(p, LogProbabilities) else p.astype(np.float64, copy=False), y, m


def as_shares(Y: Array, k: int) -> Array:
    """Outcomes as shares (n, K): they are given so, or as class numbers (n,).

    >>> as_shares(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if Y.ndim == 2:
        return Y
    shares = np.zeros((len(Y), k))
    shares[np.arange(len(Y)), Y] = 1.0
    return shares
