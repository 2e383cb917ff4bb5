"""Read CSV files in chunks of whole records without any library, with the line of a malformed record; write them.

`CsvTable` parses the chunks by itself, `arrow_csv.ArrowCsvTable` with Arrow. Both read the same chunks, so that they
report the same errors.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from trueodds.core.errors import MAX_VALUE_LENGTH, InputError, Note, shorten
from trueodds.core.json_files import strict_json
from trueodds.core.printable import is_formula, to_printable
from trueodds.core.typing import Array
from trueodds.io.conversion import Place, infer_filled_kind, infer_label_kind, parse_cell, parse_cells
from trueodds.io.csv_format import (
    BOM,
    DETECTED,
    SEPARATORS,
    CsvFormat,
    CsvSettings,
    detect_format,
    percent_note,
    with_decimal_point,
)
from trueodds.io.table import (
    ColumnBatch,
    ColumnSource,
    TextWriter,
    check_column_names,
    refuse_repeated_columns,
    to_list,
)

CHUNK_BYTES = 1 << 22  # number of bytes read at a time
MAX_RECORD_BYTES = 1 << 26  # maximum number of bytes of one record; a longer one has a quote that was never closed
_COMMAS = CsvFormat()

_QUOTE = ord('"')


@cache
def _is_allowed_beside_quote(separator: str) -> Array:
    """Return, by byte, what may precede an opening and follow a closing quote: a delimiter or another quote."""
    return np.isin(np.arange(256), list(f'{separator}\r\n"'.encode()))


@cache
def _cell_pattern(separator: str) -> re.Pattern[str]:
    sep = re.escape(separator)
    return re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"{sep}\r\n][^{sep}\r\n]*)?)({sep}|\r\n|\r|\n|\Z)')


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of consecutive complete records of a file."""

    path: str
    data: bytes  # as in the file
    offset: int  # position of its first byte in the file
    separator: str = ","

    @property
    def has_quotes(self) -> bool:
        return b'"' in self.data

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each nonblank record: the number of its first line in the chunk, from 0, and its cells."""
        text = self.data.decode()
        if not self.has_quotes:
            plain = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
            yield from ((number, line.split(self.separator)) for number, line in enumerate(plain.split("\n")) if line)
            return
        start, line = 0, 0  # of the current record: its first character and the number of its first line
        while start < len(text):
            cells, position, delimiter = [], start, self.separator
            while delimiter == self.separator:
                match = _cell_pattern(self.separator).match(text, position)
                assert match is not None  # the quotes were checked
                quoted, unquoted, delimiter = match.groups()
                cells.append(unquoted or "" if quoted is None else quoted.replace('""', '"'))
                position = match.end()
            if text[start] not in "\r\n":
                yield line, cells
            line += (
                text.count("\n", start, position)
                + text.count("\r", start, position)
                - text.count("\r\n", start, position)
            )
            start = position

    def line_number_in_file(self, number: int) -> int:
        return _line_number_at(self.path, self.offset) + number


def read_chunks(path: str, size: int | None = None, file_format: CsvFormat = _COMMAS) -> Iterator[Chunk]:
    """Read the file in chunks of about `size` bytes, from its header on.

    Raises InputError: TO303 if the file is not UTF-8 text, TO311 for a quote that is not closed, text behind a closing
    quote, and a record longer than `MAX_RECORD_BYTES`.
    """
    try:
        with open(path, "rb") as file:
            for data, offset in _read_complete_records(path, file, size or CHUNK_BYTES, file_format):
                yield Chunk(path, data, offset, file_format.separator)
    except OSError as problem:
        raise _unreadable_error(path, str(problem)[:200]) from None


def _read_complete_records(path: str, file: BinaryIO, size: int, file_format: CsvFormat) -> Iterator[tuple[bytes, int]]:
    """Yield about `size` bytes that end with a complete record, and their position in the file."""
    file.seek(file_format.start)
    data = b"" if file_format.start else file.read(len(BOM))
    offset, is_last, has_header = file_format.start, False, False
    if data == BOM:
        data, offset = b"", len(BOM)
    while not is_last:
        read_size = max(size, len(data))  # doubled, so that a long incomplete record is not scanned again and again
        block = file.read(read_size)
        data, is_last = data + block, len(block) < read_size
        if not has_header:  # the header is the first line that is not blank
            blank = len(data) - len(data.lstrip(b"\r\n"))
            data, offset = data[blank:], offset + blank
        end = _find_end_of_records(path, data, offset, is_last, file_format.separator)
        if end:
            complete, has_header = data[:end], True
            _check_text(path, complete, offset)
            yield complete, offset
            data, offset = data[end:], offset + end


def _check_text(path: str, data: bytes, offset: int) -> None:
    """Reject bytes that are not UTF-8 text; a NUL indicates another encoding."""
    position = data.find(b"\0")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as problem:
            position = problem.start
    if position >= 0:
        raise _unreadable_error(
            path, f"the byte {data[position]:#04x} in line {_line_number_at(path, offset + position)}"
        )


def _find_end_of_records(path: str, data: bytes, offset: int, is_last: bool, separator: str) -> int:
    """Return the position after the last complete record of `data`, which begins at `offset` in the file; 0 if none.

    `is_last` says that the file ends with `data`, so that its last record is complete without a line end.
    """
    opens, closes = _find_quotes(path, data, offset, separator)
    is_open = len(opens) > len(closes)  # whether the data end inside of quotes
    end = len(data)
    if not is_last:
        end -= data.endswith(b"\r")  # its line feed may be in the next chunk
        while end:  # back to a line end outside of quotes
            end = max(data.rfind(b"\n", 0, end), data.rfind(b"\r", 0, end)) + 1
            i = int(np.searchsorted(opens, end)) - 1
            if i < 0 or (i < len(closes) and closes[i] < end):
                break
            end = int(opens[i])
    if (is_last and is_open) or (end == 0 and len(data) > MAX_RECORD_BYTES):
        if is_open:
            got = f"a quote that opens in line {_line_number_at(path, offset + int(opens[-1]))} and is not closed"
            raise _malformed_error(path, got)
        got = f"more than {MAX_RECORD_BYTES:,} bytes without an end from line {_line_number_at(path, offset)} on"
        raise _malformed_error(path, got, "Write one line per row.")
    return end


def _find_quotes(path: str, data: bytes, offset: int, separator: str) -> tuple[Array, Array]:
    """Return the positions of opening and of closing quotes; the last one may still be open.

    A cell with doubled quotes counts as several quoted parts.
    """
    values = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(values == _QUOTE) if b'"' in data else np.empty(0, dtype=np.int64)
    opens, closes = quotes[::2], quotes[1::2]
    # At either end of the data a quote is its own neighbor, which is allowed.
    preceding, following = values[np.maximum(opens - 1, 0)], values[np.minimum(closes + 1, len(data) - 1)]
    is_allowed = _is_allowed_beside_quote(separator)
    if is_allowed[preceding].all() and is_allowed[following].all():
        return opens, closes
    return _find_quotes_one_by_one(path, data, offset, separator, quotes.tolist())


def _find_quotes_one_by_one(
    path: str, data: bytes, offset: int, separator: str, quotes: list[int]
) -> tuple[Array, Array]:
    """Return the positions of opening and of closing quotes, where unquoted cells contain literal quotes.

    `quotes` are the positions of all quotes; one inside an unquoted cell is neither.
    """
    opens: list[int] = []
    closes: list[int] = []
    sep = separator.encode()
    for position in quotes:
        if len(opens) > len(closes):
            closes.append(position)
            if data[position + 1 : position + 2] not in (b"", sep, b"\r", b"\n", b'"'):
                first, last = (_line_number_at(path, offset + quote) for quote in (opens[-1], position))
                behind = re.split(rb"[\r\n]|" + re.escape(sep), data[position + 1 : position + 41])[0].decode(
                    errors="replace"
                )
                got = f"a quote that opens in line {first} and closes in line {last} before {behind!r}"
                other = behind[:1]
                fix = f"If {other!r} separates the columns, pass ⟨separator={other!r}⟩."
                raise _malformed_error(path, got, fix if other in SEPARATORS else None)
        elif position == 0 or data[position - 1] in sep + b"\r\n" or (closes and closes[-1] == position - 1):
            opens.append(position)
    return np.array(opens, dtype=np.int64), np.array(closes, dtype=np.int64)


def _unreadable_error(path: str, got: str) -> InputError:
    return InputError("TO303", f"{path} cannot be read as csv.", got, "Write it as text in UTF-8.")


def _malformed_error(path: str, got: str, fix: str | None = None) -> InputError:
    quotes_fix = "Correct the quotes of that line; a quote inside a quoted cell must be doubled."
    return InputError("TO311", f"{path} has an invalid line.", got, fix or quotes_fix)


def _line_number_at(path: str, offset: int) -> int:
    line, last = 1, b""
    with open(path, "rb") as file:
        while block := file.read(min(CHUNK_BYTES, offset)):
            line += _count_line_ends(block) - (last == b"\r" and block[:1] == b"\n")
            offset, last = offset - len(block), block[-1:]
    return line


def _count_line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


_HEADER_BYTES = 1 << 16  # number of bytes read at a time for the header


class CsvRows:
    """The rows of a chunk as cells of text, from row `start` of the file on; every row is as long as the header."""

    def __init__(self, chunk: Chunk, columns: Sequence[str], start: int, has_header: bool) -> None:
        self.chunk, self.columns, self.start, self.has_header = chunk, columns, start, has_header
        self._cells: list[list[str]] | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def cells(self) -> list[list[str]]:
        if self._cells is None:
            records = self.chunk.records()
            if self.has_header:
                next(records)
            self._cells = [
                self._check_n_cells(row, line, cells) for row, (line, cells) in enumerate(records, self.start)
            ]
        return self._cells

    def _check_n_cells(self, row: int, line: int, cells: list[str]) -> list[str]:
        if len(cells) != len(self.columns):
            raise InputError(
                "TO311",
                f"Every row of {self.chunk.path} must have {len(self.columns)} cells, as its first line has.",
                f"{len(cells)} in row {row} (line {self.chunk.line_number_in_file(line)})",
                self._cell_count_remedy(row, cells),
            )
        return cells

    def _cell_count_remedy(self, row: int, cells: list[str]) -> str:
        separator = self.chunk.separator
        if row == 0 and separator in " \t" and len(cells) == len(self.columns) + 1:
            return "If rows begin with their names, as R's write.table writes them, write with row.names = FALSE."
        if separator == " ":
            return "Separate columns by exactly one blank; a cell with a blank must be in double quotes."
        name = "comma" if separator == "," else repr(separator)
        return f"Correct that line; a cell with a {name} or a line break must be in double quotes."


class RowSlice(NamedTuple):
    """Selected rows of a chunk: those from `start` up to, but not including, `stop`."""

    rows: CsvRows
    start: int
    stop: int


class CsvTable(ColumnSource):
    """A text file in UTF-8 whose first line names the columns, separated by commas or another character."""

    format = "csv"

    def __init__(self, path: str, settings: CsvSettings = DETECTED) -> None:
        self.name = path
        self.file_format = detect_format(path, settings)
        self.notes, self.text_columns = self.file_format.notes, self.file_format.text_columns
        chunks = read_chunks(path, _HEADER_BYTES, self.file_format)
        header = next((cells for chunk in chunks for _, cells in chunk.records()), None)
        if header is None:
            raise InputError("TO312", f"{path} is empty.", "no line", "Its first line must name the columns.")
        self.columns = check_column_names(path, header)

    def number_notes(self, names: Collection[str]) -> list[Note]:
        columns = [name for name in self.columns if name in names and self._number_kind(name) == "percent"]
        return [percent_note(self.name, columns)] if columns else []

    def _number_kind(self, name: str) -> str:
        return self.file_format.number_kinds.get(name, "number")

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Parse cells as numbers, or as the kind that the first batch of their column has."""
        kinds = {name: self._number_kind(name) for name in numeric}
        for start, row_slices in self._slices_by_batch(size, self._rows_constructor(names, numeric)):
            yield self._parse_batch(row_slices, names, kinds, start)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        refuse_repeated_columns(self.name, self.columns, self.columns)
        for start, row_slices in self._slices_by_batch(size, CsvRows):
            yield self._with_decimal_points(self._cells_by_column(row_slices, self.columns), numeric, start)

    def _with_decimal_points(
        self, cells: dict[str, list[str]], numeric: Collection[str], start: int
    ) -> dict[str, list[str]]:
        """Return the columns with a decimal point instead of a decimal comma, which is written again in no format."""
        decimal = self.file_format.decimal
        if decimal == ".":
            return cells
        for name in numeric:
            if any("." in cell for cell in cells[name]):
                parse_cells(cells[name], self._number_kind(name), Place(self.name, name, start), decimal)
        return {name: [with_decimal_point(cell) for cell in column] for name, column in cells.items()}

    def valued_chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, list[Any]]]:
        """Return every column, with typed values for the nonnumeric ones, for formats that distinguish 1 from "1"."""
        kinds: dict[str, str] = {}
        for cells in self.chunks(numeric, size):
            columns: dict[str, list[Any]] = {}
            for name, column in cells.items():
                kind = kinds.setdefault(name, "text" if name in numeric else infer_filled_kind(column))
                columns[name] = [parse_cell(cell, kind) for cell in column]
            yield columns

    def to_numbers(self, cells: Any, place: Place) -> Array:
        return parse_cells(cells, self._number_kind(place.column), place)

    def _rows_constructor(self, names: Sequence[str], numeric: Collection[str]) -> Callable[..., CsvRows]:
        """The function that makes the rows of a chunk from the arguments of `CsvRows`, in their order."""
        return CsvRows

    def _slices_by_batch(self, size: int, make_rows: Callable[..., CsvRows]) -> Iterator[tuple[int, list[RowSlice]]]:
        """Yield the number of the first row of each batch of `size` rows, and the slices of chunks that make it up."""
        row_slices: list[RowSlice] = []
        batch_start, n_in_batch, rows_read = 0, 0, 0
        for number, chunk in enumerate(read_chunks(self.name, None, self.file_format)):
            rows = make_rows(chunk, self.columns, rows_read, number == 0)
            start, rows_read = 0, rows_read + len(rows)
            while start < len(rows):
                stop = min(len(rows), start + size - n_in_batch)
                row_slices.append(RowSlice(rows, start, stop))
                start, n_in_batch = stop, n_in_batch + stop - start
                if n_in_batch == size:
                    yield batch_start, row_slices
                    row_slices, batch_start, n_in_batch = [], batch_start + size, 0
        if row_slices:
            yield batch_start, row_slices

    def _parse_batch(
        self, row_slices: list[RowSlice], names: Sequence[str], kinds: dict[str, str], start: int
    ) -> ColumnBatch:
        """Parse one batch; the kinds of the columns of the first batch are stored in `kinds`."""
        cells, decimal = self._cells_by_column(row_slices, names), self.file_format.decimal
        for name in names:
            if name not in kinds and (kind := infer_label_kind(cells[name], self.place(name, start), decimal)):
                kinds[name] = kind
        return {
            name: parse_cells(cells[name], kinds.get(name, "int"), self.place(name, start), decimal) for name in names
        }

    def _cells_by_column(self, row_slices: list[RowSlice], names: Sequence[str]) -> dict[str, list[str]]:
        column_index = {name: i for i, name in enumerate(self.columns)}
        rows = [row for part in row_slices for row in part.rows.cells[part.start : part.stop]]
        return {name: [row[column_index[name]] for row in rows] for name in names}


class CsvWriter(TextWriter):
    """Writer of CSV: floats in the shortest form that round-trips, and a matrix as one column per class."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        separator = "," if target.lower().endswith(".csv") else "\t"
        self._rows = csv.writer(self._text, delimiter=separator, lineterminator="\n")

    def chunks_of(self, table: ColumnSource, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        return table.chunks(numeric, size)

    def write(self, columns: Mapping[str, Any], start: int) -> None:
        flat_columns: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.ndim == 2:
                flat_columns |= {f"{name}_{j}": cells[:, j].tolist() for j in range(cells.shape[1])}
            else:
                flat_columns[name] = [_to_csv_cell(cell) for cell in to_list(cells)]
        if not self.notes:
            self.notes = self._formula_notes([name for name in flat_columns if start == 0], flat_columns)
        if start == 0:
            self._rows.writerow(flat_columns)
        self._rows.writerows(zip(*flat_columns.values(), strict=True))

    def _formula_notes(self, header: list[str], columns: Mapping[str, list[Any]]) -> tuple[Note, ...]:
        """Return a note if a text would be evaluated by a spreadsheet program.

        Names and texts are written as they are, because the file will be read again.
        """
        cells = chain(header, *columns.values())
        formula = next((cell for cell in cells if isinstance(cell, str) and is_formula(cell)), None)
        if formula is None:
            return ()
        text = (
            f"{self.target} has texts, such as {to_printable(shorten(formula, MAX_VALUE_LENGTH))!r}, that spreadsheet"
            " programs evaluate as formulas. They were written unchanged. Import these columns as text, or write"
            " .parquet or .jsonl."
        )
        return (Note("TN340", text),)


def _to_csv_cell(value: Any) -> Any:
    return json.dumps(strict_json(value)) if isinstance(value, (list, dict)) else value
