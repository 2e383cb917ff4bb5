"""Check the names of classes, and read them from the columns of a data frame."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import MAX_LISTED_ITEMS, MAX_VALUE_LENGTH, InputError, Note, describe, shorten
from trueodds.core.formatting import format_first
from trueodds.core.printable import has_surrogates
from trueodds.core.typing import Array


def check_class_names(classes: Sequence[Any] | None, k: int) -> tuple[Any, ...]:
    """Return the k names as Python values, by default 0..k−1; raise TO113 unless distinct, also as text."""
    if classes is None:
        return tuple(range(k))
    is_sequence = np.iterable(classes) and not isinstance(classes, str)
    names = tuple(to_plain_name(name) for name in classes) if is_sequence else ()
    if not names or not all(map(_is_class_name, names)):
        raise InputError(
            "TO113", "classes must be a list of names.", describe(classes), "For instance ⟨classes=['no', 'yes']⟩."
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
    return isinstance(name, str) or (isinstance(name, int) and name.bit_length() <= 64) or isinstance(name, float)


def to_plain_name(name: Any) -> Any:
    """Convert a NumPy scalar to a Python value, and bytes to text."""
    name = name.item() if isinstance(name, np.generic) else name
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def to_number(value: Any) -> int | float | None:
    """Return the number that a label or a class name is or spells; None for any other text, and for NaN.

    Numbers that are equal are one label: 1, 1.0, "1", "01" and "1.0". A range such as 0_18 is a number only in Python.

    >>> to_number("01"), to_number(1.0), to_number("0.5"), to_number("one"), to_number("nan"), to_number("0_18")
    (1, 1, 0.5, None, None, None)
    """
    if isinstance(value, str):
        if "_" in value:
            return None
        try:
            value = int(value)  # exact however many digits it has
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def class_numbers(names: Sequence[Any]) -> tuple[int | float, ...] | None:
    """Return the numbers of classes whose names are numbers, or have a common stem and a number each; else None.

    Labels that are numbers are then these numbers, and not positions. Names that contain digits by accident have
    different stems. A minus after a letter or digit is a hyphen.

    >>> class_numbers(["p_1", "p_2"]), class_numbers(["grade_01", "grade_02"]), class_numbers(["1.0", "1.5"])
    ((1, 2), (1, 2), (1, 1.5))
    >>> class_numbers(["p_-1", "p_1"]), class_numbers(["class-1", "class-2"])
    ((-1, 1), (1, 2))
    >>> class_numbers(["gpt4", "claude3"]), class_numbers(["1", "01"])
    (None, None)
    """
    if len(names) == 0:
        return None
    numerals = names
    if all(isinstance(name, str) for name in names):
        # The parts that all names share, without the digits, the sign and the decimal point that belong to a number.
        stem = re.sub(r"((?<![^\W_])[-+])?([0-9]+\.|(?<![^\W_])\.)?[0-9]*$", "", common_prefix(names))
        rests = [name[len(stem) :] for name in names]
        ending = re.sub(r"^[0-9]*(\.[0-9]*)?", "", common_prefix([rest[::-1] for rest in rests])[::-1])
        numerals = [rest[: len(rest) - len(ending)] for rest in rests]
        if not all(re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)", numeral) for numeral in numerals):
            return None
    numbers = tuple(to_number(numeral) for numeral in numerals)
    return numbers if None not in numbers and len(set(numbers)) == len(names) else None  # type: ignore[return-value]


def common_prefix(names: Sequence[str]) -> str:
    """Return the longest text with which all names begin.

    >>> common_prefix(["p_ant", "p_ape", "p_bee"])
    'p_'
    """
    first, last = min(names), max(names)  # all others are between these two in alphabetical order
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((i for i, (a, b) in pairs if a != b), len(first))]


def labels_are_positions(names: Sequence[Any]) -> bool:
    """Return whether a label that is a number is the position of its class among these names.

    This is so if the names have the numbers 0..K−1 in this order, or if no name is, or has, a number.
    """
    numbers = class_numbers(names)
    if numbers is not None:
        return list(numbers) == list(range(len(numbers)))
    return not any(map(looks_like_a_number, names))


def looks_like_a_number(name: Any) -> bool:
    """Return whether a class name could be mistaken for the number of a column."""
    return to_number(name) is not None


def column_names(x: Any) -> list[str] | None:
    """Return the column names of a data frame (pandas, Polars, PyArrow) in memory; None for anything else."""
    names = native_column_names(x)
    return None if names is None else [str(name) for name in names]


def native_column_names(x: Any) -> list[Any] | None:
    """Return the names that a data frame itself gives its columns, which in pandas need not be text."""
    if not hasattr(x, "__array__") or getattr(x, "ndim", 2) != 2:
        return None
    # looked up on the class, because an attribute of a pandas data frame may be one of its columns
    names = x.column_names if hasattr(type(x), "column_names") else getattr(x, "columns", None)
    return None if names is None or callable(names) else list(names)


def distinct_column_names(x: Any) -> list[str] | None:
    """Return the column names like `column_names`; a repeated name raises TO313, because its columns are ambiguous."""
    names = column_names(x)
    if names is not None and len(set(names)) < len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(
            "TO313", "A data frame has two columns of the same name.", repr(repeated), "Rename one of them."
        )
    return names


def classes_from_columns(
    y_true: Any, y: Array, y_prob: Any, classes: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, list[Note]]:
    """Return the classes that the columns of `y_prob` name, and notes on the columns and indexes of both arguments.

    The classes are in the order of the columns if `y_prob` is a data frame whose column names define them. `y` is
    `y_true` as an array. The rules are those of files: names with a number each, unless these are 0..K−1 in this order,
    and class names if the labels are text, define the classes; other names do not. Raises InputError TO113 if
    `classes`, or the columns of votes, are the same names in another order.
    """
    named_classes, notes = _classes_from_names(y_true, y, y_prob, classes)
    if named_classes is None and (categories := _categories_in_column_order(y_true, y_prob)) is not None:
        named_classes, notes = categories, categories_notes(categories)
    return named_classes, [*notes, *_different_index_notes(y_true, y_prob)]


def label_categories(y: Any) -> list[Any] | None:
    """Return the categories of a pandas Categorical or a Polars Enum in their order; None for anything else.

    A Polars Categorical does not have an order of its own: its categories are in the order in which they occur first.
    """
    dtype = getattr(y, "dtype", None)
    if type(dtype).__name__ not in ("CategoricalDtype", "Enum") or getattr(dtype, "categories", None) is None:
        return None
    categories = [to_plain_name(name) for name in np.asarray(dtype.categories).tolist()]  # type: ignore[union-attr]
    return categories if all(map(_is_class_name, categories)) else None


def categories_notes(categories: Sequence[Any]) -> list[Note]:
    """Return the note that categories are the classes in the order of the columns, unless they are 0..K−1."""
    if list(categories) == list(range(len(categories))):
        return []
    shown = format_first(categories, MAX_LISTED_ITEMS)
    return [Note("TN188", f"The categories of the labels are the classes in the order of the columns: {shown}.")]


def _categories_in_column_order(y_true: Any, y_prob: Any) -> list[Any] | None:
    """Return the categories of the labels if there is one per column, and the columns have no numbers of their own."""
    categories = label_categories(y_true)
    if categories is None:
        return None
    shape = np.shape(y_prob)
    names = column_names(y_prob) if len(shape) == 2 else None
    is_numbered = names is not None and class_numbers(names) is not None
    # The names that pandas and Polars give columns without names.
    has_default_names = names is not None and names in (
        [str(i) for i in range(len(names))],
        [f"column_{i}" for i in range(len(names))],
    )
    if is_numbered and not has_default_names:
        return None
    return categories if len(categories) == (shape[1] if len(shape) == 2 else 2) else None


def _classes_from_names(
    y_true: Any, y: Array, y_prob: Any, classes: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, list[Note]]:
    """Return the classes that the column names define, and a note if they have other numbers than 0..K−1 in order."""
    names = distinct_column_names(y_prob)
    if names is None or len(names) < 2:
        return classes, []
    candidates = _candidate_class_names(names, "p_")
    if classes is not None:
        is_sequence = np.iterable(classes) and not isinstance(classes, str)  # `check_class_names` refuses other values
        expected = [str(to_plain_name(name)) for name in classes] if is_sequence else []
        _refuse_other_order(_candidate_class_names(expected, ""), candidates, "the classes")
        return classes, []
    if y.ndim == 2:
        vote_columns = distinct_column_names(y_true)
        column_numbers = [str(i) for i in range(y.shape[1])]
        vote_candidates = _candidate_class_names(vote_columns, "v_") if vote_columns else [column_numbers]
        _refuse_other_order(vote_candidates, candidates, "those of y_true")
    if y.ndim == 1 and y.dtype.kind in "US":
        labels = set(y.astype(str).tolist())
        matching = [candidate for candidate in candidates if labels <= set(candidate)]
        parts = list(names_of_labels(names, labels))
        return matching[0] if matching else parts if parts != names else candidates[0], []
    numbered_classes = classes_for_numeric_labels(candidates[0])
    if y_true is None and numbered_classes is None and class_numbers(candidates[0]) is None:
        return candidates[0], []  # no label can be a position
    if numbered_classes is None or class_numbers(numbered_classes) is None:
        return numbered_classes, []
    return numbered_classes, [numbered_columns_note("The columns of y_prob", numbered_classes)]


def classes_for_numeric_labels(names: Sequence[str]) -> list[Any] | None:
    """Return the classes that these names define if labels are numbers; None if a label is the position of its class.

    The classes are the numbers in the names, or the names if only some of them are numbers.

    >>> classes_for_numeric_labels(["01", "02"]), classes_for_numeric_labels(["p_1", "p_0"])
    ([1, 2], [1, 0])
    >>> classes_for_numeric_labels(["0", "1"]), classes_for_numeric_labels(["no", "yes"])
    (None, None)
    """
    return None if labels_are_positions(names) else list(class_numbers(names) or names)


def numbered_columns_note(subject: str, classes: Sequence[Any]) -> Note:
    """Return the note that labels are numbers of columns and not their positions; `subject` names the columns."""
    numbers = class_numbers(classes)
    assert numbers is not None
    text = f"{subject} are numbered {numbers[0]}, {numbers[1]}, …: labels are read as the numbers of the columns."
    return Note("TN302", text)


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
    """Raise TO113 if multilabel outcomes Y and probabilities P are data frames with the same columns in another order.

    A prefix such as `y_` and `p_` makes no difference.
    """
    y_columns, p_columns = distinct_column_names(Y), distinct_column_names(P)
    if y_columns is not None and p_columns is not None:
        _refuse_other_order(
            _candidate_class_names(y_columns, "y_"), _candidate_class_names(p_columns, "p_"), "those of Y", "P"
        )


def _candidate_class_names(names: list[str], prefix: str) -> list[list[str]]:
    """Return the lists of class names that column names may stand for, the most likely one first.

    These are the column names without the usual prefix if all have it, the column names themselves, and the numbers
    in them, such as those of `proba_1` and `proba_0`.

    >>> _candidate_class_names(["p_no", "p_yes"], "p_"), _candidate_class_names(["proba_1", "proba_0"], "p_")
    ([['no', 'yes'], ['p_no', 'p_yes']], [['proba_1', 'proba_0'], ['1', '0']])
    """
    candidates = [names]
    if prefix and all(name.startswith(prefix) for name in names):
        candidates.insert(0, [name.removeprefix(prefix) for name in names])
    if numbers := class_numbers(names):
        candidates.append([str(number) for number in numbers])
    return candidates


def _refuse_other_order(
    expected_candidates: list[list[str]], candidates: list[list[str]], subject: str, argument: str = "y_prob"
) -> None:
    """Raise TO113 if the columns of an argument have the expected names in another order.

    `candidates` are the lists of names that its columns may stand for, and `expected_candidates` those in the right
    order, of the `subject`, such as "the classes".
    """
    for expected in expected_candidates:
        for candidate in candidates:
            if expected != candidate and sorted(expected) == sorted(candidate):
                raise InputError(
                    "TO113",
                    f"The columns of {argument} are in another order than {subject}.",
                    f"{', '.join(candidate)} and {', '.join(expected)}",
                    "Reorder the columns.",
                )


def names_of_labels(names: Sequence[str], labels: Collection[str]) -> tuple[str, ...]:
    """Return the parts of column names that are labels, without the beginning and the end that all names share.

    The names are unchanged if labels are names themselves, or if there are none or several such parts. There may be
    more labels than names, for an error that names these.

    >>> names_of_labels(["P (Churn=no)", "P (Churn=yes)"], {"yes"}), names_of_labels(["p_cat", "p_dog"], {"eel"})
    (('no', 'yes'), ('p_cat', 'p_dog'))
    """
    labels = set(labels)
    if labels <= set(names) or set(names) <= labels:
        return tuple(names)
    shortest = min(map(len, names))
    n_before, n_behind = len(common_prefix(names)), len(common_prefix([name[::-1] for name in names]))
    candidates = set()
    for start in range(min(n_before, shortest - 1) + 1):
        for end in range(min(n_behind, shortest - 1 - start) + 1):
            parts = tuple(name[start : len(name) - end] for name in names)
            if labels <= set(parts) or set(parts) <= labels:
                candidates.add(parts)
    return candidates.pop() if len(candidates) == 1 else tuple(names)
