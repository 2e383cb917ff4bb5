"""Render an audit as one self-contained HTML page that loads and sends nothing, and as the summary of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_share
from trueodds.core.notebook_html import details_html, frame_html, notes_html, paragraph_html, picture_html
from trueodds.core.printable import isolate_tree, printable_tree
from trueodds.core.table import Column, Table, format_html_table
from trueodds.core.versions import version_rows
from trueodds.diagrams.base import Diagram
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData
from trueodds.reports.html import figures
from trueodds.reports.html.methods_paragraph import cite_audit, describe_methods
from trueodds.reports.html.rendering import Cover, css_percent, render_page
from trueodds.reports.page_curves import PageCells
from trueodds.reports.text.formatting import describe_size
from trueodds.reports.text.recalibration import recalibration_table
from trueodds.reports.text.result_tables import settings_table, test_table
from trueodds.reports.text.summary import summary_lines
from trueodds.reports.text.terminal import report_tables, short_tables


def render_html(
    facts: Mapping[str, Any],
    svgs: Sequence[str | None] = (),
    widgets: Sequence[tuple[str, str] | None] = (),
    cover: Cover | None = None,
    cells: PageCells | None = None,
) -> str:
    """Render the page of an audit, `facts` in the schema ``trueodds.audit/1``; it shows every number in them.

    `svgs` has the SVG text of each diagram; those of `INLINE_DIAGRAMS` need none, because the page draws them from
    their tables, and another diagram without one is shown as its table alone. `widgets` has the interactive form of
    each diagram, as HTML and script, or None; a script that several diagrams share is included once. `cover` has the
    title, author and date; if any is given, the page has lines for signatures. `cells` are those of an audit of two
    classes, whose belt and decision curve only the page has.
    """
    facts = printable_tree(facts)
    audit = AuditResult.from_dict(isolate_tree(facts, facts["data"].get("classes") or ()))
    tables = report_tables(audit)
    tables |= {
        "errors": figures.add_curves(audit, tables["errors"]),
        "classes": figures.add_curves(audit, tables["classes"], "classwise"),
        "tests": test_table(audit),
        "recalibration": recalibration_table(audit),
        "settings": settings_table(audit),
        "provenance": _provenance_table(audit),
    }
    entries = figures.figure_entries(audit, svgs, widgets)
    return render_page(
        "audit_page.html.jinja",
        [widget[1] for widget in widgets if widget],
        audit=audit,
        cover=cover or Cover(),
        source=audit.data.source,
        sentence=audit.verdict.sentence,
        details=audit.verdict.details,
        state=audit.verdict.state,
        role="bad" if audit.verdict.rejected else "good" if audit.verdict.state == "no evidence" else "plain",
        size=describe_size(audit.data),
        scale=_mean_scale(audit.data),
        facts=summary_lines(audit),
        main=figures.main_pictures(audit, entries),
        figures=entries,
        bar_level=figures.bar_level(audit.diagrams),
        held_out=figures.held_out_tables(audit),
        curves=[] if cells is None else figures.curve_entries(cells.diagrams()),
        curves_text="" if cells is None else cells.explanation,
        methods=describe_methods(audit),
        citation=cite_audit(audit),
        tables=tables,
        notes=audit.notes_by_code(),
    )


def _provenance_table(audit: AuditResult) -> Table:
    rows = [
        *version_rows(audit.versions or {"trueodds": audit.version}),
        ("seed", str((audit.settings or {}).get("seed", "–"))),
        ("fingerprint of the rows", audit.data.fingerprint or "none: the rows were tallied"),
    ]
    return Table.from_entries("Versions and fingerprint", rows)


def _mean_scale(data: AuditData) -> dict[str, str] | None:
    """Return the positions and labels of the mean prediction and the observed mean on a scale from 0 to 100 %."""
    if data.means is None:
        return None
    predicted, observed = data.means
    weighted, prediction = "weighted " if data.weighted else "", "predicted" if data.is_binary else "confidence"
    outcome = "vote share" if data.votes else "observed" if data.is_binary else "accuracy"
    return {
        "predicted": css_percent(predicted),
        "observed": css_percent(observed),
        "left": css_percent(min(predicted, observed)),
        "width": css_percent(abs(predicted - observed)),
        "predicted_label": f"{weighted}mean {prediction} {format_share(predicted)}",
        "observed_label": f"{weighted}{outcome} {format_share(observed)}",
    }


_FULL_REPORT_TEXT = "The page with all diagrams and numbers: .to_html('report.html'). As text: str(…), .brief()."


def render_notebook_summary(facts: Mapping[str, Any], diagrams: Sequence[Diagram] = ()) -> str:
    """Render an audit, `facts` in the schema ``trueodds.audit/1``, as a fragment of HTML for a notebook.

    Of the diagrams the first is shown where matplotlib is installed. Nothing is loaded from any address.
    """
    audit = AuditResult.from_dict(printable_tree(facts))
    lines = summary_lines(audit)
    texts = ([line.label for line in lines], [line.value for line in lines], [line.remark for line in lines])
    notes = [Note(code, text) for code, text in audit.notes_by_code()]
    return frame_html(
        f"<strong>{paragraph_html(audit.verdict.sentence)}</strong>",
        paragraph_html(audit.verdict.details),
        paragraph_html(f"{audit.data.source} · {describe_size(audit.data)}", is_faint=True),
        format_html_table(Table("", tuple(Column("", column, "text") for column in texts))),
        _first_picture(diagrams),
        *(details_html(table.title, _text_table_html(table)) for table in short_tables(audit)),
        details_html(f"Notes ({len(notes)})", notes_html(notes), is_open=True) if notes else "",
        paragraph_html(_FULL_REPORT_TEXT, is_faint=True),
    )


def _first_picture(diagrams: Sequence[Diagram]) -> str:
    """Return the HTML of the picture of the first diagram; empty without a diagram, or if matplotlib is missing."""
    try:
        return "".join(f"<div>{picture_html(diagram.svg(), diagram.describe())}</div>" for diagram in diagrams[:1])
    except InputError:
        return ""


def _text_table_html(table: Table) -> str:
    intro = paragraph_html(table.intro, is_faint=True) if table.intro else ""
    omitted = (
        paragraph_html(f"{table.n_omitted:,} more rows are in the page.", is_faint=True) if table.n_omitted else ""
    )
    return intro + format_html_table(table) + omitted
