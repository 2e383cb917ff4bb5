"""A headless Chromium with the pages of small audits; without Playwright or Chromium these tests are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.chromium import ARGUMENTS, find_chromium

from tests.browser.pages import write_page

WIDE, PHONE = 1280, 320  # viewports in CSS pixels; 320 is what WCAG 1.4.10 asks for
HEIGHT = 900


# Closed with the last test of the folder: while Playwright runs, no other event loop can run in the same thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """The browser, shared by all tests of this folder."""
    api = pytest.importorskip("playwright.sync_api")
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found; name one in TRUEODDS_CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def written_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, tuple[str, ...]]]:
    """A page by its name, written at the first call: its path, and warnings about missing characters."""
    return partial(write_page, folder=tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def page_path(written_page: Callable[[str], tuple[Path, tuple[str, ...]]]) -> Callable[[str], Path]:
    """The path of a page by its name."""
    return lambda name: written_page(name)[0]


@pytest.fixture
def open_page(browser: Any, page_path: Callable[[str], Path]) -> Iterator[Callable[..., Any]]:
    """Open a page in a new window of `width`; other arguments are those of Playwright's `new_context`."""
    contexts = []

    def open_by_name(name: str, width: int = WIDE, height: int = HEIGHT, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(page_path(name).as_uri())
        return page

    yield open_by_name
    for context in contexts:
        context.close()
