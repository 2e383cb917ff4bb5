"""Draw log loss, accuracy, ECE and p-value over the epochs of each training run."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams.base import Diagram

# Okabe & Ito, from dark to light so that runs differ in grayscale too. Further runs share one color.
_RUN_COLORS = (styling.INSIDE_COLOR, styling.OUTSIDE_COLOR, "#009E73", "#222222", "#CC79A7", "#E69F00")
_RUN_MARKERS = ("o", "s", "^", "D", "v", "P")
_PART_TITLES = (("log_loss", "Log loss"), ("accuracy", "Accuracy"), ("ece", "ECE"), ("pvalue", "p-value"))
_MAX_NAME_WIDTH = 120.0  # largest width in points of the name of a run in the legend
_GAP_X, _GAP_Y = 0.62, 0.36  # inches between the parts, with room for tick labels, and for a title
_MAX_EPOCHS_WITH_MARKERS = 25  # a line over more epochs has no markers
_LOWEST_LOSS_STYLE: dict[str, Any] = {
    "marker": "*", "markersize": 11, "color": "#FFD23F", "markeredgecolor": "#222222", "markeredgewidth": 0.8
}  # fmt: skip
_NOISE_FLOOR_STYLE: dict[str, Any] = {"color": styling.MUTED_COLOR, "linestyle": (0, (1, 1.4)), "linewidth": 1.4}
_THRESHOLD_STYLE: dict[str, Any] = {"color": styling.MUTED_COLOR, "linestyle": (0, (4, 2)), "linewidth": 1.0}


class TrainingPlot(Diagram):
    """Log loss, accuracy, ECE and p-value over the epochs, in four parts of a panel, with a line for each run."""

    layers = ("intervals", "noise_floor", "threshold", "lowest_log_loss")
    figure_size = (6.4, 5.2)
    row_noun = "epochs"
    has_inset_axes = True

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "Is the model calibrated when its log loss is lowest?"

    def axis_labels(self) -> tuple[str, str]:
        """None, because each part has its own labels."""
        return "", ""

    @property
    def runs(self) -> list[str]:
        """The names of the runs, in order."""
        return [str(run) for run in dict.fromkeys(self.table["run"])]

    def legend(self) -> list[tuple[Any, str]]:
        """The runs and the other marks."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        runs = self.runs
        if 1 < len(runs) <= len(_RUN_COLORS):
            entries += [
                (Line2D([], [], markersize=4, **_run_style(i, len(runs))), _short_name(run))
                for i, run in enumerate(runs)
            ]
        elif len(runs) > 1:
            entries.append((Line2D([], [], **_run_style(0, len(runs))), f"{len(runs)} runs"))
        if self.has("lowest_log_loss"):
            entries.append((Line2D([], [], linestyle="none", **_LOWEST_LOSS_STYLE), "lowest log loss"))
        if self.has("noise_floor"):
            entries.append((Line2D([], [], **_NOISE_FLOOR_STYLE), "noise floor"))
        level = self.settings["level"]
        if self.has("threshold"):
            entries.append((Line2D([], [], **_THRESHOLD_STYLE), f"p = {100 * (1 - level):.3g}\u00a0%"))
        if self.has("intervals"):
            entries.append((Patch(facecolor=styling.MUTED_COLOR, alpha=0.22), f"{100 * level:.4g}\u00a0% interval"))
        return entries or [(Line2D([], [], **_run_style(0, 1)), "each epoch")]

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw the four parts as inset axes, positioned in data coordinates."""
        rows = self.rows(panel)
        ax.set_axis_off()
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        axes_width, axes_height = styling.size_in_inches(ax)
        gap_x, gap_y = min(_GAP_X / axes_width, 0.3), min(_GAP_Y / axes_height, 0.25)
        # Titles of the upper parts and the axis label below stay inside; only tick labels are outside the axes.
        top_margin, bottom_margin = min(0.22 / axes_height, 0.15), min(0.17 / axes_height, 0.12)
        width, height = (1 - gap_x) / 2, (1 - gap_y - top_margin - bottom_margin) / 2
        for i, (column, title) in enumerate(_PART_TITLES):
            row, column_number = divmod(i, 2)
            left, bottom = column_number * (width + gap_x), bottom_margin + (1 - row) * (height + gap_y)
            # In data coordinates: where a legend is put above, the limits grow and the parts make room.
            part_axes = ax.inset_axes((left, bottom, width, height), transform=ax.transData)
            part_axes.set_label(column)
            self._draw_part(part_axes, rows, column, title)
            if row == 0:
                part_axes.tick_params(labelbottom=False)
            else:
                part_axes.set_xlabel("Epoch", fontsize=styling.font_size(ax), color=styling.TEXT_COLOR, labelpad=2)

    def _draw_part(self, ax: Any, rows: dict[str, Array], column: str, title: str) -> None:
        """Draw the column of the table that one part shows, for all runs."""
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        max_width = styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0]
        ax.set_title(styling.shorten_text(title, max_width, size + 0.5, "bold"), loc="left", pad=3, fontsize=size + 0.5,
                     fontweight="bold", color=styling.TEXT_COLOR)  # fmt: skip
        runs = self.runs
        for i, run in enumerate(runs):
            run_rows = {name: values[rows["run"] == run] for name, values in rows.items()}
            self._draw_run(ax, run_rows, column, _run_style(i, len(runs)))
        if column == "pvalue" and self.has("threshold"):
            ax.axhline(1 - self.settings["level"], zorder=2, label="threshold", **_THRESHOLD_STYLE)
        _set_scales(ax, rows, column)

    def _draw_run(self, ax: Any, run_rows: dict[str, Array], column: str, style: dict[str, Any]) -> None:
        """Draw one run: its line, interval, noise floor and the epoch with the lowest log loss."""
        # Infinite and missing values leave a gap in the line.
        values = _replace_infinite(run_rows[column])
        marker_style = {"markersize": 3} if len(values) <= _MAX_EPOCHS_WITH_MARKERS else {"marker": ""}
        ax.plot(run_rows["epoch"], values, label="run", zorder=3, **(style | marker_style))
        if self.has("intervals") and f"{column}_low" in run_rows:
            low, high = _replace_infinite(run_rows[f"{column}_low"]), _replace_infinite(run_rows[f"{column}_high"])
            ax.fill_between(
                run_rows["epoch"], low, high, color=style["color"], alpha=0.15, linewidth=0, label="interval"
            )
        if self.has("noise_floor") and column == "ece":
            ax.plot(
                run_rows["epoch"],
                run_rows["noise_floor"],
                zorder=2,
                label="noise floor",
                **(_NOISE_FLOOR_STYLE | {"color": style["color"]}),
            )
        if self.has("lowest_log_loss"):
            ax.plot(
                run_rows["epoch"][run_rows["lowest_log_loss"]],
                values[run_rows["lowest_log_loss"]],
                linestyle="none",
                zorder=5,
                clip_on=False,
                label="lowest log loss",
                **_LOWEST_LOSS_STYLE,
            )


def _short_name(run: str) -> str:
    """The name of a run, cut to the width of a legend entry."""
    return styling.shorten_text(run, _MAX_NAME_WIDTH, 8.5)


def _replace_infinite(values: Array) -> Array:
    """Replace infinite values by NaN, which matplotlib leaves out."""
    return np.where(np.isfinite(values), values, np.nan)


def _run_style(i: int, n_runs: int) -> dict[str, Any]:
    """The line style of run number i of `n_runs`; many runs share one style."""
    if n_runs > len(_RUN_COLORS):
        return {"color": styling.INSIDE_COLOR, "linewidth": 0.8, "alpha": 0.7, "marker": ""}
    return {"color": _RUN_COLORS[i], "linewidth": 1.3, "marker": _RUN_MARKERS[i]}


def _set_scales(ax: Any, rows: dict[str, Array], column: str) -> None:
    """Set integer epochs along x, percentages for accuracy, and a logarithmic scale for p-values."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    epochs = rows["epoch"]
    width, height = styling.size_in_inches(ax)
    epoch_range = float(np.ptp(epochs)) or 1.0
    ax.set_xlim(float(epochs.min()) - 0.04 * epoch_range, float(epochs.max()) + 0.04 * epoch_range)
    all_integer = bool((epochs == np.round(epochs)).all())
    ax.xaxis.set_major_locator(MaxNLocator(6 if width > 1.6 else 3, integer=all_integer, steps=[1, 2, 5, 10]))
    if column == "pvalue":
        lowest_pvalue = min(float(rows["pvalue"].min()), 0.01)
        ax.set_yscale("log")
        ax.set_ylim(lowest_pvalue / 1.6, 1.6)
        ax.yaxis.set_minor_formatter(NullFormatter())
        ticks = [10.0**k for k in range(int(np.ceil(np.log10(lowest_pvalue) - 1e-9)), 1)]
        ax.set_yticks(ticks if len(ticks) <= 4 or height > 1 else ticks[:: len(ticks) - 1], minor=False)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(MaxNLocator(1))
        ax.set_yticks([], minor=True)
        return
    ax.yaxis.set_major_locator(MaxNLocator(5 if height > 1 else 3, steps=[1, 2, 2.5, 5, 10]))
    if column == "ece":
        ax.set_ylim(bottom=0)
    if column == "accuracy":
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}\u00a0%"))
