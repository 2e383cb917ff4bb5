"""judge: the command gives the result of the functions for columns of a file, and refuses what does not fit."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import trueodds as to
from tests.test_schemas import assert_valid
from trueodds.cli import main

LABELED = np.arange(300) % 4 == 0


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    logit = rng.normal(0.5, 2, (2, 300))
    y = rng.random((2, 300)) < 1 / (1 + np.exp(-logit))
    score = np.round(1 / (1 + np.exp(-2 * logit)), 4)
    return {"a": y[0], "judge_a": score[0], "b": y[1], "judge_b": score[1], "chat": np.arange(300) // 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = rows()
    with (tmp_path / "judged.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*table, "task", "pi"])
        for i in range(300):
            labels = [("yes" if table[name][i] else "no") if LABELED[i] else "" for name in ("a", "b")]
            scores = [table["judge_a"][i], table["judge_b"][i]]
            writer.writerow([labels[0], scores[0], labels[1], scores[1], table["chat"][i], "xyz"[i % 3], 0.25])
    return tmp_path / "judged.csv"


def run(path: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["judge", str(path), "--score", "judge_a", *words])


def test_the_command_is_the_function(path: Path) -> None:
    table = rows()
    labels = {name: np.where(LABELED, table[name], np.nan) for name in ("a", "b")}
    expected = to.prediction_powered_mean(
        labels["a"], table["judge_a"], sampling="random", cluster=table["chat"],
        stratum=np.array(list("xyz"))[np.arange(300) % 3], level=0.9,
    )  # fmt: skip
    words = ("--label", "a", "--sampling", "random", "--cluster", "chat", "--stratum", "task", "--level", "0.9")
    assert json.loads(run(path, *words, "--json", "-").stdout) == expected.to_dict()
    assert run(path, *words).stdout == f"{expected}\n"


def test_the_command_takes_probabilities_and_plans_labels(path: Path) -> None:
    table = rows()
    label, probability = np.where(LABELED, table["a"], np.nan), np.full(300, 0.25)
    expected = to.prediction_powered_mean(label, table["judge_a"], probability=probability)
    document = json.loads(
        run(path, "--label", "a", "--probability", "pi", "--half-width", "0.08", "--json", "-").stdout
    )
    assert assert_valid(document, "judge") == document
    assert document.pop("labels_needed") == expected.labels_needed(0.08)
    assert document == expected.to_dict()


def test_two_systems_are_compared(path: Path) -> None:
    table = rows()
    a, b = (np.where(LABELED, table[name], np.nan) for name in ("a", "b"))
    expected = to.prediction_powered_difference(a, table["judge_a"], b, table["judge_b"], sampling="random")
    result = run(path, "--label", "a", "--sampling", "random", "--compare", "judge_b,b")
    assert result.stdout == f"{expected}\n"


def test_known_error_rates_need_no_label(tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    answers.write_text("judge_a\n" + "1\n" * 700 + "0\n" * 300, encoding="utf-8")
    result = run(answers, "--sensitivity", "90/100", "--specificity", "75/100")
    assert result.stdout.startswith("mean 0.6923 [0.6089, 0.7871]")


def test_a_gate_fails_with_status_1(path: Path) -> None:
    words = ("--label", "a", "--sampling", "random")
    assert run(path, *words, "--fail-on", "value.low<0.99").exit_code == 1
    assert run(path, *words, "--fail-on", "value.low<0.01").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--label", "a"), "TO220"),
        (("--sampling", "random"), "TO101"),
        (("--label", "unknown", "--sampling", "random"), "TO304"),
        (("--label", "a", "--sampling", "random", "--compare", "judge_b"), "TO601"),
        (("--label", "a", "--sampling", "random", "--compare", "judge_b,b", "--sensitivity", "9/10"), "TO603"),
        (("--sensitivity", "0.9", "--specificity", "3/4"), "TO601"),
        (("--label", "a", "--sampling", "random", "--half-width", "0.001"), "TO224"),
    ],
)
def test_what_does_not_fit_has_a_code(path: Path, words: tuple[str, ...], code: str) -> None:
    result = run(path, *words)
    assert result.exit_code == 2
    assert code in result.output


@pytest.mark.parametrize(
    ("cell", "code", "fix"),
    [("8", "TO102", "Divide grades by the largest possible one."), ("yes", "TO307", "Write 1 for a judge's yes")],
)
def test_scores_of_another_kind_have_their_own_remedy(tmp_path: Path, cell: str, code: str, fix: str) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(f"judge_a,a\n{cell},1\n{cell},0\n{cell},\n", encoding="utf-8")
    result = run(path, "--label", "a", "--sampling", "random")
    assert code in result.stderr
    assert fix in result.stderr
