"""Base class of bin-free calibration errors of one score, computed from sums at each distinct score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from trueodds.binning.sorted_scores import by_score, group_starts
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.kernels.sort import find_score
from trueodds.lenses.view import View

Reader = Callable[[Array, Array, Array], Array]

DISTINCT = 4096  # scores that draws tell apart; beyond, neighbors share a cell there (never in the value itself)


@dataclass(frozen=True)
class UnbinnedError(Estimator):
    """An error of one score that reads only the sums at each distinct score, so ties never depend on row order.

    `reads` fixes all that depends on the predictions alone and gives the statistic as a function of shares. Where
    it is a norm, linear inside, the interval uses the norm of the resamples' own noise.
    """

    interval: ClassVar[str | None] = "residual-norm"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    norm: ClassVar[bool] = True  # subadditive in (w, wp, wy) taken together

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The statistic at the rising distinct scores `s` (m,) that hold the `share` (m,) of all weight.

        The function takes Σw, Σwp and Σwy by score as shares of the total weight, each (…, m) with leading axes
        that broadcast, and gives (…). It must also accept differences of two such triples if `norm` is true.
        """
        raise NotImplementedError

    def value(self, view: View) -> float:
        """The error at the distinct scores of the view."""
        return view.once(self, lambda: self.scores(view).value())

    def linear(self, view: View) -> Linear | None:
        """The same, for draws: at most 4,096 groups of equal or neighboring scores."""
        return self.scores(view)

    def scores(self, view: View) -> Linear:
        """What of a view the error and its draws are read off."""
        return Scores(self, view)


class Scores:
    """One view's distinct scores for one error: the formula is the error's own, for rows, cells and draws alike."""

    def __init__(self, error: UnbinnedError, view: View) -> None:
        one_score(view, error.name)
        self.error, self.view = error, view

    def shares(self) -> tuple[Array, Array, Array, Array]:
        """The rising distinct scores, and Σw, Σwp and Σwy at each as shares of the total weight."""
        s, w, wy = by_score(self.view).sums()
        total = w.sum()
        wp = w * s
        for sums in (w, wp, wy):
            sums /= total
        return s, w, wp, wy

    def value(self) -> float:
        """The error of the view itself, every distinct score told apart."""
        s, *shares = self.shares()
        return float(self.error.reads(s, shares[0], self.view)(*shares))

    @cached_property
    def groups(self) -> Groups:
        """The groups of equal or neighboring scores that draws tell apart."""
        s, w, wy = by_score(self.view).sums()
        first, total = group_starts(w, DISTINCT), w.sum()
        shares = [np.add.reduceat(x, first) / total for x in (w, w * s, wy)]
        # The groups keep the order of their scores; equal scores keep the score itself, free of rounding.
        at = s if len(first) == len(s) else shares[1] / shares[0]
        return Groups(s[first], at, *shares)

    @cached_property
    def size(self) -> int:
        """How many groups."""
        return len(self.groups.at)

    @cached_property
    def index(self) -> Array:
        """The group of each row."""
        return find_score(self.view.p, self.groups.first)

    @cached_property
    def reader(self) -> Reader:
        """The statistic at the groups."""
        return self.error.reads(self.groups.at, self.groups.w, self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per group; a draw that repeats what was observed has its very value.

        Groups, and the coarser grids of some readers, move the number a little. Unmended, ties with the observed
        value would be missed, and a test that counts them would reject more often than it says.
        """
        return np.maximum(self.reader(*_shares(w, wp, wy)) + self._grouping_offset, 0.0)

    @cached_property
    def _grouping_offset(self) -> float:
        groups = self.groups
        difference = self.error.value(self.view) - self.reader(groups.w, groups.wp, groups.wy).item()
        return difference if math.isfinite(difference) else 0.0

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """The error's norm of (the draw − what was observed)."""
        if not self.error.norm:
            return None
        pairs = zip(_shares(*draws), _shares(w, wp, wy), strict=True)
        return self.reader(*(drawn - observed for drawn, observed in pairs))


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of scores, from the lowest on: at most DISTINCT of them, of about equal weight beyond."""

    first: Array  # (m,) the lowest score of each
    at: Array  # (m,) its mean score
    w: Array  # (m,) Σw, and Σwp and Σwy, as shares of the total weight
    wp: Array
    wy: Array


def _shares(w: Array, wp: Array, wy: Array) -> tuple[Array, Array, Array]:
    total = w.sum(axis=-1, keepdims=True)
    return w / total, wp / total, wy / total
