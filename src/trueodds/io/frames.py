"""Read the rows of pandas, Polars (eager or lazy), PyArrow and DuckDB data frames."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.class_names import label_categories
from trueodds.io.conversion import Place, to_array
from trueodds.io.table import ColumnBatch, Table, unique_columns

_POLARS_TEXT_TYPES = ("String", "Categorical", "Enum")


def open_table(data: Any) -> Table:
    """Return the table of a data frame; narwhals recognizes its library without importing it."""
    import narwhals as nw

    kind = type(data).__module__.partition(".")[0].lstrip("_")
    if kind == "pyarrow" and type(data).__name__ == "Table":
        from trueodds.io.arrow import ArrowTable

        return ArrowTable(data)
    if kind == "duckdb" and type(data).__name__ == "DuckDBPyRelation":
        return RelationTable(data)
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameTable(frame)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        return LazyTable(data)
    if isinstance(frame, nw.LazyFrame):
        fix = "Write it to Parquet and read the files, or collect it first."
    else:
        fix = "Pass Predictions(y_true, y_prob), the pair (y_true, y_prob), a path, a frame or a mapping of columns."
    raise InputError("TO302", "Data of this type cannot be read.", describe(data), fix)


class FrameTable(Table):
    """A data frame in memory."""

    format = "frame"

    def __init__(self, frame: Any) -> None:
        self.name = f"the {frame.implementation.value} frame"
        # The names that the frame itself gives its columns; in pandas they need not be text.
        self._native_names = {str(name): name for name in frame.columns}
        self.columns = unique_columns(self.name, [str(name) for name in frame.columns])
        self.rows = len(frame)
        self.text_columns = _text_columns(frame)
        self._frame = frame

    def categories(self, name: str) -> list[Any] | None:
        """Return the categories of a column."""
        return label_categories(self._frame[self._native_names[name]].to_native())

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Yield batches of slices of the columns."""
        return _iterate_slices(self._frame, {name: self._native_names[name] for name in names}, size, self.name, 0)


class LazyTable(Table):
    """A lazy Polars query, executed again by each pass, in batches."""

    format = "lazy frame"

    def __init__(self, query: Any) -> None:
        self.name = "the polars lazy frame"
        self._query = query
        with _convert_engine_errors(self.name, "polars.exceptions", "PolarsError"):
            schema = query.collect_schema()
        self.columns = tuple(schema.names())
        self.text_columns = frozenset(name for name, dtype in schema.items() if str(dtype) in _POLARS_TEXT_TYPES)

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Select only the named columns, so that the query reads no others."""
        import narwhals as nw

        start = 0
        query = self._query.select(list(names))
        with _convert_engine_errors(self.name, "polars.exceptions", "PolarsError"):
            can_stream = hasattr(query, "collect_batches")  # before Polars 1.34 the result is collected as a whole
            pieces = query.collect_batches(chunk_size=size, maintain_order=True) if can_stream else [query.collect()]
            for piece in pieces:
                frame = nw.from_native(piece, eager_only=True)
                yield from _iterate_slices(frame, {name: name for name in names}, size, self.name, start)
                start += len(frame)


class RelationTable(Table):
    """A DuckDB relation, run again for each pass, and fetched in Arrow record batches."""

    format = "relation"

    def __init__(self, relation: Any) -> None:
        self.name = "the duckdb relation"
        self.columns = unique_columns(self.name, relation.columns)
        types = zip(self.columns, map(str, relation.types), strict=True)
        self.text_columns = frozenset(name for name, kind in types if kind == "VARCHAR")
        self._relation = relation

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Select only the named columns."""
        from trueodds.io.files import require_pyarrow

        require_pyarrow(self.name)
        from trueodds.io.arrow import arrow_batches

        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        with _convert_engine_errors(self.name, "duckdb", "Error"):
            projection = self._relation.project(", ".join(quoted))
            is_new = hasattr(projection, "to_arrow_reader")  # which replaces fetch_record_batch
            read_batches = projection.to_arrow_reader if is_new else projection.fetch_record_batch
            yield from arrow_batches(self.name, read_batches(size), size)


def _text_columns(frame: Any) -> frozenset[str]:
    """Return the columns of a narwhals data frame that hold text."""
    import narwhals as nw

    return frozenset(str(name) for name, dtype in frame.schema.items() if dtype in (nw.String, nw.Categorical, nw.Enum))


def _iterate_slices(
    frame: Any, native_names: dict[str, Any], size: int, name: str, start: int
) -> Iterator[ColumnBatch]:
    """Yield slices of at most `size` rows; the first row of the frame is row `start` of the table `name`.

    `native_names` maps the columns to be read to the names that the frame gives them.
    """
    for offset in range(0, len(frame), size):
        piece = frame[offset : offset + size]
        yield {
            column: _column_to_array(piece[key], Place(name, column, start + offset))
            for column, key in native_names.items()
        }


def _column_to_array(series: Any, place: Place) -> Array:
    """Convert a narwhals series to an array; a missing value is an error."""
    is_missing = series.is_null().to_numpy()
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
