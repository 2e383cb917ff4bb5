"""Draw decision curves with their bands, treating everyone, treating no one, and the predictions below the axes."""

from __future__ import annotations

from typing import Any

from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams.model_styles import COLORS, LINE_STYLES, MARKERS, legend_name, marks_thresholds
from trueodds.diagrams.table_columns import select_part_of_model

ALL_STYLE: dict[str, Any] = {"color": styling.MUTED_COLOR, "linewidth": 1.3, "linestyle": (0, (5, 1.6))}
NONE_STYLE: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.1, "linestyle": "-"}
X_MARGIN = 0.015  # share of the width on either side of the thresholds


class DecisionCurveDiagram(model_strips_and_table.DiagramWithStrips):
    """Net benefit of each model with its band, the two default strategies, and strips of the predictions."""

    layers = ("band", "curves", "all", "none", "strip")
    row_noun = "table rows"
    view_order = "highest event rate"
    figure_size = (6.4, 4.8)

    @property
    def _shows_bands(self) -> bool:
        """Whether bands are drawn."""
        return bool(self.settings["banded"]) and self.has("band")

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        if len(self.names) == 1:
            return "Is treating by the model better than treating all or none?"
        return "Which model has the higher net benefit, and at which thresholds?"

    def axis_labels(self) -> tuple[str, str]:
        """The threshold along x, the net benefit along y."""
        return "Threshold probability", "Net benefit"

    def legend(self) -> list[tuple[Any, str]]:
        """The models, their bands and the default strategies."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("curves"):
            for i, name in enumerate(self.names):
                mark: dict[str, Any] = (
                    {"marker": MARKERS[i], "markersize": 4} if marks_thresholds(self.settings["thresholds"]) else {}
                )
                line = Line2D([], [], color=COLORS[i], linestyle=LINE_STYLES[i], linewidth=1.7, **mark)
                entries.append((line, legend_name(name)))
        if self._shows_bands:
            level = f"{100 * self.settings['level']:.4g}\u00a0% {'pointwise ' if self.has_long_labels else ''}band"
            color = COLORS[0] if len(self.names) == 1 else styling.MUTED_COLOR
            entries.append((Patch(facecolor=color, alpha=0.22), level))
        if self.has("all"):
            entries.append((Line2D([], [], **ALL_STYLE), "treat all"))
        if self.has("none"):
            entries.append((Line2D([], [], **NONE_STYLE), "treat none"))
        if self.has("strip"):
            color = COLORS[0] if len(self.names) == 1 else styling.MUTED_COLOR
            entries.append((Patch(facecolor=color, alpha=0.55), "predictions"))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        x_low, x_high, y_low, y_high = (float(panel_row[name]) for name in ("x_low", "x_high", "y_low", "y_high"))
        _set_threshold_axis(ax, x_low, x_high)
        styling.set_limits_above_strip(ax, y_low, y_high, self.strip_height)
        _set_net_benefit_ticks(ax, y_low, y_high)
        is_narrow = styling.size_in_inches(ax)[0] < 3.4
        curves = [select_part_of_model(rows, name, "curve") for name in self.names]
        if self.has("none"):
            ax.axhline(0.0, zorder=2, label="none", **NONE_STYLE)
        if self.has("all"):
            ax.plot(curves[0]["threshold"], curves[0]["treat_all"], zorder=2.2, label="all", **ALL_STYLE)
        for i, curve in enumerate(curves):
            if self._shows_bands:
                limits = curve["threshold"], curve["low"], curve["high"]
                if marks_thresholds(self.settings["thresholds"]):
                    ax.vlines(*limits, color=COLORS[i], alpha=0.35, linewidth=3, zorder=1.8, label="band")
                else:
                    ax.fill_between(*limits, color=COLORS[i], alpha=0.2, linewidth=0, zorder=1.8, label="band")
            if self.has("curves"):
                mark = (
                    {"marker": MARKERS[i], "markersize": 3 if is_narrow else 4}
                    if marks_thresholds(self.settings["thresholds"])
                    else {}
                )
                ax.plot(
                    curve["threshold"],
                    curve["net_benefit"],
                    color=COLORS[i],
                    linestyle=LINE_STYLES[i],
                    linewidth=1.2 if is_narrow else 1.7,
                    zorder=3,
                    label="curve",
                    **mark,
                )
        if self.has("strip"):
            strips = [select_part_of_model(rows, name, "strip") for name in self.names]
            max_share = max((float(share) for strip in strips for share in strip["share"]), default=1.0)
            model_strips_and_table.draw_strips(ax, strips, self.strip_height, max_share)


def _set_threshold_axis(ax: Any, low: float, high: float) -> None:
    """Set up an axis of thresholds along x, with a few round ticks in percent."""
    from matplotlib.ticker import MaxNLocator

    width = styling.size_in_inches(ax)[0]
    margin = X_MARGIN * max(high - low, 0.01)
    ax.set_xlim(low - margin, high + margin)
    locator = MaxNLocator(8 if width > 4.5 else 5 if width > 2.2 else 2, steps=[1, 2, 2.5, 5, 10])
    ticks = [float(tick) for tick in locator.tick_values(low, high) if low - 1e-9 <= tick <= high + 1e-9]
    ax.set_xticks(ticks, [f"{100 * tick:.3g}\u00a0%" for tick in ticks])
    if width <= 2.2:  # a panel of a grid
        styling.align_outer_labels(ax)


def _set_net_benefit_ticks(ax: Any, low: float, high: float) -> None:
    """Set few round ticks along y, between the limits of the plot above the strip."""
    from matplotlib.ticker import MaxNLocator

    height = styling.size_in_inches(ax)[1]
    locator = MaxNLocator(7 if height > 2.5 else 4 if height > 1 else 2, steps=[1, 2, 2.5, 5, 10])
    ax.set_yticks([float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}".replace("-", "−"))
