"""Tables of the data, the settings, the numbers behind the diagrams and the notes of an audit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trueodds.reports.text.formatting import (
    format_boolean,
    format_column,
    format_decimals,
    format_integer,
    format_pvalue,
    format_settings,
    format_share,
    format_value,
    is_binary,
)
from trueodds.reports.text.recalibration import accuracy_label
from trueodds.reports.text.results import class_name
from trueodds.reports.text.tables import LABEL_AND_TEXT, AuditDict, TableColumn, TextTable

MAX_DIAGRAM_ROWS = 2000  # rows of the table of a diagram on the page; the JSON has all of them
MAX_LISTED_CLASSES = 20  # names of classes in the description of the data
# Names of the texts and axis limits in the panels of a diagram, which are not listed as numbers.
_LAYOUT_COLUMNS = re.compile(r"title|aside|finding|y_low|y_high|tallest|top|corner_\d+|share_(low|high|log)|votes")
_COLUMN_HEADINGS = {  # where a heading is not the name of the column with spaces
    "pvalue": "p",
    "smallest_pvalue": "smallest p",
    "holm": "Holm p",
    "beyond": "significant",
    "cells_beyond": "significant cells",
    "bins_by_chance": "expected outside",
    "outcome_rate": "observed",
    "mean_prediction": "predicted",
}


def data_table(audit: AuditDict) -> TextTable:
    """Return the table of the description of the audited data."""
    data = audit["data"]
    names = data.get("classes") or []
    n_unlisted = len(names) - MAX_LISTED_CLASSES
    class_list = ", ".join(names[:MAX_LISTED_CLASSES]) + (f" and {n_unlisted:,} more" if n_unlisted > 0 else "")
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(data["kind"], "classes")
    rows = [
        ("source", data["source"]),
        ("rows", f"{data['n']:,}"),
        (unit, f"{data['k']:,}: {class_list}"),
        *_mean_entries(data),
        ("weights", f"yes, total {format_value(data.get('weight'))}" if data.get("weighted") else "no"),
        ("votes", format_boolean(data.get("votes"))),
        ("clusters", "none" if data.get("clusters") is None else f"{data['clusters']:,}"),
        ("group columns", ", ".join(data.get("group_columns") or ()) or "none"),
        ("predicted exactly 0", format_integer(data.get("zeros"))),
        ("of these, observed", format_integer(data.get("true_class_zeros"))),
        ("resolution", data.get("resolution") or "–"),
    ]
    return TextTable("The data", LABEL_AND_TEXT, tuple(rows))


def _mean_entries(data: AuditDict) -> list[tuple[str, str]]:
    """Return mean predictions and outcomes of all rows; for two classes first those of the second."""
    rows = []
    if is_binary(data):
        name = data["classes"][1]
        rows = [
            (f"mean P({name})", data["mean_prediction"]),
            (f"{'vote share' if data.get('votes') else 'event rate'} of {name}", data["event_rate"]),
        ]
    rows += [(accuracy_label(data), data.get("accuracy")), ("mean confidence", data.get("mean_confidence"))]
    weighted = ", weighted" if data.get("weighted") else ""
    return [(f"{name}{weighted}", format_share(share)) for name, share in rows]


def settings_table(audit: AuditDict) -> TextTable:
    """Return the table of the settings of every estimate, test and diagram, as they were used."""
    rows = [("audit", format_settings(audit.get("settings") or {}))]
    for measure in (*audit["measures"], *(audit.get("people") or {"measures": ()})["measures"]):
        settings = dict(measure.get("settings") or {})
        if measure["interval"]:
            settings["interval"] = measure["interval"]["method"]
            settings["level"] = measure["interval"]["level"]
        rows.append((f"{measure['estimator']}, {measure['lens']}", format_settings(settings)))
    rows += [
        (f"{test['test']}, {test['lens']}", format_settings(test.get("settings") or {})) for test in audit["tests"]
    ]
    rows += [
        (f"{diagram['diagram']}, {diagram['lens']}", format_settings(diagram.get("settings") or {}))
        for diagram in audit["diagrams"]
    ]
    rows_with_settings = tuple(row for row in rows if row[1] != "–")
    return TextTable("Settings", LABEL_AND_TEXT, rows_with_settings)


def diagram_table(diagram: Mapping[str, Any], max_rows: int = MAX_DIAGRAM_ROWS, unit: str = "class") -> TextTable:
    """Return the table of the numbers of a diagram, at most `max_rows` rows; `unit` is what a view is called."""
    return _numbers_table("Numbers of the diagram", diagram["table"], max_rows, _classes_of_corners(diagram), unit)


def panel_table(diagram: Mapping[str, Any], max_rows: int = MAX_DIAGRAM_ROWS, unit: str = "class") -> TextTable:
    """Return the table of the numbers of each panel of a diagram; `unit` is what a view is called."""
    columns = {
        name: values for name, values in (diagram.get("panels") or {}).items() if not _LAYOUT_COLUMNS.fullmatch(name)
    }
    return _numbers_table("Numbers of the panels", columns, max_rows, _classes_of_corners(diagram), unit)


def _classes_of_corners(diagram: Mapping[str, Any]) -> dict[str, str]:
    """Return the class names of a joint diagram, by the number at the end of its column names."""
    columns = (diagram.get("panels") or {}).items()
    return {name.removeprefix("corner_"): values[0] for name, values in columns if name.startswith("corner_")}


def _column_heading(name: str, class_names: Mapping[str, str]) -> str:
    """Return the heading of a column.

    >>> _column_heading("outcome_frequency_1", {"0": "cat", "1": "dog"})
    'observed dog'
    >>> _column_heading("bar_low", {}), _column_heading("pvalue", {})
    ('bar low', 'p')
    """
    quantity, _, class_number = name.rpartition("_")
    if class_number in class_names and quantity in _CORNER_HEADINGS:
        return _CORNER_HEADINGS[quantity].format(class_names[class_number])
    return _COLUMN_HEADINGS.get(name, name.replace("_", " "))


# Headings of the columns of a joint diagram that end with the number of a class, whose name is inserted.
_CORNER_HEADINGS = {
    "mean_prediction": "predicted {}",
    "outcome_frequency": "observed {}",
    "low": "cell: {} from",
    "high": "cell: {} to",
}


def _numbers_table(
    title: str, columns: Mapping[str, Any], max_rows: int, class_names: Mapping[str, str], unit: str
) -> TextTable:
    """Return the columns of a diagram as a table, predicted and observed first, without weights that equal the counts.

    `class_names` are the classes by number, and `unit` is what a view is called: class or label.
    """
    columns_shown = {name: values for name, values in columns.items() if isinstance(values, list)}
    views = [class_name(view) for view in columns_shown.pop("view", ())]
    row_classes = tuple(views) if len(set(views)) > 1 else ()  # for a single view the heading names it
    if columns_shown.get("weight") == columns_shown.get("n"):
        columns_shown.pop("weight", None)
    columns_shown = {name: columns_shown[name] for name in sorted(columns_shown, key=_column_position)}
    if row_classes:
        columns_shown = {unit: list(row_classes), **columns_shown}
    headings = tuple(
        TableColumn(_column_heading(name, class_names), not any(isinstance(value, str) for value in values))
        for name, values in columns_shown.items()
    )
    rows = tuple(zip(*(_format_cells(name, values) for name, values in columns_shown.items()), strict=True))
    return TextTable(title, headings, rows, row_classes=row_classes).without_empty_columns().head(max_rows)


def _column_position(name: str) -> int:
    """Return the position of a column: predicted and observed first, bin edges and derived columns last."""
    last = ("distance", "statistic", "df", "distribution", "bin", "cell", "low", "high", "share", "weight")
    first = ("mean_prediction", "outcome_rate", "outcome_frequency", "deviation", "error", "bar_low", "bar_high", "n")
    stem = name if name in first or name in last else name.rstrip("0123456789").removesuffix("_")
    return first.index(stem) if stem in first else len(first) + (1 + last.index(stem) if stem in last else 0)


def _format_cells(name: str, column: list[Any]) -> list[str]:
    """Format the cells of one column as text, by what the column holds."""
    if "pvalue" in name or name == "holm":
        return [format_pvalue(value) for value in column]
    if name == "bins_by_chance":
        return [f"{value:.1f}" for value in column]
    if all(value is None or isinstance(value, float) for value in column):
        return format_column(column)
    return [
        format_decimals(value) if value is None or isinstance(value, float) else format_value(value) for value in column
    ]


def group_notes_by_code(audit: AuditDict, *, diagrams: bool = True) -> list[tuple[str, str]]:
    """Return all notes of the audit and its parts, grouped by code; those of diagrams only beside diagrams."""
    texts_by_code: dict[str, dict[str, None]] = {}
    for note in iterate_notes(audit if diagrams else {**audit, "diagrams": ()}):
        texts_by_code.setdefault(note["code"], {})[note["text"]] = None
    return [(code, " ".join(texts)) for code, texts in texts_by_code.items()]


def iterate_notes(audit: AuditDict) -> Iterator[Mapping[str, Any]]:
    """Iterate over the notes of the audit and then of its parts, as JSON objects; a note may occur several times."""
    yield from audit.get("notes") or ()
    yield from (audit.get("recalibration") or {}).get("notes") or ()
    for part in (audit.get("decisions") or {}).values():
        yield from part.get("notes") or ()
    for family in ("measures", "tests", "diagrams"):
        for part in audit[family]:
            yield from part.get("notes") or ()
