"""How is an answer about subgroups printed? A table with the same decimals down each column, then what lies between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueodds.core.printable import printable
from trueodds.core.results import Interval, figure, in_words, percent

if TYPE_CHECKING:
    from trueodds.core.groups import ByGroup, Gap

MAX_GAPS = 5  # gaps of one column printed, the settled and widest first
FROM_ZERO = (
    "The interval of a miscalibrated group may begin at 0 ({}): the test draws the labels of a calibrated model and so knows "
    "what chance does; the interval takes nothing for granted, and is wider."
)


def format_groups(by_group: ByGroup) -> str:
    """The table of subgroups, then the gaps between them."""
    worst, min_pvalue = by_group.worst, by_group.settings["min_pvalue"]
    head = (
        f"{by_group.estimator} by group · family p {_equals(pvalue(by_group.pvalue, min_pvalue))} · "
        f"{len(by_group.miscalibrated)} of {len(by_group.groups)} miscalibrated, {len(by_group.undecided)} undecided · worst {worst.label}, "
        f"joint p {_equals(pvalue(worst.joint, min_pvalue))} · n={by_group.n:,} · "
        f"{', '.join([by_group.lens, *in_words(by_group.overall.settings)])}"
    )
    lines = [head, *_table(by_group)]
    careful = [
        group.label for group in by_group.miscalibrated if group.estimate.interval and group.estimate.interval.low <= 0
    ]
    lines += [FROM_ZERO.format("; ".join(careful))] if careful and by_group.overall.interval else []
    of_two = by_group.settings.get("against") == "rest"  # the gaps below are others: each group's from the rest
    lines += [_widest(gap, by_group.level, "of two groups of" if of_two else "of") for gap in by_group.widest]
    for column in dict.fromkeys(gap.column for gap in by_group.gaps):
        gaps = [gap for gap in by_group.gaps if gap.column == column]
        gaps = sorted(gaps, key=lambda gap: (not gap.settled, -abs(gap.difference)))
        if of_two:
            separated = "; ".join(gap.first for gap in gaps if gap.settled) or "no group"
            lines.append(f"significantly different from the rest of {column}: {separated}")
        lines.append(f"gaps of {column}, jointly {percent(by_group.level)}:")
        lines += [f"  {gap.describe()}" for gap in gaps[:MAX_GAPS]]
        lines += [f"  {len(gaps) - MAX_GAPS} more: the JSON lists them"] if len(gaps) > MAX_GAPS else []
    if by_group.multicalibration is not None:
        lines.append(str(by_group.multicalibration))
    return "\n".join(map(printable, lines))


def _table(by_group: ByGroup) -> list[str]:
    """A row per subgroup, and one for all rows."""
    min_pvalue, estimates = by_group.settings["min_pvalue"], [group.estimate for group in by_group.groups]
    all_rows = [*estimates, by_group.overall]
    directed = any(group.mean_prob is not None for group in by_group.groups)
    columns = [
        ["group", *(printable(group.label) for group in by_group.groups), "all rows"],
        ["n", *(f"{one.n:,}" for one in all_rows)],
        *([["predicted", *same([group.mean_prob for group in by_group.groups]), ""]] if directed else []),
        *([["observed", *same([group.event_rate for group in by_group.groups]), ""]] if directed else []),
        [by_group.estimator, *same([one.value for one in all_rows])],
        [f"{percent(by_group.level)} each", *spans([one.interval for one in all_rows])],
        ["noise floor", *same([one.noise_floor for one in all_rows])],
        ["p", *(pvalue(group.pvalue, min_pvalue) for group in by_group.groups), ""],
        ["joint p", *(pvalue(group.joint, min_pvalue) for group in by_group.groups), ""],
        ["detectable from", *same([group.min_detectable for group in by_group.groups]), ""],
        ["status", *(group.status for group in by_group.groups), ""],
    ]
    return _aligned(columns)


def pvalue(p: float, min_pvalue: float) -> str:
    """A p-value; at the smallest that its draws can give it could be smaller still.

    >>> pvalue(0.001, 0.001), pvalue(0.42, 0.001)
    ('≤ 0.001', '0.42')
    """
    return f"≤ {figure(p)}" if p <= min_pvalue * (1 + 1e-9) else figure(p)


def _equals(shown: str) -> str:
    return shown if shown.startswith("≤") else f"= {shown}"


def same(column: Sequence[float | None]) -> list[str]:
    """Figures with the same decimals throughout: four, or more where all of them are tiny.

    >>> same([0.25, 0.0, None]), same([0.0004, 0.00012])
    (['0.2500', '0.0000', '–'], ['0.00040', '0.00012'])
    """
    largest = max((abs(x) for x in column if x is not None and math.isfinite(x)), default=0.0)
    places = 4 if largest < 1e-12 else min(max(4, 1 - math.floor(math.log10(largest))), 9)
    return [figure(x) if x is None or not math.isfinite(x) or abs(x) >= 10 else f"{x:.{places}f}" for x in column]


def spans(intervals: Sequence[Interval | None]) -> list[str]:
    """Intervals with the same decimals throughout."""
    known = [interval for interval in intervals if interval is not None]
    ends = iter(same([end for interval in known for end in (interval.low, interval.high)]))
    return [f"[{next(ends)}, {next(ends)}]" if interval is not None else "–" for interval in intervals]


def _widest(gap: Gap, level: float, of: str) -> str:
    """The largest gap of a column; names of two groups only where they differ significantly."""
    pair = f"{gap.first} − {gap.second}, {figure(gap.difference)}" if gap.settled else "no two differ significantly"
    return f"widest gap {of} {gap.column}: {pair}; the largest true gap lies in {spans([gap.interval])[0]} {percent(level)}"


def _aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """Names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if i in (0, len(columns) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
