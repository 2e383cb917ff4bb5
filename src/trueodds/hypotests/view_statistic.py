"""The test result of one view, and test statistics as functions of cell sums, evaluated on many null draws at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.kernels.holm import holm
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
    doubts: tuple[str, ...] = ()  # reasons why the asymptotic distribution is inaccurate; reported only if it is used
    summary: str = ""  # the estimates in words


def cluster_note() -> Note:
    """Note on the coefficients of a test with redrawn labels of clustered rows."""
    text = (
        "The coefficients have jackknife standard errors over clusters; their intervals and Wald tests use Student's t"
        " and Hotelling's T² distributions. The p-value of the test itself is from the redrawn labels; with"
        " null='asymptotic' it is that of the Wald test."
    )
    return Note("TN270", text)


class CellFunction:
    """A statistic that is a function of the sums of fixed cells, for evaluation on many draws.

    `index` (n,) is the cell of each row. `function` takes Σw (…, size), Σwp and Σwy (…, size) or (…, size, m), whose
    leading axes broadcast, and returns (…). Larger values are more extreme; a two-sided z is passed as |z|.
    """

    def __init__(self, view: View, index: Array, size: int, function: StatisticFunction) -> None:
        self.view, self.index, self.size, self.function = view, index, size, function

    @classmethod
    def from_rows(cls, view: View, function: StatisticFunction) -> CellFunction:
        """Use every row (or cell of a tally) as its own cell."""
        return cls(view, np.arange(len(view)), len(view), function)

    def value(self) -> float:
        """The observed statistic."""
        view, m = self.view, self.view.p.shape[1] if self.view.joint else 1
        w = np.bincount(self.index, view.w, self.size)
        p, y = (np.asarray(x, dtype=np.float64).reshape(len(view), m) for x in (view.p, view.y))
        wp, wy = (
            np.stack([np.bincount(self.index, view.w * x[:, c], self.size) for c in range(m)], axis=1) for x in (p, y)
        )
        shape = (1, self.size, m) if view.joint else (1, self.size)
        statistic: float = self.function(w[None], wp.reshape(shape), wy.reshape(shape))[0]
        return statistic

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The statistic of each draw."""
        return self.function(w, wp, wy)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: the statistic is not an error with a confidence interval."""
        return None


class ScaledCells:
    """The statistic `cell_statistic` divided by its null standard error `std_error`; undivided if that is 0."""

    def __init__(self, cell_statistic: CellStatistic, std_error: float) -> None:
        self.cell_statistic, self.std_error = cell_statistic, std_error or 1.0

    @property
    def size(self) -> int:
        """Number of cells of the statistic."""
        return self.cell_statistic.size

    @property
    def index(self) -> Array:
        """The cell of each row, (n,)."""
        return self.cell_statistic.index

    def value(self) -> float:
        """The observed statistic."""
        return self.cell_statistic.value() / self.std_error

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The statistic of each draw."""
        return self.cell_statistic.statistic(w, wp, wy) / self.std_error

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> None:
        """None: the statistic is not an error with a confidence interval."""


def view_parts(names: Sequence[str], results: Sequence[ViewResult], pvalues: Array) -> dict[str, dict[str, float]]:
    """Statistic, p-value, Holm's p-value and effect of each view."""
    return {
        name: {"statistic": result.statistic, "pvalue": float(p), "holm": adjusted_pvalue, "effect": result.effect}
        for name, result, p, adjusted_pvalue in zip(
            names, results, pvalues, holm([float(p) for p in pvalues]), strict=True
        )
    }


def shared_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Settings that are equal for all views."""
    return {
        key: value
        for key, value in settings[0].items()
        if all(view_settings.get(key) == value for view_settings in settings)
    }
