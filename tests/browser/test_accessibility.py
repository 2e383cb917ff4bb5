"""Does the page meet WCAG 2.2 AA by axe-core, in every color scheme, on a wide screen and on a phone?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.conftest import PHONE, WIDE
from tests.browser.pages import NAMES

SCHEMES: dict[str, dict[str, str]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
}


@pytest.fixture(autouse=True)
def _needs_axe() -> None:
    pytest.importorskip("axe_playwright_python")


# The rows of a table differ in their numbers only. Axe needs seconds for a thousand cells, so it sees two of each kind.
KEEP_FEW_ROWS = """
for (const body of document.querySelectorAll('tbody')) {
  const seen = new Map();
  for (const row of [...body.rows]) {
    const kind = row.className + [...row.cells].map(c => c.localName + c.className + c.childElementCount).join();
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (seen.get(kind) > 2) row.remove();
  }
}
"""


@pytest.fixture
def open_short_page(open_page: Any) -> Any:
    """Open a page with two rows of each kind in every table."""

    def open_it(*args: Any, **options: Any) -> Any:
        page = open_page(*args, **options)
        page.evaluate(KEEP_FEW_ROWS)
        return page

    return open_it


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_of_groups_and_votes_has_no_violation_in_any_color_scheme(
    open_short_page: Any, scheme: str, width: int
) -> None:
    assert violations(open_short_page("votes", width, **SCHEMES[scheme])) == []


# Every other page wide and light, the rest narrow and dark: axe takes seconds for each.
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        (name, *((WIDE, "light"), (PHONE, "dark"))[i % 2])
        for i, name in enumerate(name for name in NAMES if name != "votes")
    ],
)
def test_no_page_has_a_violation(open_short_page: Any, name: str, width: int, scheme: str) -> None:
    assert violations(open_short_page(name, width, **SCHEMES[scheme])) == []


def test_axe_finds_what_is_wrong(open_page: Any) -> None:
    page = open_page("binary")
    page.evaluate("document.documentElement.removeAttribute('lang'); document.body.append(new Image())")
    assert {line.split()[0] for line in violations(page)} == {"html-has-lang", "image-alt"}


@pytest.mark.parametrize("name", ["binary", "ten", "votes", "four"])
def test_images_have_a_description_and_headings_skip_no_level(open_page: Any, name: str) -> None:
    page = open_page(name)
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => +h.localName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []
    assert page.evaluate("[...document.images].filter(i => i.alt.split(' ').length < 5).length") == 0
