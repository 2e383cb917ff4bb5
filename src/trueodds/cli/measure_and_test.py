"""trueodds measure, test, expect, threshold and power: what rows show, will show, and how many are needed."""

from __future__ import annotations

from typing import Any

import click

from trueodds.cli import gate, gate_values, output, record_options
from trueodds.cli.costs import COST, check_takes_costs, read_costs
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.open_data import open_data
from trueodds.cli.options import FAIL_ON, JSON, data_options, pop_columns
from trueodds.core.progress import ProgressBar


@click.command(
    cls=FunctionCommand, function="api/measure.py", family="estimators",
    short_help="Estimate a calibration error or a score.",
)  # fmt: skip
@data_options()
@COST
@JSON
@FAIL_ON
def measure(
    files: tuple[str, ...],
    estimator: str,
    cost_path: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Estimate a calibration error or a score, with its interval and noise floor."""
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS

    ESTIMATORS.check(estimator, method_settings, measure.text_parameters)
    scope = gate.measure_scope(estimator, method_settings)
    gates = gate.parse_gates(fail_on, scope)
    if cost_path:
        check_takes_costs(ESTIMATORS, estimator, "--estimator ")
    takes_actions = ESTIMATORS.has_setting(estimator, "actions")
    reading = params["mode"], params["weight_kind"]
    data, costs = read_costs(open_data(files, columns), cost_path, *reading, takes_actions=takes_actions)
    method_settings |= costs
    with record_options.name_question_in_errors(columns, costs=bool(cost_path)):
        if gates:  # read the rows only once, although the notes on gates use them again
            from trueodds.api.arguments import resolve_data

            data = resolve_data(data, *reading)
        estimate = to.measure(data, estimator, **params, **method_settings)
    gate_values.report_and_evaluate(
        gate_values.GatedResult(scope, estimate),
        json_path,
        gates,
        lambda condition: gate_values.note_in_rows(condition, data, estimate.lens, method_settings.get("region")),
    )


@click.command(
    cls=FunctionCommand, function="api/test.py", family="tests", without=("hypothesis", "level"),
    short_help="Test whether the predictions are calibrated.",
)  # fmt: skip
@data_options()
@COST
@JSON
@FAIL_ON
def test(
    files: tuple[str, ...],
    cost_path: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Test the null hypothesis that the predictions are calibrated."""
    name, method_settings, columns = params.pop("test"), pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS

    TESTS.check(name, method_settings, test.text_parameters)
    scope = gate.test_scope(method_settings.get("margin"))
    gates = gate.parse_gates(fail_on, scope)
    registry, costed_method, option = TESTS, name, "--test "
    if name == "consistency":  # which passes the costs on to its statistic
        registry, costed_method, option = ESTIMATORS, method_settings.get("statistic", "ece"), "--statistic "
    if cost_path:
        check_takes_costs(registry, costed_method, option)
    with ProgressBar() as progress, record_options.name_question_in_errors(columns, costs=bool(cost_path)):
        takes_actions = registry.has_setting(costed_method, "actions")
        reading = params["mode"], params["weight_kind"]
        data, costs = read_costs(open_data(files, columns), cost_path, *reading, takes_actions=takes_actions)
        method_settings |= costs
        verdict = to.test(data, name, progress=progress, **params, **method_settings)
    gate_values.report_and_evaluate(gate_values.GatedResult(scope, verdict), json_path, gates)


@click.command(
    cls=FunctionCommand, function="api/expect.py", short_help="Estimate the performance before labels come.",
)  # fmt: skip
@data_options()
@COST
@JSON
@FAIL_ON
def expect(
    files: tuple[str, ...],
    cost_path: str | None,
    calibrator: str | None,
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Estimate the performance that predictions will have if their probabilities are calibrated; no label is needed."""
    columns = pop_columns(params, needs_outcome=False)
    output.check_outputs(files, json=json_path)
    gates = gate.parse_gates(fail_on, gate.EXPECT_SCOPE)
    import trueodds as to

    fitted = None if calibrator is None else to.load(calibrator)
    data = open_data(files, columns, needs_label=False)
    data, costs = read_costs(data, cost_path, None, None, takes_actions=False)
    result = to.expect(data, calibrator=fitted, **costs, **params)
    gate_values.report_and_evaluate(gate_values.GatedResult(gate.EXPECT_SCOPE, result), json_path, gates)


@click.command(
    cls=FunctionCommand, function="api/threshold.py", short_help="Choose a threshold whose risk is at most a target.",
)  # fmt: skip
@data_options()
@JSON
@FAIL_ON
def threshold(
    files: tuple[str, ...],
    json_path: str | None,
    fail_on: tuple[str, ...],
    **params: Any,
) -> None:
    """Choose the threshold of a score so that errors, misses or false alarms are at most a given share.

    Without a threshold the exit status is 0, unless a gate requires one, such as --fail-on 'coverage<=0'.
    """
    columns = pop_columns(params)
    output.check_outputs(files, json=json_path)
    gates = gate.parse_gates(fail_on, gate.THRESHOLD_SCOPE)
    import trueodds as to

    with record_options.name_question_in_errors(columns, costs=False):
        result = to.threshold(open_data(files, columns), **params)
    gate_values.report_and_evaluate(gate_values.GatedResult(gate.THRESHOLD_SCOPE, result), json_path, gates)


@click.command(
    cls=FunctionCommand, function="api/power.py", family="tests",
    short_help="Plan a sample size, or compute the power of a test.",
)  # fmt: skip
@data_options()
@JSON
def power(files: tuple[str, ...], json_path: str | None, **params: Any) -> None:
    """Plan a sample size: the error that a test detects with n rows, or the rows for an error or an interval width."""
    name, method_settings, columns = params.pop("test"), pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    import trueodds as to
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS
    from trueodds.hypotests._power.power import PLAN_SETTINGS

    if params["width"] is None or name == "cox":
        TESTS.check(name, method_settings, (*power.text_parameters, *PLAN_SETTINGS))
    else:
        ESTIMATORS.check(params["estimator"], method_settings, (*power.text_parameters, "aggregate"))
    with ProgressBar() as progress:
        result = to.power(open_data(files, columns), name, progress=progress, **params, **method_settings)
    output.print_result(result.describe(), result.notes, result.to_dict(), json_path)
