"""Blocks: the columns of a batch as arrays by role (probabilities, outcomes, weights, …), not yet validated.

`TableSource` makes a `Block` of each batch of a table, and validates it as `Predictions`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, argument
from trueodds.core.printable import escape_marks
from trueodds.core.typing import Array
from trueodds.data.labels import UNKNOWN_LABEL_TEXT, compare_labels, suggest_classes
from trueodds.data.remedies import number_text_remedies, restate_own_arguments
from trueodds.io.columns import ColumnRoles
from trueodds.io.conversion import Place, is_all_masked, mask_missing, masked_labels
from trueodds.io.table import ColumnBatch
from trueodds.kernels.row_fingerprints import hash_ids

_ROWS_PER_COPY = 4096  # number of rows that are copied at a time, so that they stay in the cache
_ROW_BITS = 40  # number of bits of an id that hold the row; the higher bits hold the number of the table

# Codes of the errors of labels that are no class numbers, with the dtype kind of the labels; the remedy lists the
# labels as `classes`.
_LABEL_ERRORS = {("TO106", "U"), ("TO106", "f"), ("TO105", "i"), ("TO105", "f")}


@dataclass(frozen=True, slots=True)
class BlockSegment:
    """Location of consecutive rows in one table."""

    table_name: str  # for error messages
    first_row: int  # number of the first row in the table
    n: int  # number of rows
    table_number: int = 0  # number of the table among those read together


@dataclass(frozen=True, slots=True)
class Block:
    """Unvalidated rows: probabilities, outcomes and the other columns."""

    segments: tuple[BlockSegment, ...]  # where the rows are, in their order
    p: Array  # (n,) or (n, K): probabilities, logits or confidence
    y: Array | None  # (n,) labels, masked where they are missing, or (n, K) votes or 0/1
    weight: Array | None  # (n,)
    group: dict[str, Array]  # column name -> (n,)
    cluster: Array | None  # (n,)
    row_id: Array | None = None  # (n,) values of the id column

    @property
    def n(self) -> int:
        return len(self.p)

    @property
    def present_labels(self) -> Array | None:
        """The labels that are not missing."""
        return np.ma.compressed(self.y) if isinstance(self.y, np.ma.MaskedArray) else self.y

    def locate_error(self, problem: InputError, roles: ColumnRoles, is_part: bool) -> InputError:
        """Return the error with its file, column and row of the file, and with the range of a block that `is_part`."""
        fix = self._remedy_with_columns(problem, roles)
        if problem.code == "TO102" and roles.kind == "confidence" and "percentages" in fix:
            fix = "If 70 means 70 %, ⟨divide by 100⟩."
        elif problem.code == "TO102" and roles.kind == "confidence" and "logits" in fix:
            fix = "If these are log-probabilities, write exp(x) in their place."
        got, segment = problem.got, self.segments[0]
        mentions = list(re.finditer(r"\brow (\d+)(, class (\d+))?", got))
        if mentions:
            mention = mentions[-1]  # an earlier one may be a label that looks like a position
            segment, row = self._find_row(int(mention[1]))
            location = f"row {row}" + (mention[2] or "")
            is_outcome_error = problem.code in ("TO111", "TO116")
            columns = roles.truth if is_outcome_error else roles.probs
            if mention[3] is not None and len(columns) > 1:
                location += f" (column {columns[int(mention[3])]!r})"
            got = got[: mention.start()] + location + got[mention.end() :]
        table_text = segment.table_name
        if len(self.segments) > 1 and not mentions:
            table_text += f" and {len(self.segments) - 1:,} more"
        if is_part:
            table_text += f", rows {segment.first_row:,} to {segment.first_row + segment.n - 1:,}"
        return InputError(problem.code, problem.problem, got + f", in {table_text}" if got else table_text, fix)

    def _remedy_with_columns(self, problem: InputError, roles: ColumnRoles) -> str:
        if problem.code == "TO109" and roles.kind == "classes" and len(roles.probs) == len(roles.truth) == 1:
            probs = argument(roles.probs_keyword, roles.truth[0])
            return f"Swap the columns: {argument('label', roles.probs[0])}, {probs}."
        has_class_names = problem.problem == UNKNOWN_LABEL_TEXT
        labels = self.present_labels
        is_label_error = labels is not None and (problem.code, labels.dtype.kind) in _LABEL_ERRORS
        if is_label_error and not has_class_names and "classes=[" in problem.fix:
            assert labels is not None
            single = len(roles.probs) == 1 and self.p.ndim == 1
            fix = suggest_classes(
                labels, self.p.shape[1] if self.p.ndim == 2 else 2, is_single=single, column=roles.probs[0]
            )
            problem = InputError(problem.code, problem.problem, problem.got, fix)
        fix = restate_own_arguments(problem, escape_marks(f"logits={column_pattern(roles.probs)!r}")).fix
        if is_label_error and not has_class_names and len(roles.truth) == 1:
            assert labels is not None
            if len(np.unique(labels)) > max(2, len(roles.probs)):
                fix += " If not, pass another ⟨label=⟩."
        return fix

    def _find_row(self, row: int) -> tuple[BlockSegment, int]:
        """Return the segment of a row of the block, and the number of the row in its file."""
        for segment in self.segments:
            if row < segment.n:
                return segment, segment.first_row + row
            row -= segment.n
        raise IndexError(row)


def column_pattern(names: Sequence[str]) -> Any:
    """Return the pattern that the names of columns have in common, or else the names.

    >>> column_pattern(["z_0", "z_1"]), column_pattern(["a", "b"]), column_pattern(["score"])
    ('z_*', ['a', 'b'], 'score')
    """
    first = names[0]
    if len(names) == 1:
        return first
    prefixes = (first[:end] for end in range(len(first), 0, -1))
    prefix = next((start for start in prefixes if all(name.startswith(start) for name in names)), None)
    return f"{prefix}*" if prefix else list(names)


def make_block(batch: ColumnBatch, roles: ColumnRoles, table_name: str, first_row: int, table_number: int = 0) -> Block:
    """Return the columns of a batch by role; its first row is row `first_row` of the table."""
    p = column_matrix(batch, roles.probs, table_name, first_row)
    if roles.kind == "multilabel" and p.ndim == 1 and roles.truth:
        raise InputError(
            "TO101",
            "A single label is a problem of two classes.",
            f"{argument('multilabel', roles.truth[0])} of {table_name}",
            f"Pass {argument('label', roles.truth[0])} and {argument(roles.probs_keyword, roles.probs[0])} instead.",
        )
    y = None
    if roles.kind in ("votes", "multilabel") and roles.truth:
        y = column_matrix(batch, roles.truth, table_name, first_row)
    elif len(roles.truth) == 2:
        y = _correctness(batch, roles, table_name, first_row)
    elif roles.truth:
        y = batch[roles.truth[0]]
    weight = None if roles.weight is None else column_matrix(batch, [roles.weight], table_name, first_row)
    single_columns = [*roles.group, *(name for name in (roles.cluster, roles.row_id) if name)]
    _refuse_lists(batch, single_columns, table_name, first_row)
    return Block(
        segments=(BlockSegment(table_name, first_row, len(p), table_number),),
        p=p,
        y=y,
        weight=weight,
        group={column: batch[column] for column in roles.group},
        cluster=None if roles.cluster is None else batch[roles.cluster],
        row_id=None if roles.row_id is None else batch[roles.row_id],
    )


def _correctness(batch: ColumnBatch, roles: ColumnRoles, table_name: str, first_row: int) -> Array:
    """Whether the two columns of the outcome, the label and the predicted label, are equal, (n,)."""
    _refuse_lists(batch, roles.truth, table_name, first_row)
    label, predicted = roles.truth
    labels = batch[label]
    if is_all_masked(labels):
        return labels
    try:
        if isinstance(labels, np.ma.MaskedArray):
            return np.ma.array(compare_labels(labels.data, batch[predicted]), mask=labels.mask)
        return compare_labels(labels, batch[predicted])
    except InputError as problem:
        got = re.sub(r"\brow (\d+)", lambda row: f"row {first_row + int(row[1])}", problem.got)
        got = f"{got}, in the columns {label!r} and {predicted!r} of {table_name}"
        raise InputError(problem.code, problem.problem, got, problem.fix) from None


def _refuse_lists(batch: ColumnBatch, columns: Sequence[str], table_name: str, first_row: int) -> None:
    """Raise TO307 if one of the columns has a list in each row."""
    for column in columns:
        if batch[column].ndim != 1:
            place, fix = Place(table_name, column, first_row), "Name a column with one value per row."
            raise place.wrong_type_error("a column of lists", fix)


def column_matrix(batch: ColumnBatch, names: Sequence[str], table_name: str, first_row: int) -> Array:
    """Stack the columns of these names to a C-contiguous matrix (n, K); floats keep their type, others become float64.

    A single column of floats is returned as it is, (n,) or, for lists, (n, K). The table name and row are for errors.
    """
    columns = [batch[name] for name in names]
    for name, values in zip(names, columns, strict=True):
        if values.dtype.kind not in "biuf":
            got = f"text {str(values[0])!r} in row {first_row}, which is not a number"
            raise Place(table_name, name, first_row).wrong_type_error(got, *number_text_remedies([str(values[0])]))
        if values.ndim != 1 and len(columns) > 1:
            raise Place(table_name, name, first_row).wrong_type_error("a column of lists", "Name only that column.")
    if len(columns) == 1:
        return columns[0] if columns[0].dtype.kind == "f" else columns[0].astype(np.float64)
    all_floats = all(values.dtype.kind == "f" for values in columns)
    dtype = np.result_type(*columns) if all_floats else np.dtype(np.float64)
    out = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    for first in range(0, len(out), _ROWS_PER_COPY):
        rows = slice(first, first + _ROWS_PER_COPY)
        for j, values in enumerate(columns):
            out[rows, j] = values[rows]
    return out


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Concatenate the rows of blocks with the same columns; consecutive rows of one table become one segment."""
    if len(blocks) == 1:
        return blocks[0]

    def concatenate_optional(parts: Sequence[Array | None]) -> Array | None:
        return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])

    segments: list[BlockSegment] = []
    for segment in (segment for block in blocks for segment in block.segments):
        last = segments[-1] if segments else None
        if last is not None and (last.table_number, last.table_name, last.first_row + last.n) == (
            segment.table_number,
            segment.table_name,
            segment.first_row,
        ):
            segments[-1] = replace(last, n=last.n + segment.n)
        else:
            segments.append(segment)
    return Block(
        segments=tuple(segments),
        p=np.concatenate([block.p for block in blocks]),
        y=_join_labels([block.y for block in blocks if block.y is not None]),
        weight=concatenate_optional([block.weight for block in blocks]),
        group={name: np.concatenate([block.group[name] for block in blocks]) for name in blocks[0].group},
        cluster=concatenate_optional([block.cluster for block in blocks]),
        row_id=concatenate_optional([block.row_id for block in blocks]),
    )


def _join_labels(parts: Sequence[Array]) -> Array | None:
    """Concatenate the labels of blocks; a block without any label has no type of its own."""
    if not parts:
        return None
    if not any(isinstance(part, np.ma.MaskedArray) for part in parts):
        return np.concatenate(parts)
    dtype = next((part.dtype for part in parts if not is_all_masked(part)), parts[0].dtype)
    typed = [masked_labels(len(part), dtype) if is_all_masked(part) else part for part in parts]
    is_missing = np.concatenate([np.ma.getmaskarray(part) for part in typed])
    return mask_missing(np.concatenate([np.asarray(part) for part in typed]), is_missing)


class ColumnConsistency:
    """Check that all batches have the same kind and columns as the first one."""

    def __init__(self) -> None:
        self._first_kinds: dict[str, str] = {}

    def check_unchanged(self, batch: ColumnBatch, roles: ColumnRoles, block: Block) -> None:
        """Raise InputError if a column changes its kind, or the probabilities their type or number of classes."""
        segment = block.segments[0]
        numeric = roles.numeric
        for column in roles.names:
            if column not in numeric and not is_all_masked(batch[column]):
                kind = "text" if batch[column].dtype.kind == "U" else "numbers"
                self._check_kind(column, kind, segment)
        kind = f"{block.p.dtype}" + (f" with {block.p.shape[1]} classes" if block.p.ndim == 2 else "")
        self._check_kind(roles.probs[0], kind, segment)

    def _check_kind(self, column: str, kind: str, segment: BlockSegment) -> None:
        first_kind = self._first_kinds.setdefault(column, kind)
        if first_kind != kind:
            raise Place(segment.table_name, column, segment.first_row).type_change_error(0, first_kind, kind)


def row_ids(block: Block, first_table_number: int) -> Array:
    """Return the ids (n,) uint64 of rows: from the id column, else from table and position."""
    if block.row_id is not None:
        return hash_ids(block.row_id)
    parts = [
        np.arange(segment.first_row, segment.first_row + segment.n, dtype=np.uint64)
        + np.uint64((first_table_number + segment.table_number) << _ROW_BITS)
        for segment in block.segments
    ]
    return np.concatenate(parts)
