"""The result of an analysis by subgroup: a table of groups, the gaps between them, and their text."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueodds.core.errors import Note
from trueodds.core.formatting import format_number, format_settings
from trueodds.core.json_files import strict_json
from trueodds.core.printable import to_printable
from trueodds.core.results import Estimate, Interval, Result, undefined_note


class Reportable(Protocol):
    """A result with a sentence and a JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
    """One subgroup: its error, its own p-value and its p-value adjusted over all subgroups."""

    column: str
    value: str
    label: str
    estimate: Estimate
    pvalue: float
    joint: float  # step-down p over all subgroups
    min_detectable: float | None  # the smallest error that would have been significant; None where none would
    status: str  # "miscalibrated", "within" or "undecided"
    mean_prob: float | None = None  # mean predicted probability, which shows the direction of the error;
    event_rate: float | None = None  # both None where the lens has several views, or vectors

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.estimate.n

    def to_dict(self) -> dict[str, Any]:
        """Return the subgroup as a JSON object."""
        estimate = self.estimate
        return {
            "column": self.column,
            "value": self.value,
            "label": self.label,
            "n": estimate.n,
            "mean_prob": strict_json(self.mean_prob),
            "event_rate": strict_json(self.event_rate),
            "error": strict_json(estimate.value),
            "interval": estimate.interval.to_dict() if estimate.interval else None,
            "noise_floor": strict_json(estimate.noise_floor),
            "pvalue": strict_json(self.pvalue),
            "joint": strict_json(self.joint),
            "min_detectable": strict_json(self.min_detectable),
            "status": self.status,
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of the errors of two subgroups, or of a subgroup and the remaining rows."""

    column: str
    first: str
    second: str
    difference: float
    interval: Interval | None

    def __post_init__(self) -> None:
        if math.isnan(self.difference):
            object.__setattr__(self, "interval", None)

    @property
    def settled(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high

    def describe(self) -> str:
        """Describe the gap in words, without the level, which is the same for all gaps of the column."""
        ends = [] if self.interval is None else [self.interval.low, self.interval.high]
        value, *between = format_column([self.difference, *ends])
        return f"{self.first} − {self.second}: {value} {f'[{between[0]}, {between[1]}]' if between else '–'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the gap as a JSON object."""
        return {
            "column": self.column,
            "first": self.first,
            "second": self.second,
            "difference": strict_json(self.difference),
            "interval": self.interval.to_dict() if self.interval else None,
            "settled": self.settled,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ByGroup(Result):
    """The errors of all subgroups, tested on the same null draws, with the gaps between them."""

    estimator: str
    lens: str
    groups: tuple[Group, ...]
    overall: Estimate
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]  # by column: the most significant pair, with an interval for the largest true gap
    multicalibration: Reportable | None
    level: float
    null: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        lost = [
            group.label
            for group in self.groups
            if any(map(math.isnan, (group.estimate.value, group.pvalue, group.joint)))
        ]
        if lost:
            more = f" and {len(lost) - 5:,} more" if len(lost) > 5 else ""
            note = undefined_note(f"The error or p-value of {'; '.join(lost[:5])}{more} is")
            object.__setattr__(self, "notes", (*self.notes, note))

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.overall.n

    @property
    def pvalue(self) -> float:
        """The family-wise p-value: the smallest adjusted p-value of all subgroups."""
        return min((group.joint for group in self.groups if group.joint == group.joint), default=float("nan"))

    @property
    def worst(self) -> Group:
        """The subgroup with the smallest adjusted p-value; of equal ones, the one with the larger error."""
        candidates = [group for group in self.groups if group.joint == group.joint] or list(self.groups)
        return min(candidates, key=lambda group: (group.joint, group.pvalue, -self._loss(group.estimate.value)))

    def _loss(self, value: float) -> float:
        """Larger for a larger error: the distance from the best value if values below it are errors too."""
        return abs(value - self.settings["best_value"]) if "best_value" in self.settings else value

    @property
    def miscalibrated(self) -> tuple[Group, ...]:
        """The subgroups that are miscalibrated, with a family-wise error rate of at most 1 − level."""
        return tuple(group for group in self.groups if group.status == "miscalibrated")

    @property
    def undecided(self) -> tuple[Group, ...]:
        """The subgroups that are neither miscalibrated nor within `min_effect`."""
        return tuple(group for group in self.groups if group.status == "undecided")

    def __getitem__(self, label: str) -> Group:
        """The subgroup of that label, such as `sex=f` or `sex=f, site=a`."""
        for group in self.groups:
            if group.label == label:
                return group
        raise KeyError(label)

    def describe(self) -> str:
        """The table of subgroups, then the gaps between them."""
        return format_groups(self)

    def frame(self) -> Any:
        """Return a table with a row per subgroup: a pandas or Polars data frame, else a dict of columns."""
        columns: dict[str, list[Any]] = {}
        for group in self.groups:
            row = group.to_dict()
            ends = row.pop("interval") or {"low": None, "high": None}
            for name, value in (row | {"low": ends["low"], "high": ends["high"]}).items():
                columns.setdefault(name, []).append(value)
        for library in ("pandas", "polars"):
            try:
                return importlib.import_module(library).DataFrame(columns)
            except ImportError:
                continue
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "schema": "trueodds.groups/1",
            "estimator": self.estimator,
            "lens": self.lens,
            "pvalue": strict_json(self.pvalue),
            "worst": self.worst.label,
            "groups": [group.to_dict() for group in self.groups],
            "overall": self.overall.to_dict(),
            "gaps": [gap.to_dict() for gap in self.gaps],
            "widest": [gap.to_dict() for gap in self.widest],
            "multicalibration": self.multicalibration.to_dict() if self.multicalibration is not None else None,
            "n": self.n,
            "level": self.level,
            "null": self.null,
            "settings": strict_json(self.settings),
            "notes": [note.to_dict() for note in self.notes],
        }


MAX_LISTED_GAPS = 5  # gaps of one column printed, the settled and widest first
INTERVAL_FROM_ZERO_TEXT = (
    "The interval of a miscalibrated group can start at 0 ({}): the test assumes calibration and simulates labels,"
    " while the interval makes no such assumption and is wider."
)


def format_groups(by_group: ByGroup) -> str:
    """The table of subgroups, then the gaps between them."""
    worst, min_pvalue = by_group.worst, by_group.settings["min_pvalue"]
    family_pvalue = _with_equals_sign(format_pvalue(by_group.pvalue, min_pvalue))
    joint_pvalue = _with_equals_sign(format_pvalue(worst.joint, min_pvalue))
    head = (
        f"{by_group.estimator} by group · family-wise p {family_pvalue} ·"
        f" {len(by_group.miscalibrated)} of {len(by_group.groups)} miscalibrated, {len(by_group.undecided)} undecided ·"
        f" worst: {_format_group_label(worst)}; joint p {joint_pvalue} · n={by_group.n:,} ·"
        f" {', '.join([by_group.lens, *format_settings(by_group.overall.settings)])}"
    )
    lines = [head, *_format_table(by_group)]
    careful = [
        group.label
        for group in by_group.miscalibrated
        if group.estimate.interval and group.estimate.interval.low <= 0 and "best_value" not in by_group.settings
    ]
    lines += [INTERVAL_FROM_ZERO_TEXT.format("; ".join(careful))] if careful and by_group.overall.interval else []
    of_two = by_group.settings.get("against") == "rest"  # the gaps below are others: each group's from the rest
    lines += [
        _describe_largest_gap(gap, by_group.level, "of two groups of" if of_two else "of") for gap in by_group.widest
    ]
    for column in dict.fromkeys(gap.column for gap in by_group.gaps):
        gaps = [gap for gap in by_group.gaps if gap.column == column]
        gaps = sorted(gaps, key=lambda gap: (not gap.settled, -abs(gap.difference)))
        if of_two:
            separated = "; ".join(gap.first for gap in gaps if gap.settled) or "no group"
            lines.append(f"significantly different from the rest of {column}: {separated}")
        lines.append(f"gaps of {column}, with simultaneous {_format_percent(by_group.level)} intervals:")
        lines += [f"  {gap.describe()}" for gap in gaps[:MAX_LISTED_GAPS]]
        lines += (
            [f"  {len(gaps) - MAX_LISTED_GAPS} more in `.gaps` and in the JSON"] if len(gaps) > MAX_LISTED_GAPS else []
        )
    if by_group.multicalibration is not None:
        lines.append(str(by_group.multicalibration))
    return "\n".join(map(to_printable, lines))


def _format_table(by_group: ByGroup) -> list[str]:
    """A row per subgroup, and one for all rows."""
    min_pvalue, estimates = by_group.settings["min_pvalue"], [group.estimate for group in by_group.groups]
    all_rows = [*estimates, by_group.overall]
    directed = any(group.mean_prob is not None for group in by_group.groups)
    columns = [
        ["group", *(to_printable(group.label) for group in by_group.groups), "all rows"],
        ["n", *(f"{one.n:,}" for one in all_rows)],
        *([["predicted", *format_column([group.mean_prob for group in by_group.groups]), ""]] if directed else []),
        *([["observed", *format_column([group.event_rate for group in by_group.groups]), ""]] if directed else []),
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


def _with_equals_sign(shown: str) -> str:
    return shown if shown.startswith("≤") else f"= {shown}"


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
    known = [interval for interval in intervals if interval is not None]
    ends = iter(format_column([end for interval in known for end in (interval.low, interval.high)]))
    return [f"[{next(ends)}, {next(ends)}]" if interval is not None else "–" for interval in intervals]


def _describe_largest_gap(gap: Gap, level: float, of: str) -> str:
    """Describe the largest gap of a column; two groups are named only if they differ significantly."""
    pair = f"{gap.first} − {gap.second}, {format_number(gap.difference)}"
    text = f"widest gap {of} {gap.column}: {pair if gap.settled else 'no significant difference'}"
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
