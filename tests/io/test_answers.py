"""Are records of evaluations of language models read correctly, and are invalid ones refused with their row?"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds import InputError
from trueodds.io.answers import read_answers

Rows = list[dict[str, Any]]
Write = Callable[[Rows], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(rows: Rows) -> Path:
        file = tmp_path / "samples.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file

    return written


def harness(doc_id: int, logs: list[Any], target: Any, **doc: Any) -> dict[str, Any]:
    """A line of lm-evaluation-harness with `--log_samples`."""
    pairs = [[logprob, "False"] if isinstance(logprob, str) else [logprob, False] for logprob in logs]
    return {
        "doc_id": doc_id, "doc": {"question": "?", **doc}, "target": target, "arguments": [["?", " A"]] * len(logs),
        "resps": [[pair] for pair in pairs], "filtered_resps": pairs, "filter": "none", "metrics": ["acc"], "acc": 1.0,
    }  # fmt: skip


# Options


def test_equally_many_options_give_whole_vectors(write: Write) -> None:
    # log 1, log 3: the softmax is over the options, 1/4 and 3/4, whatever all texts together weigh
    file = write([harness(0, [-5.0, -5.0 + math.log(3)], 1), harness(1, [-1.0, -1.0], 0)])
    for field in ("filtered_resps", "resps"):
        result = read_answers(file, options=field, answer="target")
        assert result.predictions.kind == "classes"
        np.testing.assert_allclose(result.predictions.p, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-14)
        assert result.predictions.y.tolist() == [1, 0]
        assert result.predictions.logits.tolist()[1] == [-1.0, -1.0]
        assert (result.n_queries, result.abstained, result.coverage, result.notes) == (2, 0, 1.0, ())


def test_numbers_in_quotes_are_numbers_as_later_versions_of_the_harness_write_them(write: Write) -> None:
    plain = read_answers(write([harness(0, [-2.5, -0.25], 1)]), options="filtered_resps", answer="target")
    quoted = read_answers(write([harness(0, ["-2.5", "-0.25"], "1")]), options="filtered_resps", answer="target")
    assert plain.predictions.p.tolist() == quoted.predictions.p.tolist()
    assert quoted.predictions.y.tolist() == [1]


def test_questions_with_different_numbers_of_options_keep_confidence_and_correctness(write: Write) -> None:
    # weights 1:3 → .75, right; 1:1:2 → .5, wrong; 1:1:1:1 → .25, a tie that the first option wins: right
    rows = [
        harness(0, [-4.0, -4.0 + math.log(3)], 1),
        harness(1, [-4.0, -4.0, -4.0 + math.log(2)], 0),
        harness(2, [-7.0] * 4, 0),
    ]
    result = read_answers(write(rows), options="filtered_resps", answer="target")
    assert result.predictions.kind == "confidence"
    np.testing.assert_allclose(result.predictions.p, [0.75, 0.5, 0.25], rtol=1e-14)
    assert result.predictions.y.tolist() == [1, 0, 1]
    assert [note.code for note in result.notes] == ["TN145"]
    assert "2 to 4 options" in result.notes[0].text


def test_ragged_and_equal_questions_agree_on_the_confidence_lens() -> None:
    """A wide question added makes all ragged; what the confidence lens says of the others stays."""
    rng = np.random.default_rng(0)
    rows = [{"logprobs": (-rng.exponential(3, 3)).tolist(), "label": int(rng.integers(3))} for _ in range(50)]
    rows[7]["logprobs"] = [-1.0, -1.0, -9.0]  # a tie
    equal = read_answers(rows).predictions
    ragged = read_answers([*rows, {"logprobs": [-1.0, -2.0], "label": 0}]).predictions
    np.testing.assert_allclose(ragged.p[:50], equal.p.max(axis=1), rtol=1e-14)
    assert ragged.y[:50].tolist() == (equal.p.argmax(axis=1) == equal.y).astype(int).tolist()


def test_an_answer_may_be_named_where_the_names_are_listed(write: Write) -> None:
    labels = {"choices": {"label": ["A", "B", "C"], "text": ["1", "2", "0"]}}
    file = write([harness(0, [-1.0, -2.0, -3.0], 2, answerKey="C", said=["2"], **labels)])
    assert read_answers(file, options="resps", answer="doc.answerKey", choices="doc.choices.label").predictions.y == [2]
    # a text is a name, a number a position: "2" is the second option's name, 2 the third option
    assert read_answers(file, options="resps", answer="doc.said.0", choices="doc.choices.text").predictions.y == [1]
    assert read_answers(file, options="resps", answer="target", choices="doc.choices.text").predictions.y == [2]


def test_a_question_with_one_option_is_refused_with_its_row(write: Write) -> None:
    file = write([harness(0, [-1.0, -2.0], 0), harness(1, [-1.0], 0)])
    with refused("TO315", "row 1 (line 2)", "samples.jsonl", "'filtered_resps'"):
        read_answers(file, options="filtered_resps", answer="target")


def test_what_is_no_log_probability_is_refused() -> None:
    fine = {"logprobs": [-1.0, -2.0], "label": 0}
    for bad, fix in ((0.25, "logarithm"), (3.5, "logits"), (-math.inf, "finite"), (math.nan, "finite")):
        with refused("TO316", "row 1", fix=fix):
            read_answers([fine, {"logprobs": [-1.0, bad], "label": 0}])
    with refused("TO308", "row 0"):
        read_answers([{"logprobs": [None, -1.0], "label": 0}])
    with refused("TO307", "dict", "row 0"):
        read_answers([{"logprobs": [{"A": -1.0}, -1.0], "label": 0}])
    with refused("TO307", "float", "row 0", fix="list"):
        read_answers([{"logprobs": -1.0, "label": 0}])
    # low precision may sum to a hair above 0, and keeps its value
    assert read_answers([{"logprobs": [1e-6, -9.0], "label": 0}]).predictions.y.tolist() == [0]


@pytest.mark.parametrize("label", [2, -1, "B", True, 1.0, [0, 1], "-1"])
def test_an_answer_that_is_no_option_is_refused(label: Any) -> None:
    with refused("TO318", "row 0"):
        read_answers([{"logprobs": [-1.0, -2.0], "label": label}])


def test_a_name_that_two_options_have_or_a_list_of_another_length_is_refused() -> None:
    row = {"logprobs": [-1.0, -2.0], "label": "yes", "names": ["yes", "yes"]}
    with refused("TO318", "'yes'"):
        read_answers([row], choices="names")
    with refused("TO318", "3 names and 2", "row 0"):
        read_answers([row | {"names": ["yes", "no", "x"]}], choices="names")


# Stated confidence


GRADED = [
    {"id": "66e", "judge_response": {"correct_answer": "x", "correct": "yes", "confidence": 85}},
    {"id": "66f", "judge_response": {"correct_answer": "y", "correct": "no", "confidence": 100}},
    {"id": "670", "judge_response": {"correct_answer": "z", "correct": "no", "confidence": 0}},
]
HLE = {"confidence": "judge_response.confidence", "correct": "judge_response.correct"}


def test_a_graded_exam_is_read(write: Write) -> None:
    result = read_answers(write(GRADED), **HLE, percent=True)
    assert result.predictions.p.tolist() == [0.85, 1.0, 0.0]
    assert result.predictions.y.tolist() == [1, 0, 0]
    assert result.predictions.kind == "confidence"


def test_seventy_where_one_is_the_most_is_refused_with_its_row_and_never_guessed(write: Write) -> None:
    file = write([{"confidence": 0.7, "correct": True}, {"confidence": 70, "correct": True}])
    with refused("TO317", "70", "row 1 (line 2)", fix="percent=True"):
        read_answers(file, confidence="confidence")
    assert read_answers(file, confidence="confidence", percent=True).predictions.p.tolist() == [
        0.006999999999999999,
        0.7,
    ]
    for bad in (-0.1, 101, math.nan):
        with refused("TO317", "row 0", fix="Correct the row"):
            read_answers([{"confidence": bad, "correct": True}], confidence="confidence", percent=True)


def test_percentages_that_never_exceed_one_are_noted() -> None:
    result = read_answers([{"confidence": 0.9, "correct": 1}], confidence="confidence", percent=True)
    assert [note.code for note in result.notes] == ["TN147"]
    assert read_answers([{"confidence": "85%", "correct": 1}], confidence="confidence", percent=True).notes == ()


def test_fractions_among_percentages_are_noted_with_their_number_and_first_row() -> None:
    stated = [85, 0.9, 0, 1, "0.7", 2]  # 0 is the same on both scales
    result = read_answers([{"c": value, "correct": 1} for value in stated], confidence="c", percent=True)
    assert [note.code for note in result.notes] == ["TN148"]
    text = result.notes[0].text
    assert text.startswith(
        "3 of 6 confidences are above 0 and at most 1, beside values up to 85; the first is 0.9 in row 1"
    )
    assert result.predictions.p.tolist() == pytest.approx([0.85, 0.009, 0, 0.01, 0.007, 0.02])
    assert read_answers([{"c": value, "correct": 1} for value in (85, 2, 0, "0.5%")], confidence="c", percent=True
    ).notes == ()  # fmt: skip


def test_one_coverage_is_printed_everywhere() -> None:
    """Answered are 731 of 800, 91.375 %, which a float holds as slightly less and 1 − 69/800 as slightly more."""
    rows = [{"c": 0.5, "correct": i % 2, "skip": i >= 731} for i in range(800)]
    result = read_answers(rows, confidence="c", abstained="skip")
    assert "coverage 91.38%" in str(result)
    assert "(coverage 91.38%)" in result.notes[-1].text
    assert "731 of 800 answered (91.38%)" in str(result.selective_risk(resamples=0))


@pytest.mark.parametrize(("value", "right"), [("Yes", 1), (" no ", 0), (True, 1), (0, 0), (1.0, 1), ("false", 0)])
def test_yes_and_no_are_understood(value: Any, right: int) -> None:
    assert read_answers([{"c": 0.5, "correct": value}], confidence="c").predictions.y.tolist() == [right]


@pytest.mark.parametrize("value", ["maybe", 2, 0.5, ["yes"]])
def test_what_is_neither_yes_nor_no_is_refused(value: Any) -> None:
    with refused("TO116", "row 0"):
        read_answers([{"c": 0.5, "correct": value}], confidence="c")


# Abstentions, clusters, groups


def test_abstentions_are_counted_and_nothing_else_of_them_is_read(write: Write) -> None:
    file = write([
        {"confidence": 0.9, "correct": True, "refused": False},
        {"confidence": None, "refused": True},
        {"confidence": 0.5, "correct": False, "refused": "no"},
        {"refused": 1},
    ])  # fmt: skip
    result = read_answers(file, confidence="confidence", abstained="refused")
    assert (result.predictions.n, result.n_queries, result.abstained, result.coverage) == (2, 4, 2, 0.5)
    assert [note.code for note in result.notes] == ["TN146"]
    assert "2 of 4 questions have no answer (coverage 50%)" in result.notes[0].text
    assert "coverage 50%" in str(result)
    with refused("TO308", "row 1", fix="abstained="):  # unsaid, a missing confidence is no abstention
        read_answers(file, confidence="confidence")


def test_where_everything_abstains_there_is_no_result() -> None:
    with refused("TO319", "2 rows"):
        read_answers([{"refused": True}] * 2, confidence="c", abstained="refused")


def test_an_empty_confidence_is_no_answer_where_that_is_declared() -> None:
    rows = [
        {"c": 0.9, "correct": 1},
        {"c": None, "correct": 0},
        {"c": float("nan")},
        {"correct": 1},
        {"c": 0, "correct": 0},
    ]
    result = read_answers(rows, confidence="c", abstained="c")
    assert (result.n_queries, result.abstained, result.predictions.p.tolist()) == (5, 3, [0.9, 0.0])
    with refused("TO308", "row 1", fix="abstained='c'"):  # it is never taken for one unasked
        read_answers(rows, confidence="c")
    with refused("TO304", "'confidence'"):  # a field that no row has is a mistake
        read_answers(rows, confidence="confidence", abstained="confidence")


def test_an_answered_row_without_confidence_does_not_suggest_naming_abstentions_again() -> None:
    rows = [{"c": 0.9, "correct": 1, "skip": False}, {"c": None, "correct": 0, "skip": False}]
    with refused("TO308", "row 1", fix="pass abstained='c'"):
        read_answers(rows, confidence="c", abstained="skip")


def test_rows_of_one_question_are_a_cluster_and_single_ones_are_none() -> None:
    rows = [{"c": 0.5, "correct": 1, "q": q, "subject": s} for q, s in (("b", "law"), ("a", "art"), ("b", "law"))]
    preds = read_answers(rows, confidence="c", question="q", group="subject").predictions
    assert preds.cluster.tolist() == [1, 0, 1]
    assert preds.group["subject"].tolist() == ["law", "art", "law"]
    assert read_answers(rows[:2], confidence="c", question="q").predictions.cluster is None


# Samples


def test_agreement_of_samples_is_the_confidence() -> None:
    rows = [
        {"samples": ["4", "5", "4", " 4 "], "label": 4},  # 3/4, right
        {"samples": ["7", "8", "8", "7"], "label": "8"},  # 2/4, and the first of equals is 7: wrong
    ]
    preds = read_answers(rows, samples="samples").predictions
    assert preds.p.tolist() == [0.75, 0.5]
    assert preds.y.tolist() == [1, 0]
    nested = [{"resps": [row["samples"]], "label": row["label"]} for row in rows]  # repeats of one request
    assert read_answers(nested, samples="resps").predictions.p.tolist() == [0.75, 0.5]


def test_one_record_per_sample_says_the_same_as_lists(write: Write) -> None:
    rows = [
        ("q1", "4", 1),
        ("q2", "7", 0),
        ("q1", "5", 0),
        ("q2", "8", 1),
        ("q1", "4", 1),
        ("q2", "9", 0),
        ("q3", "", 0),
    ]
    flat = [{"q": q, "text": text, "ok": ok, "none": text == ""} for q, text, ok in rows]
    result = read_answers(write(flat), samples="text", correct="ok", question="q", abstained="none")
    assert result.predictions.p.tolist() == [2 / 3, 1 / 3]
    assert result.predictions.y.tolist() == [1, 0]  # three that differ: the first, 7, which was wrong
    assert result.predictions.cluster is None
    assert (result.n_queries, result.abstained) == (3, 1)
    listed = [{"text": ["4", "5", "4"], "ok": [1, 0, 1]}, {"text": ["7", "8", "9"], "ok": [0, 1, 0]}]
    same = read_answers(listed, samples="text", correct="ok").predictions
    assert (same.p.tolist(), same.y.tolist()) == (result.predictions.p.tolist(), result.predictions.y.tolist())


def test_samples_that_say_nothing_are_refused() -> None:
    with refused("TO315", "row 1"):
        read_answers([{"s": ["a", "b"], "label": "a"}, {"s": ["a"], "label": "a"}], samples="s")
    with refused("TO308", "row 0"):
        read_answers([{"s": ["a", None], "label": "a"}], samples="s")
    with refused("TO310", "1 of 'ok' for 2"):
        read_answers([{"s": ["a", "b"], "ok": [1]}], samples="s", correct="ok")
    with refused("TO205", "one str", fix="question="):
        read_answers([{"s": "a", "label": "a"}], samples="s")
    with refused("TO318", "'b' in row 1"):
        read_answers([{"s": "a", "label": a, "q": 1} for a in "ab"], samples="s", question="q")


def test_agreement_is_underconfident_by_what_a_sampler_doubts_whose_majority_is_right() -> None:
    """A model that samples the right answer with chance q, or one wrong one, is right when the majority is.

    With m = 1001 samples the share is near max(q, 1 − q), but the majority is right whenever q > 1/2: agreement is
    underconfident by the mean of 1 − max(q, 1 − q) where q > 1/2 always. q uniform on [.6, .9]: by .25, and its
    standard error over 300 questions is at most sqrt(.09²/300 + .25/(1001 · 300)) < .006: 4 of them.
    """
    rng = np.random.default_rng(0)
    rows = [{"s": ["r" if r else "w" for r in rng.random(1001) < q], "label": "r"} for q in rng.uniform(0.6, 0.9, 300)]
    preds = read_answers(rows, samples="s").predictions
    assert preds.y.all()
    assert abs(float(to.measure(preds, "ks", interval=None)) - 0.25) < 0.024


# Settings and files


def test_settings_without_meaning_together_are_refused() -> None:
    for settings in ({"options": "a", "confidence": "b"}, {"options": "a", "percent": True},
                     {"options": "a", "correct": "b"}, {"samples": "a", "choices": "b"}):  # fmt: skip
        with refused("TO205"):
            read_answers([{"a": 1}], **settings)


def test_a_missing_field_is_reported_with_suggestions() -> None:
    with refused("TO304", "'confidense' in row 0", fix="confidence"):
        read_answers([{"confidence": 0.5, "correct": 1}], confidence="confidense")
    dotted = [{"acc,none": 1, "judge.confidence": 0.5}]  # a key with a dot of its own
    assert read_answers(dotted, confidence="judge.confidence", correct="acc,none").predictions.p.tolist() == [0.5]


def test_what_holds_no_records_is_refused(tmp_path: Path) -> None:
    with refused("TO312"):
        read_answers([], confidence="c")
    with refused("TO302", "int"):
        read_answers(7, confidence="c")
    with refused("TO302", "list"):
        read_answers([[1, 2]], confidence="c")
    (tmp_path / "a.doc").write_text("confidence,correct\n0.5,1\n", encoding="utf-8")
    with refused("TO302"):
        read_answers(tmp_path / "a.doc", confidence="confidence")
    (tmp_path / "b.jsonl").write_text('{"confidence": 0.5, "correct": true}\n{"confidence":\n', encoding="utf-8")
    with refused("TO311"):
        read_answers(tmp_path / "b.jsonl", confidence="confidence")


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"samples_{name}.jsonl").write_text('{"confidence": 0.5, "correct": true}\n', encoding="utf-8")
    assert read_answers(tmp_path / "samples_*.jsonl", confidence="confidence").predictions.n == 2


def test_a_row_is_counted_in_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"confidence": 0.5, "correct": true}\n' * 3, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(
        '{"confidence": 0.5, "correct": true}\n{"confidence": 7, "correct": true}\n', encoding="utf-8"
    )
    with refused("TO317", "row 1 (line 2) of", "b.jsonl"):
        read_answers(tmp_path / "*.jsonl", confidence="confidence")


def test_a_table_is_read_as_records_empty_cells_and_all(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("q,c,ok,skip\n007,70%,Yes,no\n7,,,yes\n007,40,0,no\n", encoding="utf-8")
    result = read_answers(file, confidence="c", correct="ok", percent=True, abstained="skip", question="q")
    assert result.predictions.p.tolist() == [0.7, 0.4]
    assert result.predictions.y.tolist() == [1, 0]
    assert result.predictions.cluster.tolist() == [0, 0]  # 007 twice; 7 is another question, which got no answer
    assert (result.n_queries, result.abstained) == (3, 1)
    with refused("TO308", "row 1 of", "a.csv"):
        read_answers(file, confidence="c", correct="ok", percent=True)


def test_a_parquet_of_lists_says_what_the_lines_say(write: Write, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"logprobs": [-1.0, -2.0, -3.0], "label": 0}, {"logprobs": [-2.0, -0.5], "label": 1}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert (
        read_answers(tmp_path / "a.parquet").predictions.p.tolist() == read_answers(write(rows)).predictions.p.tolist()
    )


def test_one_json_document_holds_a_list_or_an_object_for_each_question(tmp_path: Path) -> None:
    file = tmp_path / "graded_record.json"
    for document in (GRADED, {row["id"]: {"judge_response": row["judge_response"]} for row in GRADED}):
        file.write_text(json.dumps(document), encoding="utf-8")
        result = read_answers(file, **HLE, percent=True, group="id")
        assert result.predictions.p.tolist() == [0.85, 1.0, 0.0]
        assert result.predictions.group["id"].tolist() == ["66e", "66f", "670"]
    for text, code in (("[1]", "TO302"), ("3", "TO302"), ("{", "TO303")):
        file.write_text(text, encoding="utf-8")
        with refused(code):
            read_answers(file, **HLE)
    with refused("TO301"):
        read_answers(tmp_path / "nowhere.json", **HLE)


def test_the_notes_travel_with_the_predictions_and_are_reported_once() -> None:
    rows = [{"c": 0.9, "correct": i % 3 > 0, "skip": False} for i in range(30)] + [{"skip": True}]
    result = read_answers(rows, confidence="c", abstained="skip")
    assert [note.code for note in result.notes] == [note.code for note in result.predictions.notes] == ["TN146"]
    assert [note.code for note in to.measure(result.predictions, "ece").notes].count("TN146") == 1
    assert [note["code"] for note in to.audit(result.predictions, resamples=99).to_dict()["notes"]].count("TN146") == 1


def test_a_row_that_abstains_may_hold_anything_and_a_confidence_in_it_is_noted() -> None:
    rows = [{"c": 0.9, "correct": 1, "skip": 0}, {"c": {"x": []}, "correct": 7, "skip": 1}, {"c": None, "skip": 1}]
    result = read_answers(rows, confidence="c", abstained="skip")
    assert (result.predictions.n, result.abstained) == (1, 2)
    assert [note.code for note in result.notes] == ["TN169", "TN146"]
    assert "1 row that abstains has a value of 'c'" in result.notes[0].text
    assert "row 1 of the list" in result.notes[0].text
    with refused("TO116", "row 0"):
        read_answers([{"c": 0.9, "correct": 1, "skip": "perhaps"}], confidence="c", abstained="skip")


def test_records_in_memory_may_hold_what_numpy_makes() -> None:
    records = [{"c": np.float32(0.5), "correct": np.bool_(True)}, {"c": np.float64(0.25), "correct": np.int64(0)}]
    preds = read_answers(records, confidence="c").predictions
    assert (preds.p.tolist(), preds.y.tolist()) == ([0.5, 0.25], [1, 0])
    logs = [{"logprobs": np.array([-1.0, -2.0]), "label": np.int64(1)}] * 2
    assert read_answers(logs).predictions.y.tolist() == [1, 1]


def test_what_frames_write_for_nothing_is_no_group_and_no_confidence_of_who_abstains() -> None:
    rows = [{"c": 0.5, "correct": 1, "skip": 0, "g": "a"}, {"c": math.nan, "skip": 1, "g": math.nan}]
    assert [note.code for note in read_answers(rows, confidence="c", abstained="skip", group="g").notes] == ["TN146"]
    with refused("TO308", "row 1", fix="Correct or remove the row."):
        read_answers([rows[0], rows[0] | {"g": math.nan}], confidence="c", group="g")


def test_a_verdict_that_a_judge_did_not_give_is_no_abstention() -> None:
    """Regression: the remedy was to pass the verdict itself as abstained, which raised the same error."""
    graded_record = {"judge_response": {"confidence": 0.5, "correct": "yes"}}
    fields = {"confidence": "judge_response.confidence", "correct": "judge_response.correct"}
    with refused("TO308", "null in row 1", fix="Correct or remove the row."):
        read_answers([graded_record, {"judge_response": {"confidence": 0.5, "correct": None}}], **fields)
    with refused("TO308", "null in row 1", fix="pass abstained='judge_response.confidence'"):
        read_answers([graded_record, {"judge_response": None}], **fields)
    result = read_answers([graded_record, {"judge_response": None}], **fields, abstained="judge_response.confidence")
    assert (result.predictions.n, result.n_queries, result.abstained) == (1, 2, 1)


def test_a_percent_sign_where_no_percentages_were_declared_is_reported() -> None:
    with refused("TO307", "'70%' in row 0", fix="percent=True"):
        read_answers([{"confidence": "70%", "correct": 1}], confidence="confidence")


def test_a_text_that_is_a_position_is_noted_and_a_name_is_not() -> None:
    rows = [{"logprobs": [-1.0, -2.0, -3.0], "label": label, "names": ["0", "1", "2"]} for label in ("0", "1", "2")]
    (note,) = read_answers(rows).notes
    assert (note.code, "such as '0'" in note.text, "counted from 0" in note.text) == ("TN170", True, True)
    assert read_answers([row | {"label": int(row["label"])} for row in rows]).notes == ()
    named = read_answers(rows, choices="names")
    assert named.notes == ()
    assert named.predictions.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("write", [int, str])
def test_option_0_that_is_never_right_is_noted_where_chance_would_hardly_leave_it_out(
    write: Callable[[int], Any],
) -> None:
    """Of 4 options (3/4)^n is below .001 from n = 25 on: (3/4)^24 = .00100, (3/4)^25 = .00075."""
    rows = [{"logprobs": [-1.0, -2.0, -3.0, -4.0], "label": write(1 + i % 3)} for i in range(25)]
    notes = read_answers(rows).notes
    assert notes[-1].code == "TN180"
    assert "None of 25 questions has option 0" in notes[-1].text
    assert "TN180" not in {note.code for note in read_answers(rows[:24]).notes}
    rows[7]["label"] = write(0)
    assert "TN180" not in {note.code for note in read_answers(rows).notes}


def test_an_answer_beyond_the_options_is_reported_as_it_is_written() -> None:
    row = {"logprobs": [-1.0, -2.0], "label": 2, "names": ["a", "b"]}
    for options in ({}, {"choices": "names"}):
        with pytest.raises(InputError) as error:
            read_answers([row], **options)
        assert (error.value.code, error.value.fix) == ("TO318", "Numbers count from 0.")
        assert error.value.got.startswith("2 for 'label'")
    with refused("TO318", "'2' for 'label'", fix="choices="):
        read_answers([row | {"label": "2"}])


def test_texts_in_the_place_of_log_probabilities_are_samples() -> None:
    for texts in (["The answer is A"], ["A", "B"]):
        with refused("TO315", "row 0", fix="samples="):
            read_answers([{"logprobs": texts, "label": 0}])
    assert read_answers([{"logprobs": ["-1.5", "-0.5"], "label": 1}]).predictions.n == 1


def test_rows_that_abstain_need_name_no_question() -> None:
    rows = [{"c": 0.9, "correct": 1, "q": "a"}, {"c": 0.8, "correct": 0, "q": "a"}, {"c": None, "q": None, "skip": 1}]
    result = read_answers([{"skip": 0} | row for row in rows], confidence="c", question="q", abstained="skip")
    assert (result.n_queries, result.questions, result.abstained) == (3, 1, 1)
    assert result.ids is not None
    assert result.ids.tolist() == ["a", "a"]
    alone = read_answers([{"skip": 0} | row for row in rows], confidence="c", abstained="skip")
    assert (alone.questions, alone.ids) == (None, None)
    assert "1 of 3 questions have no answer" in alone.notes[0].text


def test_a_mapping_of_option_names_to_log_probabilities_is_refused_with_the_conversion() -> None:
    with refused("TO307", "row 0", fix="choices="):
        read_answers([{"logprobs": {"A": -0.5, "B": -1.5}, "label": "A"}])
    mapping = {"A": -0.5, "B": -1.5}
    row = {"logprobs": list(mapping.values()), "names": list(mapping), "label": "B"}
    assert read_answers([row], choices="names").predictions.y.tolist() == [1]


def test_equal_samples_with_different_grades_count_by_their_majority() -> None:
    """Regression: the grade of the first copy counted, without a note."""
    rows = [
        {"s": ["4", "4", "4"], "ok": [False, True, True]},
        {"s": ["4", "4", "5"], "ok": [True, False, True]},
        {"s": ["4", "4", "5"], "ok": [True, True, False]},
    ]
    result = read_answers(rows, samples="s", correct="ok")
    assert result.predictions.y.tolist() == [1, 0, 1]
    (note,) = (note for note in result.notes if note.code == "TN184")
    assert note.text.startswith("In 2 of 3 questions copies")
    assert not read_answers(rows[2:], samples="s", correct="ok").notes
