"""Where an answer goes: to the terminal, as JSON, into a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from trueodds.core.errors import InputError

_COLORS: dict[str, dict[str, Any]] = {
    "good": {"fg": "green", "bold": True},
    "bad": {"fg": "red", "bold": True},
    "sentence": {"bold": True},
    "title": {"bold": True},
    "value": {"bold": True},
    "dim": {"dim": True},
}


def ready(*paths: str | None) -> None:
    """Refuse a place that cannot be written before the work begins, not after."""
    for path in paths:
        if path is None or path == "-":
            continue
        folder = Path(path).expanduser().resolve().parent
        if Path(path).is_dir():
            raise InputError("TO602", "A file is to be written where a folder is.", path, "Name a file in it.")
        if not folder.is_dir():
            raise InputError("TO602", "The folder to write into does not exist.", str(folder), "Make it first.")
        target = Path(path) if Path(path).exists() else folder
        if not os.access(target, os.W_OK):
            raise InputError("TO602", "This place cannot be written.", str(target), "Choose another one.")


def write(path: str, text: str) -> None:
    """Text into a file, or to stdout for -."""
    if path == "-":
        click.echo(text)
        return
    Path(path).write_text(text + "\n", encoding="utf-8")


def as_json(answer: Mapping[str, Any]) -> str:
    """One strict JSON object; ASCII, so that any terminal and any reader takes it."""
    import json

    return json.dumps(answer, allow_nan=False, indent=2)


def answer(said: str, notes: Iterable[Any], told: Mapping[str, Any], json_path: str | None) -> None:
    """One line and its notes; or, where JSON goes to stdout, nothing but that."""
    if json_path is not None:
        write(json_path, as_json(told))
    if json_path != "-":
        click.echo(said)
        for note in notes:
            click.echo(f"  {note}")


def colored(stream: Any = None) -> bool:
    """Whether colors are wanted: on a terminal, unless NO_COLOR says otherwise."""
    stream = stream or sys.stdout
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(piece: str, role: str) -> str:
    """A piece of the report in the color of its role."""
    return click.style(piece, **_COLORS.get(role, {}))


def width() -> int | None:
    """How wide the terminal is; None where there is none."""
    import shutil

    return min(shutil.get_terminal_size().columns, 110) if sys.stdout.isatty() else None
