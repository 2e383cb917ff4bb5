"""Render the summary of an audit that a notebook displays: verdict, main numbers, a diagram, tables and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.errors import InputError, Note
from trueodds.core.notebook_html import (
    details_html,
    frame_html,
    notes_html,
    paragraph_html,
    picture_html,
    table_html,
)
from trueodds.core.printable import printable_tree
from trueodds.diagrams.base import Diagram
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.text.decision_regret_tables import regret_lines
from trueodds.reports.text.formatting import describe_size
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import MAX_TABLE_ROWS, report_tables
from trueodds.reports.text.text_table import TextTable

_FULL_REPORT_TEXT = "The page with all diagrams and numbers: .to_html('report.html'). As text: str(…), .brief()."


def render_notebook_summary(facts: Mapping[str, Any], diagrams: Sequence[Diagram] = ()) -> str:
    """Render an audit, `facts` in the schema ``trueodds.audit/1``, as a fragment of HTML for a notebook.

    Of the diagrams the first is shown where matplotlib is installed. Nothing is loaded from any address.
    """
    audit = AuditResult.from_dict(printable_tree(facts))
    rows = [(line.label, line.value, line.remark) for line in (*summary_lines(audit), *regret_lines(audit))]
    notes = [Note(code, text) for code, text in audit.notes_by_code()]
    tables = [table.without_details().head(MAX_TABLE_ROWS) for table in report_tables(audit) if table.rows]
    return frame_html(
        f"<strong>{paragraph_html(audit.verdict.sentence)}</strong>",
        paragraph_html(f"{audit.data.source} · {describe_size(audit.data)}", is_faint=True),
        table_html(("", "", ""), rows, (False, False, False)),
        _first_picture(diagrams),
        *(details_html(table.title, _text_table_html(table)) for table in tables),
        details_html(f"Notes ({len(notes)})", notes_html(notes), is_open=True) if notes else "",
        paragraph_html(_FULL_REPORT_TEXT, is_faint=True),
    )


def _first_picture(diagrams: Sequence[Diagram]) -> str:
    """Return the HTML of the picture of the first diagram; empty without a diagram, or if matplotlib is missing."""
    try:
        return "".join(f"<div>{picture_html(diagram.svg(), diagram.describe())}</div>" for diagram in diagrams[:1])
    except InputError:
        return ""


def _text_table_html(table: TextTable) -> str:
    """Return the HTML of a table with its introduction, and how many rows it omits."""
    intro = paragraph_html(table.intro, is_faint=True) if table.intro else ""
    names, is_numeric = zip(*((column.name, column.numeric) for column in table.columns), strict=True)
    omitted = (
        paragraph_html(f"{table.n_omitted:,} more rows are in the page.", is_faint=True) if table.n_omitted else ""
    )
    return intro + table_html(names, table.rows, is_numeric) + omitted
