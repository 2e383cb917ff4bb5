"""The plane of miscalibration (MCB) and discrimination (DSC) of several models, with lines of equal score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import SCORE_NAMES, join_words
from trueodds.diagrams._style.marks import Mark, PanelSize, Points, Segments, Text
from trueodds.diagrams.model_results import (
    COLORS,
    MARKERS,
    ModelResult,
    describe_comparison,
    format_error,
    legend_name,
    tied_indices,
)
from trueodds.diagrams.murphy_curves import MurphyModel
from trueodds.diagrams.murphy_finding import describe_decomposition


class PlaneDiagram(model_strips_and_table.DiagramOfModels):
    """The plane of MCB and DSC: a mark with the interval of MCB for each model, lines of equal score, and numbers."""

    question = "How well is each model calibrated, and how well does it discriminate?"
    labels = "Miscalibration MCB (lower is better)", "Discrimination DSC (higher is better)"
    layers = ("marks", "bars", "lines", "labels", "numbers")
    row_noun = "table rows"

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height, with a line for each model in the table of numbers."""
        has_table = self.has("numbers") and len(self.panels["view"]) == 1
        return 6.4, 4.9 + (model_strips_and_table.number_table_height(len(self.names)) if has_table else 0.0)

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        from matplotlib.ticker import MaxNLocator

        styling.style_axes(ax, size.font_size)
        ax.grid(False)
        x, y = ((float(self.panels[f"{axis}_low"][panel]), float(self.panels[f"{axis}_high"][panel])) for axis in "xy")
        ax.set_xlim(x)
        ax.set_ylim(y)
        ax.set_yticks([tick for tick in styling.round_ticks(ax, *y) if tick >= 0])
        x_ticks = MaxNLocator(6 if size.is_wide else 3 if size.width > 1.2 else 2).tick_values(0.0, x[1])
        ax.set_xticks([float(tick) for tick in x_ticks if x[0] <= tick <= x[1]])

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        model_rows = {name: values[rows["part"] == "model"] for name, values in rows.items()}
        mcb, dsc = (np.where(np.isfinite(model_rows["mcb"]), model_rows[name], np.nan) for name in ("mcb", "dsc"))
        names = [legend_name(name) for name in self.names]
        bar_label = f"{self.level_text} interval of MCB"
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 1.0 if size.is_wide else 0.5}
        edge |= {"markersize": 8 if size.is_wide else 5, "zorder": 4, "layer": "marks"}
        bar: dict[str, Any] = {"layer": "bars", "label": bar_label, "linewidth": 1.3, "zorder": 3}
        bar["key"] = {"color": styling.MUTED_COLOR}
        marks: list[Mark] = []
        for i, name in enumerate(names):
            marks.append(Points(mcb[i], dsc[i], label=name, marker=MARKERS[i], color=COLORS[i], **edge))
        for i, (low, high) in enumerate(zip(model_rows["low"], model_rows["high"], strict=True)):
            marks.append(Segments(low, high, dsc[i], dsc[i], color=COLORS[i], **bar))
        marks += self._isoline_marks(panel, float(model_rows["unc"][0]), size)
        if len(self.panels["view"]) == 1:
            tables = [{name: values[i : i + 1] for name, values in model_rows.items()} for i in range(len(names))]
            font_size = size.font_size - 0.5
            columns = model_strips_and_table.score_columns(tables, self.names[0], self.settings["score"], font_size)
            marks.append(model_strips_and_table.NumberTable(names, columns, font_size))
        return marks

    def _isoline_marks(self, panel: int, unc: float, size: PanelSize) -> list[Mark]:
        """Lines of equal score S, which are DSC = MCB + UNC − S, with their scores if there is room."""
        limits = {name: float(self.panels[name][panel]) for name in ("x_low", "x_high", "y_low", "y_high", "step")}
        x, y, step = (limits["x_low"], limits["x_high"]), (limits["y_low"], limits["y_high"]), limits["step"]
        max_score, min_score = unc + x[1] - y[0], unc + x[0] - y[1]
        n_decimals = max(0, int(np.ceil(-np.log10(step) - 1e-9)))
        scores = step * np.arange(int(np.ceil(min_score / step)), int(np.floor(max_score / step)) + 1)
        label = f"equal {SCORE_NAMES[self.settings['score']]}"
        line: dict[str, Any] = {"layer": "lines", "label": label, "color": "#B8B8B8", "linewidth": 0.8, "zorder": 1.2}
        marks: list[Mark] = [Segments(x[0], x[1], x[0] + unc - scores, x[1] + unc - scores, **line)]
        if not (size.is_wide and self.has("lines")):
            return marks
        style: dict[str, Any] = {
            "color": styling.MUTED_COLOR,
            "fontsize": size.font_size - 2,
            "zorder": 1.3,
            "ha": "right",
        }
        style |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6}, "layer": "labels", "gid": "score"}
        style |= {"xytext": (1, 0), "textcoords": "offset points", "ha": "right"}
        for score in scores[scores >= 0].tolist():
            # The number is where the line leaves the axes: at the top or at the right edge.
            mcb_at_top, dsc_at_right, text = y[1] - unc + score, x[1] + unc - score, f"{score:.{n_decimals}f}"
            if x[0] + 0.06 * (x[1] - x[0]) < mcb_at_top < x[1]:
                marks.append(Text(mcb_at_top, y[1], text, va="top", **style))
            elif y[0] + 0.03 * (y[1] - y[0]) < dsc_at_right < y[1] - 0.06 * (y[1] - y[0]):
                marks.append(Text(x[1], dsc_at_right, text, va="center", **style))
        return marks


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
