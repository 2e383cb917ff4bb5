"""Does `trueodds explain` give the meaning and the remedy of a code, and does every error point to it?"""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from trueodds.core.codes import load_codes


def test_a_code_is_explained_by_its_meaning_and_its_remedy(run: Run) -> None:
    done = run("explain", "TO102")
    assert done.exit_code == 0
    first, *rest = done.stdout.splitlines()
    assert first == "TO102 (error)"
    text = " ".join(" ".join(rest).split())
    assert text == f"{load_codes()['TO102'].meaning} What to do: {load_codes()['TO102'].remedy}"


def test_several_codes_are_explained_once_each_as_messages_print_them(run: Run) -> None:
    done = run("explain", "[TN105]", "to102", "tn105")
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert titles == ["TN105 (note)", "TO102 (error)"]


def test_every_code_is_explained_within_80_columns(run: Run) -> None:
    done = run("explain", *load_codes())
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.count("What to do:") == len(load_codes())


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("TO1022", "Did you mean TO102"),
        ("105", "Did you mean TO105 or TN105?"),
        ("xyz", "A code is TO (an error) or TN (a note) and three digits, such as TO102."),
    ],
)
def test_an_unknown_code_lists_similar_ones(run: Run, code: str, fix: str) -> None:
    done = run("explain", code)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error TO601\nproblem: Unknown code.\n")
    assert f"fix: {fix}" in done.stderr


def test_known_codes_are_explained_although_another_one_is_unknown(run: Run) -> None:
    done = run("explain", "TO1022", "TO102", "TN105")
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert titles == ["TO102 (error)", "TN105 (note)"]
    assert done.exit_code == 2
    assert "got: 'TO1022'" in done.stderr


def test_an_error_ends_with_the_command_that_explains_its_code(run: Run) -> None:
    done = run("measure", "nowhere.csv")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == "error TO301"
    assert done.stderr.splitlines()[-1] == "more: trueodds explain TO301"
