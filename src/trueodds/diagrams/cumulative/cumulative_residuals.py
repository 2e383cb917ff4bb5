"""Cumulative residuals of one view by increasing score, their null distribution and their steepest segment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeError, CumulativeRange
from trueodds.estimators.unbinned import DistinctScores
from trueodds.hypotests.cumulative import ECCE, brownian_maximum_tail, brownian_range_tail
from trueodds.lenses.view import View


class ResidualSegment(NamedTuple):
    """Indices of the first and last vertex."""

    start: int
    stop: int


def steepest_segment(x: Array, y: Array, chance: float) -> ResidualSegment | None:
    r"""The a < b with the largest :math:`(|y_b - y_a| - \text{chance}) / (x_b - x_a)`, or None if none is positive.

    If `chance` bounds the change over every segment under calibration with high probability, the result is the largest
    significant slope. Dinkelbach's method: for a slope s, one pass finds the segment that maximizes
    :math:`|y_b - y_a| - \text{chance} - s (x_b - x_a)`, which gives the next s. x must increase.
    Cost: O(m) per pass, about 5 passes. Source: Dinkelbach (1967), Management Science 13.

    >>> steepest_segment(np.array([0, 0.4, 0.7, 1]), np.array([0, 0, -0.3, -0.31]), 0.1)
    ResidualSegment(start=1, stop=2)
    >>> steepest_segment(np.array([0, 0.5, 1]), np.array([0, 0.1, 0]), 0.1)
    """
    segment, slope = None, 0.0
    for side in (side * y for side in (1.0, -1.0)):
        for _ in range(100):
            level = side - slope * x
            lowest = np.minimum.accumulate(level)
            stop = int(np.argmax(level - lowest))
            if level[stop] - lowest[stop] - chance <= 1e-12:
                break
            start = stop - int(
                np.argmax(level[stop::-1] == lowest[stop])
            )  # the last of equal minima gives the shortest segment
            segment, slope = (
                ResidualSegment(start, stop),
                float((side[stop] - side[start] - chance) / (x[stop] - x[start])),
            )
    return segment


MAX_VERTICES = 2000  # points drawn at most, as many as a picture can resolve
_COLUMNS = (MAX_VERTICES - 2) // 4


class CumulativeResiduals:
    """Cumulative residuals of one view over the share of rows, by increasing score; equal scores are one step."""

    def __init__(self, view: View, level: float) -> None:
        self.view, self.level = view, level
        s, w, wp, wy = DistinctScores(CumulativeError(), view).shares()
        self.scores = np.concatenate((s[:1], s))  # the point before the first step has the first score
        self.share = np.concatenate(([0.0], np.cumsum(w[:-1]), [1.0]))
        self.path = np.concatenate(([0.0], np.cumsum(wy - wp)))
        self.farthest = CumulativeError().value(view)
        self.range = CumulativeRange().value(view)
        self.result = ECCE().evaluate(view)

    @cached_property
    def has_vote_shares(self) -> bool:
        """Whether outcomes are shares of votes, which no single label draw can give."""
        return not np.isclose(self.view.sums("wyy").sum(), self.view.w @ self.view.y, rtol=1e-9, atol=0)

    @cached_property
    def null_standard_error(self) -> float:
        """The standard error of the final value under calibration; 0 if every probability is 0 or 1."""
        if self.has_vote_shares:
            return float(np.sqrt(self.view.sums("wwr").sum()) / self.view.total)
        return 0.0 if self.result.notes else ECCE().cell_statistic(self.view).unit

    @property
    def null_bound(self) -> float:
        """The bound of |C| that holds under calibration with probability `level`."""
        return _null_quantile(brownian_maximum_tail, self.level) * self.null_standard_error

    @cached_property
    def surprise(self) -> float:
        """The range in standard errors."""
        return self.range / self.null_standard_error if self.null_standard_error else np.inf if self.range > 0 else 0.0

    @property
    def pvalues(self) -> tuple[float, float]:
        """The p-values of ECCE-MAD and ECCE-R."""
        if not self.null_standard_error:
            return float(self.farthest == 0), float(self.range == 0)
        return brownian_maximum_tail(self.farthest / self.null_standard_error), brownian_range_tail(self.surprise)

    @property
    def extremes(self) -> tuple[int, int]:
        """Indices of the minimum and the maximum."""
        return int(np.argmin(self.path)), int(np.argmax(self.path))

    @cached_property
    def vertices(self) -> Array:
        """Indices of the points drawn; of many, the first, lowest, highest and last of each of 499 shares of rows."""
        m = len(self.path)
        if m <= MAX_VERTICES:
            return np.arange(m)
        edges = np.unique(np.searchsorted(self.share, np.arange(_COLUMNS + 1) / _COLUMNS))
        indices = [0, m - 1, *self.extremes]
        for first, after in zip(edges, [*edges[1:], m], strict=True):
            part = self.path[first:after]
            if len(part):
                indices += [first, after - 1, first + int(part.argmin()), first + int(part.argmax())]
        return np.unique(indices)

    @cached_property
    def steepest(self) -> ResidualSegment | None:
        """The steepest segment after subtracting the change that chance explains; None if chance explains every change.

        Under calibration no segment changes by more than the quantile of the range, with probability `level`.
        """
        chance = _null_quantile(brownian_range_tail, self.level) * self.null_standard_error
        segment = steepest_segment(self.share[self.vertices], self.path[self.vertices], chance)
        return None if segment is None else ResidualSegment(*(int(self.vertices[end]) for end in segment))

    def slope(self, segment: ResidualSegment) -> float:
        """Mean of observed minus predicted over a segment."""
        rise = self.path[segment.stop] - self.path[segment.start]
        return float(rise / (self.share[segment.stop] - self.share[segment.start]))

    def doubts(self) -> list[Note]:
        """Notes on why the asymptotic distribution may be inaccurate, or why there is no randomness."""
        return [*self.result.notes, *(Note("TN260", doubt) for doubt in self.result.doubts)]


@cache
def _null_quantile(beyond: Callable[[float], float], level: float) -> float:
    """The quantile at `level` of the null distribution with survival function `beyond`."""
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) <= 1 - level else (middle, high)
    return high
