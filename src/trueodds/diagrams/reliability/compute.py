"""The reliability diagram: observed event rate against mean predicted probability in each bin, with consistency bars."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.binning.uniform import Uniform
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Resamples
from trueodds.diagrams import bin_intervals, bins
from trueodds.diagrams import bin_intervals as chance
from trueodds.diagrams._style import layout, styling
from trueodds.diagrams._style.reliability_axes import STYLES, y_limits
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import BinnedRecipe, lens_of
from trueodds.diagrams.reliability.plot import ReliabilityDiagram
from trueodds.diagrams.reliability.text import describe_finding, describe_outside_bins
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Reliability(BinnedRecipe):
    r"""Observed frequency against mean predicted probability, bin by bin, with the range that chance alone explains.

    Answers: when it says 70 %, does it come true 70 % of the time, and where not? Also called calibration plot. With
    :math:`\bar p_b = \sum_b w p / \sum_b w` and :math:`\bar y_b = \sum_b w y / \sum_b w`, the style
    `diagonal` draws crosses at (p̄, ȳ) with consistency bars around the diagonal, the style `deviation` crosses at
    (p̄, ȳ − p̄) with the same bars around 0, which shows small errors larger; below, the share of rows in each bin, or
    where bins differ in width in each of 30 equal cells (`strip` of `panels`). Empty bins are absent.

    Views: binary, one panel each. Units: probability. Cost: O(n log k), and per bin the law of
    `chance.consistency`. Raises TO203 for an unknown setting, TO205 for a joint view.
    Source: Vaicenavicius et al. (2019), figure 4; Bröcker & Smith (2007).

    The finding names the stretches of neighboring bins that are off to one side. Where no more bins lie outside than
    chance puts there in one calibrated model of twenty, and none does beside bars that hold together, it says only how many.

    Parameters
    ----------
    partition : Partition, optional
        15 uniform bins.
    level : float
        The probability with which a bar of a calibrated model covers its cross: the bar ends at the quantiles
        (1 ± level)/2.
    style : str
        `diagonal` or `deviation`; the table is the same.
    bars : str or None
        `consistency`: where the cross would fall if the model were calibrated.
        `confidence`: the interval of the outcome rate, around the cross.
        Weights count as importance in both: a weight of two is two rows for the rates, not for the bars.
    by : str
        How consistency bars are made: `exact` by the law of each bin's outcomes (`chance.consistency`), `redraw` by
        drawing labels from the predictions (`redrawn.ranges`), which also holds where rows of few weigh differently.
    resamples : int
        How many redraws.
    interval : str
        Confidence bars: `wilson`, or `clopper-pearson`, which is longer and covers rows of equal weight at least so
        often. With weights both take (Σw)²/Σw² effective rows (`chance.wilson`, `chance.clopper_pearson`).
    simultaneous : bool
        Bonferroni over all bars of the diagram, so that all of them hold at once with probability `level`.

    Columns of `table`: view bin low high n weight share mean_prediction outcome_rate deviation, and with bars
    bar_low bar_high (rates, whatever the style) and outside.

    >>> diagram = Reliability()([View(p=[0.5, 0.5, 0.9], y=[0, 1, 1], name="positive")])
    >>> diagram.table["bar_low"].tolist(), diagram.table["bar_high"].tolist(), diagram.table["outside"].tolist()
    ([0.0, 0.0], [1.0, 1.0], [False, False])
    """

    name: ClassVar[str] = "reliability"
    by_count: ClassVar[tuple[str, ...]] = ("n", "bar_low", "bar_high", "outside")
    style: Annotated[str, OneOf(STYLES)] = "diagonal"
    bars: Literal["consistency", "confidence"] | None = "consistency"
    by: Literal["exact", "redraw"] = "exact"
    resamples: Resamples = 999
    interval: Literal["wilson", "clopper-pearson"] = "wilson"
    simultaneous: bool = False

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of binary views."""
        binned = [bins.Binned(view, self.partition) for view in views]
        errors = np.array([view_bins.error for view_bins in binned])
        binned = [binned[i] for i in np.argsort(-errors, kind="stable")]
        count = sum(len(view_bins.columns["bin"]) for view_bins in binned)
        joint_level = 1 - (1 - self.level) / count  # Bonferroni
        level = joint_level if self.simultaneous else self.level
        tables: list[bins.Columns] = []
        jointly_outside: list[bool] = []
        methods: list[str] = []
        for view_bins in binned:
            table, beyond, method = self._with_bars(view_bins, level, joint_level, rng)
            tables.append(table)
            jointly_outside.append(beyond)
            methods += method
        partition = binned[0].partition
        return ReliabilityDiagram(
            name=self.name,
            lens=lens_of(views),
            table=bins.stack_tables(tables),
            panels=bins.stack_tables([_panels(binned, tables, jointly_outside, self)]),
            settings={
                "partition": str(partition),
                "style": self.style,
                "bars": self.bars,
                **({"by": self.by} if self.bars == "consistency" else {}),
                **({"resamples": self.resamples} if self._draws else {}),
                **({"interval": self.interval} if self.bars == "confidence" else {}),
                "level": self.level,
                "simultaneous": self.simultaneous,
                "level_of_each_bar": level,
            },
            notes=(
                *bins.bar_notes(methods, views, partition, "bins"),
                *self._notes(binned, level, "flipped" in methods),
            ),
        )

    @property
    def _draws(self) -> bool:
        return self.bars == "consistency" and self.by == "redraw"

    def _bar_function(self, rng: np.random.Generator) -> bins.BarFunction:
        if self._draws:
            return partial(bin_intervals.resampled_ranges, resamples=self.resamples, rng=rng)
        if self.bars == "consistency":
            return chance.consistency_ranges
        interval_function = _INTERVALS[self.interval]
        return lambda view, index, size, levels: tuple(interval_function(view, index, size, level) for level in levels)

    def _with_bars(
        self, binned: bins.Binned, level: float, joint_level: float, rng: np.random.Generator
    ) -> tuple[bins.Columns, bool, tuple[str, ...]]:
        """The columns with bars, whether a bin is outside beside all others too, and the laws."""
        columns = binned.columns
        if self.bars is None:
            return columns, False, ()
        bars, wide = binned.bars(self._bar_function(rng), (level, joint_level))
        tested = columns["outcome_rate"] if self.bars == "consistency" else columns["mean_prediction"]
        # Rates, from which nothing is subtracted: equal counts must compare as equal, in whatever order summed.
        outside, jointly_outside = (ranges.missed(tested) for ranges in (bars, wide))
        columns = {**columns, "bar_low": bars.low, "bar_high": bars.high, "outside": outside}
        return columns, bool(jointly_outside.any()), bars.method

    def _notes(self, binned: list[bins.Binned], level: float, flipped: bool) -> list[Note]:
        views = len(binned)
        notes = layout.panel_limit_notes(views, ReliabilityDiagram.ranked)
        crowded = sum(_crowded(view_bins) for view_bins in binned)
        if crowded:
            who = "All predictions lie" if views == 1 else f"In {crowded} of {views} views all predictions lie"
            text = f"{who} in one or two bins, which hide how they differ"
            notes.append(Note("TN267", f'{text}; partition="equal-mass" sets them apart.'))
        if self.bars == "consistency" and not self.simultaneous:
            notes.append(
                Note(
                    "TN246",
                    f"Each bar holds for its bin alone: of a calibrated model up to {styling.percent(1 - self.level)} "
                    "of the crosses fall outside. Pass simultaneous=True for bars that hold together.",
                )
            )
        if self._draws:
            beyond = self.resamples * (1 - level) / 2
            text = f"The bars hold the middle of {self.resamples:,} redraws of the labels; {beyond:.3g} lie beyond each end"
            text += "." if beyond >= _STEADY else ", too few for the ends to be steady: make more."
            if flipped:
                text += " Shares of votes had the signs of their residuals flipped, which is approximate."
            notes.append(Note("TN266", text))
        return notes


_INTERVALS = {"wilson": chance.wilson, "clopper-pearson": chance.clopper_pearson}
_MANY = 20  # different predictions, that more bins would tell apart
_STEADY = 10  # redraws beyond an end: with them its distance from the middle of a normal law is known to a tenth


def _crowded(binned: bins.Binned) -> bool:
    """Whether equal bins hold many different predictions in one or two of them, as of a rare event."""
    if not isinstance(binned.partition, Uniform) or binned.size <= 2 or len(binned.columns["bin"]) > 2:
        return False
    return len(np.unique(binned.view.at[binned.view.w > 0])) >= _MANY


def _panels(
    binned: list[bins.Binned], tables: list[bins.Columns], jointly_outside: list[bool], recipe: Reliability
) -> bins.Columns:
    """One row per view; the range of y is shared, so that panels can be compared."""
    low, high = y_limits(recipe.style, tables[: layout.MAX_PANELS])
    rows: list[dict[str, Any]] = []
    even = all(view_bins.even for view_bins in binned)
    strips = [
        table["share"] if even else view_bins.strip_shares for view_bins, table in zip(binned, tables, strict=True)
    ]
    tallest = max(float(strip.max()) for strip in strips[: layout.MAX_PANELS])
    for view_bins, table, beyond, strip in zip(binned, tables, jointly_outside, strips, strict=True):
        total = bins.pool_all(view_bins.view)
        count = len(table["bin"])
        outside = int(table["outside"].sum()) if "outside" in table else None
        place = ""
        if outside is not None:
            how = {"simultaneous": recipe.simultaneous, "around_rate": recipe.bars == "confidence"}
            place = describe_outside_bins(table, outside, beyond, recipe.level, name=view_bins.view.name, **how)
        rows.append(
            {
                "view": view_bins.view.name,
                "title": view_bins.view.name.removeprefix("class:"),
                "aside": f"{count} bins" if outside is None else f"{outside} of {count} outside",
                "finding": describe_finding(view_bins, total, place, views=len(binned), largest=not rows),
                "n": int(total.n[0]),
                "weight": float(total.w[0]),
                "mean_prediction": float(total.p[0]),
                "outcome_rate": float(total.y[0]),
                "error": view_bins.error,
                "bins": count,
                "y_low": low,
                "y_high": high,
                "tallest": tallest,
            }
        )
        if not even:
            rows[-1]["strip"] = strip
        if outside is not None:
            rows[-1]["bins_outside"] = outside
            rows[-1]["bins_by_chance"] = (1 - recipe.level) * (1 if recipe.simultaneous else count)
    kinds = {"view": object, "title": object, "aside": object, "finding": object}
    return {name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}
