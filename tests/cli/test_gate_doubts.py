"""Does no gate pass on data that a note calls misread, and is every other doubt about the data repeated?"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.test_faults import labelled


@pytest.fixture(scope="module")
def churn(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Calibrated probabilities of an event, and the predicted labels that follow from them."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 600)
    rows = zip(rng.random(600) < p, p, 1 - p, p > 0.5, rng.random(600) < 0.5, strict=True)
    path = tmp_path_factory.mktemp("churn") / "churn.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["churned", "p", "reversed", "predicted", "site"])
        lines.writerows([int(y), float(a), float(b), int(c), int(d)] for y, a, b, c, d in rows)
    return str(path)


AUDIT, LABEL = ("audit", "--resamples", "99"), ("--label", "churned", "--probs")


@pytest.mark.parametrize(
    ("words", "passing", "failing"),
    [
        (AUDIT, "ece.low>0.9", "ece>0.01"),
        (("measure",), "ece.high>0.9", "ece.high>0.01"),
        (("measure", "--mode", "tally"), "ece.high>0.9", "ece.high>0.01"),
        (("test", "--margin", "0.9"), "beyond", "statistic>0.01"),
        (("groups", "--group", "site", "--resamples", "99"), "ece[worst].low>0.9", "ece[worst]>0.01"),
        (("compare", "--probs", "p", "--estimator", "brier"), "difference.low>0.9", "difference<0.9"),
    ],
    ids=str,
)
def test_no_gate_passes_on_predicted_labels_but_a_gate_that_fails_does_so(
    run: Run, churn: str, words: tuple[str, ...], passing: str, failing: str
) -> None:
    command, *options = words
    on_labels = (command, churn, *LABEL, "predicted", *options)
    done = run(*on_labels, "--fail-on", passing)
    assert done.exit_code == 2, done.output
    error = labelled(done.stderr)
    assert error["code"] == "TO613"
    assert error["got"].startswith("TN149")
    assert "predict_proba" in error["fix"]
    assert run(*on_labels, "--fail-on", failing).exit_code == 1


@pytest.mark.parametrize("command", [AUDIT, ("measure",), ("groups", "--group", "site", "--resamples", "99")], ids=str)
def test_no_gate_passes_on_probabilities_that_were_read_as_logits(
    run: Run, churn: str, command: tuple[str, ...]
) -> None:
    done = run(command[0], churn, "--label", "churned", "--logits", "p", *command[1:], "--fail-on", "ece.low>0.9")
    assert (done.exit_code, labelled(done.stderr)["got"][:5]) == (2, "TN108")


def rows_of(path: Path, y: Any, p: Any) -> Path:
    np.savetxt(path, np.c_[y, p], header="label,p_1", comments="", delimiter=",", fmt=["%d", "%.17g"])
    return path


def test_no_gate_passes_on_the_probabilities_of_the_other_class(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 0.5, 2000)  # of which more than three quarters are below 0.25 or above 0.75
    path = rows_of(tmp_path / "swapped.csv", rng.random(2000) < p, 1 - p)
    done = run("measure", path, "--fail-on", "ece.low>0.95")
    assert (done.exit_code, labelled(done.stderr)["got"][:5]) == (2, "TN142")


@pytest.mark.parametrize("option", ["--probs", "--logits"])
@pytest.mark.parametrize("command", ["audit", "measure", "test", "tally"])
def test_one_column_cannot_be_both_the_outcome_and_the_prediction(
    run: Run, churn: str, folder: Path, command: str, option: str
) -> None:
    out = ("--out", folder / "a.tally.json") if command == "tally" else ()
    done = run(command, churn, "--label", "churned", option, "churned", *out)
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO313")


def test_columns_of_votes_cannot_be_the_predictions(run: Run, folder: Path) -> None:
    path = folder / "votes.csv"
    path.write_text("v_a,v_b,p_a\n" + "1,0,0.5\n" * 20, encoding="utf-8")
    done = run("measure", path, "--votes", "v_*", "--probs", "p_a,v_b")
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO313")


@pytest.mark.slow
def test_doubts_about_the_rows_follow_a_gate_that_passed_only(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    p = rng.beta(2, 3, 300)
    copied = rows_of(tmp_path / "copied.csv", np.repeat(rng.random(300) < p, 3), np.repeat(p, 3))
    # Right in 97 % with a mean confidence of 70 %, as a forest is on the rows that it was fitted to.
    y = rng.random(1000) < 0.5
    trained = rows_of(
        tmp_path / "trained.csv", y, np.where(y ^ (rng.random(1000) < 0.03), 0.7, 0.3) + rng.normal(0, 0.01, 1000)
    )
    for path, code in ((copied, "TN144"), (trained, "TN163")):
        for command in (AUDIT, ("measure",)):
            done = run(command[0], path, *command[1:], "--fail-on", "ece.low>0.9")
            assert done.exit_code == 0, done.output
            assert f"  [{code}]" in done.stderr.partition("gate passed")[2]
            assert code not in run(command[0], path, *command[1:], "--fail-on", "ece.high>0.001").stderr
