"""How is a Parquet file of any size read in little memory?"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from trueodds.core.typing import Array
from trueodds.io.arrow import converted, plain, sound, understood
from trueodds.io.table import Batch, Table, once
from trueodds.io.values import Place


class ParquetTable(Table):
    """A Parquet file; its metadata tells columns and rows, and batches stream page by page."""

    format = "parquet"

    def __init__(self, path: str) -> None:
        self.name = path
        with understood(path, self.format), parquet.ParquetFile(_opened(path)) as file:
            self.columns = once(path, file.schema_arrow.names)
            self.rows = file.metadata.num_rows

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Decoded as they are asked for: only the named columns, one batch at a time."""
        with understood(self.name, self.format):
            yield from converted(self.name, self._record_batches(size, list(names)), size)

    def numbers(self, cells: Any, place: Place) -> Array:
        """An Arrow array as plain numbers."""
        return plain(cells, place)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every column as Arrow arrays."""
        for batch in self._record_batches(size, None):
            yield dict(zip(batch.schema.names, batch.columns, strict=True))

    def _record_batches(self, size: int, names: list[str] | None) -> Iterator[Any]:
        # Pre-buffering holds whole row groups: four times the memory for no less time. Checksums are verified
        # where the file has any: without, a flipped bit in a float is just another float.
        settings = {"pre_buffer": False, "page_checksum_verification": True}
        with understood(self.name, self.format), parquet.ParquetFile(_opened(self.name), **settings) as file:
            yield from map(sound, file.iter_batches(size, columns=names))


def _opened(path: str) -> Any:
    return pa.OSFile(os.fsencode(path))  # a name in bytes need not be UTF-8
