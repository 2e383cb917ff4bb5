"""Render a diagram as SVG, PNG or PDF bytes, and embed matplotlib's SVG in an HTML page."""

from __future__ import annotations

import importlib
import io
import re
from collections import Counter
from collections.abc import Callable
from html import escape
from typing import Any

from trueodds.core.errors import InputError, install_command

SAVED_DPI = 200.0  # default resolution of a saved picture

_TEXT_BEFORE_SVG = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)  # XML declaration, and a DOCTYPE that points to the network
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)  # addresses of vocabularies, of no use in a page
_COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)  # each text once more
_STYLE_ELEMENT = re.compile(
    r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL
)  # `*{…}` would restyle the whole page
_SVG_TAG = re.compile(r"<svg\b([^>]*)>")
_ID_ATTRIBUTE = re.compile(r'\bid="([^"]*)"')
_ID_OR_REFERENCE = re.compile(r'\b(id="|href="#|url\(#)')


def embed_svg(matplotlib_svg: str, prefix: str, description: str) -> str:
    """Return matplotlib's SVG as one element with prefixed ids and an alternative text, without style or metadata.

    >>> svg = embed_svg('<?xml?><svg width="9pt"><g id="a"/><use xlink:href="#a"/></svg>', "x", "A < B")
    >>> start, content = svg.split(' style="stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto">')
    >>> start
    '<svg width="9pt" role="img" aria-label="A &lt; B"'
    >>> content
    '<title>A &lt; B</title><g id="x-a"/><use xlink:href="#x-a"/></svg>'
    """
    body = _STYLE_ELEMENT.sub("", _METADATA.sub("", _COMMENT.sub("", _TEXT_BEFORE_SVG.sub("", matplotlib_svg))))
    body = _ID_OR_REFERENCE.sub(lambda match: f"{match[1]}{prefix}-", body)
    counts: Counter[str] = Counter()

    def number_repeated_id(match: re.Match[str]) -> str:
        """Number the later uses of an id, so that every id is unique."""
        # Texts of one kind share an id, which must be unique within a page.
        counts[match[1]] += 1
        return match[0] if counts[match[1]] == 1 else f'id="{match[1]}-{counts[match[1]]}"'

    body = _ID_ATTRIBUTE.sub(number_repeated_id, body)
    # The style sheet's two declarations, for this picture only; both are inherited.
    style = "stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto"
    text = escape(description)
    return _SVG_TAG.sub(
        lambda match: f'<svg{match[1]} role="img" aria-label="{text}" style="{style}"><title>{text}</title>', body, 1
    )


def import_matplotlib() -> Any:
    """Import matplotlib, or raise TO701 where it is not installed."""
    try:
        return importlib.import_module("matplotlib")
    except ImportError:
        raise InputError("TO701", "Drawing needs matplotlib.", "no matplotlib", install_command("report")) from None


def render(draw: Callable[[], Any], file_format: str, dpi: float) -> bytes:
    """Draw a new figure and return the bytes of an SVG, PNG or PDF file without a time stamp."""
    # A local context: the user's matplotlib style must not change what a report looks like.
    rc_settings = {
        "svg.hashsalt": "trueodds",
        "svg.fonttype": "path",
        "font.family": ["DejaVu Sans"],
        "font.size": 10.0,
        "axes.unicode_minus": True,
        "text.usetex": False,
        "text.color": "black",
    }
    metadata_by_format = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
    out = io.BytesIO()
    with import_matplotlib().rc_context(rc_settings):
        draw().savefig(out, format=file_format, dpi=dpi, metadata=metadata_by_format[file_format], facecolor="white")
    return out.getvalue()
