"""Write results as HTML fragments for notebooks, which read well on light and dark pages.

Text and lines take the color of the notebook (`inherit`), backgrounds are transparent, and pictures, which have dark
lines, are on a white card. There is no style sheet and no script. Every text is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from trueodds.core.errors import Note
from trueodds.core.printable import printable_lines, to_printable

_BORDER = "1px solid rgba(128,128,128,0.45)"  # visible on white and on black
_FRAME = "color:inherit;background:transparent;line-height:1.45;max-width:64em"
_PRE = "color:inherit;background:transparent;margin:0.3em 0;padding:0;border:0;white-space:pre-wrap;font-size:0.92em"
_FAINT = "opacity:0.8"  # of secondary text; its contrast stays above 4.5 in the themes of Jupyter and VS Code
_SEPARATOR = " · "
_MAX_BOLD_LENGTH = 80  # characters of a first part that is bold; a longer one is a sentence


def frame_html(*parts: str) -> str:
    """Return fragments of HTML in one element, which inherits the color of the notebook."""
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def result_html(text: str, notes: Iterable[Note] = ()) -> str:
    """Return the description of a result and its notes.

    >>> html = result_html("ece 0.04 · n=10 · <b>")
    >>> "<strong>ece 0.04</strong>" in html, "&lt;b&gt;" in html
    (True, True)
    """
    return frame_html(description_html(text), notes_html(notes))


def description_html(text: str) -> str:
    """Return a description: its first part bold if it is short, the others faint, and further lines as they are."""
    first_line, _, more = printable_lines(text).partition("\n")
    start, separator, rest = first_line.partition(_SEPARATOR)
    start = f"<strong>{escape(start)}</strong>" if len(start) <= _MAX_BOLD_LENGTH else escape(start)
    faint = f'<span style="{_FAINT}">{separator}{escape(rest)}</span>' if separator else ""
    return f"<div>{start}{faint}</div>" + (preformatted_html(more) if more else "")


def preformatted_html(text: str) -> str:
    """Return text whose blanks and line breaks are kept."""
    return f'<pre style="{_PRE}">{escape(printable_lines(text))}</pre>'


def paragraph_html(text: str, *, is_faint: bool = False) -> str:
    faint = f";{_FAINT}" if is_faint else ""
    return f'<p style="margin:0.4em 0{faint}">{escape(printable_lines(text))}</p>'


def notes_html(notes: Iterable[Note]) -> str:
    """Return a list of notes, each with its code; empty without notes."""
    items = "".join(
        f'<li><code style="color:inherit;background:transparent">{escape(note.code)}</code>'
        f" {escape(to_printable(note.text))}</li>"
        for note in notes
    )
    return f'<ul style="margin:0.4em 0;padding-left:1.4em">{items}</ul>' if items else ""


def text_html(text: str) -> str:
    """Return text for an element."""
    return escape(printable_lines(text))


def table_html(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    is_numeric: Sequence[bool],
    cell_html: Callable[[Any], str] = text_html,
    *,
    has_row_headings: bool = False,
) -> str:
    """Return a table with numbers aligned to the right; without headings if all of them are empty.

    `cell_html` returns the content of a cell; with `has_row_headings`, the first cell of a row is its heading.
    """
    styles = [f"text-align:{'right;white-space:nowrap' if numeric else 'left'}" for numeric in is_numeric]

    def row_html(cells: Sequence[Any], tags: Sequence[str], content: Callable[[Any], str]) -> str:
        """Return the cells of a row; a tag may have attributes."""
        return "".join(
            f'<{tag} style="{style};padding:0.1em 0.8em 0.1em 0;border:0;vertical-align:top">'
            f"{content(cell)}</{tag.partition(' ')[0]}>"
            for cell, tag, style in zip(cells, tags, styles, strict=True)
        )

    head_row = row_html(headings, ['th scope="col"'] * len(styles), text_html)
    row_tags = ['th scope="row"' if has_row_headings else "td", *["td"] * (len(styles) - 1)]
    head = f'<thead style="border-bottom:{_BORDER}"><tr>{head_row}</tr></thead>' if any(headings) else ""
    body = "".join(f'<tr style="background:transparent">{row_html(row, row_tags, cell_html)}</tr>' for row in rows)
    style = "color:inherit;background:transparent;border-collapse:collapse;font-size:0.92em;margin:0.4em 0"
    return f'<div style="overflow-x:auto"><table style="{style}">{head}<tbody>{body}</tbody></table></div>'


def details_html(title: str, *parts: str, is_open: bool = False) -> str:
    """Return fragments that a click on their title shows or hides."""
    summary = f'<summary style="cursor:pointer;padding:0.2em 0">{escape(printable_lines(title))}</summary>'
    state = " open" if is_open else ""
    return f'<details{state} style="margin:0.3em 0;border-top:{_BORDER}">{summary}{"".join(parts)}</details>'


def picture_html(svg: str, description: str) -> str:
    """Return an SVG picture on a white card, as an image: its style and ids stay apart from those of the notebook."""
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    style = "background:#fff;color-scheme:light;max-width:100%;height:auto;padding:4px;border-radius:4px"
    return f'<img alt="{escape(printable_lines(description))}" src="{source}" style="{style};border:{_BORDER}">'
