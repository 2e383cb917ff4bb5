"""trueodds groups: measure and test calibration in every subgroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import click

from trueodds.cli import gate, gate_values, output
from trueodds.cli.function_command import FunctionCommand, pop_settings
from trueodds.cli.open_data import is_tally, open_data
from trueodds.cli.options import FAIL_ON, JSON, data_options, pop_columns
from trueodds.core.errors import InputError
from trueodds.core.progress import ProgressBar

ACCEPT_UNEXAMINED = click.option(
    "--accept-unexamined", is_flag=True, help="Let gates pass although some groups were not examined."
)


def complete_crossings(args: list[str]) -> list[str]:
    """Return the arguments of a command with the number 2 for --crossings where none follows it, as before a file.

    >>> complete_crossings(["--crossings", "a.csv"]), complete_crossings(["--crossings", "3", "a.csv"])
    (['--crossings=2', 'a.csv'], ['--crossings', '3', 'a.csv'])
    """
    end = args.index("--") if "--" in args else len(args)
    return [
        "--crossings=2" if arg == "--crossings" and i < end and not following.isdecimal() else arg
        for i, (arg, following) in enumerate(pairwise([*args, ""]))
    ]


def check_crossings(files: Sequence[str], columns: Mapping[str, Any], crossings: int) -> None:
    """Refuse crossings of a tally, which does not keep the combinations, and of columns that are not named."""
    group_columns = columns.get("group", ())
    if crossings > 1 and (tally := next((file for file in files if is_tally(file)), None)):
        fix = "Audit the predictions, with --group C for every column, or leave --crossings out."
        raise InputError("TO323", "Crossings of groups need the rows.", f"--crossings with {tally}, a tally", fix)
    if crossings > 1 and len(group_columns) < 2:
        got = f"--group {group_columns[0]} alone" if group_columns else "no --group"
        raise InputError(
            "TO324", "--crossings needs at least two group columns.", got, "Add --group C for every column."
        )


@click.command(
    cls=FunctionCommand, function="api/by_group.py", family="estimators",
    short_help="Estimate and test the error of every group of rows.",
)  # fmt: skip
@data_options(has_groups=True)
@JSON
@FAIL_ON
@ACCEPT_UNEXAMINED
def groups(
    files: tuple[str, ...],
    estimator: str,
    json_path: str | None,
    fail_on: tuple[str, ...],
    accept_unexamined: bool,
    **params: Any,
) -> None:
    """Estimate and test the calibration error of every group, jointly, and the gaps between groups.

    Name each group column by its own --group.
    """
    method_settings, columns = pop_settings(params), pop_columns(params)
    output.check_outputs(files, json=json_path)
    if tally := next((file for file in files if is_tally(file)), None):
        fix = f"trueodds audit {tally} reports the groups that were tallied; their joint test needs the predictions."
        raise InputError("TO403", "The joint test of groups needs the rows.", f"{tally}, a tally", fix)
    if "group" not in columns:
        raise InputError("TO601", "No group column is named.", "no --group", "Add --group C for every such column.")
    check_crossings(files, columns, params["crossings"])
    from trueodds.api.by_group import by_group
    from trueodds.estimators import ESTIMATORS

    ESTIMATORS.check(estimator, method_settings, groups.text_parameters)
    scope = gate.groups_scope(estimator, method_settings)
    gates = gate.parse_gates(fail_on, scope)
    with ProgressBar() as progress:
        group_results = by_group(open_data(files, columns), estimator, progress=progress, **(params | method_settings))
    text = group_results.describe().replace("in `.gaps` and in the JSON", "with --json")
    output.print_result(text, group_results.notes, group_results.to_dict(), json_path)
    gate_values.evaluate_gates(
        gates,
        gate_values.GatedGroups(scope, group_results, accepts_unexamined=accept_unexamined),
        group_results.notes,
        lambda condition: gate_values.note_in_groups(condition, group_results),
    )
