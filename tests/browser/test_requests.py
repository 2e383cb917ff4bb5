"""Is the page alone with its reader: no request, no error, nothing that its policy refuses?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.pages import NAMES

# What the policy refuses is an event of the document before it is a line of the console.
COLLECT_REFUSALS = """window.refused = [];
document.addEventListener("securitypolicyviolation",
  e => window.refused.push(e.violatedDirective + " " + e.blockedURI));
"""
MAX_PRESSED = 80


def recorded(browser: Any, path: Path) -> tuple[Any, list[str], list[str]]:
    """The opened page, with the addresses that it requests and the problems that it reports from now on."""
    context = browser.new_context(accept_downloads=True, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.add_init_script(COLLECT_REFUSALS)
    requests: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda line: problems.append(line.text) if line.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    return page, requests, problems


def outside(requests: list[str], path: Path) -> list[str]:
    """Requests for anything but the file itself and what it contains."""
    return [url for url in requests if url.split("#")[0] != path.as_uri() and not url.startswith(("data:", "blob:"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_requests_only_itself_and_reports_no_problem(
    browser: Any, page_path: Callable[[str], Path], name: str
) -> None:
    page, requests, problems = recorded(browser, page_path(name))
    page.mouse.wheel(0, 20_000)
    page.wait_for_timeout(200)
    assert outside(requests, page_path(name)) == []
    assert problems + page.evaluate("window.refused") == []
    page.context.close()


@pytest.mark.parametrize("name", ["votes", "four"])
def test_pressing_every_control_requests_nothing_and_reports_no_problem(
    browser: Any, page_path: Callable[[str], Path], name: str
) -> None:
    page, requests, problems = recorded(browser, page_path(name))
    for control in page.query_selector_all("button, summary, select")[:MAX_PRESSED]:
        if not control.is_visible() or not control.is_enabled():
            continue
        control.focus()
        page.keyboard.press("ArrowDown" if control.evaluate("e => e.localName") == "select" else "Enter")
        page.evaluate("document.querySelectorAll('dialog[open]').forEach(d => d.close())")
    page.wait_for_timeout(300)
    assert outside(requests, page_path(name)) == []
    assert problems + page.evaluate("window.refused") == []
    page.context.close()


def test_the_policy_refuses_what_is_added_to_the_page(browser: Any, page_path: Callable[[str], Path]) -> None:
    page, requests, problems = recorded(browser, page_path("binary"))
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/pixel.png'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">red</p>')")
    page.wait_for_timeout(200)
    assert [line.split()[0] for line in page.evaluate("window.refused")] == ["img-src", "style-src-attr"]
    assert outside(requests, page_path("binary")) == ["https://example.org/pixel.png"]  # tried, and refused
    assert problems != []
    page.context.close()
