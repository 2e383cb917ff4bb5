"""How sure is it, and is it right as often as that?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned import bins, chance
from trueodds.diagrams.drawing import layout, styling
from trueodds.diagrams.recipe import BinnedRecipe, lens_of
from trueodds.lenses.view import View


@dataclass(frozen=True)
class ConfidenceHistogram(BinnedRecipe):
    r"""The share of rows per bin, with the mean prediction and the outcome rate of all rows as lines.

    Answers: how sure is it on the whole, and how often right? The gap ȳ − p̄ of the two lines is
    calibration in the large; the band around the mean prediction is where the outcome rate would fall with
    probability `level` if the model were calibrated (`chance.consistency`, all rows as one bin).

    Views: binary, one panel each. Units: probability. Cost: O(n log k). Raises TO203 for an unknown setting,
    TO205 for a joint view. Source: Guo et al. (2017), figure 1, with a range for chance added.

    Columns of `table`: view bin low high n weight share mean_prediction outcome_rate deviation. The lines
    stand in `panels`: mean_prediction outcome_rate deviation bar_low bar_high (rates) outside.

    >>> diagram = ConfidenceHistogram()([View(p=[0.9, 0.8], y=[1, 0], name="confidence")])
    >>> diagram.finding.replace("\u00a0", " ")
    'It says 85.0 % and is right 50.0 %: 35.0 points too sure, which chance explains (50.0 % to 100.0 %).'
    """

    name: ClassVar[str] = "confidence_histogram"

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of binary views."""
        binned = [bins.Binned(view, self.partition) for view in views]
        totals = [bins.pool_all(view) for view in views]
        bars = [chance.consistency(view, np.zeros(len(view.w), dtype=np.intp), 1, self.level) for view in views]
        gaps = np.array([abs(float(total.y[0] - total.p[0])) for total in totals])
        order = np.argsort(-gaps, kind="stable")
        tables = [binned[i].columns for i in order]
        top = [max(float(table["share"].max()) for table in tables[: layout.PANELS])] * len(views)
        rows = [_row(views[i], totals[i], bars[i], top[i]) for i in order]
        kinds = {"view": object, "title": object, "aside": object, "finding": object}
        panels = {name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}
        partition = binned[0].partition
        notes = bins.bar_notes([method for bar in bars for method in bar.method], views, partition, "views")
        notes = [note for note in notes if note.code != "TN247"]  # the band holds all rows, whatever the bins
        notes += layout.cut(len(views), Histogram.ranked)
        return Histogram(
            name=self.name,
            lens=lens_of(views),
            table=bins.stacked(tables),
            panels=bins.stacked([panels]),
            settings={"partition": str(partition), "level": self.level},
            notes=tuple(notes),
        )


class Histogram(Diagram):
    """Blue bars and two lines."""

    size = (6.4, 4.2)
    layers = ("bars", "band", "lines")
    ranked = "largest gap"

    def headline(self) -> str:
        """The question, in plain words."""
        if self.lens == "confidence":
            return "How sure is it, and how often is it right?"
        return "Does it come true as often as it says?"

    def caption(self) -> str:
        """The view, and how far seen is from said."""
        points = 100 * float(self.panels["deviation"][0])
        return f"{self.panels['title'][0]}: {points:+.1f} points".replace("-", "−")

    def axis_labels(self) -> tuple[str, str]:
        """Predicted along x, rows along y."""
        return self.predicted_label, "share of predictions"

    def legend(self) -> list[tuple[Any, str]]:
        """The two lines, with their numbers where there is one panel, the band, and without either the bars."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        entries: list[tuple[Any, str]] = []
        if self.has("lines"):
            predicted_label, observed_label = (
                "says on average",
                "is right" if self.lens == "confidence" else "comes true",
            )
            if len(self.panels["view"]) == 1:
                predicted_label += f": {styling.percent(float(self.panels['mean_prediction'][0]))}"
                observed_label += f": {styling.percent(float(self.panels['outcome_rate'][0]))}"
            entries.append((Line2D([], [], color=styling.INSIDE, linewidth=2), predicted_label))
            entries.append(
                (Line2D([], [], color=styling.OUTSIDE, linewidth=2, linestyle=(0, (4, 1.5))), observed_label)
            )
        if self.has("band"):
            level = f"{100 * self.settings['level']:.4g}\u00a0%"
            entries.append((Patch(facecolor=styling.INSIDE_BAR, alpha=0.8), f"range if calibrated ({level})"))
        if not entries and self.has("bars"):
            entries.append((Patch(facecolor=styling.ROWS), "predictions"))
        return entries or [(Line2D([], [], linestyle="none"), "")]

    def paint(self, ax: Any, panel: int) -> None:
        """One view."""
        rows, view = self.rows(panel), {name: column[panel] for name, column in self.panels.items()}
        styling.dress(ax, styling.type_size(ax))
        styling.probability_axis(ax)
        ax.grid(False, axis="x")
        ax.set_ylim(0, view["top"])
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}\u00a0%")
        if self.has("bars"):
            style = {"facecolor": styling.ROWS, "edgecolor": "white", "linewidth": 0.6, "label": "share"}
            styling.boxes(ax, rows["low"], rows["high"], np.zeros(1), rows["share"], **style)
        if self.has("band"):
            style = {"color": styling.INSIDE_BAR, "alpha": 0.8, "linewidth": 0, "zorder": 1.5, "label": "band"}
            ax.axvspan(view["bar_low"], view["bar_high"], **style)
        if self.has("lines"):
            style = {"linewidth": 2, "zorder": 3}
            ax.axvline(view["mean_prediction"], color=styling.INSIDE, label="said", **style)
            ax.axvline(view["outcome_rate"], color=styling.OUTSIDE, linestyle=(0, (4, 1.5)), label="seen", **style)


def _row(view: View, total: View, bars: chance.Bars, tallest: float) -> dict[str, Any]:
    p, y, low, high = float(total.p[0]), float(total.y[0]), float(bars.low[0]), float(bars.high[0])
    outside = bool(bars.missed(total.y)[0])
    return {
        "view": view.name,
        "title": view.name.removeprefix("class:"),
        "aside": f"{styling.percent(p)} / {styling.percent(y)}",
        "finding": _finding(view.name, p, y, low, high, outside=outside),
        "n": int(total.n[0]),
        "weight": float(total.w[0]),
        "mean_prediction": p,
        "outcome_rate": y,
        "deviation": y - p,
        "bar_low": low,
        "bar_high": high,
        "outside": outside,
        "top": 1.08 * tallest,
    }


def _finding(name: str, p: float, y: float, low: float, high: float, *, outside: bool) -> str:
    confident = name == "confidence"
    who = f"{name.removeprefix('class:')}: it" if name.startswith("class:") else "It"
    text = f"{who} says {styling.percent(p)} and {'is right' if confident else 'comes true'} {styling.percent(y)}"
    points = f"{100 * abs(y - p):.1f} points"
    side = ("too sure" if y < p else "too modest") if confident else ("too much" if y < p else "too little")
    interval = f"({styling.percent(low)} to {styling.percent(high)})"
    verb = "is more than chance explains" if outside else "chance explains"
    return f"{text}: {points} {side}, which {verb} {interval}."
