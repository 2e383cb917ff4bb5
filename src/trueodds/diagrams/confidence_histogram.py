"""The confidence histogram: share of rows in each bin, with mean prediction and observed event rate of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import decreasing_order
from trueodds.diagrams import bins
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.marks import Boxes, Mark, PanelSize, VBand, VLine
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import BinnedRecipe, lens_name, panel_limit_notes
from trueodds.lenses.view import View, view_title


@dataclass(frozen=True)
class ConfidenceHistogram(BinnedRecipe):
    r"""Histogram of predicted probabilities with the mean prediction and the event rate of all rows.

    Parameters
    ----------
    level : float, default=0.95
        The coverage of the band around the mean prediction.

    Notes
    -----
    The gap :math:`\bar y - \bar p` between the two lines is calibration-in-the-large. The band around the mean
    prediction is the range of the event rate with probability `level` if the model is calibrated, with all rows in
    one bin.

    Views: binary, one panel each. Units: probability. Cost: O(n log k).

    Columns of `table`: view bin low high n weight share mean_prediction outcome_rate deviation. `panels` holds the
    lines: mean_prediction outcome_rate deviation bar_low bar_high (event rates) outside.

    References
    ----------
    .. [1] Guo et al. (2017), figure 1. The band is added.

    Examples
    --------
    >>> import trueodds as to
    >>> diagram = to.draw(to.Predictions.from_confidence([0.9, 0.8], [1, 0]), "confidence_histogram")
    >>> means, difference = diagram.finding.replace("\u00a0", " ").split(": ")
    >>> means
    'Mean confidence 85.0 %, accuracy 50.0 %'
    >>> difference
    '35.0 points overconfident, inside the consistency range (50.0 % to 100.0 %).'
    """

    name: ClassVar[str] = "confidence_histogram"

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        binned = [bins.BinnedView(view, self.partition) for view in views]
        totals = [bins.pool_rows(view) for view in views]
        bars = [bins.consistency_bars(view, np.zeros(len(view.w), dtype=np.intp), 1, self.level) for view in views]
        order = decreasing_order(abs(float(total.y[0] - total.p[0])) for total in totals)
        tables = [binned[i].columns for i in order]
        max_share = max(float(table["share"].max()) for table in tables[:MAX_PANELS])
        partition = binned[0].partition
        methods = [method for bar in bars for method in bar.method]
        notes = bins.collect_bar_notes(methods, views, partition, "views")
        # TN247 is on bins that depend on outcomes; the band pools all rows and does not depend on the bins.
        notes = [note for note in notes if note.code != "TN247"]
        notes += panel_limit_notes(len(views), ConfidenceHistogramPlot.view_order)
        rows = [_panel_row(views[i], totals[i], bars[i], max_share) for i in order]
        settings = {"partition": str(partition), "level": self.level}
        return self.build_diagram(ConfidenceHistogramPlot, lens_name(views), tables, rows, settings, notes)


def _panel_row(view: View, total: View, bars: bins.BinIntervals, max_share: float) -> dict[str, Any]:
    p, y, low, high = float(total.p[0]), float(total.y[0]), float(bars.low[0]), float(bars.high[0])
    is_outside = bool(bars.excludes(total.y)[0])
    return {
        "view": view.name,
        "title": view_title(view.name),
        "aside": f"{format_percent(p)} / {format_percent(y)}",
        "finding": _describe_finding(view.name, p, y, low, high, is_outside=is_outside),
        "n": int(total.n[0]),
        "weight": float(total.w[0]),
        "mean_prediction": p,
        "outcome_rate": y,
        "deviation": y - p,
        "bar_low": low,
        "bar_high": high,
        "outside": is_outside,
        "top": 1.08 * max_share,
    }


def _describe_finding(name: str, p: float, y: float, low: float, high: float, *, is_outside: bool) -> str:
    """Compare the mean prediction p with the observed rate y and its interval."""
    confident = name == "confidence"
    text = f"Mean {'confidence' if confident else 'predicted'} {format_percent(p)}, "
    text += f"{'accuracy' if confident else 'observed'} {format_percent(y)}"
    if name.startswith("class:"):
        text = f"{name.removeprefix('class:')}: {text[0].lower()}{text[1:]}"
    biases = ("underconfident", "overconfident") if confident else ("too low", "too high")
    side = biases[int(y < p)]
    position = "outside" if is_outside else "inside"
    interval = f"({format_percent(low)} to {format_percent(high)})"
    return f"{text}: {100 * abs(y - p):.1f} points {side}, {position} the consistency range {interval}."


class ConfidenceHistogramPlot(Diagram):
    """The confidence histogram: a histogram and two vertical lines."""

    figure_size = (6.4, 4.2)
    layers = ("bars", "band", "lines")
    view_order = "largest gap"

    def default_title(self) -> str:
        if self.lens == "confidence":
            return "Does mean confidence match accuracy?"
        return "Does the mean prediction match the event rate?"

    def caption(self) -> str:
        points = 100 * float(self.panels["deviation"][0])
        return f"{self.panels['title'][0]}: {points:+.1f} points".replace("-", "−")

    def axis_labels(self) -> tuple[str, str]:
        return self.predicted_label, "Share of predictions"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        styling.style_axes(ax, size.font_size)
        styling.set_probability_axis(ax)
        ax.grid(False, axis="x")
        ax.set_ylim(0, self.panels["top"][panel])
        ax.yaxis.set_major_formatter(styling.format_percent_tick)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows, totals = self.rows(panel), self.panel_values(panel)
        labels = ("mean confidence", "accuracy") if self.lens == "confidence" else ("mean predicted", "observed")
        p, y = totals["mean_prediction"], totals["outcome_rate"]
        if len(self.panels["view"]) == 1:
            labels = f"{labels[0]}: {format_percent(p)}", f"{labels[1]}: {format_percent(y)}"
        line: dict[str, Any] = {"layer": "lines", "linewidth": 2, "zorder": 3}
        histogram: dict[str, Any] = {"facecolor": styling.STRIP_COLOR, "edgecolor": "white", "linewidth": 0.6}
        band: dict[str, Any] = {"color": styling.INSIDE_BAR_COLOR, "alpha": 0.8, "linewidth": 0, "zorder": 1.5}
        band_label = f"{self.level_text} consistency range"
        return [
            Boxes(rows["low"], rows["high"], 0.0, rows["share"], layer="bars", name="share", **histogram),
            VLine(p, name="predicted", label=labels[0], color=styling.INSIDE_COLOR, **line),
            VLine(y, name="observed", label=labels[1], color=styling.OUTSIDE_COLOR, linestyle=(0, (4, 1.5)), **line),
            VBand(totals["bar_low"], totals["bar_high"], layer="band", label=band_label, **band),
        ]
