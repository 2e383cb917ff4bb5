"""The base class `ViewTest` of tests with one statistic per view, whose null distribution is asymptotic or simulated.

A subclass computes the statistic of a view. The base class combines the views of a lens, and several lenses, to a
verdict: by Holm's correction of asymptotic p-values, or by the joint distribution of the statistics under redrawn
labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import holm
from trueodds.core.results import Verdict
from trueodds.core.settings import OneOf, Resamples, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, require_one_score, require_single_rows
from trueodds.hypotests.base import REDRAW_MODES, FractionProgress, HypothesisTest, independence_notes
from trueodds.hypotests.multiple_testing import PValues, insufficient_draws_notes, sufficient_draws
from trueodds.hypotests.null_draws import (
    TWICE_THE_MEAN_TEXT,
    average_votes,
    draw_null_statistics,
    draw_vote_labels,
    min_cluster_pvalue,
    prepare_votes,
)
from trueodds.hypotests.view_statistic import StatisticEstimator, ViewResult
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import DRAWN_LABELS_TEXT, SIGN_FLIPS_TEXT, null_description
from trueodds.resampling.tally_estimand import CELL_DRAWS_TEXT, tally_estimand, tally_notes, tally_null_draws
from trueodds.tallies.tally import Tally

NULL_DISTRIBUTIONS = ("asymptotic", "redraw")
DEFAULT_RESAMPLES = 999  # default number of null draws
MAX_RESAMPLES = 9_999  # maximum number of null draws for p-values adjusted for many hypotheses
DRAWS_MARGIN = 2.5  # number of null draws, divided by the smallest number with which a p-value could be significant
CLUSTERED_LABELS_TEXT = (
    "labels drawn from the predicted probabilities, independently of those of other clusters, predictions kept fixed"
)


@dataclass(frozen=True, kw_only=True)
class ViewTest(HypothesisTest):
    """Base class of tests with one statistic per view; family-wise p-values are Holm's, or joint with redraws.

    A subclass implements `evaluate` (the result of one view) and `cell_statistic` (the same statistic for many draws).
    It may override `describe_null`, `recommended_alternative`, `evaluate_with_draws`, `evaluate_with_clusters`,
    `add_draw_results`, `summarize_draws` and `pvalues`.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: standard normal, or labels drawn from the predicted probabilities.
    redraw : {"labels", "both"}, default="labels"
        With ``null="redraw"``: "labels" keeps the predictions, "both" also resamples the rows.
    resamples : int, default=999
        Number of null draws with ``null="redraw"``.
    """

    accepts_joint_views: ClassVar[bool] = False  # whether a view may have a probability vector per row
    needs_rows: ClassVar[bool] = False  # whether the cells of a tally are insufficient
    null_distributions: ClassVar[tuple[str, ...]] = NULL_DISTRIBUTIONS  # available null distributions
    simulated_nulls: ClassVar[tuple[str, ...]] = ("redraw",)  # null distributions that use `resamples` draws
    asymptotic_null: ClassVar[str] = ""  # the asymptotic distribution, in words that follow "labels drawn …, so that"
    clustered_null: ClassVar[str] = ""  # that of `evaluate_with_clusters`; empty if rows must be independent
    estimates_by_cluster: ClassVar[bool] = False  # whether `evaluate_with_clusters` applies to redrawn labels too
    # The tested part of the null hypothesis, in words that precede the null distribution, such as "slope 1: ".
    tested_part_text: ClassVar[str] = ""
    # How the statistics of a view are combined, in words that follow the null hypothesis.
    joint_null: ClassVar[str] = ""

    null: str = "asymptotic"  # one of `null_distributions`
    redraw: Annotated[str, OneOf(REDRAW_MODES)] = "labels"  # what is drawn with null="redraw"
    resamples: Resamples | None = DEFAULT_RESAMPLES  # number of null draws; None: more of them for borderline p-values

    def __post_init__(self) -> None:
        super().__post_init__()
        check("null", self.null, Annotated[str, OneOf(self.null_distributions)], type(self).null)
        if self.redraw != "labels" and self.null != "redraw":
            raise InputError(
                "TO205",
                f"redraw requires ⟨null='redraw'⟩, and null={self.null!r} does not redraw labels.",
                f"⟨redraw={self.redraw!r}⟩ with null={self.null!r}",
                "Use ⟨null='redraw'⟩, or omit redraw.",
            )
        if self.redraw == "all":
            raise InputError("TO205", "Only consistency enumerates all labelings.", "⟨redraw='all'⟩", "Omit it.")

    def evaluate(self, view: View) -> ViewResult:
        """Statistic, asymptotic p-value and effect of one view."""
        raise NotImplementedError

    def evaluate_with_draws(self, view: View, rng: np.random.Generator) -> ViewResult:
        """The result of `evaluate`, for null distributions that make their own draws."""
        return self.evaluate(view)

    def evaluate_with_clusters(self, view: View, cluster: Array) -> ViewResult:
        """The result of `evaluate` with estimates and p-values that assume independent clusters; `cluster` (n,)."""
        raise NotImplementedError

    def describe_null(self, results: Sequence[Sequence[ViewResult]], *, clustered: bool) -> str:
        """Description of the asymptotic null distribution for these results."""
        return self.clustered_null if clustered else self.asymptotic_null

    @property
    def recommended_alternative(self) -> str:
        """The alternative recommended if the asymptotic distribution is inaccurate."""
        if "redraw" in self.null_distributions:
            return "⟨null='redraw'⟩"
        return f"consistency with ⟨statistic={self.name!r}⟩"

    def cell_statistic(self, view: View) -> CellStatistic:
        """The statistic on cells that do not depend on the labels, for many draws; larger is more extreme.

        Several statistics of one view, combined by min-p, have an additional last axis.
        """
        raise NotImplementedError

    def add_draw_results(self, result: ViewResult, view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Add results that require the draws of this view; `draws` has one array per null distribution."""
        return result

    def __call__(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> Verdict:
        return self.verdicts(preds, lenses, rng, progress)[0]

    def verdicts(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> list[Verdict]:
        """Verdicts on the family of lenses and on each of them, from the same draws; a single verdict for one lens."""
        self._refuse_clusters(preds)
        preds, notes = prepare_votes(preds, self.redraw)
        notes = [
            *preds.notes,
            *notes,
            *(note for lens in lenses for note in lens.notes(preds)),
            *independence_notes(preds, needs_redraw=self._needs_redraw_for_clusters),
        ]
        families = [slice(None)]  # slices of the lenses: all of them, and each one
        if len(lenses) > 1:
            families += [slice(i, i + 1) for i in range(len(lenses))]
        if self.null == "redraw":
            return self._redraw_verdicts(preds, lenses, families, notes, rng, progress)
        return self._asymptotic_verdicts(preds, lenses, families, notes, rng)

    def _refuse_clusters(self, preds: Predictions) -> None:
        """Raise InputError for clustered rows if the null distribution assumes independent rows."""
        if preds.cluster is None or self.null == "redraw" or self._uses_clusters:
            return
        null_text = "The asymptotic distribution" if self.null == "asymptotic" else f"null={self.null!r}"
        problem = f"{null_text} of {self.name} assumes independent rows, and these rows are clustered."
        fix = "Keep one row per cluster."
        if "redraw" in self.null_distributions:
            fix = "Use ⟨null='redraw'⟩, which flips the signs of whole clusters."
        raise InputError("TO205", problem, f"⟨cluster=⟩ with null={self.null!r}", fix)

    @property
    def _uses_clusters(self) -> bool:
        """Whether the null distribution is an asymptotic one of independent clusters, if there are clusters."""
        return self.null == "asymptotic" and bool(self.clustered_null)

    @property
    def _needs_redraw_for_clusters(self) -> bool:
        """Whether clustered rows require the setting null='redraw'."""
        return self.null != "redraw" and not self._uses_clusters and "redraw" in self.null_distributions

    def _asymptotic_verdicts(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        families: Sequence[slice],
        notes: Sequence[Note],
        rng: np.random.Generator,
    ) -> list[Verdict]:
        """Verdicts on slices of the lenses by a null distribution without redrawn labels."""
        cluster = preds.cluster if self._uses_clusters else None
        estimands, results = self._asymptotic_results(preds, lenses, rng, cluster)
        labels_text = DRAWN_LABELS_TEXT if cluster is None else CLUSTERED_LABELS_TEXT
        null_text = f"{labels_text}, so that {self.describe_null(results, clustered=cluster is not None)}"
        if preds.votes is not None and cluster is None:
            null_text += TWICE_THE_MEAN_TEXT
        return [self._build_verdict(estimands[family], results[family], None, null_text, notes) for family in families]

    def _redraw_verdicts(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        families: Sequence[slice],
        notes: Sequence[Note],
        rng: np.random.Generator,
        progress: FractionProgress | None,
    ) -> list[Verdict]:
        """Verdicts on slices of the lenses from the same null draws."""
        estimands = [Estimand(StatisticEstimator(self), lens, lens.views(preds)) for lens in lenses]
        is_joint = preds.kind != "multilabel"

        def family_pvalue(draws: Sequence[Array]) -> float:
            """p-value of the family of all lenses from the draws of each lens."""
            lens_summaries = self._summarize_all_draws(estimands, draws)
            return self.pvalues(estimands, lens_summaries, joint_views=is_joint, joint_lenses=is_joint).family_pvalue

        draws_by_null = draw_null_statistics(
            preds, estimands, self.redraw, self.resamples or DEFAULT_RESAMPLES, rng, progress,
            None if self.resamples else family_pvalue,
        )  # fmt: skip
        null_min_pvalue = min_cluster_pvalue(preds)
        cluster = preds.cluster if self.estimates_by_cluster else None
        results = self._add_draw_results(estimands, self._evaluate_views(estimands, rng, cluster), draws_by_null)
        null_text = null_description(preds, self.redraw) + self.joint_null
        summaries = [self._summarize_all_draws(estimands, draws) for draws in draws_by_null]
        verdicts, resamples = [], draws_by_null[0][0].shape[1]
        for family in families:
            null_pvalues = [
                self.pvalues(estimands[family], null_summaries[family], joint_views=is_joint, joint_lenses=is_joint)
                for null_summaries in summaries
            ]
            verdicts.append(
                self._build_verdict(
                    estimands[family], results[family], null_pvalues, null_text, notes, null_min_pvalue, resamples
                )
            )
        return verdicts

    def _asymptotic_results(
        self, preds: Predictions, lenses: Sequence[Lens], rng: np.random.Generator, cluster: Array | None
    ) -> tuple[list[Estimand], list[list[ViewResult]]]:
        """Asymptotic results; with votes, averaged over many draws of one vote per row."""
        labelings = [preds] if preds.votes is None or cluster is not None else draw_vote_labels(preds, rng)
        results_by_labels = []
        for labeled_preds in labelings:
            estimands = [Estimand(StatisticEstimator(self), lens, lens.views(labeled_preds)) for lens in lenses]
            results_by_labels.append(self._evaluate_views(estimands, rng, cluster))
        if len(results_by_labels) == 1:
            return estimands, results_by_labels[0]
        average_results = [
            [average_votes([results[i][v] for results in results_by_labels]) for v in range(len(estimand.views))]
            for i, estimand in enumerate(estimands)
        ]
        return estimands, average_results

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally, each treated as rows with its mean prediction."""
        if self.needs_rows:
            return super().from_tally(tally, lenses, rng)
        if self.redraw == "both":
            raise InputError(
                "TO205",
                "⟨redraw='both'⟩ requires the rows, which a tally does not store.",
                "⟨redraw='both'⟩",
                "Omit redraw, or use ⟨mode='exact'⟩.",
            )
        if tally.counts.voted and self.null == "asymptotic":
            raise InputError(
                "TO205",
                f"The asymptotic distribution of {self.name} assumes one label per row, and this tally contains shares"
                " of votes.",
                "votes with null='asymptotic'",
                "Use ⟨null='redraw'⟩, which flips the signs of residuals, or ⟨mode='exact'⟩.",
            )
        estimands = [tally_estimand(tally, StatisticEstimator(self), lens) for lens in lenses]
        results = self._evaluate_views(estimands, rng)
        notes = list(dict.fromkeys(note for estimand in estimands for note in tally_notes(tally, estimand)))
        if self.null != "redraw":
            null_text = f"{DRAWN_LABELS_TEXT}, so that {self.describe_null(results, clustered=False)}"
            return self._build_verdict(estimands, results, None, null_text, notes)
        draws_and_jointness = [
            tally_null_draws(tally, estimand, self.resamples or DEFAULT_RESAMPLES, rng) for estimand in estimands
        ]
        draws_by_lens = [draws for draws, _ in draws_and_jointness]
        notes.append(Note("TN403", CELL_DRAWS_TEXT))
        null_pvalues = self.pvalues(
            estimands,
            self._summarize_all_draws(estimands, draws_by_lens),
            joint_views=all(is_joint for _, is_joint in draws_and_jointness),
            joint_lenses=False,
        )
        null_text = SIGN_FLIPS_TEXT.format(unit="rows") if tally.counts.voted else DRAWN_LABELS_TEXT
        results = self._add_draw_results(estimands, results, [draws_by_lens])
        return self._build_verdict(estimands, results, [null_pvalues], null_text + self.joint_null, notes)

    def estimand(self, preds: Predictions, lens: Lens) -> Estimand | None:
        """The statistic of each view, if labels are redrawn."""
        if self.null != "redraw":
            return None
        return Estimand(StatisticEstimator(self), lens, lens.views(preds))

    def pvalue_from_draws(self, estimand: Estimand, draws: Array, *, joint: bool) -> float:
        """Smallest adjusted p-value of the views."""
        summaries = self._summarize_all_draws([estimand], [draws])
        return self.pvalues([estimand], summaries, joint_views=joint, joint_lenses=joint).family_pvalue

    def summarize_draws(self, estimand: Estimand, draws: Array) -> Any:
        """Return what `pvalues` needs of the draws of one lens, (views, draws, …): by default the draws themselves.

        The summary of a lens is computed once, and used for the p-values of the lens and of the family.
        """
        return draws

    def _summarize_all_draws(self, estimands: Sequence[Estimand], draws: Sequence[Array]) -> list[Any]:
        """Result of `summarize_draws` for each lens."""
        return [
            self.summarize_draws(estimand, lens_draws) for estimand, lens_draws in zip(estimands, draws, strict=True)
        ]

    def pvalues(
        self, estimands: Sequence[Estimand], summaries: Sequence[Any], *, joint_views: bool, joint_lenses: bool
    ) -> PValues:
        """Return the p-values of every view, every lens and the family, from the summary of the draws of each lens."""
        return PValues.from_draws(estimands, summaries, joint_views=joint_views, joint_lenses=joint_lenses)

    def _evaluate_views(
        self, estimands: Sequence[Estimand], rng: np.random.Generator, cluster: Array | None = None
    ) -> list[list[ViewResult]]:
        """Result of each view of each lens; raises InputError for views that the test does not support."""
        for estimand in estimands:
            for view in estimand.views:
                if not self.accepts_joint_views:
                    require_one_score(view, self.name)
                if self.needs_rows:
                    require_single_rows(view, self.name)
        if cluster is not None:
            return [[self.evaluate_with_clusters(view, cluster) for view in estimand.views] for estimand in estimands]
        return [[self.evaluate_with_draws(view, rng) for view in estimand.views] for estimand in estimands]

    def _add_draw_results(
        self,
        estimands: Sequence[Estimand],
        results: Sequence[Sequence[ViewResult]],
        draws_by_null: Sequence[Sequence[Array]],
    ) -> list[list[ViewResult]]:
        """Results with those of `add_draw_results`; `draws_by_null` has the draws of each lens by null distribution."""
        return [
            [
                self.add_draw_results(
                    result, estimand.views[v], estimand.values[v], [draws[i][v] for draws in draws_by_null]
                )
                for v, result in enumerate(results[i])
            ]
            for i, estimand in enumerate(estimands)
        ]

    def _build_verdict(
        self,
        estimands: Sequence[Estimand],
        results: Sequence[Sequence[ViewResult]],
        pvalues_by_null: Sequence[PValues] | None,
        null: str,
        notes: Sequence[Note],
        null_min_pvalue: float = 0.0,
        resamples: int | None = None,
    ) -> Verdict:
        """Verdict from the results of the views and, if labels were redrawn, their p-values.

        `pvalues_by_null` are the p-values under each null distribution, or None for the asymptotic ones of the results.
        `null` describes the null hypothesis. `null_min_pvalue` is the smallest p-value that the null distribution
        allows, and `resamples` the number of draws that were made.
        """
        asymptotic = pvalues_by_null is None
        settings: dict[str, Any] = {"null": self.null}
        if pvalues_by_null is None:
            pvalues_by_null = [
                PValues.from_asymptotic([[result.pvalue for result in lens_results] for lens_results in results])
            ]
        else:
            settings["redraw"] = self.redraw
        pvalues = largest_pvalues(pvalues_by_null, null_min_pvalue)
        min_pvalue = None
        if self.null in self.simulated_nulls:
            settings["resamples"] = resamples = resamples or self.resamples or DEFAULT_RESAMPLES
            min_pvalue = max(1 / (1 + resamples), pvalues.min_pvalue) * (1 if asymptotic else pvalues.n_claims)
            n_parts = len(results) if len(results) > 1 else len(results[0])
            notes = [*notes, *insufficient_draws_notes(n_parts, resamples)]
        view_results = [result for lens_results in results for result in lens_results]
        notes = [*notes, *(note for result in view_results for note in result.notes)]
        if asymptotic:
            warnings = dict.fromkeys(warning for result in view_results for warning in result.asymptotic_warnings)
            advice = f"Use {self.recommended_alternative}, which keeps its level."
            notes += [Note("TN212", f"{warning} {advice}") for warning in warnings]
        settings |= shared_settings([result.settings_used for result in view_results])
        context = VerdictContext(
            test=self.name,
            null=self.tested_part_text + null,
            min_pvalue=None if min_pvalue is None else min(1.0, min_pvalue),
            settings=settings,
            notes=tuple(dict.fromkeys(notes)),
        )
        return build_verdict(estimands, results, pvalues, context)


def required_resamples(resamples: int | None, n_hypotheses: int, alpha: float) -> int:
    """Return `resamples`, or if it is None the number of null draws that so many hypotheses require.

    With it, the smallest p-value is significant after Holm's correction. The number is between 999 and 9,999. It is 999
    if even the smallest p-value of 9,999 draws, multiplied by the number of hypotheses, would be above alpha.
    """
    if resamples is not None:
        return resamples
    if sufficient_draws(alpha, n_hypotheses) > MAX_RESAMPLES:
        return DEFAULT_RESAMPLES
    required = math.ceil(DRAWS_MARGIN * n_hypotheses / alpha) - 1
    return max(DEFAULT_RESAMPLES, min(MAX_RESAMPLES, required))


@dataclass(frozen=True)
class VerdictContext:
    """What the verdicts on a lens and on a family have in common."""

    test: str  # name of the test
    null: str  # the null hypothesis in words
    min_pvalue: float | None  # smallest p-value that the draws can give, after correction for several hypotheses
    settings: Mapping[str, Any]  # settings of the test as resolved
    notes: tuple[Note, ...]  # notes without duplicates


def largest_pvalues(pvalues_by_null: Sequence[PValues], min_pvalue: float) -> PValues:
    """Return the largest of the p-values under several null distributions, none of them below `min_pvalue`."""
    n_lenses = len(pvalues_by_null[0].lens_pvalues)
    view_pvalues = [
        np.max([np.maximum(pvalues.view_pvalues[i], min_pvalue) for pvalues in pvalues_by_null], axis=0)
        for i in range(n_lenses)
    ]
    lens_pvalues = [
        float(np.max([min_pvalue, *(pvalues.lens_pvalues[i] for pvalues in pvalues_by_null)])) for i in range(n_lenses)
    ]
    return PValues(
        view_pvalues=view_pvalues,
        lens_pvalues=lens_pvalues,
        family_pvalue=float(np.max([min_pvalue, *(pvalues.family_pvalue for pvalues in pvalues_by_null)])),
        min_pvalue=max(min_pvalue, *(pvalues.min_pvalue for pvalues in pvalues_by_null)),
        n_claims=pvalues_by_null[0].n_claims,
    )


def build_verdict(
    estimands: Sequence[Estimand], results: Sequence[Sequence[ViewResult]], pvalues: PValues, context: VerdictContext
) -> Verdict:
    """Return the verdict on one lens, or on a family; statistic and effect are those of the smallest p-value.

    The parts are the views of the lens, or the lenses of the family, each with its view of smallest p-value.
    """
    if len(estimands) == 1:
        lens, pvalue = str(estimands[0].lens), pvalues.lens_pvalues[0]
        names, part_results = [view.name for view in estimands[0].views], results[0]
        part_pvalues = pvalues.view_pvalues[0]
        strongest = part_results[_index_of_smallest(part_pvalues)]
    else:
        lens, pvalue = "family", pvalues.family_pvalue
        names, part_pvalues = [str(estimand.lens) for estimand in estimands], np.array(pvalues.lens_pvalues)
        part_results = [
            lens_results[_index_of_smallest(view_pvalues)]
            for lens_results, view_pvalues in zip(results, pvalues.view_pvalues, strict=True)
        ]
        statistics = np.array([result.statistic for result in part_results])
        strongest = part_results[_index_of_smallest(part_pvalues, statistics)]
    has_one_part = len(part_results) == 1
    return Verdict(
        test=context.test,
        lens=lens,
        statistic=strongest.statistic,
        pvalue=pvalue,
        n=estimands[0].n_rows,
        null=context.null,
        min_pvalue=context.min_pvalue,
        family_pvalue=None if has_one_part else pvalue,
        effect=strongest.effect,
        parts=strongest.parts if has_one_part else _result_parts(names, part_results, part_pvalues),
        settings={**context.settings, **({"summary": strongest.summary} if has_one_part and strongest.summary else {})},
        notes=context.notes,
    )


def _index_of_smallest(pvalues: Array, statistics: Array | None = None) -> int:
    """Return the index of the smallest p-value, of equal ones that of the first or that of the largest statistic.

    NaN counts as larger than any other p-value.
    """
    if statistics is None:
        statistics = np.zeros(len(pvalues))
    return int(np.lexsort((-statistics, np.nan_to_num(pvalues, nan=2.0)))[0])


def _result_parts(names: Sequence[str], results: Sequence[ViewResult], pvalues: Array) -> dict[str, dict[str, float]]:
    """Return the statistic, p-value, Holm's p-value and effect of each view, or of each lens of a family, by name."""
    adjusted_pvalues = holm([float(p) for p in pvalues])
    return {
        name: {"statistic": result.statistic, "pvalue": float(p), "holm": adjusted_pvalue, "effect": result.effect}
        for name, result, p, adjusted_pvalue in zip(names, results, pvalues, adjusted_pvalues, strict=True)
    }


def shared_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings that are equal for all views, from the settings of each view."""
    return {
        key: value
        for key, value in settings[0].items()
        if all(view_settings.get(key) == value for view_settings in settings)
    }
