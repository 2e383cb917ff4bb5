"""Collect the rows of a call into memory or tally them, as their number and the argument `mode` of the call require."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from trueodds.api.memory_limit import max_probabilities_in_memory
from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError
from trueodds.core.settings import check
from trueodds.data.predictions import Predictions
from trueodds.data.weights import frequency_weight_notes
from trueodds.io import Source
from trueodds.io.read import read_for_call
from trueodds.tallies.reservoir import Reservoir, SampledTally
from trueodds.tallies.tally import Tally

ROWS_REMEDY = "Pass the predictions from which the tally was made."


def resolve_all(
    data: Any,
    mode: str | None,
    weight_kind: str | None,
    tally_source: Callable[[Source], Tally] = lambda source: source.reduce(Tally.from_predictions),
    progress: Any = None,
) -> tuple[Predictions | Tally, Predictions | Tally]:
    """Return the data as they are, and without rows of weight 0, of which the groups may have to be listed.

    The latter are Predictions if the rows fit into memory, else a Tally.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        The argument of the caller; whatever `read` accepts is read first.
    mode : {"exact", "tally"}, optional
        Keep the rows in memory (``"exact"``) or count them in the cells of a fine grid (``"tally"``). By default rows
        are kept if they have at most 20 million probabilities.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``). If it is not given and the weights are whole numbers, note TN286 describes the difference.
    tally_source : callable, optional
        Function that tallies a source.
    progress : callable, optional
        Called with the number of rows that have been read and their total number, if it is known.

    Raises
    ------
    InputError
        TO203 for an invalid `mode` or `weight_kind`, TO403 for a tally if single rows are needed.
    """
    _check_mode(mode, weight_kind)
    if isinstance(data, Tally):
        if mode == "exact":
            raise InputError("TO403", "This needs the rows, which a tally does not keep.", "a tally", ROWS_REMEDY)
        if weight_kind == "frequency":
            raise InputError("TO403", "Frequency weights need the rows.", "a tally", ROWS_REMEDY)
        return data, data
    rows = _collect_or_tally(data, mode, tally_source, progress)
    if weight_kind == "frequency":
        if isinstance(rows, Tally):
            raise InputError("TO403", "Frequency weights need the rows.", "a tally", "Use ⟨mode='exact'⟩.")
        return rows, rows.expand_frequencies()
    if not isinstance(rows, Predictions) or rows.weight is None:
        return rows, rows
    # Rows of weight 0 change no result, and are not counted.
    used_rows = rows if rows.weight.all() else rows[rows.weight > 0]
    if weight_kind is None:
        new_notes = (note for note in frequency_weight_notes(used_rows.w) if note not in used_rows.notes)
        used_rows = used_rows.with_notes(*new_notes)
    return rows, used_rows


@insert_shared_parameters
def resolve_data(data: Any, mode: str | None, weight_kind: str | None) -> Predictions | Tally:
    """Return Predictions if the rows fit into memory, else a Tally; without rows of weight 0.

    Parameters
    ----------
    data, mode, weight_kind : as in `resolve_all`
    """
    return resolve_all(data, mode, weight_kind)[1]


def resolve_and_sample(
    data: Any, mode: str | None, weight_kind: str | None, seed: int, progress: Any
) -> tuple[Predictions | Tally, Predictions | Tally, Reservoir | None]:
    """Resolve data as `resolve_all` does; if they are tallied, also return a random sample of the rows.

    The sample is drawn in the same pass over the rows. It is None for rows in memory and for a tally that is passed.
    `progress` is called with the number of rows that have been read and their total number, if it is known.
    """
    sample: list[Reservoir] = []

    def tally_and_sample(source: Source) -> Tally:
        """Tally the source and keep a random sample in the same pass."""
        result: SampledTally = source.reduce(
            partial(SampledTally.from_predictions, seed=seed), progress=progress, keyed=True
        )
        sample.append(result.sample)
        return result.tally

    all_rows, rows = resolve_all(data, mode, weight_kind, tally_and_sample, progress)
    return all_rows, rows, sample[0] if sample else None


def _check_mode(mode: Any, weight_kind: Any) -> None:
    """Raise TO203 for an invalid mode or kind of weights."""
    check("mode", mode, Literal["exact", "tally"] | None, None)
    check("weight_kind", weight_kind, Literal["importance", "frequency"] | None, None)


def _collect_or_tally(
    data: Any, mode: str | None, tally_source: Callable[[Source], Tally], progress: Any
) -> Predictions | Tally:
    """Return the rows if they fit into memory or `mode` requires it, else tally the source."""
    if isinstance(data, Predictions) and mode != "tally":
        return data
    source = read_for_call(data)
    if mode == "exact":
        return source.collect(progress=progress)
    if mode is None:
        preds = source.collect_within(max_probabilities_in_memory(), progress=progress)
        if preds is not None:
            return preds
    return tally_source(source)


def resolve_for_fit(data: Any, mode: str | None, weight_kind: str | None, limit: int) -> Predictions | Source | Tally:
    """Return Predictions if the rows have at most `limit` probabilities, else a source of them.

    A calibrator is fitted to a source in several passes. A tally is returned as it is. The other parameters are those
    of `resolve_data`.
    """
    _check_mode(mode, weight_kind)
    in_memory = isinstance(data, Tally) or (isinstance(data, Predictions) and mode is None)
    if in_memory or mode == "exact":
        return resolve_data(data, mode, weight_kind)
    source = read_for_call(data)
    preds = None if mode == "tally" else source.collect_within(limit)
    return source if preds is None else resolve_data(preds, "exact", weight_kind)
