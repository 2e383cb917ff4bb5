"""Draw the posterior of shift and slope as shades with contours and marked points."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.odds_axis import set_odds_axis
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram

_POSTERIOR_SHADES = ("#FFFFFF", "#E3EEF7", "#C4DCEE", styling.STRIP_COLOR)
_OPTIMUM_STYLE: dict[str, Any] = {
    "marker": "o",
    "color": styling.INSIDE_COLOR,
    "markersize": 7,
    "markeredgecolor": "white",
}
_IDENTITY_STYLE: dict[str, Any] = {
    "marker": "X",
    "color": styling.OUTSIDE_COLOR,
    "markersize": 9,
    "markeredgecolor": "white",
}
_BOLDEST_STYLE: dict[str, Any] = {
    "marker": "D",
    "color": styling.TEXT_COLOR,
    "markersize": 5,
    "markeredgecolor": "white",
}


class LloPosteriorPlot(Diagram):
    """The posterior probability of calibration: shades, contours, and marks of the best fit and other maps."""

    layers = ("map", "contours", "marks")
    row_noun = "points"
    view_order = "least probable"
    figure_size = (6.4, 5.0)

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "Which shifts and slopes of the log odds are compatible with calibration?"

    def axis_labels(self) -> tuple[str, str]:
        """Shift along x, slope along y."""
        return "Shift δ (factor of the odds)", "Slope γ of the log odds"

    def legend(self) -> list[tuple[Any, str]]:
        """The shades, contours and marks that are drawn in some panel."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if not self.panels["finite"][:MAX_PANELS].any():
            return []
        levels_with_contour = set(self.table["level"][self.table["kind"] == "contour"].tolist())
        level_texts = [f"{100 * level:.4g}" for level in self.settings["posteriors"] if level in levels_with_contour]
        levels = ", ".join(level_texts) + "\u00a0%"
        boldest_label = "boldest on each contour" if len(level_texts) > 1 else f"boldest at {levels}"
        entries: list[tuple[Any, str]] = []
        if self.has("map"):
            entries.append((Patch(facecolor=_POSTERIOR_SHADES[-1]), "posterior near 100\u00a0%"))
        if self.has("contours") and level_texts:
            entries.append((Line2D([], [], color=styling.TEXT_COLOR, linewidth=1.2), f"posterior {levels}"))
        if self.has("marks"):
            entries.append((Line2D([], [], linestyle="none", **_IDENTITY_STYLE), "unchanged (1, 1)"))
            entries.append((Line2D([], [], linestyle="none", **_OPTIMUM_STYLE), "best fit"))
        if self.has("marks") and level_texts:
            entries.append((Line2D([], [], linestyle="none", **_BOLDEST_STYLE), boldest_label))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        from matplotlib.colors import LinearSegmentedColormap

        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        ax.grid(False)
        set_odds_axis(ax, panel_row["delta_low"], panel_row["delta_high"])
        ax.set_ylim(panel_row["gamma_low"], panel_row["gamma_high"])
        if not panel_row["finite"]:
            _draw_empty(ax, size)
            return
        if self.has("map"):
            resolution, is_grid = self.settings["resolution"], rows["kind"] == "grid"
            x, y, z = (rows[name][is_grid].reshape(resolution, resolution) for name in ("delta", "gamma", "posterior"))
            colormap = LinearSegmentedColormap.from_list("posterior", _POSTERIOR_SHADES)
            shade_limits = np.arange(21) / 20
            ax.contourf(x, y, z, levels=shade_limits, cmap=colormap, antialiased=False, zorder=0.5).set_label("map")
        for axis in (ax.axhline, ax.axvline):
            axis(1, color=styling.MUTED_COLOR, linewidth=0.8, zorder=1.5)
        scale = 1.0 if styling.size_in_inches(ax)[0] > 2.4 else 0.7
        for level in self.settings["posteriors"] if self.has("contours") else ():
            mask = (rows["kind"] == "contour") & (rows["level"] == level)
            style = {"color": styling.TEXT_COLOR, "linewidth": 1.2 * scale**2, "zorder": 2, "label": "contour"}
            ax.plot(rows["delta"][mask], rows["gamma"][mask], **style)
        if not self.has("marks"):
            return
        for kind, mark in (("boldest", _BOLDEST_STYLE), ("identity", _IDENTITY_STYLE), ("best_fit", _OPTIMUM_STYLE)):
            mask = rows["kind"] == kind
            style = {**mark, "markersize": mark["markersize"] * scale, "linestyle": "none", "zorder": 4}
            if kind != "identity" or panel_row["identity_inside"]:
                ax.plot(rows["delta"][mask], rows["gamma"][mask], label=kind, **style)
        if not panel_row["identity_inside"]:
            _draw_pointer(ax, panel_row, size)


def _draw_empty(ax: Any, size: float) -> None:
    """Write that there is no map into empty axes."""
    style = {"ha": "center", "va": "center", "fontsize": size, "color": styling.MUTED_COLOR, "transform": ax.transAxes}
    ax.text(0.5, 0.5, "no finite shift\nand slope", **style)


def _draw_pointer(ax: Any, panel_row: dict[str, Any], size: float) -> None:
    """Mark the direction of (1, 1), which lies outside the axes, at their edge, with a text inside the axes."""
    x = min(max(1.0, panel_row["delta_low"]), panel_row["delta_high"])
    y = min(max(1.0, panel_row["gamma_low"]), panel_row["gamma_high"])
    style = {**_IDENTITY_STYLE, "markersize": _IDENTITY_STYLE["markersize"] * 0.9, "linestyle": "none", "zorder": 5}
    ax.plot([x], [y], clip_on=False, label="identity", **style)
    if x == panel_row["delta_high"]:
        horizontal, x_offset = "right", -7
    elif x == panel_row["delta_low"]:
        horizontal, x_offset = "left", 7
    else:
        horizontal, x_offset = "center", 0
    vertical, y_offset = ("bottom", 7) if y == panel_row["gamma_low"] else ("top", -7)
    ax.annotate(
        "(1, 1) is outside",
        (x, y),
        xytext=(x_offset, y_offset),
        textcoords="offset points",
        fontsize=size - 1,
        color=styling.OUTSIDE_COLOR,
        ha=horizontal,
        va=vertical,
    )
