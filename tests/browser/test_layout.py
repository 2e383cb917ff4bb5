"""Does the page fit a phone, large text and wide spacing, with nothing cut, and does it keep still where it should?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import HEIGHT, PHONE, WIDE
from tests.browser.pages import NAMES
from tests.browser.screenshots import ADD_STYLE

# How many pixels the page is wider than the window.
EXCESS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
# Elements with text that end outside of the window, unless one around them scrolls; and those that cut their own text.
CUT = """() => {
  const scrolls = e => { for (let up = e; up && up !== document.body; up = up.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(up).overflowX)) return true; } return false; };
  const isForReadersOnly = e => { for (let up = e; up; up = up.parentElement) {
    const box = up.getBoundingClientRect(), style = getComputedStyle(up);
    if (box.width <= 2 || box.height <= 2 || style.clipPath !== "none") return true; } return false; };
  const texts = [...document.body.querySelectorAll("*")].filter(e => e.checkVisibility() && !e.closest("svg")
    && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && !isForReadersOnly(e));
  const outside = texts.filter(e => { const box = e.getBoundingClientRect();
    return (box.right > innerWidth + 1 || box.left < -1) && !scrolls(e); });
  const cut = texts.filter(e => { const style = getComputedStyle(e);
    return (["hidden", "clip"].includes(style.overflowX) && e.scrollWidth > e.clientWidth + 1)
      || (["hidden", "clip"].includes(style.overflowY) && e.scrollHeight > e.clientHeight + 1); });
  return [...outside, ...cut].map(e => e.outerHTML.slice(0, 120));
}"""
# The spacing of WCAG 1.4.12.
SPACING = "* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; } p { margin-bottom: 2em !important; }"  # noqa: E501


@pytest.mark.parametrize("name", NAMES)
def test_at_320_pixels_nothing_scrolls_sideways_or_is_cut(open_page: Any, name: str) -> None:
    page = open_page(name, PHONE)
    assert page.evaluate(EXCESS) <= 0
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("width", [1920, WIDE, 1024, 768, 480, 360])
@pytest.mark.parametrize("name", ["votes", "four"])
def test_no_width_makes_the_page_scroll_sideways(open_page: Any, name: str, width: int) -> None:
    page = open_page(name, width)
    assert page.evaluate(EXCESS) <= 0
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("name", ["ten", "votes"])
def test_the_page_can_be_zoomed_to_four_times_its_size(open_page: Any, name: str) -> None:
    # A zoom of 200 % halves the window in CSS pixels, one of 400 % leaves 320 of 1,280.
    for zoom in (2, 4):
        page = open_page(name, WIDE // zoom, HEIGHT // zoom, device_scale_factor=zoom)
        assert page.evaluate(EXCESS) <= 0
        assert page.evaluate(CUT) == []
    assert "user-scalable" not in page.get_attribute("meta[name=viewport]", "content")


@pytest.mark.parametrize("width", [WIDE, 768])
@pytest.mark.parametrize("name", ["ten", "votes"])
def test_the_text_follows_a_font_size_of_the_reader_that_is_twice_the_usual(
    open_page: Any, name: str, width: int
) -> None:
    page = open_page(name, width)
    sizes = """[...document.querySelectorAll('p, td, th, li, dt, dd, h1, h2, h3, button, select')].filter(
      e => e.checkVisibility()).map(e => [e.outerHTML.slice(0, 120), parseFloat(getComputedStyle(e).fontSize)])"""
    usual = page.evaluate(sizes)
    page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": {"standard": 32, "fixed": 26}})
    page.reload()
    ratios = [(text, after / before) for (text, after), (_, before) in zip(page.evaluate(sizes), usual, strict=True)]
    assert [text for text, ratio in ratios if ratio < (1.25 if text[:2] == "<h" else 1.95)] == []
    assert page.evaluate(EXCESS) <= 0
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("name", ["ten", "votes", "four"])
def test_wide_spacing_of_the_text_cuts_nothing(open_page: Any, name: str) -> None:
    page = open_page(name, PHONE)
    page.evaluate(ADD_STYLE, SPACING)
    assert page.evaluate(EXCESS) <= 0
    assert page.evaluate(CUT) == []


def test_text_that_is_cut_is_noticed(open_page: Any) -> None:
    page = open_page("binary", PHONE)
    page.evaluate(ADD_STYLE, "h1 { overflow: hidden; height: 20px; } footer { width: 500px; }")
    assert page.evaluate(EXCESS) > 0
    assert {line[:3] for line in page.evaluate(CUT)} == {"<h1", "<fo"}


def test_links_to_parts_of_the_page_are_seen_where_the_pointer_or_the_focus_is(open_page: Any) -> None:
    page = open_page("binary")
    opacities = "all => [...new Set(all.map(e => getComputedStyle(e).opacity))]"
    page.mouse.move(1, 1)
    assert page.eval_on_selector_all(".anchor", opacities) == ["0"]
    page.hover("#evidence > h2")
    assert page.eval_on_selector_all("#evidence > h2 .anchor", opacities) == ["1"]
    page.mouse.move(1, 1)
    page.keyboard.press("Tab")  # the focus is seen only where the keyboard moves it
    page.focus("#made > h2 .anchor")
    assert page.eval_on_selector_all("#made > h2 .anchor", opacities) == ["1"]


# Motion

MOTION = """() => [...document.querySelectorAll("*")].filter(e => ["", "::before", "::after"].some(part => {
  const style = getComputedStyle(e, part || null), seconds = text => Math.max(...text.split(",").map(parseFloat));
  return (style.animationName !== "none" && seconds(style.animationDuration) > 0.01)
    || seconds(style.transitionDuration) > 0.01 || style.scrollBehavior === "smooth"; }))
  .map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", ["ten", "votes", "four"])
def test_nothing_moves_where_reduced_motion_is_preferred(open_page: Any, name: str) -> None:
    page = open_page(name, reduced_motion="reduce")
    assert page.evaluate(MOTION) == []
    for control in page.query_selector_all("button")[:40]:
        if control.is_visible():
            control.focus()
            page.keyboard.press("Enter")
            assert page.evaluate("document.getAnimations().length") == 0
            page.evaluate("document.querySelectorAll('dialog[open]').forEach(d => d.close())")


def test_the_tetrahedron_jumps_where_reduced_motion_is_preferred(open_page: Any) -> None:
    page = open_page("four", reduced_motion="reduce")
    picture = "document.querySelector('[data-turning] svg').outerHTML"
    page.query_selector("[data-turning] svg").focus()
    page.keyboard.press("ArrowLeft")
    turned = page.evaluate(picture)
    page.wait_for_timeout(300)
    assert page.evaluate(picture) == turned


@pytest.mark.parametrize("width", [WIDE, 768, 360])
def test_pictures_beside_their_tables_are_large_enough_to_read(open_page: Any, width: int) -> None:
    # A rule for paper that also held on the screen made them 178 pixels wide.
    page = open_page("binary", width)
    widths = page.eval_on_selector_all(".beside .picture svg", "all => all.map(e => e.getBoundingClientRect().width)")
    assert len(widths) >= 2
    assert min(widths) >= 260
