"""Run axe-core on a page. `python -m tests.browser.axe FILE...` prints what it finds, and fails if WCAG is violated."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")  # the levels A and AA of WCAG 2.2
ADVICE = ("best-practice",)


def violations(page: Any, tags: Iterable[str] = WCAG) -> list[str]:
    """One line per element that violates a rule with one of the tags: the rule, its impact, the element."""
    return _lines(_violated_rules(page, tags), tags)


def _violated_rules(page: Any, tags: Iterable[str]) -> list[dict[str, Any]]:
    """What axe says about every rule with one of the tags that is violated."""
    # The package's own reader opens the script in the encoding of the system.
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    options = {"runOnly": {"type": "tag", "values": list(tags)}, "resultTypes": ["violations"]}
    return page.evaluate("options => axe.run(document, options)", options)["violations"]


def _lines(rules: Iterable[dict[str, Any]], tags: Iterable[str]) -> list[str]:
    """One line per element, for the rules with one of the tags."""
    return [
        f"{rule['id']} ({node['impact']}): {' '.join(map(str, node['target']))} {_one_line(node['html'])}"
        for rule in rules
        if set(rule["tags"]) & set(tags)
        for node in rule["nodes"]
    ]


def _one_line(html: str) -> str:
    """The beginning of an element."""
    return " ".join(html.split())[:120]


def main(files: list[str]) -> int:
    """Print the violations of every file, light and dark, on a wide screen and on a phone; return how many of WCAG."""
    from benchmarks.chromium import ARGUMENTS, find_chromium
    from playwright.sync_api import sync_playwright

    total = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
        for file in files:
            for width in (1280, 320):
                for scheme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                    page.goto(Path(file).resolve().as_uri())
                    rules = _violated_rules(page, (*WCAG, *ADVICE))
                    for label, tags in (("WCAG 2.2 A and AA", WCAG), ("best practice", ADVICE)):
                        lines = _lines(rules, tags)
                        total += len(lines) if tags == WCAG else 0
                        print(f"{file}, {width} px, {scheme}, {label}: {len(lines)} violations", *lines, sep="\n  ")
                    page.close()
        browser.close()
    return total


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
