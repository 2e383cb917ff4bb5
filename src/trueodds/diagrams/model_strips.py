"""Histogram strips and a small table of numbers below the axes, one row for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import layout, styling
from trueodds.diagrams._style.title_and_legend import fit_headers
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_lineup import COLORS

LINE_SPACING = 1.45  # of the type size
MIN_PLOT_HEIGHT, HEIGHT_PER_MODEL = (
    2.4,
    0.1,
)  # inches that the picture above the strips has at least, and more for each model
LABELS_HEIGHT = 0.62  # inches of what stands below the axes
LABELS_WIDTH = 0.8  # inches of what stands beside them


def total_strip_height(models: int) -> float:
    """Of the height of the axes: what the strips of so many models take."""
    return float(np.clip(0.045 * models, 0.1, 0.26))


def table_height(models: int) -> float:
    """Inches that the small table under the axes takes."""
    return 0.18 * (models + 1)


def table_fits(ax: Any, models: int) -> bool:
    """Whether the axes can spare what the table under them takes."""
    wide, high = styling.inches(ax)
    return wide > 3.4 and high > table_height(models) + 1.0


def figure_height(
    diagram: Diagram, width: float, usual: float, strip_height: float, table: float, plot: float | None = None
) -> float:
    """Inches of a figure in which words, strips and table of many models leave room for the picture itself, `plot`."""
    if len(diagram.panels["view"]) > 1:
        return usual + table  # a grid has its own height
    if plot is None:
        plot = MIN_PLOT_HEIGHT + HEIGHT_PER_MODEL * len(diagram.settings["models"])
    head = fit_headers(diagram, diagram.summary, 72 * width - 72, layout.TYPE)[0].height / 72
    return max(usual, head + plot / (1 - strip_height) + LABELS_HEIGHT) + table


def draw_strips(ax: Any, rows: Sequence[Mapping[str, Array]], strip_height: float, tallest: float) -> None:
    """Where each model's predictions are: one row of bars for each, the first at the top."""
    row_height = strip_height / len(rows)
    for i, table in enumerate(rows):
        strip = ax.inset_axes((0, strip_height - (i + 1) * row_height, 1, row_height), zorder=3)
        strip.set_label("strip")
        strip.set_xlim(ax.get_xlim())
        strip.set_ylim(0, tallest * 1.18)
        color = COLORS[i]
        low, high, share = (table[name] for name in ("low", "high", "share"))
        styling.draw_boxes(
            strip, low, high, np.zeros(1), share, facecolor=color, alpha=0.55, edgecolor="none", label="share"
        )
        # Bins that hold one row in a thousand are still seen to be occupied.
        strip.hlines(np.zeros(len(low)), low, high, colors=color, linewidth=1.4, zorder=3)
        strip.set_xticks([])
        strip.set_yticks([])
        for side in ("right", "bottom"):
            strip.spines[side].set_visible(False)
        for side in ("left", "top"):
            strip.spines[side].set_color("#9A9A9A" if side == "left" or i == 0 else "#D5DBE1")
            strip.spines[side].set_linewidth(0.8)
        strip.set_facecolor("#F7F9FB")


def draw_number_table(ax: Any, names: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]], size: float) -> None:
    """A small table under the axes; in axes that are given there is no room for it, and the layout takes it away."""
    down = 2.9 * size + 12  # below tick labels and the label of the axis
    room = 72 * ax.figure.get_size_inches()[0] - 72  # what tick and axis labels leave
    widths = [max(styling.text_width(text, size, "normal") for text in (head, *cells)) + 14 for head, cells in columns]
    first = room - sum(widths)
    style: dict[str, Any] = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "fontsize": size,
        "va": "top",
        "gid": "side",
        "parse_math": False,
        "annotation_clip": False,
    }
    for i, name in enumerate(names):
        label = styling.shorten_text(name, first - 6, size, "bold")
        y = -down - LINE_SPACING * size * (i + 1)
        ax.annotate(label, (0, 0), xytext=(0, y), color=COLORS[i], fontweight="bold", ha="left", **style)
    right = first
    for (head, cells), width in zip(columns, widths, strict=True):
        right += width
        ax.annotate(head, (0, 0), xytext=(right, -down), color=styling.FAINT, ha="right", **style)
        for i, cell in enumerate(cells):
            y = -down - LINE_SPACING * size * (i + 1)
            ax.annotate(cell, (0, 0), xytext=(right, y), color=styling.TEXT, ha="right", **style)
