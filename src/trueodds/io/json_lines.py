"""Read JSON Lines files and lists of records, one object per row, and write such files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.json_files import RepeatedKey, describe_json_error, strict_json, unique_keys
from trueodds.core.printable import printable_json
from trueodds.io.conversion import Place, fields_of_cells, is_all_masked, to_array
from trueodds.io.nested_fields import NO_FIELD
from trueodds.io.table import ROWS_OF_FIRST_CELL, ColumnBatch, ColumnSource, TextWriter, check_column_names, to_list

_decode_json = json.JSONDecoder(object_pairs_hook=unique_keys).decode


class JsonLinesTable(ColumnSource):
    """A file with one JSON object per line; the keys of the first are the columns."""

    format = "jsonl"
    unit: ClassVar[str] = "line"  # name of a row in errors

    def __init__(self, path: str) -> None:
        self.name = path
        first_record = next(self.records(), None)
        if first_record is None:
            raise InputError("TO312", f"{path} is empty.", "no line", "Write one JSON object per row.")
        _, fields = first_record
        self._first_fields = fields
        self.columns = check_column_names(path, tuple(fields))
        self.text_columns = _text_keys(fields)

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        first_kinds: dict[str, str] = {}  # "text" or "numbers" in the first batch, by column
        for start, records in self._batches_of_records(size):
            cells = {name: [record.get(name, NO_FIELD) for _, record in records] for name in names}
            if paths := [name for name in names if name not in self.columns]:
                cells |= fields_of_cells((record for _, record in records), paths, Place(self.name, "", start))
            columns = {name: self._column_to_array(records, cells[name], name, start) for name in names}
            for name, column in columns.items():
                if is_all_masked(column):
                    continue
                kind = "text" if column.dtype.kind == "U" else "numbers"
                if first_kinds.setdefault(name, kind) != kind:
                    raise self.place(name, start).type_change_error(0, first_kinds[name], kind)
            # JSON has only one type of number: 1 and 0.5 in a column are of the same type
            yield {
                name: column.astype(np.float64) if name in numeric and column.dtype.kind in "iu" else column
                for name, column in columns.items()
            }

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Return the values of every key, with None for lines without the key."""
        for _, records in self._batches_of_records(size):
            yield {name: [record.get(name) for _, record in records] for name in self.columns}

    def first_cell(self, column: str) -> Any:
        if (value := self._first_fields.get(column)) is not None:
            return value
        records = islice(self.records(), ROWS_OF_FIRST_CELL)
        return next((fields[column] for _, fields in records if fields.get(column) is not None), None)

    def _column_to_array(self, records: list[tuple[int, Any]], cells: list[Any], name: str, start: int) -> Any:
        """Convert the values of one key or field to an array; raise TO308 for a record without it."""
        place = self.place(name, start)
        for row, ((line, _), cell) in enumerate(zip(records, cells, strict=True)):
            if cell is NO_FIELD and not place.masks_missing:
                raise InputError(
                    "TO308",
                    f"Column {name!r} of {self.name} has missing values.",
                    f"no such key in row {start + row} ({self.unit} {line})",
                    "Write it in every line; rows are never dropped silently.",
                )
        return to_array(cells, place)

    def _batches_of_records(self, size: int) -> Iterator[tuple[int, list[tuple[int, dict[str, Any]]]]]:
        """Yield the number of the first row of each batch, and its records with their line numbers."""
        start, records = 0, []
        for numbered_record in self.records():
            records.append(numbered_record)
            if len(records) == size:
                yield start, records
                start, records = start + size, []
        if records:
            yield start, records

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            with open(self.name, encoding="utf-8-sig") as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield number, self._parse_object(line, number)
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(
                "TO303", f"{self.name} cannot be read as jsonl.", str(problem)[:200], "Write it as text in UTF-8."
            ) from None

    def _parse_object(self, line: str, number: int) -> dict[str, Any]:
        """Parse a line as a JSON object without repeated keys."""
        try:
            record = _decode_json(line)
        except RepeatedKey as problem:
            problem_text, fix = f"Line {number} of {self.name} names a key twice.", "Write each key once."
            raise InputError("TO313", problem_text, describe_json_error(problem), fix) from None
        except (ValueError, RecursionError) as problem:
            raise self._invalid_record_error(number, describe_json_error(problem)) from None
        if not isinstance(record, dict):
            raise self._invalid_record_error(number, f"a JSON {type(record).__name__}")
        return record

    def _invalid_record_error(self, number: int, got: str) -> InputError:
        return InputError(
            "TO311",
            f"{self.unit.capitalize()} {number} of {self.name} is not a JSON object.",
            got,
            f"Write one object per {self.unit}, as JSON.",
        )


def _text_keys(fields: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, value in fields.items() if isinstance(value, str))


class RecordTable(JsonLinesTable):
    """Records in memory; the keys of the first are the columns."""

    format = "records"
    unit = "record"

    def __init__(self, records: Sequence[Any]) -> None:
        self.name = "the records"
        self._records = records
        self.rows = len(records)
        self._first_fields = next(self.records())[1] if records else {}
        self.columns, self.text_columns = tuple(self._first_fields), _text_keys(self._first_fields)

    def records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, record in enumerate(self._records, start=1):
            if not isinstance(record, dict):
                raise self._invalid_record_error(number, f"a {type(record).__name__}")
            yield number, record


class JsonLinesWriter(TextWriter):
    """Writer of JSON Lines: strict JSON with one object per row; numerals in text stay text."""

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        cells = [to_list(column) for column in columns.values()]
        for row in zip(*cells, strict=True):
            record = dict(zip(columns, (strict_json(cell) for cell in row), strict=True))
            self._text.write(printable_json(json.dumps(record, allow_nan=False, ensure_ascii=False)) + "\n")
