"""The consistency resampling test: an estimator against its distribution under labels drawn from the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.registry import dataclass_settings
from trueodds.core.results import Verdict
from trueodds.core.settings import OneOf, Resamples
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests.base import REDRAW_MODES, FractionProgress, HypothesisTest
from trueodds.hypotests.consistency_verdict import (
    exact_verdict,
    lens_result_from_draws,
    statistic_settings,
    verdict_from_draws,
    verdict_from_rows,
)
from trueodds.hypotests.null_draws import draw_null_statistics
from trueodds.hypotests.votes import prepare_votes
from trueodds.lenses.base import Lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import DRAWN_LABELS_TEXT, SIGN_FLIPS_TEXT, null_description
from trueodds.resampling.null_draws_by_bin import can_draw_by_bin
from trueodds.resampling.pvalues import pvalue
from trueodds.resampling.tally_estimates import CELL_DRAWS_TEXT, tally_estimand, tally_notes, tally_null_draws
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class Consistency(HypothesisTest):
    r"""Consistency resampling: an estimator against its distribution under labels drawn from the predictions.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    statistic : str or Estimator, default="ece"
        Any estimator. In `to.test`, its own settings (bins, partition, distance, …) may be passed beside its name.
    redraw : {"labels", "both", "all"}, default="labels"
        "labels" keeps the predictions. "both" also resamples the rows (the scheme of the 2019 paper). "all" enumerates
        every labeling of a few rows (up to 2^20), which gives the exact p-value without random draws.
    resamples : int, default=999
        Number of null draws.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How a lens with several views is reduced to one number. Default: the lens's own, for most lenses the mean.

    Raises
    ------
    InputError
        TO202 for unknown settings, or settings beside an instance. TO203 for invalid values. TO205 for
        ``redraw="both"`` with clusters, ``redraw="all"`` with too many labelings, and tallies with a redraw other than
        "labels".

    Notes
    -----
    .. math:: p = \frac{1 + \#\{b : T^*_b \ge T\}}{1 + B}

    The p-value is exact at any n, for any statistic and lens, because draws and data are exchangeable under the null.
    The smallest possible p-value is 1/(1 + B). All lenses and classes use the same draws, so the family-wise p-value is
    joint; p-values of single lenses or classes are Holm-adjusted. With `cluster` or `votes` the null hypothesis
    differs, and the result states it: the signs of the residuals of whole clusters, or of whole rows, are flipped, and
    labels or votes are drawn with their estimated correlation; the larger p-value counts (approximate).

    Effect: the statistic minus its mean under the null, in the units of the statistic. Cost: one addition per row, draw
    and lens for errors on fixed bins; one evaluation per draw otherwise. Beyond 200,000 rows the counts of one binary
    lens are drawn per bin (setting `drawn: bins`), large counts from the normal distribution and others from the exact
    one. The cost is then that of the bins.

    References
    ----------
    .. [1] Bröcker & Smith (2007).
    .. [2] Vaicenavicius et al. (2019).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([0, 1] * 50, [0.5] * 100, "consistency", statistic="ece", resamples=99)
    >>> verdict.pvalue, verdict.min_pvalue
    (1.0, 0.01)
    """

    name: ClassVar[str] = "consistency"
    statistic: str | Estimator = "ece"
    redraw: Annotated[str, OneOf(REDRAW_MODES)] = "labels"
    resamples: Resamples = 999
    aggregate: Aggregate | None = None  # None: the lens's own, the mean of its views for most lenses

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        own_names = dataclass_settings(cls)
        statistic_names = [name for estimator_name in ESTIMATORS.names() for name in _accepted_settings(estimator_name)]
        return tuple(dict.fromkeys([*own_names, *statistic_names]))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Consistency:
        own_settings = {name: settings.pop(name) for name in dataclass_settings(cls) if name in settings}
        statistic = own_settings.pop("statistic", "ece")
        if isinstance(statistic, str):
            statistic = ESTIMATORS.make(statistic, settings)
        elif settings:
            raise InputError(
                "TO202",
                "The statistic is an instance, which already has its settings.",
                ", ".join(settings),
                "Pass them to the instance.",
            )
        return cls(statistic=statistic, **own_settings)

    def __call__(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> Verdict:
        """Test one lens, or a family of several lenses on the same draws."""
        preds, notes = prepare_votes(preds, self.redraw)
        statistic = self._statistic()
        estimands = [
            Estimand.from_predictions(statistic, lens, preds, self.aggregate or lens.aggregate) for lens in lenses
        ]
        settings = self._settings_used(statistic, estimands)
        if self.redraw == "all":
            settings.pop("resamples")
            return exact_verdict(preds, estimands, settings)
        if self.redraw == "labels" and can_draw_by_bin(preds, estimands):
            settings["drawn"] = "bins"
        draws = draw_null_statistics(preds, estimands, self.redraw, self.resamples, rng, progress)
        return verdict_from_rows(preds, estimands, draws, null_description(preds, self.redraw), settings, notes)

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally; lenses are drawn independently, so the family-wise p is Holm's."""
        if self.redraw != "labels":
            raise InputError(
                "TO205",
                f"redraw='{self.redraw}' requires the rows, which a tally does not store.",
                f"redraw='{self.redraw}'",
                "Omit redraw, or use mode='exact'.",
            )
        statistic = self._statistic()
        estimands = [tally_estimand(tally, statistic, lens, self.aggregate or lens.aggregate) for lens in lenses]
        draws_and_jointness = [tally_null_draws(tally, estimand, self.resamples, rng) for estimand in estimands]
        notes = [note for estimand in estimands for note in tally_notes(tally, estimand)]
        notes.append(Note("TN403", CELL_DRAWS_TEXT))
        return verdict_from_draws(
            estimands,
            [draws for draws, _ in draws_and_jointness],
            SIGN_FLIPS_TEXT.format(unit="rows") if tally.counts.voted else DRAWN_LABELS_TEXT,
            self._settings_used(statistic, estimands),
            notes,
            joint_views=all(is_joint for _, is_joint in draws_and_jointness),
            joint_lenses=False,
        )

    def error_estimator(self) -> Estimator:
        """The statistic, which is compared with an equivalence margin."""
        return self._statistic()

    def estimand(self, preds: Predictions, lens: Lens) -> Estimand | None:
        """The statistic through this lens; None if all labelings are enumerated."""
        if self.redraw == "all":
            return None
        return Estimand.from_predictions(self._statistic(), lens, preds, self.aggregate or lens.aggregate)

    def pvalue_from_draws(self, estimand: Estimand, draws: Array, *, joint: bool) -> float:
        """p-value of the lens; Holm-adjusted if the draws of its views are not joint."""
        if len(estimand.views) > 1 and not joint:
            return lens_result_from_draws(estimand, draws, joint=False).pvalue
        as_loss = estimand.estimator.as_loss
        return pvalue(float(estimand.combine_views(as_loss(estimand.values))), estimand.combine_views(as_loss(draws)))

    def _statistic(self) -> Estimator:
        """The statistic as an estimator, created from its name if necessary."""
        return self.statistic if isinstance(self.statistic, Estimator) else ESTIMATORS.make(self.statistic, {})

    def _settings_used(self, statistic: Estimator, estimands: Sequence[Estimand]) -> dict[str, Any]:
        """Settings of the test, and those of its statistic that are equal for all views."""
        settings = {"statistic": statistic.name, "redraw": self.redraw, "resamples": self.resamples}
        if any(len(estimand.views) > 1 for estimand in estimands):
            settings["aggregate"] = self.aggregate or estimands[0].lens.aggregate
        return settings | statistic_settings(statistic, estimands)


def _accepted_settings(estimator_name: str) -> tuple[str, ...]:
    """Names of the settings of an estimator."""
    estimator = ESTIMATORS.load(estimator_name)
    return estimator.setting_names()
