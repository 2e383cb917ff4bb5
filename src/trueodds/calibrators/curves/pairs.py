"""Which of two classes is it, for every pair of classes, and what do the answers say together?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from trueodds.binning.by_score import ByScore
from trueodds.core.typing import Array
from trueodds.kernels import in_blocks

T = TypeVar("T")

_RESOLUTION = 2.0**40  # shares of the likelier class that differ by less than 1 in so many are one


def preference(a: Array, b: Array) -> Array:
    """A score that rises with b/(a + b) from 0 to 1, 1/2 where a = b, be it 0 both; of (b, a) it is 1 less that.

    The same ratio gives the same score though it be rounded differently, so that ties are ties in either direction.

    >>> preference(np.array([0.3, 0.45, 0.0]), np.array([0.1, 0.15, 0.0])).round(4).tolist()
    [0.1667, 0.1667, 0.5]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    larger = np.maximum(a, b)
    less = np.divide(np.minimum(a, b), larger, out=np.ones_like(larger), where=larger > 0)
    half = np.rint(less * _RESOLUTION) / (2 * _RESOLUTION)
    return np.where(b < a, half, 1 - half)


def fit_pair_curves(P: Array, Y: Array, w: Array, made: Callable[[Array, Array, Array], T]) -> tuple[T, ...]:
    """`made(s, mass, came)` of every pair of classes in rising order, from the rows that have weight in either.

    The scores are preferences for the second class of the pair; w are weights > 0.
    """

    def work(start: int, stop: int) -> list[T]:
        return [made(*_sums(P, Y, w, *pair)) for pair in pairs[start:stop]]

    pairs = list(combinations(range(P.shape[1]), 2))
    return tuple(one for some in in_blocks(work, len(pairs), 1) for one in some)


def _sums(P: Array, Y: Array, w: Array, i: int, j: int) -> tuple[Array, Array, Array]:
    share = Y[:, i] + Y[:, j]
    rows = share > 0
    share = share[rows]
    x, y = preference(P[rows, i], P[rows, j]), Y[rows, j] / share
    return ByScore(x, y, w[rows] * share).sums()


def coupled(curves: Sequence[Callable[[Array], Array]], P: Array) -> Array:
    r"""Rows (n, K) from the probability :math:`r_{ij}` of class j among i and j, by a curve for every pair.

    .. math:: q_i \propto \Big(\sum_{j \ne i} \frac{1}{r_{ji}} - (K - 2)\Big)^{-1}

    which is exact where the answers agree, :math:`r_{ij} = q_j / (q_i + q_j)`. Source: Price et al. (1995).
    """
    n, k = P.shape
    total = np.full((k, n), 2.0 - k)
    with np.errstate(divide="ignore"):  # a pair that rules a class out leaves it 0
        for (i, j), curve in zip(combinations(range(k), 2), curves, strict=True):
            r = curve(preference(P[:, i], P[:, j]))
            total[j] += 1 / r
            total[i] += 1 / (1 - r)
    q = 1 / total
    q /= q.sum(axis=0)
    return q.T
