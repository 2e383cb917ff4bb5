"""The columns of a table of models: the estimates of one measure, the comparisons of the models, and their format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.core.json_files import strict_json
from trueodds.core.results import Estimate
from trueodds.core.table_formats import FormattedCell

DEFAULT_DECIMALS, MAX_DECIMALS = 4, 9  # fewest decimals of a column without intervals, and most of any column
VALUE_DIGITS = 3  # significant digits of the largest value of a column without intervals
INTERVAL_DIGITS = 2  # significant digits of the half-width of an interval that are printed


@dataclass(frozen=True, slots=True)
class TableComparison:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a JSON object."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": strict_json(self.difference),
            "pvalue": strict_json(self.pvalue),
        }


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """One measure of all models.

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
        The same with Holm's adjustment for all measures of the table.
    """

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

    def format_cell(self, model: str) -> FormattedCell:
        """Return the texts of the cell of one model."""
        estimate, decimals = self.estimates[model], self.decimals
        interval, noise_floor = estimate.interval, estimate.noise_floor
        return FormattedCell(
            _format_fixed(estimate.value, decimals),
            None
            if interval is None
            else (_format_fixed(interval.low, decimals), _format_fixed(interval.high, decimals)),
            None if noise_floor is None else _format_fixed(noise_floor, decimals),
            is_bold=model == self.bold,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the column as a JSON object."""
        return {
            "label": self.label,
            "estimator": self.estimator,
            "lens": self.lens,
            "direction": self.direction,
            "best_value": strict_json(self.best_value),
            "bold": self.bold,
            "pvalue": strict_json(self.pvalue),
            "adjusted_pvalue": strict_json(self.adjusted_pvalue),
            "estimates": {name: estimate.to_dict() for name, estimate in self.estimates.items()},
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }


def _format_fixed(x: float, decimals: int) -> str:
    """Format a number with these decimals, without a sign of zero."""
    return f"{round(x, decimals) + 0.0:.{decimals}f}" if math.isfinite(x) else format_number(x)
