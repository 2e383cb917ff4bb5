"""Format numbers, percentages, intervals and settings as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

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
    >>> format_bins("median-variance min 10"), format_bins("edges 0 0.5 1")
    ('median-variance tree with at least 10 rows per bin', 'bins (edges 0 0.5 1)')
    """
    name, comma, closed = partition.partition(", ")
    if match := re.fullmatch(r"(uniform|equal-mass) (\d+|auto)(.*)", name):
        count = bins if match[2] == "auto" else match[2]
        text = f"{f'{count} ' if count is not None else ''}{match[1]} bins{match[3]}"
    elif match := re.fullmatch(r"mass (\d+)", name):
        text = f"bins of {match[1]} rows"
    elif match := re.fullmatch(r"median-variance min (\d+)", name):
        text = f"median-variance tree with at least {match[1]} rows per bin"
    else:
        return f"bins ({partition})"
    return text + comma + closed


def format_pvalue(p: float, min_pvalue: float) -> str:
    """Format a p-value, with ≤ if it is the smallest that the null draws can give.

    >>> format_pvalue(0.001, 0.001), format_pvalue(0.42, 0.001)
    ('≤ 0.001', '0.42')
    """
    return f"≤ {format_number(p)}" if p <= min_pvalue * (1 + 1e-9) else format_number(p)


def format_pvalue_relation(p: float, min_pvalue: float | None) -> str:
    """Format a p-value with a relation sign before it; `min_pvalue` is the smallest that the null draws can give.

    >>> format_pvalue_relation(0.001, 0.001), format_pvalue_relation(0.42, None)
    ('≤ 0.001', '= 0.42')
    """
    text = format_pvalue(p, min_pvalue if min_pvalue is not None else -math.inf)
    return text if text.startswith("≤") else f"= {text}"


def format_column(column: Sequence[float | None]) -> list[str]:
    """Format numbers with the same number of decimals: four, or more if all of them are tiny.

    >>> format_column([0.25, 0.0, None]), format_column([0.0004, 0.00012])
    (['0.2500', '0.0000', '–'], ['0.00040', '0.00012'])
    """
    largest = max((abs(x) for x in column if x is not None and math.isfinite(x)), default=0.0)
    places = 4 if largest < 1e-12 else min(max(4, 1 - math.floor(math.log10(largest))), 9)
    return [
        format_number(x) if x is None or not math.isfinite(x) or abs(x) >= 10 else f"{x:.{places}f}" for x in column
    ]


def format_intervals(limits: Sequence[tuple[float, float] | None]) -> list[str]:
    """Format the lower and upper limits of intervals with the same number of decimals.

    >>> format_intervals([(0.1, 0.25), None])
    ['[0.1000, 0.2500]', '–']
    """
    ends = iter(format_column([end for pair in limits if pair is not None for end in pair]))
    return [f"[{next(ends)}, {next(ends)}]" if pair is not None else "–" for pair in limits]
