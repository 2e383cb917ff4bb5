"""Expand paths and patterns to files, open and write them by the classes of their formats."""

from __future__ import annotations

import filecmp
import glob
import importlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, Note, install_command
from trueodds.core.suggestions import did_you_mean, suggest_names
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.table import ColumnSource, Writer

_REMOTE_PATH = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+://")
MAX_LISTED_COPIES = 5  # number of copies that a note names
_UNPACK_REMEDY = "Unpack it first, or convert it to .parquet, which is small by itself."
_CONVERSION_REMEDIES = {  # unsupported formats with advice, which is more helpful than a similar suffix
    ".xlsx": "Convert it to .csv.",
    ".json": "Convert it to .jsonl, one object per line, or to .csv.",
    ".npy": "It has one array: write logits and labels to one .npz, by np.savez(path, logits=logits, label=label).",
    ".pkl": "Pickles are never read: convert it to .parquet or .csv.",
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip"), _UNPACK_REMEDY),
}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format in which files are read and written; its classes are "module:Class" of `trueodds.io`."""

    suffixes: tuple[str, ...]
    table: str
    writer: str
    needs_pyarrow: bool = False
    table_with_pyarrow: str = ""  # replaces `table` if PyArrow is installed
    is_text: bool = False  # whether `CsvSettings` apply

    def open(self, path: str, csv_settings: CsvSettings) -> ColumnSource:
        """Open a file as a table."""
        if self.needs_pyarrow:
            require_pyarrow(path)
        name = self.table_with_pyarrow if self.table_with_pyarrow and _has_pyarrow() else self.table
        table: ColumnSource = _load(name)(path, csv_settings) if self.is_text else _load(name)(path)
        return table

    def make_writer(self, file: IO[bytes], target: str) -> Writer:
        """Return the writer into an open file, whose name is `target` in errors."""
        writer: Writer = _load(self.writer)(file, target)
        return writer


FORMATS = (
    FileFormat(  # .parquet.gzip is compressed inside, as pandas names it
        (".parquet", ".pq", ".parquet.gzip"),
        "arrow_files:ParquetTable",
        "arrow_files:ParquetWriter",
        needs_pyarrow=True,
    ),
    FileFormat(
        (".csv", ".tsv", ".txt"),
        "csv_files:CsvTable",
        "csv_files:CsvWriter",
        table_with_pyarrow="arrow_csv:ArrowCsvTable",
        is_text=True,
    ),
    FileFormat((".jsonl", ".ndjson"), "json_lines:JsonLinesTable", "json_lines:JsonLinesWriter"),
    FileFormat((".arrow", ".feather"), "arrow_files:FeatherTable", "arrow_files:FeatherWriter", needs_pyarrow=True),
    FileFormat((".npz",), "arrays:NpzTable", "arrays:NpzWriter"),
)
FORMAT_OF_SUFFIX = {suffix: file_format for file_format in FORMATS for suffix in file_format.suffixes}


def open_tables(path: str | os.PathLike[str], csv_settings: CsvSettings = DETECTED) -> list[ColumnSource]:
    files = matching_files(path)
    formats = [format_of(file) for file in files]  # all of them, so that an unknown format is refused before opening
    tables = []
    for file, file_format in zip(files, formats, strict=True):
        table = file_format.open(file, csv_settings)
        table.file, table.partition = file, _partition_of(file)
        tables.append(table)
    return tables


def check_csv_settings(data: Any, csv_settings: CsvSettings) -> None:
    """Raise TO205 if a separator or a decimal mark is specified for data without any text file."""
    if csv_settings.is_default:
        return
    paths = as_paths(data)
    if paths is None or not any(format_of(file).is_text for path in paths for file in matching_files(path)):
        name = "separator" if csv_settings.separator is not None else "decimal"
        got = f"⟨{name}={getattr(csv_settings, name)!r}⟩"
        *suffixes, last = [suffix for suffix, file_format in FORMAT_OF_SUFFIX.items() if file_format.is_text]
        problem = f"{name} is only for {', '.join(suffixes)} and {last} files."
        raise InputError("TO205", problem, got, "Omit it.")


def _partition_of(path: str) -> dict[str, str]:
    """Return the columns in the names of the folders of a file, as Hive and Spark write them.

    >>> _partition_of("data/region=north%20east/part-0.parquet")
    {'region': 'north east'}
    """
    folders = [part.partition("=") for part in Path(path).parts[:-1]]
    return {name: unquote(value) for name, equals, value in folders if name and equals}


def format_of(path: str, error_code: str = "TO302") -> FileFormat:
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
    """Return the error of a folder instead of a file, with the pattern of its files if it contains any."""
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


def _load(name: str) -> Any:
    """Import a class by its "module:Class"."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"trueodds.io.{module}"), attribute)


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
    with open_atomic(target, "TO314") as file, file_format.make_writer(file, str(target)) as writer:
        writer.write(columns, 0)
    return writer.notes


def writable_format(target: Path) -> FileFormat:
    """Return the format of an output file; raise TO314 for an unknown suffix, TO306 if it needs pyarrow."""
    file_format = format_of(str(target), "TO314")
    if file_format.needs_pyarrow:
        require_pyarrow(str(target))
    return file_format
