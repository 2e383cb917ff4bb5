"""Random mutations of valid files of every format: each is read with all of its rows, or refused with a code.

``python -m tests.io.fuzzing 20000`` reads so many files, tells how each format fared, and how long it took.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.io.engines import table
from tests.io.mutated import CSV, SETTINGS, flipped, mutated
from tests.io.rows import KINDS, columns, write
from trueodds import InputError, read
from trueodds.api.tally import resume_tally
from trueodds.io import files
from trueodds.tallies import tally_reader, tally_sums
from trueodds.tallies.tally import Tally

Generator = np.random.Generator
ROWS = 40
EXTRAS = {"weight": "w", "group": "site"}


def changed(content: bytes, draw: Generator) -> bytes:
    """A few bytes changed, which leaves the structure of most files alone, or a change of any kind."""
    return flipped(content, draw) if draw.random() < 0.6 else mutated(content, draw)


@dataclass(frozen=True)
class Format:
    """How files of a format are made, read, and their rows counted by another reader."""

    suffix: str
    files: Callable[[], list[tuple[bytes, dict[str, Any]]]]  # valid content, and the settings that it is read with
    rows_read: Callable[[Path, dict[str, Any]], int]
    count_rows: Callable[[bytes], int]  # ValueError where the other reader cannot tell
    change: Callable[[bytes, Generator], bytes] = changed


def check(name: str, seed: int, folder: Path) -> str:
    """What reading the mutated file of this seed comes to: "read", or the code of the error."""
    form, draw = FORMATS[name], np.random.default_rng(seed)
    files = form.files()
    content, settings = files[draw.integers(len(files))]
    if draw.random() < 0.95:  # the others must be read
        content = form.change(content, draw)
    path = folder / f"a{form.suffix}"
    path.write_bytes(content)
    try:
        rows = form.rows_read(path, settings)
    except InputError as problem:
        return problem.code
    try:
        expected = form.count_rows(content)
    except (ValueError, csv.Error):
        return "read, rows not counted"
    assert rows == expected, f"{name}, seed {seed}: {rows} rows read of {expected}"
    return "read"


def _rows_of_predictions(path: Path, settings: dict[str, Any]) -> int:
    return read(path, batch_rows=7, **settings).collect().n


def _plain_files(kind: str) -> list[tuple[bytes, dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as folder:
        return [(Path(write(Path(folder) / f"a.{kind}", columns(ROWS))).read_bytes(), EXTRAS)]


def _csv_files() -> list[tuple[bytes, dict[str, Any]]]:
    return [(content, SETTINGS[name]) for name, content in CSV.items()]


@cache
def _json_files() -> list[tuple[bytes, dict[str, Any]]]:
    rows = table(ROWS, weight=True).to_dict("records")
    lists = [{"label": i % 3, "probs": [0.25, 0.25, 0.5], "w": 1.5, "site": "x"} for i in range(ROWS)]
    return [
        ("".join(json.dumps(record) + "\n" for record in records).encode(), {**EXTRAS, **settings})
        for records, settings in ((rows, {}), (lists, {"probs": "probs"}))
    ]


@cache
def _archives() -> list[tuple[bytes, dict[str, Any]]]:
    draw = np.random.default_rng(0)
    arrays = {"label": draw.integers(0, 3, ROWS), "probs": draw.dirichlet(np.ones(3), ROWS), "w": np.ones(ROWS)}
    made = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **arrays, site=np.array(["north", "south"] * (ROWS // 2)))
        made.append((file.getvalue(), {"label": "label", "probs": "probs", **EXTRAS}))
    return made


def _changed_archive(content: bytes, draw: Generator) -> bytes:
    """The archive changed anywhere, or one member of it, whose checksum is then right."""
    if draw.random() < 0.3:
        return mutated(content, draw)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        chosen = draw.integers(len(source.namelist()))
        for number, name in enumerate(source.namelist()):
            entry = source.read(name)
            target.writestr(name, changed(entry, draw) if number == chosen else entry)
    return file.getvalue()


@cache
def _arrow_files() -> list[tuple[bytes, dict[str, Any]]]:
    import pyarrow as pa

    data = _arrow_table()
    made = []
    for new, compression in ((pa.ipc.new_file, None), (pa.ipc.new_stream, None), (pa.ipc.new_file, "lz4")):
        sink = pa.BufferOutputStream()
        with new(sink, data.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(data, max_chunksize=15)
        made.append((sink.getvalue().to_pybytes(), EXTRAS))
    return made


@cache
def _parquet_files() -> list[tuple[bytes, dict[str, Any]]]:
    import pyarrow as pa
    from pyarrow import parquet

    made = []
    for settings in ({}, {"use_dictionary": False, "compression": "none"}, {"write_page_checksum": True}):
        sink = pa.BufferOutputStream()
        parquet.write_table(_arrow_table(), sink, row_group_size=15, **settings)
        made.append((sink.getvalue().to_pybytes(), EXTRAS))
    return made


def _arrow_table() -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(table(ROWS, weight=True), preserve_index=False)


@cache
def _tallies() -> list[tuple[bytes, dict[str, Any]]]:
    predictions = [read(table(ROWS, weight=weight), weight="w" if weight else None, group="site") for weight in (0, 1)]
    return [(tally_sums.dumps(preds.reduce(Tally.from_predictions)).encode(), {}) for preds in predictions]


def _tally_rows(path: Path, settings: dict[str, Any]) -> int:
    return tally_reader.load(path).n


def _count_tally_rows(content: bytes) -> int:
    return int(json.loads(content)["n"])


@cache
def _counted_file() -> tuple[Path, bytes]:
    """A file of predictions and the state of its whole count."""
    folder = Path(tempfile.mkdtemp())
    data, state = folder / "rows.csv", folder / "state.json"
    table(ROWS, weight=True).to_csv(data, index=False)
    resume_tally(_counted_source(data), Tally.from_predictions, state, {})
    return data, state.read_bytes()


def _counted_source(data: Path) -> Any:
    return read(data, weight="w", group="site", batch_rows=15)


def _state_rows(path: Path, settings: dict[str, Any]) -> int:
    data, state = _counted_file()
    tally = resume_tally(_counted_source(data), Tally.from_predictions, path, {})
    assert path.read_bytes() == state, "another state was believed"
    return tally.n


def _format(
    kind: str,
    make: Callable[[], list[tuple[bytes, dict[str, Any]]]] | None = None,
    change: Callable[[bytes, Generator], bytes] = changed,
) -> Format:
    """A format of predictions; without `make`, one that `rows.write` makes."""
    return Format(f".{kind}", make or partial(_plain_files, kind), _rows_of_predictions, KINDS[kind].count, change)


_KINDS_OF_FORMATS = [file_format.suffixes[0][1:] for file_format in files.FORMATS]
FORMATS = {kind: _format(kind) for kind in _KINDS_OF_FORMATS} | {
    "csv": _format("csv", _csv_files),
    "jsonl": _format("jsonl", _json_files),
    "npz": _format("npz", _archives, _changed_archive),
    "arrow": _format("arrow", _arrow_files),
    "parquet": _format("parquet", _parquet_files),
    "tally": Format(".json", _tallies, _tally_rows, _count_tally_rows),
    "state": Format(".json", lambda: [(_counted_file()[1], {})], _state_rows, lambda content: ROWS),
}


def main() -> None:
    n_files, folder = -(-int(sys.argv[1]) // len(FORMATS)), Path(tempfile.mkdtemp())
    for name in FORMATS:
        started = time.perf_counter()
        outcomes = Counter(check(name, seed, folder) for seed in range(n_files))
        took = time.perf_counter() - started
        sys.stdout.write(f"{name}: {n_files:,} files, {took:.0f} s, {dict(outcomes.most_common())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
