"""Correct the HTML that Sphinx, its theme and its gallery write, so that screen readers and keyboards can use it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

CORRECTIONS = (
    # A list of citations must have items, and the role of a citation is deprecated.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    # The arrow that unfolds a part of the navigation has no name.
    (re.compile(r'<summary>(?=<span class="toctree-toggle")'), '<summary aria-label="Show the pages below">'),
    # The text of a link to an example is hidden; its title is another element.
    (
        re.compile(
            r'<a (?=class="reference internal" href="[^"]*"><span class="doc">([^<]+)</span></a></p>\s*'
            r'<div class="sphx-glr-thumbnail-title">)'
        ),
        r'<a aria-label="\1" ',
    ),
    # The corner of a table is no heading.
    (re.compile(r'<th class="head"><p></p></th>'), "<td></td>"),
)


def correct_page(page: str) -> str:
    """Return the HTML of a page with all corrections. A corrected page does not change.

    >>> page = correct_page('<div role="list"><div role="doc-biblioentry">')
    >>> page
    '<div role="list"><div role="listitem">'
    >>> correct_page(page) == page
    True
    """
    for pattern, correction in CORRECTIONS:
        page = pattern.sub(correction, page)
    return page


def correct_site(app: Any, exception: Exception | None) -> None:
    """Correct the pages that were built."""
    if exception is not None or app.builder.format != "html":
        return
    for file in Path(app.outdir).rglob("*.html"):
        page = file.read_text(encoding="utf-8")
        if (corrected := correct_page(page)) != page:
            file.write_text(corrected, encoding="utf-8")
