"""Expand paths and patterns to files, open each by the reader of its format, and write columns to files."""

from __future__ import annotations

import csv
import filecmp
import glob
import importlib
import io
import json
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import MAX_VALUE_LENGTH, InputError, Note, install_command, shorten
from trueodds.core.json_files import strict_json
from trueodds.core.printable import is_formula, printable_json, to_printable
from trueodds.core.suggestions import did_you_mean, suggest_names
from trueodds.io.conversion import Place, to_array
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.table import Table, Writer, to_list

FORMAT_OF_SUFFIX = {  # formats that can be read and written, by the suffix of the file
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parquet.gzip": "parquet",  # compressed inside, as pandas names it
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
}
_REMOTE_PATH = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+://")
MAX_LISTED_COPIES = 5  # number of copies that a note names
_UNPACK_REMEDY = "Unpack it first, or convert it to .parquet, which is small by itself."
_CONVERSION_REMEDIES = {  # unsupported formats with advice, which is more helpful than a similar suffix
    ".xlsx": "Convert it to .csv.",
    ".json": "Convert it to .jsonl, one object per line, or to .csv.",
    ".pkl": "Pickles are never read: convert it to .parquet or .csv.",
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip"), _UNPACK_REMEDY),
}


def open_tables(path: str | os.PathLike[str], csv_settings: CsvSettings = DETECTED) -> list[Table]:
    files = matching_files(path)
    formats = [format_of(file) for file in files]  # all of them, so that an unknown format is refused before opening
    tables = []
    for file, file_format in zip(files, formats, strict=True):
        table = _table_constructor(file_format, csv_settings)(file)
        table.partition = _partition_of(file)
        tables.append(table)
    return tables


def check_csv_settings(data: Any, csv_settings: CsvSettings) -> None:
    """Raise TO205 if a separator or a decimal mark is specified for data without any text file."""
    if csv_settings.is_default:
        return
    paths = as_paths(data)
    if paths is None or not any(format_of(file) == "csv" for path in paths for file in matching_files(path)):
        name = "separator" if csv_settings.separator is not None else "decimal"
        got = f"⟨{name}={getattr(csv_settings, name)!r}⟩"
        raise InputError("TO205", f"{name} is only for .csv, .tsv and .txt files.", got, "Leave it out.")


def _partition_of(path: str) -> dict[str, str]:
    """Return the columns in the names of the folders of a file, as Hive and Spark write them.

    >>> _partition_of("data/region=north%20east/part-0.parquet")
    {'region': 'north east'}
    """
    folders = [part.partition("=") for part in Path(path).parts[:-1]]
    return {name: unquote(value) for name, equals, value in folders if name and equals}


def format_of(path: str, error_code: str = "TO302") -> str:
    """Return the format of a file from its suffix; raise `error_code` for an unknown suffix."""
    known = [suffix for suffix in FORMAT_OF_SUFFIX if Path(path).name.lower().endswith(suffix)]
    suffix = max(known, key=len, default=Path(path).suffix.lower())
    if suffix not in FORMAT_OF_SUFFIX:
        fix = _CONVERSION_REMEDIES.get(suffix) if error_code == "TO302" else None
        raise InputError(
            error_code,
            f"The suffix of {path} is not a known format.",
            repr(suffix),
            fix or suggest_names(suffix, FORMAT_OF_SUFFIX),
        )
    return FORMAT_OF_SUFFIX[suffix]


def require_pyarrow(name: str) -> None:
    if not _has_pyarrow():
        raise InputError("TO306", f"{name} needs pyarrow, which is not installed.", "", install_command("files"))


def matching_files(path: str | os.PathLike[str]) -> list[str]:
    """Return the files that match a path or pattern, or are in a partitioned folder, sorted by name."""
    path = os.path.expanduser(os.fspath(path))
    if os.path.isdir(path):
        return _partitioned_files(path)
    if os.path.exists(path):
        return [path]
    if os.path.islink(path):
        raise InputError("TO301", "The symbolic link leads to no file.", repr(path), "Correct the link.")
    if _REMOTE_PATH.match(path):
        fix = "Copy the file to this machine first, or read it with another library and pass its data frame."
        raise InputError("TO301", "Remote paths are not read.", repr(path), fix)
    if glob.has_magic(path):
        files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
        if files:
            return files
        raise InputError("TO301", "No file matches the pattern.", repr(path), "Check the path.")
    folder = os.path.dirname(path) or "."
    siblings = os.listdir(folder) if os.path.isdir(folder) else []
    fix = did_you_mean(os.path.basename(path), siblings) or "Check the path."
    raise InputError("TO301", "There is no such file.", repr(path), fix)


def _partitioned_files(folder: str) -> list[str]:
    """Return the files in folders named column=value, except hidden ones; raise TO301 if there is no such folder."""
    if not any("=" in name.strip("=") and os.path.isdir(os.path.join(folder, name)) for name in os.listdir(folder)):
        raise _folder_error(folder)
    paths = [
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if not name.startswith(("_", "."))
    ]
    if not paths:
        raise _folder_error(folder)
    return sorted(paths)


def _folder_error(folder: str) -> InputError:
    """Return the error of a folder in place of a file, with the pattern of its files if it contains any."""
    names = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    suffixes = Counter(suffix for name in names if (suffix := Path(name).suffix.lower()) in FORMAT_OF_SUFFIX)
    problem = f"{folder} is a folder, not a file."
    if not suffixes:
        got = (
            f"a folder with {len(names):,} other {'file' if len(names) == 1 else 'files'}"
            if names
            else "a folder without files"
        )
        fix = f"Name a file, or a pattern, of the formats {', '.join(FORMAT_OF_SUFFIX)}."
        return InputError("TO301", problem, got, fix)
    ((suffix, count),) = suffixes.most_common(1)
    fix = f"Name its files, for instance '{os.path.join(folder, '*' + suffix)}'."
    got = f"a folder with {count:,} {suffix} {'file' if count == 1 else 'files'}"
    return InputError("TO301", problem, got, fix)


def _table_constructor(file_format: str, csv_settings: CsvSettings) -> Callable[[str], Table]:
    """Return the function that opens a file of this format as a table; its library is imported only then."""
    has_arrow = file_format != "csv" or _has_pyarrow()
    module, name = {
        "npz": ("arrays", "NpzTable"),
        "jsonl": ("json_lines", "JsonLinesTable"),
        "parquet": ("arrow_files", "ParquetTable"),
        "arrow": ("arrow_files", "FeatherTable"),
        "csv": ("arrow_csv", "ArrowCsvTable") if has_arrow else ("csv_files", "CsvTable"),
    }[file_format]
    settings = {"settings": csv_settings} if file_format == "csv" else {}

    def open_table(path: str) -> Table:
        if module.startswith("arrow_"):
            require_pyarrow(path)
        table: Table = getattr(importlib.import_module(f"trueodds.io.{module}"), name)(path, **settings)
        return table

    return open_table


def _has_pyarrow() -> bool:
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        return False
    return True


def as_paths(data: Any) -> Iterable[str | os.PathLike[str]] | None:
    """Return the path or the list of paths, or None if the data are not paths."""
    if isinstance(data, (str, os.PathLike)):
        return [data]
    if isinstance(data, list) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
        return data
    return None


def copy_notes(paths: Sequence[str]) -> list[Note]:
    """Return a note if files that are read together have the same content; names of tables in memory are ignored."""
    copies = list(_find_copies(paths) if len(paths) > 1 else ())
    if not copies:
        return []
    listed = ", ".join(f"{copy} is a copy of {first}" for copy, first in copies[:MAX_LISTED_COPIES])
    more = f", and {len(copies) - MAX_LISTED_COPIES:,} more" if len(copies) > MAX_LISTED_COPIES else ""
    return [Note("TN172", f"Files have the same content, so their rows count twice: {listed}{more}.")]


def _find_copies(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield each file whose content is that of an earlier one, and the earlier one.

    Only files of equal size are compared, up to the first difference.
    """
    paths_by_size: dict[int, list[str]] = defaultdict(list)
    for path in paths:
        try:
            same_size_paths = paths_by_size[os.path.getsize(path)]
            first = next((earlier for earlier in same_size_paths if filecmp.cmp(earlier, path, shallow=False)), None)
        except OSError:  # a data frame in memory
            continue
        if first is None:
            same_size_paths.append(path)
        else:
            yield path, first


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
