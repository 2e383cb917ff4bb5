"""Arrangement of the panels of one diagram in a figure: number of columns, margins, and room for the header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueodds.diagrams._style.styling import DEFAULT_FONT_SIZE, POINTS_PER_INCH
from trueodds.diagrams._style.title_and_legend import Header, fit_headers, fit_legend

if TYPE_CHECKING:
    from trueodds.diagrams.diagram_content import DiagramContent

FULL_MARGIN_WIDTH = 3.6  # inches of width from which on margins have their full size
WIDE_FIGURE_WIDTH = 6.4  # inches of a figure with three or more columns of panels
HEADER_GAP = 0.08  # inches between the header and the panels of a grid
LEGEND_GAP = 0.04  # the same for a legend in given axes

# Inches around and between the panels of a grid.
LEFT_MARGIN, RIGHT_MARGIN, BOTTOM_MARGIN, PANEL_GAP_X, PANEL_GAP_Y, PANEL_HEIGHT = 0.78, 0.22, 0.5, 0.22, 0.27, 1.32
MIN_PANEL_SIZE = (0.6, 0.4)  # inches of a panel in given axes: smaller ones are illegible
MAX_SQUARE_PANEL_HEIGHT = 1.7  # largest height in inches of a panel with equal units
MAX_SQUARE_PANEL_HEIGHT_OF_TWO_ROWS = 1.3 * MAX_SQUARE_PANEL_HEIGHT  # two rows of such panels still fit on a page
BOTTOM_MARGIN_WITHOUT_AXES = 0.6 * BOTTOM_MARGIN  # inches for the label below panels without tick labels
MIN_MARGIN_SCALE, MIN_ROW_GAP_SCALE = 0.7, 0.8  # smallest scale of margins, and of gaps for the titles of panels
FONT_SIZES_OF_NARROW_GRIDS = ((2.6, 7.0), (4.5, 8.0))  # largest width of a grid in inches, and its type size in points
AMPLE_SIZE_RATIO = 1.5  # multiple of MIN_PANEL_SIZE beyond which the usual number of columns beats larger panels


@dataclass(frozen=True)
class PanelGrid:
    """Number of columns of panels, and the inches around and between the panels."""

    n_columns: int
    left: float  # margin
    right: float  # margin
    bottom: float  # margin
    gap_x: float  # between columns
    gap_y: float  # between rows

    @classmethod
    def for_width(cls, width: float, n_columns: int, *, hides_axes: bool) -> PanelGrid:
        """Choose the margins for a figure width; panels that hide their axes need no room for tick labels."""
        scale = margin_scale(width)
        left, bottom = (LEFT_MARGIN * scale, BOTTOM_MARGIN * scale)
        if hides_axes:
            left, bottom = RIGHT_MARGIN, BOTTOM_MARGIN_WITHOUT_AXES
        return cls(
            n_columns=n_columns,
            left=left,
            right=RIGHT_MARGIN * scale,
            bottom=bottom,
            gap_x=PANEL_GAP_X * scale,
            gap_y=PANEL_GAP_Y * max(scale, MIN_ROW_GAP_SCALE),
        )

    def panel_size(self, width: float, height: float, n_panels: int) -> tuple[float, float]:
        """Width and height of each of `n_panels` panels that fill this width and height, with their margins."""
        n_rows = -(-n_panels // self.n_columns)
        panel_width = (width - self.left - self.right - (self.n_columns - 1) * self.gap_x) / self.n_columns
        return panel_width, (height - self.bottom) / n_rows - self.gap_y


@dataclass(frozen=True)
class GridLayout:
    """Arrangement of a grid of panels in a figure or in given axes; lengths are in inches."""

    grid: PanelGrid
    header: Header
    width: float  # of the figure or the given axes
    height: float
    top: float  # height of everything above the panels
    font_size: float  # points of ordinary text

    def panel_rectangle(self, panel: int, n_panels: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height in inches of panel number `panel` of `n_panels`."""
        width, height = self.panel_size(n_panels)
        row, column = divmod(panel, self.grid.n_columns)
        left = self.grid.left + column * (width + self.grid.gap_x)
        bottom = self.height - self.top - (row + 1) * (height + self.grid.gap_y)
        return left, bottom, width, height

    def panel_size(self, n_panels: int) -> tuple[float, float]:
        """Width and height in inches of each of `n_panels` panels."""
        return self.grid.panel_size(self.width, self.height - self.top, n_panels)


def layout_for_usual_panels(
    diagram: DiagramContent, n_panels: int, summary: str, width: float | None = None
) -> GridLayout:
    """Choose the height of a new figure, and its width unless it is given, so that its panels have the usual size."""
    n_columns = _usual_column_count(n_panels, has_equal_units=diagram.has_equal_units)
    if width is None:
        width = max(diagram.figure_size[0], WIDE_FIGURE_WIDTH) if n_columns > 2 else diagram.figure_size[0]
    elif width <= FONT_SIZES_OF_NARROW_GRIDS[-1][0]:
        n_columns = min(n_columns, 2)
    font_size = grid_font_size(width)
    grid = PanelGrid.for_width(width, n_columns, hides_axes=diagram.hides_axes)
    header = fit_headers(diagram, summary, POINTS_PER_INCH * (width - grid.left - grid.right), font_size)[0]
    top = header.height / POINTS_PER_INCH + HEADER_GAP
    n_rows = -(-n_panels // n_columns)
    panel_height = PANEL_HEIGHT
    if diagram.aspect_ratio:
        panel_height = min(
            diagram.aspect_ratio * grid.panel_size(width, 0, n_panels)[0],
            MAX_SQUARE_PANEL_HEIGHT if n_rows > 2 else MAX_SQUARE_PANEL_HEIGHT_OF_TWO_ROWS,
        )
    height = top + n_rows * (panel_height + grid.gap_y) + grid.bottom
    return GridLayout(grid, header, width=width, height=height, top=top, font_size=font_size)


def layout_for_size(
    diagram: DiagramContent, n_panels: int, width: float, height: float, summary: str | None
) -> GridLayout | None:
    """Fit a grid into a given size; None if every panel would be illegible.

    If `summary` is None, as in given axes, only the legend stands above the panels.
    """
    font_size = grid_font_size(width)
    arrangement = _fit_panel_grid(diagram, n_panels, width, height, font_size, summary)
    if arrangement is None:
        return None
    grid, header = arrangement
    top = _height_above_panels(header, summary)
    return GridLayout(grid, header, width=width, height=height, top=top, font_size=font_size)


def _usual_column_count(n_panels: int, *, has_equal_units: bool) -> int:
    """Number of columns of panels in a new figure: panels with equal units along x and y are narrower than others."""
    if n_panels in (2, 4):
        return 2
    return 4 if has_equal_units and n_panels > 6 else 3


def margin_scale(width: float) -> float:
    """Size of margins relative to the usual ones: 1 from `FULL_MARGIN_WIDTH` inches on, less in narrower figures."""
    return min(max(width / FULL_MARGIN_WIDTH, MIN_MARGIN_SCALE), 1.0)


def grid_font_size(width: float) -> float:
    """Points of ordinary text in a grid of this width in inches."""
    return next((size for max_width, size in FONT_SIZES_OF_NARROW_GRIDS if width <= max_width), DEFAULT_FONT_SIZE)


def _fit_panel_grid(
    diagram: DiagramContent, n_panels: int, width: float, height: float, font_size: float, summary: str | None
) -> tuple[PanelGrid, Header] | None:
    """The grid with the largest panels for a given height; None if every panel would be illegible.

    If `summary` is None, as in given axes, only the legend stands above the panels.
    """
    usual_count = _usual_column_count(n_panels, has_equal_units=False)
    arrangement: tuple[PanelGrid, Header] | None = None
    max_size_ratio = 0.0
    other_counts = (n_columns for n_columns in (2, 1, 3, 4, 5, 6) if n_columns != usual_count and n_columns <= n_panels)
    for n_columns in (usual_count, *other_counts):
        grid = PanelGrid.for_width(width, n_columns, hides_axes=diagram.hides_axes)
        max_width = POINTS_PER_INCH * (width - grid.left - grid.right)
        if max_width <= 0:
            continue
        headers = (
            [fit_legend(diagram, max_width, font_size)]
            if summary is None
            else fit_headers(diagram, summary, max_width, font_size)
        )
        for header in headers:
            panel_size = grid.panel_size(width, height - _height_above_panels(header, summary), n_panels)
            size_ratio = min(size / minimum for size, minimum in zip(panel_size, MIN_PANEL_SIZE, strict=True))
            if size_ratio >= 1 and min(size_ratio, AMPLE_SIZE_RATIO) > max_size_ratio:
                arrangement, max_size_ratio = (grid, header), min(size_ratio, AMPLE_SIZE_RATIO)
    return arrangement


def _height_above_panels(header: Header, summary: str | None) -> float:
    """Inches above the panels: those of the legend if there is no summary, else of the whole header."""
    return (
        header.legend_height / POINTS_PER_INCH + LEGEND_GAP
        if summary is None
        else header.height / POINTS_PER_INCH + HEADER_GAP
    )
