"""The result of an analysis by subgroup, `ByGroup`: the errors of the groups, the gaps between them, and their text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trueodds.core.errors import Note
from trueodds.core.formatting import (
    format_column,
    format_lens_and_settings,
    format_number,
    format_percent_in_text,
    format_pvalue,
    format_pvalue_relation,
)
from trueodds.core.json_files import JsonObject, strict_json
from trueodds.core.printable import to_printable
from trueodds.core.results import Estimate, Interval, Result, noise_floor_label, undefined_note
from trueodds.core.table import Column, Table, format_html_table, layout_table, to_data_frame
from trueodds.resampling.between_groups import BetweenGroups

MAX_LISTED_GROUPS = 5  # subgroups without a defined error that a note lists
MAX_LISTED_GAPS = 5  # gaps of one column printed, the significant and largest first; `gaps` has all of them
INTERVAL_FROM_ZERO_TEXT = (
    "The interval of a miscalibrated group can start at 0 ({}): the test assumes calibration and simulates labels,"
    " while the interval makes no such assumption and is wider."
)


def evidence_order(joint: float | None, pvalue: float | None, error_size: float | None) -> tuple[float, float, float]:
    """Return the sort key of a subgroup by the evidence of miscalibration, strongest first.

    The worst subgroup is the first one: that of the smallest joint p-value; of several the one of the smallest
    unadjusted p-value, then the one of the largest error. Undefined numbers come last.

    >>> sorted([evidence_order(0.5, 0.1, 0.3), evidence_order(0.001, 0.001, 0.1)])[0]
    (0.001, 0.001, -0.1)
    """
    joint, pvalue, size = (math.nan if x is None else x for x in (joint, pvalue, error_size))
    return (
        math.inf if math.isnan(joint) else joint,
        math.inf if math.isnan(pvalue) else pvalue,
        math.inf if math.isnan(size) else -size,
    )


def format_status(status: str, direction: str | None) -> str:
    """Return the status of a subgroup for a table, with the direction of the predictions if it is miscalibrated.

    >>> format_status("miscalibrated", "under"), format_status("within", "under"), format_status("miscalibrated", None)
    ('miscalibrated, under', 'within', 'miscalibrated')
    """
    return f"{status}, {direction}" if status == "miscalibrated" and direction else status


BEYOND_MAX_GROUPS, NO_WEIGHT = "max_groups", "no_weight"  # reasons why a subgroup was not examined


@dataclass(frozen=True, slots=True)
class UnexaminedGroup(JsonObject):
    """A subgroup that exists in the data and was not examined.

    Attributes
    ----------
    column, value, label : str
        As for `Group`.
    reason : {"max_groups", "no_weight"}
        Whether it is beyond the limit `max_groups` that the caller has set, or no row of it has weight and known
        labels.
    """

    column: str
    value: str
    label: str
    reason: str


def count_examined_groups(n_examined: int, n_unexamined: int) -> str:
    """Return how many of all subgroups were examined; empty if all were.

    >>> count_examined_groups(50, 16), count_examined_groups(66, 0)
    ('50 of 66 groups examined', '')
    """
    return f"{n_examined:,} of {n_examined + n_unexamined:,} groups examined" if n_unexamined else ""


@dataclass(frozen=True, slots=True)
class Group(JsonObject):
    """One subgroup: its error, its own p-value and its p-value adjusted for all subgroups.

    Attributes
    ----------
    column : str
        The group column, or the columns of a crossing joined by " × ".
    value : str
        Its value in this subgroup.
    label : str
        Column and value, such as ``sex=f`` or ``sex=f, site=a``.
    estimate : Estimate
        The error of the subgroup, with its interval and noise floor.
    pvalue : float
        The p-value of this subgroup alone.
    joint : float
        The p-value adjusted for all subgroups, by step-down min-p or Holm.
    min_detectable : float or None
        Smallest error that would have been significant; None if none would, or if it is unknown.
    status : {"miscalibrated", "within", "undecided"}
        Whether calibration is rejected, or the interval ends below the equivalence margin, or neither.
    mean_prob, event_rate : float or None
        Mean predicted probability and mean outcome; None if the lens has several views, or vectors of probabilities.
    direction : {"under", "over", "too extreme", "too moderate", None}
        Whether predictions are too low or too high on average: significantly, because the confidence interval of the
        difference of the two means excludes 0. Of the calibration slope, whether they are too extreme or too moderate,
        because its interval excludes 1. None otherwise.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        "column", "value", "label", "n", "mean_prob", "event_rate", "error=estimate.value",
        "interval=estimate.interval", "noise_floor=estimate.noise_floor", "pvalue", "joint", "min_detectable",
        "status", "direction",
    )  # fmt: skip

    column: str
    value: str
    label: str
    estimate: Estimate
    pvalue: float
    joint: float
    min_detectable: float | None
    status: str
    mean_prob: float | None = None
    event_rate: float | None = None
    direction: str | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.estimate.n


@dataclass(frozen=True, slots=True)
class Gap(JsonObject):
    """The difference of the errors of two subgroups, or of a subgroup and the remaining rows.

    Attributes
    ----------
    column : str
        The group column.
    first, second : str
        The labels of the two subgroups; `second` is "rest" for the remaining rows.
    difference : float
        Error of the first minus error of the second.
    interval : Interval or None
        Simultaneous confidence interval of all gaps of the column; None if the difference is undefined.
    """

    json_keys: ClassVar[tuple[str, ...]] = ("column", "first", "second", "difference", "interval", "settled")

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
        value, *limits = format_column([self.difference, *ends])
        return f"{self.first} − {self.second}: {value} {f'[{limits[0]}, {limits[1]}]' if limits else '–'}"


@dataclass(frozen=True, slots=True, repr=False)
class ByGroup(Result):
    """The errors of all subgroups, tested on the same null draws, with the gaps between them.

    Attributes
    ----------
    estimator, lens : str
        Name of the estimator and of the lens.
    groups : tuple of Group
        The subgroups, column by column.
    overall : Estimate
        The error of all rows.
    gaps : tuple of Gap
        The differences of the errors of every two subgroups of a column, or of each subgroup and the rest.
    widest : tuple of Gap
        For each column the most significant pair, with an interval for the largest true gap.
    multicalibration : result or None
        The multicalibration error; None if the lens has several views, or vectors of probabilities.
    level : float
        Confidence level of the intervals; 1 − level is the family-wise error rate of `miscalibrated`.
    null : str
        The null hypothesis in words.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the subgroups.
    unexamined : tuple of UnexaminedGroup
        The subgroups that exist and were not examined. The joint p-values are adjusted for those of them that have
        weight, too.
    between : tuple of BetweenGroups
        For each column the mean over groups, the standard deviation between them, and the interval for a new group;
        empty unless it was requested.
    """

    json_schema: ClassVar[str] = "trueodds.groups/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "estimator", "lens", "pvalue", "worst=worst.label", "groups", "unexamined", "overall", "gaps", "widest",
        "multicalibration", "between?", "n", "level", "null", "settings", "notes",
    )  # fmt: skip

    estimator: str
    lens: str
    groups: tuple[Group, ...]
    overall: Estimate
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]
    multicalibration: JsonObject | None
    level: float
    null: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    unexamined: tuple[UnexaminedGroup, ...] = ()
    between: tuple[BetweenGroups, ...] = ()

    def __post_init__(self) -> None:
        undefined_labels = [
            group.label
            for group in self.groups
            if any(map(math.isnan, (group.estimate.value, group.pvalue, group.joint)))
        ]
        if undefined_labels:
            n_unlisted = len(undefined_labels) - MAX_LISTED_GROUPS
            more = f" and {n_unlisted:,} more" if n_unlisted > 0 else ""
            names = "; ".join(undefined_labels[:MAX_LISTED_GROUPS])
            note = undefined_note(f"The error or p-value of {names}{more} is")
            object.__setattr__(self, "notes", (*self.notes, note))

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.overall.n

    @property
    def pvalue(self) -> float:
        """The family-wise p-value: the smallest adjusted p-value of all subgroups."""
        return min((group.joint for group in self.groups if not math.isnan(group.joint)), default=math.nan)

    @property
    def worst(self) -> Group:
        """The subgroup with the strongest evidence: smallest joint p-value, then smallest p-value, then largest error.

        Its error need not be significantly larger than that of other subgroups; `widest` has these differences.
        """
        return min(self.groups, key=self.evidence_order)

    def evidence_order(self, group: Group) -> tuple[float, float, float]:
        """Sort key of a subgroup by the evidence of miscalibration, strongest first."""
        return evidence_order(group.joint, group.pvalue, self._error_magnitude(group.estimate.value))

    def _error_magnitude(self, value: float) -> float:
        """Return the value, or its distance from the best value if values below that are errors too."""
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
        """Return the subgroup of that label, such as `sex=f` or `sex=f, site=a`."""
        for group in self.groups:
            if group.label == label:
                return group
        raise KeyError(label)

    def describe(self) -> str:
        """Describe the subgroups in a table, and the gaps between them."""
        return _format_groups(self)

    def _repr_html_(self) -> str:
        from trueodds.core.notebook_html import description_html, frame_html, notes_html, preformatted_html

        first_line, *more = _format_groups(self, with_table=False).split("\n")
        table = format_html_table(_group_table(self))
        return frame_html(
            description_html(first_line), table, preformatted_html("\n".join(more)), notes_html(self.notes)
        )

    def frame(self) -> Any:
        """Return a table with a row per subgroup: a pandas or Polars data frame, else a dict of columns."""
        columns: dict[str, list[Any]] = {}
        for group in self.groups:
            row = group.to_dict()
            ends = row.pop("interval") or {"low": None, "high": None}
            for name, value in (row | {"low": ends["low"], "high": ends["high"]}).items():
                columns.setdefault(name, []).append(value)
        return to_data_frame(columns)


def _format_groups(by_group: ByGroup, *, with_table: bool = True) -> str:
    """Format the table of subgroups, then the gaps between them."""
    worst, min_pvalue = by_group.worst, by_group.settings["min_pvalue"]
    family_pvalue = format_pvalue_relation(strict_json(by_group.pvalue), min_pvalue, cutoff=0)
    joint_pvalue = format_pvalue_relation(strict_json(worst.joint), min_pvalue, cutoff=0)
    examined = count_examined_groups(len(by_group.groups), len(by_group.unexamined))
    heading = (
        f"{by_group.estimator} by group · {f'{examined} · ' if examined else ''}family-wise p {family_pvalue} ·"
        f" {len(by_group.miscalibrated)} of {len(by_group.groups)} miscalibrated, {len(by_group.undecided)} undecided ·"
        f" worst: {_format_group_label(worst)}; joint p {joint_pvalue} · n={by_group.n:,} ·"
        f" {format_lens_and_settings(by_group.lens, by_group.settings)}"
    )
    lines = [heading]
    if with_table:
        lines += [line for block in layout_table(_group_table(by_group)) for line in (*block.heading, *block.rows)]
    lines += _explain_intervals_from_zero(by_group)
    # The widest gap is between two groups, also if the other gaps are those between each group and the remaining rows.
    has_rest_gaps = by_group.settings.get("against") == "rest"
    column_prefix = "of two groups of" if has_rest_gaps else "of"
    lines += [_describe_largest_gap(gap, by_group.level, column_prefix) for gap in by_group.widest]
    for column in dict.fromkeys(gap.column for gap in by_group.gaps):
        gaps = [gap for gap in by_group.gaps if gap.column == column]
        lines += _format_gaps(gaps, column, by_group.level, has_rest_gaps=has_rest_gaps)
    lines += [summary.describe() for summary in by_group.between]
    if by_group.multicalibration is not None:
        lines.append(str(by_group.multicalibration))
    return "\n".join(map(to_printable, lines))


def _explain_intervals_from_zero(by_group: ByGroup) -> list[str]:
    """Return a sentence on the miscalibrated groups whose interval starts at 0; nothing if there are none."""
    if by_group.overall.interval is None or "best_value" in by_group.settings:
        return []
    intervals = [(group.label, group.estimate.interval) for group in by_group.miscalibrated]
    labels = [label for label, interval in intervals if interval is not None and interval.low <= 0]
    return [INTERVAL_FROM_ZERO_TEXT.format("; ".join(labels))] if labels else []


def _format_gaps(gaps: Sequence[Gap], column: str, level: float, *, has_rest_gaps: bool) -> list[str]:
    """Format the gaps of a column, the significant and largest first.

    `has_rest_gaps` says that they are the gaps between each group and the remaining rows.
    """
    gaps = sorted(gaps, key=lambda gap: (not gap.settled, -abs(gap.difference)))
    lines = []
    if has_rest_gaps:
        differing_groups = "; ".join(gap.first for gap in gaps if gap.settled) or "no group"
        lines.append(f"significantly different from the rest of {column}: {differing_groups}")
    lines.append(f"gaps of {column}, with simultaneous {format_percent_in_text(level)} intervals:")
    lines += [f"  {gap.describe()}" for gap in gaps[:MAX_LISTED_GAPS]]
    if len(gaps) > MAX_LISTED_GAPS:
        lines.append(f"  {len(gaps) - MAX_LISTED_GAPS} more in `.gaps` and in the JSON")
    return lines


def _group_table(by_group: ByGroup) -> Table:
    """Return the table with a row per subgroup, and one for all rows."""
    min_pvalue, groups, overall = by_group.settings["min_pvalue"], by_group.groups, by_group.overall
    n_untested = sum(group.reason == BEYOND_MAX_GROUPS for group in by_group.unexamined)
    min_single_pvalue = min_pvalue / (1 + n_untested)
    estimates = [*(group.estimate for group in groups), overall]
    means = (
        Column("predicted", [*(group.mean_prob for group in groups), ""]),
        Column("observed", [*(group.event_rate for group in groups), ""]),
    )
    columns = (
        Column("group", [*(to_printable(group.label) for group in groups), "all rows"], "text"),
        Column("n", [estimate.n for estimate in estimates], "count"),
        *(means if any(group.mean_prob is not None for group in groups) else ()),
        Column(by_group.estimator, [estimate.value for estimate in estimates]),
        Column(
            f"{format_percent_in_text(by_group.level)} interval",
            [estimate.interval for estimate in estimates],
            "interval",
        ),
        Column(noise_floor_label(by_group.estimator), [strict_json(estimate.noise_floor) for estimate in estimates]),
        Column("p", [*(_format_pvalue(group.pvalue, min_single_pvalue) for group in groups), ""], "pvalue"),
        Column("joint p", [*(_format_pvalue(group.joint, min_pvalue) for group in groups), ""], "pvalue"),
        Column("smallest detectable", [*(group.min_detectable for group in groups), ""]),
        Column("status", [*(format_status(group.status, group.direction) for group in groups), ""], "text"),
    )
    return Table("", columns)


def _format_pvalue(p: float, min_pvalue: float) -> str:
    """Format the p-value of a subgroup, or of all; a dash if it is undefined."""
    return format_pvalue(strict_json(p), min_pvalue, cutoff=0)


def _describe_largest_gap(gap: Gap, level: float, column_prefix: str) -> str:
    """Describe the largest gap of a column; two groups are named only if they differ significantly."""
    pair = f"{gap.first} − {gap.second}, {format_number(gap.difference)}"
    text = f"widest gap {column_prefix} {gap.column}: {pair if gap.settled else 'no significant difference'}"
    if gap.interval is None:
        return text
    limits = f"[{format_number(gap.interval.low)}, {format_number(gap.interval.high)}]"
    return f"{text}; {format_percent_in_text(level)} interval of the largest true difference: {limits}"


def _format_group_label(group: Group) -> str:
    """Name a subgroup; the values of a crossing are joined as its columns are."""
    return group.label.replace(", ", " × ") if " × " in group.column else group.label
