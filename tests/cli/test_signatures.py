"""Do the options of a command have the names of the parameters of the function that it calls?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import trueodds as to
from trueodds.cli import main
from trueodds.cli.options import COLUMN_OPTIONS
from trueodds.cli.settings import SETTING_OPTIONS

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "audit": to.audit,
    "measure": to.measure,
    "test": to.test,
    "groups": to.by_group,
    "compare": to.compare,
    "table": to.table,
    "power": to.power,
    "draw": to.draw,
    "fit": to.fit,
    "tally": to.tally,
}
# What only the command line has: files, outputs, gates, and how files, methods and presentation are selected.
COMMAND_LINE_ONLY = {
    "files", "out", "json_path", "html_path", "is_brief", "fail_on", "accept_unexamined", "cost_path", "name",
    "assignments", "per_file", "without", "no_title", "style", "width", "no_bold", "table_format", "names",
}  # fmt: skip
COLUMNS = {option.lstrip("-").replace("-", "_") for option, _ in COLUMN_OPTIONS}
SETTINGS = {option.lstrip("-").replace("-", "_") for option in SETTING_OPTIONS}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_what_a_command_passes_on_is_a_parameter_of_its_function(command: str) -> None:
    names = {str(param.name) for param in main.commands[command].params}
    passed = names - COMMAND_LINE_ONLY - COLUMNS - (SETTINGS if "assignments" in names else set())
    assert passed <= set(inspect.signature(FUNCTIONS[command]).parameters)


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_default_of_the_command_line_is_that_of_the_function(command: str) -> None:
    parameters = inspect.signature(FUNCTIONS[command]).parameters
    for param in main.commands[command].params:
        if param.name in parameters and param.name not in COMMAND_LINE_ONLY and isinstance(param.default, float | str):
            assert param.default == parameters[param.name].default, param.name
