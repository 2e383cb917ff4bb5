"""Do errors and notes carry their code, cross processes, and count as ValueErrors?"""

from __future__ import annotations

import pickle

import pytest

from trueodds.core.errors import InputError, Note


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
