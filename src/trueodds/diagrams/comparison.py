"""Which of several models says what comes, and is the difference between them more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import stacked
from trueodds.diagrams.binned.styles import STYLES
from trueodds.diagrams.drawing import layout, styling
from trueodds.diagrams.models import comparison_rows as rows
from trueodds.diagrams.models.comparison_picture import ComparisonDiagram
from trueodds.diagrams.models.lineup import Models, views_by_model
from trueodds.diagrams.models.model_results import ModelResult, measure_models
from trueodds.diagrams.recipe import IMPORTANCE, BinnedRecipe, lens_of
from trueodds.diagrams.reliability import Reliability
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.lens import Lens
from trueodds.lenses.view import View
from trueodds.resampling.interval_spec import IntervalSpec

Sets = Mapping[str, tuple[View, ...]]


@dataclass(frozen=True)
class Comparison(BinnedRecipe):
    r"""Reliability of several models on one pair of axes, with each one's error and its difference to the first.

    Answers: which model is off by less, before or after a fix for instance, where, and is that more than chance? Each
    model has its color, mark and line: marks at (p̄, ȳ − p̄), or (p̄, ȳ) in the style `diagonal`, as in `reliability`,
    with their bars, each model moved aside by 2.2 points that equal bins stay apart; below, where its predictions are, and

    .. math:: \text{ECE} = \sum_b \tfrac{w_b}{w} |\bar y_b - \bar p_b|, \qquad \Delta_m = \text{ECE}_m - \text{ECE}_1

    with the noise floor of each and an interval of each difference. Models of the same rows are resampled together;
    the intervals of all differences hold together with probability `level` (max-T, else Bonferroni; see `to.compare`).

    Views: binary; several are a grid, and the difference is then that of the mean over views. One model alone is
    drawn, too. Of tallies no difference is told. Units: probability. Cost: that of `reliability` for each model and
    of its interval: 2,000 resamples and 999 redraws. Raises TO203 for an unknown setting, TO205 for a joint view,
    for models with other views and for `paired=True` with other outcomes, TO705 for more than eight models.
    Source: Bröcker & Smith (2007) for the bars; the comparison as in `to.compare`.

    Parameters
    ----------
    partition : Partition, optional
        15 uniform bins; bins that depend on the predictions are each model's own.
    level : float
        Of bars and intervals.
    style : str
        `deviation`, which sets models apart that lie close to the diagonal, or `diagonal`; the table is the same.
    bars : str or None
        `confidence`: the Wilson interval of the outcome rate around each mark (`chance.wilson`). `consistency`: where
        the mark would fall if the model were calibrated (`chance.consistency`).
    paired : bool, optional
        Whether the models speak of the same rows in the same order; if not said, equal outcomes decide.

    Columns of `table`: view model part bin low high n weight share mean_prediction outcome_rate deviation bar_low
    bar_high (rates, whatever the style) outside, and error error_low error_high noise_floor difference difference_low
    difference_high. `part` is `bin`, or `model` for all rows of a model in a view, which alone has the errors; of
    several views the model's standing over all stands under the name of the lens. What a part does not have is NaN,
    or False.

    >>> Comparison()([View(p=[0.5, 0.5, 0.9], y=[0, 1, 1], name="positive")]).finding
    'ECE 0.0333.'
    """

    name: ClassVar[str] = "comparison"
    several: ClassVar[bool] = True
    by_chance: ClassVar[tuple[str, ...]] = (
        "error_low",
        "error_high",
        "noise_floor",
        "difference_low",
        "difference_high",
    )
    exempt: ClassVar[dict[str, str]] = IMPORTANCE
    style: Annotated[str, OneOf(STYLES)] = "deviation"
    bars: Literal["confidence", "consistency"] | None = "confidence"
    paired: bool | None = None

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of the views of one model, without floor and interval, which need its rows."""
        return self._drawn({"": views}, None, [])

    def of_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of named models."""
        sets = views_by_model(models, lens, self.name)
        seed = int(rng) if isinstance(rng, (int, np.integer)) else int(rng.integers(2**31))
        results, notes = measure_models(
            models, BinnedError(self.partition), lens, IntervalSpec(level=self.level), self.paired, seed
        )
        return self._drawn(sets, results, notes)

    def _drawn(self, sets: Sets, results: list[ModelResult] | None, notes: list[Note]) -> Diagram:
        made = {name: [self._alone(view) for view in views] for name, views in sets.items()}
        count = len(next(iter(sets.values())))
        worst = [max(float(diagrams[i].panels["error"][0]) for diagrams in made.values()) for i in range(count)]
        order = np.argsort(-np.array(worst), kind="stable")
        made = {name: [diagrams[i] for i in order] for name, diagrams in made.items()}
        alone = [
            [ModelResult(float(diagrams[i].panels["error"][0])) for diagrams in made.values()]
            for i in range(len(order))
        ]
        if results is not None and len(order) == 1:
            alone = [results]
        first = next(iter(made.values()))
        lens = lens_of(next(iter(sets.values())))
        table = [
            part
            for i in range(len(order))
            for (name, diagrams), one in zip(made.items(), alone[i], strict=True)
            for part in (rows.bins(diagrams[i], name), rows.model(diagrams[i], name, one))
        ]
        if len(order) > 1 and results is not None:
            table += [rows.aggregate_row(lens, name, one) for name, one in zip(made, results, strict=True)]
        return ComparisonDiagram(
            name=self.name,
            lens=lens,
            table=stacked(table),
            panels=stacked([rows.panels(made, alone, results)]),
            settings={
                "partition": first[0].settings["partition"],
                "style": self.style,
                "bars": self.bars,
                "level": self.level,
                "paired": self.paired,
                "models": list(sets),
            },
            notes=tuple(dict.fromkeys([*notes, *self._notes(made)])),
        )

    def _alone(self, view: View) -> Diagram:
        """One model's marks and bars are those of its own reliability diagram."""
        return Reliability(self.partition, self.level, style=self.style, bars=self.bars)([view])

    def _notes(self, made: Mapping[str, Sequence[Diagram]]) -> list[Note]:
        views = len(next(iter(made.values())))
        own = [note for diagrams in made.values() for diagram in diagrams for note in diagram.notes]
        # Counts of bins differ from model to model; which law gave the bars is said once.
        once = list({note.code: note for note in own if note.code != "TN246"}.values())
        if self.bars == "consistency":
            text = f"Each bar holds for its bin alone: of a calibrated model up to {styling.percent(1 - self.level)} of the marks fall outside."
            once.append(Note("TN246", text))
        if views > layout.PANELS:
            text = f"Drawn are the {layout.PANELS} largest errors of {views} views; the table holds them all."
            once.append(Note("TN245", text))
        return once
