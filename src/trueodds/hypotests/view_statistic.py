"""The test result of one view, and test statistics as functions of cell sums, evaluated on many null draws at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator
from trueodds.kernels.bins import sums_by_cell
from trueodds.lenses.view import View

StatisticFunction = Callable[[Array, Array, Array], Array]  # of Σw, Σwp and Σwy by cell


@dataclass(frozen=True)
class ViewResult:
    """Test result of one view."""

    statistic: float  # as reported
    pvalue: float  # asymptotic; NaN if the test has no asymptotic distribution, or is undefined
    effect: float  # effect size in probability units
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # named groups of further numbers
    settings_used: Mapping[str, Any] = field(default_factory=dict)  # settings as resolved for this view
    notes: tuple[Note, ...] = ()  # notes for every null distribution
    asymptotic_warnings: tuple[str, ...] = ()  # why the asymptotic p-value is inaccurate; reported only if it is used
    summary: str = ""  # the estimates in words


class CellFunction(CellStatistic):
    """A statistic that is a function of the sums of fixed cells, for evaluation on many draws.

    Parameters
    ----------
    view : View
        The view whose outcomes are tested.
    index : ndarray of shape (n,)
        Cell of each row.
    size : int
        Number of cells.
    function : callable
        Takes Σw (…, size), Σwp and Σwy (…, size), or (…, size, m) for a joint view of m outcomes. Their leading axes
        broadcast. Returns the statistic, (…); larger values are more extreme, so a two-sided z is returned as |z|.
    """

    def __init__(self, view: View, index: Array, size: int, function: StatisticFunction) -> None:
        self.view, self.index, self.size, self.function = view, index, size, function

    @classmethod
    def from_rows(cls, view: View, function: StatisticFunction) -> CellFunction:
        """Use every row (or cell of a tally) as its own cell."""
        return cls(view, np.arange(len(view)), len(view), function)

    def value(self) -> float:
        view = self.view
        shape = (1, self.size, view.p.shape[1]) if view.joint else (1, self.size)
        w = np.bincount(self.index, view.w, self.size)
        wp, wy = self._weighted_sums(view.p).reshape(shape), self._weighted_sums(view.outcomes).reshape(shape)
        statistic: float = self.function(w[None], wp, wy)[0]
        return statistic

    def _weighted_sums(self, x: Array) -> Array:
        """Σwx over the rows of each cell, (size, m), for x (n,) or (n, m); m is 1 for x (n,)."""
        return sums_by_cell(self.index, x if x.ndim > 1 else x[:, None], self.size, self.view.w)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self.function(w, wp, wy)


class StandardizedStatistic(CellStatistic):
    """The statistic `cell_statistic` divided by its null standard error `std_error`; undivided if that is 0."""

    def __init__(self, cell_statistic: CellStatistic, std_error: float) -> None:
        self.cell_statistic, self.std_error = cell_statistic, std_error or 1.0
        self.size, self.index = cell_statistic.size, cell_statistic.index

    def value(self) -> float:
        return self.cell_statistic.value() / self.std_error

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self.cell_statistic.statistic(w, wp, wy) / self.std_error


@dataclass(frozen=True)
class StatisticEstimator(Estimator):
    """Adapter that presents the statistic of a `ViewTest` as an estimator, as null draws require."""

    name: ClassVar[str] = "test statistic"
    test: Any  # the ViewTest

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        return bool(self.test.needs_rows)

    @property
    def partition(self) -> Any:
        """The bins of the test, or None."""
        return getattr(self.test, "partition", None)

    def value(self, view: View) -> float:
        return self.cell_statistic(view).value()

    def cell_statistic(self, view: View) -> CellStatistic:
        statistic: CellStatistic = self.test.cell_statistic(view)
        return statistic
