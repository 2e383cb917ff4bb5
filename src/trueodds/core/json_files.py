"""JSON of the package's own files and results, strict in both directions; `io` reads the JSON of users.

In a file, NaN, infinities and repeated keys are errors. In a result, null stands for a number that is not finite.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError
from trueodds.core.settings import check

SCHEMA_CHARACTERS = 4096  # number of characters at the start of a file among which its schema is looked for


def write_text(path: str | os.PathLike[str], text: str, code: str) -> None:
    """Write a text file atomically: other processes see the old or the new content, never a part."""
    with open_atomic(check("path", path, str | os.PathLike), code) as file:
        file.write(text.encode())


def read_json(path: str | os.PathLike[str], code: str) -> Any:
    """Parse a strict JSON file; NaN and Infinity are errors."""
    return parse_json(read_text(path, code), code, str(path))


def read_text(path: str | os.PathLike[str], code: str) -> str:
    """Return the content of a text file, with unchanged line ends; `code` is that of the error if it cannot be read."""
    try:
        with Path(os.path.expanduser(path)).open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        fix = "Pass a file that .save wrote; what joblib or pickle wrote is read by the same package."
        raise InputError(code, "The file is not JSON.", f"{path}, which is not text in UTF-8", fix) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(code, "The file cannot be read.", f"{path}: {reason}", "Check the path.") from None


class RepeatedKey(ValueError):
    """Error for a key that occurs twice in one JSON object, so that its value is ambiguous."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values, for `object_pairs_hook`; raise an error for a repeated key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKey(next(key for key in keys if keys.count(key) > 1))
    return mapping


def describe_json_error(problem: Exception) -> str:
    """Describe an invalid JSON text, given the exception of the parser."""
    if isinstance(problem, RepeatedKey):
        return f"the key {str(problem)[:80]!r} twice in one object"
    if isinstance(problem, ValueError) and "int_max_str_digits" in str(problem):
        return "a whole number of thousands of digits"
    return str(problem)[:200]


def parse_json(text: str, code: str, source: str = "the text") -> Any:
    """Parse a strict JSON text; `source` says where it is from in the error, whose code is `code`.

    >>> parse_json('{"n": 1}', "TO402")
    {'n': 1}
    """
    try:
        return json.loads(
            text, parse_float=_finite_number, parse_constant=_reject_constant, object_pairs_hook=unique_keys
        )
    except (ValueError, RecursionError) as problem:
        raise InputError(
            code, f"{source} is not JSON.", describe_json_error(problem), "Give a file that trueodds saved."
        ) from None


def read_schema_family(path: str | os.PathLike[str]) -> str | None:
    """Return the schema family of a file, such as `trueodds.tally`, or None if it has none."""
    try:
        with Path(os.path.expanduser(path)).open(encoding="utf-8") as file:
            beginning = file.read(SCHEMA_CHARACTERS)
    except (OSError, ValueError):
        return None
    for family in ("trueodds.tally", "trueodds.calibrator", "trueodds.monitor_state"):
        if f'"{family}/' in beginning:
            return family
    return None


def _finite_number(text: str) -> float:
    """Return the number; raise an error for one beyond float64, such as 1e999, which Python's parser reads as ∞."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:80]} is too large for a number")
    return number


def _reject_constant(name: str) -> NoReturn:
    """Raise an error for NaN, Infinity or -Infinity, which Python's parser accepts."""
    raise ValueError(f"{name} is not a number")


class JsonObject:
    """An object, a dataclass, whose JSON has a key for every field, or the keys that its class names.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Row(JsonObject):
    ...     json_keys = ("n", "error=estimate.real", "note?")
    ...     n: int
    ...     estimate: complex
    ...     note: str | None = None
    >>> Row(3, 0.5j).to_dict()
    {'n': 3, 'error': 0.0}
    """

    __slots__ = ()
    json_schema: ClassVar[str | None] = None  # of the published JSON
    # Names of attributes in the order of the keys, by default all fields. "key=a.b" is the attribute b of the attribute
    # a under another key; a key with ? is left out if its value is None or empty.
    json_keys: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the object as strict JSON, with null for a number that is infinite or undefined.

        Returns
        -------
        dict
            The object, of the published schema if its class has one.
        """
        schema = {} if self.json_schema is None else {"schema": self.json_schema}
        return schema | self.json_values(self.json_keys or [field.name for field in fields(self)])  # type: ignore[arg-type]

    def json_values(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of some keys."""
        values = {}
        for key in keys:
            name, _, path = key.rstrip("?").partition("=")
            value = attrgetter(path or name)(self)
            if not (key.endswith("?") and value in (None, ())):
                values[name] = strict_json(value)
        return values


def strict_json(value: Any) -> Any:
    """Convert a value to strict JSON: infinities and NaN become null, arrays lists, and results their JSON."""
    kind = type(value)  # most values are of these types, and subclass checks of an abstract class are slow
    if kind is str or kind is int or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type) and hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return unique_keys([(str(key), strict_json(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return [strict_json(item) for item in value]
    if hasattr(value, "tolist"):
        return strict_json(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (bool, int, str)) else str(value)
