"""How is an Arrow file (Feather) or stream read record batch by record batch?"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from trueodds.core.typing import Array
from trueodds.io.arrow import converted, plain, sound, understood
from trueodds.io.table import Batch, Table, once
from trueodds.io.values import Place

MAGIC = b"ARROW1"  # opens the file format; a stream has none


class FeatherTable(Table):
    """An Arrow IPC file, which Feather version 2 is, or a stream of the same record batches."""

    format = "arrow"

    def __init__(self, path: str) -> None:
        self.name = path
        with understood(path, self.format), self._opened(path, None) as reader:
            self.columns = once(path, reader.schema.names)

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Only the named columns are decompressed."""
        places = {name: i for i, name in enumerate(self.columns)}
        fields = [places[name] for name in names]
        with understood(self.name, self.format):
            yield from converted(self.name, self._record_batches(fields), size)

    def numbers(self, cells: Any, place: Place) -> Array:
        """An Arrow array as plain numbers."""
        return plain(cells, place)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every column as Arrow arrays."""
        for batch in self._record_batches(None):
            for offset in range(0, batch.num_rows, size):
                piece = batch.slice(offset, size)
                yield dict(zip(piece.schema.names, piece.columns, strict=True))

    def _record_batches(self, fields: list[int] | None) -> Iterator[Any]:
        with understood(self.name, self.format), self._opened(self.name, fields) as reader:
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                for i in range(reader.num_record_batches):
                    yield sound(reader.get_batch(i))
            else:
                yield from map(sound, reader)

    @staticmethod
    def _opened(path: str, fields: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        file = pa.memory_map(os.fsencode(path))  # a name in bytes need not be UTF-8
        if file.read(len(MAGIC)) == MAGIC:
            return pa.ipc.open_file(file, options=options)
        file.seek(0)
        return pa.ipc.open_stream(file, options=options)
