"""Many selections of rows of one view, such as bootstrap resamples, sorted together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from trueodds.binning.sorted_scores import ranks_around
from trueodds.core.typing import Array
from trueodds.kernels import smoothing
from trueodds.lenses.view import View, has_rounded_ranks

T = TypeVar("T")


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
