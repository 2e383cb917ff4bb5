"""Is this data? Every check of Predictions, each with what was got and the fix; values are never altered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.printable import has_surrogates
from trueodds.core.settings import EXACT, NonNegative, check
from trueodds.core.typing import Array
from trueodds.data.arrays import LOGITS
from trueodds.data.arrays import as_array as as_array
from trueodds.data.arrays import numbers as numbers
from trueodds.data.arrays import one_dimensional as one_dimensional
from trueodds.data.arrays import refuse as refuse
from trueodds.data.arrays import same_length as same_length
from trueodds.data.arrays import same_shape as same_shape
from trueodds.data.arrays import shape as shape
from trueodds.data.arrays import such as such
from trueodds.data.arrays import two_dimensional as two_dimensional
from trueodds.data.arrays import with_argument as with_argument
from trueodds.data.weights import WEIGHTLESS as WEIGHTLESS
from trueodds.data.weights import weights as weights

LARGE = 2**18  # values from which on a compiled loop is worth loading
SUM_NOTED = 1e-9  # distance of a row sum from 1 below which nobody needs to know of it
SUM_TOLERANCE = {"float16": 2e-3}  # what the dtype's rounding of a softmax row comes to; 1e-5 for the others


def probabilities(p: Array, dtype: np.dtype[Any], sum_tolerance: float | None, *, sums: bool) -> list[Note]:
    """Finite, in [0, 1] up to K roundings of the dtype, rows summing to 1; notes on what is kept though not exact."""
    k = 2 if p.ndim == 1 else p.shape[1]
    eps = float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(np.float64).eps)
    sum_tolerance = check("sum_tolerance", sum_tolerance, NonNegative | None, 1e-5)
    notes: list[Note] = []
    low, high, rows = _look(p, max(k * eps, SUM_NOTED), sums=sums)
    if not (np.isfinite(low) and np.isfinite(high)):
        refuse(
            p,
            ~np.isfinite(p),
            "TO103",
            "Every probability must be a finite number.",
            "Fill or remove those rows; nothing is dropped for you.",
        )
    if low < 0 or high > 1 + k * eps:
        fix = (
            f"If these are logits, {LOGITS}."
            if p.ndim == 2 or low < -1e-3 or high > 1.01
            else "Nothing is clipped: mend the values."
        )
        if p.ndim == 1 and low >= -1 and high < 10 and (p == np.rint(p)).all():
            fix = "If these are predicted labels, pass the probabilities, such as those of predict_proba."
        elif low >= 0 and 1 < high <= 100 and high > 2:
            fix = f"If these are percentages, divide by 100; if logits, {LOGITS}."
        refuse(p, (p < 0) | (p > 1 + k * eps), "TO102", "Every probability must lie in [0, 1].", fix)
    if high > 1:
        count = int((p > 1).sum())
        notes.append(
            Note(
                "TN102",
                f"{count:,} {'value is' if count == 1 else 'values are'} above 1 by rounding (at most {high - 1:.1e}); kept as given, binned as 1.",
            )
        )
    if sums and p.ndim == 2:
        assert rows is not None
        notes += _row_sums(p, dtype, sum_tolerance, rows)
    return notes


def _look(p: Array, exact: float, *, sums: bool) -> tuple[float, float, tuple[int, float, int] | None]:
    """The least and the largest value; the row whose sum is worst, its distance from 1, and how many rows are off.

    Large tables are looked at once, by a compiled loop; small ones are not worth loading it.
    """
    if not (sums and p.ndim == 2):
        return float(p.min()), float(p.max()), None
    if p.size >= LARGE:
        from trueodds.kernels.checked import look

        summary = look(p, exact)
        if summary.lowest >= 0 and np.isfinite(summary.highest):
            return summary.lowest, summary.highest, (summary.worst, summary.distance, summary.n_inexact)
    deviation = np.abs(_sums(p) - 1)
    worst = int(np.argmax(deviation))
    return float(p.min()), float(p.max()), (worst, float(deviation[worst]), int((deviation > exact).sum()))


def _row_sums(p: Array, dtype: np.dtype[Any], sum_tolerance: float | None, rows: tuple[int, float, int]) -> list[Note]:
    worst, distance, count = rows
    tolerance = SUM_TOLERANCE.get(dtype.name, 1e-5) if sum_tolerance is None else sum_tolerance
    if distance > tolerance:
        many = int((np.abs(_sums(p) - 1) > tolerance).sum())
        raise InputError(
            "TO104",
            f"The probabilities of a row must sum to 1 (within {tolerance:g}).",
            f"{p[worst].sum(dtype=np.float64):.6g} in row {worst} ({many:,} such rows)",
            f"If the table was rounded, pass sum_tolerance=; if these are logits, {LOGITS}; if labels are independent, Predictions.from_multilabel.",
        )
    if count == 0:
        return []
    return [Note("TN101", f"{count:,} rows sum to 1 only within {distance:.1e}; their values are used as given.")]


def _sums(p: Array) -> Array:
    """Row sums in float64: short rows column by column, which NumPy does many rows at a time."""
    if p.shape[1] > 64:
        return np.asarray(p.sum(axis=1, dtype=np.float64))
    total = p[:, 0].astype(np.float64)
    for c in range(1, p.shape[1]):
        total += p[:, c]
    return total


def logits(z: Array) -> Array:
    """Checked logits as float64, (n,) or (n, K); −inf is the logit of an exact zero."""
    if np.isnan(z).any() or (z == np.inf).any() or (z.ndim == 1 and np.isinf(z).any()):
        refuse(
            z,
            np.isnan(z) | (z == np.inf) | (np.isinf(z) & (z.ndim == 1)),
            "TO103",
            "Every logit must be a number below infinity.",
            "Fill or remove those rows.",
        )
    z = z.astype(np.float64)
    if z.ndim == 2 and (lost := np.isinf(z).all(axis=1)).any():
        row = int(np.argmax(lost))
        raise InputError(
            "TO103", "A row of logits must have a finite value.", f"-inf in all of row {row}", "Remove that row."
        )
    return z


def softmax(z: Array) -> Array:
    """Probabilities of logits in float64; −inf is an exact zero."""
    z = logits(z)
    if z.ndim == 1:
        return np.where(z >= 0, 1 / (1 + np.exp(-np.abs(z))), np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))))
    e = np.exp(z - z.max(axis=1, keepdims=True))
    probabilities: Array = e / e.sum(axis=1, keepdims=True)
    return probabilities


def doubtful_logits(z: Array) -> list[Note]:
    """A word where logits look like probabilities; they are read as what they were said to be."""
    if z.ndim == 1 or len(z) < 2 or z.min() < 0 or z.max() > 1 or (np.abs(z.sum(axis=1) - 1) > 1e-5).any():
        return []
    return [
        Note(
            "TN108",
            "These logits lie in [0, 1] and every row sums to 1, as probabilities do; they were read as logits, as said.",
        )
    ]


def class_names(classes: Sequence[Any] | None, k: int) -> tuple[Any, ...]:
    """The names of the classes in the order of the columns."""
    if classes is None:
        return tuple(range(k))
    names = () if isinstance(classes, str) or not np.iterable(classes) else tuple(_plain(name) for name in classes)
    if not names or not all(map(_is_name, names)):
        raise InputError(
            "TO113", "classes must be a list of names.", describe(classes), "For instance classes=['no', 'yes']."
        )
    if broken := [name for name in names if isinstance(name, str) and has_surrogates(name)]:
        fix = "Decode the names again, as UTF-8."
        raise InputError("TO113", "A class is named by text that cannot be encoded.", repr(broken[0]), fix)
    if len(names) != k:
        raise InputError(
            "TO113",
            "classes must name every column.",
            f"{len(names)} names for {k} classes",
            "Give one name per column, in the order of the columns.",
        )
    if len(set(names)) != k or len({str(name) for name in names}) != k:
        raise InputError("TO113", "The names of classes must differ.", repr(list(names)), "Rename the repeated ones.")
    return names


def _is_name(name: Any) -> bool:
    """Text or a number of at most 64 bits, as arrays of labels hold them."""
    return isinstance(name, str) or (isinstance(name, int) and name.bit_length() <= 64) or isinstance(name, float)


def _plain(name: Any) -> Any:
    """A name without NumPy's wrapping; bytes are text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def labels(y: Array, k: int, names: tuple[Any, ...], *, has_names: bool) -> Array:
    """Labels as class numbers."""
    if y.ndim != 1:
        raise InputError(
            "TO101", "y_true must be (n,) labels or (n, K) votes.", f"shape {y.shape}", "Pass one label per row."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        refuse(
            y,
            ~np.isfinite(y),
            "TO103",
            "Every label must be a number.",
            "Fill or remove those rows; nothing is dropped for you.",
        )
    if y.dtype.kind in "US" or (has_names and not _count_from_zero(names)):
        return _named(y, names, has_names)
    if y.dtype.kind == "f":
        if (y != np.rint(y)).any():
            refuse(
                y,
                y != np.rint(y),
                "TO106",
                "Labels must be whole numbers.",
                "For votes or soft labels pass y_true as (n, K) shares.",
            )
    elif y.dtype.kind not in "biu":
        raise InputError(
            "TO106", "Labels must be integers or names.", f"dtype {y.dtype}", "Convert them, or pass classes=."
        )
    if y.min() < 0 or y.max() >= k:
        refuse(
            y,
            (y < 0) | (y >= k),
            "TO105",
            f"Labels must lie in 0..{k - 1}.",
            "If they start at 1, subtract 1; if they are other codes, pass classes=.",
        )
    return y.astype(np.int64, copy=False)


def _named(y: Array, names: tuple[Any, ...], has_names: bool) -> Array:
    if not has_names:
        raise InputError(
            "TO106",
            "Labels are names, and the columns have none.",
            f"{describe(str(y[0]))} in row 0",
            "Pass classes= with the names in the order of the columns.",
        )
    # Names given as text, such as those of a command line, are matched by what a number is written as.
    text = y.dtype.kind in "US" or all(isinstance(name, str) for name in names)
    number = {str(name) if text else name: i for i, name in enumerate(names)}
    unique, inverse = np.unique(y, return_inverse=True)
    codes = np.empty(len(unique), dtype=np.int64)
    for i, label in enumerate(unique.tolist()):
        label = _plain(label)
        label = (
            f"{label:g}" if text and isinstance(label, float) and label.is_integer() else str(label) if text else label
        )
        if label not in number:
            row = int(np.argmax(inverse == i))
            raise InputError(
                "TO105",
                "A label is no class.",
                f"{describe(label)} in row {row}{such(int((inverse == i).sum()))}",
                f"The classes are {list(names)}; give the labels as they are written there.",
            )
        codes[i] = number[label]
    return codes[inverse.reshape(-1)]


def _count_from_zero(names: tuple[Any, ...]) -> bool:
    """Whether a number can only mean a column: the names are 0..K−1, or words none of which looks like a number."""
    words = all(isinstance(name, str) and not looks_like_a_number(name) for name in names)
    return words or [str(name) for name in names] == [str(c) for c in range(len(names))]


def looks_like_a_number(name: Any) -> bool:
    """Whether a class name could be mistaken for the number of a column."""
    try:
        float(name)
    except (ValueError, OverflowError):
        return False
    return True


def votes(y: Array, k: int) -> tuple[Array, Array | None]:
    """Shares of each class per row, and the number of votes where counts were given."""
    if y.shape[1] == 1:
        raise InputError(
            "TO101", "y_true has a single column.", f"shape {y.shape}", "Pass y_true[:, 0] as one label per row."
        )
    if y.shape[1] != k:
        raise InputError(
            "TO111",
            "Votes must have one column per class.",
            f"{y.shape[1]} columns for {k} classes",
            "Pass y_true as (n, K) counts or shares.",
        )
    v = numbers(y, "votes").astype(np.float64)
    bad = ~np.isfinite(v) | (v < 0)
    if bad.any():
        refuse(v, bad, "TO111", "Votes must be counts or shares ≥ 0.", "Mend those rows.")
    with np.errstate(over="ignore"):
        m = v.sum(axis=1)
    if (m > EXACT).any():
        row = int(np.argmax(m))
        got = f"{v[row].max():g} in row {row}"
        raise InputError("TO111", "The votes of a row are too many to be counted.", got, "Mend it.")
    if (m <= 0).any():
        raise InputError(
            "TO111",
            "Every row needs a vote.",
            f"none in row {int(np.argmin(m))} ({int((m <= 0).sum()):,} such rows)",
            "Remove rows that nobody labelled.",
        )
    counted, shared = (v == np.rint(v)).all(axis=1), np.abs(m - 1) <= 1e-5
    if not counted.all() and not shared.all():
        neither = ~counted & ~shared
        row = int(np.argmax(neither if neither.any() else ~counted))
        part = int(np.argmax(v[row] != np.rint(v[row])))
        got = f"{m[row]:.6g} in row {row}" if m[row] % 1 else f"{v[row, part]:g} in row {row}, class {part}"
        raise InputError(
            "TO111",
            "Votes are whole counts, or shares that sum to 1, in all rows alike.",
            got if neither.any() else f"shares in row {row}, and counts in others",
            "Pass the counts.",
        )
    return v / m[:, None], m if counted.all() else None


def correctness(z: Array) -> Array:
    """Whether the answer was right, as 0 and 1."""
    one_dimensional(z, "correct")
    return yes_or_no(z, "correct")


def yes_or_no(y: Array, name: str = "Y") -> Array:
    """Zeros and ones."""
    if y.dtype.kind not in "biuf":
        raise InputError("TO116", f"{name} must hold 0 and 1.", f"dtype {y.dtype}", "Convert it first.")
    bad = ~((y == 0) | (y == 1))
    if bad.any():
        refuse(y, bad, "TO116", f"{name} must hold 0 and 1.", "Convert it first.")
    return y.astype(np.int64)


def groups(group: Any, n: int) -> dict[str, Array]:
    """Each group column as an array."""
    if group is None:
        return {}
    if hasattr(group, "columns") and np.ndim(group) == 2:  # a frame: each column is a group column
        group = {name: group[name] for name in group.columns}
    columns = dict(group) if isinstance(group, Mapping) else {"group": group}
    checked = {}
    for name, column in columns.items():
        check("the name of a group column", name, str | bool | int | float)
        values = as_array(column, str(name))
        if values.shape != (n,):
            raise InputError(
                "TO112",
                f"{name} must have one value per row.",
                f"shape {values.shape} for {n:,} rows",
                "Align it first.",
            )
        empty = (
            np.isnan(values) if values.dtype.kind == "f" else np.isnat(values) if values.dtype.kind in "mM" else None
        )
        if empty is not None and empty.any():
            refuse(
                values,
                empty,
                "TO103",
                f"{name} has missing values.",
                "Give the missing ones a name of their own.",
            )
        checked[str(name)] = values.view()
        checked[str(name)].flags.writeable = False
    return checked


def clusters(cluster: ArrayLike | None, n: int) -> Array | None:
    """Cluster numbers 0, 1, … per row."""
    if cluster is None:
        return None
    values = groups({"cluster": cluster}, n)["cluster"]
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
