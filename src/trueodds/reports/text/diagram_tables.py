"""Tables of the numbers behind the diagrams of an audit, by bin, cell or panel, and the bin that deviates most."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import format_decimals, format_distinct_percents
from trueodds.core.table import Column, Table
from trueodds.reports.audit_sections import AuditData, AuditDiagram
from trueodds.reports.text.formatting import format_value
from trueodds.reports.text.result_tables import class_name

MAX_DIAGRAM_ROWS = 2000  # rows of the table of a diagram on the page; the JSON has all of them
MIN_BIN_ROWS = 10  # smallest number of rows of a bin that may be selected
# Texts and axis limits in the panels of a diagram, which are not listed as numbers. Names of classes at the corners of
# a simplex, `corner_0` and so on, are in the headings instead.
_LAYOUT_COLUMNS = re.compile(r"title|aside|finding|y_low|y_high|tallest|top|corner_\d+|share_(low|high|log)|votes")
# Headings that are not simply the name of the column with spaces.
_COLUMN_HEADINGS = {
    "pvalue": "p",
    "smallest_pvalue": "smallest p",
    "holm": "Holm p",
    "beyond": "significant",
    "cells_beyond": "significant cells",
    "bins_by_chance": "expected outside",
    "outcome_rate": "observed",
    "mean_prediction": "predicted",
}
# Headings of the columns of a simplex or tetrahedron that exist once per class, as `mean_prediction_0`,
# `mean_prediction_1`, …; the name of the class is inserted.
_HEADINGS_BY_CLASS = {
    "mean_prediction": "predicted {}",
    "outcome_frequency": "observed {}",
    "low": "cell: {} from",
    "high": "cell: {} to",
}
# The order of the columns: these first, then those in neither list, then the last ones.
_FIRST_COLUMNS = (
    "mean_prediction", "outcome_rate", "outcome_frequency", "deviation", "error", "bar_low", "bar_high", "n",
)  # fmt: skip
_LAST_COLUMNS = ("distance", "statistic", "df", "distribution", "bin", "cell", "low", "high", "share", "weight")


def diagram_table(diagram: AuditDiagram, unit: str = "class") -> Table:
    """Return the numbers of a diagram as a table with a row per bin or cell.

    Rows beyond MAX_DIAGRAM_ROWS are counted in `n_omitted`.

    Parameters
    ----------
    diagram : AuditDiagram
        The numbers of the diagram.
    unit : {"class", "label"}, default="class"
        What a view of the diagram is called.

    Returns
    -------
    Table
        The table, with predicted and observed in the first columns.
    """
    return _numbers_table("Numbers of the diagram", diagram.table, _class_names_by_number(diagram), unit)


def panel_table(diagram: AuditDiagram, unit: str = "class") -> Table:
    """Return the numbers of a diagram that belong to a panel, such as its p-value, as a table with a row per panel.

    The parameters are those of `diagram_table`.
    """
    columns = {name: values for name, values in (diagram.panels or {}).items() if not _LAYOUT_COLUMNS.fullmatch(name)}
    return _numbers_table("Numbers of the panels", columns, _class_names_by_number(diagram), unit)


def curve_table(diagram: AuditDiagram) -> Table:
    """Return the numbers of a calibration belt or a decision curve, with a row per point of the curve."""
    rows = table_rows(diagram.table)
    curve = [row for row in rows if row["part"] == "curve"]
    if diagram.diagram == "calibration_belt":
        band = [row for row in rows if row["part"] == "belt" and row["level"] == max(diagram.settings["levels"])]
        entries = {
            "predicted": ("x_low", curve),
            "fitted": ("rate", curve),
            "low": ("low", band),
            "high": ("high", band),
        }
    else:
        names = ("threshold", "net_benefit", "low", "high", "treat_all")
        entries = {name.replace("_", " "): (name, curve) for name in names}
    columns = tuple(Column(heading, [row[name] for row in part]) for heading, (name, part) in entries.items())
    return Table("Numbers of the curve", columns).without_empty_columns()


def table_rows(table: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of the table of a diagram, each by the names of the columns."""
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def _class_names_by_number(diagram: AuditDiagram) -> dict[str, str]:
    """Return the names of the classes of a simplex or tetrahedron by number, "0" to "3"; empty for other diagrams."""
    columns = (diagram.panels or {}).items()
    return {name.removeprefix("corner_"): values[0] for name, values in columns if name.startswith("corner_")}


def _numbers_table(title: str, columns: Mapping[str, Any], class_names: Mapping[str, str], unit: str) -> Table:
    """Return columns of numbers as a table.

    Columns are left out if they hold no list, if they are empty, and if they are weights that equal the counts. The
    first column has the views, such as the classes, if there are several. `class_names` are the classes by number.
    """
    shown = {name: values for name, values in columns.items() if isinstance(values, list)}
    views = [class_name(view) for view in shown.pop("view", ())]
    if shown.get("weight") == shown.get("n"):
        shown.pop("weight", None)
    shown = {name: shown[name] for name in sorted(shown, key=_column_position)}
    if len(set(views)) > 1:  # the heading of the diagram names a single view
        shown = {unit: views, **shown}
    table_columns = (_make_column(name, _column_heading(name, class_names), values) for name, values in shown.items())
    return Table(title, tuple(table_columns)).without_empty_columns().head(MAX_DIAGRAM_ROWS)


def _column_position(name: str) -> int:
    """Return a number by which columns are sorted; columns of several classes sort as their common name.

    >>> sorted(["low", "n", "other", "outcome_frequency_1", "mean_prediction_0"], key=_column_position)
    ['mean_prediction_0', 'outcome_frequency_1', 'n', 'other', 'low']
    """
    known = (*_FIRST_COLUMNS, *_LAST_COLUMNS)
    stem = name if name in known else name.rstrip("0123456789").removesuffix("_")
    if stem in _FIRST_COLUMNS:
        return _FIRST_COLUMNS.index(stem)
    if stem in _LAST_COLUMNS:
        return len(_FIRST_COLUMNS) + 1 + _LAST_COLUMNS.index(stem)
    return len(_FIRST_COLUMNS)


def _column_heading(name: str, class_names: Mapping[str, str]) -> str:
    """Return the heading of a column.

    >>> _column_heading("outcome_frequency_1", {"0": "cat", "1": "dog"})
    'observed dog'
    >>> _column_heading("bar_low", {}), _column_heading("pvalue", {})
    ('bar low', 'p')
    """
    quantity, _, class_number = name.rpartition("_")
    if class_number in class_names and quantity in _HEADINGS_BY_CLASS:
        return _HEADINGS_BY_CLASS[quantity].format(class_names[class_number])
    return _COLUMN_HEADINGS.get(name, name.replace("_", " "))


def _make_column(name: str, heading: str, values: list[Any]) -> Column:
    """Return a column of the kind that its name and its values tell."""
    if any(isinstance(value, str) for value in values):
        return Column(heading, [_format_single(value) for value in values], "text")
    if "pvalue" in name or name == "holm":
        return Column(heading, values, "pvalue")
    if name == "bins_by_chance":
        return Column(heading, ["–" if value is None else f"{value:.1f}" for value in values])
    if all(value is None or isinstance(value, float) for value in values):
        return Column(heading, values)
    return Column(heading, [_format_single(value) for value in values])


def _format_single(value: Any) -> str:
    return format_decimals(value) if value is None or isinstance(value, float) else format_value(value)


class Bin(NamedTuple):
    """A bin of a reliability diagram."""

    n: int
    mean_prediction: float
    outcome_rate: float
    outside: bool  # whether the outcome rate is outside the consistency bar

    @property
    def deviation(self) -> float:
        """Mean prediction minus outcome rate."""
        return self.mean_prediction - self.outcome_rate


def read_bins(table: Mapping[str, Sequence[Any]]) -> list[Bin]:
    """Return the bins of the table of a reliability diagram."""
    columns = (table[name] for name in ("n", "mean_prediction", "outcome_rate", "outside"))
    return [Bin(*row) for row in zip(*columns, strict=True)]


def largest_deviation(bins: Sequence[Bin], center: float = 0.0, sign: int = 0) -> Bin | None:
    """Return the bin outside its consistency bar with the largest share of the calibration error; None without one.

    With `sign` 1 only bins are considered whose mean prediction is too far above or too far below the `center`, as in
    overconfident predictions; with −1 only those in which it is not far enough.

    >>> bins = [Bin(900, 0.01, 0.02, True), Bin(50, 0.9, 0.6, True), Bin(99, 0.5, 0.1, False)]
    >>> largest_deviation(bins), largest_deviation(bins, 0.1, -1)
    (Bin(n=50, mean_prediction=0.9, outcome_rate=0.6, outside=True), None)
    """
    candidates = [bin_ for bin_ in bins if bin_.outside and bin_.n >= MIN_BIN_ROWS]
    if sign:
        candidates = [bin_ for bin_ in candidates if sign * (bin_.mean_prediction - center) * bin_.deviation > 0]
    return max(candidates, key=lambda bin_: bin_.n * abs(bin_.deviation), default=None)


def describe_bin(bin_: Bin | None, data: AuditData) -> str:
    """Return the mean prediction and the outcome rate of a bin in words; empty without a bin, and for votes.

    >>> data = AuditData(source="", n=9999, k=2, kind="classes", event_rate=0.48)
    >>> describe_bin(Bin(986, 0.011, 0.122, True), data)
    '986 rows predicted at 1.1 % on average have an event rate of 12.2 %'
    """
    if bin_ is None or data.votes:
        return ""
    predicted, observed = format_distinct_percents(bin_.mean_prediction, bin_.outcome_rate)
    if data.is_binary:
        return f"{bin_.n:,} rows predicted at {predicted} on average have an event rate of {observed}"
    return f"{bin_.n:,} rows with mean confidence {predicted} are right {observed} of the time"
