"""Which neighboring bins of a reliability diagram are miscalibrated, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import capitalize_first, format_percent
from trueodds.diagrams.bins import BinnedView
from trueodds.lenses.view import View

_MIN_ERROR_SHARE = 0.1  # smallest share of the error outside the bars for which a segment is named
_CHANCE_ALPHA = 0.05  # with a larger probability of as many bins outside under calibration, only their number is given


@dataclass(frozen=True, slots=True)
class BinSegment:
    """Neighboring bins that all lie outside on the same side."""

    first: int
    last: int
    above: bool  # whether the event rate exceeds the prediction
    error_contribution: float  # Σ share · |deviation|


def find_segments(deviation: Array, share: Array, is_outside: Array) -> list[BinSegment]:
    """Return the runs of neighboring bins that lie outside on the same side, those with the largest error first.

    >>> deviation, outside = np.array([0.1, -0.1, -0.2, 0.0]), np.array([True, True, True, False])
    >>> segments = find_segments(deviation, np.full(4, 0.25), outside)
    >>> [(segment.first, segment.last, segment.above, round(segment.error_contribution, 3)) for segment in segments]
    [(1, 2, False, 0.075), (0, 0, True, 0.025)]
    """
    side = np.where(is_outside, np.where(deviation > 0, 1, -1), 0)
    starts = np.flatnonzero(np.diff(side, prepend=0) != 0)
    last_bins = np.append(starts[1:], len(side)) - 1
    segments = [
        BinSegment(int(a), int(b), bool(side[a] > 0), float(share[a : b + 1] @ np.abs(deviation[a : b + 1])))
        for a, b in zip(starts, last_bins, strict=True)
        if side[a]
    ]
    return sorted(segments, key=lambda segment: -segment.error_contribution)


def largest_segments(table: Mapping[str, Array]) -> list[BinSegment]:
    """Return at most two segments of bins, those with the largest error, lowest first."""
    segments = find_segments(table["deviation"], table["share"], table["outside"])
    total = sum(segment.error_contribution for segment in segments)
    largest = [segment for segment in segments[:2] if segment.error_contribution >= _MIN_ERROR_SHARE * total]
    return sorted(largest, key=lambda segment: segment.first)


def describe_segments(table: Mapping[str, Array], *, is_confidence: bool) -> str:
    """Describe the segments with the largest error, such as `overconfident above 60 %`.

    Edges are those of the bins. The first and last occupied bin count as reaching to 0 and 1.

    >>> columns = {"low": [0.0, 0.5, 0.6], "high": [0.5, 0.6, 1.0], "deviation": [0.0, -0.1, -0.1]}
    >>> columns |= {"share": [0.2, 0.4, 0.4], "outside": [False, True, True]}
    >>> table = {name: np.array(column) for name, column in columns.items()}
    >>> describe_segments(table, is_confidence=True).replace("\u00a0", " ")
    'overconfident above 50 %'
    """
    bias_verbs = ("underconfident", "overconfident") if is_confidence else ("underpredicts", "overpredicts")
    ordered = largest_segments(table)
    phrases: list[str] = []
    for i, current in enumerate(ordered):
        verb = bias_verbs[0] if current.above else bias_verbs[1]
        if i and current.above == ordered[i - 1].above:
            verb = ""  # overconfident below 10 % and above 70 %
        phrases.append(f"{verb} {_segment_range(table, current)}".strip())
    return " and ".join(phrases)


def _named_bins_phrase(table: Mapping[str, Array], n_outside: int) -> str:
    """State how many of the bins outside their bars lie in the described segments, and elsewhere; empty if none do."""
    segments = largest_segments(table)
    n_named = sum(segment.last - segment.first + 1 for segment in segments)
    if n_named == n_outside:
        return ""
    return (
        f", {n_named} in {'this range' if len(segments) == 1 else 'these ranges'} and {n_outside - n_named} elsewhere"
    )


def is_explained_by_chance(n_bins: int, n_outside: int, level: float) -> bool:
    """Whether a calibrated model has as many bins outside, or more, with a probability of at least 5 %.

    Each bin of a calibrated model lies outside with probability 1 − level or less, independently of the others.

    >>> is_explained_by_chance(11, 1, 0.9), is_explained_by_chance(11, 6, 0.9)
    (True, False)
    """
    return n_outside == 0 or float(bdtrc(n_outside - 1, n_bins, 1 - level)) >= _CHANCE_ALPHA


def expected_outside_text(n_bins: int, level: float) -> str:
    """The expected number of bins outside for a calibrated model, as text.

    >>> expected_outside_text(11, 0.9), expected_outside_text(3, 0.9)
    ('about 1', 'about 0.3')
    """
    expected_count = (1 - level) * n_bins
    return f"about {expected_count:.0f}" if expected_count >= 0.95 else f"about {expected_count:.1g}"


def _segment_range(table: Mapping[str, Array], segment: BinSegment) -> str:
    """The scores that a segment of bins spans, as a phrase such as `below 20 %`."""
    low, high = format_edge(float(table["low"][segment.first])), format_edge(float(table["high"][segment.last]))
    first, last = segment.first == 0, segment.last == len(table["low"]) - 1
    if first and last:
        return "throughout"
    if last:
        return f"above {low}"
    return f"below {high}" if first else f"between {low} and {high}"


def format_edge(x: float) -> str:
    """Format a probability with enough digits to tell it from 0 and from 1.

    >>> [format_edge(x).replace("\u00a0", " ") for x in (0.6, 2 / 3, 0.99987, 1 - 1e-7, 2e-5, 1.0)]
    ['60 %', '66.7 %', '99.99 %', '99.99999 %', '0.002 %', '100 %']
    """
    digits = 1
    while digits < 14 and 0 < x < 1 and round(100 * x, digits) in (0.0, 100.0):
        digits += 1
    if 0 < min(x, 1 - x) < 0.005:
        digits = max(digits, 2)
    return f"{100 * x:.{digits}f}".rstrip("0").rstrip(".") + "\u00a0%"


def describe_outside_bins(
    table: Mapping[str, Array],
    n_outside: int,
    jointly_outside: bool,
    level: float,
    *,
    simultaneous: bool,
    is_confidence_interval: bool,
    view_name: str,
) -> str:
    """Describe how many bins lie outside, and where; `jointly_outside` means outside a Bonferroni bar.

    With `is_confidence_interval` the bars are confidence intervals of the observed rate, otherwise consistency bars.
    """
    n_bins = len(table["low"])
    if n_outside == 0:
        return _all_inside_text(n_bins, is_confidence_interval=is_confidence_interval)
    count_text, verb = f"{n_outside} of {_bins_phrase(n_bins)}", "lies" if n_outside == 1 else "lie"
    text = (
        f"in {count_text} the interval excludes the mean prediction"
        if is_confidence_interval
        else f"{count_text} {verb} outside"
    )
    expected_text = f"{expected_outside_text(n_bins, level)} expected if calibrated"
    is_significant = jointly_outside or simultaneous
    if not is_significant and is_explained_by_chance(n_bins, n_outside, level):
        return f"{capitalize_first(text)} ({expected_text})."
    named_text = _named_bins_phrase(table, n_outside)
    segment_text = capitalize_first(describe_segments(table, is_confidence=view_name == "confidence"))
    if not is_significant:
        return f"{segment_text}: {text}{named_text} ({expected_text})."
    if is_confidence_interval:
        return f"{segment_text}: {text}{named_text}."
    bars = "its consistency bar" if n_outside == 1 else "their consistency bars"
    return f"{segment_text}: {count_text} {verb} outside {bars}{named_text}."


def _bins_phrase(n_bins: int) -> str:
    return f"{n_bins} {'bins' if n_bins != 1 else 'bin'}"


def _all_inside_text(n_bins: int, *, is_confidence_interval: bool) -> str:
    if is_confidence_interval:
        bins_text = "the only bin" if n_bins == 1 else f"all {_bins_phrase(n_bins)}"
        return f"In {bins_text} the interval contains the mean prediction."
    if n_bins == 1:
        return "The only bin lies inside its consistency bar."
    return f"All {_bins_phrase(n_bins)} lie inside their consistency bars."


def describe_finding(
    binned: BinnedView, pooled_view: View, segment_text: str, *, n_views: int, is_largest: bool
) -> str:
    """Describe where the view is miscalibrated, and its mean prediction and event rate."""
    view_name = binned.view.name
    predicted, observed = ("confidence", "accuracy") if view_name == "confidence" else ("predicted", "observed")
    mean_prediction, event_rate = format_percent(float(pooled_view.p[0])), format_percent(float(pooled_view.y[0]))
    text = f"Mean {predicted} {mean_prediction}, {observed} {event_rate}."
    text = f"{segment_text} {text}" if segment_text else text
    if n_views == 1:
        return text
    title = f"{'Largest error: ' if is_largest else ''}{view_name.removeprefix('class:')}"
    return f"{title}, ECE\u00a0{binned.calibration_error:.4f}. {text}"
