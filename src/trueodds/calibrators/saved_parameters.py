"""Read the parameters of a saved calibrator, checking the type and range of each value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, min_prob_for_slopes
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array

REFIT_HINT = "Fit it again and save it with .save(path)."


def check_keys(mapping: Mapping[str, Any], expected: Sequence[str], where: str) -> None:
    """Raise TO505 if a table lacks a key or has an unknown one; `where` names the table in the message."""
    missing, extra = [key for key in expected if key not in mapping], [key for key in mapping if key not in expected]
    if missing or extra:
        got = ", ".join([f"no {key}" for key in missing] + [f"an unknown {str(key)[:40]}" for key in extra])
        raise InputError("TO505", f"A saved calibrator must have {', '.join(expected)} in {where}.", got, REFIT_HINT)


def read_number(mapping: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """Read a finite number within its range."""
    return float(read_vector({key: [mapping[key]]}, key, low, high, size=1)[0])


def reversed_min_prob_to_dict(slope: float, min_prob: float) -> dict[str, float]:
    """`min_prob` as a saved parameter of a curve, which needs it only if its slope is negative and it is no default."""
    return {"min_prob": min_prob} if min_prob_for_slopes(slope, min_prob) not in (0, MIN_PROB) else {}


def read_reversed_min_prob(mapping: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """The other parameters of a curve, and its `min_prob`."""
    others = {key: value for key, value in mapping.items() if key != "min_prob"}
    if len(others) == len(mapping):
        return others, MIN_PROB
    return others, read_number(mapping, "min_prob", math.nextafter(0, 1), 0.5)


def read_count(mapping: Mapping[str, Any], key: str) -> int:
    """Read a whole number of at least 0; raises TO505 for anything else."""
    if not is_count(mapping[key]) or mapping[key] < 0:
        raise invalid_value_error(key, "a whole number of at least 0", mapping[key])
    return int(mapping[key])


def read_table(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Read a nested table; raises TO505 for anything else."""
    if not isinstance(mapping[key], dict):
        raise invalid_value_error(key, "an object", mapping[key])
    nested: Mapping[str, Any] = mapping[key]
    return nested


def read_vector(
    mapping: Mapping[str, Any], key: str, low: float, high: float, *, size: int | None = None, increasing: str = ""
) -> Array:
    """Read finite numbers from `low` to `high` as an array (n,); raises TO505 for anything else.

    `size` is the required length, by default at least 1. `increasing` is "strictly" or "weakly" if they must increase.
    """
    values = mapping[key]
    low, high = float(low), float(high)  # NumPy numbers cannot be compared with integers that no float can hold
    are_numbers = isinstance(values, list) and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) for v in values
    )
    if not are_numbers or not values or (size is not None and len(values) != size):
        raise invalid_value_error(key, f"{'some' if size is None else size} numbers", values)
    # Compared before conversion: JSON allows integers that no float can hold. NaN fails too.
    if not all(low <= v <= high for v in values):
        raise invalid_value_error(
            key, f"numbers from {low:g} to {high:g}", next(v for v in values if not low <= v <= high)
        )
    array = np.array(values, dtype=np.float64)
    steps = np.diff(array)
    if (increasing == "strictly" and (steps <= 0).any()) or (increasing == "weakly" and (steps < 0).any()):
        raise invalid_value_error(key, f"{increasing} increasing numbers", values)
    return array


def invalid_value_error(key: str, expected: str, got: Any) -> InputError:
    """The error TO505 for a saved value that is invalid."""
    text = repr(got)
    return InputError(
        "TO505",
        f"In a saved calibrator {key} must be {expected}.",
        text if len(text) < 60 else text[:57] + "...",
        REFIT_HINT,
    )


def is_count(value: Any) -> bool:
    """Whether a value is a whole number and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def read_flag(mapping: Mapping[str, Any], key: str) -> bool:
    """Read true or false."""
    if not isinstance(mapping[key], bool):
        raise InputError(
            "TO505",
            f"In a saved calibrator {key} must be true or false.",
            repr(mapping[key])[:40],
            "Fit it again and save it with .save(path).",
        )
    return bool(mapping[key])


def read_class_names(mapping: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """Read the names of at least two classes."""
    names = mapping[key]
    if not isinstance(names, list) or len(names) < 2 or not all(map(_is_class_name, names)):
        raise invalid_value_error(key, "two or more names", names)
    if len(set(names)) != len(names):
        raise invalid_value_error(key, "names that differ", names)
    return tuple(names)


def _is_class_name(value: Any) -> bool:
    """Whether a saved value can be the name of a class."""
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < float("inf"))


def read_notes(mapping: Mapping[str, Any], key: str) -> tuple[Note, ...]:
    """Read a list of notes, each an object with a code and a text."""
    notes = mapping[key]
    if not isinstance(notes, list) or not all(map(_is_note, notes)):
        raise invalid_value_error(key, "a list of coded texts", notes)
    return tuple(Note(**note) for note in notes)


def _is_note(value: Any) -> bool:
    """Whether a saved value is a note: an object with a code and a text."""
    return (
        isinstance(value, dict) and set(value) == {"code", "text"} and all(isinstance(v, str) for v in value.values())
    )
