"""How is an answer about subgroups printed? A table with the same decimals down each column, then what lies between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueodds.core.printable import printable
from trueodds.core.results import Interval, figure, in_words, percent

if TYPE_CHECKING:
    from trueodds.core.groups import ByGroup, Gap

TOLD = 5  # gaps of one column printed, the settled and widest first
FROM_ZERO = (
    "The interval of a group that is off may begin at 0 ({}): the test draws the labels of a calibrated model and so knows "
    "what chance does; the interval takes nothing for granted, and is wider."
)


def told(found: ByGroup) -> str:
    """The table of subgroups, then the gaps between them."""
    worst, floor = found.worst, found.settings["floor"]
    head = (
        f"{found.estimator} by group · family p {_equals(pvalue(found.pvalue, floor))} · "
        f"{len(found.off)} of {len(found.groups)} off, {len(found.undecided)} undecided · worst {worst.label}, "
        f"joint p {_equals(pvalue(worst.joint, floor))} · n={found.n:,} · "
        f"{', '.join([found.lens, *in_words(found.whole.settings)])}"
    )
    lines = [head, *_table(found)]
    careful = [each.label for each in found.off if each.estimate.interval and each.estimate.interval.low <= 0]
    lines += [FROM_ZERO.format("; ".join(careful))] if careful and found.whole.interval else []
    of_two = found.settings.get("against") == "rest"  # the gaps below are others: each group's from the rest
    lines += [_widest(each, found.level, "of two groups of" if of_two else "of") for each in found.widest]
    for column in dict.fromkeys(each.column for each in found.gaps):
        mine = [each for each in found.gaps if each.column == column]
        mine = sorted(mine, key=lambda each: (not each.settled, -abs(each.difference)))
        if of_two:
            apart = "; ".join(each.first for each in mine if each.settled) or "no group"
            lines.append(f"surely apart from the rest of {column}: {apart}")
        lines.append(f"gaps of {column}, jointly {percent(found.level)}:")
        lines += [f"  {each.told()}" for each in mine[:TOLD]]
        lines += [f"  {len(mine) - TOLD} more: the JSON lists them"] if len(mine) > TOLD else []
    if found.multicalibration is not None:
        lines.append(str(found.multicalibration))
    return "\n".join(map(printable, lines))


def _table(found: ByGroup) -> list[str]:
    """A row per subgroup, and one for all rows."""
    floor, each = found.settings["floor"], [group.estimate for group in found.groups]
    all_rows = [*each, found.whole]
    directed = any(group.says is not None for group in found.groups)
    columns = [
        ["group", *(printable(group.label) for group in found.groups), "all rows"],
        ["n", *(f"{one.n:,}" for one in all_rows)],
        *([["says", *same([group.says for group in found.groups]), ""]] if directed else []),
        *([["came", *same([group.came for group in found.groups]), ""]] if directed else []),
        [found.estimator, *same([one.value for one in all_rows])],
        [f"{percent(found.level)} each", *spans([one.interval for one in all_rows])],
        ["floor", *same([one.noise_floor for one in all_rows])],
        ["p", *(pvalue(group.pvalue, floor) for group in found.groups), ""],
        ["joint p", *(pvalue(group.joint, floor) for group in found.groups), ""],
        ["seen from", *same([group.seen_from for group in found.groups]), ""],
        ["standing", *(group.standing for group in found.groups), ""],
    ]
    return _aligned(columns)


def pvalue(p: float, floor: float) -> str:
    """A p-value; at the floor of its draws it could be smaller still.

    >>> pvalue(0.001, 0.001), pvalue(0.42, 0.001)
    ('≤ 0.001', '0.42')
    """
    return f"≤ {figure(p)}" if p <= floor * (1 + 1e-9) else figure(p)


def _equals(shown: str) -> str:
    return shown if shown.startswith("≤") else f"= {shown}"


def same(column: Sequence[float | None]) -> list[str]:
    """Figures with the same decimals throughout: four, or more where all of them are tiny.

    >>> same([0.25, 0.0, None]), same([0.0004, 0.00012])
    (['0.2500', '0.0000', '–'], ['0.00040', '0.00012'])
    """
    most = max((abs(x) for x in column if x is not None and math.isfinite(x)), default=0.0)
    places = 4 if most < 1e-12 else min(max(4, 1 - math.floor(math.log10(most))), 9)
    return [figure(x) if x is None or not math.isfinite(x) or abs(x) >= 10 else f"{x:.{places}f}" for x in column]


def spans(intervals: Sequence[Interval | None]) -> list[str]:
    """Intervals with the same decimals throughout."""
    known = [each for each in intervals if each is not None]
    ends = iter(same([end for each in known for end in (each.low, each.high)]))
    return [f"[{next(ends)}, {next(ends)}]" if each is not None else "–" for each in intervals]


def _widest(gap: Gap, level: float, of: str) -> str:
    """The largest gap of a column; names of two groups only where they are surely apart."""
    pair = f"{gap.first} − {gap.second}, {figure(gap.difference)}" if gap.settled else "no two are surely apart"
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
