"""Are class names in any script shown whole, and does their direction leave the text around them alone?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PHONE, WIDE
from tests.browser.pages import EAST_ASIAN, LONG, RIGHT_TO_LEFT

SHOWN = """() => [...document.querySelectorAll("td, th, dd, dt, text, tspan, li")].filter(e => e.checkVisibility())
  .map(e => e.textContent.replace(/[\\u2066-\\u2069\\u200e\\u200f]/g, "").trim())"""
# The text of the smallest part around a name that orders its text by itself. Isolated parts of it are taken out, be
# they so by a style, the element <bdi> or the characters for that purpose.
MIXED = """names => {
  const rightToLeft = /[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff]/;
  const isIsolated = e => getComputedStyle(e).unicodeBidi.match(/isolate|plaintext/)
    || !getComputedStyle(e).display.startsWith("inline") || e.localName === "option" || e.localName === "text";
  const outer = e => [...e.childNodes].map(n => n.nodeType === 3 ? n.data
    : n.nodeType === 1 && !isIsolated(n) ? outer(n) : "").join("");
  const parts = [...document.querySelectorAll("body, body *")].filter(e => !e.closest("script, style"))
    .filter(isIsolated).map(e => outer(e).replace(/[\\u2066-\\u2068][^\\u2069]*\\u2069/g, "").trim());
  return parts.filter(text => rightToLeft.test(text) && !names.includes(text));
}"""
CUT = """names => [...document.querySelectorAll("body *")].filter(e => e.checkVisibility() && !e.closest("select, svg")
  && names.some(name => e.textContent.includes(name)) && e.clientWidth > 2
  && (getComputedStyle(e).textOverflow === "ellipsis" || ["hidden", "clip"].includes(getComputedStyle(e).overflowX))
  && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
PAGES = {"right-to-left": RIGHT_TO_LEFT, "East Asian": EAST_ASIAN, "votes": ("cat", LONG, "dog")}


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_every_name_is_shown_whole(open_page: Any, name: str, width: int) -> None:
    page = open_page(name, width)
    shown = page.evaluate(SHOWN)
    assert [one for one in PAGES[name] if not any(one in text for text in shown)] == []
    assert page.evaluate(CUT, list(PAGES[name])) == []


def test_names_from_right_to_left_are_isolated_from_the_text_around_them(open_page: Any) -> None:
    assert open_page("right-to-left").evaluate(MIXED, list(RIGHT_TO_LEFT)) == []


def test_a_name_that_is_not_isolated_is_noticed(open_page: Any) -> None:
    page = open_page("binary")
    name = RIGHT_TO_LEFT[1]
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", f"<p>class {name} (12)</p>")
    assert page.evaluate(MIXED, [name]) == [f"class {name} (12)"]
    isolated = f"<p>class <bdi>{name}</bdi> (12)</p><p>class \u2068{name}\u2069 (12)</p><p><b>{name}</b></p>"
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", isolated)
    assert page.evaluate(MIXED, [name]) == [f"class {name} (12)"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["right-to-left", "East Asian"])
def test_pictures_have_every_character_of_the_names(
    written_page: Callable[[str], tuple[Path, tuple[str, ...]]], name: str
) -> None:
    assert written_page(name)[1] == ()
