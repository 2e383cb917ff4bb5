"""Is everything on the page for a reader whose browser runs no scripts?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.browser.pages import NAMES

# The text of every cell, term and heading; what a reader can open without a script counts as visible.
TEXTS = """visibleOnly => {
  document.querySelectorAll("details").forEach(d => d.open = true);
  return [...document.querySelectorAll("td, th, dt, dd, li, h1, h2, h3, caption")]
    .filter(e => !visibleOnly || e.checkVisibility({visibilityProperty: true}))
    .map(e => e.textContent.replace(/\\s+/g, " ").trim()).filter(Boolean);
}"""


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_the_page_has_the_same_text(open_page: Any, name: str) -> None:
    alive = Counter(open_page(name).evaluate(TEXTS, False))
    static = open_page(name, java_script_enabled=False)
    # A heading that the script turns into a button may gain a mark of its order, never lose its text.
    assert list((alive - Counter(static.evaluate(TEXTS, False))).elements()) == []
    assert len(static.evaluate(TEXTS, False)) > 50


@pytest.mark.parametrize("name", ["ten", "votes", "four", "many"])
def test_without_scripts_no_cell_is_hidden(open_page: Any, name: str) -> None:
    page = open_page(name, java_script_enabled=False)
    hidden = Counter(page.evaluate(TEXTS, False)) - Counter(page.evaluate(TEXTS, True))
    assert list(hidden.elements()) == []


@pytest.mark.parametrize("name", ["ten", "votes", "four"])
def test_without_scripts_no_control_is_shown_that_would_do_nothing(open_page: Any, name: str) -> None:
    page = open_page(name, java_script_enabled=False)
    controls = "all => all.filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 120))"
    assert page.eval_on_selector_all("button, select, input, [role=button]", controls) == []


@pytest.mark.parametrize("name", ["binary", "ten", "votes", "four"])
def test_without_scripts_every_picture_is_there(open_page: Any, name: str) -> None:
    alive, static = open_page(name), open_page(name, java_script_enabled=False)
    pictures = "all => all.filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 200).length"
    n = static.eval_on_selector_all("main img, main svg", pictures)
    assert n >= alive.eval_on_selector_all("main img, main svg", pictures)
    assert n >= 2
