"""Draw the reliability of several models with bars, histogram strips and a table of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.reliability_plots import BinnedPlot
from trueodds.diagrams.model_comparison_text import format_error, format_interval
from trueodds.diagrams.model_styles import COLORS, LINE_STYLES, MARKERS, legend_name, sentence_name
from trueodds.diagrams.table_columns import select_part_of_model

MODEL_OFFSET = 2.2  # horizontal offset in points between models, so that equal bins do not hide each other


class ComparisonDiagram(model_strips_and_table.DiagramWithStrips, BinnedPlot):
    """Marks joined by lines, bars, strips and numbers of each model."""

    layers = ("bars", "lines", "marks", "strip", "numbers", "diagonal")
    row_noun = "bins"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height: the diagonal style is square, and the table of numbers has a line per model."""
        has_table = self.has("numbers") and len(self.names) > 1
        table_height = model_strips_and_table.number_table_height(len(self.names)) if has_table else 0.0
        if self.shows_deviation:
            return 6.4, model_strips_and_table.figure_height(self, 6.4, 4.7, self.strip_height, table_height)
        axes_width = 5.8 - model_strips_and_table.LABELS_WIDTH
        plot_height = axes_width * styling.equal_scale_aspect_ratio(*styling.RATE_LIMITS, 0.0)
        return 5.8, model_strips_and_table.figure_height(self, 5.8, 4.7, self.strip_height, table_height, plot_height)

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        if len(self.names) == 1:
            return super().default_title()
        return "Which model is better calibrated, and where?"

    def legend(self) -> list[tuple[Any, str]]:
        """The models, bars and hollow marks."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        has_bars = self.settings["bars"] is not None and self.has("bars")
        for i, name in enumerate(self.names):
            style: dict[str, Any] = {"linestyle": LINE_STYLES[i] if self.has("lines") else "none"}
            if self.has("marks"):
                style |= {"marker": MARKERS[i], "markersize": 5}
            elif has_bars and not self.has("lines"):
                style = {"linestyle": "-"}  # the bars alone have the model's color
            # Skip entries that would have neither a line nor a mark.
            if has_bars or self.has("lines") or self.has("marks"):
                entries.append((Line2D([], [], color=COLORS[i], linewidth=1.2, **style), legend_name(name)))
            elif self.has("strip"):
                entries.append((Patch(facecolor=COLORS[i], alpha=0.55), legend_name(name)))
        level = f"{100 * self.settings['level']:.4g}\u00a0%"
        if self.settings["bars"] is not None:
            is_consistency = self.settings["bars"] == "consistency"
            if self.has("bars"):
                bar_label = f"{level} consistency bar" if is_consistency else f"{level} interval"
                entries.append(
                    (Line2D([], [], color=styling.MUTED_COLOR, linewidth=5 if is_consistency else 1.3), bar_label)
                )
            if self.has("marks"):
                hollow_marker = Line2D(
                    [],
                    [],
                    linestyle="none",
                    marker="o",
                    markersize=5,
                    color=styling.MUTED_COLOR,
                    markerfacecolor="white",
                )
                entries.append((hollow_marker, "hollow: not significant"))
        if self.has("strip"):
            entries.append((Patch(facecolor=styling.MUTED_COLOR, alpha=0.55), "predictions"))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        low, high = float(panel_row["y_low"]), float(panel_row["y_high"])
        self.draw_axes(ax, low, high)
        if self.has("diagonal"):
            self.draw_calibration_line(ax)
        tables_by_model = [select_part_of_model(rows, name, "bin") for name in self.names]
        for i, table in enumerate(tables_by_model):
            self._draw_model(ax, i, table, low, high)
        if self.has("strip"):
            model_strips_and_table.draw_strips(ax, tables_by_model, self.strip_height, float(panel_row["tallest"]))
        has_table = self.has("numbers") and len(self.names) > 1 and len(self.panels["view"]) == 1
        if has_table and model_strips_and_table.number_table_fits(ax, len(self.names)):
            self._draw_number_table(ax, rows, size - 0.5)

    def _draw_model(self, ax: Any, i: int, rows: Mapping[str, Array], low: float, high: float) -> None:
        """Draw the bins of model number i: bars, line and marks, shifted sideways so that models do not overlap."""
        from matplotlib.transforms import ScaledTranslation

        color, x = COLORS[i], rows["mean_prediction"]
        y, bottom, top = self.marker_positions(rows)
        is_narrow = styling.size_in_inches(ax)[0] < 3.4
        step = (i - (len(self.names) - 1) / 2) * MODEL_OFFSET * (0.5 if is_narrow else 1.0)
        shifted_transform = ax.transData + ScaledTranslation(
            step / styling.POINTS_PER_INCH, 0, ax.figure.dpi_scale_trans
        )
        if self.settings["bars"] is not None and self.has("bars"):
            uses_thick_bars = self.settings["bars"] == "consistency"
            style = {"linewidth": 2.4, "alpha": 0.35} if uses_thick_bars else {"linewidth": 0.7 if is_narrow else 1.1}
            ax.vlines(
                x,
                bottom,
                top,
                colors=color,
                zorder=2 if uses_thick_bars else 3,
                label="bars",
                transform=shifted_transform,
                **style,
            )
            for edge, mark, is_cut in ((high, "^", top > high), (low, "v", bottom < low)):
                x_cut = x[is_cut]
                height = np.full(len(x_cut), edge)
                ax.plot(
                    x_cut,
                    height,
                    linestyle="none",
                    marker=mark,
                    markersize=3,
                    color=color,
                    zorder=3.5,
                    transform=shifted_transform,
                )
        if self.has("lines"):
            dashes: dict[str, Any] = {"color": color, "linestyle": LINE_STYLES[i], "linewidth": 1.0, "alpha": 0.8}
            ax.plot(x, y, zorder=3.2, label="lines", transform=shifted_transform, **dashes)
        if self.has("marks"):
            is_outside = rows["outside"] if self.settings["bars"] is not None else np.ones(len(x), dtype=bool)
            for mask, face_color in ((~is_outside, "white"), (is_outside, color)):
                ax.plot(
                    x[mask],
                    y[mask],
                    linestyle="none",
                    marker=MARKERS[i],
                    markersize=3.4 if is_narrow else 5.0,
                    markeredgewidth=0.8 if is_narrow else 1.2,
                    markeredgecolor=color,
                    markerfacecolor=face_color,
                    zorder=4,
                    label="marks",
                    transform=shifted_transform,
                )

    def _draw_number_table(self, ax: Any, rows: Mapping[str, Array], size: float) -> None:
        """Draw a table with the ECE, noise floor and difference of each model below the axes."""
        numbers_by_model = [
            {key: float(select_part_of_model(rows, name, "model")[key][0]) for key in NUMBER_TABLE_COLUMNS}
            for name in self.names
        ]
        difference_cells = [
            "–"
            if i == 0
            else format_error(result_values["difference"])
            + format_interval(result_values["difference_low"], result_values["difference_high"])
            for i, result_values in enumerate(numbers_by_model)
        ]
        columns = [
            ("ECE", [format_error(result_values["error"]) for result_values in numbers_by_model]),
            ("noise floor", [format_error(result_values["noise_floor"]) for result_values in numbers_by_model]),
            (f"minus {styling.shorten_text(sentence_name(self.names[0]), 60, size)}", difference_cells),
        ]
        model_strips_and_table.draw_number_table(ax, self.names, columns, size)


NUMBER_TABLE_COLUMNS = ("error", "noise_floor", "difference", "difference_low", "difference_high")
