"""Probabilities with further columns of their rows, such as groups and features, and the levels or bins of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from trueodds.calibrators._glm.log_probabilities import Probabilities
from trueodds.calibrators.saved_parameters import MAX_FLOAT, OMIT_DEFAULT, Numbers, Saved, Texts
from trueodds.core.errors import InputError, describe, shorten
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array_with_missing
from trueodds.data.class_names import native_column_names
from trueodds.data.weights import check_groups

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


MAX_CATEGORIES = 1000
_MAX_EDGES = 64  # half of them at quantiles of rows, half at quantiles of distinct values


class FeatureBins(Saved):
    """The bins of one feature."""

    name: str
    labels: Annotated[tuple[str, ...], Texts()] = ()  # categories; none for numbers
    edges: Annotated[Array | None, Numbers(-MAX_FLOAT, MAX_FLOAT, ("m",), "strictly"), OMIT_DEFAULT] = None

    @property
    def n_bins(self) -> int:
        """Number of bins: with that of missing numbers, or of unknown categories."""
        return len(self.labels) + 1 if self.labels else (0 if self.edges is None else len(self.edges)) + 2

    def bins_of(self, column: Array) -> Array:
        """The bin of each row, (n,)."""
        if self.labels:
            position = find_saved_levels([(label,) for label in self.labels], [column])
            return np.where(position < 0, len(self.labels), position)
        x = _to_numbers(self.name, column)
        bins = np.zeros(len(x), dtype=np.int64) if self.edges is None else np.searchsorted(self.edges, x)
        return np.where(np.isnan(x), self.n_bins - 1, bins)


def bins_of_numbers(name: str, x: Array) -> FeatureBins:
    """Bins between quantiles of the rows and quantiles of the distinct values, of which rare large ones have some."""
    x = x[np.isfinite(x)]
    distinct = np.unique(x)
    if len(distinct) < 2:
        return FeatureBins(name)
    between = (distinct[1:] + distinct[:-1]) / 2
    if len(between) > _MAX_EDGES:
        shares = np.arange(1, _MAX_EDGES // 2 + 1) / (_MAX_EDGES // 2 + 1)
        edges = np.concatenate([np.quantile(x, shares, method="lower"), np.quantile(distinct, shares, method="lower")])
        position = np.minimum(np.searchsorted(distinct, np.unique(edges)), len(between) - 1)
        between = between[np.unique(position)]
    return FeatureBins(name, edges=between)


def bins_of_categories(name: str, column: Array) -> FeatureBins:
    """One bin per category; raises TO518 for more than 1,000."""
    labels = [label[0] for label in find_levels([column]).labels]
    if len(labels) > MAX_CATEGORIES:
        raise InputError(
            "TO518",
            f"A feature may have at most {MAX_CATEGORIES:,} categories.",
            f"{len(labels):,} in {name}",
            "Merge rare categories, leave the feature out, or pass it as numbers if it has an order.",
        )
    return FeatureBins(name, tuple(labels))


def check_features(features: Any, n: int) -> dict[str, Array]:
    """Each feature as numbers (n,) with NaN for missing ones, or texts; raises TO112 for other lengths.

    A missing text raises TO112 too, because it should have a name.
    """
    if features is None:
        return {}
    checked = {}
    for name in _column_names(features):
        try:
            values = as_array_with_missing(features[name], str(name))
        except InputError:  # which `check_groups` states for a column
            values = np.empty(0, dtype=str)
        if values.dtype.kind in "biuf" and values.shape == (n,):
            checked[str(name)] = values.astype(np.float64)
        else:
            checked[str(name)] = check_groups({str(name): features[name]}, n)[str(name)].astype(str)
    return checked


def feature_names(features: Any) -> tuple[str, ...]:
    """The names of features as texts; raises TO203 for anything but a data frame or a mapping."""
    return tuple(map(str, _column_names(features)))


def _column_names(features: Any) -> list[Any]:
    names = native_column_names(features)
    if names is None and not isinstance(features, Mapping):
        fix = "Pass ⟨features={'age': age}⟩."
        problem = "⟨features⟩ must be a data frame, a mapping of names to columns, or names of group columns."
        raise InputError("TO203", problem, describe(features), fix)
    return list(features) if names is None else list(names)


def _to_numbers(name: str, column: Array) -> Array:
    """The column as numbers; raises TO518 for texts that are none."""
    try:
        return np.asarray(column, dtype=np.float64)
    except ValueError as problem:
        raise InputError(
            "TO518", f"The feature {name} had numbers in the fit.", str(problem), "Pass numbers, NaN for missing ones."
        ) from None
