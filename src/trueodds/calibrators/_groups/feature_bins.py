"""Bins of features: numbers between edges, with a bin for missing ones, and categories, with one for unknown ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from trueodds.calibrators._groups.rows_with_columns import find_levels, find_saved_levels
from trueodds.calibrators.saved_parameters import MAX_FLOAT, OMIT_DEFAULT, Numbers, Saved, Texts
from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array_with_missing
from trueodds.data.class_names import native_column_names
from trueodds.data.weights import check_groups

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
