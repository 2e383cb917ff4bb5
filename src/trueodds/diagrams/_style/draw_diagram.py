"""Draw a diagram in a new figure or in given matplotlib axes: the grid of its panels, title, legend and labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trueodds.core.errors import InputError, describe
from trueodds.diagrams._style import styling, title_and_legend
from trueodds.diagrams._style.formatting import capitalize_first
from trueodds.diagrams._style.styling import DEFAULT_FONT_SIZE, MAX_PANELS, POINTS_PER_INCH
from trueodds.diagrams._style.title_and_legend import MIN_FONT_SIZE, Header, fit_headers, fit_legend, fit_side_header

if TYPE_CHECKING:
    from trueodds.diagrams.diagram_content import DiagramContent

DIAGRAM_MARK = "_trueodds_drawn"  # attribute of given axes: one of the marks, which is gone when they are cleared
MAX_LEGEND_HEIGHT = 0.25  # largest share of the height of given axes for a legend above their parts
MAX_NARROW_WIDTH = 2.9  # inches: axes of this width or less get short legend labels
MAX_LABEL_OVERHANG = 1.3  # largest length of an axis label relative to its axis; tick labels leave room at both ends
SIDE_HEADER_SHARE = 0.42  # share of the width of a slide for title, finding and legend at the left of a single panel
MAX_LABEL_SHARE = 0.45  # largest share of the width of a figure for labels at its left
OUTER_MARGIN = 0.1  # inches right of and above the axes of a single panel
LEGEND_CLEARANCE = 6  # points between a legend above the parts of given axes and these parts
LABEL_DISTANCE = 0.13  # inches from the edge to the middle of the labels that the panels of a grid share
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


def check_axes(ax: Any, name: str, figsize: Any, dpi: Any) -> None:
    """Raise TO203 unless `ax` is None, or one Axes without a diagram and without `figsize` or `dpi` beside it."""
    if ax is None:
        return
    if figsize is not None or dpi is not None:
        got = f"ax and {'dpi' if figsize is None else 'figsize'}"
        fix = "Leave out ax, or set them where the figure is made, as in plt.subplots(⟨figsize=(5, 4)⟩)."
        raise InputError("TO203", "figsize and dpi apply only to a figure of its own.", got, fix)
    if not hasattr(ax, "inset_axes"):
        raise InputError(
            "TO203", "ax must be one matplotlib Axes.", describe(ax), "Pass one of them, such as ax=axes[0]."
        )
    if getattr(ax, DIAGRAM_MARK, None) in [*ax.collections, *ax.lines, *ax.child_axes]:
        fix = "Use other axes, or draw several models with the diagram comparison."
        raise InputError("TO203", "These axes already hold a diagram.", f"a second one, {name}", fix)


def draw_diagram(diagram: DiagramContent, ax: Any) -> Any:
    """Draw one panel or a grid, in `ax` or in a new Figure, and return the axes or the figure."""
    width = _figure_size(diagram)[0] - LEFT_MARGIN if ax is None else styling.size_in_inches(ax)[0]
    if width <= MAX_NARROW_WIDTH:
        diagram = diagram.with_short_labels()
    n_panels = min(len(diagram.panels["view"]), MAX_PANELS)
    target = _draw_single_panel(diagram, ax) if n_panels == 1 else _draw_panel_grid(diagram, ax, n_panels)
    if ax is not None:
        setattr(ax, DIAGRAM_MARK, next(iter([*ax.collections, *ax.lines, *ax.child_axes]), None))
    return target


def _figure_size(diagram: DiagramContent) -> tuple[float, float]:
    """Width and height in inches of a new figure with one panel."""
    return diagram.presentation.figsize or diagram.figure_size


def _draw_single_panel(diagram: DiagramContent, ax: Any) -> Any:
    """Draw the first view alone, in `ax` or in a new figure."""
    if ax is not None:
        _add_title_and_legend(diagram, ax, _draw_panel_with_labels(diagram, ax))
        return ax
    width, height = _figure_size(diagram)
    figure = new_figure(diagram.presentation.dpi, width, height, layout="constrained")
    ax = figure.subplots(gridspec_kw=_estimate_axes_position(diagram))
    font_size = _draw_panel_with_labels(diagram, ax)
    if diagram.has_equal_units:
        ax.set_aspect("equal", adjustable="box", anchor="C" if diagram.presentation.side_header else "NW")
    if diagram.presentation.side_header:
        max_width = POINTS_PER_INCH * (SIDE_HEADER_SHARE * width - 2 * OUTER_MARGIN)
        header = fit_side_header(diagram, diagram.summary(), max_width, font_size)
        corner = OUTER_MARGIN / width, 1 - OUTER_MARGIN / height - header.height / POINTS_PER_INCH / height
        header.draw(figure, figure.transFigure, corner)
        figure.get_layout_engine().set(rect=(SIDE_HEADER_SHARE, 0, 1 - SIDE_HEADER_SHARE, 1))
        return figure
    header = fit_headers(diagram, diagram.summary(), header_width(diagram, width, font_size), font_size)[0]
    header.draw(figure, ax.transAxes, (0.0, 1.0))
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - header.height / POINTS_PER_INCH / height))
    return figure


def _draw_panel_with_labels(diagram: DiagramContent, ax: Any) -> float:
    """Paint the first panel, label the axes, and return the type size of ordinary text in points."""
    diagram.draw_panel(ax, 0)
    title_and_legend.attach_legend_entries(ax, diagram.legend())
    font_size = styling.font_size(ax)
    x_label, y_label = diagram.axis_labels()
    style: dict[str, Any] = {"fontsize": font_size, "color": styling.TEXT_COLOR, "parse_math": False}
    # On a slide, the labels must not reach into the header, or beyond the figure.
    is_side = diagram.presentation.side_header
    fit, overhang = (styling.wrap_text, 1.0) if is_side else (styling.shorten_text, MAX_LABEL_OVERHANG)
    max_x_width, max_y_width = (POINTS_PER_INCH * overhang * side for side in styling.size_in_inches(ax))
    x_label, y_label = fit(x_label, max_x_width, font_size), fit(y_label, max_y_width, font_size)
    ax.set_xlabel(x_label, **style)
    ax.set_ylabel(y_label, **style)
    return font_size


def header_width(diagram: DiagramContent, width: float, font_size: float) -> float:
    """Points for the header above the axes in a figure of this width in inches, without the labels of the axes."""
    return POINTS_PER_INCH * (width - min(diagram.label_width * font_size / DEFAULT_FONT_SIZE, MAX_LABEL_SHARE * width))


def _estimate_axes_position(diagram: DiagramContent) -> dict[str, float]:
    """Estimate the position of the axes in a figure of given size, since the marks depend on the size of the axes."""
    if diagram.presentation.figsize is None:
        return {}
    width, height = diagram.presentation.figsize
    left, bottom = LEFT_MARGIN * margin_scale(width), BOTTOM_MARGIN * margin_scale(width)
    header_height = 0.0
    if diagram.presentation.side_header:
        left += SIDE_HEADER_SHARE * width
    else:
        font_size = styling.font_size_for_width(width - left)
        header = fit_headers(diagram, diagram.summary(), header_width(diagram, width, font_size), font_size)[0]
        header_height = header.height / POINTS_PER_INCH
    axes_width, axes_height = width - left - OUTER_MARGIN, height - bottom - header_height - OUTER_MARGIN
    if (ratio := diagram.aspect_ratio) > 0:
        axes_width, axes_height = min(axes_width, axes_height / ratio), min(axes_height, axes_width * ratio)
    return {
        "left": left / width,
        "right": (left + axes_width) / width,
        "bottom": bottom / height,
        "top": (bottom + axes_height) / height,
    }


def _add_title_and_legend(diagram: DiagramContent, ax: Any, font_size: float) -> None:
    """Add title and legend to given axes, which keep their position, size and limits."""
    for text in [text for text in ax.texts if text.get_gid() == styling.SIDE_TEXT_GID]:
        text.remove()  # there may be other axes beyond the right edge
    styling.align_outer_labels(ax)
    width, height = (POINTS_PER_INCH * side for side in styling.size_in_inches(ax))
    _set_title(ax, diagram.presentation.heading(diagram.caption()), width, font_size)
    is_requested = diagram.presentation.legend is True
    if diagram.presentation.legend is False or (ax.get_legend() is not None and not is_requested):
        return  # the caller's own legend stays
    header = Header(diagram, "", "", width - 2 * title_and_legend.LEGEND_PADDING * font_size, font_size)
    if not diagram.has_inset_axes:
        title_and_legend.place_legend(
            ax, header.at_decreasing_font_sizes(), diagram.strip_height, is_required=is_requested
        )
    elif (
        header.legend_entries
        and header.has_room_for_words
        and (is_requested or header.legend_height + LEGEND_CLEARANCE <= MAX_LEGEND_HEIGHT * height)
    ):
        _extend_for_legend(ax, (header.legend_height + LEGEND_CLEARANCE) / height)
        header.draw_legend(
            ax, loc="upper left", bbox_to_anchor=(0.0, 1.0), borderaxespad=title_and_legend.LEGEND_PADDING
        )


def _set_title(ax: Any, title: str, max_width: float, font_size: float) -> None:
    """Set the title of given axes, each line cut to `max_width` points."""
    # A class may be called "$x$": names must not be parsed as formulas.
    lines = [styling.shorten_text(line, max_width, font_size + 1) for line in title.split("\n")]
    ax.set_title("\n".join(lines), fontsize=font_size + 1, color=styling.TEXT_COLOR, parse_math=False)


def _extend_for_legend(ax: Any, share: float) -> None:
    """Extend the y axis upward to make room for a legend above parts placed in data coordinates."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, low + (high - low) / (1 - share))


def _draw_panel_grid(diagram: DiagramContent, ax: Any, n_panels: int) -> Any:
    summary, figsize = _grid_summary(diagram, n_panels), diagram.presentation.figsize
    if ax is None and figsize is None:
        layout = layout_for_usual_panels(diagram, n_panels, summary)
    else:
        width, height = figsize if ax is None and figsize is not None else styling.size_in_inches(ax)
        fitting_layout = layout_for_size(diagram, n_panels, width, height, summary if ax is None else None)
        if fitting_layout is None:
            return _draw_first_view(diagram, ax, grid_font_size(width))
        layout = fitting_layout
    if ax is None:
        target = new_figure(diagram.presentation.dpi, layout.width, layout.height)
        transform, add_axes = target.transFigure, target.add_axes
    else:
        target, transform, add_axes = ax, ax.transAxes, ax.inset_axes
        ax.set_axis_off()
        caption = f"{diagram.lens}, {diagram.view_order}: {diagram.panels['title'][0]}"
        _set_title(ax, diagram.presentation.heading(caption), POINTS_PER_INCH * layout.width, layout.font_size)
    sets_aspect = ax is None and figsize is None and diagram.has_equal_units
    first_panel = _draw_panels(diagram, layout, n_panels, add_axes, sets_aspect=sets_aspect)
    title_and_legend.attach_legend_entries(first_panel if ax is None else ax, diagram.legend())
    _write_common_axis_labels(diagram, layout, target, transform)
    left = layout.grid.left / layout.width
    if ax is None:
        layout.header.draw(target, transform, (left, 1 - layout.top / layout.height))
    else:
        layout.header.draw_legend(ax, loc="upper left", bbox_to_anchor=(left, 1.0), borderaxespad=0.0)
    return target


def _grid_summary(diagram: DiagramContent, n_panels: int) -> str:
    """The summary of the diagram, followed by which views are drawn."""
    n_views = len(diagram.panels["view"])
    order = f"{diagram.view_order} first."
    if n_views > n_panels:
        return f"{diagram.summary()} Shown: {n_panels} of {n_views} views, {order}"
    return f"{diagram.summary()} {capitalize_first(order)}"


def _draw_panels(
    diagram: DiagramContent, layout: GridLayout, n_panels: int, add_axes: Any, *, sets_aspect: bool
) -> Any:
    """Draw all panels, in axes that `add_axes` makes and that share their scales, and return the first."""
    shared: dict[str, Any] = {}
    for i in range(n_panels):
        left, bottom, width, height = layout.panel_rectangle(i, n_panels)
        panel = add_axes(
            (left / layout.width, bottom / layout.height, width / layout.width, height / layout.height), **shared
        )
        shared = shared or {"sharex": panel, "sharey": panel}
        diagram.draw_panel(panel, i)
        if sets_aspect:
            panel.set_aspect("equal", adjustable="box", anchor="NW")
        write_panel_title(
            panel, str(diagram.panels["title"][i]), str(diagram.panels["aside"][i]), POINTS_PER_INCH * width
        )
        n_columns = layout.grid.n_columns
        panel.tick_params(labelleft=i % n_columns == 0, labelbottom=i + n_columns >= n_panels)
    return shared["sharex"]


def _write_common_axis_labels(diagram: DiagramContent, layout: GridLayout, target: Any, transform: Any) -> None:
    """Write one label for the x axes and one for the y axes of all panels."""
    grid, width, height, font_size = layout.grid, layout.width, layout.height, layout.font_size
    style: dict[str, Any] = {
        "fontsize": font_size,
        "color": styling.TEXT_COLOR,
        "ha": "center",
        "va": "center",
        "transform": transform,
        "parse_math": False,
    }
    x_label, y_label = diagram.axis_labels()
    max_x_width, max_y_width = (
        POINTS_PER_INCH * (width - grid.right),
        POINTS_PER_INCH * (height - layout.top),
    )
    target.text(
        (grid.left + width - grid.right) / 2 / width,
        LABEL_DISTANCE / height,
        styling.shorten_text(x_label, max_x_width, font_size),
        **style,
    )
    middle = (height - layout.top + grid.bottom) / 2 / height
    # A single row of panels may be lower than the label is long.
    y_label, style["fontsize"] = fit_label(y_label, max_y_width, font_size)
    target.text(LABEL_DISTANCE / width, middle, y_label, rotation="vertical", **style)


def fit_label(text: str, max_width: float, size: float) -> tuple[str, float]:
    """Return a label and its type size, which is reduced, and the label then cut, until it has at most these points."""
    fitting_size = 0.98 * size * max_width / max(styling.text_width(text, size), 1.0)
    size = max(min(size, MIN_FONT_SIZE), min(size, fitting_size))
    return styling.shorten_text(text, max_width, size), size


def _draw_first_view(diagram: DiagramContent, ax: Any, font_size: float) -> Any:
    """Draw only the first view, and say so in the title."""
    n_views, view_title = len(diagram.panels["view"]), str(diagram.panels["title"][0])
    panels = {name: column[:1] for name, column in diagram.panels.items()}
    first_view = replace(diagram, panels=panels, table=diagram.rows(0))
    if first_view.presentation.title in (None, True):
        max_width = POINTS_PER_INCH * (
            _figure_size(diagram)[0] - LEFT_MARGIN if ax is None else styling.size_in_inches(ax)[0]
        )
        title = f"{view_title}: {diagram.view_order} of {n_views}"
        if styling.text_width(title, font_size + 1) > max_width:
            title = f"1 of {n_views}: {view_title}"
        first_view = first_view.present(title=title)
    return _draw_single_panel(first_view, ax)


def new_figure(dpi: float | None, width: float, height: float, **kwargs: Any) -> Any:
    """Make a figure of this size in inches that pyplot does not know."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, facecolor="white", **kwargs)
    FigureCanvasAgg(figure)
    return figure


def write_panel_title(panel: Any, title: str, aside: str, max_width: float) -> None:
    """Write the name of the view at the left, and its result at the right if it fits."""
    font_size = styling.font_size(panel)
    style: dict[str, Any] = {"fontsize": font_size + 0.5, "fontweight": "bold", "color": styling.TEXT_COLOR}
    # A class may be called "$x$": names must not be parsed as formulas.
    panel.set_title(
        styling.shorten_text(title, max_width, font_size + 0.5, "bold"), loc="left", pad=3, parse_math=False, **style
    )
    if styling.text_width(title, font_size + 0.5, "bold") + styling.text_width(aside, font_size - 0.8) + 8 <= max_width:
        panel.set_title(
            aside, loc="right", fontsize=font_size - 0.8, color=styling.MUTED_COLOR, pad=3, parse_math=False
        )


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
