"""The confidence histogram: share of rows in each bin, with mean prediction and observed event rate of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.diagrams import bin_intervals, bins
from trueodds.diagrams._style import layout, styling
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.confidence_histogram.plot import ConfidenceHistogramPlot
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
        bars = [bin_intervals.consistency(view, np.zeros(len(view.w), dtype=np.intp), 1, self.level) for view in views]
        gaps = np.array([abs(float(total.y[0] - total.p[0])) for total in totals])
        order = np.argsort(-gaps, kind="stable")
        tables = [binned[i].columns for i in order]
        top = [max(float(table["share"].max()) for table in tables[: layout.MAX_PANELS])] * len(views)
        rows = [_row(views[i], totals[i], bars[i], top[i]) for i in order]
        kinds = {"view": object, "title": object, "aside": object, "finding": object}
        panels = {name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}
        partition = binned[0].partition
        notes = bins.bar_notes([method for bar in bars for method in bar.method], views, partition, "views")
        notes = [note for note in notes if note.code != "TN247"]  # the band holds all rows, whatever the bins
        notes += layout.panel_limit_notes(len(views), ConfidenceHistogramPlot.ranked)
        return ConfidenceHistogramPlot(
            name=self.name,
            lens=lens_of(views),
            table=bins.stack_tables(tables),
            panels=bins.stack_tables([panels]),
            settings={"partition": str(partition), "level": self.level},
            notes=tuple(notes),
        )


def _row(view: View, total: View, bars: bin_intervals.Bars, tallest: float) -> dict[str, Any]:
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
