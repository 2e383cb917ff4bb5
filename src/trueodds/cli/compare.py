"""trueodds compare: compare the calibration of two models, or rank several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from trueodds.cli import gate, gate_values, output
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.messages import spell_options
from trueodds.cli.open_data import find_models, open_models
from trueodds.cli.options import FAIL_ON, JSON, NAMES, data_options, pop_columns_of_models
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar


@click.command(
    cls=FunctionCommand, function="api/compare.py", family="estimators",
    short_help="Compare the errors of two models, or rank several models.",
)  # fmt: skip
@data_options(has_models=True)
@NAMES
@click.option("--html", "html_path", metavar="F", help="Write the models side by side as a self-contained HTML page.")
@JSON
@FAIL_ON
@click.pass_context
def compare(
    ctx: click.Context,
    /,
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
    output.print_result(comparison.describe(), comparison.notes, comparison.to_dict(), json_path)
    if gates:  # there are two models, because gates on more were refused above
        target = comparison.settings.get("distance_from")
        distance = "" if target is None else f", distance from {format_number(target)},"
        remark = f" ({comparison.estimator}{distance} {' − '.join(comparison.names)})"
        gate_values.evaluate_gates(ctx, gates, gate_values.GatedResult(scope, comparison, remark), comparison.notes)
