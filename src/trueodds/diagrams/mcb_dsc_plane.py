"""The plane of miscalibration (MCB) and discrimination (DSC) of several models, with lines of equal score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import join_words
from trueodds.diagrams.model_results import ModelResult, describe_comparison, format_error, tied_indices
from trueodds.diagrams.model_styles import COLORS, MARKERS, legend_name
from trueodds.diagrams.murphy_curves import MurphyModel
from trueodds.diagrams.murphy_finding import SCORE_NAMES, describe_decomposition


class PlaneDiagram(model_strips_and_table.DiagramOfModels):
    """The plane of MCB and DSC: a mark with the interval of MCB for each model, lines of equal score, and numbers."""

    layers = ("marks", "bars", "lines", "labels", "numbers")
    row_noun = "table rows"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height, with a line for each model in the table of numbers."""
        has_table = self.has("numbers") and len(self.panels["view"]) == 1
        return 6.4, 4.9 + (model_strips_and_table.number_table_height(len(self.names)) if has_table else 0.0)

    def default_title(self) -> str:
        """The question that the diagram answers, its default title."""
        return "How well is each model calibrated, and how well does it discriminate?"

    def axis_labels(self) -> tuple[str, str]:
        """MCB along x, DSC along y."""
        return "Miscalibration MCB (lower is better)", "Discrimination DSC (higher is better)"

    def legend(self) -> list[tuple[Any, str]]:
        """The models, bars and lines."""
        from matplotlib.lines import Line2D

        entries: list[tuple[Any, str]] = []
        if self.has("marks"):
            for i, name in enumerate(self.names):
                mark = Line2D([], [], linestyle="none", color=COLORS[i], marker=MARKERS[i], markersize=6)
                entries.append((mark, legend_name(name)))
        if self.has("bars") and np.isfinite(self.table["low"]).any():
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((Line2D([], [], color=styling.MUTED_COLOR, linewidth=1.3), f"{level} interval of MCB"))
        if self.has("lines"):
            score = {"brier": "Brier score", "log_loss": "log loss"}[self.settings["score"]]
            entries.append((Line2D([], [], color="#B8B8B8", linewidth=0.9), f"equal {score}"))
        return entries

    def draw_panel(self, ax: Any, panel: int) -> None:
        """Draw one view."""
        from matplotlib.ticker import MaxNLocator

        rows = self.rows(panel)
        panel_row = {name: float(column[panel]) for name, column in self.panels.items() if column.dtype.kind == "f"}
        size = styling.font_size(ax)
        styling.style_axes(ax, size)
        ax.grid(False)
        x, y = (panel_row["x_low"], panel_row["x_high"]), (panel_row["y_low"], panel_row["y_high"])
        ax.set_xlim(x)
        ax.set_ylim(y)
        ax.set_yticks([tick for tick in styling.round_ticks(ax, *y) if tick >= 0])
        width = styling.size_in_inches(ax)[0]
        x_ticks = MaxNLocator(6 if width > 3.4 else 3 if width > 1.2 else 2).tick_values(0.0, x[1])
        ax.set_xticks([float(tick) for tick in x_ticks if x[0] <= tick <= x[1]])
        model_rows = {name: values[rows["part"] == "model"] for name, values in rows.items()}
        is_narrow = styling.size_in_inches(ax)[0] < 3.4
        if self.has("lines"):
            _draw_isolines(
                ax, panel_row, float(model_rows["unc"][0]), size, shows_labels=self.has("labels") and not is_narrow
            )
        for i in range(len(self.names)):
            mcb, dsc, color = model_rows["mcb"][i], model_rows["dsc"][i], COLORS[i]
            if not np.isfinite(mcb):
                continue
            if self.has("bars") and np.isfinite(model_rows["low"][i]):
                ax.hlines(
                    dsc,
                    model_rows["low"][i],
                    model_rows["high"][i],
                    colors=color,
                    linewidth=1.3,
                    zorder=3,
                    label="bars",
                )
            if self.has("marks"):
                style: dict[str, Any] = {
                    "markersize": 5 if is_narrow else 8,
                    "markeredgecolor": "white",
                    "markeredgewidth": 0.5 if is_narrow else 1.0,
                }
                ax.plot(
                    [mcb], [dsc], linestyle="none", marker=MARKERS[i], color=color, zorder=4, label="marks", **style
                )
        if (
            self.has("numbers")
            and len(self.panels["view"]) == 1
            and model_strips_and_table.number_table_fits(ax, len(self.names))
        ):
            tables = [{name: values[i : i + 1] for name, values in model_rows.items()} for i in range(len(self.names))]
            score = {"brier": "Brier", "log_loss": "log loss"}[self.settings["score"]]
            names = [legend_name(name) for name in self.names]
            model_strips_and_table.draw_number_table(
                ax, names, model_strips_and_table.score_columns(tables, self.names[0], score, size - 0.5), size - 0.5
            )


def describe_plane(models: Sequence[MurphyModel], results: Sequence[ModelResult]) -> str:
    """Describe which models have the best score, the lowest MCB and the highest DSC."""
    if len(models) == 1:
        return describe_decomposition(models[0])
    mcb, dsc = ([model.decomposition[name] for model in models] for name in ("mcb", "dsc"))
    lowest_mcb_names, highest_dsc_names = (
        join_words(sorted(models[i].name for i in tied_indices(values, optimum)))
        for values, optimum in ((mcb, min(mcb)), (dsc, max(dsc)))
    )
    return (
        f"{describe_comparison([model.name for model in models], results, SCORE_NAMES[models[0].score_name])} "
        f"Lowest MCB: {lowest_mcb_names} ({format_error(min(mcb))}). "
        f"Highest DSC: {highest_dsc_names} ({format_error(max(dsc))}). "
        f"UNC\u00a0{format_error(models[0].decomposition['unc'])}."
    )


def plane_limits(panels: Sequence[Sequence[MurphyModel]], mcb_results: Mapping[str, ModelResult]) -> dict[str, float]:
    """The limits of the axes, which all panels share, and the step of the score between lines of equal score.

    `mcb_results` holds the interval of MCB of each model, if there is one.
    """
    models = [model for models in panels for model in models]
    mcb_values = [model.decomposition["mcb"] for model in models]
    mcb_values += [result.error_high for result in mcb_results.values()]
    max_mcb = max([1e-3, *(value for value in mcb_values if np.isfinite(value))])
    dsc_values = [model.decomposition["dsc"] for model in models]
    min_dsc, max_dsc = min(dsc_values), max([*dsc_values, 1e-3])
    bottom = 0.0
    if min_dsc >= 0.5 * max_dsc:
        # All models discriminate similarly: an axis from 0 would put all marks into one corner.
        bottom = max(0.0, min_dsc - 0.6 * max(max_dsc - min_dsc, max_mcb / 2))
    x_high = 1.12 * max_mcb
    y_high = max_dsc + 0.16 * (max_dsc - bottom) if max_dsc > bottom else 1.2 * max_dsc
    return {
        "x_low": -0.05 * x_high,
        "x_high": x_high,
        "y_low": bottom - 0.05 * (y_high - bottom),
        "y_high": y_high,
        "step": _round_up((x_high + y_high - bottom) / 7),
    }


def _round_up(x: float) -> float:
    """The smallest number of the form 1, 2 or 5 times a power of ten that is at least x."""
    scale = 10.0 ** np.floor(np.log10(x))
    return float(next(scale * m for m in (1, 2, 5, 10) if scale * m >= x * (1 - 1e-9)))


def _draw_isolines(ax: Any, panel_row: Mapping[str, float], unc: float, size: float, *, shows_labels: bool) -> None:
    """Draw lines of equal score S, which are DSC = MCB + UNC − S."""
    x, y = np.array([panel_row["x_low"], panel_row["x_high"]]), (panel_row["y_low"], panel_row["y_high"])
    step = panel_row["step"]
    max_score, min_score = unc + x[1] - y[0], unc + x[0] - y[1]
    n_decimals = max(0, int(np.ceil(-np.log10(step) - 1e-9)))
    for k in range(int(np.ceil(min_score / step)), int(np.floor(max_score / step)) + 1):
        score = k * step
        ax.plot(x, x + unc - score, color="#B8B8B8", linewidth=0.8, zorder=1.2, label="lines")
        if not shows_labels or score < 0:
            continue
        # The number is where the line leaves the axes: at the top or at the right edge.
        mcb_at_top = y[1] - unc + score
        leaves_at_top = x[0] + 0.06 * (x[1] - x[0]) < mcb_at_top < x[1]
        label_position = (mcb_at_top, y[1]) if leaves_at_top else (x[1], x[1] + unc - score)
        if not leaves_at_top and not y[0] + 0.03 * (y[1] - y[0]) < label_position[1] < y[1] - 0.06 * (y[1] - y[0]):
            continue
        alignment: dict[str, Any] = {"ha": "right", "va": "top"} if leaves_at_top else {"ha": "right", "va": "center"}
        text = f"{score:.{n_decimals}f}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        ax.annotate(text, label_position, xytext=(1, 0), textcoords="offset points", color=styling.MUTED_COLOR,
                    fontsize=size - 2, zorder=1.3, bbox=box, gid="score", **alignment)  # fmt: skip
