"""What errors of one score without bins share: sums at each distinct score, sorted once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.problem.view import View

Array = NDArray[Any]
Reader = Callable[[Array, Array, Array], Array]

DISTINCT = 4096  # scores that draws tell apart; beyond, neighbours share a cell there (never in the value itself)


@dataclass(frozen=True)
class ScoredError(Estimator):
    """An error of one score that reads only the sums at each distinct score, so ties never depend on row order.

    `reads` fixes all that depends on the predictions alone and gives the statistic as a function of shares. Where
    it is a norm, linear inside, the interval uses the norm of the resamples' own noise.
    """

    interval: ClassVar[str | None] = "residual-norm"
    norm: ClassVar[bool] = True  # subadditive in (w, wp, wy) taken together

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The statistic at the rising distinct scores `s` (m,) that hold the `share` (m,) of all weight.

        The function takes Σw, Σwp and Σwy by score as shares of the total weight, each (…, m) with leading axes
        that broadcast, and gives (…). It must also accept differences of two such triples if `norm` is true.
        """
        raise NotImplementedError

    def value(self, view: View) -> float:
        """The error at the distinct scores of the view."""
        return Scores(self, view).value()

    def linear(self, view: View) -> Linear:
        """The same, for draws: at most 4,096 groups of equal or neighbouring scores."""
        return Scores(self, view)


class Scores:
    """One view's distinct scores for one error: the formula is the error's own, for rows, cells and draws alike."""

    def __init__(self, error: ScoredError, view: View) -> None:
        one_score(view, error.name)
        self.error, self.view = error, view
        p = view.p.astype(np.float64, copy=False)
        self.distinct = np.unique(p[view.w > 0])
        self.place = np.minimum(np.searchsorted(self.distinct, p), len(self.distinct) - 1)
        self.exact = self._sums(self.place, len(self.distinct))
        if len(self.distinct) <= DISTINCT:
            group = np.arange(len(self.distinct))
        else:
            w = self.exact[0]
            middle = (np.cumsum(w) - w / 2) / w.sum()
            group = np.unique((middle * DISTINCT).astype(np.int64), return_inverse=True)[1]
        self.size = int(group[-1]) + 1
        self.index = group[self.place]
        self.group = group
        self._reader: Reader | None = None

    def _sums(self, index: Array, size: int) -> tuple[Array, Array, Array]:
        w, p, y = self.view.w, self.view.p, self.view.y
        return (np.bincount(index, w, size), np.bincount(index, w * p, size), np.bincount(index, w * y, size))

    def value(self) -> float:
        """The error of the view itself, every distinct score told apart."""
        w, wp, wy = self.exact
        total = w.sum()
        reader = self.error.reads(self.distinct, w / total, self.view)
        return float(reader(w / total, wp / total, wy / total))

    @property
    def reader(self) -> Reader:
        """The statistic at the groups of scores that draws tell apart."""
        if self._reader is None:
            w, wp, _ = (np.bincount(self.group, x, self.size) for x in self.exact)
            # The groups keep the order of their scores; equal scores keep the score itself, free of rounding.
            at = self.distinct if self.size == len(self.distinct) else wp / w
            self._reader = self.error.reads(at, w / w.sum(), self.view)
        return self._reader

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per group; a draw that repeats what was observed has its very value.

        Groups, and the coarser grids of some readers, move the number a little. Unmended, ties with the observed
        value would be missed, and a test that counts them would reject more often than it says.
        """
        return np.maximum(self.reader(*_shares(w, wp, wy)) + self._apart, 0.0)

    @cached_property
    def _apart(self) -> float:
        grouped = (np.bincount(self.group, x, self.size) for x in self.exact)
        apart = self.value() - self.reader(*_shares(*grouped)).item()
        return apart if math.isfinite(apart) else 0.0

    def spread(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """The error's norm of (the draw − what was observed)."""
        if not self.error.norm:
            return None
        pairs = zip(_shares(*draws), _shares(w, wp, wy), strict=True)
        return self.reader(*(drawn - seen for drawn, seen in pairs))


def _shares(w: Array, wp: Array, wy: Array) -> tuple[Array, Array, Array]:
    total = w.sum(axis=-1, keepdims=True)
    return w / total, wp / total, wy / total
