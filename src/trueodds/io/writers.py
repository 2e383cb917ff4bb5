"""How are columns written as a file of each format, chunk by chunk?"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from trueodds.core.printable import printable_json
from trueodds.core.results import strict
from trueodds.io.values import Place, plain


class Writer(ABC):
    """A table that is being written into an open file; `target` is its name in errors."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        self.file = file
        self.target = target

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(kind is None)

    @abstractmethod
    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows; the first of them is row `start` of the file."""

    @abstractmethod
    def close(self, complete: bool) -> None:
        """Finish the table, or let go of it; the file stays open."""


def writer_of(form: str, file: IO[bytes], target: str) -> Writer:
    """The writer of a format."""
    if form in ("parquet", "arrow"):
        from trueodds.io.arrow_writer import ArrowWriter

        return ArrowWriter(file, target, form)
    if form == "npz":
        return NpzWriter(file, target)
    return CsvWriter(file, target) if form == "csv" else JsonLinesWriter(file, target)


class _TextWriter(Writer):
    """Text in UTF-8, with the line ends of Unix."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")

    def close(self, complete: bool) -> None:
        """Write what is buffered."""
        self._text.detach()


class CsvWriter(_TextWriter):
    """Floats in the shortest form that reads back the same; a matrix becomes one column per class."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._rows = csv.writer(self._text, lineterminator="\n")

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows, after the line of names."""
        flat: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                flat |= {f"{name}_{j}": cells[:, j].tolist() for j in range(cells.shape[1])}
            else:
                flat[name] = [_cell(cell) for cell in listed(cells)]
        if start == 0:
            self._rows.writerow(flat)
        self._rows.writerows(zip(*flat.values(), strict=True))


class JsonLinesWriter(_TextWriter):
    """Strict JSON, one object per row; text that spells a number stays text."""

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows."""
        cells = [listed(column) for column in columns.values()]
        for row in zip(*cells, strict=True):
            record = dict(zip(columns, (strict(cell) for cell in row), strict=True))
            self._text.write(printable_json(json.dumps(record, allow_nan=False, ensure_ascii=False)) + "\n")


class NpzWriter(Writer):
    """Arrays under the names of the columns, written in one piece at the end."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._columns: dict[str, list[Any]] = {}

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Keep rows."""
        for name, cells in columns.items():
            self._columns.setdefault(name, []).append(cells if isinstance(cells, np.ndarray) else listed(cells))

    def close(self, complete: bool) -> None:
        """Write the arrays."""
        if not complete:
            return
        with zipfile.ZipFile(self.file, "w") as archive:
            for name, pieces in self._columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, self._array(name, pieces), allow_pickle=False)

    def _array(self, name: str, pieces: list[Any]) -> Any:
        if all(isinstance(piece, np.ndarray) for piece in pieces):
            return np.concatenate(pieces)
        return plain([cell for piece in pieces for cell in listed(piece)], Place(self.target, name))


def listed(cells: Any) -> list[Any]:
    """A column as Python values, whatever holds it."""
    if isinstance(cells, list):
        return cells
    values: list[Any] = cells.tolist()
    return values


def _cell(value: Any) -> Any:
    return json.dumps(strict(value)) if isinstance(value, (list, dict)) else value
