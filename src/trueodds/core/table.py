"""Write tables: formatted cells as text of a limited width, Markdown, HTML or LaTeX, and columns as a data frame."""

from __future__ import annotations

import importlib
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import Any, Self

from trueodds.core.errors import InputError, Note
from trueodds.core.notebook_html import frame_html, notes_html, paragraph_html, table_html

TEXT_WIDTH = 80  # columns of text outside of a terminal
_GAP = "  "  # between two columns
# Names of the first column are shortened to half of the width of the table, within these limits.
_MIN_NAME_WIDTH, _MAX_NAME_WIDTH = 20, 40
_MAX_OTHER_NAME_WIDTH = 28  # maximum width of the names in other columns
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


def to_data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas data frame of the columns, else a Polars one, else the columns, depending on what is installed.

    >>> list(to_data_frame({"p": [0.2, 0.8], "n": [3, 5]}))
    ['p', 'n']
    """
    for library in ("pandas", "polars"):
        try:
            return importlib.import_module(library).DataFrame(columns)
        except ImportError:
            continue
    return columns
