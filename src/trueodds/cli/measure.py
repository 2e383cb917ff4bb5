"""trueodds measure: measure one calibration error or score."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import gate, gate_notes, gate_values, output, record_options
from trueodds.cli.costs import COST, check_takes_costs, read_costs
from trueodds.cli.open_data import open_data
from trueodds.cli.options import (
    FAIL_ON,
    JSON,
    LENS,
    SEED,
    WEIGHT_KIND,
    data_options,
    pop_columns,
)
from trueodds.cli.settings import INTERVAL_SETTINGS, pop_settings, settings_options


@click.command(short_help="Estimate a calibration error or a score.")
@data_options()
@click.option(
    "--estimator", default="ece", show_default=True, help="Name of the estimator: see trueodds list estimators."
)
@LENS
@COST
@JSON
@FAIL_ON
@WEIGHT_KIND
@SEED
@settings_options("estimators")
@click.pass_context
def measure(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    estimator: str,
    lens: str | None,
    cost_path: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    seed: int,
    mode: str | None,
    weight_kind: str | None,
    **params: Any,
) -> None:
    """Estimate a calibration error or a score, with its interval and noise floor."""
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS

    ESTIMATORS.check(estimator, method_settings, INTERVAL_SETTINGS)
    gates = gate.parse_gates(fail_on, gate_values.measure_scope(estimator, method_settings))
    if cost_path:
        check_takes_costs(ESTIMATORS, estimator, "--estimator ")
    takes_actions = ESTIMATORS.has_setting(estimator, "actions")
    data, costs = read_costs(open_data(files, columns), cost_path, mode, weight_kind, takes_actions=takes_actions)
    method_settings |= costs
    with record_options.name_question_in_errors(columns, costs=bool(cost_path)):
        if gates:  # read the rows only once, although the notes on gates use them again
            from trueodds.api.collect_or_tally import resolve_data

            data = resolve_data(data, mode, weight_kind)
        estimate = to.measure(
            data, estimator, lens=lens, rng=seed, mode=mode, weight_kind=weight_kind, **method_settings
        )
    output.print_result(estimate.describe(), estimate.notes, estimate.to_dict(), json_path)
    gate.evaluate_gates(
        ctx,
        gates,
        gate_values.GatedEstimate(estimate),
        estimate.notes,
        lambda condition: gate_notes.note_in_rows(condition, data, estimate.lens, method_settings.get("region")),
    )
