"""Does a table keep its numbers and its alignment whatever the width and the script of its names?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueodds.core.table import TableBlock, display_width, layout_table, shorten_middle

HEADINGS = ("group", "n", "error", "95 % interval", "noise floor", "detectable from", "status")
IS_NUMERIC = (False, True, True, True, True, True, False)
ROWS = [
    ("site=north", "1,072", "0.1732", "[0.1485, 0.1957]", "0.0062", "0.0092", "miscalibrated"),
    ("site=a rather long name of a southern region", "7", "0.0213", "[0.0000, 0.2118]", "0.2069", "0.2095", "within"),
]


def lines_of(blocks: list[TableBlock]) -> list[str]:
    return [line for block in blocks for line in (*block.heading, *block.rows)]


def test_a_table_that_fits_has_headings_of_one_line() -> None:
    (block,) = layout_table(HEADINGS, ROWS[:1], IS_NUMERIC, 200)
    # Each column is as wide as its longest cell, with two blanks between them; numbers end below their heading.
    assert block.heading == ("group           n   error     95 % interval  noise floor  detectable from  status",)
    assert block.rows == ("site=north  1,072  0.1732  [0.1485, 0.1957]       0.0062           0.0092  miscalibrated",)


@pytest.mark.parametrize("width", [46, 60, 78, 100])
def test_a_wide_table_is_continued_below_and_loses_no_number(width: int) -> None:
    blocks = layout_table(HEADINGS, ROWS, IS_NUMERIC, width)
    lines = lines_of(blocks)
    assert max(map(display_width, lines)) <= width
    text = "\n".join(lines)
    for row in ROWS:
        assert all(cell in text for cell in row[1:])
    assert all(block.rows[0].startswith("site=north") for block in blocks)  # every block names its rows
    words = set(" ".join(line for block in blocks for line in block.heading).split())
    assert words == set(" ".join(HEADINGS).split())


def test_characters_of_two_columns_keep_the_columns_aligned() -> None:
    (block,) = layout_table(("class", "error"), [("猫", "0.1"), ("cat", "0.2")], (False, True))
    assert block.rows == ("猫       0.1", "cat      0.2")
    assert {display_width(row) for row in block.rows} == {12}


@pytest.mark.slow
@given(st.text(max_size=60), st.integers(5, 40))
def test_a_shortened_name_is_never_wider_than_allowed(text: str, width: int) -> None:
    assert display_width(shorten_middle(text, width)) <= width
    assert shorten_middle("short", width) == "short"


def test_a_heading_is_broken_if_it_is_wider_than_the_shortened_names() -> None:
    """Regression: the heading was compared with the names before they were shortened."""
    rows = [("n" * 60, "0.1"), ("m" * 60, "0.2")]
    (block,) = layout_table(("a fairly long heading of the first column", "x"), rows, (False, True), 36)
    assert max(map(len, [*block.heading, *block.rows])) <= 36
