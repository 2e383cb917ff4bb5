"""Tables of NumPy arrays under keys: a dict of arrays or an .npz file, which is also written."""

from __future__ import annotations

import itertools
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.conversion import Place, to_array
from trueodds.io.table import (
    ROWS_OF_FIRST_CELL,
    ColumnBatch,
    ColumnSource,
    Writer,
    check_column_names,
    refuse_repeated_columns,
    slice_batches,
    to_list,
)

MAX_DEFLATE_RATIO = 1032  # maximum compression ratio of deflate
# zipfile raises RuntimeError for encrypted members and for unknown compression methods.
ARCHIVE_ERRORS = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
# NumPy parses the header of an array as a Python literal.
HEADER_ERRORS = (SyntaxError, tokenize.TokenError, TypeError, RecursionError, MemoryError, OverflowError)


class MappingTable(ColumnSource):
    """A mapping of names to arrays of equal lengths."""

    has_keys = True
    format = "arrays"
    shares_memory = True

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.name = "the mapping"
        self.columns = tuple(str(key) for key in arrays)
        self._arrays = dict(zip(self.columns, arrays.values(), strict=True))
        self.text_columns = frozenset(name for name in self.columns if isinstance(self.first_cell(name), str))
        lengths = {np.shape(array)[0] for array in self._arrays.values() if np.ndim(array)}
        self.rows = lengths.pop() if len(lengths) == 1 else None

    def float_arrays(self) -> dict[str, tuple[int, ...]]:
        shapes = {name: np.shape(array) for name, array in self._arrays.items()}
        return {
            name: shape
            for name, shape in shapes.items()
            if len(shape) in (1, 2) and _is_float(self._arrays[name], Place(self.name, name))
        }

    def n_rows_of(self, name: str) -> int | None:
        shape = np.shape(self._arrays[name])
        return shape[0] if shape else None

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        arrays = dict(self.columns_of_chunk(self._arrays, names, 0))
        return _slice_arrays(self.name, arrays, size)

    def first_cell(self, column: str) -> Any:
        array = self._arrays[column]
        if not (isinstance(array, (list, tuple)) or np.ndim(array) == 1):
            return None
        return next((cell for cell in islice(array, ROWS_OF_FIRST_CELL) if cell is not None), None)


def _is_float(array: Any, place: Place) -> bool:
    """Return whether an array is read as floats; one that cannot be read is not."""
    try:
        return to_array(array, place).dtype.kind == "f"
    except InputError:
        return False


class NpzTable(ColumnSource):
    """An .npz archive of arrays, read whole; pickled ones are never opened."""

    has_keys = True
    format = "npz"

    def __init__(self, path: str) -> None:
        self.name = path
        with self._open_archive() as archive:
            names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
            self.columns = check_column_names(path, names)
            refuse_repeated_columns(path, self.columns, self.columns)
            headers = {name: _try_header(archive, info) for name, info in zip(names, archive.infolist(), strict=True)}
        self._headers = {name: header for name, header in headers.items() if header is not None}
        self.text_columns = frozenset(name for name, (_, dtype) in self._headers.items() if dtype.kind == "U")
        lengths = {shape[0] for shape, _ in self._headers.values() if shape}
        self.rows = lengths.pop() if len(lengths) == 1 else None

    def float_arrays(self) -> dict[str, tuple[int, ...]]:
        return {
            name: shape for name, (shape, dtype) in self._headers.items() if dtype.kind == "f" and len(shape) in (1, 2)
        }

    def n_rows_of(self, name: str) -> int | None:
        shape, _ = self._headers.get(name, ((), None))
        return shape[0] if shape else None

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Yield batches of views of the arrays; only the named ones are read, if their headers have fitting shapes."""
        check_shapes(self.name, {name: self._headers[name][0] for name in names if name in self._headers})
        arrays = {name: to_array(array, self.place(name, 0)) for name, array in self._load_arrays(names).items()}
        return _slice_arrays(self.name, arrays, size)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        yield self._load_arrays(self.columns)

    def _load_arrays(self, names: Sequence[str]) -> dict[str, Array]:
        with self._open_archive() as archive:
            infos = dict(zip(self.columns, archive.infolist(), strict=True))
            return {name: _read_array(archive, infos[name], Place(self.name, name)) for name in names}

    @contextmanager
    def _open_archive(self) -> Iterator[zipfile.ZipFile]:
        """Open the archive; a damaged one raises TO303."""
        try:
            with zipfile.ZipFile(self.name) as archive:
                yield archive
        except InputError:
            raise
        except ARCHIVE_ERRORS as problem:
            got = str(problem)[:200] or type(problem).__name__
            fix = "Write it with numpy.savez."
            raise InputError("TO303", f"{self.name} cannot be read as npz.", got, fix) from None


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: Place) -> Array:
    """Read one array; memory is allocated after the length of the entry is checked against its header."""
    if not info.filename.endswith(".npy"):
        raise place.wrong_type_error(
            f"the archive entry {info.filename!r}, which is not an .npy array", "Write it with numpy.savez."
        )
    with archive.open(info) as file:
        shape, dtype = _read_header(file)
        if dtype.hasobject:
            raise place.wrong_type_error("an array of objects", "Save names with dtype=str; pickles are never read.")
        declared_size, actual_size = file.tell() + dtype.itemsize * math.prod(shape), _entry_bytes(archive, info)
        if declared_size != actual_size:
            raise ValueError(f"{place.column} with a header for {declared_size:,} bytes in {actual_size:,}")
    with archive.open(info) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _entry_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Return the number of bytes of an archive entry, limited by the file size whatever the directory claims."""
    max_ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: MAX_DEFLATE_RATIO}.get(info.compress_type)
    if max_ratio is None:
        raise ValueError(f"{info.filename} in a compression that numpy does not write")
    return min(info.file_size, max_ratio * min(info.compress_size, os.path.getsize(str(archive.filename))))


def _try_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Return the shape and the dtype of an array, or None if its header cannot be read."""
    try:
        with archive.open(info) as file:
            return _read_header(file)
    except ARCHIVE_ERRORS:
        return None


def _read_header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, _, dtype = read_header(file)
    except HEADER_ERRORS as problem:
        raise ValueError(f"an array whose header cannot be read: {problem}") from None
    if any(length < 0 for length in shape) or 0 in (*shape[1:], dtype.itemsize):
        raise ValueError(f"an array of shape {shape} and type {dtype.str}")
    return shape, dtype


def _slice_arrays(name: str, arrays: dict[str, Array], size: int) -> Iterator[ColumnBatch]:
    check_shapes(name, {key: array.shape for key, array in arrays.items()})
    return slice_batches(arrays, size)


def check_shapes(name: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise TO307 unless all arrays of the table are (n,) or (n, K), and TO310 unless all have the same n."""
    for key, shape in shapes.items():
        if len(shape) not in (1, 2):
            raise Place(name, key).wrong_type_error(f"shape {shape}", "Arrays must be (n,) or (n, K).")
    for first, key in itertools.pairwise(shapes):
        if shapes[first][0] != shapes[key][0]:
            raise InputError(
                "TO310",
                f"The arrays of {name} must have equal lengths.",
                f"{first!r} with {shapes[first][0]:,} rows and {key!r} with {shapes[key][0]:,} rows",
                "Align the rows first; arrays are never truncated.",
            )


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
