"""Run the cells of a study in worker processes, and save finished cells so that an interrupted study can continue.

A cell is one unit of work of a study, such as one estimator in one simulated world, and its result is one `Row`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from trueodds import __version__
from trueodds.core import json_files
from trueodds.core.progress import Progress
from trueodds.kernels import count_threads

Row = Mapping[str, Any]


class KeyedCell(Protocol):
    """A cell of a study, identified by a key."""

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""


@dataclass(frozen=True)
class NetworkCell:
    """One network, or another model whose predictions are stored in a file."""

    net: str
    data: str | None  # folder of the data files, which does not change the results

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return self.net


def run_cells(
    study: str,
    cells: Sequence[Any],
    measure: Callable[[Any, Any], Row],
    plan: Any,
    folder: Path | None,
    progress: Progress | None = None,
    file_hashes: Mapping[str, str] | None = None,
) -> tuple[Row, ...]:
    """The row of every cell, in the order of the cells.

    With a folder, finished cells are saved there, and saved ones are not measured again. `measure(cell, plan)` must be
    a function at the top of a module, so that worker processes can import it. `file_hashes` has the SHA-256 of each
    data file that the cells read: results saved for other files are discarded.
    """
    cache = ResultCache(study, folder, plan, file_hashes or {})
    unfinished = [cell for cell in cells if cell.key not in cache.rows]
    for n_done, (cell, row) in enumerate(_measure_cells(unfinished, measure, plan), 1):
        cache.add(cell.key, row)
        if progress:
            progress((len(cells) - len(unfinished) + n_done) / len(cells), cell.key)
    return tuple(cache.rows[cell.key] for cell in cells)


class ResultCache:
    """The rows of finished cells by key, saved as JSON lines in `STUDY.cells.jsonl` if there is a folder.

    The first line has the version of trueodds, the plan, and the hashes of the data files. If they differ from those of
    this run, saved rows are discarded. Files that only one of the two runs reads are not compared, so that rows can be
    reused by a run with more estimators or networks.
    """

    def __init__(self, study: str, folder: Path | None, plan: Any, file_hashes: Mapping[str, str]) -> None:
        self.rows: dict[str, Row] = {}
        self.path = None if folder is None else folder / f"{study}.cells.jsonl"
        if self.path is None:
            return
        header = json.loads(json.dumps({"trueodds": __version__, "plan": plan.__dict__, "data": dict(file_hashes)}))
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        saved_header: Any = _parse_line(lines[0]) if lines else None
        if _is_same_run(saved_header, header):
            header["data"] = saved_header["data"] | header["data"]
            parsed_lines = [_parse_line(line) for line in lines[1:]]
            self.rows = dict(pair for pair in parsed_lines if pair is not None)
        text = "\n".join([json.dumps(header, sort_keys=True), *(json.dumps(pair) for pair in self.rows.items())]) + "\n"
        json_files.write_text(self.path, text, "TO801")

    def add(self, key: str, row: Row) -> None:
        """Add the row of a finished cell, and append it to the file."""
        self.rows[key] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, row]) + "\n")


def _parse_line(line: str) -> Any:
    """The value of a JSON line; None for the last line if the study was stopped while writing it."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _is_same_run(saved_header: Any, header: Mapping[str, Any]) -> bool:
    """Whether version and plan are equal, and the hashes of all files that both runs read."""
    if not isinstance(saved_header, dict) or any(
        saved_header.get(name) != header[name] for name in ("trueodds", "plan")
    ):
        return False
    saved_hashes = saved_header.get("data")
    if not isinstance(saved_hashes, dict):
        return False
    return all(saved_hashes.get(name, file_hash) == file_hash for name, file_hash in header["data"].items())


def _measure_cells(
    cells: Sequence[KeyedCell], measure: Callable[[Any, Any], Row], plan: Any
) -> Iterator[tuple[KeyedCell, Row]]:
    """Each cell with its row, in order; in worker processes if there are at least 8 cells and several threads."""
    if count_threads() == 1 or len(cells) < 8:
        yield from ((cell, measure(cell, plan)) for cell in cells)
        return
    with ProcessPoolExecutor(count_threads(), initializer=_use_one_thread) as pool:
        yield from zip(cells, pool.map(measure, cells, [plan] * len(cells), chunksize=1), strict=True)


def _use_one_thread() -> None:
    """Limit a worker process to one thread, as the other workers use the other cores."""
    os.environ["TRUEODDS_THREADS"] = "1"
