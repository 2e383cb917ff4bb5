"""Class names from the column names of a data frame of probabilities: `p_0, p_1, …`, or the classes themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array


def column_names(x: Any) -> list[str] | None:
    """The column names of a data frame (pandas, Polars, PyArrow) in memory; None for anything else."""
    if not hasattr(x, "__array__") or getattr(x, "ndim", 2) != 2:
        return None
    # on the class, for an attribute of a pandas frame may be one of its columns
    names = x.column_names if hasattr(type(x), "column_names") else getattr(x, "columns", None)
    return None if names is None or callable(names) else [str(name) for name in names]


def classes_from_columns(
    y_true: Any, y: Array, y_prob: Any, classes: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, list[Note]]:
    """The classes in the order of the columns of `y_prob`, where it is a data frame whose column names tell them.

    `y` is `y_true` as an array. The rules are those of files: class numbers other than 0..K−1 in this order, and class
    names if the labels are text, name the classes; other names say nothing. Raises InputError TO113 where `classes`, or
    the columns of votes, are the same names in another order.
    """
    names = column_names(y_prob)
    if names is None or len(names) < 2:
        return classes, []
    candidates = _candidates(names, "p_")
    if classes is not None:
        class_names = [str(name) for name in classes] if np.iterable(classes) and not isinstance(classes, str) else []
        _refuse_another_order([class_names], candidates, "the classes")
        return classes, []
    if y.ndim == 2:
        votes = column_names(y_true)
        by_place = [[str(i) for i in range(y.shape[1])]]
        _refuse_another_order(_candidates(votes, "v_") if votes else by_place, candidates, "those of y_true")
    if y.ndim == 1 and y.dtype.kind in "US":
        labels = set(y.astype(str).tolist())
        return next((candidate for candidate in candidates if labels <= set(candidate)), candidates[0]), []
    numbers = next((candidate for candidate in candidates if are_numbers(candidate)), None)
    if numbers is None or numbers == [str(i) for i in range(len(names))]:
        return None, []
    text = f"The columns of y_prob are numbered {numbers[0]}, {numbers[1]}, …: a label is the number of its column."
    return [int(number) for number in numbers], [Note("TN302", text)]


def refuse_other_columns(Y: Any, P: Any) -> None:
    """Refuse labels and probabilities in data frames whose columns have the same names in another order (TO113)."""
    labels, probs = column_names(Y), column_names(P)
    if labels is not None and probs is not None:
        _refuse_another_order(_candidates(labels, "y_"), _candidates(probs, "p_"), "those of Y", "P")


def _candidates(names: list[str], prefix: str) -> list[list[str]]:
    """What column names may call the classes: what follows the usual prefix, the names, what follows a shared prefix."""
    candidates = (
        [[name.removeprefix(prefix) for name in names]] if all(name.startswith(prefix) for name in names) else []
    )
    candidates.append(names)
    heads, tails = {name.rpartition("_")[0] for name in names}, [name.rpartition("_")[2] for name in names]
    if len(heads) == 1 and sorted(tails) == sorted(str(i) for i in range(len(names))):  # proba_1, proba_0
        candidates.append(tails)
    return candidates


def are_numbers(names: Sequence[str]) -> bool:
    """Whether every name is a whole number of at most 18 digits, as Python writes it."""
    return all(re.fullmatch(r"0|[1-9][0-9]{0,17}", name) for name in names)


def _refuse_another_order(
    expected: list[list[str]], candidates: list[list[str]], what: str, of: str = "y_prob"
) -> None:
    for one in expected:
        for other in candidates:
            if one != other and sorted(one) == sorted(other):
                raise InputError(
                    "TO113",
                    f"The columns of {of} come in another order than {what}.",
                    f"{', '.join(other)} and {', '.join(one)}",
                    "Bring the columns into the same order.",
                )
