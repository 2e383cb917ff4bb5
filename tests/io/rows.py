"""The same rows in every kind of file and frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import feather, parquet

FILES = ("parquet", "csv", "jsonl", "ndjson", "feather", "arrow", "stream.arrow", "npz")


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
    plain = {name: list(cells) if _nested(cells) else cells for name, cells in table.items()}
    suffix = path.suffix
    if suffix == ".parquet":
        parquet.write_table(pa.table(plain), path)
    elif suffix == ".feather":
        feather.write_feather(pa.table(plain), path)
    elif path.name.endswith(".stream.arrow"):
        with pa.ipc.new_stream(path, pa.table(plain).schema) as writer:
            writer.write_table(pa.table(plain), max_chunksize=20)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, pa.table(plain).schema) as writer:
            writer.write_table(pa.table(plain), max_chunksize=20)
    elif suffix == ".npz":
        np.savez(path, **table)
    else:
        rows = list(zip(*[np.asarray(cells).tolist() for cells in table.values()], strict=True))
        if suffix == ".csv":
            lines = [",".join(table)] + [",".join(_cell(cell) for cell in row) for row in rows]
        else:
            lines = [json.dumps(dict(zip(table, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _nested(cells: Any) -> bool:
    return isinstance(cells, np.ndarray) and cells.ndim == 2


def _cell(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and "," in value else str(value)
