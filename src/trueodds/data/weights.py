"""Check the weights, group columns and clusters of rows, and determine whether weights are counts of rows."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import MAX_EXACT_INTEGER, check
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, as_float_array, check_one_value_per_row, refuse_first_invalid
from trueodds.data.class_names import distinct_column_names, native_column_names

ALL_WEIGHTS_ZERO_TEXT = "Every weight is zero."
ALL_WEIGHTS_ZERO_REMEDY = (
    "Rows of weight 0 do not count: leave out this file or part. If all rows count equally, leave out weight."
)
MIN_LARGEST_WEIGHT, MAX_LARGEST_WEIGHT = 1e-30, 1e30  # limits within which sixth powers of weights can be summed
MIN_WEIGHT_RATIO = 1e-30  # smallest allowed ratio to the largest weight
MULTIPLE_TOLERANCE = 1e-12  # relative deviation up to which a weight is a multiple of the smallest one, by rounding
MAX_REPEATED_ROWS = 2 * 10**8  # number of rows up to which frequency weights are repeated
MAX_COUNTED_ROWS = 2**53  # up to this number of rows, counts in float64 are exact


def check_weights(weight: ArrayLike | None, n: int) -> Array | None:
    """Return the weights as float64; raise TO110 unless finite, nonnegative, not all 0, with powers in float64."""
    if weight is None:
        return None
    w = as_float_array(as_array(weight, "weight"), "weight").astype(np.float64)
    check_one_value_per_row(w, n, "weight")
    is_invalid = ~np.isfinite(w) | (w < 0)
    if is_invalid.any():
        refuse_first_invalid(w, is_invalid, "TO110", "Weights must be finite and ≥ 0.", "Correct those rows.")
    if not w.any():
        raise InputError("TO110", ALL_WEIGHTS_ZERO_TEXT, f"{n:,} zeros", ALL_WEIGHTS_ZERO_REMEDY)
    largest, smallest = float(w.max()), float(w.min(where=w > 0, initial=np.inf))
    if not MIN_LARGEST_WEIGHT <= largest <= MAX_LARGEST_WEIGHT:
        raise InputError(
            "TO110",
            f"The largest weight must lie between {MIN_LARGEST_WEIGHT:g} and {MAX_LARGEST_WEIGHT:g}, so that its powers"
            " can be summed.",
            f"{largest:g}",
            "Divide all weights by the largest: only their ratios matter.",
        )
    if smallest < largest * MIN_WEIGHT_RATIO:
        raise InputError(
            "TO110",
            f"Weights differ by more than a factor of {1 / MIN_WEIGHT_RATIO:.0e}, so that powers of the smaller ones"
            " cannot be summed.",
            f"{smallest:g} and {largest:g}",
            "Set those that are negligible to 0.",
        )
    return w


_UNIT_WEIGHTS: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


def unit_weights(n: int) -> Array:
    """Return the weights of unweighted rows, (n,) float64, of which all views in use share one read-only array.

    >>> unit_weights(3).tolist()
    [1.0, 1.0, 1.0]
    """
    weights = _UNIT_WEIGHTS.get(n)
    if weights is None:
        weights = np.ones(n)
        weights.flags.writeable = False
        _UNIT_WEIGHTS[n] = weights
    return weights


def are_counts(weight: Array) -> bool:
    """Return whether weights are counts: integers whose sum float64 represents exactly."""
    return bool((weight == np.rint(weight)).all() and weight.sum() <= MAX_EXACT_INTEGER)


def frequency_weight_notes(weight: Array) -> list[Note]:
    """Return a note if weights that are used as importance weights could be frequencies: counts, not all 0 and 1.

    >>> [note.code for note in frequency_weight_notes(np.array([1.0, 3.0]))], frequency_weight_notes(np.ones(2))
    (['TN286'], [])
    """
    if not are_counts(weight) or weight.max() <= 1:
        return []
    text = (
        f"The weights are whole numbers up to {weight.max():,.0f} and are used as importance weights: {len(weight):,}"
        " observations, some of which count more. If a weight counts equal observations, pass"
        " ⟨weight_kind='frequency'⟩:"
        f" they are then {weight.sum():,.0f} observations, and intervals are narrower. If not, pass"
        " ⟨weight_kind='importance'⟩."
    )
    return [Note("TN286", text)]


def weight_of_one_row(weight: Array) -> float | None:
    """Return the weight of one row: 1 for counts, else the smallest weight if all are multiples of it, else None.

    >>> [weight_of_one_row(np.array(weight)) for weight in ([3e18, 0, 6e18], [2.0, 3.0], [0.5, 0.7])]
    [3e+18, 1.0, None]
    """
    if are_counts(weight):
        return 1.0
    smallest = float(weight.min(where=weight > 0, initial=np.inf))
    n_rows = weight / smallest
    is_multiple = np.abs(n_rows - np.rint(n_rows)) <= MULTIPLE_TOLERANCE * n_rows
    return smallest if are_counts(np.where(is_multiple, np.rint(n_rows), n_rows)) else None


def counts_of_rows(weight: Array) -> Array:
    """Return how often each row was observed, from frequency weights (n,); TO110 if they are not whole numbers."""
    if (is_fractional := weight != np.rint(weight)).any():
        row = int(np.argmax(is_fractional))
        raise InputError(
            "TO110",
            "Frequency weights must be whole numbers.",
            f"{weight[row]} in row {row}",
            "Use ⟨weight_kind='importance'⟩ for weights that are not counts.",
        )
    if weight.sum() > MAX_COUNTED_ROWS:
        raise InputError(
            "TO110",
            "Frequency weights are so large that their sums are not exact.",
            f"frequency weights with sum {weight.sum():.3g}",
            "Use ⟨weight_kind='importance'⟩ for weights that are not counts.",
        )
    return weight.astype(np.int64)


def repeat_rows(weight: Array) -> Array:
    """Return the row numbers, each repeated as often as its frequency weight (n,) says, (Σ weight,) int64."""
    counts = counts_of_rows(weight)
    if counts.sum() > MAX_REPEATED_ROWS:
        raise InputError(
            "TO110",
            "The repeated rows do not fit into memory.",
            f"frequency weights with sum {weight.sum():.3g}",
            "Count them: `tally` with ⟨weight_kind='frequency'⟩. To fit a calibrator, use ⟨weight_kind='importance'⟩.",
        )
    return np.repeat(np.arange(len(weight)), counts)


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
        check_one_value_per_row(values, n, str(name), "TO112")
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
