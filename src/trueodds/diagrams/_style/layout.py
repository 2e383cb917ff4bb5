"""Layout of a diagram's title, legend and panels, in a new figure or in given matplotlib axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.diagrams._style import styling, title_and_legend
from trueodds.diagrams._style.title_and_legend import MIN_FONT_SIZE, Header, fit_headers, fit_legend
from trueodds.diagrams.diagram_content import DiagramContent

DIAGRAM_MARK = "_trueodds_drawn"  # attribute of given axes: one of the marks, which is gone when they are cleared
MAX_PANELS = 12  # more are illegible on a page
MAX_LEGEND_HEIGHT = 0.25  # largest share of the height of given axes for a legend above their parts
MAX_NARROW_WIDTH = 2.9  # inches: axes of this width or less get short legend labels
DEFAULT_FONT_SIZE = 9.5  # points of ordinary text in a figure of usual size
WIDE_FIGURE_WIDTH = 6.4  # inches of a figure with three or more columns of panels

# Inches around and between the panels of a grid.
LEFT_MARGIN, RIGHT_MARGIN, BOTTOM_MARGIN, PANEL_GAP_X, PANEL_GAP_Y, PANEL_HEIGHT = 0.78, 0.22, 0.5, 0.22, 0.27, 1.32
MIN_PANEL_SIZE = (0.6, 0.4)  # inches of a panel in given axes: smaller ones are illegible
MAX_SQUARE_PANEL_HEIGHT = 1.7  # largest height in inches of a panel with equal units
AMPLE_SIZE_RATIO = (
    1.5  # beyond this multiple of MIN_PANEL_SIZE the usual number of columns matters more than larger panels
)


def check_axes(ax: Any, name: str, figsize: Any, dpi: Any) -> None:
    """Raise TO203 unless `ax` is None, or one Axes without a diagram and without `figsize` or `dpi` beside it."""
    if ax is None:
        return
    if figsize is not None or dpi is not None:
        got = f"ax and {'dpi' if figsize is None else 'figsize'}"
        fix = "Leave out ax, or set them where the figure is made, as in plt.subplots(figsize=(5, 4))."
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
    count = min(len(diagram.panels["view"]), MAX_PANELS)
    target = _draw_single(diagram, ax) if count == 1 else _draw_grid(diagram, ax, count)
    if ax is not None:
        setattr(ax, DIAGRAM_MARK, next(iter([*ax.collections, *ax.lines, *ax.child_axes]), None))
    return target


def _figure_size(diagram: DiagramContent) -> tuple[float, float]:
    return diagram.presentation.figsize or diagram.figure_size


def _draw_single(diagram: DiagramContent, ax: Any) -> Any:
    if ax is not None:
        _add_title_and_legend(diagram, ax, _draw_panel_with_labels(diagram, ax))
        return ax
    width, height = _figure_size(diagram)
    figure = _new_figure(diagram, width, height, layout="constrained")
    ax = figure.subplots(gridspec_kw=_estimate_axes_position(diagram))
    size = _draw_panel_with_labels(diagram, ax)
    if diagram.has_equal_units:
        ax.set_aspect("equal", adjustable="box", anchor="NW")
    head = fit_headers(diagram, diagram.summary, _header_width(width, size), size)[0]
    head.draw(figure, ax.transAxes, (0.0, 1.0))
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - head.height / 72 / height))
    return figure


def _draw_panel_with_labels(diagram: DiagramContent, ax: Any) -> float:
    """Paint the first panel, label the axes, and return the type size of ordinary text in points."""
    _paint_panel(diagram, ax, 0)
    title_and_legend.attach_legend_entries(ax, diagram.legend())
    size = styling.font_size(ax)
    x, y = diagram.axis_labels()
    # A label may be long; the ticks leave room for a few letters beyond the axes.
    across, up = (72 * 1.3 * side for side in styling.size_in_inches(ax))
    ax.set_xlabel(styling.shorten_text(x, across, size), fontsize=size, color=styling.TEXT_COLOR, parse_math=False)
    ax.set_ylabel(styling.shorten_text(y, up, size), fontsize=size, color=styling.TEXT_COLOR, parse_math=False)
    return size


def _header_width(width: float, size: float) -> float:
    """Width in points for the header above the axes, without the room of tick and axis labels."""
    return 72 * (width - size / DEFAULT_FONT_SIZE)


def _estimate_axes_position(diagram: DiagramContent) -> dict[str, float]:
    """Estimate the position of the axes in a figure of given size, since the marks depend on the size of the axes."""
    if diagram.presentation.figsize is None:
        return {}
    width, height = diagram.presentation.figsize
    part = min(max(width / 3.6, 0.7), 1.0)
    left, bottom = LEFT_MARGIN * part, BOTTOM_MARGIN * part
    size = float(np.interp(width - left, *styling.FONT_SIZE_BY_WIDTH))
    head = fit_headers(diagram, diagram.summary, _header_width(width, size), size)[0]
    wide, high = width - left - 0.1, height - bottom - head.height / 72 - 0.1
    if diagram.aspect_ratio:
        wide, high = min(wide, high / diagram.aspect_ratio), min(high, wide * diagram.aspect_ratio)
    ends = {"left": left / width, "right": (left + wide) / width}
    return ends | {"bottom": bottom / height, "top": (bottom + high) / height}


def _add_title_and_legend(diagram: DiagramContent, ax: Any, size: float) -> None:
    """Add title and legend to given axes, which keep their position, size and limits."""
    for text in [text for text in ax.texts if text.get_gid() == "side"]:
        text.remove()  # there may be other axes beyond the right edge
    styling.align_outer_labels(ax)
    width, height = (72 * side for side in styling.size_in_inches(ax))
    _set_title(ax, diagram.presentation.heading(diagram.caption()), width, size)
    always = diagram.presentation.legend is True
    if diagram.presentation.legend is False or (ax.get_legend() is not None and not always):
        return  # the caller's own legend stays
    head = Header(diagram, "", "", width - 2 * title_and_legend.LEGEND_PADDING * size, size)
    if not diagram.has_inset_axes:
        title_and_legend.place_legend(ax, head.at_decreasing_font_sizes(), diagram.strip_height, always=always)
    elif (
        head.legend_entries
        and head.has_room_for_words
        and (always or head.legend_height + 6 <= MAX_LEGEND_HEIGHT * height)
    ):
        _extend_for_legend(ax, (head.legend_height + 6) / height)
        head.draw_legend(ax, loc="upper left", bbox_to_anchor=(0.0, 1.0), borderaxespad=title_and_legend.LEGEND_PADDING)


def _paint_panel(diagram: DiagramContent, ax: Any, panel: int) -> None:
    """Paint a panel and hide the labels of its marks from `ax.legend()`."""
    before = set(ax.get_children())
    diagram.draw_panel(ax, panel)
    for artist in set(ax.get_children()) - before - set(ax.child_axes):
        if (label := str(artist.get_label())) and not label.startswith("_"):
            artist.set_label(f"_{label}")


def _set_title(ax: Any, title: str, max_width: float, size: float) -> None:
    # A class may be called "$x$": names must not be parsed as formulas.
    lines = [styling.shorten_text(line, max_width, size + 1) for line in title.split("\n")]
    ax.set_title("\n".join(lines), fontsize=size + 1, color=styling.TEXT_COLOR, parse_math=False)


def _extend_for_legend(ax: Any, share: float) -> None:
    """Extend the y axis upward to make room for a legend above parts placed in data coordinates."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, low + (high - low) / (1 - share))


def _draw_grid(diagram: DiagramContent, ax: Any, count: int) -> Any:
    views = len(diagram.panels["view"])
    order = f"{diagram.view_order} first."
    note = (
        f"{diagram.summary} Shown: {count} of {views} views, {order}"
        if views > count
        else f"{diagram.summary} {_capitalize_first(order)}"
    )
    figsize = diagram.presentation.figsize
    if ax is None and figsize is None:
        columns = _usual_column_count(count, equal=diagram.has_equal_units)
        width = max(diagram.figure_size[0], WIDE_FIGURE_WIDTH) if columns > 2 else diagram.figure_size[0]
        size = _grid_font_size(width)
        grid = PanelGrid.for_width(width, columns, hides_axes=diagram.hides_axes)
        head = fit_headers(diagram, note, 72 * (width - grid.left - grid.right), size)[0]
        top = head.height / 72 + 0.08
        rows = -(-count // columns)
        panel_height = PANEL_HEIGHT
        if diagram.aspect_ratio:
            panel_height = min(
                diagram.aspect_ratio * grid.panel_size(width, 0, count)[0],
                MAX_SQUARE_PANEL_HEIGHT if rows > 2 else 1.3 * MAX_SQUARE_PANEL_HEIGHT,
            )
        height = top + rows * (panel_height + grid.gap_y) + grid.bottom
    else:
        width, height = figsize if ax is None and figsize is not None else styling.size_in_inches(ax)
        size = _grid_font_size(width)
        arrangement = _fit_panel_grid(diagram, count, width, height, size, note if ax is None else None)
        if arrangement is None:
            return _draw_first_view(diagram, ax, size)
        grid, head = arrangement
        top = head.height / 72 + 0.08 if ax is None else head.legend_height / 72 + 0.04
    columns = grid.columns
    if ax is None:
        target = figure = _new_figure(diagram, width, height)
        where, add = figure.transFigure, figure.add_axes
    else:
        target, where, add = ax, ax.transAxes, ax.inset_axes
        ax.set_axis_off()
        caption = f"{diagram.lens}, {diagram.view_order}: {diagram.panels['title'][0]}"
        _set_title(ax, diagram.presentation.heading(caption), 72 * width, size)
    cell = grid.panel_size(width, height - top, count)
    names = [(str(diagram.panels["title"][i]), str(diagram.panels["aside"][i])) for i in range(count)]
    shared: dict[str, Any] = {}
    for i in range(count):
        row, column = divmod(i, columns)
        left = grid.left + column * (cell[0] + grid.gap_x)
        bottom = height - top - (row + 1) * (cell[1] + grid.gap_y)
        panel = add((left / width, bottom / height, cell[0] / width, cell[1] / height), **shared)
        shared = shared or {"sharex": panel, "sharey": panel}
        _paint_panel(diagram, panel, i)
        if ax is None and figsize is None and diagram.has_equal_units:
            panel.set_aspect("equal", adjustable="box", anchor="NW")
        _write_panel_title(panel, *names[i], 72 * cell[0])
        panel.tick_params(labelleft=column == 0, labelbottom=i + columns >= count)
    title_and_legend.attach_legend_entries(shared["sharex"] if ax is None else ax, diagram.legend())
    style: dict[str, Any] = {
        "fontsize": size,
        "color": styling.TEXT_COLOR,
        "ha": "center",
        "va": "center",
        "transform": where,
    }
    style["parse_math"] = False
    x, y = diagram.axis_labels()
    across, up = 72 * (width - grid.right), 72 * (height - top)
    target.text(
        (grid.left + width - grid.right) / 2 / width, 0.13 / height, styling.shorten_text(x, across, size), **style
    )
    middle = (height - top + grid.bottom) / 2 / height
    # A single row of panels may be lower than the label is long: reduce the type size before cutting the label.
    style["fontsize"] = max(MIN_FONT_SIZE, min(size, size * 0.98 * up / max(styling.text_width(y, size), 1.0)))
    target.text(0.13 / width, middle, styling.shorten_text(y, up, style["fontsize"]), rotation="vertical", **style)
    if ax is None:
        head.draw(figure, where, (grid.left / width, 1 - top / height))
    else:
        head.draw_legend(ax, loc="upper left", bbox_to_anchor=(grid.left / width, 1.0), borderaxespad=0.0)
    return target


def _usual_column_count(count: int, *, equal: bool) -> int:
    """Number of columns of panels in a figure of its own."""
    return {2: 2, 4: 2}.get(count, 4 if equal and count > 6 else 3)


def _grid_font_size(width: float) -> float:
    return DEFAULT_FONT_SIZE if width > 4.5 else 8.0 if width > 2.6 else 7.0


@dataclass(frozen=True)
class PanelGrid:
    """Number of columns of panels, and the inches around and between the panels."""

    columns: int
    left: float
    right: float
    bottom: float
    gap_x: float
    gap_y: float

    @classmethod
    def for_width(cls, width: float, columns: int, *, hides_axes: bool) -> PanelGrid:
        """The margins for a figure width: full size from 3.6 inches on, narrower below; `bare` panels have no ticks."""
        part = min(max(width / 3.6, 0.7), 1.0)
        left, bottom = (RIGHT_MARGIN, 0.6 * BOTTOM_MARGIN) if hides_axes else (LEFT_MARGIN * part, BOTTOM_MARGIN * part)
        return cls(columns, left, RIGHT_MARGIN * part, bottom, PANEL_GAP_X * part, PANEL_GAP_Y * max(part, 0.8))

    def panel_size(self, width: float, height: float, count: int) -> tuple[float, float]:
        """Width and height of a panel in this room."""
        rows = -(-count // self.columns)
        wide = (width - self.left - self.right - (self.columns - 1) * self.gap_x) / self.columns
        return wide, (height - self.bottom) / rows - self.gap_y


def _fit_panel_grid(
    diagram: DiagramContent, count: int, width: float, height: float, size: float, note: str | None
) -> tuple[PanelGrid, Header] | None:
    """The grid with the largest panels for a given height; None if every panel would be illegible.

    If `note` is None, as in given axes, only the legend stands above the panels.
    """
    usual = _usual_column_count(count, equal=False)
    choice: tuple[float, PanelGrid, Header] | None = None
    for columns in (
        usual,
        *(n_columns for n_columns in (2, 1, 3, 4, 5, 6) if n_columns != usual and n_columns <= count),
    ):
        grid = PanelGrid.for_width(width, columns, hides_axes=diagram.hides_axes)
        room = 72 * (width - grid.left - grid.right)
        if room <= 0:
            continue
        heads = [fit_legend(diagram, room, size)] if note is None else fit_headers(diagram, note, room, size)
        for head in heads:
            above = head.legend_height / 72 + 0.04 if note is None else head.height / 72 + 0.08
            wide, high = grid.panel_size(width, height - above, count)
            fits = min(wide / MIN_PANEL_SIZE[0], high / MIN_PANEL_SIZE[1])
            if fits >= 1 and (choice is None or min(fits, AMPLE_SIZE_RATIO) > choice[0]):
                choice = min(fits, AMPLE_SIZE_RATIO), grid, head
    return None if choice is None else choice[1:]


def _draw_first_view(diagram: DiagramContent, ax: Any, size: float) -> Any:
    """Draw only the first view, and say so in the title."""
    views, title = len(diagram.panels["view"]), str(diagram.panels["title"][0])
    panels = {name: column[:1] for name, column in diagram.panels.items()}
    alone = replace(diagram, panels=panels, table=diagram.rows(0))
    if alone.presentation.title in (None, True):
        room = 72 * (_figure_size(diagram)[0] - LEFT_MARGIN if ax is None else styling.size_in_inches(ax)[0])
        long = f"{title}: {diagram.view_order} of {views}"
        alone = alone.present(title=long if styling.text_width(long, size + 1) <= room else f"1 of {views}: {title}")
    return _draw_single(alone, ax)


def panel_limit_notes(n_views: int, view_order: str) -> list[Note]:
    """The note that not every view is drawn, if there are too many."""
    if n_views <= MAX_PANELS:
        return []
    return [
        Note(
            "TN245",
            f"Only {MAX_PANELS} of {n_views} views are drawn, {view_order} first. The table contains all of them.",
        )
    ]


def _capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _new_figure(diagram: DiagramContent, width: float, height: float, **kwargs: Any) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=diagram.presentation.dpi, facecolor="white", **kwargs)
    FigureCanvasAgg(figure)
    return figure


def _write_panel_title(panel: Any, title: str, aside: str, max_width: float) -> None:
    """Write the name of the view at the left, and its result at the right if it fits."""
    size = styling.font_size(panel)
    style: dict[str, Any] = {"fontsize": size + 0.5, "fontweight": "bold", "color": styling.TEXT_COLOR}
    # A class may be called "$x$": names must not be parsed as formulas.
    panel.set_title(
        styling.shorten_text(title, max_width, size + 0.5, "bold"), loc="left", pad=3, parse_math=False, **style
    )
    if styling.text_width(title, size + 0.5, "bold") + styling.text_width(aside, size - 0.8) + 8 <= max_width:
        panel.set_title(aside, loc="right", fontsize=size - 0.8, color=styling.MUTED_COLOR, pad=3, parse_math=False)
