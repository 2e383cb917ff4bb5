"""Describe settings, lenses, events and the size of the data in the texts of a report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trueodds.core.formatting import (
    format_boolean,
    format_count,
    format_decimals,
    format_number,
    format_percent_in_text,
)


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


def describe_lens(lens: str, data: Mapping[str, Any]) -> str:
    """Return what a lens examines, in words; for two classes it names the second one.

    >>> describe_lens("positive", {"classes": ["no", "rain"]}), describe_lens("canonical", {})
    ('P(rain)', 'the whole probability vector')
    >>> describe_lens("classwise", {"kind": "multilabel"})
    'each label'
    """
    if lens == "classwise" and data.get("kind") == "multilabel":
        return "each label"
    if lens == "positive" and len(data.get("classes") or ()) == 2:
        return f"P({data['classes'][1]})"
    return _LENS_DESCRIPTIONS.get(lens, "")


def interval_heading(interval: Mapping[str, Any] | None) -> str:
    """Return what an interval is called: "interval", after its confidence level if it is known.

    >>> interval_heading({"level": 0.95}), interval_heading(None)
    ('95 % interval', 'interval')
    """
    return "interval" if interval is None else f"{format_percent_in_text(interval['level'])} interval"


def describe_size(data: Mapping[str, Any]) -> str:
    """Return the number of rows and classes, and whether probabilities were computed from logits or log odds.

    >>> describe_size({"n": 1000, "k": 3, "kind": "classes", "logits": "logits"})
    '1,000 rows · 3 classes · probabilities computed from logits'
    """
    nouns = {"multilabel": ("label", "labels"), "confidence": ("outcome", "outcomes")}
    scores = {"log odds": " · scores read as log odds", "logits": " · probabilities computed from logits"}
    return (
        f"{format_count(data['n'], 'row')} · {format_count(data['k'], *nouns.get(data['kind'], ('class', 'classes')))}"
        f"{scores.get(data.get('logits') or '', '')}"
    )


def format_sample_size(data: Mapping[str, Any]) -> str:
    """Format the number of independent units: clusters, or rows.

    >>> format_sample_size({"n": 900, "clusters": 4}), format_sample_size({"n": 12, "clusters": None})
    ('4 clusters', '12 rows')
    """
    clusters = data.get("clusters")
    return format_count(data["n"], "row") if clusters is None else format_count(clusters, "cluster")


def format_row_count(data: Mapping[str, Any]) -> str:
    """Format the number of rows behind a mean or a share, and whether it is weighted.

    >>> format_row_count({"n": 1500, "weighted": True}), format_row_count({"n": 1, "weighted": False})
    ('weighted, 1,500 rows', '1 row')
    """
    return f"{'weighted, ' if data.get('weighted') else ''}{format_count(data['n'], 'row')}"


def covers_unit_interval(low: float | None, high: float | None) -> bool:
    """Return whether an interval covers the whole range [0, 1] of an error, so that it carries no information.

    An infinite limit is None.
    """
    return (low is None or low <= 0) and (high is None or high >= 1)


def describe_event(data: Mapping[str, Any]) -> str:
    """Return the second of two classes in a sentence; a number is preceded by the word class.

    >>> describe_event({"classes": ["0", "1"]}), describe_event({"classes": ["dry", "rain"]})
    ('class 1', 'rain')
    """
    name = data["classes"][1]
    return f"class {name}" if name.replace(".", "", 1).isdigit() else name


def is_binary(data: Mapping[str, Any]) -> bool:
    """Return whether the data have two classes, so that one probability is predicted."""
    return data.get("event_rate") is not None
