"""How does a long count go on where it was stopped? The sum so far and how far it reaches are kept in a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trueodds.core import saved
from trueodds.core.errors import InputError
from trueodds.problem.predictions import Predictions
from trueodds.sources.source import Progress, Source
from trueodds.sources.tabled import TableSource
from trueodds.tally import wire
from trueodds.tally.tally import Tally

SCHEMA = "trueodds.tally-state/1"
EVERY = 10.0  # seconds of work that a machine's end may cost


def resumed(
    source: Source,
    step: Callable[[Predictions], Tally],
    state: str | Path,
    settings: Mapping[str, Any],
    progress: Progress | None = None,
    every: float = EVERY,
) -> Tally:
    """The sum of `step` over all batches, begun where the file `state` ends if there is one.

    The batches are added up in the same order as without a stop, so that the answer is the same to the last bit. The
    file is written every so many seconds, when the work is interrupted, and at the end.

    Raises InputError: TO205 for what is no file, TO331 for a state of other files or settings, TO402 for no state, TO407 where it cannot be kept.
    """
    if not isinstance(source, TableSource):
        fix = "An engine repeats what fails by itself; rows in memory take no time."
        raise InputError("TO205", "Only files that are read here can be resumed.", repr(source), fix)
    place, about = Path(state), {"files": source.stamps(), "settings": {**source.how(), **settings}}
    total, done = _kept(place, about)
    written, last = done, time.monotonic()
    try:
        for batch in source.batches_after(done):
            part = step(batch)
            total, done = part if total is None else total + part, done + batch.n
            if progress is not None:
                progress(done, source.rows)
            if time.monotonic() - last >= every:
                _keep(place, about, total, done)
                written, last = done, time.monotonic()
    finally:
        if total is not None and done > written:
            _keep(place, about, total, done)
    assert total is not None
    return total


def _kept(place: Path, about: Mapping[str, Any]) -> tuple[Tally | None, int]:
    """The sum so far and the rows behind it."""
    if not place.exists():
        return None, 0
    found = saved.read(place, "TO402")
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not {"about", "tally"} <= found.keys():
        raise InputError("TO402", "This is no state of a count.", str(place), "Name another file, or remove it.")
    if found["about"] != about:
        was, now = found["about"], dict(about)
        what = "files" if isinstance(was, dict) and was.get("files") != now["files"] else "settings"
        fix = "Remove it to begin anew, or give the same files and settings."
        raise InputError("TO331", f"The state belongs to a count of other {what}.", str(place), fix)
    total = wire.from_dict(found["tally"])
    return total, total.n if found.get("rows") is None else int(found["rows"])


def _keep(place: Path, about: Mapping[str, Any], total: Tally, done: int) -> None:
    text = wire.json_of({"schema": SCHEMA, "about": about, "rows": done, "tally": wire.to_dict(total)})
    saved.write(place, text + "\n", "TO407")
