"""The format of a text file of columns: its separator, its decimal mark, and the lines before its header.

A separator is detected only if a single one is possible. It is named in a note, unless it is a comma, or a tab in a
.tsv file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trueodds.core.errors import InputError, Note, describe
from trueodds.io.conversion import MISSING_TEXTS, infer_number_kind

SEPARATORS = (",", ";", "\t", "|")  # candidates; blanks also occur in names
_SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
_TAB_SUFFIX = ".tsv"
SAMPLE_BYTES = 1 << 16  # number of bytes at the start of the file from which its format is detected
BOM = b"\xef\xbb\xbf"
_SEPARATOR_LINE = re.compile(r'"?sep=([^"\r\n])"?\s*')  # the first line that Excel writes or reads
_NUMBER_WITH_COMMA = re.compile(r"\s*\*?[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*%?\s*")
_NUMBER_WITH_POINT = re.compile(r"\s*\*?[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*%?\s*")
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """The separator and the decimal mark as specified by the caller of `read`; None detects them."""

    separator: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        separator = _SEPARATOR_NAMES.get(self.separator or "", self.separator)
        is_separator = separator is None or (
            isinstance(separator, str) and len(separator) == 1 and separator.isascii() and separator not in '"\r\n\0'
        )
        if not is_separator:
            fix = r"Pass one character, such as ⟨separator=';'⟩ or ⟨separator='\t'⟩."
            raise InputError("TO203", "separator must be one character.", describe(self.separator), fix)
        if self.decimal not in (None, ".", ","):
            fix = "Pass ⟨decimal=','⟩ or ⟨decimal='.'⟩."
            raise InputError("TO203", "decimal must be a point or a comma.", describe(self.decimal), fix)
        object.__setattr__(self, "separator", separator)

    @property
    def is_default(self) -> bool:
        return self.separator is None and self.decimal is None


DETECTED = CsvSettings()  # the default of the functions that read text files


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How a text file is split into cells, and how its cells of numbers are written."""

    separator: str = ","
    decimal: str = "."
    start: int = 0  # position in the file of the first line that is no comment
    number_kinds: Mapping[str, str] = field(default_factory=dict)  # columns of "percent", "starred" or "list" cells
    text_columns: frozenset[str] = frozenset()  # columns without any number among their first cells
    notes: tuple[Note, ...] = ()


def detect_format(path: str, settings: CsvSettings) -> CsvFormat:
    try:
        with open(path, "rb") as file:
            data = file.read(SAMPLE_BYTES)
    except OSError:
        return CsvFormat(settings.separator or ",", settings.decimal or ".")  # the error is raised by `read_chunks`
    is_entire_file = len(data) < SAMPLE_BYTES
    start = len(BOM) if data.startswith(BOM) else 0
    text = data[start:].decode(errors="replace")
    notes: list[Note] = []
    separator = settings.separator
    body = text.lstrip("\r\n")
    if match := _SEPARATOR_LINE.match(body):
        body, separator = body[match.end() :], separator or match[1]
    body, n_comments = _skip_comments(body, separator)
    skipped = text[: len(text) - len(body)]
    start = start + len(skipped.encode()) if skipped.strip("\r\n") else 0
    if n_comments:
        lines, verb = ("1 line that begins", "was") if n_comments == 1 else (f"{n_comments:,} lines that begin", "were")
        notes.append(Note("TN311", f"{lines} with # before the header of {path} {verb} skipped."))
    if separator is None:
        separator = "\t" if path.lower().endswith(_TAB_SUFFIX) else _detect_separator(body, is_entire_file)
    records = _sample_records(body, separator, is_entire_file)
    decimal = settings.decimal or ("." if separator == "," else _detect_decimal(records[1:]))
    is_expected = separator == "," or (separator == "\t" and path.lower().endswith(_TAB_SUFFIX))
    if (not is_expected and settings.separator is None) or (decimal != "." and settings.decimal is None):
        mark = " and the decimal comma" if decimal == "," else ""
        notes.append(Note("TN310", f"{path} was read with the separator {separator!r}{mark}."))
    number_kinds, text_columns = _kinds_of_columns(records, decimal)
    notes += _number_notes(path, number_kinds)
    return CsvFormat(separator, decimal, start, number_kinds, text_columns, tuple(notes))


def _skip_comments(body: str, separator: str | None) -> tuple[str, int]:
    """Return the text from the header on, and the number of lines of comments before it.

    A first line with # is the header if it has as many cells as the next line, and that has a number, as every row of
    predictions does.
    """
    n_comments, rest = 0, body
    while rest.startswith("#"):
        line, _, rest = _partition_line(rest)
        n_comments += 1
        rest = rest.lstrip("\r\n")
    if n_comments == 0 or not rest:
        return body, 0
    following = _partition_line(rest)[0]
    for candidate in (separator,) if separator else SEPARATORS:
        cells = following.split(candidate)
        has_number = any(infer_number_kind([cell.strip('" ')]) for cell in cells)
        if len(cells) == len(line.split(candidate)) > 1 and has_number:
            return body, 0
    return rest, n_comments


def _partition_line(text: str) -> tuple[str, str, str]:
    match = re.search(r"\r\n|\r|\n", text)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, "", "")


def _detect_separator(body: str, is_entire_file: bool) -> str:
    """Return the only candidate that occurs in the header, if it splits the first rows alike; else a comma."""
    header = re.sub(r'"[^"]*"', "", _partition_line(body)[0])
    candidates = [separator for separator in SEPARATORS if separator in header]
    if len(candidates) != 1:
        return ","
    widths = {len(record) for record in _sample_records(body, candidates[0], is_entire_file)}
    return candidates[0] if len(widths) == 1 else ","


def _sample_records(body: str, separator: str, is_entire_file: bool) -> list[list[str]]:
    """Return the cells of the first lines, of which the last one is left out if it may be incomplete."""
    if not is_entire_file:
        body = body[: max(body.rfind("\n"), body.rfind("\r")) + 1]
    try:
        records = [record for record in csv.reader(io.StringIO(body, newline=""), delimiter=separator) if record]
    except csv.Error:  # a NUL or a cell of more than 128 KiB, which `read_chunks` reports
        return []
    return records if is_entire_file else records[: max(1, len(records) - 1)]  # the last record may have an open quote


def _detect_decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return a comma if numbers have one, at least one of them not as thousands, and none has a point."""
    cells = [cell for row in rows for cell in row]
    with_comma = [cell for cell in cells if _NUMBER_WITH_COMMA.fullmatch(cell)]
    is_comma = any(not _THOUSANDS.fullmatch(cell) for cell in with_comma)
    return "," if is_comma and not any(_NUMBER_WITH_POINT.fullmatch(cell) for cell in cells) else "."


def _kinds_of_columns(records: Sequence[Sequence[str]], decimal: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the columns whose numbers are written in another form than usual, and the columns without numbers.

    If a column has numbers with a star, which Weka writes before the largest one, any other column may have them too.
    """
    if len(records) < 2:
        return {}, frozenset()
    kinds: dict[str, str] = {}
    text_columns = set()
    rows = [record for record in records[1:] if len(record) == len(records[0])]
    for name, cells in zip(records[0], zip(*rows, strict=True), strict=False):
        filled = [cell for cell in cells if cell.strip() and cell.strip().lower() not in MISSING_TEXTS]
        kind = infer_number_kind(filled, decimal)
        if kind is None and filled and not any(infer_number_kind([cell], decimal) for cell in filled):
            text_columns.add(name)
        elif kind is not None:
            kinds[name] = kind
    if "starred" in kinds.values():
        kinds |= {name: "starred" for name, kind in kinds.items() if kind == "number"}
    return {name: kind for name, kind in kinds.items() if kind != "number"}, frozenset(text_columns)


def _number_notes(path: str, number_kinds: Mapping[str, str]) -> list[Note]:
    if "starred" not in number_kinds.values():
        return []
    return [Note("TN313", f"Numbers of {path} have a star before them, such as *0.9; it was left out.")]


def percent_note(path: str, columns: Sequence[str]) -> Note:
    """Return the note on columns that are read as probabilities or weights, and written as percentages."""
    return Note("TN312", f"Cells such as 74.4% in {', '.join(columns)} of {path} were read as 0.744.")


def with_decimal_point(cell: str) -> str:
    """Return the text of a number with a decimal comma with a point; any other text is unchanged.

    >>> [with_decimal_point(cell) for cell in ("0,75", "74,4%", "a,b", "1.000,5")]
    ['0.75', '74.4%', 'a,b', '1.000,5']
    """
    is_number = _NUMBER_WITH_COMMA.fullmatch(cell) is not None and infer_number_kind([cell], ",") is not None
    return cell.replace(",", ".") if is_number else cell
