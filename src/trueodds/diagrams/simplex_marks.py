"""Arrows, cell colors, color key, legend and axes shared by the diagrams of the triangle and the tetrahedron."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_share
from trueodds.diagrams._style.marks import Arrows, Mark, PanelSize
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram

SIGNIFICANT_COLOR, FADED_COLOR = styling.OUTSIDE_COLOR, "#5C6670"
# Opacity of the arrow of the least frequent cell, and how much more the most frequent cell has.
MIN_OPACITY, OPACITY_RANGE = 0.18, 0.72
ARROW_WIDTHS = {"beyond": 0.026, "faded": 0.012}  # width of an arrow shaft in inches, in a separate figure
DOT_AREAS = (10.0, 90.0)  # in square points, of the dot of the least and of the most frequent cell


class ArrowDiagram(Diagram):
    """Arrows from mean prediction to observed frequency in the cells of a triangle or a tetrahedron.

    The arrows of cells whose difference is significant (the column `beyond` of the table) are dark, the others faded.
    """

    labels = "Tail: predicted, head: observed", ""
    row_noun = "cells"

    def caption(self) -> str:
        """The number of significant cells; the corners identify the view."""
        return str(self.panels["aside"][0])

    @property
    def shows_significance(self) -> tuple[bool, bool]:
        """Whether some cell of the drawn panels is significant, and whether some is not."""
        cells, n_significant = (self.panels[name][:MAX_PANELS] for name in ("cells", "cells_beyond"))
        return bool(n_significant.sum()), bool((cells > n_significant).any())

    def arrow_marks(
        self, panel: int, tail: Array, head: Array, size: PanelSize, order: Array, opacity: Array | float = 1.0
    ) -> list[Mark]:
        """The significant arrows, in front, and the others, in this order of the cells, (cells,).

        `tail` and `head` are (cells, 2). The `opacity` of the others is reduced where rows are few.
        """
        from matplotlib.patheffects import withStroke

        rows, panel_row = self.rows(panel), self.panel_values(panel)
        scale = float(np.interp(size.width, (1.2, 4.0), (0.6, 1.0)))
        criterion = f" ({self.level_text}, {'Holm' if self.settings['simultaneous'] else 'unadjusted'})"
        names_criterion = self.shows_significance[0] and self.has("arrows")
        opacity = np.broadcast_to(opacity, len(order))
        beyond, faded = order[rows["beyond"][order]], order[~rows["beyond"][order]]
        outlined: dict[str, Any] = {"path_effects": [withStroke(linewidth=1.0, foreground="white")], "minlength": 2.4}
        return [
            Arrows(
                tail[beyond], head[beyond], layer="arrows", name="beyond", label=f"significant{criterion}", zorder=3,
                width=scale * ARROW_WIDTHS["beyond"], color=SIGNIFICANT_COLOR, alpha=opacity[beyond], **outlined,
            ),
            Arrows(
                tail[faded], head[faded], layer="faded", label=f"not significant{'' if names_criterion else criterion}",
                width=scale * ARROW_WIDTHS["faded"], color=FADED_COLOR, key={"linewidth": 1.0, "markersize": 4.5},
                alpha=opacity[faded] * arrow_opacity(rows, panel_row)[faded], zorder=2.2,
            ),
        ]  # fmt: skip

    def shade_label(self) -> tuple[str, dict[str, Any]]:
        """The label of the shades of the cells, and the style of its entry in the legend."""
        panel_row = self.panel_values(0)
        low, high = format_share(panel_row["share_low"]), format_share(panel_row["share_high"])
        key = {"facecolor": scale_colors(np.array([0.6]))[0], "edgecolor": styling.AXIS_LINE_COLOR}
        return f"share: {low} to {high}" + (", log" if panel_row["share_log"] else ""), key

    def has_color_key(self, size: PanelSize) -> bool:
        """Whether there is room for the color key; the legend contains its ends, too."""
        return self.has("key") and self.has("cells") and size.width > 1.5


class CellDots(Mark):
    """Dots of different areas and colors, as a patch in the legend: `CellDots(x, y, areas, colors=…)`."""

    def __init__(self, x: Array, y: Array, areas: Array | float, *, colors: Sequence[str], **style: Any) -> None:
        super().__init__(x, y, areas, linewidths=0.6, **style)
        self.colors = colors

    def draw(self, ax: Any) -> Iterable[Any]:
        x, y, areas = self.coordinates
        return [ax.scatter(x, y, s=areas, c=list(self.colors), **self.style)]

    def legend_handle(self) -> Any:
        from matplotlib.patches import Patch

        return Patch(**self.key)


class ColorKey(Mark):
    """A bar of all shades with labeled ends in a box of the plane: `ColorKey(left, bottom, width, height, low, high)`.

    `low` and `high` are the shares of the lightest and the darkest shade.
    """

    def draw(self, ax: Any) -> Iterable[Any]:
        from matplotlib.colors import ListedColormap

        left, bottom, width, height, low, high = (float(x[0]) for x in self.coordinates)
        bar = ax.inset_axes((left, bottom, width, height), transform=ax.transData, zorder=4)
        steps = np.linspace(0, 1, 64)
        shades = ListedColormap(scale_colors(steps))
        bar.imshow(steps[:, None], cmap=shades, origin="lower", aspect="auto", extent=(0, 1, 0, 1))
        bar.set_xticks([])
        bar.yaxis.tick_right()
        bar.set_yticks([0, 1], [format_share(low), format_share(high)])
        ticks = {"labelsize": styling.font_size(ax) - 1.5, "labelcolor": styling.MUTED_COLOR, "length": 2, "pad": 2}
        bar.tick_params(color=styling.AXIS_LINE_COLOR, **ticks)
        for side in bar.spines.values():
            side.set_color(styling.AXIS_LINE_COLOR)
            side.set_linewidth(0.6)
        bar.set_label("key")
        return []


def cell_colors(table: Mapping[str, Array], panel_row: Mapping[str, Any]) -> list[str]:
    """The color of each cell by its share of the predictions."""
    return scale_colors(_share_positions(table, panel_row))


def arrow_opacity(table: Mapping[str, Array], panel_row: Mapping[str, Any]) -> Array:
    """Opacity of arrows that are not significant: in cells with few rows, long arrows are uninformative."""
    return MIN_OPACITY + OPACITY_RANGE * _share_positions(table, panel_row)


def dot_areas(table: Mapping[str, Array], panel_row: Mapping[str, Any]) -> Array:
    """Area of the dot of each cell in square points, by its share of the predictions."""
    smallest, largest = DOT_AREAS
    return np.asarray(smallest + (largest - smallest) * _share_positions(table, panel_row))


def _share_positions(table: Mapping[str, Array], panel_row: Mapping[str, Any]) -> Array:
    """Position of the share of each cell between the lowest share, 0, and the highest one, 1."""
    return scale_position(table["share"], panel_row["share_low"], panel_row["share_high"], panel_row["share_log"])


def corner_names(panel_row: Mapping[str, Any]) -> tuple[str, ...]:
    count = sum(name.startswith("corner_") for name in panel_row)
    return tuple(str(panel_row[f"corner_{k}"]) for k in range(count))


def hide_axes(ax: Any) -> None:
    """Remove ticks and frame but keep the labels around the axes."""
    ax.set_xticks([0, 1], ["", ""])  # the layout moves the first label and the last
    ax.set_yticks([])
    ax.tick_params(length=0, pad=0)
    ax.xaxis.labelpad = 1.0
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_facecolor("none")


def points_per_unit(size: PanelSize, *, width_in_units: float, height_in_units: float, is_single_panel: bool) -> float:
    """Smallest number of points per data unit if the axes show the given width and height in data units.

    In a figure of its own (`is_single_panel`), title and legend may still reduce the height of the axes.
    """
    width, height = (styling.POINTS_PER_INCH * length for length in (size.width, size.height))
    header_share = min(45 / height, 0.45) if is_single_panel else 0.0
    return min(width / width_in_units, (1 - header_share) * height / height_in_units)


class EqualAspect:
    """Axes locator that keeps units along x and y equal and the box from `low` to `high` visible.

    It replaces the aspect of matplotlib, which is not available for panels with shared axes.
    """

    def __init__(self, ax: Any, low: tuple[float, float], high: tuple[float, float]) -> None:
        self.low, self.high = low, high
        self.earlier_locator = ax.get_axes_locator()
        self._fit(
            ax, ax.get_position(original=True) if self.earlier_locator is None else self.earlier_locator(ax, None)
        )
        ax.set_axes_locator(self)

    def __call__(self, ax: Any, renderer: Any) -> Any:
        """The position of the axes, which matplotlib requests before drawing; limits are adjusted to it."""
        axes_box = (
            ax.get_position(original=True) if self.earlier_locator is None else self.earlier_locator(ax, renderer)
        )
        self._fit(ax, axes_box)
        return axes_box

    def _fit(self, ax: Any, axes_box: Any) -> None:
        """Set the limits of axes in this box so that a unit of x is as long as a unit of y."""
        from matplotlib.transforms import TransformedBbox

        box = TransformedBbox(axes_box, ax.figure.transSubfigure)
        width, height = box.width, box.height
        width_in_units, height_in_units = self.high[0] - self.low[0], self.high[1] - self.low[1]
        units_per_pixel = max(width_in_units / width, height_in_units / height)
        left = (self.low[0] + self.high[0] - units_per_pixel * width) / 2
        bottom = (self.low[1] + self.high[1] - units_per_pixel * height) / 2
        for limits, current, set_limits in (
            ((left, left + units_per_pixel * width), ax.get_xlim(), ax.set_xlim),
            ((bottom, bottom + units_per_pixel * height), ax.get_ylim(), ax.set_ylim),
        ):
            if limits != current:
                set_limits(*limits)


# One hue from nearly white to medium blue: each step is darker in grayscale, too, and arrows are visible on the last.
SCALE_STEPS = np.array(
    [[0xF4, 0xF8, 0xFB], [0xCF, 0xE1, 0xEF], [0x9C, 0xC3, 0xE0], [0x5F, 0x9B, 0xC8], [0x2F, 0x72, 0xA8]]
)


def scale_position(share: Array, low: float, high: float, is_logarithmic: bool) -> Array:
    """The position of each share on the scale from 0 to 1."""
    x = np.asarray(share, dtype=np.float64)
    if is_logarithmic:
        return np.log(x / low) / np.log(high / low)
    return (x - low) / (high - low)


def scale_colors(positions: Array) -> list[str]:
    """The color at each position of the scale.

    >>> scale_colors(np.array([0.0, 1.0]))
    ['#f4f8fb', '#2f72a8']
    """
    clipped = np.clip(positions, 0.0, 1.0)
    grid = np.linspace(0, 1, len(SCALE_STEPS))
    mixed = np.stack([np.interp(clipped, grid, SCALE_STEPS[:, channel]) for channel in range(3)], axis=1)
    return ["#" + "".join(f"{round(x):02x}" for x in rgb) for rgb in mixed]
