"""Sums of rows, weights and outcomes at each distinct score of a view, in increasing order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from trueodds.binning.sorted_scores import by_score, group_starts
from trueodds.core.typing import Array
from trueodds.kernels.fine_grid import EDGES
from trueodds.kernels.sort import find_score
from trueodds.lenses.view import View


@dataclass(frozen=True)
class ScoreSums:
    """Sums at rising scores, each (m,): equal scores are one, whatever the order of the rows."""

    at: Array  # the score, or the mean of those that were put together
    low: Array  # between which all of them lie
    high: Array
    n: Array  # rows
    w: Array  # Σw, Σwy and Σw²
    wy: Array
    ww: Array
    wwr: Array | None = None  # Σw²(y−p)² and Σw²(y−p), only where outcomes are shares of votes
    wwd: Array | None = None
    heaviest: float = 1.0  # the largest weight of a row

    @property
    def voted(self) -> bool:
        """Whether outcomes are shares of votes, which no single draw of a label gives."""
        return self.wwr is not None

    @property
    def even(self) -> Array:
        """Whether the rows of a score weigh alike: (Σw)² = nΣw² there, and only there."""
        return np.isclose(self.w * self.w, self.n * self.ww, rtol=1e-9, atol=0)

    @property
    def effective_n(self) -> float:
        """As many rows of equal weight as all are worth, (Σw)²/Σw²."""
        return float(self.w.sum() ** 2 / self.ww.sum())

    def residual(self, rates: Array) -> Array:
        """Σw²(y−r)² at each score if its outcomes vary around `rates`: seen for votes, else Σw² r(1−r)."""
        if self.wwr is None or self.wwd is None:
            return self.ww * rates * (1 - rates)
        deviation = self.at - rates
        return np.maximum(self.wwr + 2 * deviation * self.wwd + self.ww * deviation * deviation, 0.0)

    def pool(self, first: Array) -> ScoreSums:
        """Groups of neighbors, each from one of these scores (their numbers, rising from 0) up to the next."""
        if len(first) == len(self.at):
            return self
        wp = np.add.reduceat(self.w * self.at, first)
        n, w, wy, ww = (np.add.reduceat(column, first) for column in (self.n, self.w, self.wy, self.ww))
        wwr, wwd = (None if column is None else np.add.reduceat(column, first) for column in (self.wwr, self.wwd))
        low, high = self.low[first], self.high[np.append(first[1:], len(self.at)) - 1]
        return ScoreSums(wp / w, low, high, n, w, wy, ww, wwr, wwd, self.heaviest)

    def by_weight(self, max_groups: int) -> ScoreSums:
        """At most so many groups, of about equal weight; fewer scores stay as they are."""
        return self.pool(group_starts(self.w, max_groups))

    def by_place(self, max_groups: int) -> ScoreSums:
        """About so many groups, fine wherever isotonic regression turns quickly; fewer scores stay as they are.

        A quarter of the cuts each lie evenly by weight, along x and along its log odds; at either end an eighth are
        single scores, from one of which alone the first and the last block may be.
        """
        m = len(self.at)
        if m <= max_groups:
            return self
        by_weight, ends = group_starts(self.w, max_groups // 4), np.arange(max_groups // 8)
        edges = np.linspace(self.at[0], self.at[-1], max_groups // 4)
        low, high = logit(np.clip(self.at[[0, -1]], 1e-9, 1 - 1e-9)).tolist()
        odds = expit(np.linspace(low, high, max_groups // 4))
        cuts = np.searchsorted(self.at, np.concatenate([edges, odds]))
        first = np.unique(np.concatenate([by_weight, cuts, ends, m - 1 - ends]))
        return self.pool(first[first < m])


def sum_by_score(view: View) -> ScoreSums:
    """The distinct scores of a binary view; of a tally its cells, which know between which edges their rows lie."""
    s, w, wy = by_score(view).sums()
    if view.plain and _has_binary_outcomes(view):
        return ScoreSums(s, s, s, w, w, wy, w)
    index = find_score(view.p, s)

    def summed(values: Array) -> Array:
        return np.bincount(index, values, len(s))

    n, ww = summed(view.n), summed(view.sums("ww"))
    low = high = s
    if not view.is_rows:
        cell = np.clip(np.searchsorted(EDGES, s, "left"), 1, len(EDGES) - 1)
        low, high = np.minimum(EDGES[cell - 1], s), np.maximum(EDGES[cell], s)
    heaviest = float(view.w.max()) if view.is_rows else float((w / n).max())
    rows = ScoreSums(s, low, high, n, w, wy, ww, heaviest=heaviest)
    if _has_binary_outcomes(view):
        return rows
    if view.is_rows:
        wwd = summed(view.w**2 * (view.y - view.p))
    else:  # a cell keeps no Σw²y; its rows weigh about the same
        wwd = ww / w * (wy - w * s)
    return replace(rows, wwr=summed(view.sums("wwr")), wwd=wwd)


def _has_binary_outcomes(view: View) -> bool:
    """Whether every outcome is 0 or 1: then, and only then, y² = y."""
    if view.is_rows:
        y = view.outcomes
        return y.dtype == bool or bool(((y == 0) | (y == 1) | (view.w == 0)).all())
    return bool(np.isclose(view.sums("wyy").sum(), view.w @ view.y, rtol=1e-9, atol=1e-9 * view.total))
