"""Write files again with recalibrated probabilities: tables, whose other columns stay, and records of answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.probabilities import check_logits, check_probabilities, softmax
from trueodds.io.answer_confidence import option_log_probs
from trueodds.io.blocks import Block, BlockSegment, column_matrix
from trueodds.io.columns import ColumnRoles
from trueodds.io.conversion import Place
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.files import writable_format, write_columns
from trueodds.io.nested_fields import NO_FIELD, find_field, path_splits
from trueodds.io.questions import find_abstentions
from trueodds.io.records import Record, read_records
from trueodds.io.source import RowProgress, Source
from trueodds.io.stated_confidence import PercentScale, read_stated_confidences
from trueodds.io.table import Writer, to_list
from trueodds.io.table_source import TableSource, check_same_columns


def rewrite(
    source: Source,
    transform: Callable[..., Any],
    out: str | os.PathLike[str],
    *,
    logits: bool = False,
    percent: PercentScale | None = None,
    progress: RowProgress | None = None,
) -> tuple[int, tuple[Note, ...]]:
    """Rewrite files with recalibrated probabilities; return the number of rows, and notes on the cells.

    `transform` maps probabilities (n, K), or with `logits` the logits of the file, to (n, K); if the source has group
    columns, it also gets these by name, as a second argument. The other columns, the names and the order stay; the
    columns of probabilities hold the new values in float64. Columns of logits become columns of probabilities, named
    ``p_…`` instead. No label is needed: read with ``label=None``. The file appears when it is complete, or not at all;
    it may be the one that is read. With `percent` a confidence of 70 means 70 %, in the input and in the output; it
    counts values that may be fractions.
    """
    if not isinstance(source, TableSource):
        raise InputError("TO314", "Only files can be rewritten.", source.name, "Use predict_proba on the array.")
    target = Path(os.path.expanduser(out))
    file_format = writable_format(target)
    rows_written = 0
    with open_atomic(target, "TO314") as file, file_format.make_writer(file, str(target)) as writer:
        for columns, n in _transform_chunks(source, transform, writer, logits, percent):
            writer.write(columns, rows_written)
            rows_written += n
            if progress is not None:
                progress(rows_written, source.rows)
        if percent is not None:
            percent.refuse_fractions()
    return rows_written, writer.notes


def _transform_chunks(
    source: TableSource, transform: Callable[..., Any], writer: Writer, logits: bool, percent: PercentScale | None
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the columns of each chunk with the transformed probabilities, and the number of its rows."""
    if percent is not None and any(table.number_notes(source.roles.probs) for table in source.tables):
        # Read as records, which count percentages with and without a sign apart.
        raise Place(source.name, source.roles.probs[0]).wrong_type_error("percentages as text")
    roles, columns = source.roles, source.tables[0].columns
    is_empty = True
    for table in source.tables:
        check_same_columns(source.tables[0].name, columns, table.name, table.columns, is_output=True)
        next_row = 0
        for chunk in writer.chunks_of(table, frozenset(roles.probs), source.max_batch_rows):
            values = table.columns_of_chunk(chunk, roles.probs, next_row)
            p = column_matrix(values, roles.probs, table.name, next_row)
            if len(p) == 0:
                continue
            fractions = p if percent is None else p / 100
            try:
                P = check_and_convert_probabilities(fractions, roles, source.sum_tolerance, logits)
            except InputError as problem:
                segments = (BlockSegment(table.name, next_row, len(p)),)
                block = Block(segments, p, y=None, weight=None, group={}, cluster=None)
                raise block.locate_error(problem, roles, is_part=True) from None
            transformed = _apply_transform(transform, P, _group_columns(table, chunk, roles, len(p)))
            if percent is not None:
                percent.add_column(p, table.name, next_row)
                transformed = transformed * 100
            ordered_chunk = {name: chunk[name] for name in columns}
            ordered_chunk |= {name: [value] * len(p) for name, value in table.partition.items() if name not in chunk}
            yield _replace_columns(ordered_chunk, roles, transformed, p.ndim, table.name), len(p)
            next_row, is_empty = next_row + len(p), False
    if is_empty:
        raise InputError("TO312", f"{source.name} is empty.", "0 rows", "Give at least one row.")


def _group_columns(table: Any, chunk: Mapping[str, Any], roles: ColumnRoles, n: int) -> dict[str, Array]:
    """Return the group columns of a chunk; one in the name of the folder has the same value in all n rows."""
    return {
        name: np.asarray(to_list(chunk[name])) if name in chunk else np.full(n, table.partition[name])
        for name in roles.group
    }


def _apply_transform(transform: Callable[..., Any], P: Array, group: Mapping[str, Array]) -> Array:
    """Return the transformed probabilities in float64; raise TO314 if they have another shape than P (n, K)."""
    transformed = np.asarray(transform(P, group) if group else transform(P), dtype=np.float64)
    if transformed.shape != P.shape:
        raise InputError(
            "TO314",
            "The transform must return the number of rows and classes that it receives.",
            f"{transformed.shape} for {P.shape}",
            "Apply a calibrator that was fitted for these classes.",
        )
    return transformed


def check_and_convert_probabilities(
    p: Array, roles: ColumnRoles, sum_tolerance: float | None = None, logits: bool = False
) -> Array:
    """Return checked probabilities (n, K) in float64 from the columns p, (n,) of the second of two classes or (n, K).

    Columns of logits are converted by the softmax. With `logits` they are returned as logits; those of a single column
    z are (0, z).

    >>> check_and_convert_probabilities(np.array([0.25]), ColumnRoles("classes", ("p",), None, ("label",))).tolist()
    [[0.75, 0.25]]
    """
    values = arrays.as_float_array(p, "the probabilities")
    arrays.check_shape(values, "the probabilities")
    if roles.logits and logits:
        values = check_logits(values)
        return np.stack([np.zeros_like(values), values], axis=1) if values.ndim == 1 else values
    if roles.logits:
        values = softmax(values)
    else:
        check_probabilities(values, p.dtype, sum_tolerance, check_sums=roles.kind in ("classes", "votes"))
    values = values.astype(np.float64)
    return np.stack([1 - values, values], axis=1) if values.ndim == 1 else values


def _replace_columns(
    chunk: dict[str, Any], roles: ColumnRoles, transformed: Array, ndim: int, name: str
) -> dict[str, Any]:
    """Return a chunk of the table with recalibrated probabilities (n, K) instead of the original columns.

    `ndim` is 1 if the table has a single column with the probability of the second class, else 2.
    """
    if len(roles.probs) > 1:
        new_columns = {column: transformed[:, j] for j, column in enumerate(roles.probs)}
    else:
        new_columns = {roles.probs[0]: transformed if ndim == 2 else transformed[:, 1]}
    new_names = dict(zip(roles.probs, output_column_names(roles), strict=True))
    renamed = {new_names.get(column, column): new_columns.get(column, cells) for column, cells in chunk.items()}
    fields = {new_names[column]: values for column, values in new_columns.items() if column not in chunk}
    if len(renamed) < len(chunk) or not renamed.keys().isdisjoint(fields):
        clash = next(new_name for column, new_name in new_names.items() if new_name != column and new_name in chunk)
        raise InputError(
            "TO313",
            f"{name} already has a column with the name of the new probabilities.",
            repr(clash),
            "Rename or remove it.",
        )
    return renamed | fields  # fields become columns, which are read instead of the fields


def output_column_names(roles: ColumnRoles) -> tuple[str, ...]:
    """Return the names of the output columns: those of the input, or ``p_…`` if it held logits."""
    if not roles.logits:
        return roles.probs
    if len(roles.probs) == 1:
        return ("p",)
    if roles.suffixes is None or roles.suffixes == roles.probs:  # the names have no common pattern
        return tuple(f"p_{j}" for j in range(len(roles.probs)))
    return tuple(f"p_{suffix}" for suffix in roles.suffixes)


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
    records = read_records(data, csv_settings)
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
        for outer, inner in path_splits(name):
            if outer in fields and find_field(fields[outer], inner) is not NO_FIELD:
                return {**fields, outer: _replace_field(fields[outer], inner, value)}
    first, _, rest = name.partition(".")
    items = list(fields)
    items[int(first)] = _replace_field(items[int(first)], rest, value) if rest else value
    return items


def _write_records(out: str, records: list[dict[str, Any]]) -> tuple[Note, ...]:
    """Write records as a table of their fields, of which a record may lack some; return notes on the cells."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return write_columns(out, {name: [record.get(name) for record in records] for name in names})
