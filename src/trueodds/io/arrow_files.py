"""Read Parquet and Arrow (Feather) files batch by batch, and write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.arrow import (
    arrow_batches,
    arrow_to_array,
    convert_arrow_errors,
    first_value,
    text_columns,
    validate_batch,
)
from trueodds.io.conversion import Place
from trueodds.io.table import (
    ROWS_OF_FIRST_CELL,
    ColumnBatch,
    ColumnSource,
    Writer,
    check_column_names,
    refuse_repeated_columns,
)


class _ArrowFileTable(ColumnSource):
    """Base class of tables in files that Arrow reads in record batches."""

    _schema: Any

    def _record_batches(self, names: Sequence[str] | None, size: int) -> Iterator[Any]:
        """Yield validated record batches of these columns, None for all; a format may have batches of other sizes."""
        raise NotImplementedError

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        with convert_arrow_errors(self.name, self.format):
            yield from arrow_batches(self, self._record_batches(self.read_columns(names), size), size, names)

    def first_cell(self, column: str) -> Any:
        """Return the first cell of a column of structs or lists; None for other types, which have no fields."""
        if not pa.types.is_nested(self._schema.field(column).type):
            return None
        return first_value(self._record_batches([column], ROWS_OF_FIRST_CELL))

    def to_numbers(self, cells: Any, place: Place) -> Array:
        return arrow_to_array(cells, place)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        refuse_repeated_columns(self.name, self.columns, self.columns)
        for batch in self._record_batches(None, size):
            for offset in range(0, batch.num_rows, size):
                piece = batch.slice(offset, size)
                yield dict(zip(piece.schema.names, piece.columns, strict=True))


class ParquetTable(_ArrowFileTable):
    """A Parquet file: columns and rows come from its metadata, and batches are streamed page by page."""

    format = "parquet"

    def __init__(self, path: str) -> None:
        self.name = path
        with convert_arrow_errors(path, self.format), parquet.ParquetFile(_open_file(path)) as file:
            self._schema = file.schema_arrow
            self.columns = check_column_names(path, self._schema.names)
            self.rows, self.text_columns = file.metadata.num_rows, text_columns(self._schema)

    def _record_batches(self, names: Sequence[str] | None, size: int) -> Iterator[Any]:
        # Pre-buffering holds whole row groups, which takes four times the memory and saves no time. Checksums are
        # verified if the file has any: otherwise a flipped bit in a float would go unnoticed.
        settings = {"pre_buffer": False, "page_checksum_verification": True}
        with (
            convert_arrow_errors(self.name, self.format),
            parquet.ParquetFile(_open_file(self.name), **settings) as file,
        ):
            rows = 0
            for batch in file.iter_batches(size, columns=names if names is None else list(names)):
                rows += batch.num_rows
                yield validate_batch(batch)
            if rows != file.metadata.num_rows:  # pyarrow believes the counts of the row groups, which may be damaged
                raise pa.ArrowInvalid(f"{rows:,} rows in its row groups, {file.metadata.num_rows:,} in its footer")


def _open_file(path: str) -> Any:
    return pa.OSFile(os.fsencode(path))  # file names need not be UTF-8


ARROW_FILE_MAGIC = b"ARROW1"  # first bytes of the file format; a stream has none


class FeatherTable(_ArrowFileTable):
    """An Arrow IPC file, which Feather version 2 is, or a stream of the same record batches."""

    format = "arrow"

    def __init__(self, path: str) -> None:
        self.name = path
        with convert_arrow_errors(path, self.format), self._open_reader(path, None) as reader:
            self._schema = reader.schema
            self.columns, self.text_columns = check_column_names(path, self._schema.names), text_columns(self._schema)

    def _record_batches(self, names: Sequence[str] | None, size: int) -> Iterator[Any]:
        fields = None if names is None else [self.columns.index(name) for name in names]  # only these are decompressed
        with convert_arrow_errors(self.name, self.format), self._open_reader(self.name, fields) as reader:
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                for i in range(reader.num_record_batches):
                    yield validate_batch(reader.get_batch(i))
            else:
                yield from map(validate_batch, reader)

    @staticmethod
    def _open_reader(path: str, fields: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        file = pa.memory_map(os.fsencode(path))  # file names need not be UTF-8
        if file.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
            return pa.ipc.open_file(file, options=options)
        file.seek(0)
        return pa.ipc.open_stream(file, options=options)


class FeatherWriter(Writer):
    """Writer of an Arrow file (Feather version 2)."""

    _open_writer: ClassVar[Callable[..., Any]] = pa.ipc.new_file

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._schema: Any = None
        self._writer: Any = None  # of Arrow, opened when the types of the columns are known

    def chunks_of(self, table: ColumnSource, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        return table.typed_chunks(numeric, size)

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        arrays = {name: self._to_arrow_array(cells, name, start) for name, cells in columns.items()}
        if self._schema is None:
            self._schema = pa.schema([(name, array.type) for name, array in arrays.items()])
            self._writer = type(self)._open_writer(self.file, self._schema)
        self._writer.write_batch(pa.record_batch(list(arrays.values()), schema=self._schema))

    def close(self, complete: bool) -> None:
        if self._writer is not None:
            with nullcontext() if complete else suppress(OSError):
                self._writer.close()

    def _to_arrow_array(self, cells: Any, name: str, start: int) -> Any:
        column_type = None if self._schema is None else self._schema.field(name).type
        try:
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                width = cells.shape[1]
                offsets = pa.array(np.arange(0, len(cells) * width + 1, width, dtype=np.int32))
                return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(cells).ravel()))
            array = cells if isinstance(cells, pa.Array) else pa.array(_text_array_to_list(cells))
            return array if column_type is None or array.type == column_type else array.cast(column_type)
        except pa.ArrowException as problem:
            message = str(problem).strip().split("\n")[0][:120]
            if column_type is not None:
                raise Place(self.target, name, start).type_change_error(0, str(column_type), message) from None
            raise InputError(
                "TO314", f"Column {name!r} cannot be written to {self.target}.", message, "Write it as jsonl."
            ) from None


class ParquetWriter(FeatherWriter):
    """Writer of a Parquet file."""

    _open_writer = parquet.ParquetWriter


def _text_array_to_list(cells: Any) -> Any:
    """Return an array of text as a list, because Arrow does not take the former; other cells are unchanged."""
    return cells.tolist() if isinstance(cells, np.ndarray) and cells.dtype.kind == "U" else cells
