"""Models in columns of one file; an option with a single value that is given twice is an error."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from trueodds.cli import main


@pytest.fixture
def columns(folder: Path) -> str:
    """A file with the probabilities of two models."""
    draw = np.random.default_rng(0)
    p = draw.beta(2, 3, 300).round(4)
    y = (draw.random(300) < p).astype(int)
    lines = [f"{a},{b},{min(1.0, b + 0.05)}" for a, b in zip(y, p, strict=True)]
    path = folder / "oof.csv"
    path.write_text("label,lgb,xgb\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_models_in_columns_are_compared_by_name(run: Run, columns: str) -> None:
    words = ("compare", columns, "--probs", "lgb", "--probs", "xgb", "--estimator", "brier", "--json", "-")
    result = json.loads(run(*words).stdout)
    models = [to.read(columns, probs=name) for name in ("lgb", "xgb")]
    expected = to.compare(*models, "brier", names=["lgb", "xgb"]).to_dict()
    assert result == expected
    assert "lgb" in run(*words[:-2]).stdout


def test_a_table_has_a_row_for_each_model_in_columns(run: Run, columns: str) -> None:
    words = ("table", columns, "--probs", "lgb", "--probs", "xgb", "--measure", "brier", "--interval", "none")
    lines = run(*words, "--format", "csv").stdout.splitlines()
    values = {line.split(",")[0]: float(line.split(",")[4]) for line in lines[1:]}
    rows = np.genfromtxt(columns, delimiter=",", names=True)
    assert values == pytest.approx({name: np.mean((rows[name] - rows["label"]) ** 2) for name in ("lgb", "xgb")})
    assert [line[:1] for line in run(*words, "--names", "A,B").stdout.splitlines()[2:4]] == ["A", "B"]


def test_models_are_either_files_or_columns(run: Run, columns: str) -> None:
    result = run("compare", columns, columns, "--probs", "lgb", "--probs", "xgb")
    assert (result.exit_code, "TO603" in result.stderr) == (2, True)
    result = run("compare", columns, "--probs", "lgb,xgb", "--estimator", "brier")
    assert (result.exit_code, "--probs lgb --probs xgb" in result.stderr) == (2, True)
    result = run("compare", columns, "--probs", "lgb", "--probs", "lgb")
    assert (result.exit_code, "TO205" in result.stderr) == (2, True)


def test_every_option_with_a_single_value_is_refused_if_it_is_given_twice(run: Run, columns: str) -> None:
    n_options = 0
    for name, command in main.commands.items():
        for option in command.params:
            if not isinstance(option, click.Option) or option.multiple:
                continue
            word = option.opts[-1]
            value = () if option.is_flag else ("1",)
            result = run(name, columns, word, *value, word, *value)
            assert (result.exit_code, f"{word} was given twice" in result.stderr) == (2, True), (name, word)
            n_options += 1
    assert n_options > 200


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("measure", "--probs", "lgb", "--probs=xgb"), "trueodds compare FILE --probs lgb --probs xgb"),
        (
            ("measure", "--estimator", "ece", "--estimator", "brier"),
            "trueodds table FILE --measure ece --measure brier",
        ),
        (("compare", "--paired", "--unpaired"), "Pass --paired once."),
        (("test", "--test", "cox", "--test", "tcal"), "Pass --test once."),
    ],
)
def test_the_remedy_says_which_command_takes_several(run: Run, columns: str, words: tuple[str, ...], fix: str) -> None:
    result = run(words[0], columns, *words[1:])
    assert (result.exit_code, "TO603" in result.stderr, fix in " ".join(result.stderr.split())) == (2, True, True)


def test_options_that_may_be_repeated_still_are(run: Run, columns: str) -> None:
    words = ("--probs", "lgb", "--fail-on", "ece>0.9", "--fail-on", "ece.high>0.95", "--set", "order=1")
    assert run("measure", columns, *words).exit_code == 0
