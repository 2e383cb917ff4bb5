"""Draw the confidence histogram: bars, and lines at mean prediction and observed event rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams.base import Diagram


class ConfidenceHistogramPlot(Diagram):
    """The confidence histogram: a histogram and two vertical lines."""

    figure_size = (6.4, 4.2)
    layers = ("bars", "band", "lines")
    view_order = "largest gap"

    def default_title(self) -> str:
        """The question that the diagram answers."""
        if self.lens == "confidence":
            return "Does mean confidence match accuracy?"
        return "Does the mean prediction match the event rate?"

    def caption(self) -> str:
        """The view, and the difference between event rate and mean prediction."""
        points = 100 * float(self.panels["deviation"][0])
        return f"{self.panels['title'][0]}: {points:+.1f} points".replace("-", "−")

    def axis_labels(self) -> tuple[str, str]:
        """Predicted along x, share of rows along y."""
        return self.predicted_label, "Share of predictions"

    def legend(self) -> list[tuple[Any, str]]:
        """The lines, with their values if there is one panel, and the band; without both, the histogram."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("lines"):
            is_confidence = self.lens == "confidence"
            predicted_label = "mean confidence" if is_confidence else "mean predicted"
            observed_label = "accuracy" if is_confidence else "observed"
            if len(self.panels["view"]) == 1:
                predicted_label += f": {format_percent(float(self.panels['mean_prediction'][0]))}"
                observed_label += f": {format_percent(float(self.panels['outcome_rate'][0]))}"
            entries.append((Line2D([], [], color=styling.INSIDE_COLOR, linewidth=2), predicted_label))
            entries.append(
                (Line2D([], [], color=styling.OUTSIDE_COLOR, linewidth=2, linestyle=(0, (4, 1.5))), observed_label)
            )
        if self.has("band"):
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((Patch(facecolor=styling.INSIDE_BAR_COLOR, alpha=0.8), f"{level} consistency range"))
        if not entries and self.has("bars"):
            entries.append((Patch(facecolor=styling.STRIP_COLOR), "predictions"))
        return entries or [(Line2D([], [], linestyle="none"), "")]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        styling.style_axes(ax, styling.font_size(ax))
        styling.set_probability_axis(ax)
        ax.grid(False, axis="x")
        ax.set_ylim(0, panel_row["top"])
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}\u00a0%")
        if self.has("bars"):
            style = {"facecolor": styling.STRIP_COLOR, "edgecolor": "white", "linewidth": 0.6, "label": "share"}
            styling.draw_boxes(ax, rows["low"], rows["high"], np.zeros(1), rows["share"], **style)
        if self.has("band"):
            style = {"color": styling.INSIDE_BAR_COLOR, "alpha": 0.8, "linewidth": 0, "zorder": 1.5, "label": "band"}
            ax.axvspan(panel_row["bar_low"], panel_row["bar_high"], **style)
        if self.has("lines"):
            style = {"linewidth": 2, "zorder": 3}
            ax.axvline(panel_row["mean_prediction"], color=styling.INSIDE_COLOR, label="predicted", **style)
            ax.axvline(
                panel_row["outcome_rate"],
                color=styling.OUTSIDE_COLOR,
                linestyle=(0, (4, 1.5)),
                label="observed",
                **style,
            )
