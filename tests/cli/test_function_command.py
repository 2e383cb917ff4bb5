"""Are the options of a command those of the function that it calls: names, defaults, values and texts?"""

from __future__ import annotations

import inspect
import subprocess
import sys

import click
import pytest

import trueodds as to
from trueodds.cli import main
from trueodds.cli.function_command import FunctionCommand, read_parameters

COMMANDS = {name: command for name, command in main.commands.items() if isinstance(command, FunctionCommand)}
# Parameters without an option: the command passes them itself, reads them from a file, or has no use for them.
PASSED_BY_THE_COMMAND = {"progress"}
WITHOUT_OPTION = {
    "audit": {"cost", "actions"},
    "expect": {"cost"},
    "test": {"hypothesis", "level"},
    "table": {"lens", "bold"},  # --lens is `lenses`, and --no-bold is a flag
    "draw": {"ax", "legend", "ncols"},
    "fit": {"lens", "level", "mode"},
}

NAME_OF_FUNCTION = {"groups": "by_group", "judge": "prediction_powered_mean", "monitor": "Monitor"}


def signature(command: str) -> dict[str, inspect.Parameter]:
    """The parameters of the public function, without the data and the settings of methods."""
    function = getattr(
        to, {"groups": "by_group", "judge": "prediction_powered_mean", "monitor": "Monitor"}.get(command, command)
    )
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
        and parameter.kind is not parameter.POSITIONAL_ONLY
        and parameter.default is not parameter.empty
    }


def options(command: str) -> dict[str, click.Option]:
    return {str(param.name): param for param in COMMANDS[command].params if isinstance(param, click.Option)}


def test_the_commands_of_functions_are_known() -> None:
    assert list(COMMANDS) == [
        "audit", "measure", "test", "groups", "compare", "table", "expect", "threshold", "power", "draw", "fit",
        "tally", "judge", "monitor",
    ]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_parameter_of_the_function_has_an_option(command: str) -> None:
    without = WITHOUT_OPTION.get(command, set()) | PASSED_BY_THE_COMMAND
    assert [name for name in signature(command) if name not in options(command)] == [
        name for name in signature(command) if name in without
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_those_of_the_function(command: str) -> None:
    for name, option in options(command).items():
        if name in signature(command) and isinstance(option.default, float | str):
            assert option.default == signature(command)[name].default, name


@pytest.mark.parametrize("command", COMMANDS)
def test_the_source_is_read_as_python_reads_it(command: str) -> None:
    parameters = read_parameters(COMMANDS[command].function)
    assert {name: parameter.default for name, parameter in parameters.items() if name != "measures"} == {
        name: parameter.default for name, parameter in signature(command).items() if name != "measures"
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_short_text_without_python(command: str) -> None:
    for option in options(command).values():
        text = option.help or ""
        assert 10 < len(text) < 300, option.opts
        assert text.endswith((".", "]")), text
        assert not set(text) & set('`"'), text


def test_texts_name_options_and_list_values() -> None:
    texts = {name: option.help for name, option in (options("measure") | options("power")).items()}
    assert texts["interval"] == (
        "Method of the confidence interval: auto, percentile, basic, bca, sun, debiased, none. [default: auto]"
    )
    assert texts["estimator"] == "Estimator whose interval is planned with --width."
    assert texts["mode"] == (
        "Keep the rows in memory (exact) or count them in the cells of a fine grid (tally). By default rows are kept if"
        " they have at most 20 million probabilities."
    )
    mode = options("measure")["mode"].type
    assert isinstance(mode, click.Choice)
    assert list(mode.choices) == ["exact", "tally"]


def test_the_help_needs_neither_docstrings_nor_numpy() -> None:
    code = (
        "import sys, trueodds.cli\ntry: trueodds.cli.main(['audit', '--help'])\nfinally: print('numpy' in sys.modules)"
    )
    printed = [
        subprocess.run(
            [sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
        ).stdout
        for flags in ((), ("-O",), ("-OO",))
    ]
    assert printed[0].endswith("False\n")
    assert "Significance level of the family-wise test." in printed[0]
    options_of = [text[text.index("Options:") :] for text in printed]
    assert options_of == [options_of[0]] * 3
