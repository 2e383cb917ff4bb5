"""The consistency resampling test: an estimator against its distribution under labels drawn from the predictions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import exact_pvalues, holm, pvalue
from trueodds.core.registry import dataclass_settings
from trueodds.core.results import Verdict
from trueodds.core.settings import OneOf, Resamples
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests.base import REDRAW_MODES, FractionProgress, HypothesisTest, independence_notes
from trueodds.hypotests.multiple_testing import family_pvalue, insufficient_draws_notes
from trueodds.hypotests.null_draws import draw_null_statistics, min_cluster_pvalue, prepare_votes
from trueodds.lenses.base import Lens
from trueodds.resampling.draws import evaluate
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import notes_on_edges
from trueodds.resampling.label_draws import AllLabelings
from trueodds.resampling.null_distribution import (
    DRAWN_LABELS_TEXT,
    SIGN_FLIPS_TEXT,
    can_draw_by_bin,
    null_description,
)
from trueodds.resampling.tally_estimand import CELL_DRAWS_TEXT, tally_estimand, tally_notes, tally_null_draws
from trueodds.tallies.tally import Tally

ALL_LABELINGS_TEXT = "every labeling has its predicted probability, with independent rows"


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
        statistic_names = [name for estimator in ESTIMATORS.names() for name in ESTIMATORS.settings_of(estimator)]
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
        preds, notes = prepare_votes(preds, self.redraw)
        statistic = self._statistic()
        estimands = [
            Estimand.from_predictions(statistic, lens, preds, self.aggregate or lens.aggregate) for lens in lenses
        ]
        settings = self._settings_used(statistic, estimands)
        if self.redraw == "all":
            settings.pop("resamples")
            return _verdict_from_labelings(preds, estimands, settings)
        if self.redraw == "labels" and can_draw_by_bin(preds, estimands):
            settings["drawn"] = "bins"
        draws = draw_null_statistics(preds, estimands, self.redraw, self.resamples, rng, progress)
        return _verdict_from_null_distributions(
            preds, estimands, draws, null_description(preds, self.redraw), settings, notes
        )

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally; lenses are drawn independently, so the family-wise p is Holm's."""
        if self.redraw != "labels":
            raise InputError(
                "TO205",
                f"⟨redraw='{self.redraw}'⟩ requires the rows, which a tally does not store.",
                f"⟨redraw='{self.redraw}'⟩",
                "Omit redraw, or use ⟨mode='exact'⟩.",
            )
        statistic = self._statistic()
        estimands = [tally_estimand(tally, statistic, lens, self.aggregate or lens.aggregate) for lens in lenses]
        draws_and_jointness = [tally_null_draws(tally, estimand, self.resamples, rng) for estimand in estimands]
        notes = [note for estimand in estimands for note in tally_notes(tally, estimand)]
        notes.append(Note("TN403", CELL_DRAWS_TEXT))
        return _verdict_from_draws(
            estimands,
            [draws for draws, _ in draws_and_jointness],
            SIGN_FLIPS_TEXT.format(unit="rows") if tally.counts.voted else DRAWN_LABELS_TEXT,
            self._settings_used(statistic, estimands),
            notes,
            joint_views=all(is_joint for _, is_joint in draws_and_jointness),
            joint_lenses=False,
        )

    def error_estimator(self) -> Estimator:
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
        return settings | _settings_of_statistic(statistic, estimands)


def _settings_of_statistic(statistic: Estimator, estimands: Sequence[Estimand]) -> dict[str, Any]:
    """Settings of the statistic that are equal for all views of all lenses.

    The numbers of bins differ between views, and the default partition between binary and joint views.
    """
    settings = statistic.settings_used(estimands[0].views[0])
    if len(estimands) == 1 and len(estimands[0].views) == 1:
        return settings
    same_partition = all(estimand.views[0].joint == estimands[0].views[0].joint for estimand in estimands)
    return {
        key: value
        for key, value in settings.items()
        if not key.endswith(("_bins", "_bin")) and (same_partition or key != "partition")
    }


@dataclass(frozen=True)
class LensResult:
    """Test result of one lens."""

    statistic: float  # aggregated over the views
    pvalue: float  # p-value of the statistic
    null_mean: float  # mean of the statistic under the null
    losses: Array  # (views,) losses of the views
    loss_draws: Array  # (views, B) their null draws
    family_pvalue: float | None  # p-value of the family of views; None for a single view
    parts: dict[str, dict[str, float]]  # results by view; empty for a single view


def _verdict_from_null_distributions(
    preds: Predictions,
    estimands: Sequence[Estimand],
    draws_by_null: Sequence[Sequence[Array]],
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note] = (),
) -> Verdict:
    """Verdict on rows from the draws of `draw_null_statistics`; the larger p-value of two null distributions.

    `null` describes the first of the null distributions.
    """
    edge_notes = [note for estimand in estimands for note in notes_on_edges(preds, estimand)]
    is_joint, notes = preds.kind != "multilabel", [*notes, *independence_notes(preds), *edge_notes]
    verdicts = [
        _verdict_from_draws(
            estimands,
            draws,
            null,
            settings,
            notes,
            joint_views=is_joint,
            joint_lenses=is_joint,
            null_min_pvalue=min_cluster_pvalue(preds),
        )
        for draws in draws_by_null
    ]
    return functools.reduce(_take_larger_pvalues, verdicts)


def _take_larger_pvalues(first: Verdict, second: Verdict) -> Verdict:
    """The first of two verdicts on the same hypotheses, with the larger of both p-values everywhere."""
    parts = {
        name: {**part, **{key: max(part[key], second.parts[name][key]) for key in ("pvalue", "holm")}}
        for name, part in first.parts.items()
    }
    family_pvalues = [p for p in (first.family_pvalue, second.family_pvalue) if p is not None]
    return replace(
        first,
        pvalue=max(first.pvalue, second.pvalue),
        family_pvalue=max(family_pvalues) if family_pvalues else None,
        parts=parts,
    )


def _verdict_from_draws(
    estimands: Sequence[Estimand],
    draws: Sequence[Array],
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
    *,
    joint_views: bool,
    joint_lenses: bool,
    null_min_pvalue: float = 0.0,
) -> Verdict:
    """Verdict from the observed statistics and their null draws (views, B), for the test and for the audit report.

    `joint_views` and `joint_lenses` say whether the draws of the views of a lens, and of the lenses, are joint: made
    from the same labels. If they are not, the family-wise p is Holm's. `null_min_pvalue` is the smallest p-value that
    the null distribution allows; 1/(1 + B) is used if that is larger.
    """
    lens_results = [
        lens_result_from_draws(estimand, lens_draws, joint=joint_views)
        for estimand, lens_draws in zip(estimands, draws, strict=True)
    ]
    min_pvalue = max(1 / (1 + draws[0].shape[1]), null_min_pvalue)
    notes = list(notes)
    for estimand in estimands:
        if len(estimand.views) == 1:
            notes += [note for note in estimand.estimator.notes(estimand.views[0]) if note.code == "TN107"]
    n_claims = max(len(estimands), *(len(estimand.views) for estimand in estimands))
    notes += insufficient_draws_notes(n_claims, draws[0].shape[1])
    if len(estimands) == 1:
        min_lens_pvalue = min_pvalue if joint_views else min(1.0, min_pvalue * len(estimands[0].views))
        return _build_verdict(estimands, lens_results, lens_results[0].pvalue, min_lens_pvalue, null, settings, notes)
    family_p = min(holm([result.pvalue for result in lens_results]))
    if joint_lenses:
        # Every view of every lens is a hypothesis of the family, so one miscalibrated class is not averaged out.
        observed = np.concatenate([result.losses for result in lens_results])
        family_p = family_pvalue(observed, np.concatenate([result.loss_draws for result in lens_results]))
    else:
        min_pvalue = min(1.0, min_pvalue * sum(len(estimand.views) for estimand in estimands))
    return _build_verdict(estimands, lens_results, family_p, min_pvalue, null, settings, notes)


def _build_verdict(
    estimands: Sequence[Estimand],
    lens_results: Sequence[LensResult],
    p: float,
    min_pvalue: float | None,
    null: str,
    settings: dict[str, Any],
    notes: Sequence[Note],
) -> Verdict:
    """Verdict on one lens, or on a family; statistic and effect are those of the lens with the smallest p-value."""
    strongest = lens_results[int(np.argmin([np.nan_to_num(result.pvalue, nan=1.0) for result in lens_results]))]
    lens, family_p, parts = str(estimands[0].lens), strongest.family_pvalue, strongest.parts
    if len(estimands) > 1:
        lens, family_p = "family", p
        parts = _parts(
            [str(estimand.lens) for estimand in estimands],
            [result.statistic for result in lens_results],
            [result.pvalue for result in lens_results],
            [result.null_mean for result in lens_results],
        )
    return Verdict(
        test="consistency",
        lens=lens,
        statistic=strongest.statistic,
        pvalue=p,
        n=estimands[0].n_rows,
        null=null,
        min_pvalue=min_pvalue,
        family_pvalue=family_p,
        effect=strongest.statistic - strongest.null_mean,
        parts=parts,
        settings=settings,
        notes=tuple(dict.fromkeys(notes)),
    )


def _parts(
    names: Sequence[str], statistics: Iterable[float], pvalues: Sequence[float], noise_floors: Sequence[float]
) -> dict[str, dict[str, float]]:
    """Statistic, p-value, Holm's p-value and noise floor of each view, or of each lens of a family, by name."""
    return {
        name: {"statistic": float(statistic), "pvalue": p, "holm": adjusted, "noise_floor": noise_floor}
        for name, statistic, p, adjusted, noise_floor in zip(
            names, statistics, pvalues, holm(pvalues), noise_floors, strict=True
        )
    }


def _verdict_from_labelings(preds: Predictions, estimands: Sequence[Estimand], settings: dict[str, Any]) -> Verdict:
    """Verdict from the statistics of all possible labelings: the p-value is exact and has no lower limit."""
    labelings = AllLabelings(preds)
    values, probabilities = evaluate(estimands, labelings), labelings.probabilities
    lens_results = [
        _lens_result_from_labelings(estimand, estimand_values, probabilities)
        for estimand, estimand_values in zip(estimands, values, strict=True)
    ]
    observed = np.concatenate([result.losses for result in lens_results])
    all_values = np.concatenate([result.loss_draws for result in lens_results])
    _, family_p = exact_pvalues(observed, all_values, probabilities)
    p = lens_results[0].pvalue if len(lens_results) == 1 else family_p
    return _build_verdict(estimands, lens_results, p, None, ALL_LABELINGS_TEXT, settings, independence_notes(preds))


def _lens_result_from_labelings(estimand: Estimand, values: Array, probabilities: Array) -> LensResult:
    """Exact test result of one lens from the statistics of all labelings (views, L) and their probabilities (L,)."""
    observed_values, as_loss = estimand.values, estimand.estimator.as_loss
    null_mean = float(estimand.combine_views(values) @ probabilities)
    (lens_p,), _ = exact_pvalues(
        np.array([estimand.combine_views(as_loss(observed_values))]),
        estimand.combine_views(as_loss(values))[None],
        probabilities,
    )
    view_pvalues, family_p = exact_pvalues(as_loss(observed_values), as_loss(values), probabilities)
    has_one_view, names = len(estimand.views) == 1, [view.name for view in estimand.views]
    null_means = [float(view_values @ probabilities) for view_values in values]
    return LensResult(
        statistic=float(estimand.combine_views(observed_values)),
        pvalue=lens_p,
        null_mean=null_mean,
        losses=as_loss(observed_values),
        loss_draws=as_loss(values),
        family_pvalue=None if has_one_view else family_p,
        parts={} if has_one_view else _parts(names, observed_values, view_pvalues, null_means),
    )


def lens_result_from_draws(estimand: Estimand, draws: Array, *, joint: bool) -> LensResult:
    """Test result of one lens from its draws (views, B), with its views as parts if there are several.

    `joint` says whether the draws of the views are joint: made from the same labels.
    """
    observed_values = estimand.values
    losses, loss_draws = estimand.estimator.as_loss(observed_values), estimand.estimator.as_loss(draws)
    lens_p = pvalue(float(estimand.combine_views(losses)), estimand.combine_views(loss_draws))
    result = LensResult(
        statistic=float(estimand.combine_views(observed_values)),
        pvalue=lens_p,
        null_mean=float(estimand.combine_views(draws).mean()),
        losses=losses,
        loss_draws=loss_draws,
        family_pvalue=None,
        parts={},
    )
    if len(estimand.views) == 1:
        return result
    view_pvalues = [pvalue(float(loss), view_draws) for loss, view_draws in zip(losses, loss_draws, strict=True)]
    names, null_means = [view.name for view in estimand.views], [float(view_draws.mean()) for view_draws in loss_draws]
    parts = _parts(names, losses, view_pvalues, null_means)
    family_p = family_pvalue(losses, loss_draws) if joint else min(holm(view_pvalues))
    # The labels of a multilabel row may be dependent, but their draws are not. The null distribution of a sum over
    # labels is therefore unknown, and the p-value of the lens is that of the family of its views.
    return replace(result, pvalue=lens_p if joint else family_p, family_pvalue=family_p, parts=parts)
