"""Save and load fitted maps by their fields: each entry of a file is checked against the annotation of its field.

A map, and each curve in it, is derived from `Saved`, which makes it a frozen dataclass. The annotation of a field says
which values are valid: `Annotated[float, Range(0, 1)]`, a count, a bool, a `Literal`, numbers in an array, another
`Saved` object, or a tuple of such objects.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, dataclass_transform

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array

MAX_FLOAT = float(np.finfo(np.float64).max)
REFIT_HINT = "⟨Fit it again and save it with .save(path)⟩."

# Constraints of a field's annotation:
NOT_SAVED = "not saved"
OMIT_DEFAULT = "not saved where it is the default"
MISSING_IN_OLD_FILES = "the default in files that have no such entry"
AS_NUMBER = "a bool that is saved as 1 or 0"

Sizes = dict[str, int]  # sizes by the names that `Numbers.shape` has for them
ValueReader = Callable[[str, Any, Sizes], Any]  # returns the value of a field, from the key and the saved value


@dataclass(frozen=True)
class Key:
    """The key under which a field is saved, where it is not the name of the field."""

    name: str


@dataclass(frozen=True)
class Numbers:
    """The numbers from `low` to `high`, in an array (or a NamedTuple) of a given shape.

    A dimension is an integer or a named size, such as "m" or "m-1". "k" is the number of classes; any other name stands
    for a size of at least 1, which is that of the first field with this name.
    """

    low: float
    high: float
    shape: tuple[str | int, ...] = ("m",)
    increasing: Literal["", "strictly", "weakly"] = ""
    kind: type = float  # or int, or bool
    or_shape: tuple[str | int, ...] = ()  # another shape that is valid, with more dimensions


@dataclass(frozen=True)
class Texts:
    """Texts in a tuple, or in a tuple of tuples if they are `nested`."""

    nested: bool = False


PassCount = Annotated[int, Range(0)]  # passes of a fit over its rows
ZeroOrOne = Annotated[bool, AS_NUMBER]


def delegated(part: str, name: str) -> Any:
    """A property that is the attribute `name` of a part of the object, which is one of its fields."""
    return property(attrgetter(f"{part}.{name}"))


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class FrozenDataclass:
    """Base class whose subclasses are frozen dataclasses; they need no decorator, but may have one."""

    def __init_subclass__(cls, *, eq: bool = True, **more: Any) -> None:
        super().__init_subclass__(**more)
        is_copy = "__dataclass_fields__" in vars(cls)  # with slots, of a class that was made a dataclass
        has_fields = bool(inspect.get_annotations(cls)) or not hasattr(cls, "__dataclass_fields__")
        if has_fields and not is_copy:
            dataclass(frozen=True, eq=eq)(cls)
            for name in ("__setattr__", "__delattr__"):  # a decorator adds them, and refuses to replace them
                delattr(cls, name)

    if not TYPE_CHECKING:  # a type checker would allow attributes that do not exist

        def __setattr__(self, name: str, value: Any) -> None:
            self._check_is_open(name)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            self._check_is_open(name)
            super().__delattr__(name)

        def _check_is_open(self, name: str) -> None:
            """Raise an error, unless a class with a constructor of its own sets what is no field."""
            constructed_by = next(cls for cls in type(self).__mro__ if "__init__" in vars(cls))
            if name in self.__dataclass_fields__ or "__dataclass_fields__" in vars(constructed_by):
                raise dataclasses.FrozenInstanceError(f"cannot assign to {name!r}")


class Saved(FrozenDataclass, eq=False):
    """Base class of objects that are saved as their fields; each is equal to itself only, unless its class says so."""

    def __init_subclass__(cls, *, eq: bool = False, **more: Any) -> None:
        super().__init_subclass__(eq=eq, **more)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; numbers keep every bit."""
        cls: Any = type(self)
        return {
            field.key: field.to_json(getattr(self, field.name))
            for field in saved_fields(cls)
            if not (OMIT_DEFAULT in field.constraints and _is_default(getattr(self, field.name), field.default))
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int = 2) -> Self:
        """Make the object for K classes from saved entries, each of which is checked (InputError TO505)."""
        return cls._from_entries(parameters, k, "parameters")

    @classmethod
    def _from_entries(cls: Any, parameters: Mapping[str, Any], k: int, where: str) -> Any:
        """Make the object from the entries of an object `where` in the file."""
        fields, sizes = saved_fields(cls), {"k": k}
        optional = [field.key for field in fields if field.is_optional]
        check_keys(parameters, [field.key for field in fields], where, optional)
        instance = cls(
            **{
                field.name: field.read(field.key, parameters[field.key], sizes)
                for field in fields
                if field.key in parameters
            }
        )
        instance.check_saved(k)
        return instance

    def check_saved(self, k: int) -> None:
        """Raise TO505 if saved values are valid one by one, but not together or not for K classes."""


class SavedField(NamedTuple):
    """How a field is saved and read."""

    name: str
    key: str
    read: ValueReader
    default: Any
    constraints: tuple[Any, ...]

    def to_json(self, value: Any) -> Any:
        return int(value) if AS_NUMBER in self.constraints else _to_json(value)

    @property
    def is_optional(self) -> bool:
        return OMIT_DEFAULT in self.constraints or MISSING_IN_OLD_FILES in self.constraints


@cache
def saved_fields(cls: Any) -> tuple[SavedField, ...]:
    """The fields that are saved, in the order of the file."""
    hints, fields = typing.get_type_hints(cls, include_extras=True), []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        constraints = getattr(hint, "__metadata__", ())
        if NOT_SAVED not in constraints:
            key = next((c.name for c in constraints if isinstance(c, Key)), field.name)
            fields.append(SavedField(field.name, key, _make_reader(hint), field.default, constraints))
    return tuple(fields)


def _is_default(value: Any, default: Any) -> bool:
    """Whether a value, which may be an array, is the default of its field."""
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def _to_json(value: Any) -> Any:
    if isinstance(value, Saved):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_to_json(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def read_value(key: str, value: Any, hint: Any) -> Any:
    """Read a value by an annotation, which need not be that of a field; raises TO505 if it is invalid."""
    return _make_reader(hint)(key, value, {})


@cache
def _make_reader(hint: Any) -> ValueReader:
    """The function that checks and reads values of an annotation."""
    constraints: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    hint = hint.__origin__ if constraints else hint
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        options = [arg for arg in args if arg is not types.NoneType]
        read: ValueReader = partial(_read_object, options)
        if len(options) == 1:
            read = _make_reader(Annotated[(options[0], *constraints)] if constraints else options[0])
        return read if len(options) == len(args) or OMIT_DEFAULT in constraints else partial(_read_or_none, read)
    if texts := [c for c in constraints if isinstance(c, Texts)]:
        return partial(_read_texts, texts[0].nested)
    if origin is tuple:
        return partial(_read_objects, args[0])
    if origin is Literal:
        return partial(_read_word, args)
    if hint in (int, float, bool):
        limits = next((c for c in constraints if isinstance(c, Range)), Range(-MAX_FLOAT, MAX_FLOAT))
        return partial(_read_flag, AS_NUMBER in constraints) if hint is bool else partial(_read_number, hint, limits)
    if words := [c.words for c in constraints if isinstance(c, OneOf)]:
        return partial(_read_word, words[0])
    if numbers := [c for c in constraints if isinstance(c, Numbers)]:
        return partial(_read_numbers, numbers[0], hint if isinstance(hint, type) and issubclass(hint, tuple) else None)
    if hint in (str, dict):
        return partial(_read_instance, hint)
    if not (isinstance(hint, type) and issubclass(hint, Saved)):
        raise TypeError(f"values of {hint} cannot be saved")
    return partial(_read_object, (hint,))


def _read_or_none(read: ValueReader, key: str, value: Any, sizes: Sizes) -> Any:
    """Read a value that may be null."""
    return None if value is None else read(key, value, sizes)


def _read_number(kind: Any, limits: Range, key: str, value: Any, _sizes: Sizes) -> float:
    if not isinstance(value, (int, kind)) or isinstance(value, bool) or value not in limits:
        noun = "a whole number" if kind is int else "a number"
        raise invalid_value_error(key, f"{noun} {_describe_limits(limits)}", value)
    return kind(value)


def _read_flag(as_number: bool, key: str, value: Any, _sizes: Sizes) -> bool:
    """Read true or false, or 1 or 0."""
    if type(value) is not (int if as_number else bool) or value not in (0, 1):
        raise invalid_value_error(key, "1 or 0" if as_number else "true or false", value)
    return bool(value)


def _read_instance(kind: type, key: str, value: Any, _sizes: Sizes) -> Any:
    """Read a text or an object that is not checked any further."""
    if not isinstance(value, kind):
        raise invalid_value_error(key, "text" if kind is str else "an object", value)
    return value


def _read_word(words: Sequence[str], key: str, value: Any, _sizes: Sizes) -> str:
    if not isinstance(value, str) or value not in words:
        raise invalid_value_error(key, " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}", value)
    return value


def _read_object(options: Sequence[Any], key: str, value: Any, sizes: Sizes) -> Saved:
    """Read an object; if there are several types, that of which it has all required entries."""
    entries = _read_instance(dict, key, value, sizes)
    matching = (o for o in options if all(f.is_optional or f.key in entries for f in saved_fields(o)))
    return next(matching, options[0])._from_entries(entries, sizes["k"], key)


def _read_objects(item_type: type[Saved], key: str, values: Any, sizes: Sizes) -> tuple[Saved, ...]:
    if not isinstance(values, list):
        raise invalid_value_error(key, "a list of objects", values)
    return tuple(_read_object((item_type,), f"{key}[{i}]", value, sizes) for i, value in enumerate(values))


def _read_texts(nested: bool, key: str, values: Any, _sizes: Sizes) -> tuple[Any, ...]:
    """Read a list of texts, or a list of such lists, as tuples."""
    if not isinstance(values, list) or not all(isinstance(value, list if nested else str) for value in values):
        raise invalid_value_error(key, "a list of lists of texts" if nested else "a list of texts", values)
    return tuple(_read_texts(False, key, value, _sizes) for value in values) if nested else tuple(values)


def _read_numbers(numbers: Numbers, tuple_type: Any, key: str, values: Any, sizes: Sizes) -> Any:
    """Read numbers as an array, or as a NamedTuple."""
    is_nested = isinstance(values, list) and bool(values) and isinstance(values[0], list)
    dimensions = numbers.or_shape if numbers.or_shape and is_nested else numbers.shape
    expected, shape, level = partial(_describe_numbers, numbers, dimensions, dict(sizes)), [], [values]
    for dimension in dimensions:
        lengths = {len(row) if isinstance(row, list) else -1 for row in level}
        shape.append(_expected_size(dimension, sizes, max(lengths, default=0)))
        if lengths != {shape[-1]}:
            raise invalid_value_error(key, expected(), values)
        level = list(chain.from_iterable(level))
    array = _to_array(level, numbers.kind)
    if array is None or not ((numbers.low <= array) & (array <= numbers.high)).all():
        beyond = [v for v in level if isinstance(v, (int, float)) and not numbers.low <= v <= numbers.high]
        raise invalid_value_error(key, expected(), beyond[0] if beyond else values)
    steps = np.diff(array) if numbers.increasing else np.ones(1)
    if (steps < 0).any() or (numbers.increasing == "strictly" and not steps.all()):
        raise invalid_value_error(key, expected(), values)
    return array.reshape(shape) if tuple_type is None else tuple_type(*array.tolist())


def _to_array(values: list[Any], kind: type) -> Array | None:
    """The values as an array if each is a number of this kind, else None; true and false are numbers of kind bool."""
    allowed = (int, float) if kind is float else kind
    if not all(issubclass(t, allowed) and (t is bool) == (kind is bool) for t in set(map(type, values))):
        return None
    try:
        return np.array(values, dtype=np.int64 if kind is int else kind)
    except OverflowError:  # JSON allows integers that no float can hold
        return None


def _expected_size(dimension: str | int, sizes: Sizes, size: int) -> int:
    """The size of a dimension; a new name gets that of an array of this `size`, if valid."""
    if isinstance(dimension, int):
        return dimension
    name, offset = _split_size(dimension)
    return sizes.setdefault(name, max(size - offset, 1)) + offset


@cache
def _split_size(dimension: str) -> tuple[str, int]:
    """The name and the number that is added to it.

    >>> _split_size("k-1"), _split_size("m")
    (('k', -1), ('m', 0))
    """
    name, offset = re.fullmatch(r"(\w+?)([+-]\d+)?", dimension).groups()  # type: ignore[union-attr]
    return name, int(offset or 0)


def _describe_numbers(numbers: Numbers, dimensions: Sequence[str | int], sizes: Sizes) -> str:
    """What the numbers must be, such as `3 × 3 numbers from 0 to 1`."""
    counts = [
        str(_expected_size(d, sizes, 0)) if isinstance(d, int) or _split_size(d)[0] in sizes else d for d in dimensions
    ]
    count = " × ".join(counts) if counts[0].isdigit() or len(counts) > 1 else "some"
    if numbers.kind is bool:
        return f"{count} values true or false"
    adverb = f"{numbers.increasing} increasing " if numbers.increasing else ""
    noun = "whole numbers" if numbers.kind is int else "numbers"
    return f"{count} {adverb}{noun} {_describe_limits(Range(numbers.low, numbers.high))}"


def _describe_limits(limits: Range) -> str:
    """The range in words; unlike its own text it never leaves out an end."""
    return (
        f"from {limits.low:g} to {limits.high:g}"
        if abs(limits.high) < np.inf and limits.closed == "both"
        else str(limits)
    )


def check_keys(mapping: Mapping[str, Any], expected: Sequence[str], where: str, optional: Sequence[str] = ()) -> None:
    """Raise TO505 if a table lacks a key that is not optional or has an unknown one; `where` names the table."""
    missing = [key for key in expected if key not in mapping and key not in optional]
    extra = [key for key in mapping if key not in expected]
    if missing or extra:
        got = ", ".join([f"no {key}" for key in missing] + [f"an unknown {str(key)[:40]}" for key in extra])
        required = ", ".join(key for key in expected if key not in optional) or "no entries"
        raise InputError("TO505", f"A saved calibrator must have {required} in {where}.", got, REFIT_HINT)


def read_map_type(key: str, name: Any) -> Any:
    """The type of the map of a calibrator that a file names."""
    spec_type = CALIBRATORS.load(name) if isinstance(name, str) and name in CALIBRATORS.names() else None
    if spec_type is None or spec_type.map_type is None:
        raise invalid_value_error(key, "the name of a calibrator's map", name)
    return spec_type.map_type


def invalid_value_error(key: str, expected: str, got: Any) -> InputError:
    """The error TO505 for a saved value that is invalid."""
    text = repr(got)
    return InputError(
        "TO505",
        f"In a saved calibrator {key} must be {expected}.",
        text if len(text) < 60 else text[:57] + "...",
        REFIT_HINT,
    )


def read_class_names(mapping: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    names = mapping[key]
    if not isinstance(names, list) or len(names) < 2 or not all(map(_is_class_name, names)):
        raise invalid_value_error(key, "two or more names", names)
    if len(set(names)) != len(names):
        raise invalid_value_error(key, "names that differ", names)
    return tuple(names)


def _is_class_name(value: Any) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < float("inf"))


def read_notes(mapping: Mapping[str, Any], key: str) -> tuple[Note, ...]:
    """Read a list of notes, each an object with a code and a text."""
    notes = mapping[key]
    if not isinstance(notes, list) or not all(map(_is_note, notes)):
        raise invalid_value_error(key, "a list of coded texts", notes)
    return tuple(Note(**note) for note in notes)


def _is_note(value: Any) -> bool:
    return (
        isinstance(value, dict) and set(value) == {"code", "text"} and all(isinstance(v, str) for v in value.values())
    )
