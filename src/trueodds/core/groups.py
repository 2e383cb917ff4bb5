"""What an answer about subgroups looks like: a table that says of none that it is fine where nothing could be seen."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueodds.core.errors import Note
from trueodds.core.groups_text import format_groups, same
from trueodds.core.results import Estimate, Interval, Result, strict, undefined


class Reportable(Protocol):
    """A number with a sentence and a JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
    """One subgroup: its own error, and how surprising that is by itself and among all subgroups."""

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
        """How many rows it has."""
        return self.estimate.n

    def to_dict(self) -> dict[str, Any]:
        """The subgroup as JSON holds it."""
        estimate = self.estimate
        return {
            "column": self.column,
            "value": self.value,
            "label": self.label,
            "n": estimate.n,
            "mean_prob": strict(self.mean_prob),
            "event_rate": strict(self.event_rate),
            "error": strict(estimate.value),
            "interval": estimate.interval.to_dict() if estimate.interval else None,
            "noise_floor": strict(estimate.noise_floor),
            "pvalue": strict(self.pvalue),
            "joint": strict(self.joint),
            "min_detectable": strict(self.min_detectable),
            "status": self.status,
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """The error of one subgroup minus that of another, or of the rest."""

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
        """Whether the interval leaves no doubt which error is larger."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high

    def describe(self) -> str:
        """In words; the level belongs to all gaps of the column together and is said once."""
        ends = [] if self.interval is None else [self.interval.low, self.interval.high]
        value, *between = same([self.difference, *ends])
        return f"{self.first} − {self.second}: {value} {f'[{between[0]}, {between[1]}]' if between else '–'}"

    def to_dict(self) -> dict[str, Any]:
        """The gap as JSON holds it."""
        return {
            "column": self.column,
            "first": self.first,
            "second": self.second,
            "difference": strict(self.difference),
            "interval": self.interval.to_dict() if self.interval else None,
            "settled": self.settled,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ByGroup(Result):
    """The error of every subgroup, judged on the same draws, with the gaps between them."""

    estimator: str
    lens: str
    groups: tuple[Group, ...]
    overall: Estimate
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]  # by column: the two most surely apart, with an interval for the largest true gap
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
            note = undefined(f"The error or p-value of {'; '.join(lost[:5])}{more} is")
            object.__setattr__(self, "notes", (*self.notes, note))

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self.overall.n

    @property
    def pvalue(self) -> float:
        """How surprising the most surprising subgroup is among all of them: the family-wise p."""
        return min((group.joint for group in self.groups if group.joint == group.joint), default=float("nan"))

    @property
    def worst(self) -> Group:
        """The subgroup with the strongest evidence against it; of equal ones the larger error."""
        candidates = [group for group in self.groups if group.joint == group.joint] or list(self.groups)
        return min(candidates, key=lambda group: (group.joint, group.pvalue, -group.estimate.value))

    @property
    def miscalibrated(self) -> tuple[Group, ...]:
        """The subgroups that are not calibrated, all errors of this statement together at most 1 − level."""
        return tuple(group for group in self.groups if group.status == "miscalibrated")

    @property
    def undecided(self) -> tuple[Group, ...]:
        """The subgroups of which these rows tell neither that they are off nor that they are within `min_effect`."""
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
        """A row per subgroup as a pandas data frame, as Polars where pandas is absent, else as a dict of columns."""
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
        """The answer as JSON holds it."""
        return {
            "schema": "trueodds.groups/1",
            "estimator": self.estimator,
            "lens": self.lens,
            "pvalue": strict(self.pvalue),
            "worst": self.worst.label,
            "groups": [group.to_dict() for group in self.groups],
            "overall": self.overall.to_dict(),
            "gaps": [gap.to_dict() for gap in self.gaps],
            "widest": [gap.to_dict() for gap in self.widest],
            "multicalibration": self.multicalibration.to_dict() if self.multicalibration is not None else None,
            "n": self.n,
            "level": self.level,
            "null": self.null,
            "settings": strict(self.settings),
            "notes": [note.to_dict() for note in self.notes],
        }
