"""Probabilities with further columns of their rows, such as groups, which some calibrators need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.core.errors import InputError, shorten
from trueodds.core.typing import Array

_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio


@dataclass(frozen=True, slots=True, eq=False)
class RowsWithColumns:
    """Probabilities (n, K), or their logarithms, with columns (n,) by name.

    >>> rows = RowsWithColumns(np.array([[0.2, 0.8], [0.5, 0.5]]), {"sex": np.array(["f", "m"])})
    >>> len(rows), rows[1:].columns["sex"].tolist()
    (2, ['m'])
    """

    P: Probabilities
    columns: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.P.shape

    def __len__(self) -> int:
        return len(self.P)

    def __getitem__(self, rows: Any) -> RowsWithColumns:
        return RowsWithColumns(self.P[rows], {name: column[rows] for name, column in self.columns.items()})


def split_columns(rows: Any) -> tuple[Probabilities, Mapping[str, Array]]:
    """The probabilities and the columns of rows; there are none if the rows are probabilities alone."""
    return (rows.P, rows.columns) if isinstance(rows, RowsWithColumns) else (rows, {})


def select_columns(columns: Mapping[str, Array], names: Sequence[str], argument: str = "group") -> dict[str, Array]:
    """The columns with these names; raises TO516 if one is missing. `argument` is where the caller passes them."""
    if missing := [name for name in names if name not in columns]:
        raise InputError(
            "TO516",
            f"The calibrator needs the column{'s' * (len(names) > 1)} {', '.join(names)} of the rows.",
            f"no {', '.join(missing)}" + (f"; there are {shorten(', '.join(columns), 60)}" if columns else ""),
            f"Pass ⟨{argument}={{{missing[0]!r}: …}}⟩ with one value per row.",
        )
    return {name: columns[name] for name in names}


class Levels(NamedTuple):
    """The distinct values of one column, or combinations of values of several, and which of them each row has."""

    labels: tuple[tuple[str, ...], ...]  # texts of the values, one per column
    level_of_row: Array  # (n,) int64

    def select(self, rows: Array) -> Levels:
        """The levels of some of the rows, by a mask or their numbers."""
        return Levels(self.labels, self.level_of_row[rows])


def find_levels(columns: Sequence[Array]) -> Levels:
    """The combinations of values that occur in the columns, sorted by the values.

    >>> levels = find_levels([np.array([2.0, 1.0, 2.0]), np.array(["b", "a", "b"])])
    >>> levels.labels, levels.level_of_row.tolist()
    ((('1', 'a'), ('2', 'b')), [1, 0, 1])
    """
    texts, codes = [], []
    for column in columns:
        values, code = _distinct_values(column)
        texts.append(_value_texts(values))
        codes.append(code)
    if len(columns) == 1:
        return Levels(tuple((text,) for text in texts[0]), codes[0])
    sizes = tuple(map(len, texts))
    occupied, level_of_row = np.unique(np.ravel_multi_index(codes, sizes), return_inverse=True)
    parts = [
        [column_texts[i] for i in index]
        for column_texts, index in zip(texts, np.unravel_index(occupied, sizes), strict=True)
    ]
    return Levels(tuple(zip(*parts, strict=True)), level_of_row.reshape(-1))


def _distinct_values(column: Array) -> tuple[Array, Array]:
    """The sorted distinct values, and the number of that of each row (n,); searching is faster than sorting."""
    keys = column
    if column.dtype.kind == "U" and column.dtype.itemsize:  # compare one number per text
        keys = np.zeros(len(column), dtype=np.uint64)
        for letters in np.ascontiguousarray(column).view(np.uint32).reshape(-1, column.dtype.itemsize // 4).T:
            keys = (keys ^ (keys >> np.uint64(29))) * _HASH_MULTIPLIER + letters
    distinct = np.unique(keys)
    code = np.searchsorted(distinct, keys)
    row_of_value = np.empty(len(distinct), dtype=np.int64)
    row_of_value[code] = np.arange(len(keys))
    values = column[row_of_value]
    if keys is not column and not (values[code] == column).all():  # two texts have the same key
        values, code = np.unique(column, return_inverse=True)
        return values, code.reshape(-1)
    order = np.argsort(values)
    return values[order], np.argsort(order)[code]


def _value_texts(values: Array) -> list[str]:
    """The values as texts, by which those of a saved calibrator are found; 1.0 is the text 1, as 1 is."""
    if values.dtype.kind == "f" and (values == np.rint(values)).all() and np.abs(values).max(initial=0) < 2**53:
        values = values.astype(np.int64)
    return [str(value) for value in values.tolist()]


def find_saved_levels(labels: Sequence[tuple[str, ...]], columns: Sequence[Array]) -> Array:
    """The position of each row's level among saved `labels`, (n,); −1 if it is not among them.

    >>> find_saved_levels([("a",), ("b",)], [np.array(["b", "c"])]).tolist()
    [1, -1]
    """
    position = {label: i for i, label in enumerate(labels)}
    levels = find_levels(columns)
    return np.array([position.get(label, -1) for label in levels.labels], dtype=np.int64)[levels.level_of_row]
