"""Lay out a table as text of a limited width: break headings, shorten names, and continue it in further blocks."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

TEXT_WIDTH = 80  # columns of text outside of a terminal
_GAP = "  "  # between two columns
# Names of the first column are shortened to half of the width of the table, within these limits.
_MIN_NAME_WIDTH, _MAX_NAME_WIDTH = 20, 40
_MAX_OTHER_NAME_WIDTH = 28  # maximum width of the names in other columns


@dataclass(frozen=True, slots=True)
class TableBlock:
    """The lines of a table, or of some of its columns beside the first one.

    Attributes
    ----------
    heading : tuple of str
        The lines of the headings.
    rows : tuple of str
        One line per row.
    """

    heading: tuple[str, ...]
    rows: tuple[str, ...]


def layout_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    is_numeric: Sequence[bool],
    width: int = TEXT_WIDTH,
    *,
    is_shortened: Sequence[bool] | None = None,
) -> list[TableBlock]:
    """Lay out a table in one or more blocks of at most `width` characters, if the first column and one other fit.

    Numbers are aligned to the right and never shortened, names to the left; long names lose their middle, in all
    columns of names or in those of `is_shortened`. A table that is too wide gets headings of two lines. If that does
    not suffice, it is continued in further blocks, which repeat the first column.

    >>> rows = [("site=north", "0.1825", "miscalibrated"), ("site=south", "0.0732", "within")]
    >>> (block,) = layout_table(("group", "noise floor", "status"), rows, (False, True, False), 36)
    >>> print("\\n".join([*block.heading, *block.rows]))
                 noise
    group        floor  status
    site=north  0.1825  miscalibrated
    site=south  0.0732  within
    """
    may_shorten = [not numeric for numeric in is_numeric] if is_shortened is None else is_shortened
    cells = [[row[i] for row in rows] for i in range(len(headings))]
    one_line_headings = [[heading] for heading in headings]
    names = [
        _shorten_column(column, i, width) if shortened else list(column)
        for i, (column, shortened) in enumerate(zip(cells, may_shorten, strict=True))
    ]
    if _total_width(_column_widths(one_line_headings, names)) <= width:
        return [_format_block(one_line_headings, names, is_numeric)]
    broken_headings = [_break_heading(heading, column) for heading, column in zip(headings, names, strict=True)]
    column_groups = _split_columns(_column_widths(broken_headings, names), width)
    blocks = []
    for group in column_groups:
        columns = [names[i] for i in group]
        group_headings = [one_line_headings[i] for i in group]
        if _total_width(_column_widths(group_headings, columns)) > width:
            group_headings = [broken_headings[i] for i in group]
        blocks.append(_format_block(group_headings, columns, [is_numeric[i] for i in group]))
    return blocks


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: characters of East Asian scripts take two.

    >>> display_width("abc"), display_width("猫"), display_width("e\\u0301")
    (3, 2, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shorten_middle(text: str, max_width: int) -> str:
    """Return the text, with an ellipsis instead of its middle if it is too wide.

    >>> shorten_middle("site=a very long name", 11)
    'site=… name'
    """
    if display_width(text) <= max_width:
        return text
    half = (max_width - 1) // 2
    start, end = text[:half], text[-half:]
    while display_width(start) > half:
        start = start[:-1]
    while display_width(end) > half:
        end = end[1:]
    return f"{start}…{end}"


def _shorten_column(column: Sequence[str], position: int, width: int) -> list[str]:
    """Return the names of a column, shortened; those of the first column are shortened the least."""
    max_width = min(max(width // 2, _MIN_NAME_WIDTH), _MAX_NAME_WIDTH)
    return [
        shorten_middle(cell, max_width if position == 0 else min(max_width, _MAX_OTHER_NAME_WIDTH)) for cell in column
    ]


def _break_heading(heading: str, column: Sequence[str]) -> list[str]:
    """Return a heading in two lines of similar length if it is wider than its column, else in one."""
    words = heading.split(" ")
    if len(words) == 1 or display_width(heading) <= max(map(display_width, column), default=0):
        return [heading]
    lines = [[" ".join(words[:i]), " ".join(words[i:])] for i in range(1, len(words))]
    return min(lines, key=lambda pair: max(map(display_width, pair)))


def _column_widths(headings: Sequence[Sequence[str]], columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the display width of each column, with the lines of its heading."""
    return [max(map(display_width, [*heading, *column])) for heading, column in zip(headings, columns, strict=True)]


def _total_width(widths: Sequence[int]) -> int:
    """Return the width of a table with columns of these widths."""
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _split_columns(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return the column indices of each block, with the first column in all of them, so that no block is too wide."""
    groups = [[0]]
    for i in range(1, len(widths)):
        if len(groups[-1]) > 1 and _total_width([widths[j] for j in (*groups[-1], i)]) > width:
            groups.append([0])
        groups[-1].append(i)
    return groups


def _format_block(
    headings: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], is_numeric: Sequence[bool]
) -> TableBlock:
    """Return the lines of a block, with aligned columns; shorter headings are at the bottom of the heading."""
    widths = _column_widths(headings, columns)
    n_lines = max(map(len, headings))
    padded_headings = [[""] * (n_lines - len(heading)) + list(heading) for heading in headings]

    def format_line(cells: Sequence[str]) -> str:
        aligned = map(_align, cells, widths, is_numeric)
        return _GAP.join(aligned).rstrip()

    heading_lines = map(format_line, zip(*padded_headings, strict=True))
    return TableBlock(tuple(heading_lines), tuple(map(format_line, zip(*columns, strict=True))))


def _align(cell: str, width: int, numeric: bool) -> str:
    """Return a cell with blanks up to this display width, before a number or after a text."""
    blanks = " " * (width - display_width(cell))
    return blanks + cell if numeric else cell + blanks
