"""Write the stored screenshots again: `python -m tests.browser.renew`. Look at the pages first, and at the images."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.chromium import ARGUMENTS, find_chromium

from tests.browser import screenshots
from tests.browser.pages import write_page


def main() -> None:
    """Replace every stored image, and print how much it differs from the one before."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    screenshots.IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
        for name in screenshots.PAGES:
            path, _ = write_page(name, Path(folder))
            for format in screenshots.FORMATS:
                image, file = screenshots.screenshot(browser, path, format), screenshots.image_path(name, format)
                change = screenshots.difference(image, screenshots.stored(name, format)) if file.exists() else 1.0
                Image.fromarray(image).save(file, optimize=True)
                print(f"{file.name:<20}{image.shape[1]:>5} × {image.shape[0]:<6}{change:>8.2%} of the pixels differ")
        browser.close()


if __name__ == "__main__":
    main()
