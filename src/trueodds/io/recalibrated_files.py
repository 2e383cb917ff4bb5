"""Write the rows of files again with recalibrated probabilities; all other columns, names and the order stay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.probabilities import check_logits, check_probabilities, softmax
from trueodds.io.blocks import Block, BlockSegment, column_matrix
from trueodds.io.columns import ColumnRoles
from trueodds.io.conversion import Place
from trueodds.io.csv_reader import CsvTable
from trueodds.io.source import RowProgress, Source
from trueodds.io.stated_confidence import PercentScale
from trueodds.io.table import Table
from trueodds.io.table_source import TableSource
from trueodds.io.write import make_writer, writable_format


def rewrite(
    source: Source,
    transform: Callable[[Array], Any],
    out: str | os.PathLike[str],
    *,
    logits: bool = False,
    percent: PercentScale | None = None,
    progress: RowProgress | None = None,
) -> tuple[int, tuple[Note, ...]]:
    """Write the rows of files again with recalibrated probabilities; return their number, and notes on the cells.

    `transform` maps probabilities (n, K), or with `logits` the logits of the file, to (n, K). The other columns, the
    names and the order stay; the columns of probabilities hold the new values in float64. Columns of logits become
    columns of probabilities, named ``p_…`` instead. No label is needed: read with ``label=None``. The file appears when
    it is complete, or not at all; it may be the one that is read. With `percent` a confidence of 70 means 70 %, in the
    input and in the output; it counts values that may be fractions.
    """
    if not isinstance(source, TableSource):
        raise InputError("TO314", "Only files can be rewritten.", source.name, "Use predict_proba on the array.")
    target = Path(os.path.expanduser(out))
    file_format = writable_format(target)
    rows_written = 0
    with open_atomic(target, "TO314") as file, make_writer(file_format, file, str(target)) as writer:
        for columns, n in _transform_chunks(source, transform, file_format, logits, percent):
            writer.write(columns, rows_written)
            rows_written += n
            if progress is not None:
                progress(rows_written, source.rows)
        if percent is not None:
            percent.refuse_fractions()
    return rows_written, writer.notes


def _transform_chunks(
    source: TableSource, transform: Callable[[Array], Any], file_format: str, logits: bool, percent: PercentScale | None
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the columns of each chunk with the transformed probabilities, and the number of its rows."""
    if percent is not None and any(table.number_notes(source.roles.probs) for table in source.tables):
        # Read as records, which count percentages with and without a sign apart.
        raise Place(source.name, source.roles.probs[0]).wrong_type_error("percentages as text")
    roles, columns = source.roles, source.tables[0].columns
    is_empty = True
    for table in source.tables:
        _check_same_columns(source.tables[0], table)
        next_row = 0
        for chunk in _iterate_chunks(table, roles, source.max_batch_rows, file_format):
            values = table.columns_of_chunk(chunk, roles.probs, next_row)
            p = column_matrix(values, roles.probs, table.name, next_row)
            if len(p) == 0:
                continue
            fractions = p if percent is None else p / 100
            try:
                P = check_and_convert_probabilities(fractions, roles, source.sum_tolerance, logits)
            except InputError as problem:
                block = Block((BlockSegment(table.name, next_row, len(p)),), p, None, None, {}, None)
                raise block.locate_error(problem, roles, is_part=True) from None
            transformed = _apply_transform(transform, P)
            if percent is not None:
                percent.add_column(p, table.name, next_row)
                transformed = transformed * 100
            ordered_chunk = {name: chunk[name] for name in columns}
            ordered_chunk |= {name: [value] * len(p) for name, value in table.partition.items() if name not in chunk}
            yield _replace_columns(ordered_chunk, roles, transformed, p.ndim, table.name), len(p)
            next_row, is_empty = next_row + len(p), False
    if is_empty:
        raise InputError("TO312", f"{source.name} is empty.", "0 rows", "Give at least one row.")


def _check_same_columns(first_table: Table, table: Table) -> None:
    """Raise TO309 if a table has other columns than the first one; all columns are written into one file."""
    if mismatched := sorted(set(table.columns) ^ set(first_table.columns)):
        raise InputError(
            "TO309",
            f"Files that are written into one file must have the same columns, but those of {first_table.name}"
            f" and {table.name} differ.",
            f"{mismatched[0]!r} in only one of them",
            "Apply the calibrator to each file separately.",
        )


def _apply_transform(transform: Callable[[Array], Any], P: Array) -> Array:
    """Return the transformed probabilities in float64; raise TO314 if they have another shape than P (n, K)."""
    transformed = np.asarray(transform(P), dtype=np.float64)
    if transformed.shape != P.shape:
        raise InputError(
            "TO314",
            "The transform must return the number of rows and classes that it receives.",
            f"{transformed.shape} for {P.shape}",
            "Apply a calibrator that was fitted for these classes.",
        )
    return transformed


def _iterate_chunks(table: Table, roles: ColumnRoles, size: int, file_format: str) -> Iterator[dict[str, Any]]:
    """Return an iterator of the chunks of all columns, with typed values if the format that is written has types."""
    numeric = frozenset(roles.probs)
    if file_format in ("parquet", "arrow") and hasattr(table, "typed_chunks"):
        return table.typed_chunks(numeric, size)
    if file_format in ("jsonl", "npz") and isinstance(table, CsvTable):
        return table.valued_chunks(numeric, size)
    return table.chunks(numeric, size)


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
    """Return a chunk of the table with recalibrated probabilities (n, K) in place of the original columns.

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
    return renamed | fields  # fields become columns, which are read in place of the fields


def output_column_names(roles: ColumnRoles) -> tuple[str, ...]:
    if not roles.logits:
        return roles.probs
    if len(roles.probs) == 1:
        return ("p",)
    if roles.suffixes is None or roles.suffixes == roles.probs:  # the names have no common pattern
        return tuple(f"p_{j}" for j in range(len(roles.probs)))
    return tuple(f"p_{suffix}" for suffix in roles.suffixes)
