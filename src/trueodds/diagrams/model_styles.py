"""Color, marker, line style and displayed name of each of several models, and whether their curves have markers."""

from __future__ import annotations

from typing import Any

from trueodds.diagrams._style import styling

# The colors of Okabe & Ito without yellow, which is hard to see on white, and a wine red: distinguishable with any
# color vision. In grayscale, markers and line styles distinguish models.
COLORS = ("#0072B2", "#C8450A", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINE_STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (5, 1.4, 1.2, 1.4)),
    (0, (8, 2)),
    (0, (2.5, 1.2)),
    (0, (8, 1.4, 1.2, 1.4, 1.2, 1.4)),
    (0, (1.2, 2.4)),
)
MAX_MODELS = len(COLORS)
MAX_NAME_WIDTH, NAME_FONT_SIZE = 150.0, 8.5  # maximum width of a name in a legend, and its font size, in points
MAX_MARKED_THRESHOLDS = 20  # largest number of thresholds at each of which a curve has a marker
DEFAULT_MODEL_NAME = "model"  # label of a model without a name


def sentence_name(name: str) -> str:
    return name or "the model"


def legend_name(name: str) -> str:
    return styling.shorten_text(name or DEFAULT_MODEL_NAME, MAX_NAME_WIDTH, NAME_FONT_SIZE)


def marks_thresholds(thresholds: list[float] | int | None) -> bool:
    """Return whether curves over thresholds have a marker at each of them.

    `thresholds` is the setting of the diagram. Few thresholds that the user listed have markers, because the curve of a
    single one would have no line. Thresholds that the diagram chose (an int or None) have none.
    """
    return isinstance(thresholds, list) and len(thresholds) <= MAX_MARKED_THRESHOLDS
