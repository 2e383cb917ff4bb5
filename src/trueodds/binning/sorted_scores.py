"""Sorted scores of a binary view, or of many selections of its rows: their sums, quantiles and standard deviations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import smoothing, sorting
from trueodds.kernels.bins import MAX_COMPARED_EDGES, Bins, bin_sums_of_keys, bin_sums_of_sorted_keys
from trueodds.kernels.sorting import OrderStatistics, select_order_statistics
from trueodds.lenses.row_sources import combine_outcome_sums
from trueodds.lenses.view import SORTED_SCORES_KEY, View, has_rounded_ranks, rank_scores

T = TypeVar("T")

MIN_ROWS_FOR_COUNTING = 2**18  # number of rows above which counting is faster than sorting
MAX_SELECTED_CUTS = 512  # number of cuts up to which selecting the scores there is faster than sorting
WEIGHT_TOLERANCE = 1e-12  # relative to the total weight: cuts this close to a cumulative weight are equal to it


def sort_by_score(view: View) -> SortedScores:
    """Sorted scores of a binary view, computed on first use."""
    return view.cached(SORTED_SCORES_KEY, lambda: _sort_rows(view))


def sort_by_rank(view: View) -> SortedScores:
    """Sorted scores of a binary view; where probabilities round ranks away, sorted and tied by their log odds."""
    return view.cached("ranked", lambda: SortedLogOdds(view)) if has_rounded_ranks(view) else sort_by_score(view)


def sort_by_partition_value(view: View) -> SortedScores:
    """Sorted values as the partition uses them: cells at their locations, rows by rank."""
    return sort_by_rank(view) if view.is_rows else SortedScores(view.partition_values, view.y, view.w)


def _sort_rows(view: View) -> SortedScores:
    if view.rows is not None and not view.has_columns:
        return SortedScores.from_sort_keys(view.rows.sort_keys())
    return SortedScores(view.p, view.outcomes, None if view.is_unweighted else view.w)


class _WeightedRows(NamedTuple):
    """Rows with unequal weights, and their order by score."""

    p: Array  # (n,) scores
    y: Array  # (n,) outcomes
    w: Array  # (n,) weights
    order: Array  # (n,) indices of the rows in increasing order of the score


class SortedScores:
    """Rows or cells sorted by score, without those of weight zero.

    Rows of weight 1 are stored as one key each, which holds score and outcome. Of rows of unequal weight, the sort
    order is stored. Both take 4 or 8 bytes per row. Sums are computed on demand, because views of a thousand classes
    would otherwise need several times the memory of their probabilities.

    A few bins of many rows are computed by counting. Otherwise the keys are sorted once. Equal-mass bins need two
    steps: `scores_at_weight` finds the edges, then `sums_in_bins` computes the sums. If the first step counted rows,
    it keeps these counts, and the second step takes no further pass over the rows.

    >>> by_score = SortedScores(np.array([0.9, 0.2, 0.9]), np.array([1.0, 0.0, 0.0]))
    >>> [x.tolist() for x in by_score.sums_by_score()]
    [[0.2, 0.9], [1.0, 2.0], [0.0, 1.0]]
    """

    def __init__(self, p: Array, y: Array, w: Array | None = None) -> None:
        has_keys = (w is None or bool((w == 1).all())) and not (len(p) and p.min() < 0)  # log odds have no keys
        self._set_keys(sorting.encode_rows(p, y) if has_keys else None)
        if self._keys is None:
            w = np.ones(len(p)) if w is None else w
            self._weighted_rows = _WeightedRows(p, y, w, sorting.argsort_scores(p))

    @classmethod
    def from_sort_keys(cls, keys: Array) -> SortedScores:
        """Create from row keys (see `sorting.encode_rows`), which are sorted in place."""
        new = cls.__new__(cls)
        new._set_keys(keys)
        return new

    def _set_keys(self, keys: Array | None) -> None:
        """Store the row keys (n,), not sorted yet; None if rows have unequal weights."""
        self._keys, self._is_sorted = keys, False
        # Order statistics that the last call of `scores_at_weight` counted, for `sums_in_bins`; None if it sorted.
        self._last_order_statistics: OrderStatistics | None = None

    def sums_by_score(self) -> tuple[Array, Array, Array]:
        """Sorted distinct scores, and Σw and Σwy at each, (m,) float64."""
        if self._keys is not None:
            return sorting.count_by_score(self._sorted_keys(self._keys))
        return sorting.sum_by_score(*self._weighted_rows)

    def sums_in_bins(self, bins: Bins) -> Mapping[str, Array] | None:
        """Sums n, wp, wy, wpy and wpp of each bin, (bins,) by name; None if rows have unequal weights.

        Bins whose edges are between the scores of the last `scores_at_weight` take no further pass over the rows.
        """
        if self._keys is None:
            return None
        counted = None
        if self._last_order_statistics is not None:
            counted = self._last_order_statistics.sum_bins(bins.edges, bins.closed)  # None for other edges
        if counted is None and self._prefers_counting(self._keys, bins.size, MAX_COMPARED_EDGES):
            counted = bin_sums_of_keys(self._keys, bins.edges, bins.closed)
        if counted is not None:
            return combine_outcome_sums(counted)
        table = bin_sums_of_sorted_keys(self._sorted_keys(self._keys), bins.edges, bins.closed)
        return dict(zip(("n", "wp", "wy", "wpy", "wpp"), table.T, strict=True))

    def scores_at_weight(self, cumulative_weight: Array) -> tuple[Array, Array]:
        """Score of the row that completes each cumulative weight (c,), and score of the next row, both (c,)."""
        if not len(cumulative_weight):
            return np.empty(0), np.empty(0)
        if self._keys is not None and len(self._keys):
            ranks = np.concatenate(ranks_around(cumulative_weight, len(self._keys)))
            scores = self._scores_at_ranks(self._keys, ranks, len(cumulative_weight))
            return scores[: len(cumulative_weight)], scores[len(cumulative_weight) :]
        s, w, _ = self.sums_by_score()
        last_index, next_index = _indices_at_weight(w, cumulative_weight)
        return s[last_index], s[next_index]

    def find_rows(self, p: Array, scores: Array, first: Array) -> Array:
        """The group of each row, (n,), if groups of the distinct `scores` (m,) begin at the indices `first`."""
        return sorting.find_scores(p, scores[first])

    def _scores_at_ranks(self, keys: Array, ranks: Array, n_bins: int) -> Array:
        """The scores at these ranks (r,), by counting or sorting; order statistics are kept for `sums_in_bins`."""
        prefers_counting = self._prefers_counting(keys, n_bins, MAX_SELECTED_CUTS)
        order_statistics = select_order_statistics(keys, ranks) if prefers_counting else None
        self._last_order_statistics = order_statistics
        selected = self._sorted_keys(keys)[ranks] if order_statistics is None else order_statistics.select(ranks)
        return sorting.scores_of_keys(selected)

    def _prefers_counting(self, keys: Array, n_bins: int, max_bins: int) -> bool:
        """Whether counting is faster than sorting for this number of rows and bins."""
        return not self._is_sorted and n_bins <= max_bins and len(keys) >= MIN_ROWS_FOR_COUNTING

    def _sorted_keys(self, keys: Array) -> Array:
        if not self._is_sorted:
            keys.sort()
            self._is_sorted = True
        return keys


class SortedLogOdds(SortedScores):
    """Rows of a view sorted by their log odds, of which distinct ones may have the same probability.

    Scores are the probabilities in this order, where neighbors may be equal.
    """

    def __init__(self, view: View) -> None:
        self._set_keys(None)
        self._view = view
        log_odds, w = rank_scores(view), view.w
        order = sorting.argsort_scores(log_odds)
        order = order[w[order] > 0]
        starts = np.flatnonzero(np.diff(log_odds[order], prepend=np.nan) != 0)
        self.log_odds = log_odds[order[starts]]  # (m,) increasing
        self._sums = (
            view.p[order[starts]].astype(np.float64),
            *(np.add.reduceat(x[order], starts) if len(starts) else np.empty(0) for x in (w, w * view.y)),
        )

    def sums_by_score(self) -> tuple[Array, Array, Array]:
        """Probability, Σw and Σwy at each distinct log odds, (m,) float64."""
        s, w, wy = self._sums
        return s.copy(), w.copy(), wy.copy()

    def log_odds_at_weight(self, cumulative_weight: Array) -> tuple[Array, Array]:
        """Log odds of the row that completes each cumulative weight (c,), and of the next row, both (c,)."""
        last_index, next_index = _indices_at_weight(self._sums[1], cumulative_weight)
        return self.log_odds[last_index], self.log_odds[next_index]

    def find_rows(self, p: Array, scores: Array, first: Array) -> Array:
        index = np.searchsorted(self.log_odds[first], rank_scores(self._view), "right") - 1
        return np.maximum(index, 0)


def _indices_at_weight(w: Array, cumulative_weight: Array) -> tuple[Array, Array]:
    """Indices, among scores with weights w (m,), of the one that completes each weight (c,) and of the next one."""
    if not len(w):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    weight_up_to = np.cumsum(w)
    tolerance = WEIGHT_TOLERANCE * weight_up_to[-1]
    last_index = np.searchsorted(weight_up_to, cumulative_weight - tolerance, "left")
    next_index = np.searchsorted(weight_up_to, cumulative_weight + tolerance, "right")
    return last_index, np.minimum(next_index, len(w) - 1)


def ranks_around(cumulative_weight: Array, n: int) -> tuple[Array, Array]:
    """Ranks from 0, among n sorted rows of weight 1, of the row that completes each weight (c,) and of the next row."""
    tolerance = WEIGHT_TOLERANCE * n
    last_rank = np.clip(np.ceil(cumulative_weight - tolerance) - 1, 0, n - 1).astype(np.int64)
    return last_rank, np.minimum(np.floor(cumulative_weight + tolerance), n - 1).astype(np.int64)


def group_starts(w: Array, max_groups: int) -> Array:
    """Index of the first score of each group, if m scores form at most `max_groups` groups of about equal weight.

    `w` (m,) are the weights of the increasing scores. A score belongs to the group in which the middle of its weight
    lies, so that scores of large weight form groups by themselves.

    >>> group_starts(np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 4).tolist()
    [0, 1, 3]
    """
    if len(w) <= max_groups:
        return np.arange(len(w))
    middles = (np.cumsum(w) - w / 2) / w.sum()
    return np.flatnonzero(np.diff((middles * max_groups).astype(np.int64), prepend=-1) > 0)


class LinearShares:
    """Masses at sorted scores, each divided between the two points of a grid around its score.

    Parameters
    ----------
    lower_point : ndarray of shape (n,)
        Number of the grid point below each score, nondecreasing.
    upper_share : ndarray of shape (n,)
        Share of each mass that goes to the next point.
    size : int
        Number of grid points.
    """

    def __init__(self, lower_point: Array, upper_share: Array, size: int) -> None:
        self.upper_share, self.size = upper_share, size
        self.starts = np.flatnonzero(np.diff(lower_point, prepend=-1))
        self.lower_points = lower_point[self.starts]  # of each run of scores between the same points

    def sums(self, mass: Array) -> Array:
        """Return the sum at each grid point, (…, size), of the masses (…, n)."""
        sums, upper_mass = np.zeros((*mass.shape[:-1], self.size)), mass * self.upper_share
        sums[..., self.lower_points] = np.add.reduceat(mass - upper_mass, self.starts, axis=-1)
        sums[..., self.lower_points + 1] += np.add.reduceat(upper_mass, self.starts, axis=-1)
        return sums


def weighted_std(x: Array, w: Array) -> Array:
    """Weighted standard deviation (…) of scores x (…, m), with weights (m,)."""
    mean = (w * x).sum(axis=-1, keepdims=True) / w.sum()
    deviation = x - mean
    deviation *= deviation
    deviation *= w
    return np.sqrt(deviation.sum(axis=-1) / w.sum())


def weighted_quantiles(s: Array, w: Array, levels: tuple[float, ...]) -> list[Array]:
    """Weighted quantile (…) of sorted scores s (…, m) with weights w (m,) at each level, with linear interpolation.

    A weight of two is equivalent to two rows. For equal weights this is the usual interpolation (type 7): the quantile
    q of n rows lies at the position q(n − 1) among the sorted rows, counted from 0.

    >>> weighted_quantiles(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 2.0]), (0.5, 1.0))
    [np.float64(3.0), np.float64(5.0)]
    """
    weight_up_to = np.cumsum(w)
    values = []
    for position in np.asarray(levels) * (weight_up_to[-1] - 1):
        first = min(np.searchsorted(weight_up_to, position, "right"), len(w) - 1)
        last = min(np.searchsorted(weight_up_to, position + 1, "left"), len(w) - 1)
        # Weight of each score in the interval from `position` to `position` + 1.
        overlap = np.diff(
            np.clip(weight_up_to[first:last], position, position + 1), prepend=position, append=position + 1
        )
        values.append(s[..., first : last + 1] @ overlap)
    return values


class RowSelections:
    """Several selections of rows of one view, such as bootstrap resamples, which may repeat rows and differ in length.

    >>> some = RowSelections(View(p=[0.9, 0.2, 0.4], y=[1, 0, 1]), [[2, 0], [1, 1]])
    >>> some.sorted_scores[0].tolist(), [view.n_rows for view in some.views()]
    ([[0.4, 0.9], [0.2, 0.2]], [2, 2])
    """

    def __init__(self, view: View, rows: Sequence[Any] | Array) -> None:
        self.view = view
        self.rows = rows
        self._cache: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def view_of_selection(self, i: int) -> View:
        return self.view.take(np.asarray(self.rows[i]))

    def views(self) -> Iterator[View]:
        return (self.view_of_selection(i) for i in range(len(self)))

    @cached_property
    def is_vectorizable(self) -> bool:
        """Whether the selections can be vectorized: equally many rows, of weight 1 and with one score each."""
        if (
            self.view.joint
            or not self.view.is_unweighted
            or self.view.partition_values is not self.view.p
            or has_rounded_ranks(self.view)
            or not len(self)
        ):
            return False
        return len(self.rows[0]) > 0 and all(len(selection) == len(self.rows[0]) for selection in self.rows)

    @cached_property
    def first_view(self) -> View:
        """View of the first selection, used for properties that equal selections share."""
        return self.view_of_selection(0)

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        """Sorted scores of each selection and their outcomes, (selections, m) float64."""
        rows = np.asarray(self.rows)
        p = self.view.p[rows].astype(np.float64, copy=False)
        order = np.argsort(p, axis=1)
        y = self.view.y[np.take_along_axis(rows, order, axis=1)]
        return np.take_along_axis(p, order, axis=1), y

    def scores_at_weight(self, cumulative_weight: Array) -> tuple[Array, Array]:
        """Scores of the row that completes each weight (c,) and of the next row, both (selections, c)."""
        p, _ = self.sorted_scores
        last_rank, next_rank = ranks_around(cumulative_weight, p.shape[1])
        return p[:, last_rank], p[:, next_rank]

    def sums_by_bin(self, inner_edges: Array, closed: str) -> Array:
        """n, Σp and Σy (3, selections, bins) between the inner edges of each selection, or of all (1, bins − 1)."""
        return smoothing.sum_between_edges(*self.sorted_scores, inner_edges, closed)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a cached value, or compute it once for these selections."""
        if key not in self._cache:
            self._cache[key] = compute()
        cached: T = self._cache[key]
        return cached
