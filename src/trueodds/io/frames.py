"""Read the rows of pandas, Polars (eager or lazy), PyArrow and DuckDB data frames, and of Arrow streams."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.class_names import label_categories
from trueodds.io.conversion import Place, fields_of_cells, to_array
from trueodds.io.nested_fields import paths_by_column
from trueodds.io.table import ROWS_OF_FIRST_CELL, ColumnBatch, ColumnSource, check_column_names


def open_table(data: Any) -> ColumnSource:
    """Return the table of a data frame; narwhals recognizes its library without importing it."""
    import narwhals as nw

    kind = type(data).__module__.partition(".")[0].lstrip("_")
    if kind == "pyarrow" and type(data).__name__ in ("Table", "RecordBatch"):
        from trueodds.io.arrow import ArrowTable

        return ArrowTable(data)
    if kind == "pyarrow" and any(base.__name__ == "RecordBatchReader" for base in type(data).__mro__):
        from trueodds.io.arrow import ArrowStream

        return ArrowStream(data)
    if kind == "duckdb" and type(data).__name__ == "DuckDBPyRelation":
        return RelationTable(data)
    if kind == "pandas" and type(data).__name__ == "DataFrame" and not data.columns.is_unique:
        # narwhals refuses equal names, even of columns that are not read
        distinct = nw.from_native(data.loc[:, ~data.columns.duplicated()])
        return FrameTable(distinct, [str(name) for name in data.columns])
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameTable(frame, [str(name) for name in frame.columns])
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        return LazyTable(data)
    if isinstance(frame, nw.LazyFrame):
        fix = "Write it to Parquet and read the files, or collect it first."
    else:
        fix = "Pass Predictions(y_true, y_prob), the pair (y_true, y_prob), a path, a frame or a mapping of columns."
    raise InputError("TO302", "Data of this type cannot be read.", describe(data), fix)


class FrameTable(ColumnSource):
    """A data frame in memory; `column_names` has the names of columns that `frame` lacks because they are repeated."""

    format = "frame"
    shares_memory = True

    def __init__(self, frame: Any, column_names: Sequence[str]) -> None:
        self.name = f"the {frame.implementation.value} frame"
        # The names that the frame itself gives its columns; in pandas they need not be text.
        self._native_names = {str(name): name for name in frame.columns}
        self.columns = check_column_names(self.name, column_names)
        self.rows = len(frame)
        self.text_columns = _text_columns(frame.schema)
        self._frame = frame

    def categories(self, name: str) -> list[Any] | None:
        if name not in self._native_names:
            return None
        return label_categories(self._frame[self._native_names[name]].to_native())

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        return _iterate_slices(self, self._frame, self._native_names, names, size, 0)

    def first_cell(self, column: str) -> Any:
        return next(iter(self._frame[:ROWS_OF_FIRST_CELL][self._native_names[column]].drop_nulls().to_list()), None)


class LazyTable(ColumnSource):
    """A lazy Polars query, executed again by each pass, in batches."""

    format = "lazy frame"

    def __init__(self, query: Any) -> None:
        import narwhals as nw

        self.name = "the polars lazy frame"
        self._query = query
        with _convert_engine_errors(self.name, "polars.exceptions", "PolarsError"):
            self._schema = query.collect_schema()
        self.columns = check_column_names(self.name, self._schema.names())
        self.text_columns = _text_columns(nw.from_native(query).collect_schema())

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Select only the named columns, so that the query reads no others."""
        import narwhals as nw

        start = 0
        query = self._query.select(self.read_columns(names))
        with _convert_engine_errors(self.name, "polars.exceptions", "PolarsError"):
            can_stream = hasattr(query, "collect_batches")  # before Polars 1.34 the result is collected as a whole
            pieces = query.collect_batches(chunk_size=size, maintain_order=True) if can_stream else [query.collect()]
            for piece in pieces:
                frame = nw.from_native(piece, eager_only=True)
                native_names = {name: name for name in frame.columns}
                yield from _iterate_slices(self, frame, native_names, names, size, start)
                start += len(frame)

    def first_cell(self, column: str) -> Any:
        if not self._schema[column].is_nested():
            return None
        with _convert_engine_errors(self.name, "polars.exceptions", "PolarsError"):
            first_rows = self._query.select(column).head(ROWS_OF_FIRST_CELL).collect()
            return next(iter(first_rows.to_series().drop_nulls().to_list()), None)


class RelationTable(ColumnSource):
    """A DuckDB relation, run again for each pass, and fetched in Arrow record batches."""

    format = "relation"

    def __init__(self, relation: Any) -> None:
        self.name = "the duckdb relation"
        self.columns = check_column_names(self.name, relation.columns)
        types = zip(self.columns, map(str, relation.types), strict=True)
        self.text_columns = frozenset(name for name, kind in types if kind == "VARCHAR" or kind.startswith("ENUM("))
        self._relation = relation

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        from trueodds.io.arrow import arrow_batches

        return arrow_batches(self, self._record_batches(self.read_columns(names), size), size, names)

    def first_cell(self, column: str) -> Any:
        from trueodds.io.arrow import first_value

        return first_value(self._record_batches([column], ROWS_OF_FIRST_CELL))

    def _record_batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        from trueodds.io.files import require_pyarrow

        require_pyarrow(self.name)
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        with _convert_engine_errors(self.name, "duckdb", "Error"):
            projection = self._relation.project(", ".join(quoted))
            # The newest of the names that this version of DuckDB has, because it warns of the older ones.
            names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
            yield from getattr(projection, next(name for name in names if hasattr(projection, name)))(size)


def _text_columns(schema: Any) -> frozenset[str]:
    import narwhals as nw

    return frozenset(str(name) for name, dtype in schema.items() if dtype in (nw.String, nw.Categorical, nw.Enum))


def _iterate_slices(
    table: ColumnSource, frame: Any, native_names: Mapping[str, Any], names: Sequence[str], size: int, start: int
) -> Iterator[ColumnBatch]:
    """Yield slices of at most `size` rows of the columns or fields `names`; `native_names` are those of the frame."""
    paths_of_column = paths_by_column(names, native_names)
    for offset in range(0, len(frame), size):
        piece = frame[offset : offset + size]
        batch: dict[str, Array] = {}
        for column, paths in paths_of_column.items():
            series, place = piece[native_names[column]], table.place(column, start + offset)
            if "" in paths:
                batch[column] = _column_to_array(series, place)
            if fields := [path for path in paths if path]:
                for path, cells in fields_of_cells(series.to_list(), fields, place).items():
                    name = f"{column}.{path}"
                    batch[name] = to_array(cells, table.place(name, place.first_row))
        yield batch


def _column_to_array(series: Any, place: Place) -> Array:
    """Convert a narwhals series to an array; a missing value is an error unless the place allows it."""
    is_missing = series.is_null().to_numpy()
    if place.masks_missing or (place.allows_missing and is_missing.any()):
        return to_array(series.to_list(), place)
    if is_missing.any():
        raise place.missing_value_error(int(np.argmax(is_missing)), int(is_missing.sum()))
    return to_array(series.to_numpy(), place)


@contextmanager
def _convert_engine_errors(name: str, module: str, error_name: str) -> Iterator[None]:
    """Convert the error of a query engine to an InputError; `error_name` is the exception class in `module`."""
    engine_error = getattr(importlib.import_module(module), error_name)
    try:
        yield
    except (engine_error, OSError) as problem:
        message = str(problem).strip().split("\n")[0][:200]
        raise InputError("TO303", f"{name} cannot be read.", message, "Correct the query or its files.") from None
