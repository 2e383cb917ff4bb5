"""Are names from right to left isolated, and is all other text left as it is?"""

from __future__ import annotations

import pytest

from trueodds.core.text_direction import END_OF_ISOLATE, ISOLATE, isolate, isolate_tree

HEBREW, ARABIC = "חתול גדול", "كلب (2)"


def isolated(text: str) -> str:
    return f"{ISOLATE}{text}{END_OF_ISOLATE}"


def test_a_name_is_isolated_with_its_digits_and_brackets() -> None:
    assert isolate(f"class {ARABIC}: 3 of 15", [ARABIC]) == f"class {isolated(ARABIC)}: 3 of 15"


def test_words_that_are_no_names_are_isolated_up_to_their_last_letter() -> None:
    assert isolate(f"site={HEBREW} (12 rows)") == f"site={isolated(HEBREW)} (12 rows)"


def test_the_longest_name_is_taken_whole() -> None:
    assert isolate("כלב 2", ["כלב", "כלב 2"]) == isolated("כלב 2")


@pytest.mark.parametrize("text", ["", "cat: 3", "猫 (2)", "Größe ≤ 3", "Ωμέγα"])
def test_text_from_left_to_right_is_unchanged(text: str) -> None:
    assert isolate(text, [text]) == text


def test_all_text_in_a_tree_is_isolated_keys_included() -> None:
    tree = {HEBREW: [1, None, (f"class:{HEBREW}", 0.5)], "n": True}
    assert isolate_tree(tree, [HEBREW]) == {
        isolated(HEBREW): [1, None, (f"class:{isolated(HEBREW)}", 0.5)],
        "n": True,
    }
