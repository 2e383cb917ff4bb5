"""trueodds audit: measure, test and recalibrate in one report, with gates for continuous integration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import gate, gate_values, output, record_options
from trueodds.cli.costs import COST, read_costs
from trueodds.cli.function_command import FunctionCommand
from trueodds.cli.groups import ACCEPT_UNEXAMINED, check_crossings
from trueodds.cli.messages import spell_notes
from trueodds.cli.open_data import is_tally, open_data
from trueodds.cli.options import FAIL_ON, JSON, data_options, pop_columns
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar

if TYPE_CHECKING:
    from trueodds.core.results import Estimate

AUDITED_ESTIMATORS = ("ece", "brier", "log_loss")  # those that every audit measures, as a test checks


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
def audit(
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
        computed_values = ComputedGateValues(data, settings, params["crossings"], params["max_groups"])
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
        gates, gated_audit, audit_result.notes, lambda condition: gate_values.note_in_audit(condition, result)
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


class ComputedGateValues:
    """Numbers that gates bound but the audit does not report, computed on the same rows, each only once.

    `settings` are those of the audit: `mode`, `weight_kind`, `level` and `rng`; `crossings` and `max_groups` are those
    that choose its groups.
    """

    def __init__(
        self, data: Any, settings: Mapping[str, Any], crossings: int = 1, max_groups: int | None = None
    ) -> None:
        self._data, self._settings, self._crossings, self._max_groups = data, settings, crossings, max_groups
        self._estimates: dict[tuple[str, str | None], Estimate] = {}
        self._group_estimates: dict[str, dict[str, Estimate]] = {}

    def prepare(self, gates: Sequence[gate.Gate]) -> None:
        """Compute the estimates before the audit starts, so that invalid gates are rejected first."""
        for condition in gates:
            try:
                if condition.group is not None and condition.name != "ece":
                    self.measure_groups(condition)
                elif (
                    condition.operator
                    and condition.group is None
                    and condition.name not in gate.AUDIT_SCOPE.numbers
                    and not _is_reported(condition)
                ):
                    self.measure(condition)
            except InputError as problem:
                if problem.code != "TO611":  # a valid gate that cannot be evaluated does not replace the report
                    raise

    def measure(self, condition: gate.Gate) -> Estimate:
        key = condition.name, condition.lens
        if key not in self._estimates:
            import trueodds as to

            name = self._estimator_of_answers(condition)
            self._estimates[key] = to.measure(self._rows, name, lens=condition.lens, **self._settings)
        return self._estimates[key]

    def measure_groups(self, condition: gate.Gate) -> Mapping[str, Estimate]:
        """Return the estimate of every group that a gate bounds, with the numbers of `trueodds groups`."""
        if condition.name not in self._group_estimates:
            from trueodds.api.by_group import estimate_by_group

            if self._n_questions > self._rows.n and condition.coverage is not None:
                problem, fix = "the questions without an answer have no group", "Use trueodds groups, for the answers."
                raise condition.not_evaluable_error(problem, fix)
            self._group_estimates[condition.name] = estimate_by_group(
                self._rows,
                condition.name,
                self._crossings,
                self._settings["level"],
                self._settings["rng"],
                self._max_groups,
            )
        return self._group_estimates[condition.name]

    def _estimator_of_answers(self, condition: gate.Gate) -> str:
        """Return the name of the estimator of a gate. The coverage of a risk becomes a share of the answers.

        A gate states it as a share of all questions.
        """
        if condition.coverage is None or self._n_questions <= self._rows.n:
            return condition.name
        from trueodds.lenses.selective_risk import COVERAGE_TOLERANCE

        share = condition.coverage * self._n_questions / self._rows.n
        if share > 1 + COVERAGE_TOLERANCE:  # no answers to so many questions
            got = f"answers to {self._rows.n:,} of {self._n_questions:,} questions"
            raise condition.not_evaluable_error(got, "Name a smaller coverage.")
        return f"{condition.base_name}@{min(share, 1.0)!r}"

    @property
    def _n_questions(self) -> int:
        """Number of questions, including those without an answer; that of the rows if these are no answers."""
        return int(getattr(self._data, "n_queries", None) or self._rows.n)

    @cached_property
    def _rows(self) -> Any:
        """The predictions, or their tally."""
        from trueodds.api.arguments import resolve_data

        return resolve_data(self._data, self._settings["mode"], self._settings["weight_kind"])


def _is_reported(condition: gate.Gate) -> bool:
    """Return whether an audit reports the number that a gate bounds (as null if it is infinite)."""
    audited_lenses = (None, "positive", "confidence", "classwise", "canonical")
    return condition.name in AUDITED_ESTIMATORS and condition.lens in audited_lenses
