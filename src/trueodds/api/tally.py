"""Tally rows into mergeable sums, and resume an interrupted tally from its state file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trueodds
from trueodds.api.arguments import pairs_arrays
from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.settings import check
from trueodds.data.predictions import Predictions
from trueodds.io.read import read
from trueodds.io.source import Progress, Source
from trueodds.io.table_source import TableSource
from trueodds.lenses.base import Lens
from trueodds.lenses.lens import as_lens
from trueodds.tallies import serialization
from trueodds.tallies.tally import Tally


@pairs_arrays
def tally(
    data: Any,
    *,
    lenses: Sequence[Any] = (),
    grid: int | None = None,
    bins: int = 15,
    resume: str | Path | None = None,
    progress: Any = None,
) -> Tally:
    """The sums of all rows on the fine grid: small, mergeable with `+`, and enough for an audit without a fix.

    `lenses` adds `groups:` lenses, `grid` a canonical grid with that many cells per axis. `resume` names a file that
    keeps the sum so far: after a stop the same call goes on from there and ends with the same sums.

    Raises InputError: TO331 where the state is of other files or settings, TO205 for what is no file.

    >>> tally(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).n
    3
    """
    check("lenses", lenses, str | Lens | Sequence[Any])
    check("resume", resume, str | os.PathLike | None)
    check("progress", progress, Callable[..., Any] | None)
    if isinstance(data, Tally):
        return data
    source = data if isinstance(data, Source) else read(data)
    step = partial(Tally.of, lenses=lenses, grid=grid, bins=bins)
    if resume is not None:
        settings = {"lenses": [str(as_lens(lens)) for lens in lenses], "grid": grid, "bins": bins}
        return resume_tally(source, step, resume, settings, progress)
    total: Tally = source.reduce(step, progress=progress)
    return total


SCHEMA = "trueodds.tallies-state/2"
EVERY = 10.0  # seconds of work that a machine's end may cost


def resume_tally(
    source: Source,
    step: Callable[[Predictions], Tally],
    state: str | Path,
    settings: Mapping[str, Any],
    progress: Progress | None = None,
    every: float | None = None,
) -> Tally:
    """The sum of `step` over all batches, begun where the file `state` ends if there is one.

    The batches are added up in the same order as without a stop, so that the answer is the same to the last bit. The
    file is written every so many seconds, when the work is interrupted, and at the end.

    Raises InputError: TO205 for what is no file, TO331 for a state of other files, settings or another version, TO402
    for what is no state, or was changed since it was written, TO407 where it cannot be kept.
    """
    if not isinstance(source, TableSource):
        fix = "An engine repeats what fails by itself; rows in memory take no time."
        raise InputError("TO205", "Only files that are read here can be resumed.", repr(source), fix)
    place, settings = Path(state), {**source.how(), **settings}
    about = {"files": source.stamps(), "settings": settings, "version": trueodds.__version__}
    total, done = _load_state(place, about, source) if place.exists() else (None, 0)
    written, last, every = done, time.monotonic(), EVERY if every is None else every
    try:
        for batch in source.batches_after(done):
            part = step(batch)
            total, done = part if total is None else total + part, done + batch.n
            if progress is not None:
                progress(done, source.rows)
            if time.monotonic() - last >= every:
                _save_state(place, about, total, done)
                written, last = done, time.monotonic()
    finally:
        if total is not None and done > written:
            _save_state(place, about, total, done)
    assert total is not None
    return total


def _load_state(place: Path, about: Mapping[str, Any], source: TableSource) -> tuple[Tally, int]:
    """The sum so far and the rows behind it, if the file is what was written and belongs to this count."""
    text = json_files.read_text(place, "TO402")
    body = text.partition("\n")[2]
    if text != _with_checksum(body):
        raise _no_state(place)
    state = json_files.parse_json(body, "TO402", str(place))
    if not isinstance(state, dict) or state.keys() != {"about", "rows", "tally"}:
        raise _no_state(place)
    if state["about"] != about:
        what = next(what for what in about if state["about"].get(what) != about[what])
        fix = "Remove it to begin anew, or give the same files and settings."
        raise InputError("TO331", f"The state belongs to a count with other {what}.", str(place), fix)
    total, rows = serialization.from_dict(state["tally"]), state["rows"]
    if rows < total.n or (rows > total.n and source.plan.weight is None):  # rows of weight 0 are not in the tally
        raise _no_state(place)
    return total, rows


def _no_state(place: Path) -> InputError:
    fix = "Remove it to begin anew, or name another file."
    return InputError("TO402", "This is no state of a count, or it was changed since it was written.", str(place), fix)


def _save_state(place: Path, about: Mapping[str, Any], total: Tally, done: int) -> None:
    body = serialization.json_of({"about": about, "rows": done, "tally": serialization.to_dict(total)})
    json_files.write_text(place, _with_checksum(body + "\n"), "TO407")


def _with_checksum(body: str) -> str:
    """The text of a state file: a line with the checksum of what follows it."""
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return serialization.json_of({"schema": SCHEMA, "sha256": checksum}) + "\n" + body
