"""trueodds compare and table: compare two models, rank several, or evaluate them by several measures as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from trueodds.cli import gate, gate_values, output
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.messages import note_line, spell_error, spell_options
from trueodds.cli.open_data import find_models, is_tally, open_models
from trueodds.cli.options import FAIL_ON, JSON, NAMES, data_options, pop_columns_of_models
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar

FORMATS = ("text", "markdown", "latex", "csv")


@click.command(
    cls=FunctionCommand, function="api/compare.py", family="estimators",
    short_help="Compare the errors of two models, or rank several models.",
)  # fmt: skip
@data_options(has_models=True)
@NAMES
@click.option("--html", "html_path", metavar="F", help="Write the models side by side as a self-contained HTML page.")
@JSON
@FAIL_ON
def compare(
    files: tuple[str, ...],
    estimator: str | None,
    names: str | None,
    html_path: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Compare the errors or scores of two models, or rank several models.

    Each FILE (or quoted pattern) has the predictions of one model, in columns of the same names; or one FILE has those
    of several models, each selected by a --probs or --logits of its own. Models with the same rows are compared row by
    row; --question or --row-id identifies the rows.
    """
    method_settings, columns = pop_settings(params), pop_columns_of_models(params)
    output.check_outputs(files, html=html_path, json=json_path)
    located_models = find_models(files, columns)
    if len(located_models) < 2:
        requested = columns[0].get("logits", columns[0].get("probs"))
        keyword, names_in_file = "logits" if "logits" in columns[0] else "probs", ["A", "B"]
        if isinstance(requested, list):
            names_in_file = requested
        options = " ".join(f"--{keyword} {name}" for name in names_in_file)
        fix = f"Pass one file per model; if the models are columns of one file, pass {options}."
        raise InputError("TO601", "A comparison needs at least two models.", files[0], fix)
    if fail_on and len(located_models) > 2:
        problem = "A ranking of several models has no single difference."
        raise InputError("TO610", problem, f"--fail-on with {len(located_models)} models", "Compare two models.")
    model_names = [name.strip() for name in names.split(",")] if names else [model.name for model in located_models]
    from trueodds.api.compare import DEFAULT_ESTIMATOR
    from trueodds.api.compare import compare as compare_models
    from trueodds.core.formatting import format_number
    from trueodds.estimators import ESTIMATORS

    ESTIMATORS.check(estimator or DEFAULT_ESTIMATOR, method_settings, compare.text_parameters)
    scope = gate.compare_scope(estimator or DEFAULT_ESTIMATOR, method_settings)
    gates = gate.parse_gates(fail_on, scope)
    with ProgressBar() as progress:
        models = open_models(located_models, progress)
        estimator_args = [] if estimator is None else [estimator]
        positional: list[Any] = [*models, *estimator_args] if len(models) == 2 else [models, *estimator_args]
        comparison = compare_models(*positional, names=model_names, **(params | method_settings))
        if html_path is not None:
            notes = tuple(replace(note, text=spell_options(note.text)) for note in comparison.notes)
            replace(comparison, notes=notes).to_html(dict(zip(model_names, models, strict=True)), html_path)
    if html_path is not None:
        output.print_written(html_path)
    remark = ""
    if gates:  # there are two models, because gates on more were refused above
        target = comparison.settings.get("distance_from")
        distance = "" if target is None else f", distance from {format_number(target)},"
        remark = f" ({comparison.estimator}{distance} {' − '.join(comparison.names)})"
    gate_values.report_and_evaluate(gate_values.GatedResult(scope, comparison, remark), json_path, gates)


@click.command(
    cls=FunctionCommand, function="api/table.py", family="estimators", without=("lens", "bold"),
    short_help="Evaluate several models by several measures, as a table.",
)  # fmt: skip
@data_options(has_models=True)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help=(
        "accuracy, or the name of an estimator: see trueodds list estimators. May be repeated. [default: accuracy, ece,"
        " debiased_l2, brier, log_loss]"
    ),
)
@click.option(
    "--lens",
    "lenses",
    multiple=True,
    help="Lens of every measure, such as confidence or classwise. May be repeated. [default: depends on the measure]",
)
@click.option(
    "--format", "table_format", type=click.Choice(FORMATS), default="text", show_default=True,
    help="Form of the table; latex needs the package booktabs.",
)  # fmt: skip
@click.option("--no-bold", is_flag=True, help="Do not compare the models, which is faster: no value is bold.")
@NAMES
@JSON
def table(
    files: tuple[str, ...],
    measures: tuple[str, ...],
    lenses: tuple[str, ...],
    by: str | None,
    table_format: str,
    no_bold: bool,
    names: str | None,
    json_path: str | None,
    **params: Any,
) -> None:
    """Evaluate several models by several measures, as a table for a paper.

    Each FILE (or quoted pattern) has the predictions of one model, in columns of the same names; or one FILE has those
    of several models, each selected by a --probs or --logits of its own. A value is bold (* in text) if its model is
    significantly better than every other one. With --by, calibration is tested for every model in every segment
    instead (†: rejected, ?: not judged), with one adjustment for all of them.
    """
    params["group"] = () if by is None or all(map(is_tally, files)) else (by,)  # tallies have all of their columns
    settings, columns = pop_settings(params), pop_columns_of_models(params)
    output.check_outputs(files, json=json_path)
    from trueodds.api.compare import name_models
    from trueodds.api.table import DEFAULT_MEASURES
    from trueodds.api.table import table as evaluate

    located_models = find_models(files, columns)
    model_names = [name.strip() for name in names.split(",")] if names else [model.name for model in located_models]
    with ProgressBar() as progress:
        try:
            models = open_models(located_models, progress)
        except InputError as problem:  # of the column of segments, which other commands call --group
            spelled = spell_error(problem)
            got, fix = (text.replace("--group", "--by") for text in (spelled.got, spelled.fix))
            raise InputError(problem.code, spelled.problem, got, fix) from None
        result = evaluate(
            name_models(models, model_names),
            list(measures or DEFAULT_MEASURES),
            list(lenses) or None,
            by=by,
            bold=False if no_bold else None,
            progress=progress,
            **params,
            **settings,
        )
    if json_path is not None:
        output.save_text(json_path, output.format_json(result.to_dict()))
    if json_path == "-":
        return
    if table_format == "text":
        description = result.describe(output.text_width())
        output.print_result(description, result.notes, result.to_dict(), None, is_verbatim=True)
        return
    text = result.to_csv()
    if table_format != "csv":
        text = result.to_markdown() if table_format == "markdown" else result.to_latex()
    output.print_text(text.rstrip("\n"), is_verbatim=True)  # not wrapped, because it is copied or redirected
    for note in result.notes:  # apart from the table, which may be redirected to a file
        output.print_text(f"  {note_line(note)}", err=True)
