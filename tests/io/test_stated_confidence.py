"""Are stated confidences on mixed scales, and those that are no numbers, refused with their number and as written?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.data.refused import refused
from trueodds.io.answers import read_answers


def read(values: list[Any], **settings: Any) -> Any:
    return read_answers([{"c": value, "correct": 1} for value in values], confidence="c", **settings)


def test_a_fraction_beside_texts_with_a_percent_sign_is_refused() -> None:
    """0.75 among 90% would be read as 0.75 %."""
    with refused("TO317", "2 of 5 above 0 and at most 1", "the first 0.75 in row 1", fix="0.9%"):
        read(["90%", "0.75", "60%", 1, "85 %"], percent=True)
    assert read(["90%", "0.75%", "60%", "0%"], percent=True).predictions.p.tolist() == [0.9, 0.0075, 0.6, 0.0]
    assert read(["90%", "75", 60, "0"], percent=True).notes == ()


def test_values_that_are_no_numbers_are_counted_and_quoted_as_written() -> None:
    values = ["90%", "very likely", "I would say 85 %", "85,5%", "N/A", "N/A", 70]
    with refused("TO307", "'very likely' in row 1", "5 of 7 values are not numbers", fix="abstained='c'"):
        read(values, percent=True)
    for value in ("I would say 85 %", "85,5%"):
        with refused("TO307", f"'{value}' in row 0"):
            read([value], percent=True)
    with refused("TO307", "'I would say 85 %', '85,5%'"):
        read(values, percent=False)


def test_a_negative_confidence_may_be_a_log_probability() -> None:
    with refused("TO317", "-0.22", fix="exp(x)"):
        read([-0.22])
    with refused("TO317", "-5", fix="Correct the row"):
        read([-5], percent=True)


@pytest.mark.parametrize("value", [None, float("nan"), ""])
def test_every_kind_of_empty_value_is_an_answer_without_a_confidence_beside_a_field_of_refusals(value: Any) -> None:
    """Of 10 questions 2 are refused; of the other 8 three have no confidence, of which two are correct."""
    rows: list[dict[str, Any]] = [{"c": 0.9, "correct": i % 2, "refused": False} for i in range(5)]
    rows += [{"c": value, "correct": right, "refused": False} for right in (1, 1, 0)]
    rows += [{"c": value, "refused": True}] * 2
    result = read_answers(rows, confidence="c", abstained=["refused", "c"])
    assert (result.n_queries, result.abstained, result.without_confidence, result.predictions.n) == (10, 2, 3, 5)
    assert result.coverage == 0.5
    assert "2 abstained, 3 without confidence, coverage 50%" in str(result)
    assert [note.code for note in result.notes] == ["TN146", "TN183"]
    assert "3 of 10 answers have no confidence (66.67% of them are correct)" in result.notes[1].text
    assert result.selective_risk(resamples=0).table["coverage"][-1] == 0.5
    only = read_answers(rows, confidence="c", abstained="c")
    assert (only.abstained, only.without_confidence, only.coverage) == (5, 0, 0.5)


def test_no_answer_with_a_confidence_is_an_error() -> None:
    rows = [{"c": None, "correct": 1, "refused": False}, {"c": None, "refused": True}]
    with refused("TO319", "2 rows"):
        read_answers(rows, confidence="c", abstained=["refused", "c"])
