"""Convert cells of any type, and the text of CSV cells of a kind in `PARSERS`, to arrays; errors name the `Place`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.arrays import to_builtin_dtype
from trueodds.data.remedies import number_text_remedies
from trueodds.io.nested_fields import NO_FIELD, ClassScores, find_field, vector_values

ENCODING_REMEDY = "Write the column as text in UTF-8."  # for text that is not valid Unicode
MAX_TEXT_BYTES = 1 << 30  # maximum number of bytes of the text array of one batch
QUOTED_CHARACTERS = 40  # number of characters of a cell that an error quotes
# Types of the missing values of pandas, which are compared by name to avoid importing pandas.
MISSING_VALUE_TYPES = ("NAType", "NaTType")
# Spellings of missing values in numeric columns of text files, in lower case.
MISSING_TEXTS = ("na", "n/a", "#n/a", "<na>", "null", "none")


@dataclass(frozen=True, slots=True)
class Place:
    """The location of consecutive cells of a column, and the errors about them, whose `row` counts from `first_row`."""

    table_name: str
    column: str
    first_row: int = 0  # number of the first row in the table
    allows_missing: bool = False  # whether a missing value becomes NaN instead of an error
    masks_missing: bool = False  # whether missing values are masked in the array, as those of labels
    keeps_times: bool = False  # whether dates and times become datetime64, in UTC, and not text

    def field(self, name: str) -> Place:
        """The location of a field of these cells."""
        return replace(self, column=f"{self.column}.{name}")

    def missing_value_error(self, row: int, count: int) -> InputError:
        return InputError(
            "TO308",
            f"Column {self.column!r} of {self.table_name} has missing values.",
            f"none in row {self.first_row + row}{_count_text(count)}",
            "Fill or remove those rows; rows are never dropped silently.",
        )

    def wrong_type_error(self, got: str, fix: str = "Choose another column, or convert it to numbers.") -> InputError:
        return InputError("TO307", f"Column {self.column!r} of {self.table_name} has the wrong type.", got, fix)

    def not_a_number_error(self, cell: str, row: int) -> InputError:
        got = f"{cell[:QUOTED_CHARACTERS]!r} in row {self.first_row + row}, which is not a number"
        return self.wrong_type_error(got, *number_text_remedies([cell], "pass ⟨decimal=','⟩"))

    def type_change_error(self, row: int, first: str, later: str) -> InputError:
        return InputError(
            "TO309",
            f"Column {self.column!r} of {self.table_name} changes its type.",
            f"{later} in row {self.first_row + row} after {first}",
            "Write the column as a single type.",
        )

    def length_error(self, row: int, got: int, first: int) -> InputError:
        return InputError(
            "TO310",
            f"Every list in column {self.column!r} of {self.table_name} must have the same length.",
            f"{got} values in row {self.first_row + row} after rows of {first}",
            "Give one value per class in each row.",
        )


def _count_text(count: int) -> str:
    return f" ({count:,} such {'value' if count == 1 else 'values'} in the rows read together)" if count > 1 else ""


def to_array(cells: Sequence[Any] | Array, place: Place) -> Array:
    """Convert cells to an array of integers, floats, booleans or text; lists become the rows of a matrix.

    >>> to_array([0, 1], Place("a", "label")).dtype, to_array([[0.1, 0.9], [1, 0]], Place("a", "p")).shape
    (dtype('int64'), (2, 2))
    """
    if place.masks_missing:
        return _to_masked_array(cells, place)
    if isinstance(cells, np.ma.MaskedArray) and place.allows_missing:
        cells = np.ma.filled(np.ma.asarray(cells, dtype=np.float64), np.nan)
    if isinstance(cells, np.ma.MaskedArray):
        if (mask := np.ma.getmaskarray(cells).reshape(len(cells), -1).any(axis=1)).any():
            raise place.missing_value_error(int(np.argmax(mask)), int(mask.sum()))
        cells = cells.data
    if isinstance(cells, np.ndarray):
        cells = to_builtin_dtype(cells)
        if cells.dtype.kind in "biuf":
            return cells
        if cells.dtype.kind == "U":
            return _check_text_array(cells, place)
        if cells.dtype.kind in "Mm" and not np.isnat(cells).any():
            return cells.astype(str)
    cells = list(cells)
    missing = [i for i, cell in enumerate(cells) if _is_missing(cell)]
    if missing and place.allows_missing:
        cells = [np.nan if _is_missing(cell) else cell for cell in cells]
    elif missing:
        raise place.missing_value_error(missing[0], len(missing))
    kinds = {_kind_of_cell(cell) for cell in cells}
    if "other" in kinds:
        cells = [vector_values(cell) for cell in cells]
        kinds = {_kind_of_cell(cell) for cell in cells}
    if kinds == {"list"}:
        return _lists_to_matrix(cells, place)
    if len(kinds) > 1 and not kinds <= {"bool", "int", "float"}:
        first = _kind_of_cell(cells[0])
        row = next(i for i, cell in enumerate(cells) if _kind_of_cell(cell) != first)
        if isinstance(cells[row], float) and cells[row] != cells[row]:
            raise place.missing_value_error(row, 1)
        raise place.type_change_error(row, describe_cell(cells[0]), describe_cell(cells[row]))
    if kinds == {"other"}:
        raise place.wrong_type_error(f"{describe_cell(cells[0])} in row {place.first_row}")
    if kinds == {"text"}:
        return text_array([str(cell) for cell in cells], place)
    if kinds == {"bool"}:
        return np.array(cells, dtype=bool)
    if "float" in kinds:
        return np.array([_to_float(cell, row, place) for row, cell in enumerate(cells)], dtype=np.float64)
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)
    except OverflowError:
        row = next(i for i, cell in enumerate(cells) if not -(2**63) <= cell < 2**63)
        got = f"a whole number beyond 64 bits in row {place.first_row + row}"
        raise place.wrong_type_error(got, "Write such identifiers as text.") from None


def _to_masked_array(cells: Sequence[Any] | Array, place: Place) -> Array:
    """Convert labels, of which some may be missing: None, NaN, empty text or a field that does not exist."""
    plain_place = replace(place, masks_missing=False)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biu":
        return mask_missing(to_array(np.asarray(cells), plain_place), np.ma.getmaskarray(cells))
    labels = list(cells)
    is_missing = [cell is np.ma.masked or _is_missing_label(cell) for cell in labels]
    if all(is_missing):
        return masked_labels(len(labels))
    return mask_missing(to_array(_fill_missing(labels, is_missing), plain_place), np.array(is_missing))


def _fill_missing(cells: Sequence[Any], is_missing: Sequence[bool]) -> list[Any]:
    """Return the cells with the first one that is not missing as a placeholder."""
    first = cells[is_missing.index(False)]
    return [first if missing else cell for cell, missing in zip(cells, is_missing, strict=True)]


def masked_labels(n: int, dtype: Any = np.float64) -> Array:
    """Return n labels of which all are missing."""
    return mask_missing(np.zeros(n, dtype), np.ones(n, dtype=bool))


def mask_missing(values: Array, is_missing: Array) -> Array:
    """Return the labels (n,) as a masked array if a label is missing, with another one as a placeholder."""
    return np.ma.array(values, mask=is_missing) if is_missing.any() else values


def is_all_masked(values: Array) -> bool:
    """Return whether all labels of a batch are missing, so that their type is unknown."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).all())


def _is_missing_label(cell: Any) -> bool:
    is_nan = isinstance(cell, (float, np.generic)) and cell != cell
    return _is_missing(cell) or is_nan or (isinstance(cell, str) and cell == "")


def fields_of_cells(cells: Iterable[Any], paths: Sequence[str], place: Place) -> dict[str, list[Any]]:
    """Return the fields of consecutive cells by path; `NO_FIELD` where a cell does not have the field.

    If several classes of a list are read, every cell must have exactly these classes. The column of `place` is that of
    the cells, or empty if they are whole records.
    """
    columns: dict[str, list[Any]] = {path: [] for path in paths}
    for row, cell in enumerate(cells):
        class_scores = ClassScores()
        for path, column in columns.items():
            column.append(find_field(cell, path, class_scores))
        if (sizes := class_scores.partly_read()) is not None:
            name = ".".join(filter(None, (place.column, paths[0].rpartition(".")[0])))
            raise Place(place.table_name, name, place.first_row).length_error(row, *sizes)
    return columns


def text_array(cells: Sequence[str], place: Place) -> Array:
    """Convert text to a NumPy array, in which every cell takes as much memory as the longest."""
    longest = max(map(len, cells), default=0)
    if 4 * longest * len(cells) > MAX_TEXT_BYTES:
        row = next(i for i, cell in enumerate(cells) if len(cell) == longest)
        got = f"a text of {longest:,} characters in row {place.first_row + row}"
        raise place.wrong_type_error(got, "Names of classes and groups are short: choose another column.")
    joined = "".join(cells)
    if not joined.isascii() or "\0" in joined:
        _check_characters(cells, place)
    return np.array(cells, dtype=np.str_)


def _check_characters(cells: Iterable[str], place: Place) -> None:
    """Reject lone surrogates, which cannot be encoded, and a trailing NUL, which NumPy drops."""
    for row, cell in enumerate(cells):
        if cell.endswith("\0") or any("\ud800" <= letter <= "\udfff" for letter in cell):
            raise place.wrong_type_error(
                f"{cell[:QUOTED_CHARACTERS]!r} in row {place.first_row + row}, which is not valid Unicode text",
                ENCODING_REMEDY,
            )


def _check_text_array(cells: Array, place: Place) -> Array:
    cells = np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("="))
    code_points = (
        cells.view(np.uint32).reshape(len(cells), -1) if cells.size and cells.dtype.itemsize else np.zeros((0, 1))
    )
    invalid = ((code_points >= 0xD800) & (code_points <= 0xDFFF) | (code_points > 0x10FFFF)).any(axis=1)
    if invalid.any():
        raise place.wrong_type_error(
            f"characters in row {place.first_row + int(np.argmax(invalid))} that are not in Unicode", ENCODING_REMEDY
        )
    return cells


def _to_float(cell: Any, row: int, place: Place) -> float:
    try:
        return float(cell)
    except (OverflowError, ValueError):  # an integer of 309 digits or more, or a signaling NaN
        raise place.wrong_type_error(
            f"{describe_cell(cell)} in row {place.first_row + row}, which no float can represent"
        ) from None


def _kind_of_cell(cell: Any) -> str:
    if isinstance(cell, (bool, np.bool_)):
        return "bool"
    if isinstance(cell, (int, np.integer)):
        return "int"
    if isinstance(cell, (float, np.floating, Decimal)):
        return "float"
    if isinstance(cell, str):
        return "text"
    return "list" if isinstance(cell, (list, tuple, np.ndarray)) else "other"


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None, a missing value of pandas, or a field that does not exist; NaN is a number."""
    return cell is None or cell is NO_FIELD or type(cell).__name__ in MISSING_VALUE_TYPES


def describe_cell(cell: Any) -> str:
    try:
        text = str(cell)[:QUOTED_CHARACTERS]
    except ValueError:  # Python converts integers of at most 4,300 digits to text
        text = "thousands of digits"
    return f"{type(cell).__name__} {text!r}"


def _lists_to_matrix(cells: list[Any], place: Place) -> Array:
    width = len(cells[0])
    for row, cell in enumerate(cells):
        if len(cell) != width:
            raise place.length_error(row, len(cell), width)
    if width == 0:
        raise place.length_error(0, 0, 1)
    if all(isinstance(cell, np.ndarray) and cell.dtype.kind in "biuf" for cell in cells):
        return np.stack(cells)
    values = [value for cell in cells for value in cell]
    missing = [i for i, value in enumerate(values) if _is_missing(value)]
    if missing and place.allows_missing:
        values = [np.nan if _is_missing(value) else value for value in values]
    elif missing:
        raise place.missing_value_error(missing[0] // width, len(missing))
    not_numbers = [i for i, value in enumerate(values) if _kind_of_cell(value) not in ("bool", "int", "float")]
    if not_numbers:
        raise place.wrong_type_error(
            f"a list with {describe_cell(values[not_numbers[0]])} in row {place.first_row + not_numbers[0] // width}"
        )
    return to_array(values, place).reshape(-1, width)


def parse_cells(cells: Sequence[str], kind: str, place: Place, decimal: str = ".") -> Array:
    """Parse text cells, as of a CSV file, as a kind: "int", "float", "bool", "text", or one of `NUMBER_KINDS`.

    >>> parse_cells(["1", "2"], infer_kind(["1", "2"]), Place("a.csv", "label")).tolist()
    [1, 2]
    >>> parse_cells(["0,5", "1"], "number", Place("a.csv", "p"), decimal=",").tolist()
    [0.5, 1.0]
    """
    if place.masks_missing:
        is_missing = [is_missing_text(cell, kind) for cell in cells]
        if all(is_missing):
            return masked_labels(len(cells))
        labels = parse_cells(_fill_missing(cells, is_missing), kind, replace(place, masks_missing=False), decimal)
        return mask_missing(labels, np.array(is_missing))
    missing = [i for i, cell in enumerate(cells) if cell == ""]
    if place.allows_missing:
        cells = ["nan" if cell == "" or cell.strip().lower() in MISSING_TEXTS else cell for cell in cells]
    elif missing:
        raise place.missing_value_error(missing[0], len(missing))
    if kind == "text":
        return text_array(cells, place)
    try:
        values = [_parse(cell, kind, decimal) for cell in cells]
    except (ValueError, KeyError, OverflowError):
        row = next(i for i, cell in enumerate(cells) if not is_readable(cell, kind, decimal))
        raise parse_error(cells[row], row, kind, place, decimal) from None
    return _lists_to_matrix(values, place) if kind == "list" else np.array(values, dtype=DTYPES[kind])


def parse_error(cell: str, row: int, kind: str, place: Place, decimal: str = ".") -> InputError:
    if cell.strip().lower() in MISSING_TEXTS:
        return place.missing_value_error(row, 1)
    if kind in NUMBER_KINDS:
        got = f"{cell[:QUOTED_CHARACTERS]!r} in row {place.first_row + row}, which is {NUMBER_KINDS[kind]}"
        if kind != "number":
            return place.wrong_type_error(got, "Write all cells of the column in one form.")
        if decimal != "." and "." in cell:
            return place.wrong_type_error(got, "Write all numbers of the file with the same decimal mark.")
        return place.not_a_number_error(cell, row)
    names = {"int": "whole numbers", "float": "numbers", "bool": "true and false"}
    return place.type_change_error(row, names[kind], f"{cell[:QUOTED_CHARACTERS]!r}")


def infer_kind(cells: Sequence[str], decimal: str = ".") -> str:
    """Return the narrowest kind that reads every cell: int, float, bool, else text.

    >>> infer_kind(["0", "1"]), infer_kind(["0", "0.5"]), infer_kind(["true"]), infer_kind(["0", "cat"])
    ('int', 'float', 'bool', 'text')
    >>> infer_kind(["9" * 20])
    'text'
    """
    for kind in ("int", "float", "bool"):
        if all(is_readable(cell, kind, decimal) for cell in cells):
            return kind
    return "text"


def infer_label_kind(cells: Sequence[str], place: Place, decimal: str = ".") -> str | None:
    """Return the kind of the cells of a column that is no number; None if all are missing where they may be.

    >>> place = Place("a.csv", "label", masks_missing=True)
    >>> [infer_label_kind(cells, place) for cells in (["0", "NA", ""], ["cat", "NA", ""], [""])]
    ['int', 'text', None]
    """
    if not place.masks_missing:
        return infer_kind(cells, decimal)
    filled = [cell for cell in cells if not is_missing_text(cell, "float")]
    return infer_kind(filled, decimal) if filled else None


def is_missing_text(cell: str, kind: str) -> bool:
    """Return whether a cell of a text file is a missing label; NA among names of classes may be one of them."""
    return cell == "" or (kind != "text" and cell.strip().lower() in (*MISSING_TEXTS, "nan"))


def infer_filled_kind(cells: Sequence[str]) -> str:
    """Return the kind of the nonempty cells; 00123 is text, not an integer."""
    kind = infer_kind([cell for cell in cells if cell])
    return "text" if kind == "int" and any(cell and str(int(cell)) != cell for cell in cells) else kind


def infer_number_kind(cells: Sequence[str], decimal: str = ".") -> str | None:
    """Return the form in which all cells are numbers, of `NUMBER_KINDS`; None if there is none.

    >>> [infer_number_kind(cells) for cells in (["0.5", "1"], ["74.4%"], ["0.2", "*0.8"], ["[0.2 0.8]"], ["1", "2%"])]
    ['number', 'percent', 'starred', 'list', None]
    """
    if not cells:
        return None
    return next((kind for kind in NUMBER_KINDS if all(is_readable(cell, kind, decimal) for cell in cells)), None)


def parse_cell(cell: str, kind: str) -> Any:
    """Parse a text cell as its column's kind; a cell that cannot be parsed stays text.

    >>> parse_cell("0.50", "float"), parse_cell("", "int"), parse_cell("x", "int"), parse_cell("", "text")
    (0.5, None, 'x', '')
    """
    if kind == "text":
        return cell
    if cell == "":
        return None
    return PARSERS[kind](cell) if is_readable(cell, kind) else cell


def is_readable(cell: str, kind: str, decimal: str = ".") -> bool:
    """Return whether a text cell can be parsed as this kind; 1_000 cannot, because it is a number only in Python."""
    try:
        _parse(cell, kind, decimal)
    except (ValueError, KeyError, OverflowError):
        return False
    return True


def _parse(cell: str, kind: str, decimal: str) -> Any:
    """Parse a text cell; with a decimal comma, a point is not a decimal mark, and may separate thousands."""
    if decimal != "." and kind != "bool":
        if "." in cell:
            raise ValueError(cell)
        cell = cell.replace(decimal, ".")
    return PARSERS[kind](cell)


def _parse_int(cell: str) -> int:
    if "_" in cell:
        raise ValueError(cell)
    value = int(cell)
    if not -(2**63) <= value < 2**63:
        raise OverflowError(cell)
    return value


def _parse_float(cell: str) -> float:
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _parse_exact_float(cell: str) -> float:
    """Parse a float; an integer that it may not represent is an error."""
    value = _parse_float(cell)
    if abs(value) >= 2**63 and cell.strip().lstrip("+-").isdigit():
        raise OverflowError(cell)  # an identifier that a float would round
    return value


def _parse_percent(cell: str) -> float:
    """Parse a percentage with its sign as the nearest float to the fraction."""
    numeral = cell.strip()
    if not numeral.endswith("%"):
        raise ValueError(cell)
    return _parse_float(f"{numeral.removesuffix('%').strip()}e-2")


def _parse_starred(cell: str) -> float:
    return _parse_float(cell.strip().removeprefix("*"))


def _parse_list(cell: str) -> list[float]:
    """Parse a list in brackets, whose items are separated by blanks or commas, as Python and NumPy print it."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(cell)
    return [_parse_float(item) for item in re.split(r"\s*,\s*|\s+", text[1:-1].strip())]


# Functions that parse a text cell, and dtypes of the columns, by kind; "number" does not distinguish integers, and a
# number of the kind "starred" may begin with a star. A list becomes the row of a matrix, and text needs no parser. A
# new kind of number also has an entry in `NUMBER_KINDS`.
PARSERS: dict[str, Any] = {
    "int": _parse_int,
    "float": _parse_exact_float,
    "number": _parse_float,
    "percent": _parse_percent,
    "starred": _parse_starred,
    "list": _parse_list,
    "bool": {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}.__getitem__,
}
DTYPES: dict[str, Any] = {"int": np.int64, "bool": np.bool_} | dict.fromkeys(
    ("float", "number", "percent", "starred"), np.float64
)
# The forms of a column of numbers, and what a cell is that does not have it.
NUMBER_KINDS = {
    "number": "not a number",
    "percent": "not a percentage as the cells before it",
    "starred": "not a number",
    "list": "not a list of numbers as the cells before it",
}
