"""Embed matplotlib's SVG output in an HTML page, with unique ids and an alternative text."""

from __future__ import annotations

import re
from collections import Counter
from html import escape

_HEAD = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)  # XML declaration, and a DOCTYPE that points to the network
_META = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)  # addresses of vocabularies, never read here
_COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)  # each text once more
_STYLE = re.compile(r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)  # `*{…}` would restyle the whole page
_ROOT = re.compile(r"<svg\b([^>]*)>")
_ID = re.compile(r'\bid="([^"]*)"')
_IDS = re.compile(r'\b(id="|href="#|url\(#)')


def embed_svg(raw: str, prefix: str, description: str) -> str:
    """Matplotlib's SVG as one element: ids prefixed, no style sheet, no metadata, with a text for those who cannot see.

    >>> embed_svg('<?xml?><svg width="9pt"><g id="a"/><use xlink:href="#a"/></svg>', "x", "A < B")
    '<svg width="9pt" role="img" aria-label="A &lt; B" style="stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto"><title>A &lt; B</title><g id="x-a"/><use xlink:href="#x-a"/></svg>'
    """
    body = _STYLE.sub("", _META.sub("", _COMMENT.sub("", _HEAD.sub("", raw))))
    body = _IDS.sub(lambda match: f"{match[1]}{prefix}-", body)
    counts: Counter[str] = Counter()

    def once(match: re.Match[str]) -> str:
        # Texts of one kind have one name, and a page no id twice.
        counts[match[1]] += 1
        return match[0] if counts[match[1]] == 1 else f'id="{match[1]}-{counts[match[1]]}"'

    body = _ID.sub(once, body)
    # What the dropped style sheet said, for this picture only: both are inherited.
    style = "stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto"
    text = escape(description)
    return _ROOT.sub(
        lambda match: f'<svg{match[1]} role="img" aria-label="{text}" style="{style}"><title>{text}</title>', body, 1
    )
