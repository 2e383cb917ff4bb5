"""Do errors and notes carry their code, cross processes, and count as ValueErrors?"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from trueodds.core.errors import MAX_MESSAGE_LENGTH, InputError, Note, shorten


def test_an_error_prints_code_problem_got_and_fix() -> None:
    error = InputError("TO102", "Every probability must lie in [0, 1].", "-2.0 in row 17", "Pass logits=True.")
    assert str(error) == "[TO102] Every probability must lie in [0, 1]. Got -2.0 in row 17. Pass logits=True."
    assert str(InputError("TO999", "Odd.")) == "[TO999] Odd."


def test_an_error_crosses_processes_whole() -> None:
    error = pickle.loads(pickle.dumps(InputError("TO102", "a", "b", "c")))
    assert (error.code, error.problem, error.got, error.fix) == ("TO102", "a", "b", "c")


def test_an_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="TO1"):
        raise InputError("TO1", "x")


def test_a_note_is_frozen_and_tells_itself() -> None:
    note = Note("TN101", "text")
    assert (str(note), note.to_dict()) == ("[TN101] text", {"code": "TN101", "text": "text"})
    with pytest.raises(AttributeError):
        note.code = "TN0"  # type: ignore[misc]


@pytest.mark.parametrize("problem", ["p" * 20, "p" * 500])
@pytest.mark.parametrize("got", ["", "g" * 20, "g" * 1_000_000, repr(np.zeros((3, 4))), "\x1b" * 1000])
@pytest.mark.parametrize("fix", ["", "f" * 20, "f" * 5000])
def test_no_message_is_longer_than_400_characters(problem: str, got: str, fix: str) -> None:
    error = InputError("TO102", problem, got, fix)
    assert len(str(error)) <= MAX_MESSAGE_LENGTH == 400
    assert "\n" not in str(error)
    assert all(text for original, text in ((problem, error.problem), (got, error.got), (fix, error.fix)) if original)


def test_a_short_message_is_not_touched() -> None:
    error = InputError("TO102", "p" * 100, "g" * 100, "f" * 100)
    assert (error.problem, error.got, error.fix) == ("p" * 100, "g" * 100, "f" * 100)


def test_of_a_long_value_begin_and_end_are_kept() -> None:
    got = InputError("TO113", "The names of classes must be distinct.", repr(list(range(10_000)))).got
    assert got.startswith("[0, 1, 2, ")
    assert got.endswith(", 9998, 9999]")
    assert len(got) <= 160


def test_a_text_is_shortened_in_its_middle_to_the_letter() -> None:
    assert [shorten("abcdefghij", length) for length in (10, 9, 4, 1)] == ["abcdefghij", "abcdef…ij", "ab…j", "…"]


def test_the_limit_outlives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(InputError("TO102", "p" * 500, "g" * 500, "f" * 500)))
    assert len(str(error)) <= 400


def test_messages_and_notes_show_controls_as_text() -> None:
    error = InputError("TO304", "a\x1b[31m.csv has no such column.", "label='\u202ex'", "Known: b\x9b, c\udcff.")
    assert str(error) == r"[TO304] a\x1b[31m.csv has no such column. Got label='\u202ex'. Known: b\x9b, c\udcff."
    assert str(Note("TN501", "No row has class a\x1b.")) == r"[TN501] No row has class a\x1b."
    assert Note("TN501", "a\x1b").to_dict()["text"] == "a\x1b"  # JSON holds the name itself
