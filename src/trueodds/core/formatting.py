"""Format numbers, percentages, intervals and settings as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

VERSION_SEPARATOR = ", "  # between the name of a model and that of its version
PVALUE_CUTOFF = 0.0001  # smaller p-values are shown as an upper bound, except where `cutoff` is given
MAX_LISTED_VALUES = 4  # values of a setting that are listed in one line


def format_number(x: float | None) -> str:
    """Format a number with four decimals, or with three significant digits if it is very small or large.

    >>> format_number(0.039812), format_number(0.000012), format_number(0.001), format_number(None)
    ('0.0398', '1.2e-05', '0.001', '–')
    """
    if x is None:
        return "–"
    if not math.isfinite(x):
        return "inf" if x > 0 else "-inf" if x < 0 else "nan"
    if x == 0 or 0.001 <= abs(x) < 10:
        return f"{x:.4f}" if round(x, 3) != round(x, 6) else f"{x:.3g}"
    return f"{x:.3g}"


def format_range(low: float, high: float) -> str:
    """Format the ends of an interval for a sentence, with the same number of decimals.

    They are four, or as many as show that an end is not 0, up to six.

    >>> format_range(-0.0005, 0.0139), format_range(-0.0000227, 0.023), format_range(-1e-9, 0.5), format_range(0, 12.3)
    ('-0.0005 to 0.0139', '-0.00002 to 0.02300', '0.0000 to 0.5000', '0 to 12.3')
    """
    magnitudes = [abs(x) for x in (low, high) if 1e-6 <= abs(x) < 1]
    places = max([4, *(-math.floor(math.log10(x)) for x in magnitudes)])
    texts = (f"{round(x, places) + 0.0:.{places}f}" if 0 < abs(x) < 10 else format_number(x) for x in (low, high))
    return " to ".join(texts)


def format_percent(level: float) -> str:
    """Format a level as a percentage: 0.95 as 95%, 0.999 as 99.9%."""
    return f"{100 * level:.6g}%"


def format_threshold(threshold: float) -> str:
    """Format a threshold with at most six decimals, rounded down, so that values equal to it still reach it.

    >>> format_threshold(0.85), format_threshold(0.99999999), format_threshold(1.0)
    ('0.85', '0.999999', '1')
    """
    from decimal import ROUND_FLOOR, Decimal

    rounded = Decimal(repr(float(threshold))).quantize(Decimal("1e-6"), ROUND_FLOOR)
    return f"{rounded:f}".rstrip("0").rstrip(".")


def format_coverage(answered: int, n_queries: int) -> str:
    """Format the share of the questions that were answered as a percentage with at most two decimals.

    The share is rounded exactly, because a quotient such as 731/800 = 0.91375 is not a float.

    >>> format_coverage(731, 800), format_coverage(3, 4)
    ('91.38%', '75%')
    """
    return format_percent((20_000 * answered + n_queries) // (2 * n_queries) / 10_000)


def format_percent_in_text(share: float) -> str:
    """Format a share as a percentage with the space that sentences and tables have: 0.95 as 95 %."""
    return f"{100 * share:.6g} %"


def format_lens(lens: str, settings: Mapping[str, Any]) -> str:
    """Describe the lens, with the class that is the event, or with what was left out, if the settings have it.

    >>> format_lens("positive", {"event": "yes"}), format_lens("confidence", {"confidence_only": True})
    ('lens positive (event: class yes)', 'confidence only')
    """
    if settings.get("confidence_only"):
        return "confidence only"
    event = settings.get("event")
    return f"lens {lens}" if event is None else f"lens {lens} (event: class {event})"


def format_lens_and_settings(lens: str, settings: Mapping[str, Any]) -> str:
    """Describe the lens and the settings that affect the value in a few words; `to_dict` has all of them.

    >>> format_lens_and_settings("confidence", {"partition": "uniform 15", "distance": "tv", "order": 1.0})
    'lens confidence, 15 uniform bins, tv distance'
    """
    pieces = [format_lens(lens, settings)]
    if (partition := settings.get("partition")) is not None:
        pieces.append(format_bins(str(partition), settings.get("bins")))
    if (distance := settings.get("distance")) is not None:
        pieces.append(f"{distance} distance")
    if (aggregate := settings.get("aggregate")) is not None:
        pieces.append(f"aggregate {aggregate}")
    if isinstance(threshold := settings.get("threshold"), float):
        pieces.append(f"threshold {threshold:g}")
    return ", ".join(pieces)


def format_keywords(settings: Mapping[str, Any]) -> str:
    """Format settings as keyword arguments; of a long list only the length is given.

    >>> format_keywords({"candidates": ("identity",) * 15, "folds": 5, "penalty": "auto"})
    "15 candidates, folds=5, penalty='auto'"
    """
    return ", ".join(
        f"{len(value)} {name}"
        if isinstance(value, (list, tuple)) and len(value) > MAX_LISTED_VALUES
        else f"{name}={value!r}"
        for name, value in settings.items()
    )


def format_bins(partition: str, bins: object = None) -> str:
    """Describe a partition in words; `bins` is the number of bins if the partition chose it.

    >>> format_bins("uniform 15"), format_bins("equal-mass auto", 23), format_bins("mass 100")
    ('15 uniform bins', '23 equal-mass bins', 'bins of 100 rows')
    >>> format_bins("median-variance 16"), format_bins("median-variance min 10")
    ('median-variance tree of up to 16 leaves', 'median-variance tree with at least 10 rows per bin')
    >>> format_bins("predicted-class"), format_bins("edges 0 0.5 1")
    ('cells by predicted class', 'bins (edges 0 0.5 1)')
    """
    name, comma, closed = partition.partition(", ")
    if match := re.fullmatch(r"(uniform|equal-mass) (\d+|auto)(.*)", name):
        count = bins if match[2] == "auto" else match[2]
        text = f"{f'{count} ' if count is not None else ''}{match[1]} bins{match[3]}"
    elif match := re.fullmatch(r"mass (\d+)", name):
        text = f"bins of {match[1]} rows"
    elif match := re.fullmatch(r"median-variance( \d+)?(?: min (\d+))?", name):
        leaves = f" of up to{match[1]} leaves" if match[1] else ""
        text = f"median-variance tree{leaves}" + (f" with at least {match[2]} rows per bin" if match[2] else "")
    elif name == "predicted-class":
        text = "cells by predicted class"
    else:
        return f"bins ({partition})"
    return text + comma + closed


def format_boolean(value: Any) -> str:
    """Format a boolean as yes or no."""
    return "yes" if value else "no"


def format_integer(n: int | None) -> str:
    """Format a count with thousands separators; a dash if it is unknown."""
    return "–" if n is None else f"{n:,}"


def format_share(x: float | None) -> str:
    """Format a probability as a percentage.

    >>> format_share(0.9611), format_share(0.0004), format_share(None)
    ('96.1 %', '0.04 %', '–')
    """
    if x is None:
        return "–"
    return f"{100 * x:.1f} %" if x == 0 or abs(x) >= 0.001 else f"{100 * x:.2g} %"


def format_rate(rate: float, *, signed: bool = False) -> str:
    """Format a rate, or a signed difference of rates, as a percentage with two decimals.

    >>> format_rate(0.3438), format_rate(0.012, signed=True)
    ('34.38 %', '+1.20 %')
    """
    return f"{100 * rate:{'+' if signed else ''}.2f} %"


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


def format_pvalue(p: float | None, min_pvalue: float | None = None, *, cutoff: float = PVALUE_CUTOFF) -> str:
    """Format a p-value with ≤ if it is the smallest that the null draws can give, and with < below `cutoff`.

    >>> format_pvalue(0.001, 0.001), format_pvalue(0.42, 0.001), format_pvalue(1.74e-15), format_pvalue(None)
    ('≤ 0.001', '0.42', '< 0.0001', '–')
    """
    if p is None:
        return "–"
    if min_pvalue is not None and p <= min_pvalue * (1 + 1e-9):
        return f"≤ {format_number(p)}"
    return f"< {cutoff:g}" if p < cutoff else format_number(p)


def format_pvalue_relation(p: float | None, min_pvalue: float | None = None, *, cutoff: float = PVALUE_CUTOFF) -> str:
    """Format a p-value with a relation sign before it.

    >>> format_pvalue_relation(0.001, 0.001), format_pvalue_relation(0.42), format_pvalue_relation(1e-15, cutoff=0)
    ('≤ 0.001', '= 0.42', '= 1e-15')
    """
    text = format_pvalue(p, min_pvalue, cutoff=cutoff)
    return text if text[0] in "≤<–" else f"= {text}"


def format_pvalue_clause(p: float | None, min_pvalue: float | None = None) -> str:
    """Format a p-value in a sentence.

    >>> format_pvalue_clause(0.42, 0.001), format_pvalue_clause(1e-9), format_pvalue_clause(None)
    ('p = 0.42', 'p < 0.0001', 'p –')
    """
    return f"p {format_pvalue_relation(p, min_pvalue)}"


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


def format_first(names: Sequence[Any], n_shown: int) -> str:
    """List the first names, and an ellipsis if there are more.

    >>> format_first(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(map(str, names[:n_shown])) + (", …" if len(names) > n_shown else "")


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


class IntervalLimits(Protocol):
    """The ends of an interval; an infinite one may be None."""

    @property
    def low(self) -> float | None:
        """The lower end."""
        ...

    @property
    def high(self) -> float | None:
        """The upper end."""
        ...


def format_intervals(intervals: Sequence[IntervalLimits | None]) -> list[str]:
    """Format a column of intervals with the same number of decimals; a dash for a missing one."""
    places = _decimal_places([end for interval in intervals if interval for end in (interval.low, interval.high)])
    return [
        f"[{format_decimals(interval.low, places)}, {format_decimals(interval.high, places)}]" if interval else "–"
        for interval in intervals
    ]


def insert_no_break_spaces(text: str) -> str:
    """Return the text with no-break spaces inside percentages and p-values: 100 %, p ≤ 0.001.

    >>> insert_no_break_spaces("predicts 70 % (p ≤ 0.001)").replace("\u00a0", "~")
    'predicts 70~% (p~≤~0.001)'
    """
    text = re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
    return re.sub(r"\b(p|T|ECE) ([≤=<]) (?=\d)", "\\1\u00a0\\2\u00a0", text)


def with_minus_signs(text: str) -> str:
    """Return a formatted number or range with minus signs instead of hyphens.

    >>> with_minus_signs("-0.2 to 0.1")
    '−0.2 to 0.1'
    """
    return text.replace("-", "−")
