"""Write a table of formatted cells as text, Markdown, HTML or LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import Any, Self

from trueodds.core.errors import InputError, Note
from trueodds.core.notebook_html import frame_html, notes_html, paragraph_html, table_html
from trueodds.core.table_layout import TEXT_WIDTH, display_width, layout_table

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")
_LATEX_ARROWS = {"↓": r"\downarrow", "↑": r"\uparrow", "→": r"\to"}
_LATEX_MARKS = {"†": r"^{\dagger}", "?": r"^{?}"}
INTERVAL_STYLES = ("below", "brackets", "subscript")
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}


@dataclass(frozen=True)
class FormattedCell:
    """The texts of one cell."""

    value: str
    interval: tuple[str, str] | None = None
    noise_floor: str | None = None
    is_bold: bool = False
    mark: str = ""  # a sign behind the value, which the caption explains

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
class FormattedPanel:
    """The texts of one panel: names of the rows, headings with their signs, cells by row, and a title if it has one."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    arrows: tuple[str, ...]  # empty texts for headings without a sign
    cells: tuple[tuple[FormattedCell, ...], ...]
    title: str = ""
    title_arrow: str = ""

    @property
    def headings(self) -> list[str]:
        """The labels with their signs."""
        return [f"{label} {arrow}".rstrip() for label, arrow in zip(self.labels, self.arrows, strict=True)]

    @property
    def heading(self) -> str:
        """The title with its sign; empty without a title."""
        return f"{self.title} {self.title_arrow}".rstrip()


@dataclass(frozen=True)
class FormattedTable:
    """The texts of a table: panels below each other, and the caption."""

    panels: tuple[FormattedPanel, ...]
    caption: str


def format_text(table: FormattedTable, width: int = TEXT_WIDTH) -> list[str]:
    """Return the lines of the table as text of limited width.

    The parts of a cell are in one line if the panel fits, else below each other. If that does not suffice, the columns
    are divided into blocks.
    """
    lines = []
    for panel in table.panels:
        title = [panel.heading] if panel.title else []
        lines += ["", *title, *_panel_lines(panel, width)]
    return [*lines[1:], *_caption_lines(table, width)]


def _panel_lines(panel: FormattedPanel, width: int) -> list[str]:
    """Return headings and rows of a panel as text."""
    headings = ["", *panel.headings]
    cell_parts = [[_text_parts(cell) for cell in row] for row in panel.cells]
    rows = [[name, *map(" ".join, row)] for name, row in zip(panel.names, cell_parts, strict=True)]
    is_numeric, is_name = [False] * len(headings), [True, *[False] * len(panel.labels)]
    blocks = layout_table(headings, rows, is_numeric, width, is_shortened=is_name)
    if len(blocks) > 1 or any(display_width(line) > width for line in (*blocks[0].heading, *blocks[0].rows)):
        rows = []
        for name, row in zip(panel.names, cell_parts, strict=True):
            rows += [list(line) for line in zip_longest([name], *row, fillvalue="")]
        blocks = layout_table(headings, rows, is_numeric, width, is_shortened=is_name)
    return [line for block in blocks for line in ("", *block.heading, *block.rows)][1:]


def _caption_lines(table: FormattedTable, width: int) -> list[str]:
    """Return the caption, with * in place of bold type."""
    caption = table.caption.replace("Bold: ", "*: ").replace("No value is bold, ", "No value is marked *, ")
    caption = re.sub(r"(?<=\bn) = (?=\d)|(?<=\d) (?=%)", lambda match: match[0].replace(" ", "\u00a0"), caption)
    lines = textwrap.wrap(caption, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _text_parts(cell: FormattedCell) -> list[str]:
    """Return value, interval and noise floor of a cell."""
    value = f"{cell.value}*" if cell.is_bold else cell.value
    return [value + cell.mark, *filter(None, (cell.interval_text, cell.noise_floor_text))]


def format_markdown(table: FormattedTable) -> str:
    """Return the table in Markdown."""
    lines = []
    for panel in table.panels:
        headings = [_escape_markdown(heading) for heading in panel.headings]
        lines += ["", *([f"**{_escape_markdown(panel.heading)}**", ""] if panel.title else [])]
        lines += [_markdown_row(["", *headings]), _markdown_row([":---"] * (1 + len(headings)))]
        for name, row in zip(panel.names, panel.cells, strict=True):
            lines.append(_markdown_row([_escape_markdown(name), *map(_markdown_cell, row)]))
    return "\n".join([*lines[1:], *(["", _escape_markdown(table.caption)] if table.caption else [])])


def _markdown_cell(cell: FormattedCell) -> str:
    """Return value, interval and noise floor of a cell in Markdown."""
    value = f"**{cell.value}**" if cell.is_bold else cell.value
    return " ".join(filter(None, (value + cell.mark, cell.interval_text, cell.noise_floor_text)))


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
    texts = []
    for panel in table.panels:
        headings = ["", *panel.headings]
        rows = [[name, *row] for name, row in zip(panel.names, panel.cells, strict=True)]
        texts += [paragraph_html(panel.heading)] if panel.title else []
        texts.append(table_html(headings, rows, [False] * len(headings), _cell_html, has_row_headings=True))
    return frame_html(*texts, paragraph_html(table.caption) if table.caption else "", notes_html(notes))


def _cell_html(cell: FormattedCell | str) -> str:
    """Return a cell in HTML, with interval and noise floor below the value; a name is text."""
    if isinstance(cell, str):
        return escape(cell)
    value = f"<strong>{escape(cell.value)}</strong>" if cell.is_bold else escape(cell.value)
    details = " ".join(filter(None, (cell.interval_text, cell.noise_floor_text)))
    return f"{value}{escape(cell.mark)}{f'<br><small>{escape(details)}</small>' if details else ''}"


@dataclass(frozen=True)
class LatexOptions:
    """How a table is written in LaTeX."""

    interval_style: str | None  # one of INTERVAL_STYLES; None without intervals
    environment: str = "table"  # of the table and its caption
    label: str | None = None  # for references to the table
    is_transposed: bool = False  # a row per measure and a column per model
    escapes_labels: bool = True  # False if headings and names of models are LaTeX
    escapes_caption: bool = True  # False if the caption is LaTeX


def resolve_interval_style(interval: Any) -> str | None:
    """Return the style of intervals, which is the first one for True; raise TO203 for an unknown style."""
    if interval is None or interval is False:
        return None
    if interval is True:
        return INTERVAL_STYLES[0]
    if interval not in INTERVAL_STYLES:
        fix = "Use 'below', 'brackets', 'subscript' or None."
        raise InputError("TO203", "Unknown style of intervals.", repr(interval), fix)
    return str(interval)


def format_latex(table: FormattedTable, options: LatexOptions) -> str:
    """Return the table in LaTeX: a tabular environment, inside a table environment if there is a caption."""
    label_text = escape_latex if options.escapes_labels else str
    alignment = "c" if options.interval_style == "below" else "l"
    body: list[str] = []
    for number, panel in enumerate(table.panels):
        measures = [
            f"{label_text(label)} {_latex_arrow(arrow)}".rstrip()
            for label, arrow in zip(panel.labels, panel.arrows, strict=True)
        ]
        names, headings = [label_text(name) for name in panel.names], measures
        cells = [[_cell_lines(cell, options.interval_style) for cell in row] for row in panel.cells]
        if options.is_transposed:
            names, headings, cells = measures, names, [list(column) for column in zip(*cells, strict=True)]
        rows = [_row_lines(_protect_row_start(name), row) for name, row in zip(names, cells, strict=True)]
        separator = [r"\addlinespace"] if any(len(lines) > 1 for lines in rows) else []
        if panel.title:
            title = f"{label_text(panel.title)} {_latex_arrow(panel.title_arrow)}".rstrip()
            body += [r"\midrule"] if number > 0 else []
            body += [rf"\multicolumn{{{1 + len(headings)}}}{{l}}{{{title}}} \\", r"\addlinespace"]
        body += [line for lines in rows for line in (*separator, *lines)][len(separator) :]
    tabular = [
        rf"\begin{{tabular}}{{l{alignment * len(headings)}}}",
        r"\toprule",
        f"{' & '.join(['', *headings]).strip()} \\\\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if not table.caption:
        return "\n".join(tabular)
    caption = table.caption
    if options.escapes_caption:
        raw_texts = [text for panel in table.panels for text in (*panel.labels, *panel.names, panel.title)]
        caption = _escape_except(caption, () if options.escapes_labels else raw_texts)
    lines = [rf"\caption{{{caption}}}"]
    lines += [rf"\label{{{options.label}}}"] if options.label is not None else []
    environment = options.environment
    return "\n".join([rf"\begin{{{environment}}}", r"\centering", *lines, *tabular, rf"\end{{{environment}}}"])


def _row_lines(name: str, cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of one row of the table; the name stands in the first of them."""
    lines = zip_longest([name], *cells, fillvalue="")
    return [f"{' & '.join(line)} \\\\".strip() for line in lines]


def _protect_row_start(text: str) -> str:
    r"""Return the first cell of a row, with a group before a bracket or a star.

    LaTeX takes them for an argument of the ``\\\\`` or ``\\midrule`` before the row.

    >>> print(_protect_row_start("[a]"), _protect_row_start("b"))
    {}[a] b
    """
    return "{}" + text if text.lstrip().startswith(("[", "*")) else text


def _cell_lines(cell: FormattedCell, style: str | None) -> list[str]:
    """Return the lines of a cell in LaTeX; numbers are set as formulas, so that minus signs are right."""
    value = _latex_number(cell.value)
    if cell.is_bold:
        value = rf"\mathbf{{{value}}}"
    value += _LATEX_MARKS.get(cell.mark, cell.mark)
    noise_floor = "" if cell.noise_floor is None else f"({_latex_number(cell.noise_floor)})"
    interval = ""
    if cell.interval is not None:
        interval = rf"[{_latex_number(cell.interval[0])},\,{_latex_number(cell.interval[1])}]"
    if style == "below":
        return [f"${value}$", *(rf"{{\scriptsize ${text}$}}" for text in (interval, noise_floor) if text)]
    suffix = f" ${noise_floor}$" if noise_floor else ""
    if not interval:
        return [f"${value}${suffix}"]
    if style == "subscript":
        return [f"${value}_{{{interval}}}${suffix}"]
    return [rf"${value}$ {{\small$\,{interval}$}}{suffix}"]


def _latex_number(text: str) -> str:
    """Return a formatted number for a formula."""
    return {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mbox{--}", "–": r"\mbox{--}"}.get(text, text)


def _latex_arrow(arrow: str) -> str:
    """Return the sign of a direction as a formula."""
    return f"${' '.join(_LATEX_ARROWS.get(part, part) for part in arrow.split())}$" if arrow else ""


def escape_latex(text: str) -> str:
    r"""Escape the characters that LaTeX reads as commands.

    >>> print(escape_latex("log_loss & 5 %"))
    log\_loss \& 5 \%
    """
    return "".join(_LATEX_SPECIAL.get(character, character) for character in text)


def _escape_except(text: str, raw_texts: Sequence[str]) -> str:
    r"""Escape a text for LaTeX, but not where it repeats one that is LaTeX already.

    >>> print(_escape_except("$L_2$: 5 %", ["$L_2$", "NLL"]))
    $L_2$: 5 \%
    """
    special = [raw for raw in sorted(raw_texts, key=len, reverse=True) if escape_latex(raw) != raw]
    if not special:
        return escape_latex(text)
    parts = re.split(f"({'|'.join(map(re.escape, special))})", text)
    return "".join(part if part in special else escape_latex(part) for part in parts)
