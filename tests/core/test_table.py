"""Does a table keep its numbers and its alignment whatever the width and the script of its names?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueodds.core.results import Interval
from trueodds.core.table import (
    Column,
    FormattedCell,
    Kind,
    LatexOptions,
    Table,
    TableBlock,
    display_width,
    format_csv,
    format_html,
    format_latex,
    format_markdown,
    format_text,
    layout_table,
    shorten_middle,
)

HEADINGS = ("group", "n", "error", "95 % interval", "noise floor", "detectable from", "status")
KINDS: tuple[Kind, ...] = ("text", "number", "number", "interval", "number", "number", "text")
ROWS = [
    ("site=north", "1,072", "0.1732", "[0.1485, 0.1957]", "0.0062", "0.0092", "miscalibrated"),
    ("site=a rather long name of a southern region", "7", "0.0213", "[0.0000, 0.2118]", "0.2069", "0.2095", "within"),
]


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]], kinds: tuple[Kind, ...]) -> Table:
    columns = zip(headings, zip(*rows, strict=True), kinds, strict=True)
    return Table("", tuple(Column(heading, texts, kind) for heading, texts, kind in columns))


def lines_of(blocks: list[TableBlock]) -> list[str]:
    return [line for block in blocks for line in (*block.heading, *block.rows)]


def test_a_table_that_fits_has_headings_of_one_line() -> None:
    (block,) = layout_table(table(HEADINGS, ROWS[:1], KINDS), 200)
    # Each column is as wide as its longest cell, with two blanks between them; numbers end below their heading.
    assert block.heading == ("group           n   error     95 % interval  noise floor  detectable from  status",)
    assert block.rows == ("site=north  1,072  0.1732  [0.1485, 0.1957]       0.0062           0.0092  miscalibrated",)


@pytest.mark.parametrize("width", [46, 60, 78, 100])
def test_a_wide_table_is_continued_below_and_loses_no_number(width: int) -> None:
    blocks = layout_table(table(HEADINGS, ROWS, KINDS), width)
    lines = lines_of(blocks)
    assert max(map(display_width, lines)) <= width
    text = "\n".join(lines)
    for row in ROWS:
        assert all(cell in text for cell in row[1:])
    assert all(block.rows[0].startswith("site=north") for block in blocks)  # every block names its rows
    words = set(" ".join(line for block in blocks for line in block.heading).split())
    assert words == set(" ".join(HEADINGS).split())


def test_characters_of_two_columns_keep_the_columns_aligned() -> None:
    (block,) = layout_table(table(("class", "error"), [("猫", "0.1"), ("cat", "0.2")], ("text", "number")))
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
    (block,) = layout_table(table(("a fairly long heading of the first column", "x"), rows, ("text", "number")), 36)
    assert max(map(len, [*block.heading, *block.rows])) <= 36


EVERY_KIND = Table(
    "Errors",
    (
        Column("model", ["a_1", "b"], "text"),
        Column("error", [0.25, 0.000793]),
        Column("ideal", [1.0, None], "value"),
        Column("n", [1072, None], "count"),
        Column("share", [0.5, "none"], "percent"),
        Column("p", [0.001, 0.42], "pvalue", min_pvalue=0.001),
        Column("95 % interval", [Interval(0.1, 0.3, 0.95, "bca"), None], "interval"),
        Column("brier", [FormattedCell("0.1", ("0.0", "0.2"), is_bold=True), FormattedCell("-0.2")], "estimate", "↓"),
        Column("curve", ["<svg/>", ""], "curve"),
        Column("error", [0.25, None], "bar", is_detail=True),
    ),
)


def test_one_table_has_the_same_cells_in_every_form() -> None:
    assert EVERY_KIND.rows[0][:-1] == ("a_1", "0.2500", "1", "1,072", "50.0 %", "≤ 0.001", "[0.1000, 0.3000]")
    assert EVERY_KIND.rows[1][:-1] == ("b", "0.0008", "–", "–", "none", "0.42", "–")
    text = "\n".join(format_text([EVERY_KIND], "A caption.", 200))
    assert "≤ 0.001  [0.1000, 0.3000]  0.1* [0.0, 0.2]" in text
    markdown = format_markdown([EVERY_KIND])
    assert "| a\\_1 | 0.2500 | 1 | 1,072 | 50.0 % | ≤ 0.001 | \\[0.1000, 0.3000\\] | **0.1** [0.0, 0.2] |" in markdown
    assert "| :--- | ---: | ---: | ---: | ---: | ---: | ---: | :--- |" in markdown
    html = format_html([EVERY_KIND])
    assert "<strong>0.1</strong><br><small>[0.0, 0.2]</small>" in html
    assert "text-align:right" in html
    latex = format_latex([EVERY_KIND], "", LatexOptions("brackets"))
    assert r"\begin{tabular}{lrrrrrrl}" in latex
    assert r"a\_1 & 0.2500 & 1 & 1,072 & 50.0 \% & $\leq$ 0.001 & [0.1000, 0.3000] & $\mathbf{0.1}$" in latex
    assert not any("svg" in form for form in (text, markdown, html, latex))
    assert format_csv({column.name: column.cells for column in EVERY_KIND.columns[:2]}) == (
        "model,error\na_1,0.2500\nb,0.0008\n"
    )


def test_the_first_rows_have_the_decimals_of_all_rows() -> None:
    column = Column("error", [0.0004, 0.00012, 0.25])
    head = Table("", (column,)).head(2)
    assert (head.rows, head.n_omitted) == ((("0.0004",), ("0.0001",)), 1)


def test_a_column_of_dashes_is_left_out_unless_it_is_the_first_or_drawn() -> None:
    shown = Table(
        "",
        (
            Column("name", ["–"], "text"),
            Column("error", [None]),
            Column("status", [""], "text"),
            Column("error", [None], "bar", is_detail=True),
        ),
    ).without_empty_columns()
    assert [column.kind for column in shown.columns] == ["text", "bar"]
    assert [column.kind for column in shown.without_details().columns] == ["text"]
