"""The same rows in every kind of file and frame."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather, parquet


def columns(n: int = 50, k: int = 3, dtype: Any = np.float64, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Labels, probabilities, weights, two group columns and clusters of n rows."""
    draw = np.random.default_rng(seed)
    P = draw.dirichlet(np.ones(k), n).astype(dtype)
    table: dict[str, NDArray[Any]] = {"label": draw.integers(0, k, n)}
    table |= {f"p_{j}": P[:, j].copy() for j in range(k)}
    table["w"] = draw.integers(1, 5, n) / 2
    table["site"] = draw.choice(["north", "south, east"], n)
    table["year"] = draw.integers(2019, 2022, n)
    table["patient"] = draw.integers(0, n // 2 + 1, n)
    return table


def write(path: Path, table: dict[str, Any]) -> str:
    """The columns in a file of the path's kind; columns may be arrays or lists."""
    kind = max((kind for kind in KINDS if path.name.endswith(f".{kind}")), key=len)
    KINDS[kind].write(path, table)
    return str(path)


def _arrow_table(table: dict[str, Any]) -> pa.Table:
    return pa.table({name: list(cells) if _nested(cells) else cells for name, cells in table.items()})


def _nested(cells: Any) -> bool:
    return isinstance(cells, np.ndarray) and cells.ndim == 2


def _write_batches(new: Callable[..., Any]) -> Callable[[Path, dict[str, Any]], None]:
    def write_batches(path: Path, table: dict[str, Any]) -> None:
        rows = _arrow_table(table)
        with new(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=20)

    return write_batches


def _rows(table: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(zip(*[np.asarray(cells).tolist() for cells in table.values()], strict=True))


def _write_csv(path: Path, table: dict[str, Any]) -> None:
    lines = [",".join(table)] + [",".join(_cell(cell) for cell in row) for row in _rows(table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cell(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and "," in value else str(value)


def _write_json_lines(path: Path, table: dict[str, Any]) -> None:
    lines = [json.dumps(dict(zip(table, row, strict=True))) for row in _rows(table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _count_csv(content: bytes) -> int:
    csv.field_size_limit(1 << 30)
    lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    return sum(1 for line in lines if line) - 1


def _count_json_lines(content: bytes) -> int:
    return sum(1 for line in content.decode("utf-8-sig").split("\n") if line.strip(" \t\r"))


def _count_npz(content: bytes) -> int:
    with np.load(io.BytesIO(content)) as arrays:
        return len(arrays["label"])


def _count_arrow(content: bytes) -> int:
    if content.startswith(b"ARROW1"):
        file = pa.ipc.open_file(content)
        return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
    return sum(batch.num_rows for batch in pa.ipc.open_stream(content))


def _count_parquet(content: bytes) -> int:
    return int(parquet.ParquetFile(io.BytesIO(content)).metadata.num_rows)


@dataclass(frozen=True)
class FileKind:
    """How files of a kind are written, and their rows counted, without the package."""

    write: Callable[[Path, dict[str, Any]], None]
    count: Callable[[bytes], int]  # ValueError where it cannot tell
    has_types: bool = False  # the others have one type of number, float64


KINDS = {  # one or more of each format, by the end of the name
    "parquet": FileKind(lambda path, table: parquet.write_table(_arrow_table(table), path), _count_parquet, True),
    "csv": FileKind(_write_csv, _count_csv),
    "jsonl": FileKind(_write_json_lines, _count_json_lines),
    "ndjson": FileKind(_write_json_lines, _count_json_lines),
    "feather": FileKind(lambda path, table: feather.write_feather(_arrow_table(table), path), _count_arrow, True),
    "arrow": FileKind(_write_batches(pa.ipc.new_file), _count_arrow, True),
    "stream.arrow": FileKind(_write_batches(pa.ipc.new_stream), _count_arrow, True),
    "npz": FileKind(lambda path, table: np.savez(path, **table), _count_npz, True),
}
FILES = tuple(KINDS)
TYPED = tuple(kind for kind, file_kind in KINDS.items() if file_kind.has_types)
