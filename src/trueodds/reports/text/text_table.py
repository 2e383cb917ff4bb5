"""Tables of text with a title, headings and marks, which the terminal and the HTML page lay out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

AuditDict = Mapping[str, Any]  # an audit as JSON values (schema trueodds.audit/1), as `Audit.to_dict` returns it


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The heading of a column, and how the column is shown."""

    name: str
    numeric: bool = True  # numbers are aligned to the right, names to the left
    detail: bool = False  # whether the column is only on the page and in the JSON, for want of width in a terminal


# The columns of a list of facts: labels, and texts that may wrap.
LABEL_AND_TEXT = (TableColumn("", numeric=False), TableColumn("", numeric=False))


@dataclass(frozen=True, slots=True)
class ErrorMark:
    """The numbers of a row that the page draws: an error, its interval and its noise floor."""

    value: float | None
    low: float | None = None
    high: float | None = None
    noise_floor: float | None = None

    @property
    def largest_value(self) -> float:
        """The largest of these numbers."""
        return max((x for x in (self.value, self.high, self.noise_floor) if x is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text, with its title, introduction and column headings."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]  # one text per column in each row
    intro: str = ""  # how to read the table
    row_classes: tuple[str, ...] = ()  # the class of each row, by which the page filters; empty without classes
    marks: tuple[ErrorMark, ...] = ()  # what the page draws beside each row; empty if nothing
    n_omitted: int = 0  # number of omitted rows

    def head(self, max_rows: int) -> TextTable:
        """Return the first `max_rows` rows, with the number of omitted ones."""
        if len(self.rows) <= max_rows:
            return self
        return replace(
            self,
            rows=self.rows[:max_rows],
            row_classes=self.row_classes[:max_rows],
            marks=self.marks[:max_rows],
            n_omitted=len(self.rows) - max_rows,
        )

    def without_details(self) -> TextTable:
        """Return the table without its columns of detail, for a terminal."""
        keep = [i for i, column in enumerate(self.columns) if not column.detail]
        return self._select_columns(keep)

    def without_empty_columns(self) -> TextTable:
        """Return the table without empty columns; the first column stays."""
        keep = [i for i in range(len(self.columns)) if i == 0 or any(row[i] not in ("", "–") for row in self.rows)]
        return self._select_columns(keep)

    def _select_columns(self, keep: Sequence[int]) -> TextTable:
        columns = tuple(self.columns[i] for i in keep)
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in keep) for row in self.rows))
