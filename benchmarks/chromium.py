"""Find an installed Chromium, which opens the HTML report in the benchmark of the page and in the browser tests."""

from __future__ import annotations

import os
import shutil

COMMAND_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without a sandbox Chromium also starts as root; without hinting glyphs have the same widths on every machine.
ARGUMENTS = ("--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb")


def find_chromium() -> str | None:
    """Return the path in TRUEODDS_CHROMIUM, or the first browser on the search path; None if there is none."""
    return os.environ.get("TRUEODDS_CHROMIUM") or next(filter(None, map(shutil.which, COMMAND_NAMES)), None)
