"""An estimand: one estimator through one lens, evaluated on the views of the data.

Resampling fills one array of accumulators for the bin sums of several views in one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, aggregate_values, aggregation_weights
from trueodds.estimators.binned import BinnedError
from trueodds.kernels import map_items
from trueodds.kernels.bins import sums_by_cell
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Estimand:
    """An estimator through a lens, on the views of the data.

    Intervals, null draws and comparisons all refer to an estimand. The number is computed in two steps: `values` has
    one value per view, and `combine_views` aggregates them.
    """

    estimator: Estimator
    lens: Lens
    views: tuple[View, ...]  # data of each event that the lens examines
    aggregate: str = "mean"  # how the values of several views are combined
    rows: Array | None = None  # numbers of the rows that the views hold, ascending; None for all rows

    @classmethod
    def from_predictions(
        cls, estimator: Estimator, lens: Lens, preds: Predictions, aggregate: str = "mean", rows: Array | None = None
    ) -> Estimand:
        """Create the estimand for these predictions; raise InputError if the estimator cannot be used."""
        if preds.cluster is not None and not estimator.supports_clusters:
            raise InputError(
                "TO205",
                f"{estimator.name} splits rows into folds as if they were independent, and these rows are clustered.",
                f"{estimator.name} with ⟨cluster=⟩",
                "Use ece or smece, whose intervals resample whole clusters.",
            )
        views = lens.views(select_rows(preds, rows))
        if len(views) > 1 and not estimator.is_averageable:
            raise InputError(
                "TO205",
                f"{estimator.name} cannot be averaged over classes: values above and below the optimum would cancel.",
                f"{estimator.name} through {lens}",
                "Use ⟨lens='class:NAME'⟩ for each class.",
            )
        return cls(estimator, lens, views, aggregate, rows)

    @cached_property
    def cell_statistics(self) -> tuple[CellStatistic, ...] | None:
        """The statistic of each view as a function of sums by cell; None if draws must be evaluated from the rows."""
        statistics = map_items(self.estimator.cell_statistic, self.views)
        if any(cell_statistic is None for cell_statistic in statistics):
            return None
        return tuple(cell_statistic for cell_statistic in statistics if cell_statistic is not None)

    @cached_property
    def values(self) -> Array:
        return self.estimator.values(self.views)

    @property
    def reported_estimand(self) -> Estimand:
        """The estimand whose interval is reported: this one, unless the estimator names another estimator for it.

        A debiased form of an error, for example, reports the interval of its plug-in form, which has better coverage.
        """
        return self._estimand_of_interval or self

    @cached_property
    def _estimand_of_interval(self) -> Estimand | None:
        interval_estimator = self.estimator.interval_estimator()
        return None if interval_estimator is self.estimator else replace(self, estimator=interval_estimator)

    @property
    def is_root_mean_square(self) -> bool:
        """Whether the error is a root mean square over the bins of one score, which has an unbiased square."""
        error = self.estimator
        if not (isinstance(error, BinnedError) and error.order == 2 and str(error.distance) == "tv"):
            return False
        return len(self.views) == 1 and not self.views[0].joint and self.cell_statistics is not None

    @cached_property
    def n_rows(self) -> int:
        if len(self.views) > 1 and all(view.is_rows for view in self.views) and not self.views[0].is_unweighted:
            return int(np.logical_or.reduce([view.w > 0 for view in self.views]).sum())
        return self.views[0].n_rows

    @property
    def is_mean_of_views(self) -> bool:
        """Whether aggregation is linear in the views (false for `max` and `prevalence`)."""
        return len(self.views) == 1 or self.aggregate not in ("max", "prevalence")

    def combine_views(self, values: Array) -> Array:
        if len(self.views) == 1:
            return values[0]
        if self.aggregate == "max" and self.estimator.best_value:  # the worst view is farthest from the optimum
            worst = np.argmax(self.estimator.as_loss(values), axis=0)
            return np.take_along_axis(values, np.expand_dims(worst, 0), axis=0)[0]
        return aggregate_values(values, self._view_weights, self.aggregate)

    @cached_property
    def _view_weights(self) -> Array:
        return aggregation_weights(self.views, self.aggregate)


def select_rows(preds: Predictions, rows: Array | None) -> Predictions:
    """Return the predictions of an estimand's rows, by their numbers; None stands for all rows."""
    return preds if rows is None else preds[rows]


def pooled_view(view: View, cell_statistic: CellStatistic) -> View:
    """Return the view pooled by the cells of a statistic, with one entry per occupied cell and its `bin_index`.

    A statistic that stores this pooled view as `binned` saves computing it again.
    """
    binned = getattr(cell_statistic, "binned", None)
    if isinstance(binned, View) and binned.bin_index is not None:
        return binned
    return view.pool(cell_statistic.index, cell_statistic.size)


MAX_DRAWS_PER_THREAD = 128  # draws that a thread adds up at once


class AccumulatorLayout:
    """Which accumulator of one array each row adds to, for the bins of all views of some estimands.

    The accumulators of a view, from `offsets` of the view on, are contiguous; a bin of a joint view of m outcomes, the
    `widths` of the view, has m of them.
    """

    def __init__(self, estimands: Sequence[Estimand]) -> None:
        self.views = [view for estimand in estimands for view in estimand.views]
        self.cell_statistics = [
            cell_statistic for estimand in estimands for cell_statistic in estimand.cell_statistics or ()
        ]
        self.widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        sizes = [cell_statistic.size * m for cell_statistic, m in zip(self.cell_statistics, self.widths, strict=True)]
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.n_accumulators = int(self.offsets[-1])

    @property
    def draws_per_block(self) -> int:
        """Number of draws in memory at once, such that their accumulators take at most 32 MB."""
        return max(1, min(4096, 2**22 // max(1, self.n_accumulators)))

    @property
    def draws_per_thread(self) -> int:
        return max(1, min(MAX_DRAWS_PER_THREAD, self.draws_per_block // 2))

    def accumulator_index(self) -> Array:
        """Accumulator index of each row and column, (n, columns); a joint view has one column per outcome."""
        columns = []
        for cell_statistic, m, offset in zip(self.cell_statistics, self.widths, self.offsets, strict=False):
            columns += [offset + cell_statistic.index * m + j for j in range(m)]
        return np.stack(columns, axis=1).astype(np.int32)

    def predicted_and_observed(self) -> tuple[Array, Array]:
        """wp and wy of each row for the columns of `accumulator_index`, (n, columns)."""
        predicted = [view.w[:, None] * (view.p if view.joint else view.p[:, None]) for view in self.views]
        observed = [view.w[:, None] * (view.y if view.joint else view.y[:, None]) for view in self.views]
        return np.concatenate(predicted, axis=1), np.concatenate(observed, axis=1)

    def split_by_view(self, sums: Array) -> list[Array]:
        """Split sums (draws, n_accumulators) by view: (draws, bins), or (draws, bins, m) for a joint view."""
        by_view = []
        for cell_statistic, m, start, stop in zip(
            self.cell_statistics, self.widths, self.offsets[:-1], self.offsets[1:], strict=True
        ):
            view_sums = sums[:, start:stop]
            by_view.append(view_sums.reshape(len(sums), cell_statistic.size, m) if m > 1 else view_sums)
        return by_view

    def observed_sums(self) -> tuple[list[Array], list[Array], list[Array]]:
        """Observed Σw (1, bins), Σwp and Σwy (1, bins) or (1, bins, m) of each view, in the shape of a single draw."""
        sums: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for cell_statistic, view in zip(self.cell_statistics, self.views, strict=True):
            index, size = cell_statistic.index, cell_statistic.size
            sums[0].append(sums_by_cell(index, view.w, size)[None])
            for view_sums, x in zip(sums[1:], (view.p, view.outcomes), strict=True):
                view_sums.append(sums_by_cell(index, x, size, view.w)[None])
        return sums


def stack_by_estimand(estimands: Sequence[Estimand], per_view: Sequence[Array]) -> list[Array]:
    """Stack the results (draws,) of consecutive views, to one array (views, draws) for each estimand."""
    stacked, start = [], 0
    for estimand in estimands:
        stacked.append(np.stack(per_view[start : start + len(estimand.views)]))
        start += len(estimand.views)
    return stacked
