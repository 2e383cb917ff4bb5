"""The result of an analysis by subgroup: a table of groups, the gaps between them, and their text."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueodds.core.errors import Note
from trueodds.core.group_results_text import format_column, format_groups
from trueodds.core.json_files import strict_json
from trueodds.core.results import Estimate, Interval, Result, undefined_note


class ReportableResult(Protocol):
    """A result with a sentence and a JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
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
        Mean predicted probability and mean outcome, which show the direction of the error; None if the lens has several
        views, or vectors of probabilities.
    """

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
    """

    estimator: str
    lens: str
    groups: tuple[Group, ...]
    overall: Estimate
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]
    multicalibration: ReportableResult | None
    level: float
    null: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        undefined_labels = [
            group.label
            for group in self.groups
            if any(map(math.isnan, (group.estimate.value, group.pvalue, group.joint)))
        ]
        if undefined_labels:
            more = f" and {len(undefined_labels) - 5:,} more" if len(undefined_labels) > 5 else ""
            note = undefined_note(f"The error or p-value of {'; '.join(undefined_labels[:5])}{more} is")
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
        return min(
            candidates, key=lambda group: (group.joint, group.pvalue, -self._error_magnitude(group.estimate.value))
        )

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
