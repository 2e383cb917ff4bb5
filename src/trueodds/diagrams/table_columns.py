"""Columns of the tables of a diagram: build them from rows or parts, stack tables, and select parts and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array

Columns = dict[str, Array]  # the columns of a table by name, of equal length


def stack_tables(tables: Sequence[Mapping[str, Array]]) -> Columns:
    """Concatenate tables row-wise into read-only columns: those of the first table, others are left out."""
    stacked = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    for column in stacked.values():
        column.flags.writeable = False
    return stacked


def rows_to_columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Convert table rows with the same names into read-only columns; texts become columns of objects.

    >>> columns = rows_to_columns([{"view": "class:a", "n": 3}, {"view": "class:b", "n": 5}])
    >>> columns["view"].tolist(), columns["view"].dtype.kind, columns["n"].tolist()
    (['class:a', 'class:b'], 'O', [3, 5])
    """
    columns: Columns = {}
    for name, first_value in rows[0].items():
        dtype = object if isinstance(first_value, str) else None
        columns[name] = np.array([row[name] for row in rows], dtype=dtype)
    return stack_tables([columns])


def part_rows(names: Sequence[str], columns: Mapping[str, Any]) -> Columns:
    """The rows of one part of a table with the columns `names`: texts, numbers and, if they are not given, NaN.

    A single value stands for all rows of the part.

    >>> rows = part_rows(["part", "low", "share"], {"part": "strip", "share": [0.4, 0.6]})
    >>> rows["part"].tolist(), rows["low"].tolist(), rows["share"].tolist()
    (['strip', 'strip'], [nan, nan], [0.4, 0.6])
    """
    arrays = {}
    for name in names:
        column = columns.get(name, np.nan)
        has_texts = isinstance(column, str) or (isinstance(column, list) and any(isinstance(x, str) for x in column))
        arrays[name] = np.atleast_1d(np.asarray(column, dtype=object if has_texts else np.float64))
    return dict(zip(arrays, np.broadcast_arrays(*arrays.values()), strict=True))


def select_part(rows: Mapping[str, Array], part: str) -> Columns:
    """Select the rows whose column `part` has this value, such as `curve`, `band` or `strip`."""
    mask = rows["part"] == part
    return {name: column[mask] for name, column in rows.items()}


def select_part_of_model(rows: Mapping[str, Array], model_name: str, part: str) -> Columns:
    """Select the rows of one model and one part of a table with the columns `model` and `part`.

    >>> rows = {"model": np.array(["a", "b"]), "part": np.array(["bin", "bin"]), "n": np.array([3, 5])}
    >>> select_part_of_model(rows, "b", "bin")["n"].tolist()
    [5]
    """
    mask = (rows["model"] == model_name) & (rows["part"] == part)
    return {name: column[mask] for name, column in rows.items()}
