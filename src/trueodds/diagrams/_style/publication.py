"""Sizes of pictures for papers and slides: type of the right size at the width that the picture has in print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.draw_diagram import (
    BOTTOM_MARGIN,
    LEFT_MARGIN,
    OUTER_MARGIN,
    SIDE_HEADER_SHARE,
    header_width,
    layout_for_usual_panels,
    margin_scale,
)
from trueodds.diagrams._style.styling import MAX_PANELS, POINTS_PER_INCH
from trueodds.diagrams._style.title_and_legend import fit_headers

if TYPE_CHECKING:
    from trueodds.diagrams.diagram_content import DiagramContent

WIDTH_LIMITS = 1.5, 50.0  # inches
DESIGN_WIDTH_LIMITS = 1.5, 60.0  # inches of a figure before it is enlarged or reduced
USUAL_ASPECT_RATIO = 0.66  # height of axes relative to their width, of diagrams whose axes have different units
MAX_HEIGHT_RATIO = 1.5  # largest height of a figure relative to its width
_N_BISECTIONS = 30  # which determine a width up to 60 / 2³⁰ inches
MAX_VECTOR_MARKS = 20_000  # a collection with more marks is saved as an image inside a vector picture


@dataclass(frozen=True)
class PublicationStyle:
    """Widths, type size and resolution of pictures for one medium.

    Lengths are in inches and type sizes in points, as printed.
    """

    widths: dict[str, float]  # by name; the first one is the default
    font_size: float | None  # of ordinary text; None keeps the usual one of a figure of this width
    dpi: float
    max_height: float
    has_title: bool
    aspect_ratio: float | None = None  # height of a picture of the default width relative to it; None: as it needs

    def width_in_inches(self, width: float | str | None) -> float:
        """Return the width in inches; the default is the first named one."""
        if width is None:
            return next(iter(self.widths.values()))
        if isinstance(width, str) and width in self.widths:
            return self.widths[width]
        is_number = isinstance(width, (int, float, np.number)) and not isinstance(width, bool)
        if not is_number or not WIDTH_LIMITS[0] <= float(width) <= WIDTH_LIMITS[1]:
            low, high = WIDTH_LIMITS
            names = " or ".join(map(repr, self.widths))
            problem = f"width must be {names}, or a number of inches from {low:g} to {high:g}."
            raise InputError("TO203", problem, describe(width), "For instance width=3.3.")
        return float(width)


# Many journals have columns of 3.3 to 3.5 inches, and pages of 6.8 to 7.2. Slides are 10 inches wide and 5.6 high.
PUBLICATION_STYLES = {
    "paper": PublicationStyle(
        widths={"column": 3.3, "page": 6.8}, font_size=8.0, dpi=300.0, max_height=9.0, has_title=False
    ),
    "slide": PublicationStyle(
        widths={"page": 10.0, "column": 4.8}, font_size=18.0, dpi=200.0, max_height=5.5, has_title=True,
        aspect_ratio=9 / 16,
    ),
}  # fmt: skip
# Only the width is given: the usual type, in a figure of this width.
_WIDTH_ONLY = PublicationStyle(
    widths={"column": 3.3, "page": 6.8}, font_size=None, dpi=200.0, max_height=50.0, has_title=True
)


@dataclass(frozen=True)
class PublicationSize:
    """Size in inches of the figure to draw, and the factor by which it is then enlarged, type included."""

    figsize: tuple[float, float]
    scale: float
    style: PublicationStyle


def choose_publication_size(
    style: str | None, width: Any, figure_height: Callable[[float], float], font_size: Callable[..., float]
) -> PublicationSize:
    """Choose the size of a figure that has the type of a style when it is printed with a width.

    `figure_height(width)` is the height of a figure of this width, and `font_size(width, height)` the size of its
    ordinary text, which falls as the width grows; lengths in inches before the figure is enlarged.
    """
    chosen = _publication_style(style)
    width_as_printed = chosen.width_in_inches(width)

    def design_height(design_width: float) -> float:
        """Height of the figure before it is enlarged."""
        if fills_page(style, width):
            return design_width * (chosen.aspect_ratio or 1.0)
        max_height = min(MAX_HEIGHT_RATIO * design_width, chosen.max_height * design_width / width_as_printed)
        return min(figure_height(design_width), max_height)

    design_width = width_as_printed
    if chosen.font_size is not None:
        low, high = DESIGN_WIDTH_LIMITS
        for _ in range(_N_BISECTIONS):  # wider figures have smaller type when they are printed with the same width
            design_width = (low + high) / 2
            size = font_size(design_width, design_height(design_width)) * width_as_printed / design_width
            low, high = (design_width, high) if size > chosen.font_size else (low, design_width)
    return PublicationSize((design_width, design_height(design_width)), width_as_printed / design_width, chosen)


def fills_page(style: str | None, width: float | str | None) -> bool:
    """Return whether a figure has the shape of a whole page of its style, a slide, instead of the height it needs.

    >>> fills_page("slide", None), fills_page("slide", "column"), fills_page("paper", None)
    (True, False, False)
    """
    chosen = _publication_style(style)
    return chosen.aspect_ratio is not None and chosen.width_in_inches(width) == chosen.width_in_inches(None)


def printed_width(style: str | None, width: float | str | None) -> float:
    """Return the width in inches of a figure as printed."""
    return _publication_style(style).width_in_inches(width)


def has_title(style: str | None) -> bool:
    """Return whether figures of a style have a title by default."""
    return _publication_style(style).has_title


def _publication_style(style: str | None) -> PublicationStyle:
    """Return the style of this name, or raise TO203; the usual type for None."""
    if style is not None and style not in PUBLICATION_STYLES:
        fix = f"Use {' or '.join(map(repr, PUBLICATION_STYLES))}."
        raise InputError("TO203", "Unknown style of pictures.", describe(style), fix)
    return _WIDTH_ONLY if style is None else PUBLICATION_STYLES[style]


def size_of_diagram(diagram: DiagramContent, style: str | None, width: Any) -> PublicationSize:
    """Choose the size of a diagram; the header of a single panel is at its left if it fills a slide."""
    n_panels = min(len(diagram.panels["view"]), MAX_PANELS)
    without_size = replace(diagram, presentation=replace(diagram.presentation, figsize=None))
    axes_share = 1 - SIDE_HEADER_SHARE if fills_page(style, width) else 1.0

    def figure_height(design_width: float) -> float:
        """Height at which the panels have their usual shape."""
        if n_panels > 1:
            return layout_for_usual_panels(without_size, n_panels, without_size.summary(), design_width).height
        axes_width = design_width - LEFT_MARGIN * margin_scale(design_width) - OUTER_MARGIN
        size = styling.font_size_for_width(axes_width)
        header = fit_headers(without_size, without_size.summary(), header_width(diagram, design_width, size), size)[0]
        axes_height = axes_width * (diagram.aspect_ratio or USUAL_ASPECT_RATIO)
        margins = BOTTOM_MARGIN * margin_scale(design_width) + OUTER_MARGIN
        return axes_height + margins + header.height / POINTS_PER_INCH

    def font_size(design_width: float, height: float) -> float:
        """Type size of ordinary text, which depends on the width of the axes."""
        scale = margin_scale(design_width)
        axes_width = axes_share * design_width - LEFT_MARGIN * scale - OUTER_MARGIN
        if n_panels > 1:
            layout = layout_for_usual_panels(without_size, n_panels, "", design_width)
            axes_width = layout.panel_size(n_panels)[0]
        elif diagram.aspect_ratio and axes_share < 1:
            axes_width = min(axes_width, (height - BOTTOM_MARGIN * scale - OUTER_MARGIN) / diagram.aspect_ratio)
        elif diagram.aspect_ratio:  # a low figure has narrower axes
            spare_height = figure_height(design_width) - height
            axes_width = min(axes_width, axes_width - spare_height / diagram.aspect_ratio)
        return styling.font_size_for_width(axes_width)

    return choose_publication_size(style, width, figure_height, font_size)


def rasterize_large_collections(figure: Any) -> None:
    """Draw collections with very many marks as images, so that vector files stay small; axes and text stay vectors."""
    from matplotlib.collections import Collection

    for artist in figure.findobj(Collection):
        n_marks = max(len(artist.get_offsets()), len(artist.get_paths()))
        if n_marks > MAX_VECTOR_MARKS:
            artist.set_rasterized(True)
