"""Collects the diagrams that a block of a gallery example creates."""

from __future__ import annotations

from typing import Any

from trueodds.diagrams.base import Diagram

DOTS_PER_INCH = 130


def scrape_diagrams(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every new diagram of the variables of an example as a picture, and return the text that shows them."""
    from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

    variables = block_vars["example_globals"]
    shown = variables.setdefault("__shown_diagrams__", [])
    paths = []
    for value in list(variables.values()):
        if isinstance(value, Diagram) and not any(value is other for other in shown):
            shown.append(value)
            path = next(block_vars["image_path_iterator"])
            value.draw().savefig(path, dpi=DOTS_PER_INCH, facecolor="white")
            paths.append(path)
    own = figure_rst(paths, gallery_conf["src_dir"]) if paths else ""
    return own + str(matplotlib_scraper(block, block_vars, gallery_conf))
