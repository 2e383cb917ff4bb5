"""A CSV file read without any library, and the row of a broken one that is at fault."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.csv_chunks import Chunk, chunks
from trueodds.io.spelling import parsed, settled, spelled, valued
from trueodds.io.table import Batch, Table, once
from trueodds.io.values import Place

_HEAD = 1 << 16  # bytes that are read for the header


class Rows:
    """The rows of a chunk as cells of text; every row is as long as the header."""

    def __init__(self, chunk: Chunk, columns: Sequence[str], start: int, headed: bool) -> None:
        self.chunk, self.columns, self.start, self.headed = chunk, columns, start, headed
        self._cells: list[list[str]] | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def cells(self) -> list[list[str]]:
        """The cells, row by row."""
        if self._cells is None:
            records = self.chunk.records()
            if self.headed:
                next(records)
            self._cells = [self._checked(row, line, cells) for row, (line, cells) in enumerate(records, self.start)]
        return self._cells

    def _checked(self, row: int, line: int, cells: list[str]) -> list[str]:
        if len(cells) != len(self.columns):
            raise InputError(
                "TO311",
                f"Every row of {self.chunk.path} must have {len(self.columns)} cells, as its first line has.",
                f"{len(cells)} in row {row} (line {self.chunk.line_of(line)})",
                "Mend that line; a cell that holds a comma or a line break stands in double quotes.",
            )
        return cells


Part = tuple[Rows, int, int]  # rows, from the first of these numbers up to the second


class CsvTable(Table):
    """A comma-separated file in UTF-8 whose first line names the columns."""

    format = "csv"

    def __init__(self, path: str) -> None:
        self.name = path
        header = next((cells for chunk in chunks(path, _HEAD) for _, cells in chunk.records()), None)
        if header is None:
            raise InputError("TO312", f"{path} is empty.", "no line", "Its first line must name the columns.")
        self.columns = once(path, header)

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Cells parsed as numbers, or as what the first batch of their column reads as."""
        kinds = dict.fromkeys(numeric, "number")
        for start, parts in self._parts(size, self._reader(names, numeric)):
            yield self._parsed(parts, names, kinds, start)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every column's cells as the file spells them."""
        for _, parts in self._parts(size, Rows):
            yield self._cells(parts, self.columns)

    def valued_chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, list[Any]]]:
        """Every column, those not numeric as the values that their cells spell, for formats that tell 1 from "1"."""
        kinds: dict[str, str] = {}
        for cells in self.chunks(numeric, size):
            columns: dict[str, list[Any]] = {}
            for name, column in cells.items():
                kind = kinds.setdefault(name, "text" if name in numeric else spelled(column))
                columns[name] = [valued(cell, kind) for cell in column]
            yield columns

    def numbers(self, cells: Any, place: Place) -> Array:
        """Text cells as numbers."""
        return parsed(cells, "number", place)

    def _reader(self, names: Sequence[str], numeric: Collection[str]) -> Callable[..., Rows]:
        """What makes the rows of a chunk, of which these columns are read."""
        return Rows

    def _parts(self, size: int, reader: Callable[..., Rows]) -> Iterator[tuple[int, list[Part]]]:
        """The rows of each batch with the number of the first, whatever the chunks are that they lie in."""
        parts: list[Part] = []
        start, n, total = 0, 0, 0
        for number, chunk in enumerate(chunks(self.name)):
            rows = reader(chunk, self.columns, total, number == 0)
            first, total = 0, total + len(rows)
            while first < len(rows):
                last = min(len(rows), first + size - n)
                parts.append((rows, first, last))
                first, n = last, n + last - first
                if n == size:
                    yield start, parts
                    parts, start, n = [], start + size, 0
        if parts:
            yield start, parts

    def _parsed(self, parts: list[Part], names: Sequence[str], kinds: dict[str, str], start: int) -> Batch:
        """One batch; what the columns of the first one read as is kept in `kinds`."""
        cells = self._cells(parts, names)
        for name in names:
            if name not in kinds:
                kinds[name] = settled(cells[name])
        return {name: parsed(cells[name], kinds[name], Place(self.name, name, start)) for name in names}

    def _cells(self, parts: list[Part], names: Sequence[str]) -> dict[str, list[str]]:
        places = {name: i for i, name in enumerate(self.columns)}
        rows = [row for part, first, last in parts for row in part.cells[first:last]]
        return {name: [row[places[name]] for row in rows] for name in names}
