"""Draw the cumulative diagram: line, band, extremes, steepest segment and an axis strip of scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_pvalue
from trueodds.diagrams._style.styling import AXIS_LINE_COLOR, AXIS_STRIP_HEIGHT, add_axis_strip
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.table_columns import select_part


class CumulativeResidualsPlot(Diagram):
    """The cumulative diagram: curve, band, extremes, steepest segment, and a strip with the scores."""

    layers = ("band", "curve", "extremes", "segment", "ticks", "numbers")
    row_noun = "parts"
    view_order = "most significant range"
    figure_size = (6.4, 4.8)

    @property
    def strip_height(self) -> float:  # type: ignore[override]
        """The strip's share of the height."""
        return AXIS_STRIP_HEIGHT if self.has("ticks") else 0.0

    def default_title(self) -> str:
        """The question that the diagram answers."""
        if self.lens == "confidence":
            return "Where does confidence deviate from accuracy?"
        return "Where do predictions deviate from outcomes?"

    def caption(self) -> str:
        """The view, ECCE-R and its p-value."""
        return f"{self.panels['title'][0]}: {self.panels['aside'][0]}"

    def axis_labels(self) -> tuple[str, str]:
        """Share of rows along x, cumulative residual along y."""
        order = "least confident first" if self.lens == "confidence" else "lowest score first"
        return f"Share of predictions, {order}", "Cumulative residual"

    def legend(self) -> list[tuple[Any, str]]:
        """The legend entries of the layers that are drawn."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("band"):
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((Patch(facecolor=styling.INSIDE_BAR_COLOR, alpha=0.55), f"simultaneous band ({level})"))
        if self.has("curve"):
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=1.8), "cumulative residual"))
        if self.has("segment") and (self.table["part"] == "segment").any():
            slopes = self.panels["slope"]
            slope_text = f" (slope {slopes[0]:+.2g})".replace("-", "−") if len(slopes) == 1 else ""
            entries.append((Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=3), f"steepest segment{slope_text}"))
        if self.has("extremes"):
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
            entries.append((Line2D([], [], color=styling.TEXT_COLOR, **style), "minimum, maximum"))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        is_wide = styling.size_in_inches(ax)[0] > 3.2
        styling.style_axes(ax, size)
        styling.set_probability_axis(ax)
        low, high = float(panel_row["y_low"]), float(panel_row["y_high"])
        ax.set_ylim(low - (high - low) * self.strip_height / (1 - self.strip_height), high)
        ax.set_yticks(_residual_ticks(ax, low, high))
        ax.yaxis.set_major_formatter(_format_signed_points)
        ax.axhline(0, color=styling.MUTED_COLOR, linewidth=1, zorder=1.5)
        if self.has("band"):
            band = float(panel_row["band"])
            ax.fill_between(
                [0, 1], -band, band, color=styling.INSIDE_BAR_COLOR, alpha=0.55, linewidth=0, zorder=1, label="band"
            )
        curve = select_part(rows, "curve")
        x, y = curve["share_low"], curve["difference"]
        if self.has("curve"):
            ax.plot(x, y, color=styling.INSIDE_COLOR, linewidth=1.6 if is_wide else 1.2, zorder=3, label="curve")
        if self.has("segment"):
            segments = select_part(rows, "segment")
            for first, last in zip(segments["share_low"], segments["share_high"], strict=True):
                mask = (x >= first) & (x <= last)
                ax.plot(
                    x[mask],
                    y[mask],
                    color=styling.OUTSIDE_COLOR,
                    linewidth=3 if is_wide else 2,
                    zorder=3.1,
                    label="segment",
                )
        if self.has("extremes"):
            extremes = select_part(rows, "extreme")
            style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5 if is_wide else 3.5}
            ax.plot(
                extremes["share_low"],
                extremes["difference"],
                color=styling.TEXT_COLOR,
                zorder=4,
                label="extremes",
                **style,
            )
        if self.has("ticks"):
            _draw_axis_strip(ax, select_part(rows, "tick"), size)
        if self.has("numbers") and len(self.panels["view"]) == 1:
            _draw_errors(ax, panel_row, size)


def _draw_axis_strip(ax: Any, ticks: Mapping[str, Array], size: float) -> None:
    """Draw the strip of scores: a tick at the share of rows with scores up to a round one."""
    strip, points_per_unit = add_axis_strip(ax)
    first, last = strip.get_xlim()
    style: dict[str, Any] = {"fontsize": size - 1.5, "color": styling.MUTED_COLOR, "va": "center", "gid": "score"}
    strip_label = "score:"
    occupied = [(first, first + (styling.text_width(strip_label, size - 1.5) + 10) / points_per_unit)]
    strip.text(first + 4 / points_per_unit, 0.4, strip_label, ha="left", **style)
    for share, score in zip(ticks["share_low"], ticks["score_low"], strict=True):
        strip.plot([share, share], [0.72, 1], color=AXIS_LINE_COLOR, linewidth=0.8, label="tick")
        label = f"{100 * score:.4g}\u00a0%"
        half_width = (styling.text_width(label, size - 1.5) / 2 + 3) / points_per_unit
        box = share - half_width, share + half_width
        if box[1] <= last and all(box[1] <= left or box[0] >= right for left, right in occupied):
            occupied.append(box)
            strip.text(share, 0.4, label, ha="center", **style)


def _draw_errors(ax: Any, panel_row: Mapping[str, Any], size: float) -> None:
    """Write both errors and their p-values above the curve, if they fit."""
    text = (
        f"ECCE-MAD {100 * panel_row['ecce_mad']:.2f} points, {format_pvalue(panel_row['pvalue_mad'])}  ·  "
        f"ECCE-R {100 * panel_row['ecce_r']:.2f} points, {format_pvalue(panel_row['pvalue_r'])}"
    )
    if styling.text_width(text, size - 1) > styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0] * 0.95:
        return
    style: dict[str, Any] = {"fontsize": size - 1, "color": styling.TEXT_COLOR, "ha": "right", "va": "top"}
    ax.text(1.0, float(panel_row["y_high"]), text, gid="numbers", zorder=3.5, **style)


def _residual_ticks(ax: Any, low: float, high: float) -> list[float]:
    """Round ticks of the residual axis above the strip, few in low axes."""
    from matplotlib.ticker import MaxNLocator

    height = styling.size_in_inches(ax)[1]
    max_ticks = 7 if height > 2.5 else 5 if height > 1 else 3
    ticks = MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    lowest_tick = low + 0.05 * (high - low)  # a label there would overlap the strip
    return [float(tick) for tick in ticks if lowest_tick <= tick <= high]


def _format_signed_points(value: float, _: Any = None) -> str:
    """Format a difference in percent with its sign, for a tick."""
    if abs(value) < 1e-12:
        return "0"
    return f"{100 * value:+.3g}\u00a0pt".replace("-", "−")
