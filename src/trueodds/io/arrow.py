"""Read Arrow tables and record batches, and convert their columns to NumPy arrays, without copies where types allow it.

Used by the readers of Arrow tables and streams, Parquet and Feather files, CSV files, DuckDB relations and Spark data
frames. Columns may be structs with fields, and lists of classes with scores.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.conversion import (
    MAX_TEXT_BYTES,
    Place,
    fields_of_cells,
    mask_missing,
    masked_labels,
    text_array,
    to_array,
)
from trueodds.io.nested_fields import (
    DENSE_VECTOR,
    is_vector,
    list_keys,
    pair_keys,
    paths_by_column,
    split_path,
    vector_values,
)
from trueodds.io.table import ROWS_OF_FIRST_CELL, ColumnBatch, ColumnSource, check_column_names

types = pa.types
# NumPy's names of the types that Arrow calls otherwise.
NUMPY_FLOAT_TYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}


def text_columns(schema: Any) -> frozenset[str]:
    """Return the columns of an Arrow schema that hold text, which may be encoded as a dictionary."""
    value_types = {
        field.name: field.type.value_type if types.is_dictionary(field.type) else field.type for field in schema
    }
    text_types = ("string", "large_string", "string_view")
    return frozenset(name for name, value_type in value_types.items() if str(value_type) in text_types)


def arrow_to_array(array: Any, place: Place) -> Array:
    """Convert one Arrow array to a NumPy array; a missing value is an error."""
    arrow_type = array.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        array, arrow_type = array.storage, array.storage.type
    if types.is_dictionary(arrow_type):
        array, arrow_type = array.dictionary_decode(), arrow_type.value_type
    if place.masks_missing:
        return _masked_labels(array, place)
    if array.null_count and place.allows_missing and _is_number(arrow_type):
        array, arrow_type = array.cast(pa.float64()).fill_null(np.nan), pa.float64()
    if array.null_count:
        raise place.missing_value_error(first_null_index(array), array.null_count)
    if types.is_floating(arrow_type) or types.is_integer(arrow_type):
        return view_as_numpy(array)
    if types.is_boolean(arrow_type):
        return view_as_numpy(array.cast(pa.uint8())).view(bool)
    if types.is_decimal(arrow_type):
        # Converted through text, which is parsed to the nearest float; scaling by a power of ten can be off by one ulp.
        return view_as_numpy(array.cast(pa.string()).cast(pa.float64()))
    if is_any_list(arrow_type):
        return _lists_to_matrix(array, place)
    if types.is_struct(arrow_type) and is_vector([field.name for field in arrow_type]):
        return _vectors_to_matrix(array, place)
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or str(arrow_type) == "string_view":
        return _text_array(array, place)
    if place.keeps_times and (types.is_timestamp(arrow_type) or types.is_date(arrow_type)):
        return view_as_numpy(array.cast(pa.timestamp("us"), safe=False).view(pa.int64())).view("datetime64[us]")
    if types.is_temporal(arrow_type):
        return _text_array(array.cast(pa.string()), place)
    raise place.wrong_type_error(str(arrow_type))


def _masked_labels(array: Any, place: Place) -> Array:
    """Convert labels without a dictionary, of which some may be missing: null, NaN or empty text."""
    is_null = view_as_numpy(array.is_null().cast(pa.uint8())).view(bool)
    if is_null.all():
        return masked_labels(len(array))
    if str(array.type) == "string_view":  # for which Arrow cannot fill nulls
        array = array.cast(pa.large_string())
    filled = array.fill_null(array.drop_null()[0]) if is_null.any() else array
    values = arrow_to_array(filled, replace(place, masks_missing=False))
    if values.ndim > 1:
        return values
    is_empty = values == "" if values.dtype.kind == "U" else np.zeros(len(values), dtype=bool)
    return mask_missing(values, is_null | is_empty)


def _is_number(arrow_type: Any) -> bool:
    return bool(
        types.is_floating(arrow_type)
        or types.is_integer(arrow_type)
        or types.is_boolean(arrow_type)
        or types.is_decimal(arrow_type)
        or types.is_null(arrow_type)
    )


def is_any_list(arrow_type: Any) -> bool:
    return bool(types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type))


def view_as_numpy(array: Any) -> Array:
    """Return numbers without nulls as a view of Arrow's memory; `to_numpy` would import pandas if installed."""
    dtype = np.dtype(NUMPY_FLOAT_TYPES.get(str(array.type), str(array.type)))
    memory = array.buffers()[1]
    if memory is None or len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(memory, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def first_null_index(array: Any) -> int:
    return int(np.argmax(view_as_numpy(array.is_null().cast(pa.uint8()))))


def _text_array(array: Any, place: Place) -> Array:
    """Convert text to an array; each distinct value is decoded once."""
    is_plain_text = types.is_string(array.type) or types.is_large_string(array.type)
    coded = (array if is_plain_text else array.cast(pa.large_string())).dictionary_encode()
    try:
        distinct_texts = text_array(coded.dictionary.to_pylist(), place)
        fits = distinct_texts.dtype.itemsize * len(array) <= MAX_TEXT_BYTES
    except InputError:
        fits = False
    if not fits:
        return text_array(array.to_pylist(), place)  # raises an error that names the row
    return distinct_texts[view_as_numpy(coded.indices)] if len(distinct_texts) else distinct_texts


def _lists_to_matrix(array: Any, place: Place) -> Array:
    if types.is_fixed_size_list(array.type):
        width = array.type.list_size
    else:
        widths = view_as_numpy(array.value_lengths())
        width = int(widths[0]) if len(widths) else 1
        if (widths != width).any():
            row = int(np.argmax(widths != width))
            raise place.length_error(row, int(widths[row]), width)
    if width == 0:
        raise place.length_error(0, 0, 1)
    elements = array.flatten()
    if elements.null_count and not place.allows_missing:
        raise place.missing_value_error(first_null_index(elements) // width, elements.null_count)
    values = arrow_to_array(elements, place)
    if values.dtype.kind not in "biuf" or values.ndim > 1:
        raise place.wrong_type_error(str(array.type))
    return values.reshape(-1, width)


def _vectors_to_matrix(array: Any, place: Place) -> Array:
    """Convert vectors of Spark ML, dense or sparse, to the rows of a matrix."""
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    if (arrow_to_array(children["type"], place) == DENSE_VECTOR).all():
        return arrow_to_array(children["values"], place)
    return to_array([vector_values(cell) for cell in array.to_pylist()], place)


def validate_batch(batch: Any) -> Any:
    """Return the record batch after full validation: Arrow does not check offsets and indices when it follows them."""
    batch.validate(full=True)
    return batch


@contextmanager
def convert_arrow_errors(name: str, file_format: str) -> Iterator[None]:
    """Convert the error of Arrow for an invalid file to an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        first_line = str(problem).strip().split("\n")[0].rstrip(".")
        raise InputError(
            "TO303",
            f"{name} cannot be read as {file_format}.",
            first_line[:200],
            "The file is truncated, broken or of another format: write it again, or give it its right suffix.",
        ) from None


MAX_BUFFER_BYTES = 2**29  # of a stream whose rows may be read again from the start
STREAM_REMEDY = (
    "Make the reader again, and keep its rows: preds = to.read(reader, …).collect(), or their sums, to.tally(reader)."
)


class ArrowTable(ColumnSource):
    """An Arrow table, or a single record batch, in memory."""

    format = "PyArrow table"
    shares_memory = True

    def __init__(self, table: Any) -> None:
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        self.name = self.format
        self.columns = check_column_names(self.name, table.column_names)
        self.rows, self.text_columns = table.num_rows, text_columns(table.schema)
        self._table = table

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        return arrow_batches(self, self._table.select(self.read_columns(names)).to_batches(size), size, names)

    def first_cell(self, column: str) -> Any:
        return first_value(self._table.select([column]).slice(0, ROWS_OF_FIRST_CELL).to_batches())


class ArrowStream(ColumnSource):
    """A reader of record batches, whose rows can be read once.

    A pass that stops early, because the rows do not fit into memory, can begin again: the batches that it has read are
    kept up to MAX_BUFFER_BYTES.
    """

    format = "Arrow stream"
    shares_memory = True

    def __init__(self, reader: Any) -> None:
        self.name = "the Arrow stream"
        self.columns = check_column_names(self.name, reader.schema.names)
        self.text_columns = text_columns(reader.schema)
        self._reader = reader
        self._buffer: list[Any] | None = []  # batches with which the next pass begins; None if there is no next pass

    def column_batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[ColumnBatch]:
        """Read the batches; a second pass raises TO413."""
        columns = self.read_columns(names)
        selected = (batch.select(columns) for batch in self._record_batches())
        yield from arrow_batches(self, selected, size, names)

    def first_cell(self, column: str) -> Any:
        """Return the first cell of a column, of the first batch with rows, which the next pass begins with."""
        passed = self._record_batches()
        value = first_value(batch.select([column]) for batch in passed)
        passed.close()
        return value

    def _record_batches(self) -> Generator[Any]:
        if self._buffer is None:
            raise InputError("TO413", "An Arrow stream can be read only once.", "a second pass", STREAM_REMEDY)
        n_bytes, has_rows = 0, False
        for batch in chain(tuple(self._buffer), self._next_batches()):
            n_bytes, has_rows = n_bytes + batch.nbytes, has_rows or batch.num_rows > 0
            if n_bytes > MAX_BUFFER_BYTES:
                self._buffer = None
            yield batch
        self._buffer = None
        if not has_rows:
            raise self._no_rows_error()

    def _next_batches(self) -> Iterator[Any]:
        with convert_arrow_errors(self.name, self.format):
            for batch in self._reader:
                validate_batch(batch)
                if self._buffer is not None:
                    self._buffer.append(batch)
                yield batch

    def _no_rows_error(self) -> InputError:
        return InputError("TO413", "The Arrow stream has no rows, or they have been read.", "0 rows", STREAM_REMEDY)


def arrow_batches(table: ColumnSource, batches: Any, size: int, names: Sequence[str]) -> Iterator[ColumnBatch]:
    """Convert record batches to arrays of at most `size` rows, by column name or path; empty batches are skipped."""
    start = 0
    for batch in batches:
        for offset in range(0, batch.num_rows, size):
            piece = batch.slice(offset, size)
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            yield columns_to_arrays(columns, names, table, start)
            start += piece.num_rows


def first_value(batches: Any) -> Any:
    """Return the first value that is not null of the first record batch, as a Python object; None if it has none."""
    batch = next((batch for batch in batches if batch.num_rows), None)
    values = [] if batch is None else batch.column(0).slice(0, ROWS_OF_FIRST_CELL).drop_null()
    return values[0].as_py() if len(values) else None


def columns_to_arrays(columns: Mapping[str, Any], names: Sequence[str], table: ColumnSource, start: int) -> ColumnBatch:
    """Convert Arrow arrays by column to NumPy arrays by name or path; the first row is row `start` of the table."""
    batch: dict[str, Array] = {}
    for column, paths in paths_by_column(names, columns).items():
        if "" in paths:
            batch[column] = arrow_to_array(columns[column], table.place(column, start))
        labels = [path for path in paths if path and f"{column}.{path}" in table.label_columns]
        if labels:  # a few fields, which may be missing: read as objects
            cells_of_label = fields_of_cells(columns[column].to_pylist(), labels, Place(table.name, column, start))
            names_of_labels = {f"{column}.{path}": cells for path, cells in cells_of_label.items()}
            batch |= {name: to_array(cells, table.place(name, start)) for name, cells in names_of_labels.items()}
        if fields := [path for path in paths if path and path not in labels]:
            allows_missing = any(f"{column}.{path}" in table.columns_with_missing for path in fields)
            place = Place(table.name, column, start, allows_missing)
            arrays = fields_of_array(columns[column], fields, place)
            batch |= {f"{column}.{path}": values for path, values in arrays.items()}
    return batch


def fields_of_array(array: Any, paths: Collection[str], place: Place) -> dict[str, Array]:
    """Return the fields of an Arrow array by path; a missing value is an error, as is a field that does not exist."""
    if array.null_count:
        raise place.missing_value_error(first_null_index(array), array.null_count)
    if not types.is_struct(array.type):
        return _scores_of_lists(array, paths, place)
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    values: dict[str, Array] = {}
    inner_paths: dict[str, list[str]] = {}
    classes = []
    for path in paths:
        name, rest = split_path(path, children)
        if rest:
            inner_paths.setdefault(name, []).append(rest)
        elif name in children:
            values[path] = arrow_to_array(children[name], place.field(name))
        else:
            classes.append(path)
    for name, rests in inner_paths.items():
        inner_values = fields_of_array(children[name], rests, place.field(name))
        values |= {f"{name}.{rest}": column for rest, column in inner_values.items()}
    if classes:
        keys = list_keys(children)
        if keys is None or not all(is_any_list(children[key].type) for key in keys):
            raise place.wrong_type_error(f"no field {classes[0]!r} in {array.type}")
        names, scores = (children[key] for key in keys)
        widths = _list_lengths(names, place)
        if not np.array_equal(widths, _list_lengths(scores, place)):
            raise place.wrong_type_error(f"lists {keys[0]} and {keys[1]} of different lengths")
        values |= _scores_by_class(names.flatten(), scores.flatten(), widths, classes, place)
    return values


def _scores_of_lists(array: Any, classes: Collection[str], place: Place) -> dict[str, Array]:
    """Return the scores of classes from lists of structs, or from maps, with a class and its score."""
    item_type = array.type.value_type if is_any_list(array.type) else None
    if types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([("name", array.type.key_type), ("score", array.type.item_type)])))
        item_type = array.type.value_type
    fields = [field.name for field in item_type] if item_type is not None and types.is_struct(item_type) else []
    keys = pair_keys(fields)
    if keys is None:
        raise place.wrong_type_error(f"no field {next(iter(classes))!r} in {array.type}")
    children = dict(zip(fields, array.flatten().flatten(), strict=True))
    names, scores = (children[key] for key in keys)
    return _scores_by_class(names, scores, _list_lengths(array, place), classes, place)


def _list_lengths(array: Any, place: Place) -> Array:
    if array.null_count:
        raise place.missing_value_error(first_null_index(array), array.null_count)
    if types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size)
    return view_as_numpy(array.value_lengths())


def _scores_by_class(
    names: Any, scores: Any, lengths: Array, classes: Collection[str], place: Place
) -> dict[str, Array]:
    """Return the score (n,) of each class from the flattened names and scores of n lists of these lengths.

    Every list must have each class once and, if several classes are read, no other one.
    """
    n, k = len(lengths), len(classes)
    row = np.repeat(np.arange(n), lengths)
    for values in (names, scores):
        if values.null_count:
            raise place.missing_value_error(int(row[first_null_index(values)]), values.null_count)
    coded = names if types.is_dictionary(names.type) else names.dictionary_encode()
    number_of_class = {name: i for i, name in enumerate(classes)}
    numbers = [number_of_class.get(str(name), -1) for name in coded.dictionary.to_pylist()]
    number = np.array(numbers, dtype=np.int64)[view_as_numpy(coded.indices)]
    is_read = number >= 0
    position = row[is_read] * k + number[is_read]
    counts = np.bincount(position, minlength=n * k)
    if (counts != 1).any():
        first, count = int(np.argmax(counts != 1)), int((counts != 1).sum())
        raise place.field(list(classes)[first % k]).missing_value_error(first // k, count)
    if k > 1 and (lengths != k).any():
        longer = int(np.argmax(lengths != k))
        raise place.length_error(longer, int(lengths[longer]), k)
    values = arrow_to_array(scores, place)
    P = np.empty(n * k, dtype=values.dtype)
    P[position] = values[is_read]
    return dict(zip(classes, P.reshape(n, k).T, strict=True))
