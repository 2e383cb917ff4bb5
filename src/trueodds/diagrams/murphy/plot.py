"""Draw Murphy curves with bootstrap bands, histogram strips and a table of scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams.model_comparison_text import format_error, format_interval
from trueodds.diagrams.model_styles import COLORS, LINE_STYLES, MARKERS, legend_name, marks_thresholds, sentence_name
from trueodds.diagrams.table_columns import select_part_of_model

PART_DASHES = {"mcb": (0, (4, 1.5)), "dsc": (0, (1.2, 1.2)), "unc": (0, (6, 1.5, 1.2, 1.5))}
SIGNIFICANT_STYLE: dict[str, Any] = {"linewidth": 4.5, "alpha": 0.3, "solid_capstyle": "butt"}
PART_LABELS = {"mcb": "miscalibration", "dsc": "discrimination", "unc": "uncertainty"}


class MurphyDiagram(model_strips_and_table.DiagramWithStrips):
    """Murphy curves of each model with bands, histogram strips and a table of numbers."""

    layers = ("curves", "band", "beyond", "parts", "strip", "numbers")
    row_noun = "table rows"
    view_order = "largest miscalibration"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height, with a line for each model in the table of numbers."""
        return 6.4, model_strips_and_table.figure_height(
            self,
            6.4,
            4.7,
            self.strip_height,
            model_strips_and_table.number_table_height(len(self.names)) if self._shows_numbers else 0.0,
        )

    @property
    def _shows_numbers(self) -> bool:
        """Whether a table of scores is drawn below the axes: for several models in one view."""
        return self.has("numbers") and len(self.names) > 1 and len(self.panels["view"]) == 1

    @property
    def _shows_bands(self) -> bool:
        """Whether bands around the curves are drawn."""
        return self.settings["banded"] and self.has("band") and bool((self.table["part"] == "band").any())

    @property
    def _shows_decomposition(self) -> bool:
        """Whether the parts of the score are drawn as curves beside it."""
        return bool(self.settings["parts"]) and self.has("parts")

    @property
    def _shows_difference(self) -> bool:
        """Whether thresholds with a significant difference are marked, and there are some."""
        return self.has("beyond") and bool((np.abs(self.table["beyond"][self.table["part"] == "band"]) == 1).any())

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        if len(self.names) == 1:
            return "What do decisions based on these probabilities cost?"
        return "Which model has the lower cost, and at which thresholds?"

    def axis_labels(self) -> tuple[str, str]:
        """The threshold along x, the cost along y."""
        return "Decision threshold", "Mean cost of decisions"

    def legend(self) -> list[tuple[Any, str]]:
        """The models and the other layers."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        is_single_model = len(self.names) == 1
        entries: list[tuple[Any, str]] = []
        if self.has("curves"):
            for i, name in enumerate(self.names):
                mark: dict[str, Any] = (
                    {"marker": MARKERS[i], "markersize": 4} if marks_thresholds(self.settings["thresholds"]) else {}
                )
                line = Line2D([], [], color=COLORS[i], linestyle=LINE_STYLES[i], linewidth=1.6, **mark)
                entries.append((line, "cost" if is_single_model else legend_name(name)))
        if self._shows_bands:
            level = f"{100 * self.settings['level']:.4g}\u00a0% interval"
            entries.append((Patch(facecolor=COLORS[0] if is_single_model else styling.MUTED_COLOR, alpha=0.22), level))
        if self._shows_decomposition:
            for part, dashes in PART_DASHES.items():
                color = styling.MUTED_COLOR if part == "unc" or not is_single_model else COLORS[0]
                entries.append((Line2D([], [], color=color, linestyle=dashes, linewidth=1.3), PART_LABELS[part]))
        if self._shows_difference:
            significant_line = Line2D([], [], color=styling.MUTED_COLOR, **SIGNIFICANT_STYLE)
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((significant_line, f"differs from {legend_name(self.names[0])} ({level})"))
        if self.has("strip"):
            entries.append(
                (Patch(facecolor=COLORS[0] if is_single_model else styling.MUTED_COLOR, alpha=0.55), "predictions")
            )
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        styling.set_probability_axis(ax)
        high = float(panel_row["y_high"])
        styling.set_limits_above_strip(ax, 0.0, high, self.strip_height)
        _set_ticks(ax, high)
        is_narrow = styling.size_in_inches(ax)[0] < 3.4
        for i, name in enumerate(self.names):
            self._draw_model(
                ax, i, {part: select_part_of_model(rows, name, part) for part in ("curve", "band")}, is_narrow=is_narrow
            )
        if self._shows_decomposition:
            curve = select_part_of_model(rows, self.names[0], "curve")
            style: dict[str, Any] = {
                "color": styling.MUTED_COLOR,
                "linestyle": PART_DASHES["unc"],
                "label": "unc",
                "zorder": 2.4,
            }
            ax.plot(curve["threshold"], curve["unc"], linewidth=1.1, **style)
        if self.has("strip"):
            tables = [select_part_of_model(rows, name, "strip") for name in self.names]
            model_strips_and_table.draw_strips(ax, tables, self.strip_height, float(panel_row["tallest"]))
        if self._shows_numbers and model_strips_and_table.number_table_fits(ax, len(self.names)):
            self._draw_number_table(ax, rows, size - 0.5)

    def _draw_model(self, ax: Any, i: int, parts: Mapping[str, Mapping[str, Array]], *, is_narrow: bool) -> None:
        """Draw the curves of model number i, with its band; `parts` are the parts of its rows."""
        curve, band = parts["curve"], parts["band"]
        x, color = curve["threshold"], COLORS[i]
        if self._shows_bands and len(band["threshold"]):
            limits = band["threshold"], band["low"], band["high"]
            if marks_thresholds(self.settings["thresholds"]):
                ax.vlines(*limits, color=color, alpha=0.35, linewidth=3, zorder=2, label="band")
            else:
                ax.fill_between(*limits, color=color, alpha=0.2, linewidth=0, zorder=2, label="band")
        if self.has("curves"):
            line_width = 1.1 if is_narrow else 1.6
            mark = (
                {"marker": MARKERS[i], "markersize": 3 if is_narrow else 4}
                if marks_thresholds(self.settings["thresholds"])
                else {}
            )
            style: dict[str, Any] = {
                "linestyle": LINE_STYLES[i],
                "linewidth": line_width,
                "zorder": 3.2,
                "label": "curve",
            }
            ax.plot(x, curve["score"], color=color, **style, **mark)
        if self.has("beyond") and len(band["threshold"]):
            significant_score = np.where(np.abs(band["beyond"]) == 1, band["score"], np.nan)
            if np.isfinite(significant_score).any():
                # Behind all curves, pale and with square ends: several such strokes must not hide the curves.
                significance_style = (
                    SIGNIFICANT_STYLE
                    | ({"linewidth": 3.0} if is_narrow else {})
                    | ({"marker": "o"} if marks_thresholds(self.settings["thresholds"]) else {})
                )
                ax.plot(
                    band["threshold"],
                    significant_score,
                    color=color,
                    zorder=2.5,
                    label="beyond",
                    markersize=10,
                    **significance_style,
                )
        if self._shows_decomposition:
            for part in ("mcb", "dsc"):
                style = {"linestyle": PART_DASHES[part], "linewidth": 0.9 if is_narrow else 1.2, "label": part}
                ax.plot(
                    x,
                    curve[part],
                    color=color,
                    marker="." if marks_thresholds(self.settings["thresholds"]) else None,
                    **style,
                )

    def _draw_number_table(self, ax: Any, rows: Mapping[str, Array], size: float) -> None:
        """Draw the table of scores of all models below the axes."""
        tables = [select_part_of_model(rows, name, "model") for name in self.names]
        score = {"brier": "Brier", "log_loss": "log loss"}[self.settings["score"]]
        columns = score_columns(tables, self.names[0], score, size)
        model_strips_and_table.draw_number_table(ax, self.names, columns, size)


def score_columns(
    tables: list[dict[str, Array]], first_model: str, score_label: str, size: float
) -> list[tuple[str, list[str]]]:
    """Score, its parts and the difference to the first model, formatted for the table of numbers."""
    rows = [{name: float(values[0]) for name, values in table.items() if values.dtype.kind == "f"} for table in tables]
    difference_cells = [
        "–"
        if i == 0
        else format_error(row["difference"]) + format_interval(row["difference_low"], row["difference_high"])
        for i, row in enumerate(rows)
    ]
    return [
        (score_label, [format_error(row["score"]) for row in rows]),
        ("MCB", [format_error(row["mcb"]) for row in rows]),
        ("DSC", [format_error(row["dsc"]) for row in rows]),
        (f"minus {styling.shorten_text(sentence_name(first_model), 60, size)}", difference_cells),
    ]


def _set_ticks(ax: Any, high: float) -> None:
    """Set few round ticks along y, from 0 to `high`."""
    from matplotlib.ticker import MaxNLocator

    height = styling.size_in_inches(ax)[1]
    ticks = MaxNLocator(6 if height > 2.5 else 4 if height > 1 else 2).tick_values(0.0, high)
    ax.set_yticks([float(tick) for tick in ticks if 0 <= tick <= high])
