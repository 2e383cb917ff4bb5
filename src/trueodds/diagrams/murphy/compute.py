"""Compute Murphy diagrams and the miscalibration-discrimination plane of one or several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.ordering import decreasing_order
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, OneOf, Range
from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_results import ModelResult, Models, match_views, measure_models
from trueodds.diagrams.murphy.builder import MurphyBuilder
from trueodds.diagrams.murphy.curves import MurphyModel
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BandDraws, Recipe
from trueodds.estimators.base import ProperScore
from trueodds.estimators.corp import SCORES
from trueodds.estimators.corp import Corp as CorpError
from trueodds.estimators.proper_scores import Brier, LogLoss
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.intervals.method import IntervalSpec

SCORE_ESTIMATORS: Mapping[str, type[ProperScore]] = {"brier": Brier, "log_loss": LogLoss}


@dataclass(frozen=True)
class Murphy(Recipe):
    r"""Murphy diagram: mean elementary score by decision threshold, or the miscalibration-discrimination plane.

    The diagram shows which of several models has the lower cost, and at which thresholds, for a user who acts above
    θ because a false alarm costs θ and a miss costs 1 − θ. A model whose curve is nowhere above another is better under
    every proper score. ``style="plane"`` draws one mark for each model, with miscalibration (MCB) on the horizontal
    axis, its interval, and discrimination (DSC) on the vertical axis. The mean score MCB − DSC + UNC is constant along
    the slanted lines and improves toward the upper left.

    Parameters
    ----------
    style : {"murphy", "plane"}, default="murphy"
        Curves by threshold, or the plane of MCB and DSC.
    score : {"brier", "log_loss"}, default="brier"
        The score whose MCB, DSC and UNC are reported and drawn in the plane.
    thresholds : int or sequence of float, optional
        The number of equal steps from 0 to 1, or the thresholds themselves. The finding then refers to these
        thresholds only. By default, the thresholds at which the curves change.
    band : {"auto", "bootstrap"} or None, default="auto"
        ``"auto"`` draws bootstrap bands for one or two models, ``"bootstrap"`` for all. Both also compute intervals of
        the differences between models. None draws no resamples. In the plane the setting decides whether MCB has an
        interval, which a single view only can have.
    parts : bool, optional
        Whether MCB, DSC and UNC are drawn at each threshold. By default only for a single model.
    level : float, default=0.9
        Confidence level of bands and intervals.
    resamples : int, default=999
        The number of bootstrap resamples.
    paired : bool, optional
        Whether the models predict the same rows in the same order. By default this is decided by whether their
        outcomes are equal.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for a joint view and for a plane of models with different outcomes; TO705
        for more than eight models.

    Notes
    -----
    The mean elementary score at the threshold θ is

    .. math:: S_\theta = 2\theta\, P[p > \theta, y = 0] + 2(1 - \theta)\, P[p < \theta, y = 1]

    as in the estimator ``murphy_loss``, with half of either cost where p = θ. The area under the curve is the Brier
    score. Ehm et al. [1]_ define half of S, and half the area. With the isotonic recalibration :math:`\hat r` (see
    ``corp``), the score decomposes at every θ:

    .. math:: S_\theta(p) = \underbrace{S_\theta(p) - S_\theta(\hat r)}_{\text{MCB}} -
        \underbrace{(S_\theta(\bar y) - S_\theta(\hat r))}_{\text{DSC}} + \underbrace{S_\theta(\bar y)}_{\text{UNC}}

    Views: binary. Several views form a grid. Weights are importance weights. A share of votes of 0.7 counts as an event
    of weight 0.7 and a non-event of weight 0.3. Units: cost, in [0, 2], 0 is best; in the plane those of the score.

    With up to 1,000 points at which the curves change, curves are exact, with both limits at a jump. Otherwise they
    are evaluated exactly at 200 equally spaced thresholds and 100 quantiles of the predictions of each model (note
    TN264). Bands are pointwise percentile intervals of resampled rows, the same rows for all models that share them.
    In simulations at level 0.9 with uniform and arcsine scores, calibrated and overconfident, they covered the true
    cost in 87–89 % of the cases with 100 rows (79–90 % at θ = 0.1 and 0.9), and in 88–90 % with 1,000 rows.

    Columns of ``table``: ``view model part side threshold score mcb dsc unc low high difference difference_low
    difference_high beyond share``. ``part`` is ``curve`` (``side``: ``at`` the threshold, or the limit from ``below``
    or ``above``), ``band`` (limits of the score, its difference to the first model with limits, and ``beyond``: −1 if
    these are below 0, 1 if above), ``strip`` (share of rows with predictions from low to high) or ``model`` (`score`
    and its parts, limits of MCB, difference of scores). Entries that do not apply are NaN or empty.

    Cost: O(n log n), and O(resamples · n) for a band.

    References
    ----------
    .. [1] Ehm, Gneiting, Jordan & Krüger (2016).
    .. [2] Dimitriadis, Gneiting, Jordan & Vogel (2024).

    Examples
    --------
    At θ = 0.5 the cost is the share of wrong decisions, here one of three.

    >>> import trueodds as to
    >>> diagram = to.draw([0, 0, 1], [0.2, 0.7, 0.9], "murphy", thresholds=[0.5], band=None)
    >>> diagram.table["score"][diagram.table["part"] == "curve"].round(4).tolist()
    [0.3333]
    """

    name: ClassVar[str] = "murphy"
    accepts_several_models: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = ("low", "high", "difference_low", "difference_high", "beyond")
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION | {
        "tally": "thresholds at scores depend on exact scores, and a tally replaces them by the mean of a cell",
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
            problem = "thresholds must be numbers from 0 to 1, or the number of steps from 0 to 1."
            raise InputError("TO203", problem, "an empty sequence", "For instance thresholds=100 or [0.1, 0.5].")

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of the views of one model, without intervals of its score, which need its rows."""
        return self._make_builder({"": views}, {"": None}, rng).build({}, {}, [])

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of named models."""
        views_by_model = match_views(models, lens, self.name)
        generator = as_generator(rng)
        seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
        builder = self._make_builder(views_by_model, models, generator)
        interval_spec = IntervalSpec(level=self.level, resamples=self.resamples)
        results, notes = measure_models(models, SCORE_ESTIMATORS[self.score](), lens, interval_spec, self.paired, seed)
        mcb_results: dict[str, ModelResult] = {}
        # With several views only marks are drawn: the interval of the mean MCB would belong to none of them.
        if self.style == "plane" and self.band is not None and len(next(iter(views_by_model.values()))) == 1:
            for name, data in models.items():
                mcb_results[name] = measure_models(
                    {name: data}, CorpError(self.score), lens, interval_spec, None, seed
                )[0][0]
        return builder.build(dict(zip(models, results, strict=True)), mcb_results, notes)

    def _make_builder(
        self, views_by_model: Mapping[str, tuple[View, ...]], data_by_model: Mapping[str, Any], rng: np.random.Generator
    ) -> MurphyBuilder:
        """Order the views by their largest MCB and compute curves and bands of all models."""
        n_views = len(next(iter(views_by_model.values())))
        panels = [
            [MurphyModel(name, views[i], self.score) for name, views in views_by_model.items()] for i in range(n_views)
        ]
        largest_mcb = [max(model.decomposition["mcb"] for model in models) for models in panels]
        panels = [panels[i] for i in decreasing_order(largest_mcb)]
        return MurphyBuilder(self, _sorted_thresholds(self.thresholds), panels, data_by_model, rng)


def _sorted_thresholds(thresholds: Any) -> Array | None:
    """The given thresholds in increasing order; None if the curves determine them."""
    if thresholds is None:
        return None
    if isinstance(thresholds, int):
        return np.arange(thresholds + 1) / thresholds
    return np.unique(np.asarray(thresholds, dtype=np.float64))
