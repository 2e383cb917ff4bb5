"""Files of independent labels with log odds: each command reads them, and remedies lead to a command that works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run

RNG = np.random.default_rng(5)
Z = RNG.normal(size=(200, 2)) * 2
Y = (RNG.random((200, 2)) < 1 / (1 + np.exp(-Z))).astype(int)


@pytest.fixture
def labeled(folder: Path) -> Path:
    path = folder / "labels.csv"
    rows = [",".join(map(str, [*y, *z])) for y, z in zip(Y.tolist(), Z.tolist(), strict=True)]
    path.write_text("\n".join(["y_a,y_b,z_a,z_b", *rows]), encoding="utf-8")
    return path


def test_logits_of_labels_are_log_odds_in_every_command(run: Run, labeled: Path, folder: Path) -> None:
    words = (labeled, "--multilabel", "y_*", "--logits", "z_*")
    expected = float(((1 / (1 + np.exp(-Z)) - Y) ** 2).mean())  # each label by itself, not by the softmax
    measured = json.loads(run("measure", *words, "--estimator", "brier", "--json", "-").stdout)
    assert measured["value"] == pytest.approx(expected)
    assert run("tally", *words, "--out", folder / "a.tally.json").exit_code == 0
    assert to.load(folder / "a.tally.json").score("brier")["mean"] == pytest.approx(expected)
    assert run("test", *words, "--resamples", 39).exit_code == 0
    assert run("audit", *words, "--resamples", 39).exit_code == 0


def test_a_calibrator_is_fitted_and_applied_per_label_as_the_error_says(run: Run, labeled: Path, folder: Path) -> None:
    refused = run("fit", labeled, "--multilabel", "y_*", "--logits", "z_*", "--out", folder / "cal.json")
    assert "error TO502" in refused.stderr
    assert "--label y_A --logits z_A" in refused.stderr
    done = run(
        "fit", labeled, "--label", "y_a", "--logits", "z_a", "--method", "temperature", "--out", folder / "c.json"
    )
    assert done.exit_code == 0, done.output
    done = run("apply", folder / "c.json", labeled, "--logits", "z_a", "--out", folder / "d.csv")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("keyword", "column"), [("--logits", "z_a"), ("--probs", "p_a")])
def test_a_single_label_is_read_as_a_problem_of_two_classes(run: Run, labeled: Path, keyword: str, column: str) -> None:
    if keyword == "--probs":
        labeled.write_text("y_a,p_a\n" + "\n".join(f"{y},{p}" for y, p in [(0, 0.2), (1, 0.6)] * 9), encoding="utf-8")
    refused = run("measure", labeled, "--multilabel", "y_a", keyword, column)
    assert "error TO101\nproblem: A single label is a problem of two classes." in refused.stderr
    remedy = re.search(r"fix: Pass (.*) and (.*) instead\.", refused.stderr)
    assert remedy is not None
    words = f"{remedy[1]} {remedy[2]}".split()
    assert words == ["--label", "y_a", keyword, column]
    assert run("measure", labeled, *words).exit_code == 0
