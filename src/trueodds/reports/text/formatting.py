"""Describe settings, lenses, events and the size of the data in the texts of a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from trueodds.core.formatting import (
    format_boolean,
    format_count,
    format_decimals,
    format_number,
    format_percent_in_text,
)
from trueodds.reports.audit_sections import AuditData, AuditMeasure


def format_value(value: Any) -> str:
    """Format a setting or the cell of a table as text."""
    if isinstance(value, bool):
        return format_boolean(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return format_decimals(value) if abs(value) >= 1000 else format_number(value)
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def format_settings(settings: Mapping[str, Any]) -> str:
    """Format settings as one line of text, or a dash if there are none."""
    return ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in settings.items()) or "–"


# What each lens examines, except for "positive", which names a class; "family" is the family-wise test.
_LENS_DESCRIPTIONS = {
    "confidence": "the predicted class",
    "classwise": "each class against the rest",
    "canonical": "the whole probability vector",
    "family": "all tests jointly",
}


def describe_lens(lens: str, data: AuditData) -> str:
    """Return what a lens examines, in words; for two classes it names the second one.

    >>> data = AuditData(source="", n=9, k=2, kind="classes", classes=("no", "rain"))
    >>> describe_lens("positive", data), describe_lens("canonical", data)
    ('P(rain)', 'the whole probability vector')
    """
    if lens == "classwise" and data.kind == "multilabel":
        return "each label"
    if lens == "positive" and len(data.classes) == 2:
        return f"P({data.classes[1]})"
    return _LENS_DESCRIPTIONS.get(lens, "")


def interval_heading(level: float | None) -> str:
    """Return what an interval is called: "interval", after its confidence level if it is known.

    >>> interval_heading(0.95), interval_heading(None)
    ('95 % interval', 'interval')
    """
    return "interval" if level is None else f"{format_percent_in_text(level)} interval"


def shared_interval_heading(measures: Iterable[AuditMeasure]) -> str:
    """Return the heading of a column of intervals, with their level if they share one."""
    levels = {measure.interval.level for measure in measures if measure.interval is not None}
    return interval_heading(levels.pop() if len(levels) == 1 else None)


def describe_size(data: AuditData) -> str:
    """Return the number of rows and classes, and whether probabilities were computed from logits or log odds.

    >>> describe_size(AuditData(source="", n=1000, k=3, kind="classes", logits="logits"))
    '1,000 rows · 3 classes · probabilities computed from logits'
    """
    scores = {"log odds": " · scores read as log odds", "logits": " · probabilities computed from logits"}
    return f"{format_count(data.n, 'row')} · {count_classes(data)}{scores.get(data.logits or '', '')}"


def count_classes(data: AuditData) -> str:
    """Return the number of classes, of labels, or of the outcomes of a confidence."""
    nouns = {"multilabel": ("label", "labels"), "confidence": ("outcome", "outcomes")}
    return format_count(data.k, *nouns.get(data.kind, ("class", "classes")))


def format_sample_size(data: AuditData) -> str:
    """Format the number of independent units: clusters, or rows.

    >>> format_sample_size(AuditData(source="", n=900, k=2, kind="classes", clusters=4))
    '4 clusters'
    """
    return format_count(data.n_units, "row" if data.clusters is None else "cluster")


def format_row_count(data: AuditData) -> str:
    """Format the number of rows behind a mean or a share, and whether it is weighted.

    >>> format_row_count(AuditData(source="", n=1500, k=2, kind="classes", weighted=True))
    'weighted, 1,500 rows'
    """
    return f"{'weighted, ' if data.weighted else ''}{format_count(data.n, 'row')}"


def covers_unit_interval(low: float | None, high: float | None) -> bool:
    """Return whether an interval covers the whole range [0, 1] of an error, so that it carries no information.

    An infinite limit is None.
    """
    return (low is None or low <= 0) and (high is None or high >= 1)


def describe_event(data: AuditData) -> str:
    """Return the second of two classes in a sentence; a number is preceded by the word class.

    >>> describe_event(AuditData(source="", n=9, k=2, kind="classes", classes=("0", "1")))
    'class 1'
    """
    name = data.classes[1]
    return f"class {name}" if name.replace(".", "", 1).isdigit() else name
