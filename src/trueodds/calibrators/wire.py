"""Is this file a calibrator? Written as versioned JSON, checked value by value when it is read; never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core import saved
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array

if TYPE_CHECKING:
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator


SCHEMA = "trueodds.calibrator/1"
_FAMILY = "trueodds.calibrator/"
_KEYS = ("schema", "method", "parameters", "classes", "n", "settings", "notes", "version")
_REFIT_HINT = "Fit it again and save it with .save(path)."


def save(calibrator: FittedCalibrator, path: str | os.PathLike[str]) -> None:
    """Write the calibrator; another process sees the old file or the whole new one, never a part."""
    for name in calibrator.classes:
        if not isinstance(name, (str, int, float)) or name != name:
            raise InputError(
                "TO506",
                "Only names of classes that are text or numbers can be saved.",
                f"{name!r} of type {type(name).__name__}",
                "Pass classes= with the names as text.",
            )
    text = json.dumps(calibrator.to_dict(), allow_nan=False, indent=1)
    from_dict(json.loads(text))  # what could not be read again is refused now
    saved.write(path, text + "\n", "TO503")


def load(path: str | os.PathLike[str]) -> FittedCalibrator:
    """The calibrator in a file that `save` wrote.

    Raises InputError: TO503 for a file that is no calibrator, TO504 for one of a later version, TO505 for a value
    that is missing or out of its range. Nothing in the file is ever run.
    """
    return from_dict(saved.read(path, "TO503"))


def from_dict(document: Any) -> FittedCalibrator:
    """The calibrator behind the dictionary that `FittedCalibrator.to_dict` gives."""
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator
    from trueodds.calibrators.mixed import read

    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(_FAMILY):
        raise InputError("TO503", "This is no saved calibrator.", f"schema {schema!r}", _REFIT_HINT)
    if schema != SCHEMA:
        raise InputError(
            "TO504",
            f"This version reads {SCHEMA}.",
            schema,
            "Install a later version of trueodds, or fit and save it again with this one.",
        )
    keys(document, _KEYS, "the file")
    classes = document["classes"]
    if not isinstance(classes, list) or len(classes) < 2 or not all(_is_name(name) for name in classes):
        raise _wrong("classes", "two or more names", classes)
    if len(set(classes)) != len(classes):
        raise _wrong("classes", "names that differ", classes)
    n = document["n"]
    if not _is_count(n) or n < 1:
        raise _wrong("n", "a whole number of at least 1", n)
    settings, parameters, notes = document["settings"], document["parameters"], document["notes"]
    if not isinstance(settings, dict):
        raise _wrong("settings", "an object", settings)
    if not isinstance(parameters, dict):
        raise _wrong("parameters", "an object", parameters)
    if not isinstance(notes, list) or not all(_is_note(note) for note in notes):
        raise _wrong("notes", "a list of coded texts", notes)
    if not isinstance(document["version"], str):
        raise _wrong("version", "text", document["version"])
    method = document["method"]
    spec_type = CALIBRATORS.load(method) if isinstance(method, str) and method in CALIBRATORS.names() else None
    if spec_type is None or spec_type.map_type is None:
        raise _wrong("method", "the name of a calibrator's map", method)
    return FittedCalibrator(
        read(spec_type.map_type, parameters, len(classes)),
        tuple(classes),
        n,
        settings,
        tuple(Note(note["code"], note["text"]) for note in notes),
    )


def keys(mapping: Mapping[str, Any], expected: Sequence[str], where: str) -> None:
    """Refuse a table that lacks a key or has one too many."""
    missing, extra = [key for key in expected if key not in mapping], [key for key in mapping if key not in expected]
    if missing or extra:
        got = ", ".join([f"no {key}" for key in missing] + [f"an unknown {str(key)[:40]}" for key in extra])
        raise InputError("TO505", f"A saved calibrator must have {', '.join(expected)} in {where}.", got, _REFIT_HINT)


def number(mapping: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """A finite number of the table, within its range."""
    return float(vector({key: [mapping[key]]}, key, low, high, size=1)[0])


def count(mapping: Mapping[str, Any], key: str) -> int:
    """A whole number of at least 0."""
    if not _is_count(mapping[key]) or mapping[key] < 0:
        raise _wrong(key, "a whole number of at least 0", mapping[key])
    return int(mapping[key])


def table(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A table within the table."""
    if not isinstance(mapping[key], dict):
        raise _wrong(key, "an object", mapping[key])
    nested: Mapping[str, Any] = mapping[key]
    return nested


def vector(
    mapping: Mapping[str, Any], key: str, low: float, high: float, *, size: int | None = None, increasing: str = ""
) -> Array:
    """Finite numbers within their range, of the right number and, if asked, `strictly` or `weakly` rising."""
    values, low, high = (
        mapping[key],
        float(low),
        float(high),
    )  # NumPy's numbers cannot be compared with whole ones this large
    plain = isinstance(values, list) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not plain or not values or (size is not None and len(values) != size):
        raise _wrong(key, f"{'some' if size is None else size} numbers", values)
    # Compared before anything is converted: JSON admits whole numbers that no float can hold. NaN fails too.
    if not all(low <= v <= high for v in values):
        raise _wrong(key, f"numbers from {low:g} to {high:g}", next(v for v in values if not low <= v <= high))
    array = np.array(values, dtype=np.float64)
    steps = np.diff(array)
    if (increasing == "strictly" and (steps <= 0).any()) or (increasing == "weakly" and (steps < 0).any()):
        raise _wrong(key, f"{increasing} rising numbers", values)
    return array


def _wrong(key: str, expected: str, got: Any) -> InputError:
    text = repr(got)
    return InputError(
        "TO505",
        f"In a saved calibrator {key} must be {expected}.",
        text if len(text) < 60 else text[:57] + "...",
        _REFIT_HINT,
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < float("inf"))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_note(value: Any) -> bool:
    return (
        isinstance(value, dict) and set(value) == {"code", "text"} and all(isinstance(v, str) for v in value.values())
    )
