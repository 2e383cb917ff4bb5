"""How are columns written as Parquet or Arrow? With the types of the first chunk, which all others must have."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from trueodds.core.errors import InputError
from trueodds.io.values import Place
from trueodds.io.writers import Writer


class ArrowWriter(Writer):
    """A Parquet file, or an Arrow file (Feather version 2)."""

    def __init__(self, file: IO[bytes], target: str, form: str) -> None:
        super().__init__(file, target)
        self._form = form
        self._schema: Any = None
        self._table: Any = None

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append a record batch."""
        arrays = {name: self._array(cells, name, start) for name, cells in columns.items()}
        if self._schema is None:
            self._schema = pa.schema([(name, array.type) for name, array in arrays.items()])
            opened = parquet.ParquetWriter if self._form == "parquet" else pa.ipc.new_file
            self._table = opened(self.file, self._schema)
        self._table.write_batch(pa.record_batch(list(arrays.values()), schema=self._schema))

    def close(self, complete: bool) -> None:
        """Write what stands at the end of such a file."""
        if self._table is not None:
            with nullcontext() if complete else suppress(OSError):
                self._table.close()

    def _array(self, cells: Any, name: str, start: int) -> Any:
        kind = self._schema.field(name).type if self._schema is not None else None
        try:
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                width = cells.shape[1]
                offsets = pa.array(np.arange(0, len(cells) * width + 1, width, dtype=np.int32))
                return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(cells).ravel()))
            array = cells if isinstance(cells, pa.Array) else pa.array(_plain(cells))
            return array if kind is None or array.type == kind else array.cast(kind)
        except pa.ArrowException as problem:
            message = str(problem).strip().split("\n")[0][:120]
            if kind is not None:
                raise Place(self.target, name, start).changed(0, str(kind), message) from None
            raise InputError(
                "TO314", f"Column {name!r} cannot be written to {self.target}.", message, "Write it as jsonl."
            ) from None


def _plain(cells: Any) -> Any:
    return cells.tolist() if isinstance(cells, np.ndarray) and cells.dtype.kind == "U" else cells
