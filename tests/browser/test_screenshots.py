"""Do the pages look as they did, on three widths and on paper? `python -m tests.browser.renew` stores how they look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import screenshots


@pytest.mark.parametrize("format", screenshots.FORMATS)
@pytest.mark.parametrize("name", screenshots.PAGES)
def test_a_page_looks_as_it_did(browser: Any, page_path: Callable[[str], Path], name: str, format: str) -> None:
    pytest.importorskip("PIL")
    image, stored = screenshots.screenshot(browser, page_path(name), format), screenshots.stored(name, format)
    assert screenshots.difference(image, stored) <= screenshots.SHARE, f"{image.shape} and {stored.shape}"


# What a careless change of the style does: hidden content, a lost color, another size of the text.
CHANGES = {
    "no tables": "table { visibility: hidden; }",
    "dark": ":root { --paper: #121417; } body { background: #121417 !important; }",
    "larger text": "html { font-size: 17px; }",
    "wider gaps": "section { margin-top: 58px !important; }",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_page_looks_otherwise(browser: Any, page_path: Callable[[str], Path], change: str) -> None:
    pytest.importorskip("PIL")
    image = screenshots.screenshot(browser, page_path("binary"), "768", CHANGES[change])
    assert screenshots.difference(image, screenshots.stored("binary", "768")) > 3 * screenshots.SHARE
