"""Write a table of formatted cells as text, Markdown or HTML."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import Self

from trueodds.core.errors import Note
from trueodds.core.notebook_html import frame_html, notes_html, paragraph_html, table_html
from trueodds.core.table_layout import TEXT_WIDTH, display_width, layout_table

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")


@dataclass(frozen=True)
class FormattedCell:
    """The texts of one cell."""

    value: str
    interval: tuple[str, str] | None = None
    noise_floor: str | None = None
    is_bold: bool = False

    def select_parts(self, *, interval: bool, noise_floor: bool) -> Self:
        """Return the cell with the value and those other parts that are requested."""
        return replace(
            self,
            interval=self.interval if interval else None,
            noise_floor=self.noise_floor if noise_floor else None,
        )

    @property
    def interval_text(self) -> str:
        """The interval in brackets; empty without one."""
        return "" if self.interval is None else f"[{self.interval[0]}, {self.interval[1]}]"

    @property
    def noise_floor_text(self) -> str:
        """The noise floor in parentheses; empty without one."""
        return "" if self.noise_floor is None else f"({self.noise_floor})"


@dataclass(frozen=True)
class FormattedTable:
    """The texts of a table: names of the rows, headings with their signs, cells by row, and the caption."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    arrows: tuple[str, ...]
    cells: tuple[tuple[FormattedCell, ...], ...]
    caption: str


def format_text(table: FormattedTable, width: int = TEXT_WIDTH) -> list[str]:
    """Return the lines of the table as text of limited width.

    The parts of a cell are in one line if the table fits, else below each other. If that does not suffice, the columns
    are divided into blocks.
    """
    headings = ["", *(f"{label} {arrow}" for label, arrow in zip(table.labels, table.arrows, strict=True))]
    cell_parts = [[_text_parts(cell) for cell in row] for row in table.cells]
    rows = [[name, *map(" ".join, row)] for name, row in zip(table.names, cell_parts, strict=True)]
    is_numeric, is_name = [False] * len(headings), [True, *[False] * len(table.labels)]
    blocks = layout_table(headings, rows, is_numeric, width, is_shortened=is_name)
    if len(blocks) > 1 or any(display_width(line) > width for line in (*blocks[0].heading, *blocks[0].rows)):
        rows = []
        for name, row in zip(table.names, cell_parts, strict=True):
            rows += [list(line) for line in zip_longest([name], *row, fillvalue="")]
        blocks = layout_table(headings, rows, is_numeric, width, is_shortened=is_name)
    lines = [line for block in blocks for line in ("", *block.heading, *block.rows)]
    return [*lines[1:], *_caption_lines(table, width)]


def _caption_lines(table: FormattedTable, width: int) -> list[str]:
    """Return the caption, with * in place of bold type."""
    caption = table.caption.replace("Bold: ", "*: ").replace("No value is bold, ", "No value is marked *, ")
    caption = re.sub(r"(?<=\bn) = (?=\d)|(?<=\d) (?=%)", lambda match: match[0].replace(" ", "\u00a0"), caption)
    lines = textwrap.wrap(caption, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _text_parts(cell: FormattedCell) -> list[str]:
    """Return value, interval and noise floor of a cell."""
    value = f"{cell.value}*" if cell.is_bold else cell.value
    return [value, *filter(None, (cell.interval_text, cell.noise_floor_text))]


def format_markdown(table: FormattedTable) -> str:
    """Return the table in Markdown."""
    headings = [f"{_escape_markdown(label)} {arrow}" for label, arrow in zip(table.labels, table.arrows, strict=True)]
    lines = [_markdown_row(["", *headings]), _markdown_row([":---"] * (1 + len(headings)))]
    for name, row in zip(table.names, table.cells, strict=True):
        lines.append(_markdown_row([_escape_markdown(name), *map(_markdown_cell, row)]))
    return "\n".join([*lines, *(["", _escape_markdown(table.caption)] if table.caption else [])])


def _markdown_cell(cell: FormattedCell) -> str:
    """Return value, interval and noise floor of a cell in Markdown."""
    value = f"**{cell.value}**" if cell.is_bold else cell.value
    return " ".join(filter(None, (value, cell.interval_text, cell.noise_floor_text)))


def _markdown_row(texts: Sequence[str]) -> str:
    """Return a row of a Markdown table with these cells."""
    return f"| {' | '.join(texts)} |"


def _escape_markdown(text: str) -> str:
    r"""Escape what Markdown reads as markup.

    >>> print(_escape_markdown("log_loss|a"))
    log\_loss\|a
    """
    return _MARKDOWN_SPECIAL.sub(r"\\\1", text)


def format_html(table: FormattedTable, notes: Sequence[Note]) -> str:
    """Return the table in HTML for a notebook, with the notes in a list below it."""
    headings = ["", *(f"{label} {arrow}" for label, arrow in zip(table.labels, table.arrows, strict=True))]
    rows = [[name, *row] for name, row in zip(table.names, table.cells, strict=True)]
    text = table_html(headings, rows, [False] * len(headings), _cell_html, has_row_headings=True)
    return frame_html(text, paragraph_html(table.caption) if table.caption else "", notes_html(notes))


def _cell_html(cell: FormattedCell | str) -> str:
    """Return a cell in HTML, with interval and noise floor below the value; a name is text."""
    if isinstance(cell, str):
        return escape(cell)
    value = f"<strong>{escape(cell.value)}</strong>" if cell.is_bold else escape(cell.value)
    details = " ".join(filter(None, (cell.interval_text, cell.noise_floor_text)))
    return f"{value}{f'<br><small>{escape(details)}</small>' if details else ''}"
