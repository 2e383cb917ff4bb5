"""Write a table of columns of any kind as text of a limited width, Markdown, HTML, LaTeX or CSV, or as a data frame."""

from __future__ import annotations

import csv
import importlib
import io
import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import zip_longest
from typing import Any, Literal, Self

from trueodds.core.errors import Note
from trueodds.core.formatting import (
    format_column,
    format_integer,
    format_intervals,
    format_number,
    format_pvalue,
    format_share,
)
from trueodds.core.notebook_html import frame_html, notes_html, paragraph_html, table_html, text_html
from trueodds.core.printable import spreadsheet_text

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


# How the values of a column are written, by its kind. A `number` has the decimals of its column, a `value` its own
# digits. An `estimate` is a `FormattedCell`. Curves (SVG) and bars are drawn, on a page only.
Kind = Literal["text", "number", "value", "count", "percent", "pvalue", "interval", "estimate", "curve", "bar"]
_FORMATS: dict[str, Callable[[Sequence[Any]], list[str]]] = {
    "number": format_column,
    "value": lambda values: list(map(format_number, values)),
    "count": lambda values: list(map(format_integer, values)),
    "percent": lambda values: list(map(format_share, values)),
    "interval": format_intervals,
}


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and its values with their kind. Texts among them are shown as they are."""

    name: str
    values: Sequence[Any]
    kind: Kind = "number"
    arrow: str = ""  # the sign of a direction, behind the name
    is_detail: bool = False  # whether the column is left out in a terminal, which is narrower than the page
    min_pvalue: float | None = None  # the smallest possible p-value, which is marked

    @property
    def heading(self) -> str:
        """The name with its sign."""
        return f"{self.name} {self.arrow}".rstrip()

    @property
    def is_numeric(self) -> bool:
        """Whether the cells are numbers, which are aligned to the right and never shortened."""
        return self.kind in _FORMATS or self.kind == "pvalue"

    @property
    def is_drawn(self) -> bool:
        """Whether the cells are drawn on the page, and left out elsewhere."""
        return self.kind in ("curve", "bar")

    @cached_property
    def cells(self) -> tuple[Any, ...]:
        """The texts of the values; what is no number is as it was passed."""
        if not self.is_numeric:
            return tuple(self.values)
        numbers = [None if isinstance(value, str) else value for value in self.values]
        if self.kind == "pvalue":
            texts = [format_pvalue(p, self.min_pvalue) for p in numbers]
        else:
            texts = _FORMATS[self.kind](numbers)
        return tuple(value if isinstance(value, str) else text for value, text in zip(self.values, texts, strict=True))


@dataclass(frozen=True)
class Table:
    """A table with its title and how to read it, which every front end lays out."""

    title: str
    columns: tuple[Column, ...]
    intro: str = ""  # how to read the table
    title_arrow: str = ""  # the sign of a direction, behind the title
    n_omitted: int = 0  # number of omitted rows

    @classmethod
    def from_entries(cls, title: str, entries: Sequence[tuple[str, str]], intro: str = "") -> Self:
        """Return a table of labels and texts; its columns have no headings, and the texts may wrap."""
        return cls(title, tuple(Column("", texts, "text") for texts in zip(*entries, strict=True)), intro)

    @property
    def heading(self) -> str:
        """The title with its sign; empty without a title."""
        return f"{self.title} {self.title_arrow}".rstrip()

    @property
    def text_columns(self) -> tuple[Column, ...]:
        """The columns whose cells are no drawings."""
        return tuple(column for column in self.columns if not column.is_drawn)

    @property
    def drawn_columns(self) -> tuple[Column, ...]:
        """The columns whose cells are drawings."""
        return tuple(column for column in self.columns if column.is_drawn)

    @cached_property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The cells of each row, without drawings."""
        return tuple(zip(*(column.cells for column in self.text_columns), strict=True))

    def head(self, max_rows: int) -> Self:
        """Return the first `max_rows` rows, with the number of omitted ones."""
        if len(self.rows) <= max_rows:
            return self
        columns = tuple(replace(column, values=column.cells[:max_rows]) for column in self.columns)
        return replace(self, columns=columns, n_omitted=len(self.rows) - max_rows)

    def without_details(self) -> Self:
        """Return the table without its detail columns, for a terminal."""
        return replace(self, columns=tuple(column for column in self.columns if not column.is_detail))

    def without_empty_columns(self) -> Self:
        """Return the table without columns in which every cell is empty or a dash; the first column stays."""
        shown = (
            column
            for i, column in enumerate(self.columns)
            if i == 0 or column.is_drawn or any(cell not in ("", "–") for cell in column.cells)
        )
        return replace(self, columns=tuple(shown))


def format_text(tables: Sequence[Table], caption: str = "", width: int = TEXT_WIDTH) -> list[str]:
    """Return the lines of tables below each other as text of limited width, and their caption.

    The parts of a cell are in one line if the table fits, else below each other. If that does not suffice, the columns
    are divided into blocks.
    """
    lines = []
    for table in tables:
        title = [table.heading] if table.title else []
        lines += ["", *title, *_table_lines(table, width)]
    return [*lines[1:], *_caption_lines(caption, width)]


def _table_lines(table: Table, width: int) -> list[str]:
    """Return headings and rows as text, with the parts of a cell below each other if they do not fit in a line."""
    blocks = layout_table(table, width)
    if len(blocks) > 1 or any(display_width(line) > width for line in (*blocks[0].heading, *blocks[0].rows)):
        lines = [
            line
            for row in table.rows
            for line in zip_longest(
                *([cell] if isinstance(cell, str) else _text_parts(cell) for cell in row), fillvalue=""
            )
        ]
        columns = zip(table.text_columns, zip(*lines, strict=True), strict=True)
        stacked = replace(table, columns=tuple(replace(column, values=texts) for column, texts in columns))
        blocks = layout_table(stacked, width)
    return [line for block in blocks for line in ("", *block.heading, *block.rows)][1:]


def _caption_lines(caption: str, width: int) -> list[str]:
    """Return the caption, with * instead of bold type."""
    caption = caption.replace("Bold: ", "*: ").replace("so no value is bold.", "so no value is marked *.")
    caption = re.sub(r"(?<=\bn) = (?=\d)|(?<=\d) (?=%)", lambda match: match[0].replace(" ", "\u00a0"), caption)
    lines = textwrap.wrap(caption, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _text_parts(cell: FormattedCell) -> list[str]:
    """Return value, interval and noise floor of a cell."""
    value = f"{cell.value}*" if cell.is_bold else cell.value
    return [value + cell.mark, *filter(None, (cell.interval_text, cell.noise_floor_text))]


def format_markdown(tables: Sequence[Table], caption: str = "") -> str:
    """Return tables below each other in Markdown, and their caption."""
    lines = []
    for table in tables:
        columns = table.text_columns
        lines += ["", *([f"**{_escape_markdown(table.heading)}**", ""] if table.title else [])]
        lines.append(_markdown_row([_escape_markdown(column.heading) for column in columns]))
        lines.append(_markdown_row(["---:" if column.is_numeric else ":---" for column in columns]))
        lines += [_markdown_row(list(map(_markdown_cell, row))) for row in table.rows]
    return "\n".join([*lines[1:], *(["", _escape_markdown(caption)] if caption else [])])


def _markdown_cell(cell: FormattedCell | str) -> str:
    """Return a text, or value, interval and noise floor of a cell, in Markdown."""
    if isinstance(cell, str):
        return _escape_markdown(cell)
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


def format_html(tables: Sequence[Table], caption: str = "", notes: Sequence[Note] = ()) -> str:
    """Return tables below each other in HTML for a notebook, with their caption, and the notes in a list below it."""
    texts = []
    for table in tables:
        texts += [paragraph_html(table.heading)] if table.title else []
        texts.append(format_html_table(table, has_row_headings=True))
    return frame_html(*texts, paragraph_html(caption) if caption else "", notes_html(notes))


def format_html_table(table: Table, *, has_row_headings: bool = False) -> str:
    """Return the headings and rows of a table in HTML for a notebook."""
    headings, is_numeric = zip(*((column.heading, column.is_numeric) for column in table.text_columns), strict=True)
    return table_html(headings, table.rows, is_numeric, _cell_html, has_row_headings=has_row_headings)


def _cell_html(cell: FormattedCell | str) -> str:
    """Return a cell in HTML, with interval and noise floor below the value; a name is text."""
    if isinstance(cell, str):
        return text_html(cell)
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


def format_latex(tables: Sequence[Table], caption: str, options: LatexOptions) -> str:
    """Return tables with the same columns in LaTeX: a tabular environment, inside a table environment with a caption.

    The first column has the names of the rows.
    """
    label_text = escape_latex if options.escapes_labels else str
    estimates_alignment = "c" if options.interval_style == "below" else "l"
    body: list[str] = []
    for number, table in enumerate(tables):
        first, *columns = table.text_columns
        names, headings = [label_text(name) for name in first.cells], [_latex_heading(c, label_text) for c in columns]
        cells = [[_cell_lines(cell, options.interval_style) for cell in row[1:]] for row in table.rows]
        alignments = [
            estimates_alignment if column.kind == "estimate" else "r" if column.is_numeric else "l"
            for column in columns
        ]
        if options.is_transposed:
            names, headings, cells = headings, names, [list(column) for column in zip(*cells, strict=True)]
            alignments = [estimates_alignment] * len(headings)
        rows = [_row_lines(_protect_row_start(name), row) for name, row in zip(names, cells, strict=True)]
        separator = [r"\addlinespace"] if any(len(lines) > 1 for lines in rows) else []
        if table.title:
            title = f"{label_text(table.title)} {_latex_arrow(table.title_arrow)}".rstrip()
            body += [r"\midrule"] if number > 0 else []
            body += [rf"\multicolumn{{{1 + len(headings)}}}{{l}}{{{title}}} \\", r"\addlinespace"]
        body += [line for lines in rows for line in (*separator, *lines)][len(separator) :]
    corner = "" if options.is_transposed else label_text(first.name)
    tabular = [
        rf"\begin{{tabular}}{{l{''.join(alignments)}}}",
        r"\toprule",
        f"{' & '.join([corner, *headings]).strip()} \\\\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if not caption:
        return "\n".join(tabular)
    if options.escapes_caption:
        raw_texts = [
            text
            for table in tables
            for text in (*(column.name for column in table.columns), *table.columns[0].cells, table.title)
        ]
        caption = _escape_except(caption, () if options.escapes_labels else raw_texts)
    lines = [rf"\caption{{{caption}}}"]
    lines += [rf"\label{{{options.label}}}"] if options.label is not None else []
    environment = options.environment
    return "\n".join([rf"\begin{{{environment}}}", r"\centering", *lines, *tabular, rf"\end{{{environment}}}"])


def _latex_heading(column: Column, label_text: Callable[[str], str]) -> str:
    """Return the heading of a column, with its sign as a formula."""
    return f"{label_text(column.name)} {_latex_arrow(column.arrow)}".rstrip()


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


def _cell_lines(cell: FormattedCell | str, style: str | None) -> list[str]:
    """Return the lines of a cell in LaTeX; estimates are set as formulas, so that minus signs are right."""
    if isinstance(cell, str):
        return [escape_latex(cell).replace("≤", r"$\leq$")]
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


def layout_table(table: Table, width: int = TEXT_WIDTH) -> list[TableBlock]:
    """Lay out a table in one or more blocks of at most `width` characters, if the first column and one other fit.

    Numbers are aligned to the right and never shortened, names to the left; long names lose their middle. A table that
    is too wide gets headings of two lines. If that does not suffice, it is continued in further blocks, which repeat
    the first column.

    >>> groups = Column("group", ["site=north", "site=south"], "text")
    >>> columns = (groups, Column("noise floor", [0.18, 0.07]), Column("status", ["miscalibrated", "within"], "text"))
    >>> (block,) = layout_table(Table("Groups", columns), 36)
    >>> print("\\n".join([*block.heading, *block.rows]))
                 noise
    group        floor  status
    site=north  0.1800  miscalibrated
    site=south  0.0700  within
    """
    columns = table.text_columns
    is_numeric = [column.is_numeric for column in columns]
    one_line_headings = [[column.heading] for column in columns]
    names = []
    for i, column in enumerate(columns):
        texts = [cell if isinstance(cell, str) else " ".join(_text_parts(cell)) for cell in column.cells]
        names.append(_shorten_column(texts, i, width) if column.kind == "text" else texts)
    if _total_width(_column_widths(one_line_headings, names)) <= width:
        return [_format_block(one_line_headings, names, is_numeric)]
    broken_headings = [_break_heading(column.heading, texts) for column, texts in zip(columns, names, strict=True)]
    blocks = []
    for group in _split_columns(_column_widths(broken_headings, names), width):
        texts_of_group = [names[i] for i in group]
        group_headings = [one_line_headings[i] for i in group]
        if _total_width(_column_widths(group_headings, texts_of_group)) > width:
            group_headings = [broken_headings[i] for i in group]
        blocks.append(_format_block(group_headings, texts_of_group, [is_numeric[i] for i in group]))
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


def format_csv(columns: Mapping[str, Sequence[Any]], line_end: str = "\n") -> str:
    """Return columns as CSV with a header, and numbers in full precision.

    >>> print(format_csv({"model": ["a"], "value": [0.1 + 0.2]}), end="")
    model,value
    a,0.30000000000000004
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([spreadsheet_text(value) if isinstance(value, str) else value for value in row])
    return text.getvalue()


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
