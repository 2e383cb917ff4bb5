"""Run the cells of a study in worker processes, and keep finished cells on disk for resuming."""

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


class Keyed(Protocol):
    """One cell of a study."""

    @property
    def key(self) -> str:
        """Its name among the kept cells."""


@dataclass(frozen=True)
class NetworkCell:
    """One network, or another model of which a file tells."""

    net: str
    data: str | None  # the folder of the files; it does not change what is found in them

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return self.net


def run_cells(
    study: str,
    cells: Sequence[Any],
    measure: Callable[[Any, Any], Row],
    plan: Any,
    where: Path | None,
    progress: Progress | None = None,
    read: Mapping[str, str] | None = None,
) -> tuple[Row, ...]:
    """The row of every cell, in order; with a folder those that are kept there are not measured again.

    `measure(cell, plan)` stands at the top of a module, so that worker processes find it. `read` has the stamp of
    each data file that some cell reads.
    """
    cache = ResultCache(study, where, plan, read or {})
    waiting = [cell for cell in cells if cell.key not in cache.rows]
    for done, (cell, row) in enumerate(_measure_cells(waiting, measure, plan), 1):
        cache.add(cell.key, row)
        if progress:
            progress((len(cells) - len(waiting) + done) / len(cells), cell.key)
    return tuple(cache.rows[cell.key] for cell in cells)


class ResultCache:
    """The finished cells, on disk where there is a folder; those of another plan, version or data do not count.

    The first line tells all three. Files that only one of two runs reads do not part them: a study of more members
    keeps the rows of fewer.
    """

    def __init__(self, study: str, where: Path | None, plan: Any, read: Mapping[str, str]) -> None:
        self.rows: dict[str, Row] = {}
        self.path = None if where is None else where / f"{study}.cells.jsonl"
        if self.path is None:
            return
        head = json.loads(json.dumps({"trueodds": __version__, "plan": plan.__dict__, "data": dict(read)}))
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        before: Any = _parse_line(lines[0]) if lines else None
        if _is_same_run(before, head):
            head["data"] = before["data"] | head["data"]
            self.rows = dict(pair for pair in map(_parse_line, lines[1:]) if pair is not None)
        text = "\n".join([json.dumps(head, sort_keys=True), *(json.dumps(pair) for pair in self.rows.items())]) + "\n"
        json_files.write_text(self.path, text, "TO801")

    def add(self, key: str, row: Row) -> None:
        """One more finished cell."""
        self.rows[key] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, row]) + "\n")


def _parse_line(line: str) -> Any:
    """None for the line that was being written when the study was stopped."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _is_same_run(before: Any, head: Mapping[str, Any]) -> bool:
    if not isinstance(before, dict) or any(before.get(name) != head[name] for name in ("trueodds", "plan")):
        return False
    stamps = before.get("data")
    return isinstance(stamps, dict) and all(stamps.get(name, stamp) == stamp for name, stamp in head["data"].items())


def _measure_cells(
    cells: Sequence[Keyed], measure: Callable[[Any, Any], Row], plan: Any
) -> Iterator[tuple[Keyed, Row]]:
    if count_threads() == 1 or len(cells) < 8:
        yield from ((cell, measure(cell, plan)) for cell in cells)
        return
    with ProcessPoolExecutor(count_threads(), initializer=_use_one_thread) as pool:
        yield from zip(cells, pool.map(measure, cells, [plan] * len(cells), chunksize=1), strict=True)


def _use_one_thread() -> None:
    """A worker has one thread: its siblings have the other cores, and fits of few rows would wait for them."""
    os.environ["TRUEODDS_THREADS"] = "1"
