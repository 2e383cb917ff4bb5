"""Histogram strips and a small table of numbers below the axes, one row for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import panel_grid, styling
from trueodds.diagrams._style.title_and_legend import fit_headers
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_styles import COLORS

LINE_SPACING = 1.45  # in multiples of the font size
MIN_PLOT_HEIGHT = 2.4  # smallest height in inches of the plot above the strips
HEIGHT_PER_MODEL = 0.1  # inches by which it grows for each model
LABELS_HEIGHT = 0.62  # inches below the axes
LABELS_WIDTH = 0.8  # inches beside the axes


def total_strip_height(n_models: int) -> float:
    """Fraction of the height of the axes that the strips of all models take."""
    return float(np.clip(0.045 * n_models, 0.1, 0.26))


def number_table_height(n_models: int) -> float:
    """Height in inches of the table below the axes."""
    return 0.18 * (n_models + 1)


def number_table_fits(ax: Any, n_models: int) -> bool:
    """Whether there is room for the table below the axes."""
    width, height = styling.size_in_inches(ax)
    return width > 3.4 and height > number_table_height(n_models) + 1.0


def figure_height(
    diagram: Diagram,
    width: float,
    usual_height: float,
    strip_height: float,
    table_height: float,
    plot_height: float | None = None,
) -> float:
    """Height in inches of a figure in which title, strips and table leave `plot` inches for the plot itself."""
    if len(diagram.panels["view"]) > 1:
        return usual_height + table_height  # the layout determines the height of a grid
    if plot_height is None:
        plot_height = MIN_PLOT_HEIGHT + HEIGHT_PER_MODEL * len(diagram.settings["models"])
    header_height = fit_headers(diagram, diagram.summary, 72 * width - 72, panel_grid.DEFAULT_FONT_SIZE)[0].height / 72
    return max(usual_height, header_height + plot_height / (1 - strip_height) + LABELS_HEIGHT) + table_height


def draw_strips(ax: Any, tables_by_model: Sequence[Mapping[str, Array]], strip_height: float, max_share: float) -> None:
    """Draw the histogram of the predictions of each model in a strip, the first at the top."""
    row_height = strip_height / len(tables_by_model)
    for i, table in enumerate(tables_by_model):
        strip = ax.inset_axes((0, strip_height - (i + 1) * row_height, 1, row_height), zorder=3)
        strip.set_label("strip")
        strip.set_xlim(ax.get_xlim())
        strip.set_ylim(0, max_share * 1.18)
        color = COLORS[i]
        low, high, share = (table[name] for name in ("low", "high", "share"))
        styling.draw_boxes(
            strip, low, high, np.zeros(1), share, facecolor=color, alpha=0.55, edgecolor="none", label="share"
        )
        # Nearly empty bins remain visible.
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
    """Draw a small table below the axes; the layout removes it from axes passed by the user."""
    heading_offset = 2.9 * size + 12  # below tick labels and axis label
    max_width = 72 * ax.figure.get_size_inches()[0] - 72  # width without tick and axis labels
    widths = [
        max(styling.text_width(text, size, "normal") for text in (heading, *cells)) + 14 for heading, cells in columns
    ]
    name_width = max_width - sum(widths)
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
        label = styling.shorten_text(name, name_width - 6, size, "bold")
        y = -heading_offset - LINE_SPACING * size * (i + 1)
        ax.annotate(label, (0, 0), xytext=(0, y), color=COLORS[i], fontweight="bold", ha="left", **style)
    right = name_width
    for (heading, cells), width in zip(columns, widths, strict=True):
        right += width
        ax.annotate(heading, (0, 0), xytext=(right, -heading_offset), color=styling.MUTED_COLOR, ha="right", **style)
        for i, cell in enumerate(cells):
            y = -heading_offset - LINE_SPACING * size * (i + 1)
            ax.annotate(cell, (0, 0), xytext=(right, y), color=styling.TEXT_COLOR, ha="right", **style)
