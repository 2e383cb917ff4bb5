"""Format the results of an analysis by subgroup as text: a table of groups, and the gaps between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueodds.core.formatting import format_number, format_settings
from trueodds.core.printable import to_printable

if TYPE_CHECKING:
    from trueodds.core.group_results import ByGroup, Gap, Group
    from trueodds.core.results import Interval

MAX_LISTED_GAPS = 5  # gaps of one column printed, the significant and largest first; `gaps` has all of them
INTERVAL_FROM_ZERO_TEXT = (
    "The interval of a miscalibrated group can start at 0 ({}): the test assumes calibration and simulates labels,"
    " while the interval makes no such assumption and is wider."
)


def format_groups(by_group: ByGroup) -> str:
    """The table of subgroups, then the gaps between them."""
    worst, min_pvalue = by_group.worst, by_group.settings["min_pvalue"]
    family_pvalue = _with_equals_sign(format_pvalue(by_group.pvalue, min_pvalue))
    joint_pvalue = _with_equals_sign(format_pvalue(worst.joint, min_pvalue))
    heading = (
        f"{by_group.estimator} by group · family-wise p {family_pvalue} ·"
        f" {len(by_group.miscalibrated)} of {len(by_group.groups)} miscalibrated, {len(by_group.undecided)} undecided ·"
        f" worst: {_format_group_label(worst)}; joint p {joint_pvalue} · n={by_group.n:,} ·"
        f" {', '.join([by_group.lens, *format_settings(by_group.overall.settings)])}"
    )
    lines = [heading, *_format_table(by_group)]
    from_zero_labels = [
        group.label
        for group in by_group.miscalibrated
        if group.estimate.interval and group.estimate.interval.low <= 0 and "best_value" not in by_group.settings
    ]
    lines += (
        [INTERVAL_FROM_ZERO_TEXT.format("; ".join(from_zero_labels))]
        if from_zero_labels and by_group.overall.interval
        else []
    )
    has_rest_gaps = by_group.settings.get("against") == "rest"  # the gaps below are others: each group's from the rest
    lines += [
        _describe_largest_gap(gap, by_group.level, "of two groups of" if has_rest_gaps else "of")
        for gap in by_group.widest
    ]
    for column in dict.fromkeys(gap.column for gap in by_group.gaps):
        gaps = [gap for gap in by_group.gaps if gap.column == column]
        lines += _format_gaps(gaps, column, by_group.level, has_rest_gaps=has_rest_gaps)
    if by_group.multicalibration is not None:
        lines.append(str(by_group.multicalibration))
    return "\n".join(map(to_printable, lines))


def _format_gaps(gaps: Sequence[Gap], column: str, level: float, *, has_rest_gaps: bool) -> list[str]:
    """The gaps of one column, the significant and largest first; `has_rest_gaps` says that they are from the rest."""
    gaps = sorted(gaps, key=lambda gap: (not gap.settled, -abs(gap.difference)))
    lines = []
    if has_rest_gaps:
        separated = "; ".join(gap.first for gap in gaps if gap.settled) or "no group"
        lines.append(f"significantly different from the rest of {column}: {separated}")
    lines.append(f"gaps of {column}, with simultaneous {_format_percent(level)} intervals:")
    lines += [f"  {gap.describe()}" for gap in gaps[:MAX_LISTED_GAPS]]
    if len(gaps) > MAX_LISTED_GAPS:
        lines.append(f"  {len(gaps) - MAX_LISTED_GAPS} more in `.gaps` and in the JSON")
    return lines


def _format_table(by_group: ByGroup) -> list[str]:
    """A row per subgroup, and one for all rows."""
    min_pvalue, estimates = by_group.settings["min_pvalue"], [group.estimate for group in by_group.groups]
    all_rows = [*estimates, by_group.overall]
    has_means = any(group.mean_prob is not None for group in by_group.groups)
    columns = [
        ["group", *(to_printable(group.label) for group in by_group.groups), "all rows"],
        ["n", *(f"{one.n:,}" for one in all_rows)],
        *([["predicted", *format_column([group.mean_prob for group in by_group.groups]), ""]] if has_means else []),
        *([["observed", *format_column([group.event_rate for group in by_group.groups]), ""]] if has_means else []),
        [by_group.estimator, *format_column([one.value for one in all_rows])],
        [f"{_format_percent(by_group.level)} interval", *format_intervals([one.interval for one in all_rows])],
        ["noise floor", *format_column([one.noise_floor for one in all_rows])],
        ["p", *(format_pvalue(group.pvalue, min_pvalue) for group in by_group.groups), ""],
        ["joint p", *(format_pvalue(group.joint, min_pvalue) for group in by_group.groups), ""],
        ["detectable from", *format_column([group.min_detectable for group in by_group.groups]), ""],
        ["status", *(group.status for group in by_group.groups), ""],
    ]
    return _align_columns(columns)


def format_pvalue(p: float, min_pvalue: float) -> str:
    """Format a p-value, with ≤ if it is the smallest that the null draws can give.

    >>> format_pvalue(0.001, 0.001), format_pvalue(0.42, 0.001)
    ('≤ 0.001', '0.42')
    """
    return f"≤ {format_number(p)}" if p <= min_pvalue * (1 + 1e-9) else format_number(p)


def _with_equals_sign(pvalue_text: str) -> str:
    return pvalue_text if pvalue_text.startswith("≤") else f"= {pvalue_text}"


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


def format_intervals(intervals: Sequence[Interval | None]) -> list[str]:
    """Intervals with the same decimals throughout."""
    defined = [interval for interval in intervals if interval is not None]
    ends = iter(format_column([end for interval in defined for end in (interval.low, interval.high)]))
    return [f"[{next(ends)}, {next(ends)}]" if interval is not None else "–" for interval in intervals]


def _describe_largest_gap(gap: Gap, level: float, column_prefix: str) -> str:
    """Describe the largest gap of a column; two groups are named only if they differ significantly."""
    pair = f"{gap.first} − {gap.second}, {format_number(gap.difference)}"
    text = f"widest gap {column_prefix} {gap.column}: {pair if gap.settled else 'no significant difference'}"
    if gap.interval is None:
        return text
    limits = f"[{format_number(gap.interval.low)}, {format_number(gap.interval.high)}]"
    return f"{text}; {_format_percent(level)} interval of the largest true difference: {limits}"


def _format_group_label(group: Group) -> str:
    """Name a subgroup; the values of a crossing are joined as its columns are."""
    return group.label.replace(", ", " × ") if " × " in group.column else group.label


def _format_percent(level: float) -> str:
    return f"{100 * level:.6g} %"


def _align_columns(columns: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of a table: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if i in (0, len(columns) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
