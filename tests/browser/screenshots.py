"""Screenshots of two pages, the same on every machine but for the edges of lines and letters.

All text is set in the font that comes with matplotlib, because the fonts of machines differ. An image is reduced to an
eighth of the size in gray levels, where the smoothing of edges averages out. `python -m tests.browser.renew` writes the
stored images again, after the page has been changed and looked at.
"""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

IMAGES = Path(__file__).parent / "images"
PAGES = ("binary", "votes")
PRINT_WIDTH = 718  # of the text on A4, see test_print
FORMATS = {"1280": 1280, "768": 768, "360": 360, "print": PRINT_WIDTH}
SCALE, REDUCTION = 0.5, 4  # of the browser, and of its image afterwards
LEVELS, SHARE, ROWS = 16, 0.005, 3  # what two images of the same page may differ by, see `difference`

SET_FONT = """async data => {
  const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
  const face = new FontFace("Same everywhere", bytes.buffer);
  document.fonts.add(await face.load());
  await document.fonts.ready;
  for (const image of document.images) await image.decode();
}"""


SAME_FONT = '* { font-family: "Same everywhere" !important; }'
# Assigned rather than pushed to the list, so that the style is always computed anew.
ADD_STYLE = """text => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""


def screenshot(browser: Any, path: Path, format: str, style: str = "") -> NDArray[np.uint8]:
    """The whole page in one of the formats, in gray levels at an eighth of its size; `style` is added to its own."""
    from PIL import Image

    context = browser.new_context(
        viewport={"width": FORMATS[format], "height": 900}, device_scale_factor=SCALE, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(path.as_uri())
    if format == "print":
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.evaluate(SET_FONT, _font())
    page.evaluate(ADD_STYLE, SAME_FONT + style)
    image = Image.open(io.BytesIO(page.screenshot(full_page=True, animations="disabled"))).convert("L")
    context.close()
    return np.asarray(image.reduce(REDUCTION))


def _font() -> str:
    """DejaVu Sans from the files of matplotlib, in base64."""
    import matplotlib

    file = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return base64.b64encode(file.read_bytes()).decode()


def image_path(name: str, format: str) -> Path:
    """Where the image of a page in a format is stored."""
    return IMAGES / f"{name}-{format}.png"


def stored(name: str, format: str) -> NDArray[np.uint8]:
    """The stored image of a page in a format."""
    from PIL import Image

    with Image.open(image_path(name, format)) as image:
        return np.asarray(image.convert("L"))


def difference(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """The share of pixels whose gray levels differ by more than LEVELS; 1 if the sizes differ by more than ROWS.

    A row is eight pixels of the page. What lies below a text that another smoothing makes a little higher is shifted,
    so each pixel is compared with the nearest of three, that of its place and those above and below; in both
    directions, because in white space next to text everything white is found again.
    """
    if one.shape[1] != other.shape[1] or abs(one.shape[0] - other.shape[0]) > ROWS:
        return 1.0
    rows = min(one.shape[0], other.shape[0])
    return max(_share_without_match(one[:rows], other[:rows]), _share_without_match(other[:rows], one[:rows]))


def _share_without_match(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """The share of pixels of one image of which the other has none of nearly the same level within one row."""
    shifted = [np.abs(one.astype(int) - np.roll(other.astype(int), shift, axis=0)) for shift in (-1, 0, 1)]
    return float((np.minimum.reduce(shifted) > LEVELS).mean())
