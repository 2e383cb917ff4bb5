"""Draw the reliability diagram: crosses, bars and a strip with the share of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams._style.reliability_plots import BinnedPlot


class ReliabilityDiagram(BinnedPlot):
    """The reliability diagram: crosses, bars and the strip of predictions."""

    layers = ("bars", "crosses", "strip", "gaps", "sides")

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The strip's share of the height."""
        return styling.STRIP_HEIGHT if self.has("strip") else 0.0

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Inches of the figure; the unit square needs room for the header above it."""
        return (6.4, 4.6) if self.shows_deviation else (5.2, 6.7)

    def legend(self) -> list[tuple[Any, str]]:
        """The legend entries of the layers that are drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        bar_kind = self.settings["bars"]
        level = f"{100 * self.settings['level']:.4g}\u00a0%"
        if self.settings["simultaneous"]:
            level += " simultaneous"
        shows_crosses, shows_bars = self.has("crosses"), self.has("bars") and bar_kind is not None
        inside_drawn, _ = self._drawn_sides()
        if shows_bars and bar_kind == "consistency":
            # If every cross is outside, no gray bar is drawn.
            color = styling.INSIDE_BAR_COLOR if inside_drawn else styling.OUTSIDE_BAR_COLOR
            label = f"{level} consistency bar" if self.has_long_labels else f"{level} consistency"
            entries.append((Line2D([], [], color=color, linewidth=7, solid_capstyle="butt"), label))
        elif shows_bars and not shows_crosses:
            color = styling.INSIDE_COLOR if inside_drawn else styling.OUTSIDE_COLOR
            entries.append((Line2D([], [], color=color, linewidth=1.3), f"{level} confidence interval"))
        if shows_crosses:
            for color, style, label in self._cross_labels(level, shows_bars=shows_bars):
                entries.append((Line2D([], [], linestyle="none", color=color, **style), label))
        if self._shows_gaps:
            entries.append((Patch(facecolor=styling.GAP_COLOR), "gap"))
        if self.has("strip"):
            entries.append((Patch(facecolor=styling.STRIP_COLOR), "predictions"))
        return entries or [(Line2D([], [], color=styling.MUTED_COLOR, linewidth=1), "perfect calibration")]

    @property
    def _shows_gaps(self) -> bool:
        """Whether gaps are drawn: beside consistency bars they would mark the same distance twice."""
        return self.has("gaps") and not self.shows_deviation and self.settings["bars"] != "consistency"

    def _cross_labels(self, level: str, *, shows_bars: bool) -> list[tuple[str, dict[str, Any], str]]:
        """Color, mark and label of the crosses that are drawn; the label names the level if no bar does."""
        bar_kind = self.settings["bars"]
        if bar_kind is None:
            labels = "observed", ""
        elif not self.has_long_labels:
            suffix = "" if bar_kind == "consistency" and shows_bars else f" ({level})"
            labels = f"inside{suffix}", f"outside{suffix}"
        elif bar_kind == "confidence" and shows_bars:
            labels = f"observed ({level} interval)", f"{level} interval excludes predicted"
        elif bar_kind == "confidence":
            labels = f"observed, {level} interval includes predicted", f"observed, {level} interval excludes predicted"
        else:
            suffix = "" if shows_bars else f" the {level} consistency bar"
            labels = f"observed, inside{suffix}", f"observed, outside{suffix}"
        styles = (styling.INSIDE_COLOR, _INSIDE_CROSS_STYLE), (styling.OUTSIDE_COLOR, _OUTSIDE_CROSS_STYLE)
        candidates = zip(styles, labels, self._drawn_sides(), strict=True)
        return [(color, style, label) for (color, style), label, is_drawn in candidates if is_drawn]

    def _drawn_sides(self) -> tuple[bool, bool]:
        """Whether any cross lies inside its bar, and whether any lies outside, in the panels drawn."""
        if "bins_outside" not in self.panels:
            return True, False
        bins, n_outside = (self.panels[name][:MAX_PANELS] for name in ("bins", "bins_outside"))
        return bool((bins > n_outside).any()), bool(n_outside.sum())

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        low, high = float(panel_row["y_low"]), float(panel_row["y_high"])
        self.draw_axes(ax, low, high)
        self.draw_calibration_line(ax)
        if self._shows_gaps:
            _draw_gaps(ax, rows)
        y, bar_low, bar_high = self.marker_positions(rows)
        if self.settings["bars"] is not None and self.has("bars"):
            _mark_cut_bars(ax, rows["mean_prediction"], bar_low, bar_high, low, high)
            line_width = styling.bar_line_width(ax, len(rows["low"]))
            is_consistency = self.settings["bars"] == "consistency"
            _draw_bars(
                ax,
                rows["mean_prediction"],
                bar_low,
                bar_high,
                rows["outside"],
                line_width,
                is_consistency=is_consistency,
            )
        is_wide = styling.size_in_inches(ax)[0] > 3.4
        if self.has("crosses"):
            is_outside = rows.get("outside", np.zeros(len(y), dtype=bool))
            _draw_crosses(ax, rows["mean_prediction"], y, is_outside, is_wide=is_wide)
        if self.has("strip"):
            styling.draw_strip(
                ax,
                *_strip_edges_and_shares(rows, panel_row),
                panel_row["tallest"],
                styling.font_size(ax),
                shows_max_share=is_wide,
            )
        if is_wide and self.shows_deviation and self.has("sides"):
            _label_sides(ax, styling.font_size(ax), low, high, is_confidence=self.lens == "confidence")


_INSIDE_CROSS_STYLE: dict[str, Any] = {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.8}
_OUTSIDE_CROSS_STYLE: dict[str, Any] = {
    "marker": "X",
    "markersize": 8.5,
    "markeredgecolor": "white",
    "markeredgewidth": 0.6,
}


def _strip_edges_and_shares(rows: Mapping[str, Array], panel_row: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Edges and shares of the strip: the bins, or equal cells where the bins differ in width."""
    if "strip" not in panel_row:
        return rows["low"], rows["high"], rows["share"]
    occupied = np.flatnonzero(panel_row["strip"])
    n_cells = len(panel_row["strip"])
    return occupied / n_cells, (occupied + 1) / n_cells, panel_row["strip"][occupied]


def _draw_gaps(ax: Any, rows: Mapping[str, Array]) -> None:
    """Fill the width of each bin between its mean prediction and its event rate."""
    style = {"facecolor": styling.GAP_COLOR, "edgecolor": "none", "zorder": 1.2, "label": "gap"}
    styling.draw_boxes(ax, rows["low"], rows["high"], rows["mean_prediction"], rows["outcome_rate"], **style)


def _draw_crosses(ax: Any, x: Array, y: Array, is_outside: Array, *, is_wide: bool) -> None:
    """Draw a mark per bin, in a color of its own if it is outside of its bar."""
    scale = 1.0 if is_wide and len(x) <= 30 else 0.7
    for mask, color, mark in (
        (~is_outside, styling.INSIDE_COLOR, _INSIDE_CROSS_STYLE),
        (is_outside, styling.OUTSIDE_COLOR, _OUTSIDE_CROSS_STYLE),
    ):
        sizes = {name: mark[name] * scale for name in ("markersize", "markeredgewidth")}
        ax.plot(x[mask], y[mask], linestyle="none", color=color, zorder=4, label="crosses", **(mark | sizes))


def _draw_bars(
    ax: Any, x: Array, low: Array, high: Array, is_outside: Array, line_width: float, *, is_consistency: bool
) -> None:
    """Draw the bar of each bin, thick for consistency bars and with caps for intervals."""
    if is_consistency:
        colors = np.where(is_outside, styling.OUTSIDE_BAR_COLOR, styling.INSIDE_BAR_COLOR)
        ax.vlines(x, low, high, colors=colors, linewidth=line_width, zorder=2, label="bars")
        # The ends mark a bar of length zero, as at predictions of 0 and 1.
        for end in (low, high):
            ax.scatter(x, end, marker="_", s=(line_width + 2) ** 2, c=colors, linewidths=1.2, zorder=2.1)
        return
    colors = np.where(is_outside, styling.OUTSIDE_COLOR, styling.INSIDE_COLOR)
    ax.vlines(x, low, high, colors=colors, linewidth=1.3, zorder=3, label="bars")
    for end in (low, high):
        ax.scatter(x, end, marker="_", s=(0.6 * line_width + 3) ** 2, c=colors, linewidths=1.3, zorder=3)


def _mark_cut_bars(ax: Any, x: Array, bar_low: Array, bar_high: Array, low: float, high: float) -> None:
    """Draw small arrows where a bar continues beyond the axes."""
    for edge, marker, is_cut in ((high, "^", bar_high > high), (low, "v", bar_low < low)):
        x_cut = x[is_cut]
        ax.scatter(
            x_cut, np.full(len(x_cut), edge), marker=marker, s=14, color=styling.MUTED_COLOR, zorder=3.5, clip_on=False
        )


def _label_sides(ax: Any, size: float, low: float, high: float, *, is_confidence: bool) -> None:
    """Write along the right edge, if there is room, what values above and below zero mean."""
    above, below = ("underconfident →", "← overconfident") if is_confidence else ("underpredicts →", "← overpredicts")
    # Title and labels take about a fifth of the height.
    points_per_unit = (
        styling.POINTS_PER_INCH * styling.size_in_inches(ax)[1] * 0.8 * (1 - styling.STRIP_HEIGHT) / (high - low)
    )
    for text, height_of_side, sign, vertical_alignment in ((above, high, 1, "bottom"), (below, -low, -1, "top")):
        if styling.text_width(text, size - 1.5) < points_per_unit * height_of_side:
            style = {
                "fontsize": size - 1.5,
                "color": styling.MUTED_COLOR,
                "rotation": 90,
                "ha": "left",
                "va": vertical_alignment,
            }
            ax.annotate(
                text,
                (1.015, 0),
                xycoords=ax.get_yaxis_transform(),
                xytext=(0, 5 * sign),
                textcoords="offset points",
                gid=styling.SIDE_TEXT_GID,
                **style,
            )
