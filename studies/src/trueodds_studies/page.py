"""Insert the tables that a study saved into a page of the documentation."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from trueodds.core import json_files


def write_into(page: Path, table: Path) -> None:
    """Puts the text that a study saved between `<!-- NAME -->` and `<!-- end of NAME -->`, NAME being the file's.

    The rest of the page stays as it is.
    """
    name, text = table.stem, page.read_text(encoding="utf-8")
    marked = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    if not marked.search(text):
        raise LookupError(f"{page} has no lines <!-- {name} --> and <!-- end of {name} --> to put the table between.")
    new = table.read_text(encoding="utf-8")
    json_files.write_text(page, marked.sub(lambda match: f"{match[1]}{new}{match[2]}", text), "TO801")


def main(words: Sequence[str]) -> None:
    """The page, then the files: `docs/level.md DIR/level.tests.md DIR/uniform.md`."""
    page, *tables = (Path(word) for word in words)
    for table in tables:
        write_into(page, table)


if __name__ == "__main__":
    main(sys.argv[1:])
