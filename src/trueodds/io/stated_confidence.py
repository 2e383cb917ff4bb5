"""Read the confidences that a language model stated, as fractions or percentages, and refuse values on mixed scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, Note, argument
from trueodds.core.typing import Array
from trueodds.io.conversion import QUOTED_CHARACTERS, is_readable
from trueodds.io.records import Record

DOUBTFUL_SCALE_CODES = ("TN147", "TN148")  # notes that put every number in doubt
MAX_QUOTED_VALUES = 3  # number of different values that are not numbers, quoted by an error
SCALE_REMEDY = "Write all values on one scale: 90% if 0.9 means 90 %, and 0.9% if it means 0.9 %."


def read_stated_confidences(
    rows: list[Record], name: str, percent: bool, *, refuse_fractions: bool = False
) -> tuple[Array, list[Note]]:
    """Return the stated confidence of each record as a fraction, (n,), and notes on doubtful percentages.

    `name` is the field, `percent` says that 70 means 70 %. With `refuse_fractions` at least one must be above 1 %,
    because values that are all smaller are probably fractions.

    >>> read_stated_confidences([Record("a", 0, None, {"c": "85%"}), Record("a", 1, None, {"c": 60})], "c", True)
    (array([0.85, 0.6 ]), [])
    """
    values = [row.value(name, is_confidence=True) for row in rows]
    numerals = [_without_percent_sign(value) for value in values]
    invalid = [i for i, numeral in enumerate(numerals) if not _is_number(numeral)]
    if invalid:
        raise _not_a_number_error(rows, values, invalid, name)
    scale = PercentScale() if percent else None
    upper_bound = 100 if percent else 1
    stated = np.empty(len(rows))
    for i, (row, value, numeral) in enumerate(zip(rows, values, numerals, strict=True)):
        has_sign = numeral is not value
        if has_sign and not percent:
            raise row.wrong_type_error(name, value, "Pass ⟨percent=True⟩, which reads both 70 and 70%.")
        number = row.to_number(name, numeral)
        if not 0 <= number <= upper_bound:
            problem, got = f"A confidence lies outside 0 to {upper_bound}.", f"{value} for {name!r} in {row.location}"
            raise InputError("TO317", problem, got, _out_of_range_remedy(number, percent))
        stated[i] = number / upper_bound
        if scale is not None:
            scale.add(number, str(numeral).strip(), row.location, has_sign=has_sign)
    if scale is not None and refuse_fractions:
        scale.refuse_fractions()
    return stated, [] if scale is None else scale.notes()


@dataclass(slots=True)
class PercentScale:
    """Counts percentages of at most 1, which may be fractions, among the stated confidences of a file."""

    n: int = 0  # number of values
    highest: float = 0.0  # the largest percentage
    n_signed: int = 0  # number of texts with a percent sign, which are unambiguous
    n_doubtful: int = 0  # number of values above 0 and at most 1 without a percent sign
    first_doubtful: tuple[str, str] = ("", "")  # the first of these values, and its location

    def add(self, number: float, numeral: str, location: str, *, has_sign: bool = False) -> None:
        """Count a percentage, with its text, its location, and whether the text has a percent sign."""
        self.n += 1
        self.highest = max(self.highest, number)
        self.n_signed += has_sign
        if 0 < number <= 1 and not has_sign:
            self.first_doubtful = self.first_doubtful if self.n_doubtful else (numeral, location)
            self.n_doubtful += 1

    def add_column(self, percentages: Array, source: str, first_row: int) -> None:
        doubtful = np.flatnonzero((percentages > 0) & (percentages <= 1))
        if len(doubtful) and not self.n_doubtful:
            row = int(doubtful[0])
            self.first_doubtful = f"{percentages[row]:g}", f"row {first_row + row} of {source}"
        self.n += len(percentages)
        self.n_doubtful += len(doubtful)
        self.highest = max(self.highest, float(percentages.max()))

    def notes(self) -> list[Note]:
        """Return the note on doubtful values; raise TO317 if others have a percent sign."""
        if 0 < self.highest <= 1:
            largest = f"{self.highest / 100:.2%}"
            text = f"No confidence is above 1 %; the largest is {largest}: are they fractions instead of percentages?"
            return [Note("TN147", text)]
        if not self.n_doubtful:
            return []
        value, location = self.first_doubtful
        count = f"{self.n_doubtful:,} of {self.n:,}"
        if self.n_signed:
            raise InputError(
                "TO317",
                "Some confidences have a percent sign, and others are at most 1 without one.",
                f"{count} above 0 and at most 1 without a sign, the first {value} in {location}",
                SCALE_REMEDY,
            )
        text = (
            f"{count} confidences are above 0 and at most 1, beside values up to {self.highest:.4g}; the first is"
            f" {value} in {location}, which was read as {value} %. Does the field mix fractions and percentages?"
        )
        return [Note("TN148", text)]

    def refuse_fractions(self) -> None:
        """Raise TO317 if no percentage is above 1, so that all of them are probably fractions."""
        if 0 < self.highest <= 1:
            fix = "Omit ⟨percent=True⟩ if 0.9 means 90 %; divide by 100 and omit it if 0.9 means 0.9 %."
            raise InputError(
                "TO317", "No confidence is above 1 %.", f"at most {self.highest:g} in {self.n:,} rows", fix
            )


def _without_percent_sign(value: object) -> object:
    return value.strip().removesuffix("%") if isinstance(value, str) and value.strip().endswith("%") else value


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return is_readable(value.strip(), "number")
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _not_a_number_error(rows: list[Record], values: list[object], invalid: list[int], name: str) -> InputError:
    """Return the error of values that are not numbers, which counts them and quotes some as they are written."""
    first = invalid[0]
    fix = (
        "Choose a field of numbers, or convert them; an answer without a usable confidence is counted if its value is"
        f" empty and {argument('abstained', name)} is passed."
    )
    error = rows[first].wrong_type_error(name, values[first], fix)
    if len(invalid) == 1:
        return error
    quoted = list(dict.fromkeys(repr(values[i])[: QUOTED_CHARACTERS + 2] for i in invalid))[:MAX_QUOTED_VALUES]
    got = error.got + f"; {len(invalid):,} of {len(values):,} values are not numbers, such as {', '.join(quoted)}"
    return InputError(error.code, error.problem, got, error.fix)


def _out_of_range_remedy(number: float, percent: bool) -> str:
    if number < 0 and not percent:
        return "Write exp(x) instead of a log-probability x. Values are never clipped."
    if percent or number > 100:
        return "Correct the row; values are never clipped."
    return "Pass ⟨percent=True⟩ if 70 means 70 %."
