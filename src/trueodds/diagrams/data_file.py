"""Write the numbers behind a diagram, or behind a grid of diagrams, as a .csv or .json file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Any

from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.printable import spreadsheet_text, without_surrogates
from trueodds.core.settings import check

DATA_SUFFIXES = (".csv", ".json")


def output_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to be written; raise TO703 if it ends with a separator, and so names a folder."""
    if not os.path.basename(check("path", path, str | os.PathLike)):
        raise InputError("TO703", "The file cannot be written.", f"the folder {path}", "Name a file in the folder.")
    return Path(path)


def is_data_file(path: Path, picture_settings: Mapping[str, Any]) -> bool:
    """Return whether a file name ends with .csv or .json; then raise TO203 if any of `picture_settings` is not None.

    >>> is_data_file(Path("a.csv"), {"dpi": None}), is_data_file(Path("a.png"), {"dpi": 300})
    (True, False)
    """
    if path.suffix.lower() not in DATA_SUFFIXES:
        return False
    if unused := [name for name, value in picture_settings.items() if value is not None]:
        fix = f"Leave {unused[0]} out, or write a .svg, .png or .pdf."
        raise InputError("TO203", "A file of data has no title, legend or size.", f"{unused[0]} for {path.name}", fix)
    return True


def write_data_file(
    path: str | Path, content: Mapping[str, Any], table: Mapping[str, Sequence[Any]], code: str = "TO703"
) -> None:
    """Write `content` as strict JSON or, if the file name ends with .csv, the columns of `table` as CSV.

    `code` is the code of the error that is raised if the file cannot be written.
    """
    if Path(path).suffix.lower() == ".json":
        text = without_surrogates(dumps(content, allow_nan=False, indent=2)) + "\n"
    else:
        lines = io.StringIO()
        writer = csv.writer(lines)
        writer.writerow(table)
        for row in zip(*table.values(), strict=True):
            writer.writerow([spreadsheet_text(cell) if isinstance(cell, str) else cell for cell in row])
        text = lines.getvalue()
    json_files.write_text(path, text, code)
