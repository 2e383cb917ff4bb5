"""What do the cells of a text file spell: whole numbers, floats, booleans or names?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.values import Place, texts

UNSAID = ("na", "n/a", "#n/a", "<na>", "null", "none")  # how a column of numbers in a text file says it


def parsed(cells: Sequence[str], kind: str, place: Place) -> Array:
    """Text cells of a file without types, read as a kind: int, float, bool or text.

    >>> parsed(["1", "2"], settled(["1", "2"]), Place("a.csv", "label")).tolist()
    [1, 2]
    """
    absent = [i for i, cell in enumerate(cells) if cell == ""]
    if absent:
        raise place.missing(absent[0], len(absent))
    if kind == "text":
        return texts(cells, place)
    read = READERS[kind]
    try:
        return np.array([read(cell) for cell in cells], dtype=DTYPES[kind])
    except (ValueError, KeyError, OverflowError):
        row = next(i for i, cell in enumerate(cells) if not readable(cell, kind))
        raise refused(cells[row], row, kind, place) from None


def refused(cell: str, row: int, kind: str, place: Place) -> InputError:
    """A text cell that does not read as its column's kind."""
    if cell.strip().lower() in UNSAID:
        return place.missing(row, 1)
    if kind == "number":
        return place.wrong_type(f"{cell[:40]!r} in row {place.start + row}, which is no number")
    names = {"int": "whole numbers", "float": "numbers", "bool": "true and false"}
    return place.changed(row, names[kind], f"{cell[:40]!r}")


def settled(cells: Sequence[str]) -> str:
    """The narrowest kind that reads every cell: int, float, bool, else text.

    >>> settled(["0", "1"]), settled(["0", "0.5"]), settled(["true"]), settled(["0", "cat"]), settled(["9" * 20])
    ('int', 'float', 'bool', 'text', 'text')
    """
    for kind in ("int", "float", "bool"):
        if all(readable(cell, kind) for cell in cells):
            return kind
    return "text"


def spelled(cells: Sequence[str]) -> str:
    """The kind of the cells that are not empty; 00123 is no whole number but a name."""
    kind = settled([cell for cell in cells if cell])
    return "text" if kind == "int" and any(cell and str(int(cell)) != cell for cell in cells) else kind


def valued(cell: str, kind: str) -> Any:
    """What a cell spells; a cell that does not read as its column's kind stays text.

    >>> valued("0.50", "float"), valued("", "int"), valued("x", "int"), valued("", "text")
    (0.5, None, 'x', '')
    """
    if kind == "text":
        return cell
    if cell == "":
        return None
    return READERS[kind](cell) if readable(cell, kind) else cell


def readable(cell: str, kind: str) -> bool:
    """Whether a text cell reads as the kind; 1_000 is Python's number, nobody else's."""
    try:
        READERS[kind](cell)
    except (ValueError, KeyError, OverflowError):
        return False
    return True


def _integer(cell: str) -> int:
    if "_" in cell:
        raise ValueError(cell)
    value = int(cell)
    if not -(2**63) <= value < 2**63:
        raise OverflowError(cell)
    return value


def _number(cell: str) -> float:
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _fraction(cell: str) -> float:
    value = _number(cell)
    if abs(value) >= 2**63 and cell.strip().lstrip("+-").isdigit():
        raise OverflowError(cell)  # an identifier, of which a float would keep the first digits
    return value


READERS: dict[str, Any] = {
    "int": _integer,
    "float": _fraction,
    "number": _number,
    "bool": {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}.__getitem__,
}
DTYPES: dict[str, Any] = {"int": np.int64, "float": np.float64, "number": np.float64, "bool": np.bool_}
