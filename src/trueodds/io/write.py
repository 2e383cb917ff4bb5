"""Write columns as CSV, JSON Lines, .npz, Parquet or Arrow files."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import MAX_VALUE_LENGTH, Note, shorten
from trueodds.core.json_files import strict_json
from trueodds.core.printable import is_formula, printable_json, to_printable
from trueodds.io.conversion import Place, to_array
from trueodds.io.files import format_of, require_pyarrow
from trueodds.io.table import Writer, to_list


def write_columns(path: str, columns: Mapping[str, Any]) -> tuple[Note, ...]:
    """Write columns of equal length to a file atomically, in the format of the suffix; return notes on the cells."""
    target = Path(os.path.expanduser(path))
    file_format = writable_format(target)
    with open_atomic(target, "TO314") as file, make_writer(file_format, file, str(target)) as writer:
        writer.write(columns, 0)
    return writer.notes


def writable_format(target: Path) -> str:
    """Return the format of an output file; raise TO314 for an unknown suffix, TO306 if it needs pyarrow."""
    file_format = format_of(str(target), "TO314")
    if file_format in ("parquet", "arrow"):
        require_pyarrow(str(target))
    return file_format


def make_writer(file_format: str, file: IO[bytes], target: str) -> Writer:
    """Return the writer of a format into an open file, whose name is `target` in errors."""
    if file_format in ("parquet", "arrow"):
        from trueodds.io.arrow_files import ArrowWriter

        return ArrowWriter(file, target, file_format)
    if file_format == "npz":
        return NpzWriter(file, target)
    if file_format == "csv":
        return CsvWriter(file, target, "," if target.lower().endswith(".csv") else "\t")
    return JsonLinesWriter(file, target)


class _TextWriter(Writer):
    """Base class of writers of text in UTF-8 with Unix line ends."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")

    def close(self, complete: bool) -> None:
        self._text.detach()


class CsvWriter(_TextWriter):
    """Writer of CSV: floats in the shortest form that round-trips, and a matrix as one column per class."""

    def __init__(self, file: IO[bytes], target: str, separator: str) -> None:
        super().__init__(file, target)
        self._rows = csv.writer(self._text, delimiter=separator, lineterminator="\n")

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        flat_columns: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                flat_columns |= {f"{name}_{j}": cells[:, j].tolist() for j in range(cells.shape[1])}
            else:
                flat_columns[name] = [_to_csv_cell(cell) for cell in to_list(cells)]
        if not self.notes:
            self.notes = self._formula_notes([name for name in flat_columns if start == 0], flat_columns)
        if start == 0:
            self._rows.writerow(flat_columns)
        self._rows.writerows(zip(*flat_columns.values(), strict=True))

    def _formula_notes(self, header: list[str], columns: Mapping[str, list[Any]]) -> tuple[Note, ...]:
        """Return a note if a text would be evaluated by a spreadsheet program.

        Names and texts are written as they are, because the file will be read again.
        """
        cells = chain(header, *columns.values())
        formula = next((cell for cell in cells if isinstance(cell, str) and is_formula(cell)), None)
        if formula is None:
            return ()
        text = (
            f"{self.target} has texts, such as {to_printable(shorten(formula, MAX_VALUE_LENGTH))!r}, that spreadsheet"
            " programs evaluate as formulas. They were written as they are. Import these columns as text, or write"
            " .parquet or .jsonl."
        )
        return (Note("TN340", text),)


class JsonLinesWriter(_TextWriter):
    """Writer of JSON Lines: strict JSON with one object per row; numerals in text stay text."""

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        cells = [to_list(column) for column in columns.values()]
        for row in zip(*cells, strict=True):
            record = dict(zip(columns, (strict_json(cell) for cell in row), strict=True))
            self._text.write(printable_json(json.dumps(record, allow_nan=False, ensure_ascii=False)) + "\n")


class NpzWriter(Writer):
    """Writer of .npz: arrays under the names of the columns, written as a whole at the end."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._columns: dict[str, list[Any]] = {}

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        for name, cells in columns.items():
            self._columns.setdefault(name, []).append(cells if isinstance(cells, np.ndarray) else to_list(cells))

    def close(self, complete: bool) -> None:
        if not complete:
            return
        with zipfile.ZipFile(self.file, "w") as archive:
            for name, pieces in self._columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, self._concatenate_pieces(name, pieces), allow_pickle=False)

    def _concatenate_pieces(self, name: str, pieces: list[Any]) -> Any:
        if all(isinstance(piece, np.ndarray) for piece in pieces):
            return np.concatenate(pieces)
        return to_array([cell for piece in pieces for cell in to_list(piece)], Place(self.target, name))


def _to_csv_cell(value: Any) -> Any:
    return json.dumps(strict_json(value)) if isinstance(value, (list, dict)) else value
