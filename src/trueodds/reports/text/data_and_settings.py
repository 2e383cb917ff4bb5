"""Tables of the data, the settings, the numbers behind the diagrams and the notes of an audit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trueodds.reports.text.formatting import (
    NAMES,
    TableColumn,
    TextTable,
    align_digits,
    count_text,
    digits,
    format_share,
    is_binary,
    pvalue,
    settings_text,
    value_text,
    yes_no,
)
from trueodds.reports.text.recalibration import AuditDict, accuracy_label
from trueodds.reports.text.results import class_name

# Texts and axis limits of diagrams, which are not listed as numbers.
_LAYOUT_COLUMNS = re.compile(r"title|aside|finding|y_low|y_high|tallest|top|corner_\d+|share_(low|high|log)|votes")
_HEADS = {
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
    """The description of the audited data."""
    facts = audit["data"]
    names = facts.get("classes") or []
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(facts["kind"], "classes")
    rows = [
        ("source", facts["source"]),
        ("rows", f"{facts['n']:,}"),
        (unit, f"{facts['k']:,}: {listed}"),
        *_mean_entries(facts),
        ("weights", f"yes, total {value_text(facts.get('weight'))}" if facts.get("weighted") else "no"),
        ("votes", yes_no(facts.get("votes"))),
        ("clusters", "none" if facts.get("clusters") is None else f"{facts['clusters']:,}"),
        ("group columns", ", ".join(facts.get("group_columns") or ()) or "none"),
        ("predicted exactly 0", count_text(facts.get("zeros"))),
        ("of these, observed", count_text(facts.get("true_class_zeros"))),
        ("resolution", facts.get("resolution") or "–"),
    ]
    return TextTable("The data", (TableColumn("", NAMES), TableColumn("", NAMES)), tuple(rows))


def _mean_entries(facts: AuditDict) -> list[tuple[str, str]]:
    """Mean predictions and outcomes of all rows; for two classes first those of the second."""
    rows = []
    if is_binary(facts):
        name = facts["classes"][1]
        rows = [
            (f"mean P({name})", facts["mean_prediction"]),
            (f"{'vote share' if facts.get('votes') else 'event rate'} of {name}", facts["event_rate"]),
        ]
    rows += [(accuracy_label(facts), facts.get("accuracy")), ("mean confidence", facts.get("mean_confidence"))]
    weighted = ", weighted" if facts.get("weighted") else ""
    return [(f"{name}{weighted}", format_share(share)) for name, share in rows]


def settings_table(audit: AuditDict) -> TextTable:
    """The settings of every estimate, test and diagram, as they were used."""
    rows = [("audit", settings_text(audit.get("settings") or {}))]
    for measure in (*audit["measures"], *(audit.get("people") or {"measures": ()})["measures"]):
        how = dict(measure.get("settings") or {})
        if measure["interval"]:
            how["interval"] = measure["interval"]["method"]
            how["level"] = measure["interval"]["level"]
        rows.append((f"{measure['estimator']}, {measure['lens']}", settings_text(how)))
    rows += [(f"{test['test']}, {test['lens']}", settings_text(test.get("settings") or {})) for test in audit["tests"]]
    rows += [
        (f"{diagram['diagram']}, {diagram['lens']}", settings_text(diagram.get("settings") or {}))
        for diagram in audit["diagrams"]
    ]
    filled = tuple(row for row in rows if row[1] != "–")
    return TextTable("Settings", (TableColumn("", NAMES), TableColumn("", NAMES)), filled)


def diagram_table(diagram: Mapping[str, Any], max_rows: int = 2000, unit: str = "class") -> TextTable:
    """The numbers of a diagram, at most `max_rows` rows of them; `unit` is what a view is called."""
    return _of_columns("Numbers of the diagram", diagram["table"], max_rows, _corners(diagram), unit)


def panel_table(diagram: Mapping[str, Any], max_rows: int = 2000, unit: str = "class") -> TextTable:
    """The numbers of each panel of a diagram; `unit` is what a view is called."""
    columns = {
        name: values for name, values in (diagram.get("panels") or {}).items() if not _LAYOUT_COLUMNS.fullmatch(name)
    }
    return _of_columns("Numbers of the panels", columns, max_rows, _corners(diagram), unit)


def _corners(diagram: Mapping[str, Any]) -> dict[str, str]:
    """The class names of a joint diagram, by the number at the end of its column names."""
    columns = (diagram.get("panels") or {}).items()
    return {name.removeprefix("corner_"): values[0] for name, values in columns if name.startswith("corner_")}


def _column_heading(name: str, corners: Mapping[str, str]) -> str:
    """The heading of a column.

    >>> _column_heading("outcome_frequency_1", {"0": "cat", "1": "dog"})
    'observed dog'
    >>> _column_heading("bar_low", {}), _column_heading("pvalue", {})
    ('bar low', 'p')
    """
    stem, _, end = name.rpartition("_")
    if end in corners and stem in _OF_CORNERS:
        return _OF_CORNERS[stem].format(corners[end])
    return _HEADS.get(name, name.replace("_", " "))


_OF_CORNERS = {
    "mean_prediction": "predicted {}",
    "outcome_frequency": "observed {}",
    "low": "cell: {} from",
    "high": "cell: {} to",
}


def _of_columns(
    title: str, columns: Mapping[str, Any], max_rows: int, corners: Mapping[str, str], unit: str
) -> TextTable:
    shown = {name: values for name, values in columns.items() if isinstance(values, list)}
    views = [class_name(view) for view in shown.pop("view", ())]
    keys = tuple(views) if len(set(views)) > 1 else ()  # for a single view the heading names it
    if shown.get("weight") == shown.get("n"):
        shown.pop("weight", None)
    shown = {name: shown[name] for name in sorted(shown, key=_column_order)}
    if keys:
        shown = {unit: list(keys), **shown}
    kinds = tuple(
        TableColumn(_column_heading(name, corners), not any(isinstance(value, str) for value in values))
        for name, values in shown.items()
    )
    rows = tuple(zip(*(_cells(name, values) for name, values in shown.items()), strict=True))
    return TextTable(title, kinds, rows, keys=keys).without_empty_columns().head(max_rows)


def _column_order(name: str) -> int:
    """The position of a column: predicted and observed first, bin edges and derived columns last."""
    last = ("distance", "statistic", "df", "distribution", "bin", "cell", "low", "high", "share", "weight")
    first = ("mean_prediction", "outcome_rate", "outcome_frequency", "deviation", "error", "bar_low", "bar_high", "n")
    stem = name if name in first or name in last else name.rstrip("0123456789").removesuffix("_")
    return first.index(stem) if stem in first else len(first) + (1 + last.index(stem) if stem in last else 0)


def _cells(name: str, column: list[Any]) -> list[str]:
    if "pvalue" in name or name == "holm":
        return [pvalue(value) for value in column]
    if name == "bins_by_chance":
        return [f"{value:.1f}" for value in column]
    if all(value is None or isinstance(value, float) for value in column):
        return align_digits(column)
    return [digits(value) if value is None or isinstance(value, float) else value_text(value) for value in column]


def note_texts(audit: AuditDict, *, diagrams: bool = True) -> list[tuple[str, str]]:
    """All notes of the audit and its parts, grouped by code; those of diagrams only beside diagrams."""
    texts_by_code: dict[str, dict[str, None]] = {}
    for note in every_note(audit if diagrams else {**audit, "diagrams": ()}):
        texts_by_code.setdefault(note["code"], {})[note["text"]] = None
    return [(code, " ".join(texts)) for code, texts in texts_by_code.items()]


def every_note(audit: AuditDict) -> Iterator[Mapping[str, Any]]:
    """The notes of the audit and then of its parts as JSON objects; a note of several parts occurs several times."""
    yield from audit.get("notes") or ()
    yield from (audit.get("recalibration") or {}).get("notes") or ()
    for part in (audit.get("decisions") or {}).values():
        yield from part.get("notes") or ()
    for family in ("measures", "tests", "diagrams"):
        for part in audit[family]:
            yield from part.get("notes") or ()
