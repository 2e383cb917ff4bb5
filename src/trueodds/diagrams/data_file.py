"""Write the numbers behind a diagram, or behind a grid of diagrams, as a .csv or .json file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Any

from trueodds.core import json_files
from trueodds.core.errors import InputError
from trueodds.core.printable import without_surrogates

DATA_SUFFIXES = (".csv", ".json")


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
        writer.writerows(zip(*table.values(), strict=True))
        text = lines.getvalue()
    json_files.write_text(path, text, code)
