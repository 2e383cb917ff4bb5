"""Size of the HTML report, and the time in which Chromium opens it, for few and for many classes."""

from __future__ import annotations

import statistics
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.chromium import ARGUMENTS, find_chromium

# Largest size in kB that the project allows for a number of classes, and largest time to open it in seconds.
SIZE_LIMITS = {10: 600, 1000: 1500}
TIME_LIMIT = 0.5
MIN_ROWS = 900
RESAMPLES = 99  # the size of the page does not depend on them
TIMES = """async () => {
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0];
  while (!paint()) await new Promise(requestAnimationFrame);
  return {load: performance.getEntriesByType("navigation")[0].loadEventEnd / 1e3, paint: paint().startTime / 1e3};
}"""


def figures(folder: Path, classes: list[int], repeats: int) -> list[tuple[str, str]]:
    """The size of the page for each number of classes and, if Playwright and Chromium are installed, its times."""
    lines = []
    for k in classes:
        path = folder / f"{k}.html"
        write(path, k)
        limit = f" (≤ {SIZE_LIMITS[k]:,})" if k in SIZE_LIMITS else ""
        lines.append((f"page of {k:,} classes{limit}", f"{path.stat().st_size / 1e3:,.0f} kB"))
        if (times := opened(path, repeats)) is not None:
            lines.append(("  first content painted", f"{times['paint']:.2f} s"))
            lines.append((f"  loaded (≤ {TIME_LIMIT})", f"{times['load']:.2f} s"))
    if opened_by() is None:
        lines.append(("  time to open it", "no Playwright or Chromium"))
    return lines


def write(path: Path, k: int) -> None:
    """Write the page of an audit of simulated, overconfident predictions of k classes."""
    import trueodds as to

    rng = np.random.default_rng(0)
    n = max(MIN_ROWS, k)  # as few rows as classes, since with more the recalibration would take most of the time
    P = rng.dirichlet(np.full(k, 0.4), n)
    true = P**0.6 / (P**0.6).sum(axis=1, keepdims=True)
    y = np.minimum((true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    to.audit(to.Predictions(y, P), resamples=RESAMPLES, progress=False).to_html(path)


def opened_by() -> str | None:
    """The Chromium that opens the pages; None if it or Playwright is not installed."""
    return find_chromium() if find_spec("playwright") else None


def opened(path: Path, repeats: int) -> dict[str, float] | None:
    """Median times in seconds from the start of the navigation, each in a new window of a running browser."""
    if (chromium := opened_by()) is None:
        return None
    from playwright.sync_api import sync_playwright

    runs = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for _ in range(repeats + 1):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            runs.append(page.evaluate(TIMES))
            page.close()
        browser.close()
    # The first window also starts the processes of the browser.
    return {name: statistics.median(run[name] for run in runs[1:]) for name in runs[0]}
