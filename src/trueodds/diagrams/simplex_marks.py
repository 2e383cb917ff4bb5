"""Arrows, cell colors, color key and legend shared by the triangle and the tetrahedron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import layout, styling

SIGNIFICANT_COLOR, FADED_COLOR = styling.OUTSIDE_COLOR, "#5C6670"
MIN_OPACITY, OPACITY_RANGE = (
    0.18,
    0.72,
)  # opacity of the arrow of the least frequent cell, and how much more the most frequent cell has
ARROW_WIDTHS = {"beyond": 0.026, "faded": 0.012}  # width of an arrow shaft in inches, in a separate figure


def draw_arrows(ax: Any, tail: Array, head: Array, kind: str, **style: Any) -> Any:
    """Draw arrows between points (cells, 2) in true length; an arrow too short for a head is a dot."""
    from matplotlib.patheffects import withStroke

    scale = float(np.interp(styling.size_in_inches(ax)[0], (1.2, 4.0), (0.6, 1.0)))
    return ax.quiver(
        *tail.T,
        *(head - tail).T,
        angles="xy",
        scale_units="xy",
        scale=1,
        units="inches",
        width=scale * ARROW_WIDTHS[kind],
        headwidth=3.6,
        headlength=4.2,
        headaxislength=3.8,
        minlength=2.4 if kind == "beyond" else 1.0,
        path_effects=[withStroke(linewidth=1.0, foreground="white")] if kind == "beyond" else [],
        **{"color": SIGNIFICANT_COLOR if kind == "beyond" else FADED_COLOR, "label": kind} | style,
    )


def cell_colors(table: Mapping[str, Array], view: Mapping[str, Any]) -> list[str]:
    """The color of each cell by its share of the predictions."""
    place = scale_position(table["share"], view["share_low"], view["share_high"], view["share_log"])
    return scale_colors(place)


def arrow_opacity(table: Mapping[str, Array], view: Mapping[str, Any]) -> Array:
    """Opacity of arrows that are not significant: in cells with few rows, long arrows are uninformative."""
    return MIN_OPACITY + OPACITY_RANGE * scale_position(
        table["share"], view["share_low"], view["share_high"], view["share_log"]
    )


def key_fits(ax: Any) -> bool:
    """Whether there is room for the color key; the legend contains its ends, too."""
    return styling.size_in_inches(ax)[0] > 1.5


def draw_key(ax: Any, view: Mapping[str, Any], box: tuple[float, float, float, float], size: float) -> Any:
    """Draw the color key as a bar in data coordinates with labeled ends."""
    from matplotlib.colors import ListedColormap

    bar = ax.inset_axes(box, transform=ax.transData, zorder=4)
    bar.set_label("key")
    steps = np.linspace(0, 1, 64)
    bar.imshow(
        steps[:, None], cmap=ListedColormap(scale_colors(steps)), origin="lower", aspect="auto", extent=(0, 1, 0, 1)
    )
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks([0, 1], [styling.format_share(view["share_low"]), styling.format_share(view["share_high"])])
    bar.tick_params(labelsize=size - 1.5, labelcolor=styling.MUTED_COLOR, length=2, pad=2, color="#9A9A9A")
    for side in bar.spines.values():
        side.set_color("#9A9A9A")
        side.set_linewidth(0.6)
    return bar


def legend_entries(diagram: Any, view: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """The legend entries of arrows and shades."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    level = f"{100 * diagram.settings['level']:.4g}\u00a0%"
    how = "Holm" if diagram.settings["simultaneous"] else "unadjusted"
    made: list[tuple[Any, str]] = []
    strays, stays = significance_shown(diagram)
    suffix = f"({level}, {how})"
    both = (
        ("arrows", strays, f"significant {suffix}"),
        ("faded", stays, "not significant" if strays and diagram.has("arrows") else f"not significant {suffix}"),
    )
    for layer, some, label in both:
        if some and diagram.has(layer):
            color, width = (SIGNIFICANT_COLOR, 2.0) if layer == "arrows" else (FADED_COLOR, 1.0)
            made.append((Line2D([], [], color=color, linewidth=width, marker=">", markersize=3 + 1.5 * width), label))
    if diagram.has("cells"):
        low, high = styling.format_share(view["share_low"]), styling.format_share(view["share_high"])
        text = f"share: {low} to {high}" + (", log" if view["share_log"] else "")
        made.append((Patch(facecolor=scale_colors(np.array([0.6]))[0], edgecolor="#9A9A9A"), text))
    return made


def significance_shown(diagram: Any) -> tuple[bool, bool]:
    """Whether some cell of the drawn panels is significant, and whether some is not."""
    cells, beyond = (diagram.panels[name][: layout.MAX_PANELS] for name in ("cells", "cells_beyond"))
    return bool(beyond.sum()), bool((cells > beyond).any())


def corner_names(view: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a panel's corners."""
    count = sum(name.startswith("corner_") for name in view)
    return tuple(str(view[f"corner_{k}"]) for k in range(count))


def hide_axes(ax: Any) -> None:
    """Remove ticks and frame but keep the labels around the axes."""
    ax.set_xticks([0, 1], ["", ""])  # the layout moves the first label and the last
    ax.set_yticks([])
    ax.tick_params(length=0, pad=0)
    ax.xaxis.labelpad = 1.0
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_facecolor("none")


def points_per_unit(ax: Any, *, wide: float, tall: float, alone: bool) -> float:
    """Minimum points per data unit; in a separate figure, title and legend may still reduce the height."""
    width, height = (72 * length for length in styling.size_in_inches(ax))
    above = min(45 / height, 0.45) if alone else 0.0
    return min(width / wide, (1 - above) * height / tall)


class EqualAspect:
    """Axes locator that keeps units along x and y equal and the box from `low` to `high` visible.

    It replaces the aspect of matplotlib, which is not available for panels with shared axes.
    """

    def __init__(self, ax: Any, low: tuple[float, float], high: tuple[float, float]) -> None:
        self.low, self.high = low, high
        self.before = ax.get_axes_locator()
        self._fit(ax, ax.get_position(original=True) if self.before is None else self.before(ax, None))
        ax.set_axes_locator(self)

    def __call__(self, ax: Any, renderer: Any) -> Any:
        """The position of the axes, which matplotlib requests before drawing; limits are adjusted to it."""
        place = ax.get_position(original=True) if self.before is None else self.before(ax, renderer)
        self._fit(ax, place)
        return place

    def _fit(self, ax: Any, place: Any) -> None:
        from matplotlib.transforms import TransformedBbox

        box = TransformedBbox(place, ax.figure.transSubfigure)
        width, height = box.width, box.height
        wide, tall = self.high[0] - self.low[0], self.high[1] - self.low[1]
        unit = max(wide / width, tall / height)
        left = (self.low[0] + self.high[0] - unit * width) / 2
        bottom = (self.low[1] + self.high[1] - unit * height) / 2
        for limits, current, change in (
            ((left, left + unit * width), ax.get_xlim(), ax.set_xlim),
            ((bottom, bottom + unit * height), ax.get_ylim(), ax.set_ylim),
        ):
            if limits != current:
                change(*limits)


# One hue from nearly white to medium blue: each step is darker in grayscale, too, and arrows are visible on the last.
SCALE_STEPS = np.array(
    [[0xF4, 0xF8, 0xFB], [0xCF, 0xE1, 0xEF], [0x9C, 0xC3, 0xE0], [0x5F, 0x9B, 0xC8], [0x2F, 0x72, 0xA8]]
)


def scale_position(share: Array, low: float, high: float, logarithmic: bool) -> Array:
    """The position of each share on the scale from 0 to 1."""
    x = np.asarray(share, dtype=np.float64)
    if logarithmic:
        return np.log(x / low) / np.log(high / low)
    return (x - low) / (high - low)


def scale_colors(place: Array) -> list[str]:
    """The color at each position of the scale.

    >>> scale_colors(np.array([0.0, 1.0]))
    ['#f4f8fb', '#2f72a8']
    """
    at = np.clip(place, 0.0, 1.0)
    grid = np.linspace(0, 1, len(SCALE_STEPS))
    mixed = np.stack([np.interp(at, grid, SCALE_STEPS[:, band]) for band in range(3)], axis=1)
    return ["#" + "".join(f"{round(x):02x}" for x in rgb) for rgb in mixed]
