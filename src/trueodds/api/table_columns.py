"""The columns of a table of models: estimates of a measure, comparisons of models and versions, and their format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from trueodds.core.formatting import format_number, format_pvalue
from trueodds.core.json_files import JsonObject
from trueodds.core.results import Estimate, Interval
from trueodds.core.table import FormattedCell
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE

DEFAULT_DECIMALS, MAX_DECIMALS = 4, 9  # fewest decimals of a column without intervals, and most of any column
VALUE_DIGITS = 3  # significant digits of the largest value of a column without intervals
INTERVAL_DIGITS = 2  # significant digits of the half-width of an interval that are printed


@dataclass(frozen=True, slots=True)
class TableComparison(JsonObject):
    """The difference of two models by one measure, with its p-value.

    Attributes
    ----------
    first, second : str
        The names of the models.
    difference : float
        The error of the first model minus that of the second, as `compare` reports it.
    pvalue : float or None
        Two-sided p-value of equal errors, as `compare` reports it; None if it is undefined.
    """

    first: str
    second: str
    difference: float
    pvalue: float | None


@dataclass(frozen=True, slots=True)
class VersionDifference(JsonObject):
    """The difference of two versions of a model by one measure, with its test.

    Attributes
    ----------
    model, version, reference : str
        The model, its version, and the first version, with which it is compared.
    difference : float
        The error of the version minus that of the reference, as `compare` reports it: negative if an error decreased.
    interval : Interval or None
        The confidence interval of the difference.
    pvalue : float or None
        Two-sided p-value of equal errors; None without intervals, or if it is undefined.
    adjusted_pvalue : float or None
        The same with Holm's adjustment for all differences of the table. A difference that depends on too few rows
        counts as not significant (note TN273).
    paired : bool
        Whether the versions have the same rows, so that noise that is common to both cancels (else note TN227).
    """

    model: str
    version: str
    reference: str
    difference: float
    interval: Interval | None
    pvalue: float | None
    adjusted_pvalue: float | None
    paired: bool = True

    @property
    def label(self) -> str:
        """The heading of the column of this difference."""
        return f"{self.version} − {self.reference}"


@dataclass(frozen=True, slots=True)
class SegmentCell(JsonObject):
    """The test of calibration of one model on the rows of one segment.

    Attributes
    ----------
    model, segment : str
        The model and the value of the column that divides the rows.
    n : int
        Number of rows.
    pvalue : float or None
        P-value of the test; None if the cell was not judged.
    adjusted_pvalue : float or None
        The same with Holm's adjustment for all cells of the table.
    status : {"miscalibrated", "not rejected", "not judged"}
        Whether calibration is rejected. A cell with too few rows or clusters is not judged.
    reason : str
        Why the cell was not judged; empty if it was.
    """

    model: str
    segment: str
    n: int
    pvalue: float | None
    adjusted_pvalue: float | None
    status: str
    reason: str = ""

    @property
    def mark(self) -> str:
        """The sign behind the values of the cell: † if calibration is rejected, ? if the cell was not judged."""
        return {"miscalibrated": "†", "not judged": "?"}.get(self.status, "")


@dataclass(frozen=True, slots=True)
class MeasureColumn(JsonObject):
    """One measure of all models, in one segment if the table is divided into segments.

    Attributes
    ----------
    label : str
        The heading of the column.
    estimator, lens : str
        Name of the estimator and of the lens.
    direction : {"lower", "higher", "target"}
        Whether lower values are better, or higher ones, or those closer to `best_value`.
    best_value : float
        The value of a perfect model.
    estimates : mapping of str to Estimate
        The estimate of each model, by name.
    bold : str or None
        The model that is significantly better than every other one, which is printed in bold; None if there is none.
    comparisons : tuple of TableComparison
        The comparisons of all pairs of models; empty if the models were not compared.
    pvalue : float or None
        P-value of the claim that the model with the best value is better than every other one: the largest p-value of
        its comparisons, and 1 if one of them does not favor it. None if the models were not compared.
    adjusted_pvalue : float or None
        The same with Holm's adjustment for all columns of the table.
    segment : str or None
        The segment of the rows; None if the table has none. A model without rows in it has no estimate.
    differences : tuple of VersionDifference
        The differences of the versions of each model; empty without versions.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        "label", "estimator", "lens", "direction", "best_value", "bold", "pvalue", "adjusted_pvalue", "estimates",
        "comparisons", "segment?", "differences?",
    )  # fmt: skip

    label: str
    estimator: str
    lens: str
    direction: str
    best_value: float
    estimates: Mapping[str, Estimate]
    bold: str | None = None
    comparisons: tuple[TableComparison, ...] = ()
    pvalue: float | None = None
    adjusted_pvalue: float | None = None
    segment: str | None = None
    differences: tuple[VersionDifference, ...] = ()

    @property
    def arrow(self) -> str:
        """The sign of the direction in the heading: ↓, ↑, or → with the best value."""
        signs = {"lower": "↓", "higher": "↑"}
        return signs.get(self.direction) or f"→ {format_number(self.best_value)}"

    @property
    def decimals(self) -> int:
        """Decimals of all numbers of the column: the narrowest interval has two significant digits in its half-width.

        Without intervals there are four, or as many as show three significant digits of the largest value.
        """
        half_widths = [
            (interval.high - interval.low) / 2
            for interval in (estimate.interval for estimate in self.estimates.values())
            if interval is not None and 0 < interval.high - interval.low < math.inf
        ]
        if not half_widths:
            largest = max((abs(x) for x in map(float, self.estimates.values()) if math.isfinite(x)), default=0.0)
            decimals = VALUE_DIGITS - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
            return min(max(decimals, DEFAULT_DECIMALS), MAX_DECIMALS)
        decimals = INTERVAL_DIGITS - 1 - math.floor(math.log10(min(half_widths)))
        return min(max(decimals, 0), MAX_DECIMALS)

    def format_cell(self, model: str, mark: str = "") -> FormattedCell:
        """Return the texts of the cell of one model; `mark` is the sign behind the value."""
        decimals = self.decimals
        if model not in self.estimates:
            return FormattedCell("–", mark=mark)
        estimate = self.estimates[model]
        noise_floor = None if estimate.noise_floor is None else _format_fixed(estimate.noise_floor, decimals)
        interval = _format_limits(estimate.interval, decimals)
        value = _format_fixed(estimate.value, decimals)
        return FormattedCell(value, interval, noise_floor, is_bold=model == self.bold, mark=mark)

    def format_difference(self, difference: VersionDifference | None, alpha: float) -> list[FormattedCell]:
        """Return the texts of a difference, bold if it is significant at `alpha`, and of its adjusted p-value.

        Both are dashes if there is no difference, because a version has no estimate.
        """
        if difference is None:
            return [FormattedCell("–"), FormattedCell("–")]
        p = difference.adjusted_pvalue
        value = _format_fixed(difference.difference, self.decimals, "+")
        interval = _format_limits(difference.interval, self.decimals)
        return [
            FormattedCell(value, interval, is_bold=p is not None and p <= alpha + LEVEL_TOLERANCE),
            FormattedCell(format_pvalue(p)),
        ]


def _format_fixed(x: float, decimals: int, sign: str = "") -> str:
    """Format a number with these decimals, without a sign of zero."""
    if not math.isfinite(x):
        return format_number(x)
    rounded = round(x, decimals) + 0.0
    return f"{rounded:{sign if rounded else ''}.{decimals}f}"


def _format_limits(interval: Interval | None, decimals: int) -> tuple[str, str] | None:
    """Format the limits of an interval with these decimals."""
    return None if interval is None else (_format_fixed(interval.low, decimals), _format_fixed(interval.high, decimals))
