"""Render the report of a monitor as one self-contained HTML page, with the style and script of the page of an audit."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import trueodds
from trueodds.core.formatting import format_number, format_percent_in_text, format_rate, format_share, with_minus_signs
from trueodds.core.printable import printable_tree, to_printable
from trueodds.core.table import Column, Table
from trueodds.core.versions import program_versions, version_rows
from trueodds.diagrams._style.formatting import capitalize_first
from trueodds.diagrams.monitor import view_of_cohorts
from trueodds.monitoring.cohorts import format_horizon
from trueodds.monitoring.monitor_report import MAIN_VIEWS, CohortRow, MonitorReport, format_e_value
from trueodds.reports.html.figures import Picture, svg_data_uri
from trueodds.reports.html.rendering import render_page

MIN_SHARE = 0.001  # share of the evidence below which a part is not listed
PICTURE_SIZE = 4.4, 4.8  # inches, so that its letters are legible on a telephone
MAX_COHORTS = 60  # number of the latest judged cohorts, and of open ones, in the tables


def monitor_page(report: MonitorReport, path: str | os.PathLike[str] | None = None) -> str:
    """Return the page of a report, as `MonitorReport.to_html` documents it.

    >>> import trueodds as to
    >>> monitor_page(to.Monitor().report()).startswith("<!doctype html>")
    True
    """
    first, *others = report.sentences()
    state = "alarm" if report.alarm else "no alarm" if report.status.judged else "nothing judged yet"
    picture = None
    if report.cohorts:
        diagram = report.draw().present(title=False, figsize=PICTURE_SIZE)
        alt = to_printable(f"Cohorts over time. {first}")
        picture = Picture(source=svg_data_uri(diagram.svg()), alt=alt)
    advice = report.advice
    return render_page(
        "monitor_page.html.jinja",
        path=path,
        state=state,
        role={"alarm": "bad", "no alarm": "good"}.get(state, "plain"),
        sentence=first,
        details=others,
        picture=picture,
        caption="Observed divided by expected events of each cohort, the evidence, and the rows, over time.",
        facts=_facts(report),
        advice=advice,
        commands=[to_printable(line) for line in (advice.fit_command, advice.confirm_command) if line],
        tables=[(name, table) for name, table in _tables(report).items() if table.rows],
        guarantee=capitalize_first(report.assumptions[0]),
        assumptions=report.assumptions[1:],
        settings=Table.from_entries("Settings and versions", _settings_rows(report)),
        notes=[(note.code, to_printable(note.text)) for note in report.notes],
        version=trueodds.__version__,
        schema=report.json_schema,
    )


def _facts(report: MonitorReport) -> list[dict[str, str]]:
    """Return the tiles: evidence, onset, error, and open cohorts."""
    status, tone = report.status, "bad" if report.alarm else ""
    needed = f"an alarm needs {format_number(1 / report.settings['alpha'])}"
    facts = [{"label": "e-value", "value": format_e_value(report.log_evidence), "remark": needed, "tone": tone}]
    if report.onset is not None:
        region = f"{report.onset.earliest} to {report.onset.latest}"
        facts.append({"label": "since", "value": report.onset.since, "remark": region, "tone": tone})
    if (error := report.error) is not None:
        value, low, high = (
            with_minus_signs(format_rate(bound, signed=True))
            for bound in (error.value, error.interval.low, error.interval.high)
        )
        remark = f"{format_percent_in_text(error.interval.level)} interval {low} to {high}"
        facts.append(
            {"label": f"observed − predicted{_rows_of_error(report)}", "value": value, "remark": remark, "tone": tone}
        )
        if not math.isnan(error.o_e):
            ends = error.o_e_interval
            remark = f"{ends.low:.2f} to {ends.high:.2f}"
            facts.append({"label": "observed / expected", "value": f"{error.o_e:.2f}", "remark": remark, "tone": tone})
    remark = f"{status.open_rows:,} rows, {status.open_unlabeled:,} without a label"
    facts.append({"label": "open cohorts", "value": f"{status.open:,}", "remark": remark, "tone": ""})
    facts.append({"label": "judged cohorts", "value": f"{status.judged:,}", "remark": "in this epoch", "tone": ""})
    return [{name: to_printable(text) for name, text in fact.items()} for fact in facts]


def _rows_of_error(report: MonitorReport) -> str:
    """Return the class and the group that the error is about, after a comma; nothing if it is about all rows."""
    error = report.error
    names = (error.view.removeprefix("class:"), error.group) if error is not None else ()
    return "".join(f", {name}" for name in names if name not in (*MAIN_VIEWS, None))


def _tables(report: MonitorReport) -> dict[str, Table]:
    parts = [part for part in report.contributions if part.share >= MIN_SHARE]
    contributions = Table(
        "What contributes to the evidence",
        (
            Column("claim", [part.claim for part in parts], "text"),
            Column("view", [to_printable(part.view) for part in parts], "text"),
            Column("group", [to_printable(part.group or "all rows") for part in parts], "text"),
            Column("direction", [part.direction for part in parts], "text"),
            Column("share", [format_share(part.share) for part in parts], "text"),
        ),
        "A level concerns all probabilities, a slope whether they are too extreme, scores a range of them, and cells"
        " several ranges. The rest of the e-value is kept for drifts that begin later.",
    )
    tables = {"contributions": contributions}
    if (drift := report.drift) is not None:
        tables["drift"] = Table(
            "Drift of the predictions",
            (
                Column("cohorts", ["first", "latest"], "text"),
                Column("rows", [round(drift.rows_before), round(drift.rows_now)], "count"),
                Column("mean prediction", [format_rate(drift.mean_before), format_rate(drift.mean_now)], "text"),
            ),
            f"{format_share(drift.distance)} of the rows moved to other scores. This is no error by itself.",
        )
    tables["open"] = _cohort_table("Open cohorts", report.open_cohorts)
    view = view_of_cohorts(report)
    needed = f" An alarm needs a log e-value of {-math.log(report.settings['alpha']):.2f}."
    events = f" The events are those of {to_printable(view.removeprefix('class:'))}." if "class" in view else ""
    tables["judged"] = _cohort_table("Judged cohorts", report.judged_cohorts, needed + events, is_judged=True)
    return tables


def _cohort_table(title: str, cohorts: Sequence[CohortRow], remark: str = "", *, is_judged: bool = False) -> Table:
    """Return the table of cohorts, which are in the order of time, the latest first."""
    rows = cohorts[::-1]
    names = [row.cohort if row.cohorts == 1 else f"{row.cohort} to {row.last}" for row in rows]
    columns = [
        Column("cohort", names, "text"),
        Column("rows", [row.rows for row in rows], "count"),
        Column("without label", [row.unlabeled for row in rows], "count"),
    ]
    if is_judged:
        columns += [
            Column("observed", [row.observed for row in rows]),
            Column("expected", [row.expected for row in rows]),
            Column("log e-value", [with_minus_signs(f"{row.log_evidence:.2f}") for row in rows]),
        ]
    return Table(title, tuple(columns), f"The latest first.{remark}").head(MAX_COHORTS)


def _settings_rows(report: MonitorReport) -> list[tuple[str, str]]:
    settings: dict[str, Any] = printable_tree(report.settings)
    horizon = format_horizon(settings["horizon"], settings["unit"])
    # A group is its column and, if they were declared, its names.
    groups = "; ".join(column if not names else f"{column}: {', '.join(names)}" for column, names in settings["group"])
    shown = settings | {"horizon": horizon, "group": groups, "complete": "yes" if settings["complete"] else "no"}
    rows = [(name.replace("_", " "), str(value)) for name, value in shown.items() if value not in (None, "")]
    status = report.status
    rows += [("as of", status.as_of or "–"), ("epoch", str(status.epoch))]
    rows += [("reason of the reset", to_printable(status.reset_reason))] if status.reset_reason else []
    return [*rows, *version_rows(program_versions())]
