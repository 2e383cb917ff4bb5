"""Are names that look alike told apart in errors: with a byte order mark, a zero-width or a non-breaking space?"""

from __future__ import annotations

from pathlib import Path

import pytest

from trueodds import InputError, read

ROWS = "0,0.25\n1,0.5\n"


@pytest.mark.parametrize("odd", ["\ufefflabel", "label\u200b", "label\u00a0", " label"])
def test_a_column_that_looks_like_the_requested_one_is_shown_with_what_is_unseen(tmp_path: Path, odd: str) -> None:
    """Regression: the error asked whether the very name that was passed was meant."""
    (tmp_path / "a.csv").write_text(f"\ufeff{odd},p_1\n{ROWS}", encoding="utf-8")
    with pytest.raises(InputError, match="TO304") as error:
        read(tmp_path / "a.csv")
    assert error.value.fix == f"{odd!a} differs only by blanks or invisible characters: remove them from the name."
    (tmp_path / "a.csv").write_text(f"\ufefflabel,p_1\n{ROWS}", encoding="utf-8")
    assert read(tmp_path / "a.csv").collect().n == 2


def test_columns_that_a_pattern_would_match_are_shown_with_what_is_unseen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label, p_0, p_1\n0,0.5,0.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"TO305.*' p_0' differs only by blanks"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("odd", ["cat\u200b", "cat\u00a0", "cat ", "\ufeffcat"])
def test_a_label_that_looks_like_a_class_is_named_with_that_class(tmp_path: Path, odd: str) -> None:
    (tmp_path / "a.csv").write_text(f"label,p_cat,p_dog\ncat,0.5,0.5\n{odd},0.25,0.75\n", encoding="utf-8")
    with pytest.raises(InputError, match="TO105") as error:
        read(tmp_path / "a.csv").collect()
    assert error.value.got.startswith(f"{odd!a} in row 1")
    assert error.value.fix == "It differs from the class 'cat' only by blanks or invisible characters: remove them."


def test_a_name_of_other_letters_is_written_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"größe,p_1\n{ROWS}", encoding="utf-8")
    with pytest.raises(InputError, match="The columns are größe, p_1"):
        read(tmp_path / "a.csv")
