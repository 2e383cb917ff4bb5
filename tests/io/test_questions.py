"""Are questions of several files told apart, and are refused samples counted?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.io.answers import read_answers


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    """Three tasks of 20 questions each, all numbered 0 to 19."""
    for task in ("art", "law", "math"):
        lines = [json.dumps({"doc_id": i, "c": 0.5 + i / 50, "correct": i % 3 > 0}) + "\n" for i in range(20)]
        (tmp_path / f"task_{task}.jsonl").write_text("".join(lines), encoding="utf-8")
    return str(tmp_path / "task_*.jsonl")


def codes(result: Any) -> list[str]:
    return [note.code for note in result.notes]


def test_ids_that_occur_in_several_files_are_noted(tasks: str) -> None:
    result = read_answers(tasks, confidence="c", question="doc_id")
    assert (result.questions, codes(result)) == (20, ["TN181"])
    text = result.notes[0].text
    assert text.startswith(
        "20 of 20 question ids occur in several files, for instance 0 in task_art.jsonl and task_law"
    )
    assert "question=['file', 'doc_id']" in text


def test_the_file_identifies_the_question_and_the_subgroup(tasks: str) -> None:
    result = read_answers(tasks, confidence="c", question=["file", "doc_id"], group="file")
    assert (result.questions, codes(result)) == (None, [])
    assert result.predictions.cluster is None
    assert result.predictions.row_id[[0, 59]].tolist() == ["task_art, 0", "task_math, 19"]
    assert set(result.predictions.group["file"]) == {"task_art", "task_law", "task_math"}
    single = read_answers(tasks.replace("*", "law"), confidence="c", question=["file", "doc_id"])
    assert single.predictions.row_id[0] == "task_law, 0"


def test_files_of_the_same_name_differ_by_their_folder(tasks: str, tmp_path: Path) -> None:
    paths = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        paths.append(tmp_path / run / "task.jsonl")
        paths[-1].write_text('{"c": 0.5, "correct": 1}\n{"c": 0.6, "correct": 0}\n', encoding="utf-8")
    groups = read_answers(paths, confidence="c", group="file").predictions.group["file"]
    assert groups.tolist() == ["one/task"] * 2 + ["two/task"] * 2


def test_a_field_called_file_is_used_as_it_is_and_records_in_memory_have_no_file() -> None:
    rows = [{"file": name, "c": 0.5, "correct": 1} for name in "ab"]
    assert read_answers(rows, confidence="c", group="file").predictions.group["file"].tolist() == ["a", "b"]
    with refused("TO304", "no 'file'"):
        read_answers([{"c": 0.5, "correct": 1}], confidence="c", group="file")


def sampled(texts: dict[str, list[str | None]]) -> list[dict[str, Any]]:
    """One record per sample; None is a refusal."""
    return [
        {"q": question, "answer": text or "", "gold": "7", "refused": text is None}
        for question, samples in texts.items()
        for text in samples
    ]


def test_refused_samples_are_counted_and_agreement_is_among_the_others() -> None:
    """Question b has 3 of 5 samples left, of which two agree; c has one left, and no confidence."""
    rows = sampled(
        {"a": ["7", "7", "8", "7", "7"], "b": ["7", None, "8", "8", None], "c": [None, None, "7", None, None]}
    )
    result = read_answers(rows, samples="answer", answer="gold", question="q", abstained="refused")
    assert result.predictions.p.tolist() == pytest.approx([0.8, 2 / 3])
    assert result.predictions.y.tolist() == [1, 0]
    assert (result.n_queries, result.abstained, result.without_confidence) == (3, 0, 1)
    assert codes(result) == ["TN182", "TN183"]
    assert "1 of 2 questions have fewer than 5 samples (3); 6 of 15 samples abstain" in result.notes[0].text
    assert "1 of 3 questions have a single sample left" in result.notes[1].text
    assert result.predictions.row_id.tolist() == ["a", "b"]


def test_a_question_that_was_sampled_once_is_still_an_error() -> None:
    with refused("TO315", "1 in row 2"):
        read_answers(sampled({"a": ["7", "8"], "b": ["7"]}), samples="answer", answer="gold", question="q")


def test_equally_many_samples_are_not_noted() -> None:
    rows = sampled({"a": ["7", "8"], "b": ["7", "7"]})
    assert read_answers(rows, samples="answer", answer="gold", question="q").notes == ()
    lists = [{"s": ["7", "7", "8"], "label": 7}, {"s": ["7", "8"], "label": 7}]
    assert codes(read_answers(lists, samples="s")) == ["TN182"]


def test_clusters_of_the_file_and_the_question_narrow_intervals_that_collisions_widen(tasks: str) -> None:
    """In every file the same questions are wrong, which counts as dependence only if they are the same questions."""
    read = {
        fields: read_answers(tasks, confidence="c", question=list(fields))
        for fields in (("doc_id",), ("file", "doc_id"))
    }
    widths = [np.ptp(list(risk_interval(result.predictions))) for result in read.values()]
    assert widths[0] > 1.4 * widths[1]  # √3 = 1.73 with known variances


def risk_interval(preds: to.Predictions) -> tuple[float, float]:
    interval = to.measure(preds, "brier", lens="confidence").interval
    assert interval is not None
    return interval.low, interval.high
