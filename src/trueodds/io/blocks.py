"""The raw arrays of one batch by role, with their row ids, before validation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.arrays import with_own_arguments
from trueodds.data.labels import name_classes
from trueodds.io.columns import ColumnRoles
from trueodds.io.conversion import Place
from trueodds.io.table import Batch

_NEAR = 4096  # number of rows whose columns are stacked at a time


@dataclass(frozen=True, slots=True)
class BlockSegment:
    """Location of consecutive rows in one table."""

    name: str
    start: int
    n: int
    table: int = 0  # number of the table among those read together


@dataclass(frozen=True, slots=True)
class Block:
    """Unvalidated rows: probabilities, outcomes and the other columns."""

    segments: tuple[BlockSegment, ...]
    p: Array  # (n,) or (n, K): probabilities, logits or confidence
    y: Array | None  # (n,) labels, or (n, K) votes or 0/1
    weight: Array | None
    group: dict[str, Array]
    cluster: Array | None
    row_id: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    def located(self, problem: InputError, plan: ColumnRoles, part: bool) -> InputError:
        """Return the error of a batch with the file, the column and the row of the file."""
        outcome = problem.code in ("TO111", "TO116")
        columns = plan.truth if outcome else plan.probs
        got, fix = problem.got, self._remedy(problem, plan)
        if problem.code == "TO102" and plan.kind == "confidence" and "percentages" in fix:
            fix = "If 70 means 70 %, divide by 100."
        # Replace the last occurrence only: earlier text may be a label that looks like a position.
        mentions = list(re.finditer(r"\brow (\d+)(, class (\d+))?", got))
        where = self.segments[0]
        if mentions:
            mention = mentions[-1]
            where, row = self._at(int(mention[1]))
            location = f"row {row}" + (mention[2] or "")
            if mention[3] is not None and len(columns) > 1:
                location += f" (column {columns[int(mention[3])]!r})"
            got = got[: mention.start()] + location + got[mention.end() :]
        among = f", rows {where.start:,} to {where.start + where.n - 1:,}" if part else ""
        several = f" and {len(self.segments) - 1:,} more" if len(self.segments) > 1 and not mentions else ""
        got = f"{got}, in {where.name}{several}{among}" if got else f"{where.name}{several}{among}"
        return InputError(problem.code, problem.problem, got, fix)

    def _remedy(self, problem: InputError, plan: ColumnRoles) -> str:
        """Return the remedy of an error with the names of the columns, as arguments of `read`."""
        if problem.code == "TO106" and self.y is not None and self.y.dtype.kind == "U":
            single = len(plan.probs) == 1 and self.p.ndim == 1
            fix = name_classes(self.y, self.p.shape[1] if self.p.ndim == 2 else 2, single=single, column=plan.probs[0])
            problem = InputError(problem.code, problem.problem, problem.got, fix)
        return with_own_arguments(problem, f"logits={column_pattern(plan.probs)!r}").fix

    def _at(self, row: int) -> tuple[BlockSegment, int]:
        for segment in self.segments:
            if row < segment.n:
                return segment, segment.start + row
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
    starts = (first[:end] for end in range(len(first), 0, -1))
    start = next((start for start in starts if all(name.startswith(start) for name in names)), None)
    return f"{start}*" if start else list(names)


def block_of(batch: Batch, plan: ColumnRoles, name: str, start: int, table: int = 0) -> Block:
    """Return the columns of a batch by role."""
    p = column_matrix(batch, plan.probs, name, start)
    y = None
    if plan.kind in ("votes", "multilabel") and plan.truth:
        y = column_matrix(batch, plan.truth, name, start)
    elif plan.truth:
        y = batch[plan.truth[0]]
    weight = None if plan.weight is None else column_matrix(batch, [plan.weight], name, start)
    for column in (*plan.group, *(extra for extra in (plan.cluster, plan.row_id) if extra)):
        if batch[column].ndim != 1:
            raise Place(name, column, start).wrong_type("a column of lists", "Name a column with one value per row.")
    return Block(
        (BlockSegment(name, start, len(p), table),),
        p,
        y,
        weight,
        {column: batch[column] for column in plan.group},
        None if plan.cluster is None else batch[plan.cluster],
        None if plan.row_id is None else batch[plan.row_id],
    )


def column_matrix(batch: Batch, names: Sequence[str], name: str, start: int) -> Array:
    """Stack columns to a C-contiguous matrix; floats keep their type, integers become float64."""
    columns = [batch[column] for column in names]
    for column, values in zip(names, columns, strict=True):
        if values.dtype.kind not in "biuf":
            raise Place(name, column, start).wrong_type(
                f"text {str(values[0])!r} in row {start}, which is not a number"
            )
        if values.ndim != 1 and len(columns) > 1:
            raise Place(name, column, start).wrong_type("a column of lists", "Name only that column.")
    if len(columns) == 1:
        return columns[0] if columns[0].dtype.kind == "f" else columns[0].astype(np.float64)
    floats = all(values.dtype.kind == "f" for values in columns)
    dtype = np.result_type(*columns) if floats else np.dtype(np.float64)
    out = np.empty((len(columns[0]), len(columns)), dtype=dtype)
    for first in range(0, len(out), _NEAR):  # block by block, so that the written rows stay in the cache
        part = slice(first, first + _NEAR)
        for j, values in enumerate(columns):
            out[part, j] = values[part]
    return out


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks."""
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]

    def stacked(parts: Sequence[Array | None]) -> Array | None:
        return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])

    segments: list[BlockSegment] = []
    for segment in (segment for block in blocks for segment in block.segments):
        last = segments[-1] if segments else None
        if last is not None and (last.table, last.name, last.start + last.n) == (
            segment.table,
            segment.name,
            segment.start,
        ):
            segments[-1] = replace(last, n=last.n + segment.n)
        else:
            segments.append(segment)
    return Block(
        tuple(segments),
        np.concatenate([block.p for block in blocks]),
        stacked([block.y for block in blocks]),
        stacked([block.weight for block in blocks]),
        {name: np.concatenate([block.group[name] for block in blocks]) for name in first.group},
        stacked([block.cluster for block in blocks]),
        stacked([block.row_id for block in blocks]),
    )


class Sameness:
    """Check that all batches have the same kind and columns as the first one."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def check_unchanged(self, batch: Batch, plan: ColumnRoles, block: Block) -> None:
        """Raise InputError if a column changes its kind, or the probabilities their type or number of classes."""
        segment = block.segments[0]
        numeric = plan.numeric
        for column in plan.names:
            if column not in numeric:
                kind = "text" if batch[column].dtype.kind == "U" else "numbers"
                self._same(column, kind, segment)
        kind = f"{block.p.dtype}" + (f" with {block.p.shape[1]} classes" if block.p.ndim == 2 else "")
        self._same(plan.probs[0], kind, segment)

    def _same(self, column: str, kind: str, segment: BlockSegment) -> None:
        first = self._first.setdefault(column, kind)
        if first != kind:
            raise Place(segment.name, column, segment.start).type_change_error(0, first, kind)


_TABLE = 40  # number of bits for the row; the higher bits are the number of the table


def row_ids(block: Block, first: int) -> Array:
    """Return the ids (n,) uint64 of rows: from the id column, else from table and position."""
    if block.row_id is not None:
        return hash_ids(block.row_id)
    parts = [
        np.arange(segment.start, segment.start + segment.n, dtype=np.uint64)
        + np.uint64((first + segment.table) << _TABLE)
        for segment in block.segments
    ]
    return np.concatenate(parts)


def hash_ids(ids: Array) -> Array:
    """Return integers unchanged, and a hash of the text of any other value.

    >>> hash_ids(np.array(["a", "b", "a"])).tolist()[0] == hash_ids(np.array(["a"])).tolist()[0]
    True
    """
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64)
    texts, where = np.unique(ids.astype(np.str_), return_inverse=True)
    hashes = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts.tolist()
    ]
    return np.array(hashes, dtype=np.uint64)[where.reshape(-1)]
