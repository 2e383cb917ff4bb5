"""A table of displayed figures, before it is laid out for a terminal or a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueodds.core.results import figure
from trueodds.reports.words import digits

NAMES, DETAIL = False, True


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and whether what stands below it are numbers."""

    name: str
    numeric: bool = True
    detail: bool = False  # too much for a terminal's width; the page and the JSON have it


@dataclass(frozen=True, slots=True)
class Mark:
    """The numbers of a row that can be drawn: an error, its interval, its noise floor."""

    value: float | None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = None

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max((x for x in (self.value, self.high, self.noise_floor) if x is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    intro: str = ""
    keys: tuple[str, ...] = ()  # the class behind each row, where there is one
    marks: tuple[Mark, ...] = ()
    rest: int = 0  # rows left out

    def first(self, max_rows: int) -> Table:
        """At most so many rows, and how many were left out."""
        if len(self.rows) <= max_rows:
            return self
        return replace(
            self,
            rows=self.rows[:max_rows],
            keys=self.keys[:max_rows],
            marks=self.marks[:max_rows],
            rest=len(self.rows) - max_rows,
        )

    def brief(self) -> Table:
        """Without the columns of detail."""
        keep = [i for i, column in enumerate(self.columns) if not column.detail]
        return self._columns(keep)

    def filled(self) -> Table:
        """Without columns in which nothing stands; the first stays."""
        keep = [i for i in range(len(self.columns)) if i == 0 or any(row[i] not in ("", "–") for row in self.rows)]
        return self._columns(keep)

    def _columns(self, keep: Sequence[int]) -> Table:
        columns = tuple(self.columns[i] for i in keep)
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in keep) for row in self.rows))


def yes(value: Any) -> str:
    """A fact that holds or not."""
    return "yes" if value else "no"


def times(n: int | None) -> str:
    """A count, with its thousands apart."""
    return "–" if n is None else f"{n:,}"


def plain(value: Any) -> str:
    """A setting or a cell as it is read."""
    if isinstance(value, bool):
        return yes(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return digits(value) if abs(value) >= 1000 else figure(value)
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def pairs(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {plain(value)}" for name, value in settings.items()) or "–"
