"""Write results to the terminal or a file, as text or JSON, and check the paths of output files beforehand."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import click

from trueodds.cli.messages import note_line
from trueodds.core.atomic_write import check_writable
from trueodds.core.errors import InputError
from trueodds.core.printable import printable_lines, without_surrogates
from trueodds.core.table import TEXT_WIDTH, display_width

MAX_TEXT_WIDTH = 110  # maximum number of columns of text, because longer lines are hard to read
# The color and weight of each role of text in a report.
_COLORS: dict[str, dict[str, Any]] = {
    "good": {"fg": "green", "bold": True},
    "bad": {"fg": "red", "bold": True},
    "sentence": {"bold": True},
    "title": {"bold": True},
    "value": {"bold": True},
    "dim": {"dim": True},
}


def check_outputs(inputs: Iterable[str], **outputs: str | None) -> None:
    """Check that the output paths can be written and overwrite no input, before the work begins."""
    destinations = {f"--{name}": path for name, path in outputs.items() if path is not None}
    for option, path in destinations.items():
        if path == "-" and option != "--json":
            raise InputError("TO603", f"{option} writes a file, not to stdout.", f"{option} -", "Name a file.")
    files = {option: path for option, path in destinations.items() if path != "-"}
    _check_distinct(files, inputs)
    for path in files.values():
        check_writable(path, "TO602")


def _check_distinct(files: Mapping[str, str], inputs: Iterable[str]) -> None:
    """Raise TO603 if two options would write to the same file, or one to a file that is read."""
    read_identifiers = {
        identifier for path in inputs for match in _matching_paths(path) for identifier in _file_identifiers(match)
    }
    option_of_identifier: dict[Any, str] = {}
    for option, path in files.items():
        for identifier in _file_identifiers(path):
            if identifier in read_identifiers:
                raise InputError("TO603", f"{option} would overwrite a file that is read.", path, "Name another file.")
            if (other := option_of_identifier.setdefault(identifier, option)) != option:
                raise InputError(
                    "TO603", f"{other} and {option} would write to the same file.", path, "Name two files."
                )


def _matching_paths(path: str) -> list[str]:
    """Return the files that match a path or a pattern, as the sources read them."""
    path = os.path.expanduser(path)
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    return glob.glob(path, recursive=True)


def _file_identifiers(path: str) -> list[Any]:
    """Return identifiers of a file that all its names share: its real path and, if it exists, its inode."""
    path = os.path.expanduser(path)
    try:
        file_stat = os.stat(path)
    except OSError:
        return [os.path.realpath(path)]
    if not stat.S_ISREG(file_stat.st_mode):
        return []  # a terminal or /dev/null loses nothing
    return [os.path.realpath(path), (file_stat.st_dev, file_stat.st_ino)]


def save_text(path: str, text: str) -> None:
    """Write text into a file, or to stdout for -."""
    if path == "-":
        print_text(text, is_verbatim=True)
        return
    from trueodds.core import json_files

    json_files.write_text(path, text + "\n", "TO602")
    print_written(path)


def print_written(path: str) -> None:
    print_text(f"{path} written", err=True)


def print_text(text: str, *, err: bool = False, is_colored: bool = False, is_verbatim: bool = False) -> None:
    """Print text; all commands use it, so that control characters in the data cannot affect the terminal.

    In colored text names are already printable, and the escape sequences are colors. On a terminal other text is
    wrapped at its width, unless it is verbatim, as JSON; in a pipe or a file every result and note is one line. If
    stderr is closed, the exit code still reports the result.
    """
    if not is_colored:
        text = printable_lines(text)
        width = None if is_verbatim else terminal_width(sys.stderr if err else sys.stdout)
        text = text if width is None else wrap_lines(text, width)
    try:
        click.echo(text, err=err)
    except OSError:
        if not err:
            raise
        redirect_to_null_device(sys.stderr)


def wrap_lines(text: str, width: int, hanging: int = 2) -> str:
    """Wrap every line that is too long at blanks; its continuation is indented by `hanging` more columns than it.

    >>> print(wrap_lines("  [TN105] Bins contain few rows.", 20, hanging=4))
      [TN105] Bins
          contain few
          rows.
    """
    import textwrap

    lines = []
    for line in text.split("\n"):
        if display_width(line) <= width:
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=indent + " " * hanging,
            break_on_hyphens=False,
            break_long_words=False,
            drop_whitespace=True,
        )
    return "\n".join(lines)


def redirect_to_null_device(stream: Any) -> None:
    """Redirect a closed or full stream to the null device, so that the final flush does not fail."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def format_json(report: Mapping[str, Any]) -> str:
    """Return a strict JSON object in ASCII, which any terminal and reader accepts."""
    import json

    return without_surrogates(json.dumps(report, allow_nan=False, indent=2))


def print_result(
    text: str, notes: Iterable[Any], report: Mapping[str, Any], json_path: str | None, *, is_verbatim: bool = False
) -> None:
    """Print one line and its notes, or only JSON if that goes to stdout; verbatim text is not wrapped, as a table.

    The file is written first, because a reader such as `head` may close stdout; text is printed even if that fails.
    """
    try:
        if json_path is not None:
            save_text(json_path, format_json(report))
    finally:
        if json_path != "-":
            print_text(text, is_verbatim=is_verbatim)
            for note in notes:
                print_text(f"  {note_line(note)}")


def uses_colors(stream: Any = None) -> bool:
    """Return whether to use colors: on a terminal, unless NO_COLOR is set."""
    stream = stream or sys.stdout
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def colorize(piece: str, role: str) -> str:
    return click.style(piece, **_COLORS.get(role, {}))


def terminal_width(stream: Any = None) -> int | None:
    """Return the width of the terminal that a stream, by default stdout, writes to, at most 110; None without one."""
    import shutil

    stream = stream or sys.stdout
    is_terminal = stream is not None and not stream.closed and stream.isatty()  # a closed stdout is None
    return min(shutil.get_terminal_size().columns, MAX_TEXT_WIDTH) if is_terminal else None


def text_width() -> int:
    """Return the number of columns of text: those of the terminal, and 80 without one."""
    return terminal_width() or TEXT_WIDTH
