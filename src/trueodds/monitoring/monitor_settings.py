"""The settings of a monitor, which its first call fixes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from trueodds.core.errors import InputError, argument, describe
from trueodds.core.settings import NonNegative, Probability, Range, Settings, check
from trueodds.monitoring.capital import EDGES, FEW_EDGES, FEW_GAPS, GAPS, Alternatives
from trueodds.monitoring.cohorts import Unit, UnitName, format_horizon, parse_horizon

Missing = Literal["refuse", "least", "exclude", "no-event"]
MAX_VIEWS_WITH_ALL_CELLS = 2  # with more views, fewer cells and tilts keep the state small


@dataclass(frozen=True)
class MonitorSettings(Settings):
    """Validated settings of a `Monitor`, whose docstring describes them.

    Attributes
    ----------
    horizon : int
        Seconds after a prediction at which its label counts; for an integer unit, steps.
    """

    horizon: Any = "30d"
    unit: UnitName = "day"
    alpha: Probability = 0.05
    odds_margin: Annotated[float, Range(1, 10)] = 1.05
    lens: str | None = None
    group: Any = ()
    center: Probability | None = None
    missing: Missing = "refuse"
    overlap: Literal["independent", "threads"] = "independent"
    shock_sd: Annotated[float, Range(0, 0.5)] = 0.0
    complete: bool = False
    weight_kind: Literal["importance", "frequency"] = "importance"

    def __post_init__(self) -> None:
        hints: dict[str, Any] = {
            "unit": UnitName,
            "alpha": Probability,
            "odds_margin": Annotated[float, Range(1, 10)],
            "lens": str | None,
            "center": Probability | None,
            "missing": Missing,
            "overlap": Literal["independent", "threads"],
            "shock_sd": Annotated[NonNegative, Range(0, 0.5)],
            "complete": bool,
            "weight_kind": Literal["importance", "frequency"],
        }
        defaults = {field.name: field.default for field in fields(self)}
        for name, hint in hints.items():
            object.__setattr__(self, name, check(name, getattr(self, name), hint, defaults[name]))
        object.__setattr__(self, "horizon", parse_horizon(self.horizon, self.unit))
        object.__setattr__(self, "group", _read_groups(self.group))

    @property
    def margin(self) -> float:
        """The margin in log odds."""
        return math.log(self.odds_margin)

    @property
    def period(self) -> Unit:
        """The unit of the cohorts."""
        return Unit(self.unit)

    @property
    def n_threads(self) -> int:
        """Number of threads of cohorts whose horizons do not overlap."""
        return self.period.horizon_in_periods(self.horizon) if self.overlap == "threads" else 1

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Names of the group columns."""
        return tuple(column for column, _ in self.group)

    def alternatives(self, n_views: int, log_odds_center: float) -> Alternatives:
        """Return the alternatives of one of several views."""
        has_all = n_views <= MAX_VIEWS_WITH_ALL_CELLS
        gaps, edges = (GAPS, EDGES) if has_all else (FEW_GAPS, FEW_EDGES)
        return Alternatives(self.margin, log_odds_center, gaps, edges)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON; `from_json` reads them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"group": [[column, None if names is None else list(names)] for column, names in self.group]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> MonitorSettings:
        """Return the settings of a saved monitor."""
        unit = values["unit"]
        horizon = values["horizon"] if unit == "integer" else f"{values['horizon'] // 3600}h"
        group = dict(values["group"])
        settings = cls(**{**values, "horizon": horizon, "group": group})
        if unit != "integer":  # of whole seconds, which text does not express
            object.__setattr__(settings, "horizon", values["horizon"])
        return settings

    def describe_setting(self, name: str) -> str:
        """Return the value of a setting as text, as it can be given."""
        return format_horizon(self.horizon, self.unit) if name == "horizon" else describe(getattr(self, name))

    def refuse_others(self, given: Mapping[str, Any]) -> None:
        """Raise TO904 if settings differ from these, which the first call fixed."""
        base = {field.name: getattr(self, field.name) for field in fields(self)}
        base["horizon"] = 0 if given.get("unit", self.unit) == "integer" else "0d"
        base["group"] = dict(self.group)
        new = MonitorSettings(**{**base, **given})
        for name in given:
            if getattr(new, name) != getattr(self, name):
                raise InputError(
                    "TO904",
                    f"The first call fixed the settings of this monitor; {name} cannot change.",
                    f"{new.describe_setting(name)} instead of {self.describe_setting(name)}",
                    f"Leave out {argument(name, given[name])}, or start a new monitor.",
                )


def _read_groups(group: Any) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
    """Return the group columns, each with its declared values, or None if the first cohort declares them."""
    if group is None:
        return ()
    if isinstance(group, str):
        return ((group, None),)
    if isinstance(group, Mapping):
        items = list(group.items())
    else:
        try:
            items = [(column, None) if isinstance(column, str) else tuple(column) for column in group]
        except TypeError:
            items = [(group, None)]
    columns: list[tuple[str, tuple[str, ...] | None]] = []
    for column, values in items:
        if not isinstance(column, str) or isinstance(values, str):
            raise InputError(
                "TO203",
                "⟨group⟩ must be the name of a group column, several names, or a mapping of names to values.",
                describe(group),
                "For instance ⟨group='region'⟩ or ⟨group={'region': ['north', 'south']}⟩.",
            )
        if column in dict(columns):
            raise InputError(
                "TO203",
                "A group column is monitored once.",
                f"{describe(column)} twice",
                "Name each column once: its rows would count twice.",
            )
        columns.append((column, None if values is None else tuple(map(group_name, values))))
    return tuple(columns)


def group_name(value: Any) -> str:
    """Return the value of a group column as text; a column of integers that became floats has the same groups.

    >>> group_name(1.0), group_name(1), group_name(1.5), group_name("north")
    ('1', '1', '1.5', 'north')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
