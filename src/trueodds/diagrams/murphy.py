"""For whose decisions is a model good? Costs at every threshold, and how much of a score is calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, OneOf, Range
from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.curves.draws import BandDraws
from trueodds.diagrams.models.decision_rows import Model
from trueodds.diagrams.models.decisions import Drawing
from trueodds.diagrams.models.lineup import Models, views_by_model
from trueodds.diagrams.models.model_results import ModelResult, measure_models
from trueodds.diagrams.recipe import IMPORTANCE, Recipe
from trueodds.estimators.base import ProperScore
from trueodds.estimators.corp import SCORES
from trueodds.estimators.corp import Corp as CorpError
from trueodds.estimators.proper import Brier, LogLoss
from trueodds.lenses.lens import Lens
from trueodds.lenses.view import View
from trueodds.resampling.interval_spec import IntervalSpec

SCORE: Mapping[str, type[ProperScore]] = {"brier": Brier, "log_loss": LogLoss}


@dataclass(frozen=True)
class Murphy(Recipe):
    r"""The cost of decisions at every threshold, of one model or several, or their miscalibration and discrimination.

    Answers: for one who acts above θ because a false alarm costs θ and a miss 1 − θ, which model costs least, and at
    which thresholds? The style `murphy` draws the mean elementary score

    .. math:: S_\theta = 2\theta\, P[p > \theta, y = 0] + 2(1 - \theta)\, P[p < \theta, y = 1]

    of each model, as the estimator `murphy_loss` has it (half of either cost where p = θ). The area under the curve is
    Brier's score; Ehm et al. (2016) have half of S, and half the area. A curve that is nowhere above another is better
    under every proper score. With :math:`\hat r` the isotonic recalibration (see `corp`) it falls apart at every θ:

    .. math:: S_\theta(p) = \underbrace{S_\theta(p) - S_\theta(\hat r)}_{\text{MCB}} -
        \underbrace{(S_\theta(\bar y) - S_\theta(\hat r))}_{\text{DSC}} + \underbrace{S_\theta(\bar y)}_{\text{UNC}}

    The style `plane` has one mark for each model, miscalibration MCB along x and discrimination DSC along y, with the
    interval of MCB; along a slanted line the mean score MCB − DSC + UNC is the same, and further up the better.

    Views: binary; several are a grid. Weights are importance weights, a vote of .7 is a row of weight .7 and one of .3.
    Units: cost, in [0, 2]; of the plane those of the score. Where up to 1,000 scores and rates turn the curves, these
    are exact, with both limits at a jump; beyond, they are drawn at 200 even thresholds and 100 by each model's
    predictions (TN264), each value exact. Bands are percentiles of resamples of rows, the same for all models of the
    same rows, and hold at each threshold by itself: simulated at level .9 with uniform and arcsine scores, calibrated and
    too sure, they held the true cost in 87–89 % of cases with 100 rows (at θ = .1 and .9 in 79–90 %), in 88–90 % with 1,000.
    Cost: O(n log n), and O(resamples · n) for a band. Raises TO203 for an unknown setting, TO205 for a joint view and
    for a plane of models whose outcomes differ, TO705 for more than eight models.
    Source: Ehm, Gneiting, Jordan & Krüger (2016); Dimitriadis, Gneiting, Jordan & Vogel (2024).

    Parameters
    ----------
    style : str
        `murphy` or `plane`.
    score : str
        `brier` or `log_loss`, whose MCB, DSC and UNC are told and drawn in the plane.
    thresholds : int or sequence, optional
        So many even steps from 0 to 1, or the thresholds themselves: the finding then speaks of these alone. Where
        the curves turn, if not said.
    band : str or None
        `auto`: drawn for one or two models; `bootstrap`: for all. In both the models' differences are judged; None
        draws no resamples. In the plane: whether MCB has an interval, of one view.
    parts : bool, optional
        Whether MCB, DSC and UNC are drawn at each threshold; for one model alone, if not said.
    level : float
        Of bands and intervals.
    resamples : int
        How many.
    paired : bool, optional
        Whether the models speak of the same rows in the same order; if not said, equal outcomes decide.

    Columns of `table`: view model part side threshold score mcb dsc unc low high difference difference_low
    difference_high beyond share. `part` is `curve` (`side`: `at` the threshold, or the limit from `below` or `above`),
    `band` (low and high of the score, its difference to the first model's with limits, `beyond` −1 where these are
    below 0 and 1 where above), `strip` (share of rows with predictions from low to high) and `model` (the score that
    was asked for, its parts, low and high of MCB, the difference of scores). What a part does not have is NaN or empty.

    The cost at θ = .5 is twice the mean of ½ for each wrong decision: one of three.

    >>> diagram = Murphy(thresholds=[0.5], band=None)([View(p=[0.2, 0.7, 0.9], y=[0, 0, 1], name="positive")])
    >>> diagram.table["score"][diagram.table["part"] == "curve"].round(4).tolist()
    [0.3333]
    """

    name: ClassVar[str] = "murphy"
    several: ClassVar[bool] = True
    by_chance: ClassVar[tuple[str, ...]] = ("low", "high", "difference_low", "difference_high", "beyond")
    exempt: ClassVar[dict[str, str]] = IMPORTANCE | {
        "tally": "a threshold is a score, of a tally the mean of a cell, and at the score itself a cost is halved",
    }
    style: Literal["murphy", "plane"] = "murphy"
    score: Annotated[str, OneOf(tuple(SCORES))] = "brier"
    thresholds: Annotated[int, Range(2, 1_000_000)] | Sequence[Annotated[float, Range(0, 1)]] | None = None
    band: Literal["auto", "bootstrap"] | None = "auto"
    parts: bool | None = None
    level: Level = 0.9
    resamples: BandDraws = 999
    paired: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds == ():
            problem = "thresholds are numbers from 0 to 1, or how many steps from 0 to 1."
            raise InputError("TO203", problem, "none", "For instance thresholds=100 or [0.1, 0.5].")

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of the views of one model, without intervals of its score, which need its rows."""
        return self._drawing({"": views}, {"": None}, rng).made({}, {}, [])

    def of_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of named models."""
        sets = views_by_model(models, lens, self.name)
        generator = as_generator(rng)
        seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
        drawing = self._drawing(sets, models, generator)
        interval_spec = IntervalSpec(level=self.level, resamples=self.resamples)
        results, notes = measure_models(models, SCORE[self.score](), lens, interval_spec, self.paired, seed)
        mcb: dict[str, ModelResult] = {}
        # Of several views the marks alone are drawn: the interval of a mean of MCBs would belong to none of them.
        if self.style == "plane" and self.band is not None and len(next(iter(sets.values()))) == 1:
            for name, rows in models.items():
                mcb[name] = measure_models({name: rows}, CorpError(self.score), lens, interval_spec, None, seed)[0][0]
        return drawing.made(dict(zip(models, results, strict=True)), mcb, notes)

    def _drawing(
        self, sets: Mapping[str, tuple[View, ...]], sources: Mapping[str, Any], rng: np.random.Generator
    ) -> Drawing:
        count = len(next(iter(sets.values())))
        panels = [[Model(name, views[i], self.score) for name, views in sets.items()] for i in range(count)]
        panels.sort(key=lambda models: -max(model.numbers["mcb"] for model in models))
        return Drawing(self, _sorted_thresholds(self.thresholds), panels, sources, rng)


def _sorted_thresholds(thresholds: Any) -> Array | None:
    """The thresholds asked for, rising; None where the curves decide."""
    if thresholds is None:
        return None
    if isinstance(thresholds, int):
        return np.arange(thresholds + 1) / thresholds
    return np.unique(np.asarray(thresholds, dtype=np.float64))
