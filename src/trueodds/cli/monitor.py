"""trueodds monitor: raise an alarm when the probabilities of a deployed model stop being true."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueodds.cli import output
from trueodds.cli.function_command import FunctionCommand, parse_value, read_parameters
from trueodds.cli.gate_values import GATE_FAILED
from trueodds.cli.messages import spell_options
from trueodds.cli.open_data import is_tally, matching_paths, names_of_files, open_data, refuse_copies, refuse_repeated
from trueodds.cli.options import COLUMN_KEYWORDS, FRACTION, JSON, data_options, pop_columns
from trueodds.cli.record_options import has_record_options
from trueodds.core.errors import InputError, argument, parse_marks
from trueodds.core.progress import ProgressBar, report_in_rows

if TYPE_CHECKING:
    from trueodds.io.source import RowProgress
    from trueodds.monitoring.cohort_tally import RowBatch
    from trueodds.monitoring.monitor import Monitor
    from trueodds.monitoring.monitor_report import MonitorReport

MODULE = "monitoring/monitor.py"
ROWS_PER_BATCH = 2**19  # rows that are read at a time; a batch in which all cohorts occur has sums of each
# How files are read, which may change between calls; other columns are those of the first call.
_ENGINE_KEYWORDS = ("engine", "scheduler", "master")
_READING_KEYWORDS = (*_ENGINE_KEYWORDS, "separator", "decimal", "sum_tolerance")
_DEFAULT_COLUMNS = {"label": "label", "probs": "p_*"}


@click.command(
    cls=FunctionCommand, function=MODULE, first=("state_path", "time", "as_of"),
    short_help="Raise an alarm when the probabilities of a model stop being true.",
)  # fmt: skip
@data_options(has_groups=True, needs_files=False, without=("--missing",))
@click.option("--state", "state_path", metavar="F", help="File with the state of the monitor, such as monitor.json.")
@click.option("--time", metavar="C", help="Column of the time of each prediction: dates, datetimes or integers.")
@click.option(
    "--as-of", metavar="TIME", help="Moment when the labels were extracted. [default: the newest prediction time]"
)
@click.option("--allow-fewer", is_flag=True, help="Accept fewer rows than before in a cohort that is not judged.")
@click.option("--reset", metavar="REASON", help="Begin the next epoch, after an alarm that was acted upon.")
@click.option(
    "--since",
    metavar="TIME",
    help="Time from which the new model is used, with --reset. [default: after the cohorts given]",
)
@click.option("--require-judged", is_flag=True, help="Exit with status 2 if no cohort has been judged.")
@click.option("--html", "html_path", metavar="F", help="Write the report as a self-contained HTML page.")
@JSON
@click.option(
    "--openmetrics",
    "metrics_path",
    metavar="F",
    help="Write the main numbers as OpenMetrics, for Prometheus.",
)
@click.option("--fleet", is_flag=True, help="FILES are states of several models: say which of them need attention.")
@click.option(
    "--fdr", type=FRACTION, metavar="X", help="Share of false discoveries among them, with --fleet. [default: 0.05]"
)
@click.pass_context
def monitor(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    state_path: str | None,
    time: str | None,
    as_of: str | None,
    allow_fewer: bool,
    reset: str | None,
    since: str | None,
    require_judged: bool,
    html_path: str | None,
    json_path: str | None,
    metrics_path: str | None,
    fleet: bool,
    fdr: float | None,
    **params: Any,
) -> None:
    """Monitor a deployed model, whose labels arrive late.

    Give the whole table of predictions again and again, or files of new days; all files of a call count as one. The
    first call fixes the settings and the columns in the state, and later calls need the files and --state only. Without
    files, the report of the state is printed again.

    Exit status: 0 no alarm, 1 an alarm in the current epoch, 2 invalid input, or a check that could not be made.
    """
    given = {name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    if fleet:
        _run_fleet(ctx, files, 0.05 if fdr is None else fdr, json_path, metrics_path, given)
        return
    if fdr is not None:
        raise InputError("TO603", "--fdr is for several models.", f"--fdr {fdr:g}", "Add --fleet, or omit it.")
    if state_path is None:
        raise InputError("TO601", "The state of the monitor has no file.", "no --state", "Add --state monitor.json.")
    settings = {name: params.pop(name) for name in read_parameters(MODULE) if name != "group"}
    settings = {name: value for name, value in settings.items() if name in given}
    if "horizon" in settings:
        settings["horizon"] = parse_value(settings["horizon"])
    columns = pop_columns(params)
    if "group" in columns:
        settings["group"] = columns.pop("group")
    if time is not None:
        columns["time"] = time
    output.check_outputs(files, state=state_path, html=html_path, json=json_path, openmetrics=metrics_path)
    monitor = _load_or_start(state_path, settings, has_files=bool(files))
    source_notes: Sequence[Any] = ()
    if files:
        source_notes = _update(monitor, files, columns, as_of, allow_fewer=allow_fewer, judges=reset is None)
    else:
        _refuse_options_of_rows(given)
    if reset is not None:
        monitor.reset(reset, None if since is None else _parse_moment(monitor, since))
    elif since is not None:
        raise InputError("TO603", "--since says when the new model began.", f"--since {since}", "Add --reset.")
    report = monitor.report()
    if files or reset is not None:
        monitor.save(state_path)
    if require_judged:  # the rows are kept, because later calls may bring only new ones
        monitor.report(require_judged=True)
    _write_report(report, source_notes, _model_name(state_path), html_path, json_path, metrics_path)
    if report.alarm:
        ctx.exit(GATE_FAILED)


def _load_or_start(path: str, settings: Mapping[str, Any], *, has_files: bool) -> Monitor:
    """Return the saved monitor, whose settings must be those that are given, or a new one."""
    if not os.path.exists(os.path.expanduser(path)):
        if not has_files:
            raise InputError("TO301", "There is no such file.", repr(path), "Name the files of predictions, too.")
        from trueodds.monitoring.monitor import Monitor

        return Monitor(**settings)
    monitor = _load(path)
    monitor.settings.refuse_others(settings)
    return monitor


def _load(path: str) -> Monitor:
    """Load the state of a monitor; raise TO905 for another file."""
    from trueodds.monitoring import monitor

    return monitor.load(os.path.expanduser(path))


def _update(
    monitor: Monitor,
    files: Sequence[str],
    columns: Mapping[str, Any],
    as_of: str | None,
    *,
    allow_fewer: bool,
    judges: bool,
) -> Sequence[Any]:
    """Give the rows of the files to the monitor, and return the notes on how they were read."""
    from trueodds.monitoring.monitor import fix_columns, read_columns, update_from_batches

    fixed = read_columns(monitor)
    columns = _join_columns(fixed, columns)
    if "time" not in columns:
        fix = "Add --time C, a column of dates, datetimes or integers."
        raise InputError("TO601", "A monitor needs the time of each prediction.", "no --time", fix)
    if tallies := [file for file in files if is_tally(file)]:
        fix = "Name files of predictions; the state of a monitor is a sum already."
        raise InputError("TO603", "A monitor cannot read tallies, which have no times.", tallies[0], fix)
    refuse_copies(files)
    time = columns["time"]
    # The columns of times and clusters are read as groups, which may have any type and are the same in all batches.
    extra = [name for name in (time, columns.get("cluster")) if name is not None]
    groups = list(dict.fromkeys([*monitor.settings.group_columns, *extra]))
    reading = {name: value for name, value in columns.items() if name not in ("time", "cluster")} | {"group": groups}
    moment = None if as_of is None else _parse_moment(monitor, as_of)
    with ProgressBar() as progress:
        if not has_record_options(files, reading):
            reading["batch_rows"] = ROWS_PER_BATCH
        with _restate_group_errors(time=time, cluster=columns.get("cluster")):
            source = open_data(files, reading, needs_label=False).with_time_column(time)
        batches = _SourceBatches(source, time, columns.get("cluster"), report_in_rows(progress))
        update_from_batches(monitor, batches, moment, allow_fewer=allow_fewer, judges=judges)
    if not fixed:
        fix_columns(monitor, {name: value for name, value in columns.items() if name not in _ENGINE_KEYWORDS})
    return source.notes


def _parse_moment(monitor: Monitor, text: str) -> Any:
    """Return a moment as the monitor takes it: a number if cohorts are integers."""
    return parse_value(text) if monitor.settings.unit == "integer" else text


@contextmanager
def _restate_group_errors(**columns: str | None) -> Iterator[None]:
    """Name the option of a column that is read as a group, in the error that the file does not have it (TO304)."""
    try:
        yield
    except InputError as problem:
        for keyword, name in columns.items():
            if problem.code == "TO304" and problem.got == parse_marks(argument("group", name)):
                raise InputError("TO304", problem.problem, argument(keyword, name), problem.fix) from None
        raise


class _SourceBatches:
    """The rows of a source in batches, as often as they are read."""

    def __init__(self, source: Any, time: str, cluster: str | None, progress: RowProgress) -> None:
        self.source, self.time, self.cluster, self.progress = source, time, cluster, progress

    def __iter__(self) -> Iterator[RowBatch]:
        from trueodds.monitoring.cohort_tally import RowBatch

        n_read = 0
        for preds in self.source.batches():
            cluster = None if self.cluster is None else preds.group[self.cluster]
            yield RowBatch(preds, preds.group[self.time], preds.row_id, cluster)
            n_read += preds.n
            self.progress(n_read, self.source.rows)


def _join_columns(fixed: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the first call with what is given now; raise TO904 for another column."""
    for name, value in given.items():
        before = fixed.get(name, _DEFAULT_COLUMNS.get(name))
        if fixed and name not in _READING_KEYWORDS and value != before:
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                "TO904",
                f"The first call fixed the columns of this monitor; {option} cannot change.",
                f"{value!r} instead of {before!r}",
                f"Leave out {option}, or start a new monitor.",
            )
    return {**fixed, **given}


def _refuse_options_of_rows(given: set[str]) -> None:
    """Raise TO603 for options that need rows, in a call without files."""
    if unused := [name for name in ("time", "as_of", "allow_fewer", *COLUMN_KEYWORDS) if name in given]:
        option = f"--{unused[0].replace('_', '-')}"
        raise InputError("TO603", "Without files no rows are read.", option, f"Name the files, or omit {option}.")


def _write_report(
    report: MonitorReport,
    source_notes: Sequence[Any],
    model: str,
    html_path: str | None,
    json_path: str | None,
    metrics_path: str | None,
) -> None:
    """Write the files, and print the report with commands instead of Python code."""
    if html_path is not None:
        spelled = tuple(replace(note, text=spell_options(note.text)) for note in report.notes)
        replace(report, notes=spelled).to_html(html_path)
        output.print_written(html_path)
    if metrics_path is not None:
        _write_metrics(metrics_path, {model: report})
    text = report.describe()
    for code, command in (
        (report.advice.fit, report.advice.fit_command),
        (report.advice.confirm, report.advice.confirm_command),
    ):
        text = text.replace(code, command) if code else text
    notes = [*source_notes, *report.notes]
    output.print_result(spell_options(text), notes, report.to_dict(), json_path)


def _write_metrics(path: str, reports: Mapping[str, MonitorReport], discoveries: Sequence[str] | None = None) -> None:
    from trueodds.monitoring.open_metrics import open_metrics

    output.save_text(path, open_metrics(reports, discoveries).removesuffix("\n"))


def _model_name(path: str) -> str:
    """Return the name of a state file without its folder and suffix."""
    return Path(path).stem


def _run_fleet(
    ctx: click.Context,
    files: Sequence[str],
    fdr: float,
    json_path: str | None,
    metrics_path: str | None,
    given: set[str],
) -> None:
    """Print which of several monitors need attention; exit with status 1 if any does."""
    if unused := sorted(given - {"files", "fleet", "fdr", "json_path", "metrics_path"}):
        option = next(option.opts[0] for option in ctx.command.params if option.name == unused[0])
        problem = "With --fleet the files are states of monitors, and only --fdr, --json and --openmetrics apply."
        raise InputError("TO603", problem, option, f"Omit {option}, or --fleet.")
    output.check_outputs(files, json=json_path, openmetrics=metrics_path)
    paths = [path for file in files for path in matching_paths(os.path.expanduser(file))]
    if not paths:
        got = f"no file that matches {', '.join(map(repr, files))}" if files else "no FILE"
        raise InputError("TO601", "No model is named.", got, "Name the states of the monitors.")
    refuse_repeated(files)
    from trueodds.monitoring.fleet import examine_fleet

    reports = {name: _load(path).report() for name, path in zip(names_of_files(paths), paths, strict=True)}
    result = examine_fleet(reports, fdr)
    if metrics_path is not None:
        _write_metrics(metrics_path, reports, result.discoveries)
    output.print_result(result.describe(), result.notes, result.to_dict(), json_path)
    if result.discoveries:
        ctx.exit(GATE_FAILED)
