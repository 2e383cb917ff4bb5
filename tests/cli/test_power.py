"""trueodds power, and the margin of trueodds test: what the library answers is what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled

SIMULATIONS = ("--set", "simulations=40")


@pytest.mark.slow
def test_power_prints_the_library_s_line_and_its_notes(run: Run, honest: str) -> None:
    done = run("power", honest, "--n", 100, *SIMULATIONS)
    plan = to.power(to.read(honest), n=100, simulations=40)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == plan.describe()
    assert "[TN233]" in done.stdout


@pytest.mark.slow
def test_power_tells_the_library_s_json(run: Run, honest: str) -> None:
    words = ("--test", "spiegelhalter", "--effect", 0.1, "--n", 80, "--power", 0.7, "--alpha", 0.1, "--seed", 3)
    done = run("power", honest, *words, *SIMULATIONS, "--json", "-")
    document = to.power(
        to.read(honest), "spiegelhalter", effect=0.1, n=80, power=0.7, alpha=0.1, rng=3, simulations=40
    ).to_dict()
    assert json.loads(done.stdout) == document
    assert document["schema"] == "trueodds.power/1"


def test_power_takes_the_settings_of_the_test(run: Run, honest: str) -> None:
    done = run(
        "power",
        honest,
        "--n",
        80,
        "--test",
        "consistency",
        "--statistic",
        "rmsce",
        "--bins",
        5,
        "--set",
        "distortion=shift",
        *SIMULATIONS,
    )
    plan = to.power(to.read(honest), "consistency", n=80, statistic="rmsce", bins=5, distortion="shift", simulations=40)
    assert done.stdout.splitlines()[0] == plan.describe()


@pytest.mark.slow
def test_the_rows_for_a_width(run: Run, honest: str) -> None:
    done = run("power", honest, "--width", 0.1, "--estimator", "brier")
    assert done.stdout.splitlines()[0] == to.power(to.read(honest), width=0.1, estimator="brier").describe()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("power x.csv --power 80", "TO601"),
        ("power x.csv --margin 0.1", "TO601"),
        ("power x.csv --mode tally", "TO601"),
        ("power x.csv --set margin=0.1", "TO202"),
        ("power x.csv --set simulation=40", "TO202"),
        ("power x.csv --width 0.1 --statistic ece", "TO202"),
        ("power x.csv --test nothing", "TO201"),
    ],
)
def test_what_power_does_not_take_is_refused_before_the_file_is_read(run: Run, words: str, code: str) -> None:
    done = run(*words.split())
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, code)


def test_a_tally_cannot_be_planned_with(run: Run, honest: str, folder: Path) -> None:
    part = folder / "a.tally.json"
    run("tally", honest, "--out", part)
    assert labelled(run("power", part).stderr)["code"] == "TO403"


def test_a_margin_is_decided_and_reported(run: Run, honest: str, overconfident: str) -> None:
    done = run("test", overconfident, "--margin", 0.05, "--resamples", 99)
    assert done.exit_code == 0
    assert "beyond the margin of 0.05" in done.stdout.splitlines()[0]
    assert "[TN230]" in done.stdout
    done = run("test", honest, "--margin", 0.3, "--resamples", 99, "--json", "-")
    assert json.loads(done.stdout)["settings"]["decision"] == "within"


def test_a_margin_in_percent_or_without_an_error_is_refused(run: Run, honest: str) -> None:
    assert labelled(run("test", honest, "--margin", 5).stderr)["code"] == "TO203"
    assert labelled(run("test", honest, "--margin", 0.05, "--test", "spiegelhalter").stderr)["code"] == "TO205"
