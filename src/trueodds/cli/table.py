"""trueodds table: evaluate several models by several measures, as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import output
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.messages import note_line, spell_error
from trueodds.cli.open_data import find_models, is_tally, open_models
from trueodds.cli.options import JSON, NAMES, data_options, pop_columns_of_models
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar

FORMATS = ("text", "markdown", "latex", "csv")


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
