"""trueodds audit: measure, test and recalibrate in one report, with gates for continuous integration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from trueodds.cli import audit_gates, gate, gate_values, output, record_options
from trueodds.cli.costs import COST, read_costs
from trueodds.cli.function_command import FunctionCommand
from trueodds.cli.groups import ACCEPT_UNEXAMINED, check_crossings
from trueodds.cli.messages import spell_notes
from trueodds.cli.open_data import is_tally, open_data
from trueodds.cli.options import FAIL_ON, JSON, data_options, pop_columns
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar


@click.command(
    cls=FunctionCommand, function="reports/audit.py",
    short_help="Report everything: errors, tests, subgroups and recalibration.",
)  # fmt: skip
@data_options(has_groups=True)
@click.option("--html", "html_path", metavar="F", help="Write the report as a self-contained HTML page.")
@click.option("--title", metavar="TEXT", help="Title of the page of --html.")
@click.option("--author", metavar="NAME", help="Who prepared the page of --html, which then has lines for signatures.")
@click.option(
    "--date", metavar="YYYY-MM-DD", help="Date of the page of --html. [default: today, with --title or --author]"
)
@JSON
@click.option("--brief", "is_brief", is_flag=True, help="Print the verdict and the main numbers, about ten lines.")
@COST
@FAIL_ON
@ACCEPT_UNEXAMINED
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    html_path: str | None,
    title: str | None,
    author: str | None,
    date: str | None,
    json_path: str | None,
    is_brief: bool,
    cost_path: str | None,
    fail_on: tuple[str, ...],
    accept_unexamined: bool,
    **params: Any,
) -> None:
    """Audit the calibration of predictions: estimate the errors, test them, and confirm a recalibration.

    FILE is a file of predictions, a pattern such as 'part-*.parquet', or a tally. Several files are combined.
    """
    cover = {"title": title, "author": author, "date": date}
    _check_cover(cover, html_path)
    gates = gate.parse_gates(fail_on, gate.AUDIT_SCOPE)
    columns = pop_columns(params)
    by_group = [condition.text for condition in gates if condition.group is not None]
    if by_group and "group" not in columns and not any(map(is_tally, files)):
        raise InputError("TO610", "No group column is named.", repr(by_group[0]), "Add --group C for every column.")
    output.check_outputs(files, html=html_path, json=json_path)
    check_crossings(files, columns, params["crossings"])
    with ProgressBar() as progress, record_options.name_question_in_errors(columns, costs=cost_path is not None):
        data, costs = read_costs(open_data(files, columns), cost_path, params["mode"], params["weight_kind"])
        settings = {name: params[name] for name in ("mode", "weight_kind", "level", "rng")}
        computed_values = audit_gates.ComputedGateValues(data, settings, params["crossings"], params["max_groups"])
        computed_values.prepare(gates)
        from trueodds.reports import audit as audit_data
        from trueodds.reports.audit_result import AuditResult

        audit_result = audit_data(data, progress=progress, **params, **costs)
        report = audit_result.to_dict()
    try:  # the files first, because a reader such as `head` may close stdout
        if html_path is not None:
            replace(audit_result, facts=spell_notes(audit_result.facts)).to_html(html_path, **cover)
            output.print_written(html_path)
        if json_path is not None:
            output.save_text(json_path, output.format_json(report))
    finally:  # a file that cannot be written does not lose the report
        if json_path != "-":
            _print_report(report, is_brief=is_brief)
    result = AuditResult.from_dict(report)
    gated_audit = gate_values.GatedAudit(
        result=result, measure=computed_values.measure, measure_groups=computed_values.measure_groups,
        accepts_unexamined=accept_unexamined,
    )  # fmt: skip
    gate_values.evaluate_gates(
        ctx, gates, gated_audit, audit_result.notes, lambda condition: gate_values.note_in_audit(condition, result)
    )


def _check_cover(cover: Mapping[str, str | None], html_path: str | None) -> None:
    """Raise an error for an invalid date, and for a title, an author or a date without a page, before the audit."""
    given = [f"--{name}" for name, value in cover.items() if value is not None]
    if not given:
        return
    from trueodds.reports.html.rendering import Cover

    if html_path is None:
        raise InputError("TO603", "Only a page has a title, an author and a date.", given[0], "Add --html F.")
    Cover.of(**cover)


def _print_report(report: Mapping[str, Any], *, is_brief: bool) -> None:
    from trueodds.reports.text import terminal

    render = terminal.render_brief if is_brief else terminal.render_text
    style = output.colorize if output.uses_colors() else None
    output.print_text(render(spell_notes(report), output.terminal_width(), style), is_colored=True)
