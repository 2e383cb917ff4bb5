"""Do the options of columns read the common layouts, and do errors name the option that is needed?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Run

LOG = "true_label,predicted_label,confidence\ncat,cat,0.9\ndog,cat,0.6\ndog,dog,0.8\ncat,cat,0.7\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_true_and_predicted_labels_with_a_confidence_are_read(run: Run, log: Path) -> None:
    columns = ["--label", "true_label", "--predicted", "predicted_label", "--confidence", "confidence"]
    done = run("measure", log, "--estimator", "brier", "--interval", "none", *columns)
    # Answers 1, 3 and 4 are correct: (.1² + .6² + .2² + .3²)/4
    assert done.stdout.startswith("brier 0.125 "), done.stderr


def test_a_confidence_alone_names_the_options_of_both_layouts(run: Run, log: Path) -> None:
    done = run("measure", log, "--confidence", "confidence")
    assert done.exit_code == 2
    assert "Add --correct C, a column; or --label C --predicted C" in done.stderr
    done = run("measure", log)
    assert "--confidence confidence, --label true_label, --predicted predicted_label" in done.stderr


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--predicted", "p"), "Add --confidence C"),
        (("--predicted", "p", "--confidence", "c", "--correct", "x"), "Leave --predicted out"),
        (("--correct", "x", "--confidence", "c", "--label", "l"), "Leave --label out"),
        (("--predicted", "p", "--confidence", "c", "--question", "q"), "by --correct"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(run: Run, log: Path, words: tuple[str, ...], fix: str) -> None:
    done = run("measure", log, *words)
    assert done.exit_code == 2
    assert fix in done.stderr


@pytest.mark.parametrize("listed", [False, True])
def test_apply_finds_numbered_columns_of_any_spelling_and_order(run: Run, tmp_path: Path, listed: bool) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 2, 3], 300)
    y = 1 + (rng.random(300)[:, None] > P.cumsum(axis=1)).sum(axis=1)
    names = ["p_1", "p_2", "p_3"]
    frame = pd.DataFrame(P, columns=names).assign(label=y)
    frame.to_csv(tmp_path / "a.csv", index=False)
    calibrator = tmp_path / "cal.json"
    assert run("fit", tmp_path / "a.csv", "--method", "vector", "--out", calibrator).exit_code == 0
    assert run("apply", calibrator, tmp_path / "a.csv", "--out", tmp_path / "right.csv").exit_code == 0
    other_names = {"p_1": "p_class01", "p_2": "p_class02", "p_3": "p_class03"}
    other = frame[["label", "p_3", "p_1", "p_2"]].rename(columns=other_names)
    other.to_csv(tmp_path / "b.csv", index=False)
    words = ["--probs", "p_class03,p_class01,p_class02"] if listed else []
    done = run("apply", calibrator, tmp_path / "b.csv", *words, "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.stderr
    right, out = (pd.read_csv(tmp_path / name) for name in ("right.csv", "out.csv"))
    assert np.allclose(out[list(other_names.values())], right[names])
