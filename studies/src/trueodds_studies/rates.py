"""How sure is a rate of so many data sets, and do p-values come as often as they say?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import smirnov

from trueodds.core.typing import Array
from trueodds.resampling.counts import exact_limits


def clopper_pearson(hits: int, sets: int, level: float = 0.99) -> tuple[float, float]:
    """The exact limits of a rate: each end is passed by chance with probability (1 − level) / 2 at most.

    Source: Clopper & Pearson (1934).

    >>> low, high = clopper_pearson(0, 10, level=0.95)
    >>> low, round(high, 4)  # 1 − 0.025^(1/10)
    (0.0, 0.3085)
    """
    low, high = exact_limits(hits, sets, (1 - level) / 2)
    return float(low), float(high)


def above(hits: int, sets: int, nominal: float, rates: int = 1) -> bool:
    """Whether a rate is above its nominal level: the lower end of its 99 % interval, Bonferroni for `rates` of them.

    >>> above(60, 400, 0.05), above(30, 400, 0.05)
    (True, False)
    """
    return sets > 0 and clopper_pearson(hits, sets, 1 - 0.01 / rates)[0] > nominal


def randomize_pvalues(pvalues: Array, draws: int, rng: np.random.Generator) -> Array:
    """p-values on {1/(B+1), …, 1} made continuous: uniform on [0, 1] if and only if they are uniform on their grid.

    >>> float(randomize_pvalues(np.array([1.0]), 99, np.random.default_rng(0))[0]) > 0.99
    True
    """
    return np.asarray(pvalues - rng.random(len(pvalues)) / (draws + 1))


def distances(values: Sequence[float] | Array) -> tuple[float, float]:
    """How far the distribution function of values lies above that of the uniform law, and below it (D⁺, D⁻).

    >>> distances([0.1, 0.2])
    (0.8, 0.1)
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = len(x)
    return float((np.arange(1, n + 1) / n - x).max()), float((x - np.arange(n) / n).max())


def kolmogorov(n: int, distance: float, sides: int = 2) -> float:
    """The p-value of Kolmogorov's test on n values: exact for one side, at most twice that for both.

    >>> round(kolmogorov(1, 0.975, sides=1), 3)  # of one value: P(U < 0.025)
    0.025
    """
    return min(1.0, sides * float(smirnov(n, max(distance, 0.0))))
