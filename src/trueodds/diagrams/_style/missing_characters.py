"""Write names as text in an SVG, not as outlines, if the font of the pictures lacks one of their characters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import MethodType
from typing import Any

FONT = "DejaVu Sans"  # comes with matplotlib, and has no Chinese, Japanese or Korean characters


def is_drawable(text: str) -> bool:
    """Return whether the font of the pictures has every character of the text.

    >>> is_drawable("Größe ≤ 3"), is_drawable("\u732b")
    (True, False)
    """
    return text.isascii() or all(ord(character) in _characters() for character in text if not character.isspace())


def write_missing_characters_as_text(figure: Any) -> None:
    """Prepare a figure so that its SVG contains each text that the font cannot draw as text, for the reader's fonts."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.draw = MethodType(_draw_outlines_or_text, text)


@contextmanager
def without_warnings_about_missing_characters() -> Iterator[None]:
    """Ignore matplotlib's warnings about characters that its font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def _draw_outlines_or_text(text: Any, renderer: Any) -> None:
    """Draw a text object of matplotlib as outlines, or as text if the font lacks one of its characters."""
    import matplotlib

    # This is decided while drawing, because the labels of ticks are set only then.
    if is_drawable(text.get_text()):
        type(text).draw(text, renderer)
        return
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        type(text).draw(text, renderer)


@cache
def _characters() -> frozenset[int]:
    """Return the code points of the characters in the font."""
    from matplotlib import font_manager

    path = font_manager.findfont(FONT)
    return frozenset(font_manager.get_font(path).get_charmap())
