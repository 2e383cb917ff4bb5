"""The result of a study: tables with summary sentences as text, CSV, Markdown and JSON, and the texts of numbers."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.json_files import strict_json


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """A table with one row per case, a sentence that summarizes it, and the settings of the study."""

    name: str
    sentence: str
    rows: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any]
    legend: str = ""  # meaning of the columns
    also: tuple[StudyResult, ...] = ()  # further tables of the study

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the first row that has each."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def frame(self) -> Any:
        """The table as a pandas or Polars data frame, whichever is installed, else as a dict of columns."""
        table = {name: [row.get(name) for row in self.rows] for name in self.columns}
        for library in ("pandas", "polars"):
            try:
                return importlib.import_module(library).DataFrame(table)
            except ImportError:
                continue
        return table

    def markdown(self, columns: Sequence[str] | None = None) -> str:
        """The table in Markdown, with these columns or all of them."""
        names = columns or self.columns
        lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
        lines += [f"| {' | '.join(_format_cell(row.get(name)) for name in names)} |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def save(self, folder: str | Path) -> list[Path]:
        """Save this table and the further ones as `NAME.csv` and `NAME.md` in a folder, and return the paths."""
        folder_path = Path(folder)
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([dict(row) for row in self.rows])
        csv_path, markdown_path = folder_path / f"{self.name}.csv", folder_path / f"{self.name}.md"
        json_files.write_text(csv_path, text.getvalue(), "TO801")
        json_files.write_text(markdown_path, f"{self.sentence}\n\n{self.markdown()}\n{self.legend}\n", "TO801")
        return [csv_path, markdown_path, *(path for table in self.also for path in table.save(folder))]

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON-compatible dict."""
        document = {
            "schema": "trueodds.study/1",
            "study": self.name,
            "found": self.sentence,
            "rows": strict_json(list(self.rows)),
        }
        return document | ({"also": [table.to_dict() for table in self.also]} if self.also else {})

    def __str__(self) -> str:
        text = f"{self.sentence}\n\n{align_columns(self.rows, self.columns)}\n\n{self.legend}".rstrip()
        return "\n\n".join([text, *map(str, self.also)])


def format_count(n: int, noun: str) -> str:
    """A count with its noun, in the plural unless it is 1.

    >>> format_count(1, "net"), format_count(1500, "net")
    ('1 net', '1,500 nets')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def format_range(values: Iterable[float], digits: int = 3, between: str = " to ") -> str:
    """The minimum and maximum of some values, or one number if both are equal after rounding.

    >>> format_range([0.2, 0.1], 1), format_range([0.04831, 0.0484])
    ('0.1 to 0.2', '0.048')
    """
    numbers = sorted(values)
    return between.join(dict.fromkeys(f"{number:.{digits}f}" for number in (numbers[0], numbers[-1])))


def format_change(before: float, after: float, digits: int = 3) -> str:
    """The change of a number in words, after rounding to `digits`.

    >>> format_change(0.2, 0.1, 1), format_change(0.1, 0.2, 1), format_change(0.1001, 0.1, 1)
    ('falls from 0.2 to 0.1', 'rises from 0.1 to 0.2', 'stays at 0.1')
    """
    first, last = (f"{number:.{digits}f}" for number in (before, after))
    if first == last:
        return f"stays at {first}"
    verb = "falls" if after < before else "rises" if after > before else "goes"
    return f"{verb} from {first} to {last}"


def align_columns(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The table as text with aligned columns: text to the left, numbers to the right."""
    cells = [[_format_cell(row.get(name)) for name in columns] for row in rows]
    is_text_column = [any(isinstance(row.get(name), str) for row in rows) for name in columns]
    widths = [max(len(name), *(len(line[c]) for line in cells)) for c, name in enumerate(columns)]

    def align_line(texts: Sequence[str]) -> str:
        columns_of_line = zip(texts, widths, is_text_column, strict=True)
        aligned = [text.ljust(width) if is_text else text.rjust(width) for text, width, is_text in columns_of_line]
        return "  ".join(aligned).rstrip()

    return "\n".join([align_line(columns), *(align_line(texts) for texts in cells)])


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def make_folder(out: str | Path | None) -> Path | None:
    """The output folder as a path, created if it does not exist; None without one. Raises TO801 if that fails."""
    if out is None:
        return None
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError("TO801", "The folder cannot be created.", str(problem), "Choose another --out.") from None
    return folder
