"""Table of formatted text with title, headings and rows, which the terminal and the HTML page lay out."""

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
    detail: bool = False  # whether the column is left out in a terminal, which is narrower than the HTML page


# The columns of a table of labels and texts. They have no headings, and the texts may wrap.
LABEL_AND_TEXT = (TableColumn("", numeric=False), TableColumn("", numeric=False))


@dataclass(frozen=True, slots=True)
class ErrorMark:
    """An error, its interval and its noise floor, which the HTML page draws beside a row of a table."""

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
        """Return the table without its detail columns, for a terminal."""
        return self._select_columns([i for i, column in enumerate(self.columns) if not column.detail])

    def without_empty_columns(self) -> TextTable:
        """Return the table without columns in which every cell is empty or a dash; the first column stays."""
        has_content = [any(row[i] not in ("", "–") for row in self.rows) for i in range(len(self.columns))]
        return self._select_columns([i for i, is_shown in enumerate(has_content) if is_shown or i == 0])

    def _select_columns(self, indices: Sequence[int]) -> TextTable:
        """Return the table with these columns alone."""
        columns = tuple(self.columns[i] for i in indices)
        return replace(self, columns=columns, rows=tuple(tuple(row[i] for i in indices) for row in self.rows))
