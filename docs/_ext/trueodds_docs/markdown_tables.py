"""Tables of a Markdown page as records, each with the heading above it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RULE = re.compile(r"^\|[\s:|-]+\|$")
LINK = re.compile(r"\]\((?!\w+:)([^)]+)\)")


@dataclass(frozen=True)
class Table:
    """A table: the page, the title of the page, the heading above the table, the header, and the rows."""

    page: str  # path relative to the folder of the documentation, such as "studies/level.md"
    title: str
    heading: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def target(self) -> str:
        """Path and anchor of the heading."""
        return f"{self.page}#{slug(self.heading)}"


def read_tables(docs: Path, page: str) -> list[Table]:
    """Return the tables of a page in their order.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.md").write_text("# A\\n\\n## B c\\n\\n| x | y |\\n|---|---|\\n| 1 | 2 |\\n", encoding="utf-8")
    >>> (table,) = read_tables(folder, "a.md")
    >>> table.target, table.header, table.rows
    ('a.md#b-c', ('x', 'y'), (('1', '2'),))
    """
    return list(_tables(page, (docs / page).read_text(encoding="utf-8").split("\n")))


def _tables(page: str, lines: list[str]) -> Iterator[Table]:
    title = heading = ""
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        if is_code:
            continue
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
            title = title or heading
        elif RULE.match(line) and number and lines[number - 1].startswith("|"):
            rows = []
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(split_row(row))
            yield Table(page, title, heading, split_row(lines[number - 1]), tuple(rows))


def split_row(line: str) -> tuple[str, ...]:
    r"""Return the cells of a row. A vertical bar within a cell is written as ``\|``.

    >>> split_row(r"| a | `b \| c` | |")
    ('a', '`b \\| c`', '')
    """
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1])


def write_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown.

    >>> print(write_table(("a", "b"), [("1", "2")]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def slug(heading: str) -> str:
    """Return the anchor that a Git host gives to a heading.

    >>> slug("A gate for CI"), slug("The `x_y` of a, b")
    ('a-gate-for-ci', 'the-x_y-of-a-b')
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def relocate_links(text: str, page: str, folder: str) -> str:
    """Return text of `page` with relative links that are valid in `folder`.

    >>> relocate_links("[x](level.md#a) [y](#b)", "estimators.md", "reference/estimators")
    '[x](../../level.md#a) [y](../../estimators.md#b)'
    """

    def relocate(match: re.Match[str]) -> str:
        path, mark, anchor = match[1].partition("#")
        target = posixpath.join(posixpath.dirname(page), path) if path else page
        return f"]({posixpath.relpath(target, folder)}{mark}{anchor})"

    return LINK.sub(relocate, text)
