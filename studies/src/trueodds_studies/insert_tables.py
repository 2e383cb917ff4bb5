"""Insert the tables that a study saved into a page of the documentation.

Usage: `python -m trueodds_studies.insert_tables docs/level.md DIR/level.tests.md DIR/uniform.md`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from trueodds.core import json_files


def insert_table(page: Path, table: Path) -> None:
    """Replace the text between `<!-- NAME -->` and `<!-- end of NAME -->` in a page by that of the saved table NAME.md.

    The rest of the page does not change. Raises LookupError if the page has no such lines.
    """
    name = table.stem
    text = page.read_text(encoding="utf-8")
    marked = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    if not marked.search(text):
        raise LookupError(f"{page} has no lines <!-- {name} --> and <!-- end of {name} --> to put the table between.")
    table_text = table.read_text(encoding="utf-8")
    json_files.write_text(page, marked.sub(lambda match: f"{match[1]}{table_text}{match[2]}", text), "TO801")


def main(arguments: Sequence[str]) -> None:
    """Insert several tables; `arguments` are the page and the files of the tables."""
    page, *tables = (Path(argument) for argument in arguments)
    for table in tables:
        insert_table(page, table)


if __name__ == "__main__":
    main(sys.argv[1:])
