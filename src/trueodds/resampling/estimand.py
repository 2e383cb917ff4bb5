"""An estimand: one estimator through one lens of the data, with the bin sums that resampling it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, aggregate_values, aggregation_weights
from trueodds.kernels import map_items
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View

MAX_DRAWS_PER_THREAD = 128  # draws that a thread adds up at once


@dataclass(frozen=True)
class Estimand:
    """An estimator through a lens, on the views of the data."""

    estimator: Estimator
    lens: Lens
    views: tuple[View, ...]  # of the data through the lens
    aggregate: str = "mean"  # how the values of several views are combined

    @classmethod
    def from_predictions(
        cls, estimator: Estimator, lens: Lens, preds: Predictions, aggregate: str = "mean"
    ) -> Estimand:
        """Create the estimand for these predictions."""
        if preds.cluster is not None and not estimator.supports_clusters:
            raise InputError(
                "TO205",
                f"{estimator.name} splits rows into folds as if they were independent, and these rows are clustered.",
                f"{estimator.name} with cluster=",
                "Use ece or smece, whose intervals resample whole clusters.",
            )
        views = lens.views(preds)
        if len(views) > 1 and not estimator.is_averageable:
            raise InputError(
                "TO205",
                f"{estimator.name} cannot be averaged over classes: values above and below the optimum would cancel.",
                f"{estimator.name} through {lens}",
                "Use lens='class:NAME' for each class.",
            )
        return cls(estimator, lens, views, aggregate)

    @cached_property
    def cell_statistics(self) -> tuple[CellStatistic, ...] | None:
        """The statistic of each view as a function of bin sums; None if draws require the rows."""
        statistics = map_items(self.estimator.cell_statistic, self.views)
        if any(cell_statistic is None for cell_statistic in statistics):
            return None
        return tuple(cell_statistic for cell_statistic in statistics if cell_statistic is not None)

    @cached_property
    def values(self) -> Array:
        """The observed statistic of each view."""
        return self.estimator.values(self.views)

    @cached_property
    def reported_estimand(self) -> Estimand:
        """The estimand whose interval is reported: this one, unless the estimator names another one."""
        other = self.estimator.interval_estimator()
        return self if other is self.estimator else replace(self, estimator=other)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows in the union of the views."""
        if len(self.views) > 1 and all(view.is_rows for view in self.views) and not self.views[0].is_unweighted:
            return int(np.logical_or.reduce([view.w > 0 for view in self.views]).sum())
        return self.views[0].n_rows

    @property
    def is_mean_of_views(self) -> bool:
        """Whether aggregation is linear in the views (false for `max` and `prevalence`)."""
        return len(self.views) == 1 or self.aggregate not in ("max", "prevalence")

    def combine_views(self, values: Array) -> Array:
        """Aggregate values by view (views, …) to one number."""
        if len(self.views) == 1:
            return values[0]
        if self.aggregate == "max" and self.estimator.best_value:  # the worst view is farthest from the optimum
            worst = np.argmax(self.estimator.as_loss(values), axis=0)
            return np.take_along_axis(values, np.expand_dims(worst, 0), axis=0)[0]
        return aggregate_values(values, self._view_weights, self.aggregate)

    @cached_property
    def _view_weights(self) -> Array:
        """Weight of each view in the aggregate, (views,)."""
        return aggregation_weights(self.views, self.aggregate)


class AccumulatorLayout:
    """One array of accumulators for the bins of all views, filled in one pass over the rows."""

    def __init__(self, estimands: Sequence[Estimand]) -> None:
        self.views = [view for estimand in estimands for view in estimand.views]
        self.cell_statistics = [
            cell_statistic for estimand in estimands for cell_statistic in estimand.cell_statistics or ()
        ]
        widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        self.sizes = [cell_statistic.size * m for cell_statistic, m in zip(self.cell_statistics, widths, strict=True)]
        self.offsets = np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)
        self.n_accumulators = int(self.offsets[-1])
        self.widths = widths

    @property
    def draws_per_block(self) -> int:
        """Number of draws in memory at once, with 64 MB of accumulators."""
        return max(1, min(4096, 2**23 // max(1, self.n_accumulators)))

    @property
    def draws_per_thread(self) -> int:
        """Number of draws per thread: at most a half of a block, so that two threads share the work."""
        return max(1, min(MAX_DRAWS_PER_THREAD, self.draws_per_block // 2))

    def accumulator_index(self) -> Array:
        """Accumulator index of each row and column, (n, columns); a joint view has one column per outcome."""
        columns = []
        for cell_statistic, m, offset in zip(self.cell_statistics, self.widths, self.offsets, strict=False):
            columns += [offset + cell_statistic.index * m + j for j in range(m)]
        return np.stack(columns, axis=1).astype(np.int32)

    def predicted_and_observed(self) -> tuple[Array, Array]:
        """wp and wy of each row and column, (n, columns)."""
        predicted = [view.w[:, None] * (view.p if view.joint else view.p[:, None]) for view in self.views]
        observed = [view.w[:, None] * (view.y if view.joint else view.y[:, None]) for view in self.views]
        return np.concatenate(predicted, axis=1), np.concatenate(observed, axis=1)

    def split_by_view(self, sums: Array) -> list[Array]:
        """Split sums (draws, size) by view: (draws, bins), or (draws, bins, m)."""
        by_view = []
        for cell_statistic, m, start, stop in zip(
            self.cell_statistics, self.widths, self.offsets[:-1], self.offsets[1:], strict=True
        ):
            view_sums = sums[:, start:stop]
            by_view.append(view_sums.reshape(len(sums), cell_statistic.size, m) if m > 1 else view_sums)
        return by_view

    def observed_sums(self) -> tuple[list[Array], list[Array], list[Array]]:
        """Observed Σw, Σwp and Σwy of the bins of each view, with a leading axis of length 1."""
        sums: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for cell_statistic, view in zip(self.cell_statistics, self.views, strict=True):
            w = view.w[:, None] if view.joint else view.w
            for view_sums, x in zip(sums, (view.w, w * view.p, w * view.y), strict=True):
                columns = [
                    np.bincount(cell_statistic.index, column, cell_statistic.size)
                    for column in (x.T if x.ndim > 1 else [x])
                ]
                view_sums.append(np.stack(columns, axis=1)[None] if x.ndim > 1 else columns[0][None])
        return sums


def stack_by_estimand(estimands: Sequence[Estimand], per_view: Sequence[Array]) -> list[Array]:
    """Stack the results of consecutive views by estimand: (views, draws) each."""
    stacked, start = [], 0
    for estimand in estimands:
        stacked.append(np.stack(per_view[start : start + len(estimand.views)]))
        start += len(estimand.views)
    return stacked


def pooled_view(view: View, cell_statistic: CellStatistic) -> View:
    """The bins of a statistic as a pooled view with bin indices, reused if the statistic stores it."""
    binned = getattr(cell_statistic, "binned", None)
    return (
        binned
        if isinstance(binned, View) and binned.bin_index is not None
        else view.pool(cell_statistic.index, cell_statistic.size)
    )
