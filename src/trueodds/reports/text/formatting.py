"""Format the numbers of a report as text (shares, errors, p-values, intervals, counts), and name lenses and events."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.formatting import format_number, format_percent


def format_boolean(value: Any) -> str:
    """Format a boolean as yes or no."""
    return "yes" if value else "no"


def format_integer(n: int | None) -> str:
    """Format a count with thousands separators; a dash if it is unknown."""
    return "–" if n is None else f"{n:,}"


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


def insert_no_break_spaces(text: str) -> str:
    """Return the text with no-break spaces inside percentages and p-values: 100 %, p ≤ 0.001.

    >>> insert_no_break_spaces("predicts 70 % (p ≤ 0.001)").replace("\u00a0", "~")
    'predicts 70~% (p~≤~0.001)'
    """
    text = re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
    return re.sub(r"\b(p|T|ECE) ([≤=<]) (?=\d)", "\\1\u00a0\\2\u00a0", text)


def format_share(x: float | None) -> str:
    """Format a probability as a percentage.

    >>> format_share(0.9611), format_share(0.0004), format_share(None)
    ('96.1 %', '0.04 %', '–')
    """
    if x is None:
        return "–"
    return f"{100 * x:.1f} %" if x == 0 or abs(x) >= 0.001 else f"{100 * x:.2g} %"


def format_distinct_percents(predicted: float | None, observed: float | None) -> tuple[str, str]:
    """Format two probabilities as percentages with so many decimals that they differ, but at most two.

    >>> format_distinct_percents(0.44, 0.443), format_distinct_percents(0.027, 0.049)
    (('44.0 %', '44.3 %'), ('2.7 %', '4.9 %'))
    >>> format_distinct_percents(None, 0.5)
    ('–', '50.0 %')
    """
    if predicted is None or observed is None:
        return format_share(predicted), format_share(observed)
    smallest = min((x for x in (predicted, observed) if x > 0), default=1.0)
    min_decimals = 2 if smallest < 0.01 else 1 if smallest < 0.1 else 0  # two significant digits
    pairs = [(f"{100 * predicted:.{k}f} %", f"{100 * observed:.{k}f} %") for k in range(min_decimals, 3)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def format_error(x: float | None) -> str:
    """Format a calibration error in a sentence: three decimals, or one significant digit if it is smaller than that.

    >>> format_error(0.24104), format_error(0.0004), format_error(0.0), format_error(None)
    ('0.241', '0.0004', '0', '–')
    """
    if x is None:
        return "–"
    if abs(x) < 1e-9:
        return "0"
    if abs(x) >= 0.001:
        return f"{x:.3f}"
    return f"{x:.5f}".rstrip("0") if abs(x) >= 0.00001 else f"{x:.1g}"


def format_error_range(low: float | None, high: float | None) -> str:
    """Format two limits of a calibration error in a sentence, with the same number of decimals; an exact zero stays 0.

    >>> format_error_range(0.00009, 0.503), format_error_range(0.0, 0.0231), format_error_range(0.00012, 0.0004)
    ('0.000 to 0.503', '0 to 0.023', '0.00012 to 0.0004')
    """
    is_large = high is None or high >= 0.001
    texts = (f"{x:.3f}" if x and is_large else format_error(x) for x in (low, high))
    return " to ".join(texts)


def format_level(level: float) -> str:
    """Format a confidence level in a sentence.

    >>> format_level(0.95), format_level(0.999)
    ('95 %', '99.9 %')
    """
    return f"{format_percent(level)[:-1]} %"


def interval_heading(interval: Mapping[str, Any] | None) -> str:
    """Return what an interval is called: "interval", after its confidence level if it is known.

    >>> interval_heading({"level": 0.95}), interval_heading(None)
    ('95 % interval', 'interval')
    """
    return "interval" if interval is None else f"{format_level(interval['level'])} interval"


def format_pvalue(p: float | None, min_pvalue: float | None = None) -> str:
    """Format a p-value in a table; it is an upper bound if it is the smallest one that the null draws allow.

    >>> format_pvalue(0.001, 0.001), format_pvalue(0.42, 0.001), format_pvalue(1.74e-15), format_pvalue(None)
    ('≤ 0.001', '0.42', '< 0.0001', '–')
    """
    if p is None:
        return "–"
    if min_pvalue is not None and p <= min_pvalue * (1 + 1e-9):
        return f"≤ {format_number(p)}"
    return "< 0.0001" if p < 0.0001 else format_number(p)


def format_pvalue_clause(p: float | None, min_pvalue: float | None = None) -> str:
    """Format a p-value in a sentence.

    >>> format_pvalue_clause(0.001, 0.001), format_pvalue_clause(0.42, 0.001)
    ('p ≤ 0.001', 'p = 0.42')
    >>> format_pvalue_clause(1e-9), format_pvalue_clause(None)
    ('p < 0.0001', 'p –')
    """
    text = format_pvalue(p, min_pvalue)
    return f"p {text}" if text[0] in "≤<–" else f"p = {text}"


def format_digits(x: float | None) -> str:
    """Format a number with three significant digits; a dash if it is infinite or undefined, and so None.

    >>> format_digits(6.5712), format_digits(None)
    ('6.57', '–')
    """
    return format_number(x) if x is None or not math.isfinite(x) else f"{x:.3g}"


def format_count(n: int | None, one: str, many: str | None = None) -> str:
    """Format a number with its noun.

    >>> format_count(1, "row"), format_count(12345, "row"), format_count(2, "class", "classes")
    ('1 row', '12,345 rows', '2 classes')
    """
    return "–" if n is None else f"{n:,} {one if n == 1 else many or one + 's'}"


def format_decimals(x: float | None, places: int = 4) -> str:
    """Format a number with a fixed number of decimals and no negative zero.

    >>> format_decimals(0.062), format_decimals(-1.1e-16), format_decimals(7480.0), format_decimals(None)
    ('0.0620', '0.0000', '7,480', '–')
    """
    if x is None or not math.isfinite(x):
        return format_number(x)
    if abs(x) >= 10:
        return f"{x:,.0f}" if abs(x) >= 1000 or x == round(x) else f"{x:,.1f}"
    text = f"{x:.{places}f}"
    return text if float(text) else text.removeprefix("-")


def format_column(column: Sequence[float | None]) -> list[str]:
    """Format a column of numbers with the same number of decimals: four, or more if all of them are tiny.

    >>> format_column([0.25, 0.000793, 0.0]), format_column([0.0004, 0.00012])
    (['0.2500', '0.0008', '0.0000'], ['0.00040', '0.00012'])
    """
    places = _decimal_places(column)
    return [format_decimals(x, places) for x in column]


def _decimal_places(column: Sequence[float | None]) -> int:
    """Return four, or as many decimals as show two significant digits of the largest number, up to nine."""
    largest = max((abs(x) for x in column if x is not None and math.isfinite(x)), default=0.0)
    return 4 if largest < 1e-12 else min(max(4, 1 - math.floor(math.log10(largest))), 9)


def format_intervals(intervals: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """Format a column of intervals with the same number of decimals; a dash for a missing one."""
    places = _decimal_places([end for interval in intervals if interval for end in (interval["low"], interval["high"])])
    return [
        f"[{format_decimals(interval['low'], places)}, {format_decimals(interval['high'], places)}]"
        if interval
        else "–"
        for interval in intervals
    ]


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
