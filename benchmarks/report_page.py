"""Benchmark of the HTML page of an audit: its size, and the time in which Chromium opens it, by number of classes."""

from __future__ import annotations

import statistics
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.chromium import ARGUMENTS, find_chromium

SIZE_LIMITS = {10: 600, 1000: 1500}  # largest size in kB that the project allows, by number of classes
TIME_LIMIT = 0.5  # largest time to open a page in seconds
MIN_ROWS = 900
RESAMPLES = 99  # few, because the size of the page does not depend on them
# Waits for the first paint, and returns the times from the start of the navigation to it and to the end of loading.
TIMING_SCRIPT = """async () => {
  const paint = () => performance.getEntriesByName("first-contentful-paint")[0];
  while (!paint()) await new Promise(requestAnimationFrame);
  return {load: performance.getEntriesByType("navigation")[0].loadEventEnd / 1e3, paint: paint().startTime / 1e3};
}"""


def measure_pages(folder: Path, numbers_of_classes: list[int], repeats: int) -> list[tuple[str, str]]:
    """Return lines (what is measured, result): the size of each page and, if it can be opened, its times.

    Opening a page requires Playwright and Chromium.
    """
    lines = []
    for k in numbers_of_classes:
        path = folder / f"{k}.html"
        write_page(path, k)
        limit = f" (≤ {SIZE_LIMITS[k]:,})" if k in SIZE_LIMITS else ""
        lines.append((f"page of {k:,} classes{limit}", f"{path.stat().st_size / 1e3:,.0f} kB"))
        if (times := median_opening_times(path, repeats)) is not None:
            lines.append(("  first content painted", f"{times['paint']:.2f} s"))
            lines.append((f"  loaded (≤ {TIME_LIMIT})", f"{times['load']:.2f} s"))
    if usable_chromium() is None:
        lines.append(("  time to open it", "no Playwright or Chromium"))
    return lines


def write_page(path: Path, k: int) -> None:
    """Write the page of an audit of simulated, overconfident predictions of k classes."""
    import trueodds as to

    rng = np.random.default_rng(0)
    n = max(MIN_ROWS, k)  # as few rows as classes, since with more the recalibration would take most of the time
    P = rng.dirichlet(np.full(k, 0.4), n)
    true_prob = P**0.6 / (P**0.6).sum(axis=1, keepdims=True)
    y = np.minimum((true_prob.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    to.audit(to.Predictions(y, P), resamples=RESAMPLES, progress=False).to_html(path)


def usable_chromium() -> str | None:
    """Return the path of Chromium; None if it or Playwright, which controls it, is not installed."""
    return find_chromium() if find_spec("playwright") else None


def median_opening_times(path: Path, repeats: int) -> dict[str, float] | None:
    """Return the median times "paint" and "load" in seconds, each in a new window; None without a browser."""
    if (chromium := usable_chromium()) is None:
        return None
    from playwright.sync_api import sync_playwright

    runs = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for _ in range(repeats + 1):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            runs.append(page.evaluate(TIMING_SCRIPT))
            page.close()
        browser.close()
    # The first window is left out, because it also starts the processes of the browser.
    return {name: statistics.median(run[name] for run in runs[1:]) for name in runs[0]}
