"""Convert Arrow columns to NumPy arrays, without copies where the types allow it.

Used by the readers of Arrow tables and streams, Parquet and Feather files, CSV files, DuckDB relations and Spark data
frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.conversion import MAX_TEXT_BYTES, Place, text_array, to_array
from trueodds.io.nested_fields import DENSE_VECTOR, is_vector, vector_values

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
    if types.is_temporal(arrow_type):
        return _text_array(array.cast(pa.string()), place)
    raise place.wrong_type_error(str(arrow_type))


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
