"""Count rows in a tally, sums that can be merged, and resume an interrupted tally from its state file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trueodds
from trueodds.api.arguments import WeightKind
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress, report_in_rows, report_progress
from trueodds.core.settings import check
from trueodds.data.predictions import Predictions
from trueodds.io.read import read_for_call
from trueodds.io.source import RowProgress, Source
from trueodds.io.table_source import TableSource
from trueodds.lenses.base import Lens
from trueodds.lenses.lens_by_name import as_lens
from trueodds.tallies import tally_reader, tally_sums
from trueodds.tallies.tally import Tally


@accept_separate_arrays
def tally(
    data: Any,
    *,
    lenses: Sequence[Any] = (),
    grid: int | None = None,
    bins: int = 15,
    weight_kind: WeightKind = None,
    resume: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Tally:
    """Count all rows on a fine grid, in sums that can be merged.

    A tally is small, two tallies are added with ``+``, and it is sufficient for an audit without recalibration.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Predictions with their outcomes. The two arrays may also be passed separately, as in
        ``tally(y_true, y_prob)``. Whatever `read` accepts (a path, a data frame) is read first.
    lenses : sequence of str or Lens, default=()
        Additional lenses of groups of classes that the tally supports, such as ``"groups:[[0,1],[2]]"``.
    grid : int, optional
        Number of bins per axis of a grid on the simplex, which keeps the lens ``"canonical"``.
    bins : int, default=15
        Number of uniform bins of the null covariance between classes, which is kept up to 2,000 bins in all classes.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``), as in a table that was grouped by prediction and outcome.
    resume : str or path, optional
        File in which the sums so far are kept; after an interruption the same call continues from there, and ends with
        the same sums.
    progress : as in `report_progress`

    Returns
    -------
    Tally
        The sums of all rows.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid arrays, TO301 to TO313 for files and columns, TO203 for an invalid value, TO205 for
        `resume` with data that are not files, TO331 if the state belongs to other files, settings or another version,
        TO402 if the state was changed, TO407 if it cannot be written.

    See Also
    --------
    load : Load a saved tally.

    Examples
    --------
    >>> import trueodds as to
    >>> to.tally(to.Predictions([0, 1, 1], [0.2, 0.7, 0.9])).n
    3
    """
    check("lenses", lenses, str | Lens | Sequence[Any])
    check("weight_kind", weight_kind, WeightKind, None)
    check("resume", resume, str | os.PathLike | None)
    progress_context = report_progress(progress)
    if isinstance(data, Tally):
        return data
    source = read_for_call(data)
    step = partial(Tally.from_predictions, lenses=lenses, grid=grid, bins=bins, weight_kind=weight_kind)
    with progress_context as report:
        if resume is not None:
            settings: dict[str, Any] = {"lenses": [str(as_lens(lens)) for lens in lenses], "grid": grid, "bins": bins}
            settings |= {"weight_kind": weight_kind} if weight_kind == "frequency" else {}
            return resume_tally(source, step, resume, settings, report_in_rows(report))
        total: Tally = source.reduce(step, progress=report_in_rows(report))
    return total


STATE_SCHEMA = "trueodds.tallies-state/2"  # schema and version of the state file
SECONDS_BETWEEN_SAVES = 10.0  # a process that is killed loses the work of at most this time


def resume_tally(
    source: Source,
    step: Callable[[Predictions], Tally],
    state_file: str | Path,
    settings: Mapping[str, Any],
    progress: RowProgress | None = None,
    seconds_between_saves: float | None = None,
) -> Tally:
    """Add the tallies of all batches of a source, starting from the state file if it exists.

    The batches are added in the same order as without interruption, so that the result is bit-identical. The state is
    written at intervals, when the work is interrupted, and at the end.

    Parameters
    ----------
    source : Source
        Files of predictions.
    step : callable
        Function that returns the tally of a batch.
    state_file : str or path
        File with the tally of the batches that have been read.
    settings : mapping
        Settings of `step`. A state with other settings is refused.
    progress : callable, optional
        Called with the number of rows that have been read and their total number, if it is known.
    seconds_between_saves : float, optional
        Shortest time between two writes of the state, by default 10 seconds.

    Raises
    ------
    InputError
        TO205 for data that are not files, TO331 for a state of other files, settings or another version, TO402 for a
        file that is not a state or was changed, TO407 if it cannot be written.
    """
    if not isinstance(source, TableSource):
        fix = "Omit it: an engine repeats failed tasks itself, and rows in memory take little time."
        raise InputError("TO205", "`resume` is available only for files that this process reads.", repr(source), fix)
    state_path, settings = Path(state_file), {**source.reading_settings(), **settings}
    identity = {"files": source.file_stamps(), "settings": settings, "version": trueodds.__version__}
    total, n_done = _load_state(state_path, identity, source) if state_path.exists() else (None, 0)
    n_saved, last_save_time = n_done, time.monotonic()
    if seconds_between_saves is None:
        seconds_between_saves = SECONDS_BETWEEN_SAVES
    try:
        for batch in source.batches_after(n_done):
            batch_tally = step(batch)
            total, n_done = batch_tally if total is None else total + batch_tally, n_done + batch.n
            if progress is not None:
                progress(n_done, source.rows)
            if time.monotonic() - last_save_time >= seconds_between_saves:
                _save_state(state_path, identity, total, n_done)
                n_saved, last_save_time = n_done, time.monotonic()
    finally:
        if total is not None and n_done > n_saved:
            _save_state(state_path, identity, total, n_done)
    assert total is not None
    return total


def _load_state(state_path: Path, identity: Mapping[str, Any], source: TableSource) -> tuple[Tally, int]:
    """Return the tally in the state file, and the number of rows that it was made from.

    Raises TO402 for an invalid state, and TO331 for a state with another `identity`: files, settings and version.
    """
    text = json_files.read_text(state_path, "TO402")
    body = text.partition("\n")[2]
    if text != _with_checksum(body):
        raise _invalid_state_error(state_path)
    state = json_files.parse_json(body, "TO402", str(state_path))
    if not isinstance(state, dict) or state.keys() != {"about", "rows", "tally"}:
        raise _invalid_state_error(state_path)
    if state["about"] != identity:
        difference = next(name for name in identity if state["about"].get(name) != identity[name])
        fix = "Remove it to start again, or pass the same files and settings."
        raise InputError("TO331", f"The state belongs to a tally with other {difference}.", str(state_path), fix)
    total, rows = tally_reader.from_dict(state["tally"]), state["rows"]
    # Rows of weight 0 are read, but are not in the tally.
    if rows < total.n or (rows > total.n and source.roles.weight is None):
        raise _invalid_state_error(state_path)
    return total, rows


def _invalid_state_error(state_path: Path) -> InputError:
    """Return the error TO402 for a file that is not a state, or was changed."""
    fix = "Remove it to start again, or name another file."
    return InputError(
        "TO402", "This is not the state of a tally, or it was changed since it was written.", str(state_path), fix
    )


def _save_state(state_path: Path, identity: Mapping[str, Any], total: Tally, n_done: int) -> None:
    """Write the tally so far, the number of rows that it was made from, and the `identity` of the call."""
    body = tally_sums.to_strict_json({"about": identity, "rows": n_done, "tally": tally_sums.to_dict(total)})
    json_files.write_text(state_path, _with_checksum(body + "\n"), "TO407")


def _with_checksum(body: str) -> str:
    """Return the text of a state file: a line with the checksum, then the content."""
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return tally_sums.to_strict_json({"schema": STATE_SCHEMA, "sha256": checksum}) + "\n" + body
