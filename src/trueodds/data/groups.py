"""Check the group columns and the clusters of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError
from trueodds.core.settings import check
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, refuse_first_invalid
from trueodds.data.class_names import distinct_column_names, native_column_names

MISSING_VALUES_REMEDY = "Give missing values a name, such as 'unknown'."


def check_groups(group: Any, n: int) -> dict[str, Array]:
    """Return each group column as an array (n,), by name; raise TO112 for other lengths or missing values."""
    if group is None:
        return {}
    if (names := native_column_names(group)) is not None:  # a frame: each column is a group column
        distinct_column_names(group)  # raises an error for equal names
        group = {name: group[name] for name in names}
    columns = dict(group) if isinstance(group, Mapping) else {"group": group}
    checked = {}
    for name, column in columns.items():
        check("the name of a group column", name, str | bool | int | float)
        values = _column_to_array(column, str(name))
        if values.shape != (n,):
            raise InputError(
                "TO112",
                f"{name} must have one value per row.",
                f"shape {values.shape} for {n:,} rows",
                "Align it first.",
            )
        is_missing = _missing_mask(values)
        if is_missing.any():
            refuse_first_invalid(values, is_missing, "TO112", f"{name} has missing values.", MISSING_VALUES_REMEDY)
        checked[str(name)] = values.view()
        checked[str(name)].flags.writeable = False
    return checked


def _column_to_array(column: Any, name: str) -> Array:
    """Return the column as an array; missing values are an error of the column, whatever library holds it."""
    try:
        return as_array(column, name)
    except InputError as problem:
        if problem.code != "TO103":
            raise
        raise InputError("TO112", problem.problem, problem.got, MISSING_VALUES_REMEDY) from None


def _missing_mask(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.isnat(values) if values.dtype.kind in "mM" else np.zeros(values.shape, dtype=bool)


def check_clusters(cluster: ArrayLike | None, n: int) -> Array | None:
    if cluster is None:
        return None
    values = check_groups({"cluster": cluster}, n)["cluster"]
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
