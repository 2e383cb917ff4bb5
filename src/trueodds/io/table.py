"""The interfaces ColumnSource and Writer: named columns that are read and written in bounded batches."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import IO, Any, ClassVar, Self

from trueodds.core.errors import InputError, Note
from trueodds.core.printable import has_surrogates
from trueodds.core.typing import Array
from trueodds.io.conversion import Place, fields_of_cells, to_array
from trueodds.io.nested_fields import paths_by_column

ROWS_PER_BATCH = 65_536  # default number of rows that are read at a time
ROWS_OF_FIRST_CELL = 1024  # rows among which the first cell that is not missing is looked for
ColumnBatch = Mapping[str, Array]  # column name -> (n,) or, for a column of lists, (n, K)


class ColumnSource(ABC):
    """Named columns in a fixed order, read again from the start by each call of `column_batches`."""

    shares_memory: ClassVar[bool] = False  # whether batches may be views of arrays of the caller
    has_keys: ClassVar[bool] = False  # whether the table has arrays (n,) or (n, K) under keys instead of columns
    format: ClassVar[str]
    name: str  # file name, or a description such as "pandas frame"; errors begin with it
    columns: tuple[str, ...]  # in the order of the file
    rows: int | None = None  # number of rows, if known without reading
    notes: tuple[Note, ...] = ()  # on how the table is read
    text_columns: frozenset[str] = frozenset()  # columns that are known to hold text
    partition: Mapping[str, str] = MappingProxyType({})  # columns of one value, in the names of the folders of the file
    file: str | None = None  # path of the file
    columns_with_missing: frozenset[str] = frozenset()  # columns of numbers in which a missing value is read as NaN
    label_columns: frozenset[str] = frozenset()  # columns of labels in which missing values are masked
    time_columns: frozenset[str] = frozenset()  # columns whose dates and times are not read as text

    @property
    def constants(self) -> dict[str, str]:
        """Columns of one value that are not in the table: those of the folders, and `file`, the path of the file."""
        return {**({} if self.file is None else {"file": self.file}), **self.partition}

    def place(self, column: str, first_row: int) -> Place:
        """Return the location of cells of a column, or field, from row `first_row` on."""
        allows_missing, masks_missing = column in self.columns_with_missing, column in self.label_columns
        return Place(self.name, column, first_row, allows_missing, masks_missing, column in self.time_columns)

    def first_cell(self, column: str) -> Any:
        """Return the first cell of a column as a Python object, in which fields are looked up; None if it has none.

        Missing cells among the first `ROWS_OF_FIRST_CELL` rows are skipped: reading reports them with their row.
        """
        return None

    def read_columns(self, names: Sequence[str]) -> list[str]:
        return list(paths_by_column(names, self.columns))

    @abstractmethod
    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Read columns, or fields in their cells, in batches of at most `size` rows, in the order of the file.

        Text formats parse the columns of `numeric` as float64; the types of the others are determined by the first
        batch. Other formats have types.
        """

    def number_notes(self, names: Collection[str]) -> list[Note]:
        """Return notes on how the numbers in these columns are written."""
        return []

    def float_arrays(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of floats (n,) or (n, K) of a table with keys; nothing for other tables."""
        return {}

    def n_rows_of(self, name: str) -> int | None:
        """Return the number of rows of an array of a table with keys, if known without reading it."""
        return self.rows

    def n_classes(self, name: str) -> int:
        """Return the number of classes of a single column: the length of its lists, or 2 for numbers."""
        first = next(iter(self.column_batches([name], {name}, 1)))[name]
        return first.shape[1] if first.ndim == 2 else 2

    def categories(self, name: str) -> list[Any] | None:
        """Return the ordered categories of a column, if its type has them and the format keeps them."""
        return None

    def to_numbers(self, cells: Any, place: Place) -> Array:
        """Convert a column of a chunk to an array of numbers."""
        return to_array(cells, place)

    def columns_of_chunk(self, chunk: Mapping[str, Any], names: Sequence[str], first_row: int) -> ColumnBatch:
        """Return columns of numbers, or fields, of a chunk of all columns, whose first row is row `first_row`."""
        columns: dict[str, Array] = {}
        for column, paths in paths_by_column(names, self.columns).items():
            if "" in paths:
                columns[column] = self.to_numbers(chunk[column], self.place(column, first_row))
            if fields := [path for path in paths if path]:
                cells_of_field = fields_of_cells(to_list(chunk[column]), fields, Place(self.name, column, first_row))
                for path, cells in cells_of_field.items():
                    columns[f"{column}.{path}"] = to_array(cells, self.place(f"{column}.{path}", first_row))
        return columns

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Yield chunks of all columns in the file's own types, for writing: arrays, Arrow arrays or lists."""
        raise InputError(
            "TO314", "Only files can be rewritten.", self.name, "Apply the calibrator with predict_proba instead."
        )

    def valued_chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Yield the same chunks; a text format infers the type of each cell of the columns not in `numeric`."""
        return self.chunks(numeric, size)

    def typed_chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Yield the same chunks; a text format infers one type for each of the columns not in `numeric`."""
        return self.chunks(numeric, size)


def check_column_names(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the column names; raise TO313 for one that is not valid text. Columns may have equal names if not read."""
    for column in columns:
        if has_surrogates(column):
            fix = "Write the names as UTF-8."
            raise InputError("TO313", f"{name} has a column whose name is not valid text.", repr(column), fix)
    return tuple(columns)


def refuse_repeated_columns(name: str, columns: Sequence[str], names_to_read: Iterable[str]) -> None:
    """Raise TO313 if one of the columns to be read has the same name as another column, because it is ambiguous."""
    counts = Counter(columns)
    for column in names_to_read:
        if counts[column] > 1:
            raise InputError("TO313", f"{name} has two columns of the same name.", repr(column), "Rename one of them.")


def slice_batches(columns: Mapping[str, Array], size: int) -> Iterator[ColumnBatch]:
    n = max((len(column) for column in columns.values()), default=0)
    for start in range(0, n, size):
        yield {name: column[start : start + size] for name, column in columns.items()}


class Writer(ABC):
    """A table that is being written into an open file; `target` is its name in errors and notes."""

    notes: tuple[Note, ...] = ()  # on the cells that were written

    def __init__(self, file: IO[bytes], target: str) -> None:
        self.file = file
        self.target = target

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(kind is None)

    def chunks_of(self, table: ColumnSource, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Return the chunks of a table, with values of the types that the format of this writer distinguishes."""
        return table.valued_chunks(numeric, size)

    @abstractmethod
    def write(self, columns: Mapping[str, Any], start: int) -> None:
        """Append rows; the first of them is row `start` of the file."""

    @abstractmethod
    def close(self, complete: bool) -> None:
        """Finish the table if `complete`, else discard it; the file stays open."""


class TextWriter(Writer):
    """Base class of writers of text in UTF-8 with Unix line ends."""

    def __init__(self, file: IO[bytes], target: str) -> None:
        super().__init__(file, target)
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")

    def close(self, complete: bool) -> None:
        self._text.detach()


def to_list(cells: Any) -> list[Any]:
    """Convert a column of any library to a list of Python values."""
    if isinstance(cells, list):
        return cells
    values: list[Any] = cells.tolist()
    return values
