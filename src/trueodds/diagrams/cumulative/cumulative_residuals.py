"""Cumulative residuals of one view by increasing score, their null distribution and their steepest segment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeError, CumulativeRange
from trueodds.estimators.distinct_scores import DistinctScores
from trueodds.hypotests.cumulative import ECCE, brownian_maximum_tail, brownian_range_tail
from trueodds.lenses.view import View


class ResidualSegment(NamedTuple):
    """A segment of the path of cumulative residuals, given by the indices of its first and last vertex."""

    start: int
    stop: int


def steepest_segment(x: Array, y: Array, null_change: float) -> ResidualSegment | None:
    r"""The a < b with the largest :math:`(|y_b - y_a| - c) / (x_b - x_a)`, or None if none is positive.

    c is `null_change`. If it bounds the change over every segment under calibration with high probability, the result
    is the largest significant slope. Dinkelbach's method: for a slope s, one pass finds the segment that maximizes
    :math:`|y_b - y_a| - c - s (x_b - x_a)`, which gives the next s. x must increase.
    Cost: O(m) per pass, about 5 passes. Source: Dinkelbach (1967), Management Science 13.

    >>> steepest_segment(np.array([0, 0.4, 0.7, 1]), np.array([0, 0, -0.3, -0.31]), 0.1)
    ResidualSegment(start=1, stop=2)
    >>> steepest_segment(np.array([0, 0.5, 1]), np.array([0, 0.1, 0]), 0.1)
    """
    segment, slope = None, 0.0
    for sign in (1.0, -1.0):  # rising segments, then falling ones that are steeper
        signed_path = sign * y
        for _ in range(100):
            tilted_path = signed_path - slope * x
            running_minimum = np.minimum.accumulate(tilted_path)
            stop = int(np.argmax(tilted_path - running_minimum))
            if tilted_path[stop] - running_minimum[stop] - null_change <= 1e-12:
                break
            # The last of equal minima gives the shortest segment.
            start = stop - int(np.argmax(tilted_path[stop::-1] == running_minimum[stop]))
            segment = ResidualSegment(start, stop)
            slope = float((signed_path[stop] - signed_path[start] - null_change) / (x[stop] - x[start]))
    return segment


MAX_VERTICES = 2000  # largest number of points that are drawn: as many as a picture can resolve
_N_SHARE_INTERVALS = (MAX_VERTICES - 2) // 4  # intervals of the share of rows, of each of which four points are drawn


class CumulativeResiduals:
    """Cumulative residuals of one view over the share of rows, by increasing score; equal scores are one step.

    Attributes
    ----------
    scores : ndarray (m + 1,)
        The m distinct scores, increasing, after a copy of the first one for the start of the path.
    row_share : ndarray (m + 1,)
        The share of the weight of the rows with scores up to each of them, from 0 to 1.
    residual_path : ndarray (m + 1,)
        The cumulative residual C there.
    max_residual, residual_range : float
        ECCE-MAD, the maximum of |C|, and ECCE-R, the range of C.
    ecce_result : ViewResult
        The result of the test `ecce`.
    """

    def __init__(self, view: View, level: float) -> None:
        self.view, self.level = view, level
        s, w, wp, wy = DistinctScores(CumulativeError(), view).shares()
        self.scores = np.concatenate((s[:1], s))  # the point before the first step has the first score
        self.row_share = np.concatenate(([0.0], np.cumsum(w[:-1]), [1.0]))
        self.residual_path = np.concatenate(([0.0], np.cumsum(wy - wp)))
        self.max_residual = CumulativeError().value(view)
        self.residual_range = CumulativeRange().value(view)
        self.ecce_result = ECCE().evaluate(view)

    @cached_property
    def has_vote_shares(self) -> bool:
        """Whether outcomes are shares of votes, which no single label draw can give."""
        return not np.isclose(self.view.sums("wyy").sum(), self.view.w @ self.view.y, rtol=1e-9, atol=0)

    @cached_property
    def null_standard_error(self) -> float:
        """The standard error of the final value under calibration; 0 if every probability is 0 or 1."""
        if self.has_vote_shares:
            return float(np.sqrt(self.view.sums("wwr").sum()) / self.view.total)
        return 0.0 if self.ecce_result.notes else ECCE().cell_statistic(self.view).std_error

    @property
    def null_bound(self) -> float:
        """The bound of |C| that holds under calibration with probability `level`."""
        return _null_quantile(brownian_maximum_tail, self.level) * self.null_standard_error

    @cached_property
    def standardized_range(self) -> float:
        """The range in standard errors; infinite or 0 if there is no randomness under calibration."""
        if self.null_standard_error:
            return self.residual_range / self.null_standard_error
        return np.inf if self.residual_range > 0 else 0.0

    @property
    def pvalues(self) -> tuple[float, float]:
        """The p-values of ECCE-MAD and ECCE-R."""
        if not self.null_standard_error:
            return float(self.max_residual == 0), float(self.residual_range == 0)
        pvalue_mad = brownian_maximum_tail(self.max_residual / self.null_standard_error)
        return pvalue_mad, brownian_range_tail(self.standardized_range)

    @property
    def extremes(self) -> tuple[int, int]:
        """Indices of the minimum and the maximum."""
        return int(np.argmin(self.residual_path)), int(np.argmax(self.residual_path))

    @cached_property
    def drawn_vertices(self) -> Array:
        """Indices of the points drawn; of many, the first, lowest, highest and last of each of 499 shares of rows."""
        m = len(self.residual_path)
        if m <= MAX_VERTICES:
            return np.arange(m)
        edges = np.unique(np.searchsorted(self.row_share, np.arange(_N_SHARE_INTERVALS + 1) / _N_SHARE_INTERVALS))
        indices = [0, m - 1, *self.extremes]
        for start, stop in zip(edges, [*edges[1:], m], strict=True):
            part = self.residual_path[start:stop]
            if len(part):
                indices += [start, stop - 1, start + int(part.argmin()), start + int(part.argmax())]
        return np.unique(indices)

    @cached_property
    def significant_segment(self) -> ResidualSegment | None:
        """The steepest segment after subtracting the change that chance explains; None if chance explains every change.

        Under calibration no segment changes by more than the quantile of the range, with probability `level`.
        """
        null_change = _null_quantile(brownian_range_tail, self.level) * self.null_standard_error
        segment = steepest_segment(
            self.row_share[self.drawn_vertices], self.residual_path[self.drawn_vertices], null_change
        )
        return None if segment is None else ResidualSegment(*(int(self.drawn_vertices[end]) for end in segment))

    def segment_slope(self, segment: ResidualSegment) -> float:
        """Mean of observed minus predicted over a segment."""
        change = self.residual_path[segment.stop] - self.residual_path[segment.start]
        return float(change / (self.row_share[segment.stop] - self.row_share[segment.start]))

    def null_distribution_notes(self) -> list[Note]:
        """Notes on why the asymptotic distribution may be inaccurate, or why there is no randomness."""
        return [*self.ecce_result.notes, *(Note("TN260", warning) for warning in self.ecce_result.asymptotic_warnings)]


@cache
def _null_quantile(survival_function: Callable[[float], float], level: float) -> float:
    """The quantile at `level` of the null distribution with this survival function."""
    low, high = 0.0, 40.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if survival_function(middle) <= 1 - level else (middle, high)
    return high
