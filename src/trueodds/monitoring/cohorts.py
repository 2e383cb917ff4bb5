"""Cohorts of predictions: units of time, the cohort of each row, and when the horizon of a cohort has passed."""

from __future__ import annotations

import datetime
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trueodds.core.errors import InputError, argument, describe
from trueodds.core.typing import Array
from trueodds.data.arrays import check_one_value_per_row

UnitName = Literal["hour", "day", "week", "month", "integer"]
_NUMPY_UNITS: dict[str, Any] = {"hour": "h", "day": "D", "month": "M"}
_DAYS_BEFORE_MONDAY = 3  # from Monday to the first of January 1970, a Thursday
_SECONDS = {"hour": 3600, "day": 86_400, "week": 7 * 86_400}
_SHORTEST_MONTH = 28 * 86_400
_LONGEST_HORIZON = 36_525 * 86_400
_HORIZON = re.compile(r"(\d+)\s*(h|hours?|d|days?|w|weeks?)")
Moment = np.datetime64 | int  # of an integer unit, the integer; otherwise a time without a zone


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of time, whose periods are the cohorts. Periods are numbered from 1970 on; weeks begin on Monday.

    >>> day = Unit("day")
    >>> day.numbers(np.array(["2026-11-28"], dtype="datetime64[s]")).tolist(), day.label(20785)
    ([20785], '2026-11-28')
    >>> Unit("week").label(2970), Unit("month").label(682), Unit("integer").label(7)
    ('2026-11-30', '2026-11', '7')
    """

    name: UnitName

    def numbers(self, times: Array) -> Array:
        """Return the number of the period of each time, (n,) int64."""
        if self.name == "integer":
            return times.astype(np.int64)
        if self.name == "week":
            return (times.astype("datetime64[D]").astype(np.int64) + _DAYS_BEFORE_MONDAY) // 7
        return times.astype(f"datetime64[{_NUMPY_UNITS[self.name]}]").astype(np.int64)

    def start(self, number: int) -> Moment:
        """Return the moment at which a period begins, and the one before it ends."""
        if self.name == "integer":
            return number
        if self.name == "week":
            return np.datetime64(7 * number - _DAYS_BEFORE_MONDAY, "D").astype("datetime64[us]")
        return np.datetime64(number, _NUMPY_UNITS[self.name]).astype("datetime64[us]")

    def first_from(self, moment: Moment) -> int:
        """Return the number of the first period that begins at a moment or later.

        >>> Unit("day").first_from(np.datetime64("1970-01-03")), Unit("day").first_from(np.datetime64("1970-01-03T01"))
        (2, 3)
        """
        number = int(self.numbers(np.asarray([moment]))[0])
        start: Any = self.start(number)
        return number if start >= moment else number + 1

    def label(self, number: int) -> str:
        """Name a period: its first day, its month, its hour, or its integer."""
        if self.name == "integer":
            return str(number)
        resolution = _NUMPY_UNITS.get(self.name, "D")
        start: Any = self.start(number)
        return str(start.astype(f"datetime64[{resolution}]"))

    def has_passed(self, number: int, horizon: int, as_of: Moment) -> bool:
        """Return whether the horizon of the last row of a period has passed at a moment."""
        end = self.start(number + 1)
        if isinstance(end, np.datetime64):
            return bool(end + np.timedelta64(horizon, "s") <= as_of)
        return end + horizon <= int(as_of)

    def horizon_in_periods(self, horizon: int) -> int:
        """Return the number of periods that a horizon spans, rounded up, and at least 1."""
        seconds = {"month": _SHORTEST_MONTH, "integer": 1}.get(self.name) or _SECONDS[self.name]
        return max(1, -(-horizon // seconds))


def parse_horizon(value: Any, unit: UnitName) -> int:
    """Return a horizon in seconds, or as a number of integers.

    >>> parse_horizon("30d", "day"), parse_horizon("6 hours", "hour"), parse_horizon(4, "integer")
    (2592000, 21600, 4)
    """
    if unit == "integer":
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
            return int(value)
        raise InputError(
            "TO203",
            "⟨horizon⟩ must be a whole number of steps if the unit is ⟨unit='integer'⟩.",
            describe(value),
            "For instance ⟨horizon=4⟩.",
        )
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        seconds = int(np.timedelta64(value, "s").astype(np.int64))
        if 0 <= seconds <= _LONGEST_HORIZON:
            return seconds
    if isinstance(value, str) and (match := _HORIZON.fullmatch(value.strip())):
        seconds = int(match[1]) * _SECONDS[{"h": "hour", "d": "day", "w": "week"}[match[2][0]]]
        if seconds <= _LONGEST_HORIZON:
            return seconds
    raise InputError(
        "TO203",
        "⟨horizon⟩ must be a number of hours, days or weeks, of at most 100 years.",
        describe(value),
        "For instance ⟨horizon='30d'⟩, '12h' or '8w'; a month has no fixed length.",
    )


def format_horizon(horizon: int, unit: UnitName) -> str:
    """Return a horizon as it can be given: in days, hours, or seconds; of an integer unit, the integer.

    >>> format_horizon(2_592_000, "day"), format_horizon(21_600, "day"), format_horizon(90, "day")
    ('30d', '6h', '90 seconds')
    """
    if unit == "integer":
        return str(horizon)
    for name, symbol in (("day", "d"), ("hour", "h")):
        if horizon % _SECONDS[name] == 0:
            return f"{horizon // _SECONDS[name]}{symbol}"
    return f"{horizon} seconds"


def read_times(time: Any, n: int, unit: UnitName, first_row: int = 0) -> Array:
    """Return the prediction time of each row: (n,) int64 for an integer unit, else datetime64[us].

    Times with a zone become UTC, and those without are those of UTC. The rows begin with `first_row`.

    Raises TO901 for missing times, and for those that are not dates, datetimes or integers.
    """
    times = _as_moments(time, unit)
    check_one_value_per_row(times, n, "time")
    if times.dtype.kind == "M" and (is_missing := np.isnat(times)).any():
        raise InputError(
            "TO901",
            "Every row needs its prediction time.",
            f"none in row {first_row + int(is_missing.argmax()):,} ({int(is_missing.sum()):,} such rows)",
            "Fill it, or leave these rows out; the monitor cannot assign them to a cohort.",
        )
    return times if times.dtype.kind == "i" else times.astype("datetime64[us]")


def read_moment(moment: Any, unit: UnitName, name: str = "as_of") -> Moment:
    """Return the moment that the argument `name` gives; a date is the beginning of the day."""
    example = 8 if unit == "integer" else "2026-11-28"
    error = InputError(
        "TO901", f"⟨{name}⟩ must be one moment.", describe(moment), f"For instance {argument(name, example)}."
    )
    try:
        times = _as_moments([moment], unit)
    except InputError:
        raise error from None
    if times.shape != (1,) or (times.dtype.kind == "M" and np.isnat(times[0])):
        raise error
    return int(times[0]) if unit == "integer" else times[0].astype("datetime64[us]")


def format_moment(moment: Moment) -> str:
    """Return a moment as text: a date if it is the beginning of a day.

    >>> format_moment(np.datetime64("2026-11-28T00:00:00.000000")), format_moment(np.datetime64("2026-11-28T06:30"))
    ('2026-11-28', '2026-11-28T06:30:00')
    """
    if not isinstance(moment, np.datetime64):
        return str(moment)
    day = moment.astype("datetime64[D]")
    return str(day if day == moment else moment.astype("datetime64[s]"))


def refuse_future(times: Array, as_of: Moment, first_row: int) -> None:
    """Raise TO902 if rows were predicted after `as_of`. A date counts until its end; rows begin with `first_row`."""
    latest: Any = as_of
    if isinstance(as_of, np.datetime64) and as_of == as_of.astype("datetime64[D]"):
        latest = as_of + np.timedelta64(1, "D") - np.timedelta64(1, "us")
    if times.max() > latest:
        is_future = times > latest
        raise InputError(
            "TO902",
            "Rows were predicted after ⟨as_of⟩, the moment when the labels were extracted.",
            f"{times[is_future][0]} in row {first_row + int(is_future.argmax()):,} for as_of {format_moment(as_of)}"
            f" ({int(is_future.sum()):,} such rows)",
            "Pass the moment of the extraction as ⟨as_of⟩, and correct times in the future.",
        )


def _as_moments(time: Any, unit: UnitName) -> Array:
    """Convert times to datetime64, or to int64 for an integer unit."""
    try:
        array = np.asarray(time)
    except (TypeError, ValueError) as problem:
        raise _time_error(str(problem)) from None
    if unit == "integer":
        if array.dtype.kind in "iu":
            return array.astype(np.int64)
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise _time_error("missing values", "Fill them, or leave these rows out.")
        raise _time_error(f"{array.dtype} values", "With ⟨unit='integer'⟩ pass whole numbers.")
    if array.dtype.kind in "iuf" and array.size:
        raise _time_error(f"numbers, such as {array.flat[0]}", "Pass dates, or ⟨unit='integer'⟩.")
    if array.dtype.kind in "OUT":
        array = _parse_iso_dates(array) if array.dtype.kind == "U" else _parse_objects(array)
    if array.dtype.kind != "M":
        raise _time_error(f"{array.dtype} values")
    return array


def _parse_iso_dates(array: Array) -> Array:
    """Convert texts, fast if all of them are dates or datetimes in the extended ISO format without a zone."""
    if array.size and np.char.str_len(array).min() >= len("2026-11-28"):
        with suppress(ValueError, Warning), warnings.catch_warnings():
            warnings.simplefilter("error")  # which NumPy raises for a zone
            return array.astype("datetime64[us]")
    return _parse_objects(array)


def _parse_objects(array: Array) -> Array:
    """Convert dates, datetimes and texts in the ISO format; times with a zone become UTC."""
    values = [None if _is_missing(value) else value for value in array.ravel().tolist()]
    try:
        parsed = {value: _parse_time(value) for value in set(values)}
    except TypeError:  # values without a hash, such as lists
        raise _time_error(describe(values[0])) from None
    if len({has_zone for time, has_zone in parsed.values() if not np.isnat(time)}) == 2:
        raise _time_error("some times with a zone, and some without", "Give all of them in UTC.")
    return np.array([parsed[value][0] for value in values], dtype="datetime64[us]").reshape(array.shape)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or the missing value of pandas, which has no truth value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _parse_time(value: Any) -> tuple[np.datetime64, bool]:
    """Return a time in UTC, and whether it had a zone."""
    if value is None:
        return np.datetime64("NaT", "us"), False
    has_zone = False
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise _time_error(describe(value)) from None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        has_zone = True
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, (datetime.date, np.datetime64)):
        return np.datetime64(value).astype("datetime64[us]"), has_zone
    raise _time_error(describe(value))


def _time_error(
    got: str, fix: str = "Pass dates or datetimes, such as np.datetime64, or texts like '2026-11-28'."
) -> InputError:
    return InputError("TO901", "Prediction times must be dates or datetimes, without missing values.", got, fix)
