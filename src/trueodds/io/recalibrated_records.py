"""Write records of answers again with recalibrated confidences or probabilities, without reading any outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.io.abstentions import find_abstentions
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.option_confidence import option_log_probs
from trueodds.io.records import Record, iterate_records
from trueodds.io.stated_confidence import read_stated_confidences
from trueodds.io.write import write_columns


def recalibrate_stated(
    data: Any,
    transform: Callable[[Array], Array],
    out: str,
    *,
    confidence: str,
    percent: bool = False,
    abstained: Sequence[str] = (),
    csv_settings: CsvSettings = DETECTED,
) -> tuple[int, list[Note]]:
    """Write records with recalibrated confidences, and return their number and notes on the scale and the cells.

    `transform` maps fractions (n,) to fractions (n,). Percentages are written as numbers from 0 to 100. Records that
    abstain (see `read_answers`) are unchanged.
    """
    records, answered_numbers = _answered_records(data, abstained, confidence, csv_settings)
    answered_rows = [records[i] for i in answered_numbers]
    stated, notes = read_stated_confidences(answered_rows, confidence, percent, refuse_fractions=True)
    recalibrated = transform(stated) * (100 if percent else 1)
    fields = [dict(record.fields) for record in records]
    for i, value in zip(answered_numbers, recalibrated.tolist(), strict=True):
        fields[i] = _replace_field(fields[i], confidence, value)
    return len(records), [*notes, *_write_records(out, fields)]


def recalibrate_options(
    data: Any,
    transform: Callable[[Array], Array],
    out: str,
    *,
    options: str,
    class_names: Sequence[Any],
    abstained: Sequence[str] = (),
    csv_settings: CsvSettings = DETECTED,
) -> tuple[int, list[Note]]:
    """Write records with the recalibrated probabilities of their options in new fields ``p_…``.

    `transform` maps log-probabilities (n, K) to probabilities (n, K) of the classes. Records that abstain have empty
    fields.
    """
    records, answered_numbers = _answered_records(data, abstained, options, csv_settings)
    log_probs = [option_log_probs(records[i], options) for i in answered_numbers]
    for i, values in zip(answered_numbers, log_probs, strict=True):
        if len(values) != len(class_names):
            raise InputError(
                "TO607",
                f"The calibrator is for {len(class_names)} options.",
                f"{len(values)} in {records[i].location}",
                "Fit and apply calibrators to questions with the same number of options.",
            )
    names = [f"p_{name}" for name in class_names]
    fields = [dict(record.fields) | dict.fromkeys(names) for record in records]
    if clash := next((name for name in names if any(name in record.fields for record in records)), None):
        problem = "The records already have a field with the name of the new probabilities."
        raise InputError("TO313", problem, repr(clash), "Rename or remove it.")
    for i, row in zip(answered_numbers, transform(np.array(log_probs)).tolist(), strict=True):
        fields[i] |= dict(zip(names, row, strict=True))
    return len(records), [*_write_records(out, fields)]


def _answered_records(
    data: Any, abstained: Sequence[str], field: str, csv_settings: CsvSettings
) -> tuple[list[Record], list[int]]:
    """Return all records, and the numbers of those with an answer; raise TO319 if there is none."""
    records = list(iterate_records(data, csv_settings))
    if not records:
        raise InputError("TO312", "There are no records.", "0 rows", "Write one JSON object per question.")
    is_answered = find_abstentions(records, abstained, field).is_answered
    answered_numbers = [i for i, answered in enumerate(is_answered) if answered]
    if not answered_numbers:
        records[0].value(field)  # raises an error if no record has that field
        got = f"{len(records):,} rows of {records[0].source}"
        raise InputError("TO319", "Every row abstains.", got, "Pass rows with at least one answer.")
    return records, answered_numbers


def _replace_field(fields: Any, name: str, value: Any) -> Any:
    """Return a copy of the fields in which one, found as in `Record.value`, has another value.

    >>> _replace_field({"a": {"c": 85}, "b": [1, 2]}, "a.c", 70.5)
    {'a': {'c': 70.5}, 'b': [1, 2]}
    """
    if isinstance(fields, Mapping):
        if name in fields:
            return {**fields, name: value}
        for position in [i for i, letter in enumerate(name) if letter == "."]:
            if (outer := name[:position]) in fields:
                return {**fields, outer: _replace_field(fields[outer], name[position + 1 :], value)}
    first, _, rest = name.partition(".")
    items = list(fields)
    items[int(first)] = _replace_field(items[int(first)], rest, value) if rest else value
    return items


def _write_records(out: str, records: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Write records as a table of their fields, of which a record may lack some; return notes on the cells."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return write_columns(out, {name: [record.get(name) for record in records] for name in names})
