"""Records of language-model evaluations, one per answer, and their fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.core.errors import InputError, argument
from trueodds.core.json_files import RepeatedKey, describe_json_error, unique_keys
from trueodds.core.suggestions import did_you_mean, list_names
from trueodds.data.labels import TRUTH_REMEDY, truth_value
from trueodds.io import files
from trueodds.io.conversion import ENCODING_REMEDY, describe_cell, is_readable
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.harness_logs import convert_document, samples_of_eval_file
from trueodds.io.json_lines import JsonLinesTable
from trueodds.io.nested_fields import NO_FIELD, find_field, to_python
from trueodds.io.table import ROWS_PER_BATCH, ColumnSource, to_list


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record; errors name its row."""

    source: str  # name of the file or table
    row: int  # counted from 0
    line: int | None  # of the file, counted from 1
    fields: Mapping[str, Any]  # values by the name of the field

    @property
    def location(self) -> str:
        line = f" (line {self.line})" if self.line is not None else ""
        return f"row {self.row}{line} of {self.source}"

    def value(self, field: str, *, is_confidence: bool = False) -> Any:
        """Return the value of a field; `doc.answer` is the field answer inside doc, `resps.0` the first item of a list.

        Raises TO304 if the record has no such field, and TO308 if the field is empty. `is_confidence` says that the
        confidence is computed from the field, which may be empty because no answer was given.

        >>> Record("a", 0, None, {"doc": {"answer": 2}, "resps": ["x"]}).value("doc.answer")
        2
        """
        field_value = to_python(find_field(self.fields, field))
        if field_value is NO_FIELD:
            listed = list_names(list(self.fields)).replace("Known:", "The fields are")
            fix = (did_you_mean(field, self.fields) or listed) if self.fields else "The record is empty."
            raise InputError("TO304", "A record has no such field.", f"no {field!r} in {self.location}", fix)
        if field_value is None:
            raise self.missing_field_error(field, is_confidence=is_confidence)
        return field_value

    def has_field(self, field: str) -> bool:
        """Return whether the field exists and is not empty."""
        field_value = to_python(find_field(self.fields, field))
        return not is_nan(field_value) and field_value not in (NO_FIELD, None, "", [], {})

    def missing_field_error(self, field: str, *, is_confidence: bool = False) -> InputError:
        """Return the error of an empty field; one without a confidence may be declared to be no answer."""
        fix = "Correct or remove the row"
        fix += f"; if it means that no answer was given, pass {argument('abstained', field)}." if is_confidence else "."
        return InputError("TO308", f"The field {field!r} has no value.", f"null in {self.location}", fix)

    def to_number(self, field: str, value: Any) -> float:
        """Convert a value of the field to a number; text that is a numeral is accepted."""
        value = to_python(value)
        if isinstance(value, str) and is_readable(value.strip(), "number"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong_type_error(field, value, "Choose a field of numbers.")
        try:
            return float(value)
        except OverflowError:
            raise self.wrong_type_error(field, value, "Write a number that a float can represent.") from None

    def to_text(self, field: str, value: Any) -> str:
        try:
            return str(value)
        except ValueError:  # Python converts integers of at most 4,300 digits to text
            raise self.wrong_type_error(field, value, "Write it as text.") from None

    def to_name(self, field: str, value: Any) -> str:
        """Convert a value of the field to a name that can be written to a file."""
        text = self.to_text(field, value)
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            raise self.wrong_type_error(field, value, ENCODING_REMEDY) from None
        return text

    def name_value(self, field: str) -> str:
        """Return the value of a field as text, to be the name of a group or a question."""
        value = self.value(field)
        if is_nan(value):
            raise self.missing_field_error(field)
        if isinstance(value, (list, dict)):
            raise self.wrong_type_error(field, value, "Choose a field of texts or numbers.")
        return self.to_name(field, value)

    def list_value(self, field: str, *, is_confidence: bool = False) -> list[Any]:
        value = self.value(field, is_confidence=is_confidence)
        if not isinstance(value, list):
            raise self.wrong_type_error(field, value, "Choose a field that holds a list.")
        return value

    def is_true(self, field: str, value: Any = NO_FIELD) -> bool:
        """Return whether the field is true: a boolean, 0 or 1, or a word such as yes or no."""
        value = self.value(field) if value is NO_FIELD else to_python(value)
        is_true = truth_value(self.to_text(field, value)) if isinstance(value, (bool, int, float, str)) else None
        if is_true is None:
            got = f"{describe_cell(value)} in {self.location}"
            raise InputError("TO116", f"The field {field!r} must be yes or no.", got, TRUTH_REMEDY)
        return is_true

    def wrong_type_error(self, field: str, value: Any, fix: str) -> InputError:
        return InputError(
            "TO307", f"The field {field!r} has the wrong type.", f"{describe_cell(value)} in {self.location}", fix
        )


def read_records(data: Any, csv_settings: CsvSettings = DETECTED) -> list[Record]:
    """Return all records; raise TO312 if there are none."""
    records = list(iterate_records(data, csv_settings))
    if not records:
        raise InputError("TO312", "There are no records.", "0 rows", "Write one JSON object per question.")
    return records


def iterate_records(data: Any, csv_settings: CsvSettings = DETECTED) -> Iterator[Record]:
    """Yield the records of one or several .jsonl files, of the rows of a table, or of objects in memory."""
    files.check_csv_settings(data, csv_settings)
    paths = files.as_paths(data)
    if paths is None:
        yield from _records_in_memory(data)
        return
    for path in paths:
        if str(path).lower().endswith((".json", ".eval")):
            yield from _records_of_document(os.fspath(path))
            continue
        for table in files.open_tables(path, csv_settings):
            for row, (line, fields) in enumerate(_rows_by_column(table)):
                yield Record(table.name, row, line, fields)


def _rows_by_column(table: ColumnSource) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Yield the line of each row, if its format has lines, and its values by column; empty text cells become None."""
    if isinstance(table, JsonLinesTable):
        yield from table.records()
        return
    for chunk in table.chunks((), ROWS_PER_BATCH):
        columns = [to_list(cells) for cells in chunk.values()]
        for row in zip(*columns, strict=True):
            yield None, {name: None if cell == "" else cell for name, cell in zip(chunk, row, strict=True)}


def _records_of_document(path: str) -> Iterator[Record]:
    """Yield the records of a JSON document, or of a log of an evaluation harness.

    A document is a list of objects, or an object with one object per question.
    """
    fix = "Write a list of objects, or one object that holds an object for each question."
    document: Any
    if path.lower().endswith(".eval"):
        document = samples_of_eval_file(path)
    else:
        document = convert_document(_load_json(path, fix))
    if isinstance(document, Mapping):
        document = [{"id": name, **item} if isinstance(item, Mapping) else item for name, item in document.items()]
    if not isinstance(document, list):
        raise InputError("TO302", f"{path} has no records.", type(document).__name__, fix)
    for row, fields in enumerate(document):
        if not isinstance(fields, Mapping):
            raise InputError(
                "TO302", "A record must be an object.", f"{describe_cell(fields)} in row {row} of {path}", fix
            )
        yield Record(path, row, None, fields)


def _load_json(path: str, fix: str) -> Any:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return json.load(file, object_pairs_hook=unique_keys)
    except FileNotFoundError:
        raise InputError("TO301", "There is no such file.", repr(path), "Check the path.") from None
    except RepeatedKey as problem:
        raise InputError(
            "TO313", f"{path} names a key twice.", describe_json_error(problem), "Write each key once."
        ) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise InputError("TO303", f"{path} cannot be read as json.", describe_json_error(problem), fix) from None


def _records_in_memory(data: Any) -> Iterator[Record]:
    if not isinstance(data, Iterable) or isinstance(data, (Mapping, bytes)) or hasattr(data, "columns"):
        fix = "Give a path, such as answers.jsonl, or a list of dicts; a frame has .to_dict('records')."
        raise InputError("TO302", "Answers are read from files or from a list of dicts.", type(data).__name__, fix)
    for row, fields in enumerate(data):
        if not isinstance(fields, Mapping):
            raise InputError(
                "TO302", "A record must be a dict.", f"{describe_cell(fields)} in row {row}", "One per question."
            )
        yield Record("the list", row, None, fields)


def is_nan(value: Any) -> bool:
    """Return whether this is the missing value of a data frame."""
    return isinstance(value, float) and value != value
