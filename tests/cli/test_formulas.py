"""Texts that spreadsheet programs evaluate as formulas: data keep them, with a note, and reports disarm them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

import trueodds as to
from tests.cli.conftest import Run
from trueodds.io.recalibrated_files import rewrite

FORMULA = "=cmd|'/c calc'!A0"


@pytest.fixture
def answers(folder: Path) -> Path:
    path = folder / "answers.jsonl"
    sites = [FORMULA, "+1", "-x", "b"]
    rows = [{"c": 0.5 + 0.01 * i, "ok": i % 3 > 0, "site": sites[i % 4]} for i in range(40)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def notes(text: str) -> list[str]:
    return [line for line in text.splitlines() if "TN340" in line]


@pytest.mark.slow
def test_answers_as_csv_keep_the_names_of_groups_and_note_formulas(run: Run, answers: Path, folder: Path) -> None:
    words = ("answers", answers, "--confidence", "c", "--correct", "ok", "--group", "site", "--out")
    done = run(*words, folder / "out.csv")
    (note,) = notes(done.stdout)
    assert FORMULA in note
    assert to.read(folder / "out.csv", confidence="confidence", correct="correct", group="site").collect().group[
        "site"
    ].tolist()[:4] == [FORMULA, "+1", "-x", "b"]
    assert notes(run(*words, folder / "out.jsonl").stdout) == []


def test_apply_keeps_every_column_and_notes_formulas(run: Run, answers: Path, folder: Path) -> None:
    run("fit", answers, "--confidence", "c", "--correct", "ok", "--method", "platt", "--out", folder / "cal.json")
    words = ("apply", folder / "cal.json", answers, "--confidence", "c", "--out", folder / "out.csv")
    assert len(notes(run(*words).stdout)) == 1
    with (folder / "out.csv").open(newline="", encoding="utf-8") as file:
        assert [row["site"] for row in csv.DictReader(file)][:2] == [FORMULA, "+1"]


def test_a_formula_is_found_in_any_batch_and_in_quoted_texts_while_they_are_written(folder: Path) -> None:
    """Lines of the finished file were searched, and a text with a comma or a line break was overlooked."""
    for texts in (["b", "b", "=f(1,2)"], ["=IF(1\n,2)", "b", "b"], ["b", "b", "b"]):
        pd.DataFrame({"p": [0.2, 0.7, 0.4], "site": texts}).to_parquet(folder / "a.parquet")
        source = to.read(folder / "a.parquet", probs="p", label=None, batch_rows=1)
        written, cell_notes = rewrite(source, lambda P: P, folder / "b.csv")
        assert (written, len(cell_notes)) == (3, len(set(texts)) - 1)
        assert rewrite(source, lambda P: P, folder / "b.jsonl")[1] == ()


def test_texts_without_effect_are_not_noted(run: Run, folder: Path) -> None:
    rows = [f"{i % 2},{-0.5 + i / 40},+1,-log,= 3,a-b(c)" for i in range(40)]
    (folder / "a.csv").write_text("\n".join(["label,z,a,b,c,d", *rows]), encoding="utf-8")
    run("fit", folder / "a.csv", "--logits", "z", "--method", "temperature", "--out", folder / "cal.json")
    done = run("apply", folder / "cal.json", folder / "a.csv", "--logits", "z", "--out", folder / "b.csv")
    assert (done.exit_code, notes(done.stdout)) == (0, [])


def test_the_csv_files_of_tables_and_diagrams_disarm_formulas(folder: Path) -> None:
    y, p = [0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20
    models = {FORMULA: (y, p), "+ temperature": (y, p)}
    rows = list(csv.reader(to.table(models, ["brier"]).to_csv().splitlines()))
    assert {row[0] for row in rows[1:]} == {f"'{FORMULA}", "+ temperature"}
    to.draw(models, "comparison").save(folder / "d.csv")
    with (folder / "d.csv").open(newline="", encoding="utf-8") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert {f"'{FORMULA}", "+ temperature"} <= cells
    assert FORMULA not in cells
