"""What the documentation reports about a single method: the rows of its tables that are about that method."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .markdown_tables import Table, read_tables, relocate_links, slug, write_table


@dataclass(frozen=True)
class Source:
    """A table of measurements: the page, the heading above it or "" for any, and what the reader learns from it."""

    page: str
    heading: str
    topic: str


OVERVIEW = {
    "estimators": Source("estimators.md", "All estimators", ""),
    "tests": Source("tests.md", "All tests", ""),
    "calibrators": Source("calibrators.md", "All calibrators", ""),
    "diagrams": Source("diagrams.md", "All diagrams", ""),
}
SOURCES = {
    "estimators": (
        Source("estimators.md", "Accuracy and coverage", "Bias, accuracy, and coverage of the interval"),
        Source("estimators.md", "Intervals", "Coverage and width of the interval in more designs"),
    ),
    "tests": (
        Source("level.md", "Size and power of the tests", "Size and power"),
        Source("level.md", "Uniformity of the p-values", "Uniformity of the p-values"),
    ),
    "calibrators": (
        Source("calibrators.md", "Data larger than memory", "Passes over data larger than memory"),
        Source("fixes.md", "", "Results on real predictions"),
    ),
    "diagrams": (),
}
# Jobs of the page on speed that time a method. The heading of a job begins with these words.
SPEED = {
    ("estimators", "ece"): ("top-label ECE", "class-wise ECE", "equal-mass ECE"),
    ("estimators", "smece"): ("smooth ECE",),
    ("tests", "skce"): ("SKCE",),
    ("calibrators", "temperature"): ("temperature",),
    ("calibrators", "vector"): ("vector scaling",),
    ("calibrators", "dirichlet"): ("Dirichlet calibration",),
    ("calibrators", "isotonic"): ("isotonic",),
}


def names_of_row(row: tuple[str, ...]) -> set[str]:
    """Return the names of methods in the first cell of a row.

    >>> sorted(names_of_row(("`ks`, `ecce_mad`", "…"))), names_of_row(("skce block", "…"))
    (['ecce_mad', 'ks'], {'skce'})
    """
    return set(re.findall(r"`(\w+)`", row[0])) or set(re.findall(r"^\w+", row[0]))


def rows_of_method(table: Table, name: str) -> list[tuple[str, ...]]:
    """Return the rows of a table that are about a method."""
    return [row for row in table.rows if name in names_of_row(row)]


def overview_sentence(docs: Path, family: str, name: str) -> str:
    """Return the row of the method in the list of its family as text, with links valid on the page of the method."""
    source = OVERVIEW[family]
    for table in _tables_of(docs, source):
        for row in rows_of_method(table, name):
            parts = [f"{title}: {cell}" for title, cell in zip(table.header[1:], row[1:], strict=True) if cell]
            return relocate_links("; ".join(parts), source.page, f"reference/{family}")
    return ""


def _tables_of(docs: Path, source: Source) -> list[Table]:
    return [table for table in read_tables(docs, source.page) if source.heading in ("", table.heading)]


def measured_sections(docs: Path, family: str, name: str) -> list[str]:
    """Return sections in Markdown with everything that was measured of a method, each with a link to its source."""
    sections = []
    for source in SOURCES[family]:
        matches = [(table, rows) for table in _tables_of(docs, source) if (rows := rows_of_method(table, name))]
        if matches:
            sections.append(_section(source, matches, family))
    if speed := _speed_section(docs, family, name):
        sections.append(speed)
    return sections


def _section(source: Source, matches: list[tuple[Table, list[tuple[str, ...]]]], family: str) -> str:
    """One table per header; where several tables have the same one, a first column names the heading of each."""
    folder = f"reference/{family}"
    by_header: dict[tuple[str, ...], list[tuple[Table, list[tuple[str, ...]]]]] = {}
    for table, rows in matches:
        by_header.setdefault(table.header, []).append((table, rows))
    tables = []
    for header, group in by_header.items():
        if len(group) == 1:
            tables.append(write_table(header, group[0][1]))
        else:
            rows = [(f"[{table.heading}]({table.target})", *row) for table, rows in group for row in rows]
            tables.append(write_table(("data", *header), rows))
    table = matches[0][0]
    target = table.target if len(matches) == 1 and source.heading else table.page
    label = table.heading if len(matches) == 1 and source.heading else table.title
    text = "\n\n".join([f"### {source.topic}", f"From [{label}]({target}), which explains the columns.", *tables])
    return relocate_links(text, source.page, folder)


def _speed_section(docs: Path, family: str, name: str) -> str:
    rows = []
    header: tuple[str, ...] = ()
    for table in read_tables(docs, "speed.md"):
        if table.heading.startswith(SPEED.get((family, name), ("\0",))):
            header = table.header[1:-2]  # without the value and the remark
            rows += [
                (f"[{table.heading}]({table.target})", row[0], *row[1:-2])
                for row in table.rows
                if row[0].startswith("trueodds")
            ]
    if not rows:
        return ""
    text = "The page [Speed](speed.md) names the machines and has the times of other packages for the same jobs."
    section = "\n\n".join(["### Speed", text, write_table(("job", "call", *header), rows)])
    return relocate_links(section, "speed.md", f"reference/{family}")


def missing_speed_jobs(docs: Path) -> list[str]:
    """Return the jobs named in SPEED that the page on speed does not have."""
    headings = [table.heading for table in read_tables(docs, "speed.md")]
    return [job for jobs in SPEED.values() for job in jobs if not any(head.startswith(job) for head in headings)]


def anchors_of_page(docs: Path, page: str) -> set[str]:
    """Return the anchors of all headings of a page."""
    text = re.sub(r"^```.*?^```", "", (docs / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
