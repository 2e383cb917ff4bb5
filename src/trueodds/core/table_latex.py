"""Write a table of formatted cells in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from trueodds.core.errors import InputError
from trueodds.core.table_formats import FormattedCell, FormattedTable

INTERVAL_STYLES = ("below", "brackets", "subscript")
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}


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
    measures = [
        f"{label_text(heading)} {_latex_arrow(arrow)}"
        for heading, arrow in zip(table.labels, table.arrows, strict=True)
    ]
    names, headings = [label_text(name) for name in table.names], measures
    cells = [[_cell_lines(cell, options.interval_style) for cell in row] for row in table.cells]
    if options.is_transposed:
        names, headings, cells = measures, names, [list(column) for column in zip(*cells, strict=True)]
    alignment = "c" if options.interval_style == "below" else "l"
    rows = [_row_lines(_protect_row_start(name), row) for name, row in zip(names, cells, strict=True)]
    separator = [r"\addlinespace"] if any(len(lines) > 1 for lines in rows) else []
    body = [line for lines in rows for line in (*separator, *lines)][len(separator) :]
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
        caption = _escape_except(caption, () if options.escapes_labels else (*table.labels, *table.names))
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
    signs = {"↓": r"\downarrow", "↑": r"\uparrow", "→": r"\to"}
    return "$" + " ".join(signs.get(part, part) for part in arrow.split()) + "$"


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
