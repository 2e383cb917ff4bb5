"""Does `trueodds apply` recalibrate new answers as the evaluation wrote them, without knowing which are correct?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled


@pytest.fixture
def cal(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.choice([0.6, 0.7, 0.8, 0.9], 400)
    calibrator = to.fit(to.Predictions.from_confidence(p, rng.random(400) < p - 0.2), "platt")
    calibrator.save(folder / "cal.json")
    return folder / "cal.json"


def recalibrated(cal: Path, percentages: list[float]) -> list[float]:
    values: list[float] = (100 * to.load(cal).predict_proba(np.array(percentages) / 100)[:, 1]).tolist()
    return values


@pytest.mark.parametrize("abstained", ["skip", "a.c"])
def test_nested_percentages_as_text_and_refusals_are_applied_to(
    run: Run, folder: Path, cal: Path, abstained: str
) -> None:
    rows = [{"q": 1, "a": {"c": "85%", "why": "…"}, "skip": False}, {"q": 2, "a": {"c": None}, "skip": True},
            {"q": 3, "a": {"c": 60}, "skip": False}]  # fmt: skip
    file, out = folder / "new.jsonl", folder / "out.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ("--confidence", "a.c", "--percent", "--abstained", abstained)
    done = run("apply", cal, file, *words, "--out", out)
    assert done.exit_code == 0, done.output
    written = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    first, last = recalibrated(cal, [85, 60])
    assert written[0]["a"] == {"c": pytest.approx(first), "why": "…"}
    assert written[1] == rows[1]
    assert written[2]["a"]["c"] == pytest.approx(last)
    assert [row["q"] for row in written] == [1, 2, 3]


def test_a_table_of_texts_with_percent_signs_is_applied_to(run: Run, folder: Path, cal: Path) -> None:
    file, out = folder / "new.csv", folder / "out.csv"
    file.write_text("q,c\n1,85%\n2,70 %\n3,100\n", encoding="utf-8")
    done = run("apply", cal, file, "--confidence", "c", "--percent", "--out", out)
    assert done.exit_code == 0, done.output
    with out.open(encoding="utf-8") as lines:
        values = [float(row["c"]) for row in csv.DictReader(lines)]
    assert values == pytest.approx(recalibrated(cal, [85, 70, 100]))
    error = labelled(run("apply", cal, file, "--confidence", "c", "--out", out).stderr)
    assert (error["code"], "--percent" in error["fix"]) == ("TO307", True)


def test_fractions_that_are_called_percentages_are_refused_and_mixed_ones_noted(
    run: Run, folder: Path, cal: Path
) -> None:
    """Otherwise 0.85, 0.9, 0.2 and 1 all become the recalibrated value of about 1 %."""
    file, out = folder / "new.csv", folder / "out.csv"
    file.write_text("c\n0.85\n0.9\n0.2\n1\n", encoding="utf-8")
    done = run("apply", cal, file, "--confidence", "c", "--percent", "--out", out)
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO317")
    assert "Omit --percent if" in labelled(done.stderr)["fix"]
    assert not out.exists()
    file.write_text("c\n85\n0.9\n70\n", encoding="utf-8")
    done = run("apply", cal, file, "--confidence", "c", "--percent", "--out", out)
    assert done.exit_code == 0, done.output
    assert "[TN148] 1 of 3 confidences are above 0 and at most 1" in done.stdout
    file.write_text("c\n85%\n0.9\n70%\n", encoding="utf-8")
    done = run("apply", cal, file, "--confidence", "c", "--percent", "--out", out)
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO317")


def test_log_probabilities_of_options_are_applied_to_without_the_correct_option(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [{"z": (-3 * rng.random(3)).tolist(), "y": int(rng.integers(3))} for _ in range(200)]
    file, new, out, cal = (folder / name for name in ("fit.jsonl", "new.jsonl", "out.csv", "cal.json"))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run("fit", file, "--logprobs", "z", "--answer", "y", "--method", "vector", "--out", cal).exit_code == 0
    new.write_text(
        '{"id": "u", "z": [-1, -2, -3]}\n{"id": "v", "z": [[-1, true], [-2, false], [-3, false]]}\n', encoding="utf-8"
    )
    done = run("apply", cal, new, "--logprobs", "z", "--out", out)
    assert done.exit_code == 0, done.output
    with out.open(encoding="utf-8") as lines:
        written = list(csv.DictReader(lines))
    expected = to.load(cal).predict_proba(np.array([[-1.0, -2.0, -3.0]] * 2), logits=True)
    np.testing.assert_allclose([[float(row[f"p_{j}"]) for j in range(3)] for row in written], expected, rtol=1e-12)
    assert [row["id"] for row in written] == ["u", "v"]
    new.write_text('{"z": [-1, -2]}\n', encoding="utf-8")
    assert labelled(run("apply", cal, new, "--logprobs", "z", "--out", out).stderr)["code"] == "TO607"


def test_a_negative_confidence_in_a_table_may_be_a_log_probability(run: Run, folder: Path, cal: Path) -> None:
    file = folder / "new.csv"
    file.write_text("c\n-0.5\n-0.2\n", encoding="utf-8")
    error = labelled(run("apply", cal, file, "--confidence", "c", "--out", folder / "out.csv").stderr)
    assert (error["code"], "write exp(x)" in error["fix"]) == ("TO102", True)
