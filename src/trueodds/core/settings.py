"""Check settings against their annotations, types with ranges, and convert them to plain Python values.

The settings of a method are the fields of a frozen dataclass, derived from `Settings`. An annotation such as
`Annotated[int, Range(1)]` declares which values are allowed, and the error for any other value states it.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Literal, Self

import numpy as np

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import MAX_VALUE_LENGTH, InputError, describe
from trueodds.core.registry import dataclass_settings
from trueodds.core.signatures import check_constructor
from trueodds.core.suggestions import suggest_names

# Constraint of a sequence type: a single value is accepted as a sequence of length 1.
OR_SINGLE_VALUE = "or one of them"
# Constraint of a type that is not specific enough, such as that of a table: the class checks the value itself.
CHECKED_BY_CLASS = "checked by the class"
# Settings that are mistaken for percentages: for level=95 the error suggests 0.95.
FRACTION_SETTINGS = ("alpha", "effect", "level", "margin", "min_effect", "power")
ValueReader = Callable[[Any], tuple[bool, Any]]  # returns whether a value is allowed, and the value as it is stored
MAX_EXACT_INTEGER = 2**53  # largest integer up to which float64 represents all integers


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`; `closed` says which ends are included.

    >>> 0.0 in Range(0, 1, closed="right"), str(Range(1)), str(Range(0, 1, closed="left"))
    (False, 'of at least 1', 'in [0, 1)')
    """

    low: float = -math.inf
    high: float = math.inf
    closed: Literal["both", "left", "right", "neither"] = "both"

    def __contains__(self, x: float) -> bool:
        is_above_low = self.low <= x if self.closed in ("both", "left") else self.low < x
        is_below_high = x <= self.high if self.closed in ("both", "right") else x < self.high
        return is_above_low and is_below_high  # NaN is in no range

    def __str__(self) -> str:
        left = "[" if self.closed in ("both", "left") else "("
        right = "]" if self.closed in ("both", "right") else ")"
        if self.low == self.high:
            return f"equal to {_format_end(self.low)}"
        if self.high < MAX_EXACT_INTEGER:
            return f"in {left}{_format_end(self.low)}, {_format_end(self.high)}{right}"
        if self.low > -math.inf:
            return f"of at least {_format_end(self.low)}" if left == "[" else f"above {_format_end(self.low)}"
        return ""


@dataclass(frozen=True)
class OneOf:
    """A set of allowed words that is defined by a table; a fixed set is a `Literal`."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """The description of a type in an error, where the one that its annotation gives would be hard to read."""

    text: str  # after "must be", such as "a number between 0 and 1"


Integer = Annotated[int, Range()]
Count = Annotated[int, Range(1)]
BinCount = Annotated[int, Range(1, 1_000_000)]
Resamples = Annotated[int, Range(1, 100_000_000)]
Seed = Annotated[int, Range(0, 2**128 - 1)]
# Closer to 0 or 1, normal quantiles or numbers of draws are infinite.
Level = Annotated[float, Range(1e-9, 1 - 1e-9), Described("a number between 1e-9 and 1 − 1e-9")]
Probability = Annotated[float, Range(0, 1, closed="neither")]
NonNegative = Annotated[float, Range(0, closed="left")]
Order = Annotated[float, Range(1)]
FiniteOrder = Annotated[float, Range(1, closed="left")]
Folds = Annotated[int, Range(2)]
Positive = Annotated[float, Range(0, closed="neither")]


class Settings:
    """Base class of dataclasses that validate their settings; subclasses with more checks call `__post_init__`.

    The docstring of a subclass may refer to entries of others (see `core.docstrings.insert_shared_parameters`).
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        insert_shared_parameters(cls)

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Create the object; a setting that it does not have raises TO202."""
        if args or settings:
            declared: Any = cls
            positional = _positional_settings(declared)
            allowed = declared_settings(declared).keys() - positional[: len(args)]
            if len(args) > len(positional) or not settings.keys() <= allowed:
                check_constructor(cls, args, settings)
        return super().__new__(cls)

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Return the names of the settings that may be passed by name to the public functions."""
        return dataclass_settings(cls)

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Any:
        """Create the object from settings that were passed by name; `_name` is its name in the registry."""
        return cls(**settings)

    def __post_init__(self) -> None:
        """Check every setting against its annotation, and store a sequence as a tuple, a NumPy scalar as a number.

        Raises InputError TO203 for a value that the annotation of its setting does not allow.
        """
        cls: Any = type(self)
        for name, hint, default, read in _declared_readers(cls):
            value = getattr(self, name)
            if value is default or (type(value) is type(default) in (int, float, str) and value == default):
                continue
            allowed, checked = read(value)
            if not allowed:
                check(name, value, hint, default)
            if checked is not value:
                object.__setattr__(self, name, checked)


@cache
def declared_settings(cls: Any) -> Mapping[str, tuple[Any, Any]]:
    """Return the annotation and the default of each setting, or nothing if the annotations cannot be evaluated."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError:  # for a user's class with names that are imported only for type checking
        return {}
    return {field.name: (hints[field.name], field.default) for field in dataclasses.fields(cls) if field.init}


@cache
def _positional_settings(cls: Any) -> tuple[str, ...]:
    """Return the names of the settings that may be passed without them."""
    return tuple(field.name for field in dataclasses.fields(cls) if field.init and not field.kw_only)


@cache
def _declared_readers(cls: Any) -> list[tuple[str, Any, Any, ValueReader]]:
    """Return name, annotation, default, and reader of each setting."""
    return [(name, hint, default, _find_reader(hint)) for name, (hint, default) in declared_settings(cls).items()]


def check(name: str, value: Any, hint: Any, default: Any = dataclasses.MISSING) -> Any:
    """Return the value of a setting or argument as it is stored; raise TO203 if its annotation does not allow it.

    Parameters
    ----------
    name : str
        Name of the setting, for the error.
    value : object
        Its value. NumPy scalars become Python numbers, and sequences tuples.
    hint : type
        Its annotation.
    default : object, optional
        Its default, which is allowed, and which the error suggests.

    >>> check("bins", np.int64(5), BinCount), check("order", 2, Positive)
    (5, 2)
    >>> check("bins", 0, BinCount, 15)
    Traceback (most recent call last):
    trueodds.core.errors.InputError: [TO203] bins must be an integer in [1, 1000000]. Got 0. For instance bins=15.
    """
    if value is default or (type(value) is type(default) in (int, float, str) and value == default):
        return default  # which is not analyzed, because most settings are
    allowed, checked = _find_reader(hint)(value)
    if allowed:
        return checked
    words, type_texts = _describe_hint(hint)
    listed_words = ", ".join(map(repr, words))
    words_text = " or ".join(map(repr, words)) if len(words) < 3 else f"one of {listed_words}"
    allowed_text = " or ".join(text for text in (*type_texts, words_text) if text)
    fix = _suggest_value(name, value, hint, default, words)
    raise InputError("TO203", f"⟨{name}⟩ must be {allowed_text}.", describe(value), fix)


def _suggest_value(name: str, value: Any, hint: Any, default: Any, words: Sequence[Any]) -> str:
    """Return the remedy for an invalid value of a setting, of which `words` are allowed values: a value to pass."""
    is_optional = _find_reader(hint)(None)[0]
    if isinstance(value, str) and value.lower() == "none" and is_optional:
        return f"Pass ⟨{name}=None⟩, without quotes."
    if isinstance(value, str) and words:
        return suggest_names(value[:MAX_VALUE_LENGTH], map(str, words))
    fraction = _percentage_to_fraction(value) if name in FRACTION_SETTINGS else None
    if fraction is not None and _find_reader(hint)(fraction)[0]:
        return f"{name} is a fraction: {fraction:g}, not {value:g}."
    if default is not dataclasses.MISSING and default is not None:
        return f"For instance ⟨{name}={describe(default)}⟩."
    return "Leave it out." if is_optional else "Pass one."


def _percentage_to_fraction(value: Any) -> float | None:
    """Return the fraction that a percentage of 1 to 100 stands for; None for any other value."""
    _, number = _read_number(False, value)
    return number / 100 if number is not None and 1 < number <= 100 else None


def parse_digits(text: str) -> int | None:
    """Return the integer that a text of at most 15 decimal digits represents; None for any other text."""
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else None


def call_user_function(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a user-defined function; raise an InputError if the call fails with TypeError or ValueError."""
    try:
        return function(*args)
    except (TypeError, ValueError) as problem:
        raise InputError(
            "TO203", f"{name} could not be called.", f"{type(problem).__name__}: {problem}",
            f"It is called with {len(args)} {'argument' if len(args) == 1 else 'arguments'}.",
        ) from problem  # fmt: skip


def _find_reader(hint: Any) -> ValueReader:
    """Return the function that checks values against an annotation."""
    try:
        return _make_reader(hint)
    except TypeError:  # an annotation that is not hashable
        return _make_reader.__wrapped__(hint)


@cache
def _make_reader(hint: Any) -> ValueReader:
    """Return the function that checks values against an annotation; cached, so that it is analyzed only once."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: (True, value)
    if origin in (typing.Union, types.UnionType):
        read_any = _read_any_of(tuple(_find_reader(arg) for arg in args if arg is not type(None)))
        return (lambda value: (True, None) if value is None else read_any(value)) if type(None) in args else read_any
    if origin is Annotated and CHECKED_BY_CLASS in args[1:]:
        return lambda value: (True, value)
    if origin is Annotated:
        return partial(_read_annotated, _find_reader(args[0]), args[1:])
    if origin is Literal:
        return partial(_read_word, args)
    if hint is bool:
        return lambda value: (True, bool(value)) if isinstance(value, (bool, np.bool_)) else (False, value)
    if hint is str:
        return lambda value: (True, str(value)) if isinstance(value, str) else (False, value)
    if hint in (int, float):
        return partial(_read_number, hint is int)
    if origin in (tuple, list, Sequence):
        return partial(_read_sequence, _find_reader(args[0]))
    if origin is Callable:
        return lambda value: (callable(value), value)
    if isinstance(kind := origin or hint, type):
        return lambda value: (isinstance(value, kind), value)
    return lambda value: (True, value)  # a type that cannot be checked at run time


def _read_any_of(readers: Sequence[ValueReader]) -> ValueReader:
    """Return a reader that applies the first of several readers that allows the value."""

    def read(value: Any) -> tuple[bool, Any]:
        for reader in readers:
            if (result := reader(value))[0]:
                return result
        return False, value

    return read


def _read_annotated(reader: ValueReader, constraints: tuple[Any, ...], value: Any) -> tuple[bool, Any]:
    """Read a value by the reader of the annotated type, and check its constraints."""
    allowed, checked = reader(value)
    if not allowed and OR_SINGLE_VALUE in constraints:
        allowed, checked = reader((value,))
    for constraint in constraints if allowed else ():  # any other constraint is no restriction
        if isinstance(constraint, Range):
            # Integers that float64 cannot represent are rejected, unless the range allows them.
            is_exact = not isinstance(checked, int) or constraint.high < math.inf or abs(checked) <= MAX_EXACT_INTEGER
            allowed = is_exact and checked in constraint
        elif isinstance(constraint, OneOf):
            allowed = checked in constraint.words
        if not allowed:
            break
    return allowed, checked


def _read_word(words: tuple[Any, ...], value: Any) -> tuple[bool, Any]:
    """Read a value that must be one of the words of a `Literal`, which may also hold numbers."""
    word = str(value) if isinstance(value, str) else _read_number(True, value)[1]
    return word is not None and word in words, word


def _read_number(is_integer: bool, value: Any) -> tuple[bool, Any]:
    """Read a Python or NumPy number as a Python number; not a boolean, and no large integer where a float is needed."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral if is_integer else numbers.Real):
        return False, None
    if isinstance(value, numbers.Integral):
        exact = int(value)
        if is_integer or abs(exact) <= MAX_EXACT_INTEGER:
            return True, exact
    try:
        return True, float(value) + 0.0  # −0.0 is 0.0
    except OverflowError:
        return False, None


def _read_sequence(reader: ValueReader, values: Any) -> tuple[bool, Any]:
    """Return whether a reader allows all values of a sequence, and the values as a tuple."""
    if getattr(values, "ndim", None) == 1 and hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple, range)):
        return False, values
    results = [reader(value) for value in values]
    return all(allowed for allowed, _ in results), tuple(checked for _, checked in results)


def _describe_hint(hint: Any) -> tuple[list[Any], list[str]]:
    """Return the words that an annotation allows, and descriptions of the other allowed types."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if any(map(_described_text, args)):  # the description mentions None
            args = tuple(arg for arg in args if arg is not type(None))
        descriptions = [_describe_hint(arg) for arg in args]
        words = [word for words_of_type, _ in descriptions for word in words_of_type]
        return words, [text for _, texts in descriptions for text in texts]
    if origin is Annotated:
        if text := _described_text(hint):
            return [], [text]
        words = [word for arg in args[1:] if isinstance(arg, OneOf) for word in arg.words]
        limits = "".join(f" {arg}" for arg in args[1:] if isinstance(arg, Range)).rstrip()
        return (words, []) if words else ([], [text + limits for text in _describe_hint(args[0])[1]])
    if origin is Literal:
        return list(args), []
    if origin in (tuple, list, Sequence):
        words, texts = _describe_hint(args[0])
        return [], [f"a sequence, each {' or '.join([*texts, *map(repr, words)])}"]
    if origin is Callable:
        return [], ["a callable"]
    names = {int: "an integer", float: "a number", str: "a string", bool: "True or False", type(None): "None"}
    kind = getattr(hint, "__name__", str(hint))
    return [], [names.get(hint) or f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"]


def _described_text(hint: Any) -> str:
    """Return the description of an annotated type, if it has one."""
    arguments = typing.get_args(hint) if typing.get_origin(hint) is Annotated else ()
    return next((arg.text for arg in arguments if isinstance(arg, Described)), "")


def _format_end(x: float) -> str:
    """Format an end of a range, an integer without decimals."""
    return str(int(x)) if float(x).is_integer() and abs(x) < MAX_EXACT_INTEGER else f"{x:.10g}"
