"""Are the answers of two models to the same questions compared question by question, whatever their order and gaps?"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused

N = 300


def answers_of(seed: int, shift: float) -> list[dict[str, Any]]:
    """Answers to the same questions: hard ones are hard for every model, so that the scores of models are dependent."""
    difficulty = np.random.default_rng(0).random(N)
    rng = np.random.default_rng(seed)
    return [
        {"q": f"q{i}", "c": 0.5 + 0.5 * float(rng.random()), "correct": bool(difficulty[i] < 0.7 - shift)}
        for i in range(N)
    ]


def read(rows: list[dict[str, Any]], **fields: Any) -> to.Predictions:
    preds: to.Predictions = to.read_answers(rows, confidence="c", question="q", **fields).predictions
    return preds


def codes(comparison: Any) -> list[str]:
    return [note.code for note in comparison.notes]


def test_models_that_refuse_different_questions_are_compared_on_the_common_ones() -> None:
    """A refuses the first question and B the last: the numbers are those of the 298 others, in the right pairs."""
    a, b = answers_of(1, 0.0), answers_of(2, 0.1)
    comparison = to.compare(read(a[1:]), read(b[:-1]), "brier", paired=True)
    aligned = to.compare(read(a[1:-1]), read(b[1:-1]), "brier", paired=True)
    assert (comparison.n, comparison.difference, comparison.pvalue) == (N - 2, aligned.difference, aligned.pvalue)
    (note,) = (note for note in comparison.notes if note.code == "TN272")
    assert "298 rows are common" in note.text
    assert "a has 1 more, b has 1 more" in note.text
    assert "TN272" not in codes(aligned)
    # Without ids each row would be compared with that of another question, and the variance would be far larger.
    misaligned = to.compare(
        *(to.Predictions.from_confidence(preds.p, preds.y) for preds in (read(a[1:]), read(b[:-1]))),
        "brier",
        paired=True,
    )
    assert comparison.settings["standard_error"] < 0.8 * misaligned.settings["standard_error"]


def test_questions_in_another_order_are_the_same_rows() -> None:
    a, b = answers_of(1, 0.0), answers_of(2, 0.1)
    forward, backward = (to.compare(read(a), read(rows), "brier") for rows in (b, b[::-1]))
    assert forward.paired
    assert backward.paired
    assert backward.difference == forward.difference
    assert backward.pvalue == forward.pvalue
    assert "ids of their rows" in next(note.text for note in backward.notes if note.code == "TN226")


def test_different_questions_are_not_paired_unless_requested_and_the_note_counts_the_common_ones() -> None:
    comparison = to.compare(read(answers_of(1, 0.0)[1:]), read(answers_of(2, 0.1)[:-1]), "brier")
    assert not comparison.paired
    (text,) = (note.text for note in comparison.notes if note.code == "TN227")
    assert "298 of their 299 and 299 rows have a common id" in text
    assert "paired=True to compare the common rows" in text


def test_no_common_question_cannot_be_paired() -> None:
    with refused("TO205", "q0 in a and q200 in b", fix="question="):
        to.compare(read(answers_of(1, 0.0)[:100]), read(answers_of(2, 0.1)[200:]), "brier", paired=True)


def test_repeated_ids_are_paired_in_the_same_order_only() -> None:
    ids = np.arange(60) // 2
    one, two = (
        to.Predictions.from_confidence(np.linspace(0.5, top, 60), np.arange(60) % 3 > 0).with_row_id(ids)
        for top in (0.9, 0.8)
    )
    assert to.compare(one, two, "brier", paired=True).paired
    with refused("TO205", "in 2 rows of a"):
        to.compare(one, two[::-1], "brier", paired=True)
    assert not to.compare(one, two[::-1], "brier").paired


def test_the_answers_of_one_question_keep_their_numbers_if_one_is_refused() -> None:
    """Three answers to each question; A refuses the second to question 0, so that its third stays the third."""
    rows = [{"q": i // 3, "c": 0.6 + 0.01 * (i % 30), "correct": i % 4 > 0, "skip": False} for i in range(90)]
    refusing = [row | {"skip": i == 1} for i, row in enumerate(rows)]
    one, two = read(refusing, abstained="skip"), read(rows, abstained="skip")
    assert one.row_id is not None
    assert one.row_id[:3].tolist() == ["0 #1", "0 #3", "1 #1"]
    comparison = to.compare(one, two, "brier", paired=True)
    assert comparison.difference == 0.0  # every answer is compared with itself
    assert comparison.n == 89


def test_clusters_are_numbered_alike_after_pairing() -> None:
    """B answers in the reverse order, so that its clusters, of text, have other numbers; the interval is the same."""
    rows = [{"q": f"{i // 3}x", "c": 0.6 + 0.01 * (i % 30), "correct": i % 4 > 0} for i in range(90)]
    other = [row | {"c": row["c"] - 0.05} for row in rows]
    blocks = [other[start : start + 3] for start in range(0, 90, 3)]
    one, two, backward = read(rows), read(other), read([row for block in blocks[::-1] for row in block])
    forward, reordered = (to.compare(one, rows, "ece", resamples=200) for rows in (two, backward))
    assert reordered.paired
    assert reordered.interval == forward.interval


def test_three_models_are_ranked_on_the_questions_that_all_answered() -> None:
    models = {"a": read(answers_of(1, 0.0)[2:]), "b": read(answers_of(2, 0.1)[:-3]), "c": read(answers_of(3, 0.2))}
    ranking = to.compare(models, "brier", paired=True)
    assert ranking.n == N - 5
    assert all(comparison.paired and comparison.n == N - 5 for comparison in ranking.pairs)
    (note,) = (note for note in ranking.notes if note.code == "TN272")
    assert "295 rows are common" in note.text
    assert "a has 3 more, b has 2 more, c has 5 more" in note.text


def test_recalibrated_confidences_are_paired_with_the_original_ones() -> None:
    """Equal correctness of every row is as good a sign as equal labels; the rows of another model differ in it."""
    rows = answers_of(1, 0.0)
    plain = to.Predictions.from_confidence([row["c"] for row in rows], [row["correct"] for row in rows])
    calibrator = to.fit(plain[:150], "isotonic")
    comparison = to.compare(calibrator.recalibrate(plain[150:]), plain[150:], "brier")
    assert comparison.paired
    assert comparison.n == 150
    with_ids = read(rows)
    assert calibrator.recalibrate(with_ids).row_id.tolist() == [row["q"] for row in rows]
    assert to.compare(calibrator.recalibrate(with_ids)[::-1], with_ids, "brier").paired


def test_ids_of_a_table_pair_rows_too(tmp_path: Any) -> None:
    for name, order in (("a", range(40)), ("b", reversed(range(3, 40)))):
        lines = [f"{i},{0.3 + 0.01 * i},{i % 2}" for i in order]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,p,label", *lines]) + "\n", encoding="utf-8")
    a, b = (to.read(tmp_path / f"{name}.csv", probs="p", row_id="id") for name in "ab")
    comparison = to.compare(a, b, "brier", paired=True)
    assert (comparison.n, comparison.difference) == (37, 0.0)


def test_ids_stay_with_the_rows() -> None:
    preds = to.Predictions([0, 1, 1], [0.2, 0.7, 0.9]).with_row_id([3, 1, 2])
    assert preds[[2, 0]].row_id.tolist() == [2, 3]
    assert pickle.loads(pickle.dumps(preds)).row_id.tolist() == [3, 1, 2]
    assert preds.with_labels(np.array([1, 1, 1])).row_id.tolist() == [3, 1, 2]
    assert to.Predictions([0, 1], [0.2, 0.7]).row_id is None
    for bad in ([1, 2], [1.0, 2.0, np.nan]):
        with refused("TO112"):
            preds.with_row_id(bad)
    with pytest.raises(ValueError, match="read-only"):
        preds.row_id[0] = 7
