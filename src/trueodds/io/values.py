"""Which plain array do these cells make? Missing, mixed and ragged ones are told by file, column and row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array

UNICODE = "Write the column as text in UTF-8."
WIDEST_TEXT = 1 << 30  # bytes that the texts of one batch may take
MISSING = ("NAType", "NaTType")  # pandas' words for it, known by name so that pandas is not imported


@dataclass(frozen=True, slots=True)
class Place:
    """Where cells come from: a table, a column, and the row of the table that the first cell is in."""

    name: str
    column: str
    start: int = 0

    def missing(self, row: int, count: int) -> InputError:
        """A cell without a value."""
        return InputError(
            "TO308",
            f"Column {self.column!r} of {self.name} has missing values.",
            f"none in row {self.start + row}{_such(count)}",
            "Fill or remove those rows; nothing is dropped for you.",
        )

    def wrong_type(self, got: str, fix: str = "Choose another column, or convert it to numbers.") -> InputError:
        """Cells that are neither numbers nor names."""
        return InputError("TO307", f"Column {self.column!r} of {self.name} has the wrong type.", got, fix)

    def changed(self, row: int, first: str, later: str) -> InputError:
        """Cells that are of another type than those before them."""
        return InputError(
            "TO309",
            f"Column {self.column!r} of {self.name} changes its type.",
            f"{later} in row {self.start + row} after {first}",
            "Write the whole column as one type.",
        )

    def ragged(self, row: int, got: int, first: int) -> InputError:
        """A list that is longer or shorter than the first one."""
        return InputError(
            "TO310",
            f"Every list in column {self.column!r} of {self.name} must have the same length.",
            f"{got} values in row {self.start + row} after rows of {first}",
            "Give one value per class in each row.",
        )


def _such(count: int) -> str:
    return f" ({count:,} such {'value' if count == 1 else 'values'} in the rows read together)" if count > 1 else ""


def plain(cells: Sequence[Any] | Array, place: Place) -> Array:
    """The cells as an array of whole numbers, floats, booleans or text; lists as the rows of a matrix.

    >>> plain([0, 1], Place("a", "label")).dtype, plain([[0.1, 0.9], [1, 0]], Place("a", "p")).shape
    (dtype('int64'), (2, 2))
    """
    if isinstance(cells, np.ma.MaskedArray):
        if (mask := np.ma.getmaskarray(cells).reshape(len(cells), -1).any(axis=1)).any():
            raise place.missing(int(np.argmax(mask)), int(mask.sum()))
        cells = cells.data
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "biuf":
            return cells
        if cells.dtype.kind == "U":
            return _checked_text(cells, place)
        if cells.dtype.kind in "Mm" and not np.isnat(cells).any():
            return cells.astype(str)
    cells = list(cells)
    absent = [i for i, cell in enumerate(cells) if _missing(cell)]
    if absent:
        raise place.missing(absent[0], len(absent))
    kinds = {_family(cell) for cell in cells}
    if kinds == {"list"}:
        return _matrix(cells, place)
    if len(kinds) > 1 and not kinds <= {"bool", "int", "float"}:
        first = _family(cells[0])
        row = next(i for i, cell in enumerate(cells) if _family(cell) != first)
        if isinstance(cells[row], float) and cells[row] != cells[row]:
            raise place.missing(row, 1)
        raise place.changed(row, shown(cells[0]), shown(cells[row]))
    if kinds == {"other"}:
        raise place.wrong_type(f"{shown(cells[0])} in row {place.start}")
    if kinds == {"text"}:
        return texts([str(cell) for cell in cells], place)
    if kinds == {"bool"}:
        return np.array(cells, dtype=bool)
    if "float" in kinds:
        return np.array([_number(cell, row, place) for row, cell in enumerate(cells)], dtype=np.float64)
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except OverflowError:
        row = next(i for i, cell in enumerate(cells) if not -(2**63) <= cell < 2**63)
        got = f"a whole number beyond 64 bits in row {place.start + row}"
        raise place.wrong_type(got, "Write such identifiers as text.") from None


def texts(cells: Sequence[str], place: Place) -> Array:
    """Texts as an array, whose every cell takes as much memory as the longest."""
    longest = max(map(len, cells), default=0)
    if 4 * longest * len(cells) > WIDEST_TEXT:
        row = next(i for i, cell in enumerate(cells) if len(cell) == longest)
        got = f"a text of {longest:,} characters in row {place.start + row}"
        raise place.wrong_type(got, "Names of classes and groups are short: choose another column.")
    joined = "".join(cells)
    if not joined.isascii() or "\0" in joined:
        _check_characters(cells, place)
    return np.array(cells, dtype=np.str_)


def _check_characters(cells: Iterable[str], place: Place) -> None:
    """Refuse half a surrogate pair, which no file can hold, and a NUL at the end, which NumPy drops."""
    for row, cell in enumerate(cells):
        if cell.endswith("\0") or any("\ud800" <= letter <= "\udfff" for letter in cell):
            raise place.wrong_type(f"{cell[:40]!r} in row {place.start + row}, which is no text in Unicode", UNICODE)


def _checked_text(cells: Array, place: Place) -> Array:
    """Text that is an array already: every number in it is that of a character."""
    cells = np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("="))
    points = cells.view(np.uint32).reshape(len(cells), -1) if cells.size and cells.dtype.itemsize else np.zeros((0, 1))
    odd = ((points >= 0xD800) & (points <= 0xDFFF) | (points > 0x10FFFF)).any(axis=1)
    if odd.any():
        raise place.wrong_type(
            f"characters in row {place.start + int(np.argmax(odd))} that are not in Unicode", UNICODE
        )
    return cells


def _number(cell: Any, row: int, place: Place) -> float:
    try:
        return float(cell)
    except (OverflowError, ValueError):  # a whole number of 309 digits or more, or a signaling NaN
        raise place.wrong_type(f"{shown(cell)} in row {place.start + row}, which no float holds") from None


def _family(cell: Any) -> str:
    if isinstance(cell, (bool, np.bool_)):
        return "bool"
    if isinstance(cell, (int, np.integer)):
        return "int"
    if isinstance(cell, (float, np.floating, Decimal)):
        return "float"
    if isinstance(cell, str):
        return "text"
    return "list" if isinstance(cell, (list, tuple, np.ndarray)) else "other"


def _missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ in MISSING


def shown(cell: Any) -> str:
    """A cell of any type, for an error."""
    try:
        text = str(cell)[:40]
    except ValueError:  # Python writes whole numbers of up to 4,300 digits
        text = "thousands of digits"
    return f"{type(cell).__name__} {text!r}"


def _matrix(cells: list[Any], place: Place) -> Array:
    width = len(cells[0])
    for row, cell in enumerate(cells):
        if len(cell) != width:
            raise place.ragged(row, len(cell), width)
    if width == 0:
        raise place.ragged(0, 0, 1)
    if all(isinstance(cell, np.ndarray) and cell.dtype.kind in "biuf" for cell in cells):
        return np.stack(cells)
    flat = [value for cell in cells for value in cell]
    absent = [i for i, value in enumerate(flat) if _missing(value)]
    if absent:
        raise place.missing(absent[0] // width, len(absent))
    strange = [i for i, value in enumerate(flat) if _family(value) not in ("bool", "int", "float")]
    if strange:
        raise place.wrong_type(f"a list with {shown(flat[strange[0]])} in row {place.start + strange[0] // width}")
    return plain(flat, place).reshape(-1, width)
