"""Write columns as CSV, JSON Lines, .npz, Parquet or Arrow files, and copy a file with recalibrated probabilities."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError
from trueodds.core.json_files import strict_json
from trueodds.core.printable import printable_json
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.probabilities import check_logits, check_probabilities, softmax
from trueodds.io import files
from trueodds.io.blocks import Block, BlockSegment, column_matrix
from trueodds.io.columns import ColumnRoles
from trueodds.io.conversion import Place, to_array
from trueodds.io.csv_reader import CsvTable
from trueodds.io.files import format_of, require_pyarrow
from trueodds.io.source import RowProgress, Source
from trueodds.io.stated_confidence import PercentScale
from trueodds.io.table import Table, Writer, to_list
from trueodds.io.table_source import TableSource


def write_columns(path: str, columns: Mapping[str, Any]) -> None:
    """Write columns of equal length to a file atomically, in the format of the suffix."""
    target = Path(path).expanduser()
    file_format = files.format_of(str(target), "TO314")
    if file_format in ("parquet", "arrow"):
        files.require_pyarrow(str(target))
    with open_atomic(target, "TO314") as file, make_writer(file_format, file, str(target)) as writer:
        writer.write(columns, 0)


def make_writer(file_format: str, file: IO[bytes], target: str) -> Writer:
    """Return the writer of a format."""
    if file_format in ("parquet", "arrow"):
        from trueodds.io.arrow_files import ArrowWriter

        return ArrowWriter(file, target, file_format)
    if file_format == "npz":
        return NpzWriter(file, target)
    return CsvWriter(file, target) if file_format == "csv" else JsonLinesWriter(file, target)


class _TextWriter(Writer):
    """Base class of writers of text in UTF-8 with Unix line ends."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")

    def close(self, complete: bool) -> None:
        """Write the buffer."""
        self._text.detach()


class CsvWriter(_TextWriter):
    """Writer of CSV: floats in the shortest form that round-trips, and a matrix as one column per class."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._rows = csv.writer(self._text, lineterminator="\n")

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows; the first call writes the header before them."""
        flat_columns: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                flat_columns |= {f"{name}_{j}": cells[:, j].tolist() for j in range(cells.shape[1])}
            else:
                flat_columns[name] = [_to_csv_cell(cell) for cell in to_list(cells)]
        if start == 0:
            self._rows.writerow(flat_columns)
        self._rows.writerows(zip(*flat_columns.values(), strict=True))


class JsonLinesWriter(_TextWriter):
    """Writer of JSON Lines: strict JSON with one object per row; numerals in text stay text."""

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows."""
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
        """Keep the rows in memory."""
        for name, cells in columns.items():
            self._columns.setdefault(name, []).append(cells if isinstance(cells, np.ndarray) else to_list(cells))

    def close(self, complete: bool) -> None:
        """Write the archive of all rows."""
        if not complete:
            return
        with zipfile.ZipFile(self.file, "w") as archive:
            for name, pieces in self._columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, self._concatenate_pieces(name, pieces), allow_pickle=False)

    def _concatenate_pieces(self, name: str, pieces: list[Any]) -> Any:
        """Concatenate the pieces of a column, which are arrays or lists."""
        if all(isinstance(piece, np.ndarray) for piece in pieces):
            return np.concatenate(pieces)
        return to_array([cell for piece in pieces for cell in to_list(piece)], Place(self.target, name))


def _to_csv_cell(value: Any) -> Any:
    return json.dumps(strict_json(value)) if isinstance(value, (list, dict)) else value


def rewrite(
    source: Source,
    transform: Callable[[Array], Any],
    out: str | os.PathLike[str],
    *,
    logits: bool = False,
    percent: PercentScale | None = None,
    progress: RowProgress | None = None,
) -> int:
    """Write the rows of a file with other probabilities, and return the number of rows written.

    Columns, names and order stay; the probability columns hold the new values in float64. Columns of logits become
    columns of probabilities, named ``p_…`` instead. No label is needed: read with ``label=None``.

    Parameters
    ----------
    source : Source
        Of a file or of several; they are written into one.
    transform : callable
        From (n, K) float64 probabilities to (n, K), for instance a fitted calibrator's `predict_proba`.
    logits : bool
        Whether `transform` takes the logits of the file instead.
    percent : PercentScale, optional
        Says that a confidence of 70 means 70 %, and counts values that may be fractions; the new ones are written
        likewise.
    out : path
        .parquet, .csv, .jsonl, .ndjson, .arrow, .feather or .npz. It appears when all is written, or not at all;
        it may be the file that is read.

    Raises
    ------
    InputError
        TO314 for a source that is no file, an unknown suffix, or rows that the format cannot hold; TO317 if no
        percentage is above 1.
    """
    if not isinstance(source, TableSource):
        raise InputError("TO314", "Only files can be rewritten.", source.name, "Use predict_proba on the array.")
    target = Path(out).expanduser()
    file_format = format_of(str(target), "TO314")
    if file_format in ("parquet", "arrow"):
        require_pyarrow(str(target))
    if not target.parent.is_dir():
        raise InputError("TO314", "The output folder does not exist.", str(target.parent), "Create it first.")
    rows_written = 0
    with open_atomic(target, "TO314") as file, make_writer(file_format, file, str(target)) as writer:
        for columns, n in _transform_chunks(source, transform, file_format, logits, percent):
            writer.write(columns, rows_written)
            rows_written += n
            if progress is not None:
                progress(rows_written, source.rows)
        if percent is not None:
            percent.refuse_fractions()
    return rows_written


def _transform_chunks(
    source: TableSource, transform: Callable[[Array], Any], file_format: str, logits: bool, percent: PercentScale | None
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the columns of each chunk with the transformed probabilities, and the number of its rows.

    `percent` counts confidences that are percentages, and `logits` says that `transform` takes logits.
    """
    roles, columns = source.roles, source.tables[0].columns
    is_empty = True
    for table in source.tables:
        if set(table.columns) != set(columns):
            mismatched = sorted(set(table.columns) ^ set(columns))[0]
            raise InputError(
                "TO309",
                f"Files that are written into one file must have the same columns, but those of {source.tables[0].name}"
                f" and {table.name} differ.",
                f"{mismatched!r} in only one of them",
                "Apply the calibrator to each file separately.",
            )
        next_row = 0
        for chunk in _iterate_chunks(table, roles, source.max_batch_rows, file_format):
            values = {name: table.to_numbers(chunk[name], Place(table.name, name, next_row)) for name in roles.probs}
            p = column_matrix(values, roles.probs, table.name, next_row)
            if len(p) == 0:
                continue
            block = Block((BlockSegment(table.name, next_row, len(p)),), p, None, None, {}, None)
            try:
                P = check_and_convert_probabilities(
                    p if percent is None else p / 100, roles, source.sum_tolerance, logits
                )
            except InputError as problem:
                raise block.locate_error(problem, roles, is_part=True) from None
            transformed = np.asarray(transform(P), dtype=np.float64)
            if transformed.shape != P.shape:
                raise InputError(
                    "TO314",
                    "The transform must return the number of rows and classes that it receives.",
                    f"{transformed.shape} for {P.shape}",
                    "Apply a calibrator that was fitted for these classes.",
                )
            if percent is not None:
                percent.add_column(p, table.name, next_row)
                transformed = transformed * 100
            yield (
                _replace_columns({name: chunk[name] for name in columns}, roles, transformed, p.ndim, table.name),
                len(p),
            )
            next_row, is_empty = next_row + len(p), False
    if is_empty:
        raise InputError("TO312", f"{source.name} is empty.", "0 rows", "Give at least one row.")


def _iterate_chunks(table: Table, roles: ColumnRoles, size: int, file_format: str) -> Iterator[dict[str, Any]]:
    """Return an iterator of chunks of all columns, with typed values if the target format `form` has types."""
    numeric = frozenset(roles.probs)
    if file_format in ("parquet", "arrow") and hasattr(table, "typed_chunks"):
        return table.typed_chunks(numeric, size)
    if file_format in ("jsonl", "npz") and isinstance(table, CsvTable):
        return table.valued_chunks(numeric, size)
    return table.chunks(numeric, size)


def check_and_convert_probabilities(
    p: Array, roles: ColumnRoles, sum_tolerance: float | None = None, logits: bool = False
) -> Array:
    """Return checked probabilities (n, K) in float64 from the columns; a single column is that of the second class.

    With `logits`, columns of logits are unchanged.

    >>> check_and_convert_probabilities(np.array([0.25]), ColumnRoles("classes", ("p",), None, ("label",))).tolist()
    [[0.75, 0.25]]
    """
    values = arrays.as_float_array(p, "the probabilities")
    arrays.check_shape(values, "the probabilities")
    if roles.logits and logits:
        values = check_logits(values)
        return np.stack([np.zeros_like(values), values], axis=1) if values.ndim == 1 else values
    if roles.logits:
        values = softmax(values)
    else:
        check_probabilities(values, p.dtype, sum_tolerance, check_sums=roles.kind in ("classes", "votes"))
    values = values.astype(np.float64)
    return np.stack([1 - values, values], axis=1) if values.ndim == 1 else values


def _replace_columns(
    chunk: dict[str, Any], roles: ColumnRoles, transformed: Array, ndim: int, name: str
) -> dict[str, Any]:
    """Return a chunk with recalibrated probabilities (n, K) in place of the columns of the original ones."""
    if len(roles.probs) > 1:
        new_columns = {column: transformed[:, j] for j, column in enumerate(roles.probs)}
    else:
        new_columns = {roles.probs[0]: transformed if ndim == 2 else transformed[:, 1]}
    names = dict(zip(roles.probs, output_column_names(roles), strict=True))
    renamed = {names.get(column, column): new_columns.get(column, cells) for column, cells in chunk.items()}
    if len(renamed) < len(chunk):
        clash = next(new_name for column, new_name in names.items() if new_name != column and new_name in chunk)
        raise InputError(
            "TO313",
            f"{name} already has a column with the name of the new probabilities.",
            repr(clash),
            "Rename or remove it.",
        )
    return renamed


def output_column_names(roles: ColumnRoles) -> tuple[str, ...]:
    """Return the names of the written probability columns: those that were read, but p_… in place of logits."""
    if not roles.logits:
        return roles.probs
    if len(roles.probs) == 1:
        return ("p",)
    suffixes = (
        roles.suffixes if roles.suffixes is not None and roles.suffixes != roles.probs else range(len(roles.probs))
    )
    return tuple(f"p_{suffix}" for suffix in suffixes)
