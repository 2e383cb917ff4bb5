"""Render the report of an audit as text of a given width, for a terminal: sentences, tables and notes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from trueodds.core.formatting import insert_no_break_spaces
from trueodds.core.printable import printable_tree
from trueodds.core.table import TEXT_WIDTH, Table, display_width, layout_table, shorten_middle
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData
from trueodds.reports.text import group_tables, recalibration, result_tables, vote_tables
from trueodds.reports.text.formatting import describe_size
from trueodds.reports.text.summary import SummaryLine, brief_lines, summary_lines

TextStyle = Callable[[str, str], str]  # (text, role) -> text; roles: sentence title good bad dim plain
DEFAULT_WIDTH = TEXT_WIDTH  # columns of text
MIN_WIDTH = 48  # columns of text; a narrower terminal wraps the lines itself
MAX_TABLE_ROWS = 20  # rows of a table shown; the HTML page and the JSON have all of them
_MIN_VALUE_WIDTH = 24  # columns of text; with fewer, values are placed below their labels
_MAX_LABEL_WIDTH = 30  # columns of text; longer labels in a table of two columns are shortened


def render_text(facts: Mapping[str, Any], width: int | None = None, style: TextStyle | None = None) -> str:
    """Lay out the report of an audit as text.

    Parameters
    ----------
    facts : mapping
        The result of `Audit.to_dict` (schema trueodds.audit/1).
    width : int, optional
        Columns of the text, at least 48 and by default 80. Sentences and notes are wrapped. A wider table is continued
        below itself.
    style : callable, optional
        Colors a piece of text by its role; without it the text is plain.

    Returns
    -------
    str
        The report, without trailing blanks.
    """
    audit = AuditResult.from_dict(printable_tree(facts))
    width = max(MIN_WIDTH, width or DEFAULT_WIDTH)
    paint = style or _plain_text
    blocks = [
        _format_verdict(audit, width, paint),
        "\n".join(paint(line, "dim") for line in _wrap(_data_text(audit.data), width)),
        _format_summary(summary_lines(audit), width, paint),
        *(_format_table(table, paint, width) for table in short_tables(audit)),
    ]
    if notes := audit.notes_by_code(include_diagrams=False):
        blocks.append(_format_notes(notes, width, paint))
    return _join_blocks(blocks)


def render_brief(facts: Mapping[str, Any], width: int | None = None, style: TextStyle | None = None) -> str:
    """Lay out the verdict of an audit and its main numbers in about ten lines.

    Parameters
    ----------
    facts : mapping
        The result of `Audit.to_dict` (schema trueodds.audit/1).
    width : int, optional
        Columns of the text, at least 48 and by default 80.
    style : callable, optional
        Colors a piece of text by its role; without it the text is plain.

    Returns
    -------
    str
        Verdict with p-value, the worst group and the recalibration; data; error with interval and noise floor.
    """
    audit = AuditResult.from_dict(printable_tree(facts))
    width = max(MIN_WIDTH, width or DEFAULT_WIDTH)
    paint = style or _plain_text
    lines = [SummaryLine("Data", _data_text(audit.data)), *brief_lines(audit)]
    return _join_blocks([_format_verdict(audit, width, paint), _format_summary(lines, width, paint)])


def report_tables(audit: AuditResult) -> dict[str, Table]:
    """Return the tables of the report in order, also the empty ones, by name."""
    return {
        "scores": result_tables.score_table(audit),
        "standard_measures": result_tables.standard_measure_table(audit),
        "errors": result_tables.error_table(audit),
        "classes": result_tables.class_table(audit),
        "groups": group_tables.group_table(audit),
        "group_measures": group_tables.group_measure_table(audit),
        "group_gaps": group_tables.group_gap_table(audit),
        "vote_measures": vote_tables.vote_measure_table(audit),
        "vote_targets": vote_tables.vote_target_table(audit),
        "furthest_rows": vote_tables.furthest_row_table(audit),
        "decision_regret": result_tables.regret_table(audit),
        "actions": result_tables.action_table(audit),
        "candidates": recalibration.candidate_table(audit),
        "data": result_tables.data_table(audit),
    }


def short_tables(audit: AuditResult) -> list[Table]:
    """Return the tables of the report that have rows, without details and with the first rows only."""
    return [table.without_details().head(MAX_TABLE_ROWS) for table in report_tables(audit).values() if table.rows]


def _format_verdict(audit: AuditResult, width: int, paint: TextStyle) -> str:
    """Format the headline of the verdict in the color of its state, and its details below."""
    role = "good" if audit.verdict.state == "no evidence" else "bad" if audit.verdict.rejected else "sentence"
    headline = [paint(line, role) for line in _wrap(audit.verdict.sentence, width)]
    return "\n".join(headline + _wrap(audit.verdict.details, width))


def _data_text(data: AuditData) -> str:
    """Return the name of the data and their size in one line."""
    return f"{data.source} · {describe_size(data)}"


def _join_blocks(blocks: list[str]) -> str:
    """Join the parts of a report with blank lines, and remove no-break spaces and blanks at the ends of lines."""
    full_text = "\n\n".join(blocks).replace("\u00a0", " ")
    return "\n".join(line.rstrip() for line in full_text.split("\n"))


def _wrap(text: str, width: int, initial_indent: str = "", indent: str = "") -> list[str]:
    """Return the lines of the text, wrapped without a line break inside a percentage or p-value."""
    return textwrap.wrap(
        insert_no_break_spaces(text),
        width,
        break_on_hyphens=False,
        initial_indent=initial_indent,
        subsequent_indent=indent,
    )


def _plain_text(piece: str, _role: str) -> str:
    """Return the text without any color: the style of a report outside of a terminal."""
    return piece


def _format_summary(summary: list[SummaryLine], width: int, paint: TextStyle) -> str:
    """Format the lines of the summary: the labels in a column, and beside them the values with wrapped remarks.

    In a narrow terminal, the values are placed below their labels.
    """
    label_width = max(len(line.label) for line in summary) + 2
    is_stacked = width - label_width - 2 < _MIN_VALUE_WIDTH
    label_width = 2 if is_stacked else label_width
    text_lines = []
    for line in summary:
        text = line.value
        if line.remark:
            text += f": {line.remark}" if line.is_reason else f" ({line.remark})"
        first, *others = _wrap(text, max(20, width - label_width - 2)) or [""]
        value = insert_no_break_spaces(line.value)
        if first.startswith(value):  # not if the value itself was wrapped
            role = line.tone if line.tone in ("good", "bad") else "value"
            first = paint(value, role) + first[len(value) :]
        if is_stacked:
            text_lines += [f"  {line.label}", f"    {first}"]
        else:
            text_lines.append(f"  {line.label:<{label_width}}{first}")
        text_lines += [" " * (label_width + 2) + other for other in others]
    return "\n".join(text_lines)


def _format_table(table: Table, paint: TextStyle, width: int = DEFAULT_WIDTH) -> str:
    """Format a table with numbers right-aligned and names left-aligned; long names are shortened in the middle.

    >>> from trueodds.core.table import Column
    >>> print(_format_table(Table("Scores", (Column("score", ["brier"], "text"), Column("value", [0.1]))), _plain_text))
    Scores
      score   value
      brier  0.1000
    """
    title = paint(table.title, "title")
    has_headings = any(column.name for column in table.columns)
    if not has_headings:  # labels and texts
        return "\n".join([title, *_format_entries(table, width)])
    lines = [title]
    if table.intro:
        lines += [paint(f"  {line}", "dim") for line in _wrap(table.intro, width - 2)]
    for number, block in enumerate(layout_table(table, width - 2)):
        if number > 0:  # the table is too wide, and its other columns follow below
            lines.append("")
        lines += ["  " + paint(line, "dim") for line in block.heading]
        lines += [f"  {line}" for line in block.rows]
    if table.n_omitted:
        text = f"{table.n_omitted:,} more rows are in the HTML page and the JSON (--html, --json)"
        lines += [paint(f"  {line}", "dim") for line in _wrap(text, width - 2)]
    return "\n".join(lines)


def _format_entries(table: Table, width: int) -> list[str]:
    """Return the lines of a table of labels and texts: the labels in a column, and the wrapped texts beside them."""
    rows = [(shorten_middle(name, _MAX_LABEL_WIDTH), value) for name, value in table.rows]
    label_width = max(display_width(name) for name, _ in rows) + 2
    lines = []
    for name, value in rows:
        first, *more = _wrap(value, max(20, width - label_width - 2)) or [""]
        label = name + " " * (label_width - display_width(name))
        lines += [f"  {label}{first}", *(" " * (label_width + 2) + line for line in more)]
    return lines


def _format_notes(notes: list[tuple[str, str]], width: int, paint: TextStyle) -> str:
    """Format the notes, each as its code and its wrapped text."""
    lines = [paint("Notes", "title")]
    for code, note in notes:
        lines += _wrap(f"[{code}] {note}", width, initial_indent="  ", indent=" " * 10)
    return "\n".join(lines)
