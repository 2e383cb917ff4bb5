"""How is a CSV file read without any library, and which row of a broken one is at fault?"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trueodds.core.errors import InputError
from trueodds.sources.spelling import parsed, settled, spelled, valued
from trueodds.sources.table import Array, Batch, Table, once
from trueodds.sources.values import Place


class CsvTable(Table):
    """A comma-separated file in UTF-8 whose first line names the columns."""

    format = "csv"

    def __init__(self, path: str) -> None:
        self.name = path
        with self._opened() as lines:
            header = next(csv.reader(lines, strict=True), None)
        if not header:
            raise InputError("TO312", f"{path} is empty.", "no line", "Its first line must name the columns.")
        self.columns = once(path, header)

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Cells parsed as numbers, or as what the first batch of their column reads as."""
        kinds = dict.fromkeys(numeric, "number")
        start = 0
        for cells in self._cells(names, size):
            for name in names:
                kinds.setdefault(name, settled(cells[name]))
            yield {name: parsed(cells[name], kinds[name], Place(self.name, name, start)) for name in names}
            start += len(cells[names[0]])

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every column's cells as the file spells them."""
        yield from self._cells(self.columns, size)

    def valued_chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, list[Any]]]:
        """Every column, those not numeric as the values that their cells spell, for formats that tell 1 from "1"."""
        kinds: dict[str, str] = {}
        for cells in self._cells(self.columns, size):
            columns: dict[str, list[Any]] = {}
            for name, column in cells.items():
                kind = kinds.setdefault(name, "text" if name in numeric else spelled(column))
                columns[name] = [valued(cell, kind) for cell in column]
            yield columns

    def numbers(self, cells: Any, place: Place) -> Array:
        """Text cells as numbers."""
        return parsed(cells, "number", place)

    def _cells(self, names: Sequence[str], size: int) -> Iterator[dict[str, list[str]]]:
        places = [self.columns.index(name) for name in names]
        with self._opened() as lines:
            reader = csv.reader(lines, strict=True)
            next(reader)
            rows: list[list[str]] = []
            row = 0
            for cells in reader:
                if not cells and len(self.columns) > 1:
                    continue  # a blank line
                if len(cells) != len(self.columns):
                    raise self._ragged(row, reader.line_num, len(cells))
                rows.append(cells)
                row += 1
                if len(rows) == size:
                    yield {name: [each[i] for each in rows] for name, i in zip(names, places, strict=True)}
                    rows = []
            if rows:
                yield {name: [each[i] for each in rows] for name, i in zip(names, places, strict=True)}

    def _ragged(self, row: int, line: int, got: int) -> InputError:
        return InputError(
            "TO311",
            f"Every row of {self.name} must have {len(self.columns)} cells, as its first line has.",
            f"{got} in row {row} (line {line})",
            "Mend that line; a cell that holds a comma or a line break stands in double quotes.",
        )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with open(self.name, newline="", encoding="utf-8-sig") as lines:
                yield lines
        except csv.Error as problem:
            raise InputError(
                "TO311", f"{self.name} has a broken line.", str(problem), "Mend the quotes of that line."
            ) from None
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(
                "TO303", f"{self.name} cannot be read as csv.", str(problem)[:200], "Write it as text in UTF-8."
            ) from None
