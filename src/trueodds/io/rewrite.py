"""How does a file get other probabilities? Batch by batch, every other column as it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.atomic import replacing
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data import validation
from trueodds.io.blocks import Block, Segment, matrix
from trueodds.io.delimited import CsvTable
from trueodds.io.files import format_of, needs_pyarrow
from trueodds.io.plan import Plan
from trueodds.io.source import Source
from trueodds.io.table import Table
from trueodds.io.tabled import TableSource
from trueodds.io.values import Place
from trueodds.io.writers import writer_of


def rewrite(
    source: Source,
    transform: Callable[[Array], Any],
    out: str | os.PathLike[str],
    *,
    logits: bool = False,
    percent: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> int:
    """Write the rows of a file with other probabilities; the number of rows written.

    Columns, names and order stay; the probability columns hold the new values in float64. Columns of logits become
    columns of probabilities, named ``p_…`` instead. No label is needed: read with ``label=None``.

    Parameters
    ----------
    source : Source
        Of a file or of several; they are written into one.
    transform : callable
        From (n, K) float64 probabilities to (n, K), for instance a fitted calibrator's `predict_proba`.
    logits : bool
        Whether `transform` takes the logits of the file instead.
    percent : bool
        Whether a confidence of 70 means 70 %; the new ones are written likewise.
    out : path
        .parquet, .csv, .jsonl, .ndjson, .arrow, .feather or .npz. It appears when all is written, or not at all;
        it may be the file that is read.

    Raises
    ------
    InputError
        TO314 for a source that is no file, an unknown suffix, or rows that the format cannot hold.
    """
    if not isinstance(source, TableSource):
        raise InputError("TO314", "Only files can be rewritten.", source.name, "Use predict_proba on the array.")
    target = Path(out).expanduser()
    form = format_of(str(target), "TO314")
    if form in ("parquet", "arrow"):
        needs_pyarrow(str(target))
    if not target.parent.is_dir():
        raise InputError("TO314", "The folder to write into does not exist.", str(target.parent), "Make it first.")
    done = 0
    with replacing(target, "TO314") as file, writer_of(form, file, str(target)) as writer:
        for columns, n in _renewed(source, transform, form, logits, 100 if percent else 1):
            writer.write(columns, done)
            done += n
            if progress is not None:
                progress(done, source.rows)
    return done


def _renewed(
    source: TableSource, transform: Callable[[Array], Any], form: str, logits: bool, scale: int
) -> Iterator[tuple[dict[str, Any], int]]:
    plan, columns = source.plan, source.tables[0].columns
    none = True
    for table in source.tables:
        if set(table.columns) != set(columns):
            odd = sorted(set(table.columns) ^ set(columns))[0]
            raise InputError(
                "TO309",
                f"Files that are written into one must have the same columns; those of {source.tables[0].name} and "
                f"{table.name} differ.",
                f"{odd!r} in only one of them",
                "Apply to them one by one.",
            )
        start = 0
        for chunk in _chunks(table, plan, source.size, form):
            values = {name: table.numbers(chunk[name], Place(table.name, name, start)) for name in plan.probs}
            p = matrix(values, plan.probs, table.name, start)
            if len(p) == 0:
                continue
            block = Block((Segment(table.name, start, len(p)),), p, None, None, {}, None)
            try:
                P = probabilities(p / scale if scale > 1 else p, plan, source.sum_tolerance, logits)
            except InputError as problem:
                raise block.located(problem, plan, part=True) from None
            Q = np.asarray(transform(P), dtype=np.float64)
            if Q.shape != P.shape:
                raise InputError(
                    "TO314",
                    "The transform must give as many rows and classes as it is given.",
                    f"{Q.shape} for {P.shape}",
                    "Apply a calibrator that was fitted for these classes.",
                )
            Q = Q * scale if scale > 1 else Q
            yield _replaced({name: chunk[name] for name in columns}, plan, Q, p.ndim, table.name), len(p)
            start, none = start + len(p), False
    if none:
        raise InputError("TO312", f"{source.name} is empty.", "0 rows", "Give at least one row.")


def _chunks(table: Table, plan: Plan, size: int, form: str) -> Iterator[dict[str, Any]]:
    """Every column; a format with types gets them from Arrow, where CSV has none."""
    numeric = frozenset(plan.probs)
    if form in ("parquet", "arrow") and hasattr(table, "typed_chunks"):
        return table.typed_chunks(numeric, size)
    if form in ("jsonl", "npz") and isinstance(table, CsvTable):
        return table.valued_chunks(numeric, size)
    return table.chunks(numeric, size)


def probabilities(p: Array, plan: Plan, sum_tolerance: float | None = None, logits: bool = False) -> Array:
    """Checked probabilities (n, K) in float64 of what the columns hold; a single number is that of the second class.

    With `logits`, columns of logits stay what they are.

    >>> probabilities(np.array([0.25]), Plan("classes", ("p",), None, ("label",))).tolist()
    [[0.75, 0.25]]
    """
    values = validation.numbers(p, "the probabilities")
    validation.shape(values, "the probabilities")
    if plan.logits and logits:
        values = validation.logits(values)
        return np.stack([np.zeros_like(values), values], axis=1) if values.ndim == 1 else values
    if plan.logits:
        values = validation.softmax(values)
    else:
        validation.probabilities(values, p.dtype, sum_tolerance, sums=plan.kind in ("classes", "votes"))
    values = values.astype(np.float64)
    return np.stack([1 - values, values], axis=1) if values.ndim == 1 else values


def _replaced(chunk: dict[str, Any], plan: Plan, Q: Array, ndim: int, name: str) -> dict[str, Any]:
    if len(plan.probs) > 1:
        new = {column: Q[:, j] for j, column in enumerate(plan.probs)}
    else:
        new = {plan.probs[0]: Q if ndim == 2 else Q[:, 1]}
    names = dict(zip(plan.probs, _new_names(plan), strict=True))
    written = {names.get(column, column): new.get(column, cells) for column, cells in chunk.items()}
    if len(written) < len(chunk):
        clash = next(new_name for column, new_name in names.items() if new_name != column and new_name in chunk)
        raise InputError(
            "TO313",
            f"{name} has a column already where the new probabilities go.",
            repr(clash),
            "Rename it, or write the rows without it.",
        )
    return written


def _new_names(plan: Plan) -> tuple[str, ...]:
    """Probabilities are not written under the name of logits."""
    if not plan.logits:
        return plan.probs
    if len(plan.probs) == 1:
        return ("p",)
    suffixes = plan.suffixes if plan.suffixes is not None and plan.suffixes != plan.probs else range(len(plan.probs))
    return tuple(f"p_{suffix}" for suffix in suffixes)
