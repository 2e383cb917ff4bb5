"""Check labels, votes and class names, and read class names from the columns of a data frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import MAX_VALUE_LENGTH, InputError, Note, describe, shorten
from trueodds.core.printable import has_surrogates
from trueodds.core.settings import MAX_EXACT_INTEGER
from trueodds.core.typing import Array
from trueodds.data.arrays import (
    as_float_array,
    as_predictions_argument,
    check_one_dimensional,
    count_phrase,
    refuse_first_invalid,
)
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE


def check_class_names(classes: Sequence[Any] | None, k: int) -> tuple[Any, ...]:
    """Return the names of the k classes in the order of the columns, by default 0..K−1.

    Raises InputError TO113 unless they are k distinct texts or numbers, which also differ as text.
    """
    if classes is None:
        return tuple(range(k))
    names = (
        () if isinstance(classes, str) or not np.iterable(classes) else tuple(_to_plain_name(name) for name in classes)
    )
    if not names or not all(map(_is_class_name, names)):
        raise InputError(
            "TO113", "classes must be a list of names.", describe(classes), "For instance classes=['no', 'yes']."
        )
    if unencodable := [name for name in names if isinstance(name, str) and has_surrogates(name)]:
        fix = "Decode the names again, as UTF-8."
        raise InputError("TO113", "The name of a class cannot be encoded.", repr(unencodable[0]), fix)
    if len(names) != k:
        raise InputError(
            "TO113",
            "classes must name every column.",
            f"{len(names)} names for {k} classes",
            "Give one name per column, in the order of the columns.",
        )
    if len(set(names)) != k or len({str(name) for name in names}) != k:
        raise InputError(
            "TO113", "The names of classes must be distinct.", repr(list(names)), "Rename the repeated ones."
        )
    return names


def _is_class_name(name: Any) -> bool:
    """Return whether this is text or a number of at most 64 bits, as arrays of labels store them."""
    return isinstance(name, str) or (isinstance(name, int) and name.bit_length() <= 64) or isinstance(name, float)


def _to_plain_name(name: Any) -> Any:
    """Convert a NumPy scalar to a Python value, and bytes to text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def check_labels(y: Array, k: int, names: tuple[Any, ...], *, has_names: bool, is_single: bool = False) -> Array:
    """Convert labels (n,), which are class numbers or class names, to class numbers (n,) in 0..K−1.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The labels.
    k : int
        Number of classes.
    names : tuple
        The names of the classes.
    has_names : bool
        Whether the caller named the classes. Otherwise `names` are their numbers, and labels cannot be names.
    is_single : bool, default=False
        Whether the probability of the second class alone was given, for the remedy in an error.

    Returns
    -------
    ndarray of int64, shape (n,)
        The class numbers.

    Raises
    ------
    InputError
        TO101 for another shape, TO103 for missing labels, TO105 for unknown ones, TO106 for other types.
    """
    if y.ndim != 1:
        raise InputError(
            "TO101", "y_true must be (n,) labels or (n, K) votes.", f"shape {y.shape}", "Pass one label per row."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        refuse_first_invalid(
            y,
            ~np.isfinite(y),
            "TO103",
            "Every label must be a number.",
            "Fill or remove those rows; rows are never dropped silently.",
        )
    if y.dtype.kind in "US" or (has_names and not _are_unambiguous_numbers(names)):
        return _labels_to_numbers(y, names, has_names, suggest_classes(y, k, is_single=is_single))
    if y.dtype.kind == "f":
        if (y != np.rint(y)).any():
            refuse_first_invalid(
                y,
                y != np.rint(y),
                "TO106",
                "Labels must be whole numbers.",
                "For votes or soft labels pass y_true as (n, K) shares.",
            )
    elif y.dtype.kind not in "biu":
        raise InputError(
            "TO106", "Labels must be integers or names.", f"dtype {y.dtype}", "Convert them to integers or to text."
        )
    if y.min() < 0 or y.max() >= k:
        fix = f"If they start at 1, subtract 1; if they are other codes, pass {as_predictions_argument('classes=[…]')}."
        if len(np.unique(y)) == k:
            remedy = suggest_classes(y, k, is_single=is_single)
            fix = f"If they start at 1, subtract 1, or p{remedy[1:]}" if y.min() == 1 else remedy
        refuse_first_invalid(y, (y < 0) | (y >= k), "TO105", f"Labels must lie in 0..{k - 1}.", fix)
    return y.astype(np.int64, copy=False)


def suggest_classes(y: Array, k: int, *, is_single: bool, column: str | None = None) -> str:
    """Return the remedy for labels that are names or codes: the classes to pass, in the order of the columns.

    >>> suggest_classes(np.array(["yes", "no"]), 2, is_single=True, column="p_yes")
    "Pass Predictions(y_true, y_prob, classes=['no', 'yes']): p_yes is the probability of the second class."
    >>> suggest_classes(np.array([2, 1, 3]), 3, is_single=False)
    'Pass Predictions(y_true, y_prob, classes=[1, 2, 3]), with the names in the order of the columns.'
    """
    is_text = y.dtype.kind in "US" or y.dtype.kind == "O"
    labels: list[Any] = sorted({str(label) if is_text else int(label) for label in np.unique(y)})
    if column is not None:  # the class that the name of a single column ends with is the second
        labels.sort(key=lambda label: column == str(label) or column.endswith(f"_{label}"))
    classes_argument = f"classes={labels}" if len(labels) == k and len(repr(labels)) <= MAX_VALUE_LENGTH else ""
    remedy = f"Pass {as_predictions_argument(classes_argument or 'classes=[…]')}"
    if is_single:
        return f"{remedy}: {column or 'y_prob'} is the probability of the second class."
    return f"{remedy}, with the names in the order of the columns."


def _labels_to_numbers(y: Array, names: tuple[Any, ...], has_names: bool, remedy: str) -> Array:
    """Return the class numbers (n,) of labels (n,) that are class names; `remedy` is for classes without names."""
    if not has_names:
        problem = "Labels are names, but the classes have no names."
        raise InputError("TO106", problem, f"{describe(str(y[0]))} in row 0", remedy)
    # Names given as text, for instance on the command line, match the text form of numeric labels.
    is_text = y.dtype.kind in "US" or all(isinstance(name, str) for name in names)
    number_of_name = {str(name) if is_text else name: i for i, name in enumerate(names)}
    unique, inverse = np.unique(y, return_inverse=True)
    codes = np.empty(len(unique), dtype=np.int64)
    for i, label in enumerate(unique.tolist()):
        label = _to_plain_name(label)
        label = (
            f"{label:g}"
            if is_text and isinstance(label, float) and label.is_integer()
            else str(label)
            if is_text
            else label
        )
        if label not in number_of_name:
            row = int(np.argmax(inverse == i))
            raise InputError(
                "TO105",
                "A label is not one of the classes.",
                f"{describe(label)} in row {row}{count_phrase(int((inverse == i).sum()))}",
                f"The classes are {list(names)}; labels must match them exactly.",
            )
        codes[i] = number_of_name[label]
    return codes[inverse.reshape(-1)]


def _are_unambiguous_numbers(names: tuple[Any, ...]) -> bool:
    """Return whether a number can only refer to a column: class names are 0..K−1, or none looks like a number."""
    all_words = all(isinstance(name, str) and not looks_like_a_number(name) for name in names)
    return all_words or [str(name) for name in names] == [str(c) for c in range(len(names))]


def looks_like_a_number(name: Any) -> bool:
    """Return whether a class name could be mistaken for the number of a column."""
    try:
        float(name)
    except (ValueError, OverflowError):
        return False
    return True


def check_votes(y: Array, k: int) -> tuple[Array, Array | None]:
    """Return the share of each class per row (n, K), and the number of votes (n,) if counts were given, else None.

    `y` (n, K) holds counts, or shares that sum to 1. Raises InputError TO111 for anything else.
    """
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
    votes = as_float_array(y, "votes").astype(np.float64)
    is_invalid = ~np.isfinite(votes) | (votes < 0)
    if is_invalid.any():
        refuse_first_invalid(votes, is_invalid, "TO111", "Votes must be counts or shares ≥ 0.", "Correct those rows.")
    with np.errstate(over="ignore"):
        n_votes = votes.sum(axis=1)
    if (n_votes > MAX_EXACT_INTEGER).any():
        row = int(np.argmax(n_votes))
        got = f"{votes[row].max():g} in row {row}"
        raise InputError("TO111", "A row has too many votes to be counted.", got, "Correct it.")
    if (n_votes <= 0).any():
        raise InputError(
            "TO111",
            "Every row must have a vote.",
            f"none in row {int(np.argmin(n_votes))} ({int((n_votes <= 0).sum()):,} such rows)",
            "Remove rows without votes.",
        )
    is_count, is_share = (votes == np.rint(votes)).all(axis=1), np.abs(n_votes - 1) <= DEFAULT_SUM_TOLERANCE
    if not is_count.all() and not is_share.all():
        is_neither = ~is_count & ~is_share
        row = int(np.argmax(is_neither if is_neither.any() else ~is_count))
        column = int(np.argmax(votes[row] != np.rint(votes[row])))
        got = (
            f"{n_votes[row]:.6g} in row {row}"
            if n_votes[row] % 1
            else f"{votes[row, column]:g} in row {row}, class {column}"
        )
        raise InputError(
            "TO111",
            "Votes must be whole counts in all rows, or shares that sum to 1 in all rows.",
            got if is_neither.any() else f"shares in row {row}, and counts in others",
            "Pass the counts.",
        )
    return votes / n_votes[:, None], n_votes if is_count.all() else None


def check_correctness(correct: Array) -> Array:
    """Convert the correctness of answers (n,), which may be boolean, to integers 0 and 1."""
    check_one_dimensional(correct, "correct")
    return check_binary(correct, "correct")


def check_binary(y: Array, name: str = "Y") -> Array:
    """Convert values of 0 and 1 to integers; any other value raises InputError TO116."""
    if y.dtype.kind not in "biuf":
        raise InputError("TO116", f"{name} must hold 0 and 1.", f"dtype {y.dtype}", "Convert it first.")
    is_invalid = ~((y == 0) | (y == 1))
    if is_invalid.any():
        refuse_first_invalid(y, is_invalid, "TO116", f"{name} must hold 0 and 1.", "Convert it first.")
    return y.astype(np.int64)


def column_names(x: Any) -> list[str] | None:
    """Return the column names of a data frame (pandas, Polars, PyArrow) in memory; None for anything else."""
    if not hasattr(x, "__array__") or getattr(x, "ndim", 2) != 2:
        return None
    # looked up on the class, because an attribute of a pandas data frame may be one of its columns
    names = x.column_names if hasattr(type(x), "column_names") else getattr(x, "columns", None)
    return None if names is None or callable(names) else [str(name) for name in names]


def classes_from_columns(
    y_true: Any, y: Array, y_prob: Any, classes: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, list[Note]]:
    """Return the classes that the columns of `y_prob` name, and notes on the columns and indexes of both arguments.

    The classes are in the order of the columns if `y_prob` is a data frame whose column names define them. `y` is
    `y_true` as an array. The rules are those of files: class numbers other than 0..K−1 in this order, and class names
    if the labels are text, define the classes; other names do not. Raises InputError TO113 if `classes`, or the columns
    of votes, are the same names in another order.
    """
    named_classes, notes = _classes_from_names(y_true, y, y_prob, classes)
    return named_classes, [*notes, *_different_index_notes(y_true, y_prob)]


def _classes_from_names(
    y_true: Any, y: Array, y_prob: Any, classes: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, list[Note]]:
    """Return the classes and a note on numbered columns, as `classes_from_columns`."""
    names = column_names(y_prob)
    if names is None or len(names) < 2:
        return classes, []
    candidates = _candidate_class_names(names, "p_")
    if classes is not None:
        class_names = [str(name) for name in classes] if np.iterable(classes) and not isinstance(classes, str) else []
        _refuse_other_order([class_names], candidates, "the classes")
        return classes, []
    if y.ndim == 2:
        votes = column_names(y_true)
        column_numbers = [[str(i) for i in range(y.shape[1])]]
        _refuse_other_order(
            _candidate_class_names(votes, "v_") if votes else column_numbers, candidates, "those of y_true"
        )
    if y.ndim == 1 and y.dtype.kind in "US":
        labels = set(y.astype(str).tolist())
        return next((candidate for candidate in candidates if labels <= set(candidate)), candidates[0]), []
    numeric_names = next((candidate for candidate in candidates if are_numbers(candidate)), None)
    if numeric_names is None or numeric_names == [str(i) for i in range(len(names))]:
        return None, []
    text = (
        f"The columns of y_prob are numbered {numeric_names[0]}, {numeric_names[1]}, …: labels are read as the numbers"
        " of the columns."
    )
    return [int(number) for number in numeric_names], [Note("TN302", text)]


def _different_index_notes(y_true: Any, y_prob: Any) -> list[Note]:
    """Return a note if both are pandas objects with different indexes, because rows are paired by position."""
    indexes: list[Any] = [getattr(x, "index", None) for x in (y_true, y_prob)]
    if not all(hasattr(index, "equals") for index in indexes):
        return []
    if len(indexes[0]) != len(indexes[1]) or indexes[0].equals(indexes[1]):
        return []
    row = int(np.argmax(np.asarray(indexes[0]) != np.asarray(indexes[1])))
    labels = " and ".join(shorten(str(index[row]), MAX_VALUE_LENGTH // 2) for index in indexes) + f" in row {row}"
    text = (
        f"y_true and y_prob have different indexes ({labels}); their rows were paired by position. If rows of equal"
        " index belong together, pass y_prob.loc[y_true.index]."
    )
    return [Note("TN156", text)]


def refuse_other_column_order(Y: Any, P: Any) -> None:
    """Raise TO113 for labels and probabilities in data frames with the same columns in a different order."""
    labels, probs = column_names(Y), column_names(P)
    if labels is not None and probs is not None:
        _refuse_other_order(
            _candidate_class_names(labels, "y_"), _candidate_class_names(probs, "p_"), "those of Y", "P"
        )


def _candidate_class_names(names: list[str], prefix: str) -> list[list[str]]:
    """Return candidate class names: the column names without the usual prefix, as is, and without a common one."""
    candidates = (
        [[name.removeprefix(prefix) for name in names]] if all(name.startswith(prefix) for name in names) else []
    )
    candidates.append(names)
    prefixes, suffixes = {name.rpartition("_")[0] for name in names}, [name.rpartition("_")[2] for name in names]
    if len(prefixes) == 1 and sorted(suffixes) == sorted(str(i) for i in range(len(names))):  # proba_1, proba_0
        candidates.append(suffixes)
    return candidates


def are_numbers(names: Sequence[str]) -> bool:
    """Return whether every name is an integer of at most 18 digits."""
    return all(re.fullmatch(r"0|[1-9][0-9]{0,17}", name) for name in names)


def _refuse_other_order(
    expected: list[list[str]], candidates: list[list[str]], subject: str, argument: str = "y_prob"
) -> None:
    """Raise TO113 if expected names and candidates are the same in another order; `subject` is what is expected."""
    for names in expected:
        for candidate in candidates:
            if names != candidate and sorted(names) == sorted(candidate):
                raise InputError(
                    "TO113",
                    f"The columns of {argument} are in another order than {subject}.",
                    f"{', '.join(candidate)} and {', '.join(names)}",
                    "Reorder the columns.",
                )
