"""compare: what the library answers is what it prints, and files become models with names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled


def test_two_files_tell_the_library_s_comparison(run: Run, overconfident: str, honest: str) -> None:
    result = run(
        "compare", overconfident, honest, "--estimator", "rmsce", "--bins", 10, "--resamples", 200, "--json", "-"
    )
    comparison = to.compare(
        to.read(overconfident), to.read(honest), "rmsce", bins=10, resamples=200, names=["over", "honest"]
    )
    assert json.loads(result.stdout) == comparison.to_dict()
    assert comparison.names == ("over", "honest")


def test_three_files_tell_a_ranking(run: Run, overconfident: str, honest: str, folder: Path) -> None:
    third = folder / "third.csv"
    third.write_bytes(Path(overconfident).read_bytes())
    words = ("compare", overconfident, honest, third, "--estimator", "brier", "--resamples", 200)
    document = json.loads(run(*words, "--json", "-").stdout)
    assert document["schema"] == "trueodds.ranking/1"
    assert sorted(document["order"]) == ["honest", "over", "third"]
    line = run(*words).stdout.splitlines()[0]
    assert "· no significant difference ·" in line


def test_notes_and_errors_speak_of_options(run: Run, overconfident: str, honest: str) -> None:
    assert "--paired" in run("compare", overconfident, honest, "--estimator", "brier", "--resamples", 100).stdout
    error = labelled(run("compare", overconfident, honest, "--paired").stderr)
    assert error["code"] == "TO205"
    assert "--unpaired" in error["fix"]
    same = run(
        "compare",
        overconfident,
        overconfident,
        "--names",
        "a,b",
        "--estimator",
        "brier",
        "--null",
        "swap",
        "--resamples",
        19,
    )
    assert same.exit_code == 0
    assert "p=1" in same.stdout


def test_files_of_one_name_are_distinguished_by_their_folders(run: Run, overconfident: str, folder: Path) -> None:
    other = folder / "over.csv"
    other.write_bytes(Path(overconfident).read_bytes())
    document = json.loads(run("compare", overconfident, other, "--interval", "none", "--json", "-").stdout)
    assert document["names"] == [overconfident, str(other)]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["compare", "{over}"], "TO601"),
        (["compare", "{over}", "{over}"], "TO205"),  # one name for two models
        (["compare", "{over}", "a.tally.json"], "TO407"),  # there is no such file
        (["compare", "{over}", "{honest}", "--estimator", "eec"], "TO201"),
        (["compare", "{over}", "{honest}", "--bin", "5"], "TO601"),
        (["compare", "{over}", "{honest}", "--set", "region=x"], "TO202"),
        (["compare", "{over}", "{honest}", "--null", "redraw"], "TO601"),
        (["compare", "{over}", "{honest}", "--names", "one"], "TO205"),
        (["compare", "{over}", "{honest}", "--json", "{over}"], "TO603"),
    ],
)
def test_what_is_no_comparison_is_refused(
    run: Run, overconfident: str, honest: str, words: list[str], code: str
) -> None:
    done = run(*(word.format(over=overconfident, honest=honest) for word in words))
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, code)
