"""Draw the CORP reliability diagram: curve, band, strips of predictions and score decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_score
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams.table_columns import select_part

MAX_BLOCKS_WITH_LARGE_MARKS = 60  # number of blocks beyond which their marks shrink
HALF_MARK_WIDTH = 0.005  # half of the width of a mark along x


class CorpDiagram(UnitSquarePlot):
    """The CORP reliability diagram: isotonic curve, band, histogram strips and score decomposition."""

    layers = ("band", "curve", "marks", "strip", "numbers", "diagonal", "means")
    view_order = "largest MCB"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Inches of the figure, with room for the strip below and, in the style `discrimination`, at the right."""
        return (6.0, 6.7) if self._shows_rate_strip else (5.2, 6.7)

    @property
    def aspect_ratio(self) -> float:  # type: ignore[override]
        """The height of the axes relative to their width, which the strip at the right enlarges."""
        return super().aspect_ratio * (1 - styling.STRIP_HEIGHT * self._shows_rate_strip)

    @property
    def _shows_rate_strip(self) -> bool:
        """Whether the histogram of the recalibrated rates is drawn along the right edge."""
        return self.settings["style"] == "discrimination" and self.has("strip")

    def default_title(self) -> str:
        """The question that the diagram answers."""
        if self.settings["style"] == "discrimination":
            return "How well do predictions separate events from non-events?"
        return super().default_title()

    def legend(self) -> list[tuple[Any, str]]:
        """The legend entries of the layers that are drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        has_segments_outside = bool((self.table["part"] == "outside").any())
        style: dict[str, Any] = {"linestyle": "-" if self.has("curve") else "none"}
        if self.has("marks"):
            style |= {"marker": "o", "markersize": 4}
        if self.has("curve") or self.has("marks"):
            label = "observed, isotonic" if self.has_long_labels else "observed"
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=1.8, **style), label))
            if has_segments_outside:
                is_consistency_band = self.settings["band"] == "consistency"
                description = "outside the band" if is_consistency_band else "diagonal outside the band"
                description = description if self.has_long_labels else "outside"
                entries.append((Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=3.0, **style), description))
        if self.settings["band"] and self.has("band"):
            entries.append((Patch(facecolor=styling.INSIDE_BAR_COLOR), self._band_label()))
        shared_entries = self.shared_legend_entries()
        if self.settings["style"] == "discrimination" and self.has("means"):
            position = 1 if self.has("diagonal") else 0
            shared_entries.insert(
                position,
                (
                    Line2D([], [], **_MEAN_LINE_STYLE),
                    "means: predicted |, observed —" if self.has_long_labels else "means",
                ),
            )
        return entries + shared_entries

    def _band_label(self) -> str:
        """The label of the band in the legend."""
        level = f"{100 * self.settings['level']:.4g}\u00a0%"
        if not self.has_long_labels:
            return f"{level} {'consistency' if self.settings['band'] == 'consistency' else 'interval'}"
        return {
            "consistency": f"{level} consistency band (pointwise)",
            "confidence": f"{level} pointwise band",
            "honest": f"{level} simultaneous band",
        }[self.settings["band"]]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        is_wide = self.draw_axes(ax, size)
        if self._shows_rate_strip:
            left, right = ax.get_xlim()
            ax.set_xlim(left, left + (right - left) / (1 - styling.STRIP_HEIGHT))
            _draw_rate_strip(ax, select_part(rows, "rates"), panel_row["tallest_rate"])
        if self.has("strip"):
            strip = select_part(rows, "strip")
            styling.draw_strip(
                ax, strip["x_low"], strip["x_high"], strip["share"], panel_row["tallest"], size, shows_max_share=is_wide
            )
        if self.settings["style"] == "discrimination" and self.has("means"):
            ax.plot([panel_row["mean_prediction"]] * 2, [0, 1], zorder=2.2, label="mean predicted", **_MEAN_LINE_STYLE)
            ax.plot([0, 1], [panel_row["outcome_rate"]] * 2, zorder=2.2, label="mean observed", **_MEAN_LINE_STYLE)
        if self.settings["band"] and self.has("band"):
            _draw_band(ax, select_part(rows, "band"))
        blocks, segments_outside = select_part(rows, "block"), select_part(rows, "outside")
        x, y = np.stack([blocks["x_low"], blocks["x_high"]], axis=1).ravel(), np.repeat(blocks["rate"], 2)
        marker_size = (4.2 if is_wide else 2.6) * (1.0 if len(blocks["rate"]) <= MAX_BLOCKS_WITH_LARGE_MARKS else 0.6)
        line_width = 1.8 if is_wide else 1.3
        styles: dict[str, dict[str, Any]] = {
            "curve": {"linewidth": line_width},
            "marks": {"linestyle": "none", "marker": "o", "markersize": marker_size, "markeredgewidth": 0},
        }
        for layer, style in styles.items():
            if self.has(layer):
                ax.plot(x, y, color=styling.INSIDE_COLOR, zorder=3, label=layer, **style)
                for low, high in zip(segments_outside["x_low"], segments_outside["x_high"], strict=True):
                    _draw_outside(ax, x, y, low, high, label=f"{layer} outside", **style)
        if self.has("numbers") and min(styling.size_in_inches(ax)) > 2.2:
            _draw_decomposition(ax, panel_row, self.settings["score"], size)


_MEAN_LINE_STYLE: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}


def _draw_band(ax: Any, band: Mapping[str, Array]) -> None:
    """Draw the band, which is constant between `x_low` and `x_high` of each row."""
    x = np.stack([band["x_low"], band["x_high"]], axis=1).ravel()
    low, high = np.repeat(band["low"], 2), np.repeat(band["high"], 2)
    ax.fill_between(x, low, high, facecolor=styling.INSIDE_BAR_COLOR, alpha=0.55, linewidth=0, zorder=1.4, label="band")
    if len(x) == 2 and x[0] == x[1]:  # a single score: draw the range as a line
        ax.vlines(x[0], low[0], high[0], colors=styling.INSIDE_BAR_COLOR, linewidth=7, zorder=1.4, label="band")


def _draw_outside(ax: Any, x: Array, y: Array, low: float, high: float, **style: Any) -> None:
    """Draw the curve between two scores, and half a mark beyond, in the color of segments outside the band."""
    if "marker" in style:
        is_within = (x >= low - 1e-12) & (x <= high + 1e-12)
        x, y = x[is_within], y[is_within]
    else:
        style["linewidth"] *= 1.8
        style["solid_capstyle"] = "butt" if x[-1] > x[0] else "projecting"
        x_limits = np.clip([low - HALF_MARK_WIDTH, high + HALF_MARK_WIDTH], x[0], x[-1])
        is_within = (x > x_limits[0]) & (x < x_limits[1])
        first, last = np.interp(x_limits, x, y)
        x = np.concatenate([x_limits[:1], x[is_within], x_limits[1:]])
        y = np.concatenate([[first], y[is_within], [last]])
    ax.plot(x, y, color=styling.OUTSIDE_COLOR, zorder=3.1, **style)


def _draw_rate_strip(ax: Any, rates: Mapping[str, Array], max_share: float) -> None:
    """Draw the share of rows by recalibrated rate along the right edge, above the strip."""
    # In data coordinates, since a legend may still extend the y axis.
    low, high = styling.RATE_LIMITS
    transform = ax.get_yaxis_transform()
    strip = ax.inset_axes(
        (1 - styling.STRIP_HEIGHT, low, styling.STRIP_HEIGHT, high - low), transform=transform, zorder=3
    )
    strip.set_label("strip")
    strip.set_xlim(0, max_share * 1.12)
    strip.set_ylim(low, high)
    styling.draw_boxes(
        strip,
        np.zeros(len(rates["share"])),
        rates["share"],
        rates["low"],
        rates["high"],
        facecolor=styling.STRIP_COLOR,
        edgecolor="white",
        linewidth=0.5,
        label="share",
    )
    strip.set_xticks([])
    strip.set_yticks([])
    for name, spine in strip.spines.items():
        spine.set_visible(name == "left")
        spine.set_color(styling.AXIS_LINE_COLOR)
        spine.set_linewidth(0.8)
    strip.set_facecolor(styling.STRIP_BACKGROUND_COLOR)


def _draw_decomposition(ax: Any, panel_row: Mapping[str, Any], score_name: str, size: float) -> None:
    """Write score, MCB, DSC and UNC into the corner of the axes that the curve leaves free."""
    name = {"brier": "Brier score", "log_loss": "log loss"}[score_name]
    lines = [
        f"{name} {format_score(panel_row['score'])}",
        f"miscalibration MCB {format_score(panel_row['mcb'])}",
        f"discrimination DSC {format_score(panel_row['dsc'])}",
        f"uncertainty UNC {format_score(panel_row['unc'])}",
    ]
    is_upper_left = panel_row["corner"] == "upper left"
    ax.text(
        0.0 if is_upper_left else 1.0,
        1.0 if is_upper_left else 0.0,
        "\n".join(lines),
        fontsize=size - 1,
        color=styling.TEXT_COLOR,
        ha="left" if is_upper_left else "right",
        va="top" if is_upper_left else "bottom",
        linespacing=1.35,
        gid="numbers",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
        zorder=3.5,
    )
