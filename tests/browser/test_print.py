"""Is a printed page whole, on A4 and on Letter: no table or picture cut, no content left on the screen?"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.pages import NAMES
from tests.browser.test_layout import EXCESS

MARGIN = 38  # pixels; 1 cm, about what browsers leave around a page
PAPERS = {"A4": (794, 1123), "Letter": (816, 1056)}  # width and height in CSS pixels, 96 per inch
POINTS = {"A4": (595, 842), "Letter": (612, 792)}

# Boxes that scroll or hide, and so cut on paper; those that a script opens for printing are open here too.
CUT = """() => [...document.body.querySelectorAll("*")].filter(e => {
  const style = getComputedStyle(e);
  return e.checkVisibility() && !e.closest("svg") && e.clientWidth > 2 && e.clientHeight > 2
    && ((style.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1)
     || (style.overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1));
}).map(e => e.outerHTML.slice(0, 120))"""
OUTSIDE = """() => [...document.body.querySelectorAll("td, th, img, svg, p, dd, dt, li, h1, h2, h3")].filter(e =>
  e.checkVisibility() && (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1))
  .map(e => e.outerHTML.slice(0, 120))"""
# What must stay in one piece: rows, pictures, captions; or they lie in something that does. Pictures within text or a
# row are as small as a line.
BREAKABLE = """height => {
  const isWhole = e => { for (let up = e; up && up !== document.body; up = up.parentElement) {
    if (getComputedStyle(up).breakInside.startsWith("avoid") && up.getBoundingClientRect().height <= height)
      return true; } return false; };
  return [...document.querySelectorAll("tr, img, svg, figcaption")].filter(e => e.checkVisibility()
    && !(e.closest("svg") && e.localName !== "svg") && e.getBoundingClientRect().height > 30 && !isWhole(e))
    .map(e => `${Math.round(e.getBoundingClientRect().height)} px: ${e.outerHTML.slice(0, 120)}`);
}"""
CELLS = "[...document.querySelectorAll('td, th, dt, dd, li, h1, h2, h3')]"


def printed(open_page: Any, name: str, paper: str) -> Any:
    """The page as laid out for paper."""
    width, height = PAPERS[paper]
    page = open_page(name, width - 2 * MARGIN, height - 2 * MARGIN)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    return page


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_paper_or_cut_by_its_box(open_page: Any, name: str, paper: str) -> None:
    page = printed(open_page, name, paper)
    assert page.evaluate(CUT) == []
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(EXCESS) <= 0


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("name", ["binary", "ten", "votes", "four"])
def test_no_row_and_no_picture_is_split_between_two_sheets(open_page: Any, name: str, paper: str) -> None:
    page = printed(open_page, name, paper)
    assert page.evaluate(BREAKABLE, PAPERS[paper][1] - 2 * MARGIN) == []


def test_the_head_of_a_table_is_repeated_and_no_heading_ends_a_sheet(open_page: Any) -> None:
    page = printed(open_page, "votes", "A4")
    styles = "all => [...new Set(all.filter(e => e.checkVisibility()).map(e => getComputedStyle(e).%s))]"
    assert page.eval_on_selector_all("thead", styles % "display") == ["table-header-group"]
    # Chromium paints the boxes of buttons only once, so the headings on later sheets would be empty.
    displays = "all => [...new Set(all.map(e => getComputedStyle(e).display))]"
    assert page.eval_on_selector_all("thead button", displays) == ["contents"]
    assert page.eval_on_selector_all("h2, h3, figcaption", styles % "breakAfter") == ["avoid"]
    assert "fixed" not in page.eval_on_selector_all("*", styles % "position")
    assert "sticky" not in page.eval_on_selector_all("*", styles % "position")


@pytest.mark.parametrize("name", ["ten", "votes", "four", "many"])
def test_every_cell_is_printed(open_page: Any, name: str) -> None:
    page = printed(open_page, name, "A4")
    missing = page.evaluate(f"{CELLS}.filter(e => !e.checkVisibility() && !e.closest('dialog')).map(e => e.outerHTML)")
    assert missing == []


def test_no_control_is_printed_but_the_headings_that_sort(open_page: Any) -> None:
    for name in ("votes", "four"):
        page = printed(open_page, name, "A4")
        controls = "all => all.filter(e => e.checkVisibility() && !e.closest('th')).map(e => e.outerHTML.slice(0, 120))"
        assert page.eval_on_selector_all("select, input, button", controls) == []


def test_paper_is_white_for_a_reader_who_prefers_the_dark(open_page: Any) -> None:
    page = open_page("binary", color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(color) != "rgb(255, 255, 255)"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(color) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("paper", PAPERS)
def test_the_standard_measures_of_two_classes_are_on_the_first_sheet(open_page: Any, paper: str) -> None:
    page = printed(open_page, "binary", paper)
    bottom = page.evaluate("document.querySelector('#table-standard').getBoundingClientRect().bottom")
    assert 0 < bottom < PAPERS[paper][1] - 2 * 45  # pixels; 12 mm


@pytest.mark.parametrize(("name", "most"), [("binary", 6), ("ten", 10), ("many", 12)])
def test_a_report_has_few_sheets(open_page: Any, name: str, most: int) -> None:
    document = open_page(name).pdf(format="A4", print_background=True)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", document)) <= most


@pytest.mark.parametrize("paper", PAPERS)
def test_the_pdf_has_the_size_of_the_paper(open_page: Any, paper: str) -> None:
    document = open_page("votes").pdf(format=paper, print_background=True)
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", document)
    assert len(boxes) >= 3
    for width, height in boxes:  # the browser rounds to pixels
        assert (float(width), float(height)) == pytest.approx(POINTS[paper], abs=1)
