"""trueodds test: test the hypothesis that the predictions are calibrated."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import gate, gate_values, output, record_options
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
from trueodds.cli.settings import pop_settings, settings_options
from trueodds.core.progress import ProgressBar


@click.command(short_help="Test whether the predictions are calibrated.")
@data_options()
@click.option("--test", "name", default="omnibus", show_default=True, help="Name of the test: see trueodds list tests.")
@LENS
@COST
@JSON
@FAIL_ON
@WEIGHT_KIND
@SEED
@settings_options("tests")
@click.pass_context
def test(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    name: str,
    lens: str | None,
    cost_path: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    seed: int,
    mode: str | None,
    weight_kind: str | None,
    **params: Any,
) -> None:
    """Test the null hypothesis that the predictions are calibrated."""
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS

    TESTS.check(name, method_settings, ("region", "margin"))
    gates = gate.parse_gates(fail_on, gate_values.test_scope(method_settings.get("margin")))
    registry, costed_method, option = TESTS, name, "--test "
    if name == "consistency":  # which passes the costs on to its statistic
        registry, costed_method, option = ESTIMATORS, method_settings.get("statistic", "ece"), "--set statistic="
    if cost_path:
        check_takes_costs(registry, costed_method, option)
    with ProgressBar() as progress, record_options.name_question_in_errors(columns, costs=bool(cost_path)):
        takes_actions = registry.has_setting(costed_method, "actions")
        data, costs = read_costs(open_data(files, columns), cost_path, mode, weight_kind, takes_actions=takes_actions)
        method_settings |= costs
        verdict = to.test(
            data,
            name,
            lens=lens,
            rng=seed,
            mode=mode,
            weight_kind=weight_kind,
            progress=progress,
            **method_settings,
        )
    output.print_result(verdict.describe(), verdict.notes, verdict.to_dict(), json_path)
    gate.evaluate_gates(ctx, gates, gate_values.GatedVerdict(verdict), verdict.notes)
