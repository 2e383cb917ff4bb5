"""A long count that goes on where it was stopped: the sum so far and how far it reaches are kept in a state file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trueodds
from trueodds.core import saved
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.io.source import Progress, Source
from trueodds.io.tabled import TableSource
from trueodds.tallies import wire
from trueodds.tallies.tally import Tally

SCHEMA = "trueodds.tallies-state/2"
EVERY = 10.0  # seconds of work that a machine's end may cost


def resumed(
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
    text = saved.text_of(place, "TO402")
    body = text.partition("\n")[2]
    if text != _sealed(body):
        raise _no_state(place)
    state = saved.parsed(body, "TO402", str(place))
    if not isinstance(state, dict) or state.keys() != {"about", "rows", "tally"}:
        raise _no_state(place)
    if state["about"] != about:
        what = next(what for what in about if state["about"].get(what) != about[what])
        fix = "Remove it to begin anew, or give the same files and settings."
        raise InputError("TO331", f"The state belongs to a count with other {what}.", str(place), fix)
    total, rows = wire.from_dict(state["tally"]), state["rows"]
    if rows < total.n or (rows > total.n and source.plan.weight is None):  # rows of weight 0 are not in the tally
        raise _no_state(place)
    return total, rows


def _no_state(place: Path) -> InputError:
    fix = "Remove it to begin anew, or name another file."
    return InputError("TO402", "This is no state of a count, or it was changed since it was written.", str(place), fix)


def _save_state(place: Path, about: Mapping[str, Any], total: Tally, done: int) -> None:
    body = wire.json_of({"about": about, "rows": done, "tally": wire.to_dict(total)})
    saved.write(place, _sealed(body + "\n"), "TO407")


def _sealed(body: str) -> str:
    """The text of a state file: a line with the checksum of what follows it."""
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return wire.json_of({"schema": SCHEMA, "sha256": checksum}) + "\n" + body
