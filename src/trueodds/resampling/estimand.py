"""An estimand: one estimator through one lens, evaluated on the views of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, aggregate_values, aggregation_weights
from trueodds.estimators.binned import BinnedError
from trueodds.kernels import map_items
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View


def refuse_average(estimator: Estimator, lens: Lens) -> None:
    """Raise TO205 for an estimator whose values of several views would cancel."""
    if not estimator.is_averageable:
        raise InputError(
            "TO205",
            f"{estimator.name} cannot be averaged over classes: values above and below the optimum would cancel.",
            f"{estimator.name} through {lens}",
            "Use ⟨lens='class:NAME'⟩ for each class.",
        )


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
        views = lens.views(preds if rows is None else preds[rows])
        if len(views) > 1:
            refuse_average(estimator, lens)
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

    @property
    def drawn_estimands(self) -> list[Estimand]:
        """This estimand, and the one whose interval is reported, last, if it is another one."""
        return [self] if self.reported_estimand is self else [self, self.reported_estimand]

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
