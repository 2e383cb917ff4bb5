"""Do the controls of the page do what they say: links, sorting, search, copying, enlarging, the numbers of a bin?"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.browser.pages import NAMES

CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}
BIN = "main svg [tabindex='0'][aria-label*='observed']"


def press(page: Any, control: Any) -> None:
    """Operate a control by the keyboard."""
    control.focus()
    page.keyboard.press("Enter")


def visible_buttons(page: Any, pattern: str) -> list[Any]:
    """The visible buttons of the page whose text or label matches the pattern."""
    buttons = page.query_selector_all("main button")
    named = [(one, one.get_attribute("aria-label") or one.inner_text()) for one in buttons if one.is_visible()]
    return [one for one, name in named if re.search(pattern, name)]


# Links


@pytest.mark.parametrize("name", NAMES)
def test_every_link_within_the_page_has_a_target_and_no_identifier_occurs_twice(open_page: Any, name: str) -> None:
    page = open_page(name)
    identifiers = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    links = page.eval_on_selector_all("a[href^='#']", "all => all.map(e => decodeURIComponent(e.hash.slice(1)))")
    assert sorted(identifiers) == sorted(set(identifiers))
    assert set(links) - set(identifiers) == set()


@pytest.mark.parametrize("name", ["ten", "votes", "four"])
def test_every_figure_and_every_table_can_be_linked_to(open_page: Any, name: str) -> None:
    page = open_page(name)
    unlinked = page.evaluate("""() => [...document.querySelectorAll("main figure, main table")].filter(e =>
      !e.id && !e.closest("[id]") || !document.querySelector(`a[href="#${CSS.escape(e.id || e.closest("[id]").id)}"]`))
      .map(e => e.outerHTML.slice(0, 120))""")
    assert unlinked == []
    figures = page.eval_on_selector_all("main figure[id]", "all => all.map(e => e.id)")
    assert len(figures) >= 2
    page.evaluate("id => { location.hash = id; }", figures[-1])
    page.wait_for_timeout(100)
    assert page.evaluate("id => document.getElementById(id).getBoundingClientRect().top < innerHeight", figures[-1])


@pytest.mark.parametrize("name", ["binary", "votes", "comparison"])
def test_every_number_can_be_linked_to(open_page: Any, name: str) -> None:
    page = open_page(name)
    rows = "main tbody tr, main dl.facts:not(#words *) > div, .tile"
    unlinked = page.eval_on_selector_all(
        rows, "all => all.filter(e => !e.querySelector(`a[href='#${e.id}']`)).map(e => e.outerHTML.slice(0, 120))"
    )
    assert len(page.query_selector_all(rows)) > 20
    assert unlinked == []


def test_arrow_keys_move_between_rows_and_enter_marks_the_row(open_page: Any) -> None:
    page = open_page("ten")
    page.focus("#table-classes .row[tabindex='0']")
    for key, row in [("ArrowDown", 2), ("ArrowDown", 3), ("ArrowUp", 2), ("End", 10), ("Home", 1), ("ArrowDown", 2)]:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.hash") == f"#table-classes-{row}"
    assert len(page.query_selector_all("#table-classes .row[tabindex='0']")) == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**#table-classes-2")
    assert page.evaluate("document.querySelector('tr:target').id") == "table-classes-2"


def test_the_tab_key_reaches_a_row_that_a_search_left(open_page: Any) -> None:
    page = open_page("many")
    page.fill("#class", "117")
    stops = "document.querySelectorAll(\"#table-classes tr:not([hidden]) .row[tabindex='0']\").length"
    assert page.evaluate(stops) == 1
    page.fill("#class", "")
    assert page.evaluate(stops) == 1


# Tables

# The cells of a table by rows, its heads last in their column; what only the eye needs has no text.
ROWS = "table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))"


def number(text: str) -> float:
    """The first number of a cell; none is not a number."""
    shown = re.search(r"-?\d+(\.\d+)?(e-?\d+)?", text.replace("\u2212", "-").replace(",", ""))
    return float(shown[0]) if shown else float("nan")


def test_a_heading_sorts_its_column_both_ways_and_loses_no_row(open_page: Any) -> None:
    page = open_page("ten")
    tables = [table for table in page.query_selector_all("main table") if len(table.evaluate(ROWS)) == 10]
    assert tables != []
    for table in tables:
        heads = table.query_selector_all("thead th")
        rows = table.evaluate(ROWS)
        sortable = [i for i, head in enumerate(heads) if head.query_selector("button")]
        assert len(sortable) >= 2
        for i in sortable:
            orders = []
            for _ in range(2):
                press(page, heads[i].query_selector("button"))
                direction = heads[i].get_attribute("aria-sort")
                assert direction in {"ascending", "descending"}
                assert len(table.query_selector_all("th[aria-sort]:not([aria-sort=none])")) == 1
                after = table.evaluate(ROWS)
                assert sorted(after) == sorted(rows)
                values = [value for value in (number(row[i]) for row in after) if value == value]
                assert values == sorted(values, reverse=direction == "descending")
                orders.append(direction)
            assert len(set(orders)) == 2


def test_search_leaves_the_classes_whose_name_has_the_text(open_page: Any) -> None:
    page = open_page("many")
    fields = [field for field in page.query_selector_all("main input[type=search]") if field.is_visible()]
    assert fields != []
    shown = """() => Math.max(...[...document.querySelectorAll("main table")].map(
      table => [...table.tBodies[0].rows].filter(row => row.checkVisibility()).length))"""
    assert page.evaluate(shown) == 200
    fields[0].focus()
    page.keyboard.type("17")
    assert page.evaluate(shown) == 12  # 17, 117, and 170 to 179
    fields[0].fill("")
    assert page.evaluate(shown) == 200


# The clipboard


def copied(page: Any, button: Any) -> str:
    """What a button puts on the clipboard."""
    page.evaluate("navigator.clipboard.writeText('nothing')")
    press(page, button)
    page.wait_for_timeout(50)
    return page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("name", ["binary", "votes"])
def test_a_table_is_copied_as_rows_of_equally_many_cells(open_page: Any, name: str) -> None:
    page = open_page(name, **CLIPBOARD)
    buttons = visible_buttons(page, "Copy (table|data)")
    assert len(buttons) >= len(page.query_selector_all("main table"))
    for button in buttons:
        lines = [line.split("\t") for line in copied(page, button).rstrip("\n").split("\n")]
        assert len(lines) >= 2
        assert len({len(cells) for cells in lines}) == 1


@pytest.mark.parametrize("name", ["binary", "votes"])
def test_a_picture_is_copied_as_svg_that_needs_nothing_from_the_page(open_page: Any, name: str) -> None:
    page = open_page(name, **CLIPBOARD)
    buttons = visible_buttons(page, "Copy SVG")
    assert len(buttons) >= 2
    for button in buttons:
        root = ElementTree.fromstring(copied(page, button))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert [one for one in root.iter() if "var(" in " ".join(one.attrib.values()) or "class" in one.attrib] == []


def test_a_copied_picture_looks_like_the_one_on_the_page(open_page: Any) -> None:
    page = open_page("binary", **CLIPBOARD)
    picture = page.query_selector("#figure-reliability-positive .picture, figure[data-lens] .picture:has(.bin)")
    text = copied(page, picture.query_selector("button:has-text('Copy SVG')"))
    look = "all => all.map(e => (s => [s.stroke, s.strokeOpacity, s.strokeWidth, s.fill].join())(getComputedStyle(e)))"
    before = picture.eval_on_selector_all("svg path, svg line", look)
    page.evaluate(
        """([picture, text]) => { const svg = picture.querySelector("svg");
      svg.outerHTML = text; picture.querySelector("svg").setAttribute("class", "rd"); }""",
        [picture, text.replace("<svg ", "<svg id='copy' ", 1)],
    )
    after = page.eval_on_selector_all("#copy path, #copy line", look)
    assert len(set(before)) > 3  # axes, diagonal, bars, curve
    assert after == before
    assert "rgba(0, 0, 0, 0)" not in text


def test_two_searches_of_the_same_table_agree(open_page: Any) -> None:
    page = open_page("ten")
    rows = "[...document.querySelectorAll('#table-classes tbody tr')].filter(row => !row.hidden).length"
    own = page.query_selector("[data-tools='table-classes'] input")
    own.fill("3")
    assert page.evaluate(rows) == 1
    page.select_option("#lens", index=1)
    assert page.evaluate(rows) == 1
    page.fill("#class", "7")
    assert own.input_value() == "7"
    assert page.evaluate(rows) == 1
    page.fill("#class", "")
    assert own.input_value() == ""
    assert page.evaluate(rows) == 10


# Pictures


@pytest.mark.parametrize("name", ["binary", "votes"])
def test_a_picture_is_enlarged_in_a_dialog_that_escape_closes(open_page: Any, name: str) -> None:
    page = open_page(name)
    buttons = visible_buttons(page, "(?i)enlarge")
    assert len(buttons) >= 2
    for button in buttons:
        figure = "one => one.closest('.picture, figure').querySelector('img, svg').getBoundingClientRect().width"
        before = button.evaluate(figure)
        press(page, button)
        dialog = page.query_selector("dialog[open]")
        assert dialog.evaluate("e => e.contains(document.activeElement)")
        assert dialog.query_selector("img, svg").bounding_box()["width"] > before
        page.keyboard.press("Escape")
        # The browser closes the dialog and returns the focus some time after the key; an error unless it does.
        page.wait_for_function("() => !document.querySelector('dialog[open]')", polling=50)
        page.wait_for_function("e => e === document.activeElement", arg=button, polling=50)


@pytest.mark.parametrize("name", ["binary", "ten", "votes"])
def test_the_numbers_of_a_bin_are_told_in_focus_and_under_the_pointer(open_page: Any, name: str) -> None:
    page = open_page(name)
    first = page.query_selector(BIN)
    bins = first.evaluate_handle("e => [...e.parentNode.querySelectorAll('[aria-label*=observed]')]")
    displayed = """bins => { const text = document.querySelector("main").innerText.replace(/\\s+/g, " ");
      return bins.flatMap((e, i) => text.includes(e.getAttribute("aria-label")) ? [i] : []); }"""
    assert page.evaluate(displayed, bins) == []
    first.focus()
    assert page.evaluate(displayed, bins) == [0]
    page.keyboard.press("ArrowRight")
    assert page.evaluate("bins => bins.indexOf(document.activeElement)", bins) == 1
    assert page.evaluate(displayed, bins) == [1]
    # The areas of bins that are closer than a pointer is wide overlap, so one of those below it is told.
    bins.evaluate("bins => bins[bins.length - 1].scrollIntoView({block: 'center', behavior: 'instant'})")
    box = bins.evaluate("bins => bins[bins.length - 1].getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    (shown,) = page.evaluate(displayed, bins)
    box = bins.evaluate("(bins, i) => bins[i].getBoundingClientRect().toJSON()", shown)
    assert shown > 1
    assert box["left"] <= x <= box["right"]
