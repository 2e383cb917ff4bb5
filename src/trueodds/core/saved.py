"""How results are kept: strict JSON, written as a whole or not at all, never a pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

from trueodds.core.atomic import replacing
from trueodds.core.errors import InputError
from trueodds.core.settings import check


def write(path: str | os.PathLike[str], text: str, code: str) -> None:
    """Write a text file; another process sees the old file or the whole new one, never a part."""
    with replacing(check("path", path, str | os.PathLike), code) as file:
        file.write(text.encode())


def read(path: str | os.PathLike[str], code: str) -> Any:
    """The document of a strict JSON file; NaN and Infinity are none."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:  # a name with a null character is a ValueError, and so is no UTF-8
        raise InputError(code, "The file cannot be read.", str(problem), "Check the path.") from None
    return parsed(text, code, str(path))


def parsed(text: str, code: str, what: str = "the text") -> Any:
    """The document of a strict JSON text.

    >>> parsed('{"n": 1}', "TO402")
    {'n': 1}
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise InputError(
            code, f"{what} holds no JSON.", str(problem)[:200], "Give a file that trueodds saved."
        ) from None


def schema_of(path: str | os.PathLike[str]) -> str | None:
    """The family that a file says it belongs to, such as `trueodds.tally`; None where it says nothing."""
    try:
        with Path(path).expanduser().open(encoding="utf-8") as file:
            start = file.read(4096)
    except (OSError, ValueError):
        return None
    for family in ("trueodds.tally", "trueodds.calibrator"):
        if f'"{family}/' in start:
            return family
    return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
