"""The base class of tests with one statistic per view, whose null distribution is asymptotic or drawn."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Verdict
from trueodds.core.settings import OneOf, Resamples, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score, require_single_rows
from trueodds.hypotests.base import REDRAW_MODES, FractionProgress, HypothesisTest, independence_notes
from trueodds.hypotests.multiple_testing import PValues
from trueodds.hypotests.view_statistic import ViewResult, shared_settings
from trueodds.hypotests.view_verdict import VerdictContext, family_verdict, largest_pvalues, lens_verdict
from trueodds.hypotests.votes import TWICE_THE_MEAN_TEXT, average_votes, draw_vote_labels, prepare_votes
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling import measure
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import (
    DRAWN_LABELS_TEXT,
    SIGN_FLIPS_TEXT,
    cluster_correlation,
    null_description,
    null_draws,
)
from trueodds.tallies.tally import Tally

NULL_DISTRIBUTIONS = ("asymptotic", "redraw")
DEFAULT_RESAMPLES = 999  # default number of draws
MAX_RESAMPLES, MAX_LABELS = 4_999, 10**8  # maximum number of draws, and of labels, for borderline p-values
BORDERLINE_PVALUES = (0.005, 0.15)  # p-values for which more draws are made by default
CLUSTERED_LABELS_TEXT = (
    "labels drawn from the predicted probabilities, independently of those of other clusters, predictions kept fixed"
)


@dataclass(frozen=True)
class ViewTest(HypothesisTest):
    """Base class of tests with one statistic per view; family-wise p-values are Holm's, or joint with redraws.

    A subclass implements `on` (the result of one view) and `cells` (the same statistic for many draws). The settings
    `null`, `redraw` and `resamples` are shared by all subclasses.
    """

    accepts_joint_views: ClassVar[bool] = False  # whether a view may have a probability vector per row
    needs_rows: ClassVar[bool] = False  # whether the cells of a tally are insufficient
    null_distributions: ClassVar[tuple[str, ...]] = NULL_DISTRIBUTIONS  # available null distributions
    simulated_nulls: ClassVar[tuple[str, ...]] = ("redraw",)  # null distributions that use `resamples` draws
    asymptotic_null: ClassVar[str] = ""  # the asymptotic distribution, in words that follow "labels drawn …, so that"
    clustered_null: ClassVar[str] = (
        ""  # the distribution in `by_clusters`, in such words; empty if rows must be independent
    )
    joint_null: ClassVar[str] = (
        ""  # how the statistics of a view are combined, in words that follow the null hypothesis
    )

    null: str = "asymptotic"
    redraw: Annotated[str, OneOf(REDRAW_MODES)] = "labels"
    resamples: Resamples | None = DEFAULT_RESAMPLES

    def __post_init__(self) -> None:
        super().__post_init__()
        check("null", self.null, Annotated[str, OneOf(self.null_distributions)], type(self).null)
        if self.redraw != "labels" and self.null != "redraw":
            raise InputError(
                "TO205",
                f"redraw requires null='redraw', and null={self.null!r} does not redraw labels.",
                f"redraw={self.redraw!r} with null={self.null!r}",
                "Use null='redraw', or omit redraw.",
            )
        if self.redraw == "all":
            raise InputError("TO205", "Only consistency enumerates all labelings.", "redraw='all'", "Omit it.")

    def evaluate(self, view: View) -> ViewResult:
        """Statistic, asymptotic p-value and effect of one view."""
        raise NotImplementedError

    def evaluate_with_draws(self, view: View, rng: np.random.Generator) -> ViewResult:
        """The result of `evaluate`, for null distributions that make their own draws."""
        return self.evaluate(view)

    def evaluate_with_clusters(self, view: View, cluster: Array) -> ViewResult:
        """The result of `evaluate` by an asymptotic distribution that assumes independent clusters; `cluster` (n,)."""
        raise NotImplementedError

    def describe_null(self, results: Sequence[Sequence[ViewResult]], *, clustered: bool) -> str:
        """Description of the asymptotic null distribution for these results."""
        return self.clustered_null if clustered else self.asymptotic_null

    @property
    def recommended_alternative(self) -> str:
        """The alternative recommended if the asymptotic distribution is inaccurate."""
        return "null='redraw'" if "redraw" in self.null_distributions else f"consistency with statistic={self.name!r}"

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
        """Test one lens, or a family of several lenses."""
        return self.verdicts(preds, lenses, rng, progress)[0]

    def verdicts(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> list[Verdict]:
        """Verdicts on the family of lenses and on each of them, from the same draws; a single verdict for one lens."""
        summed = preds.cluster if self.null == "asymptotic" and self.clustered_null else None
        if preds.cluster is not None and self.null != "redraw" and summed is None:
            null_text = "The asymptotic distribution" if self.null == "asymptotic" else f"null={self.null!r}"
            raise InputError(
                "TO205",
                f"{null_text} of {self.name} assumes independent rows, and these rows are clustered.",
                f"cluster= with null={self.null!r}",
                (
                    "Use null='redraw', which flips the signs of whole clusters."
                    if "redraw" in self.null_distributions
                    else "Keep one row per cluster."
                ),
            )
        preds, notes = prepare_votes(preds, self.redraw)
        notes = [
            *preds.notes,
            *notes,
            *(note for lens in lenses for note in lens.notes(preds)),
            *independence_notes(preds),
        ]
        families = [slice(None), *(slice(i, i + 1) for i in range(len(lenses)) if len(lenses) > 1)]
        if self.null != "redraw":
            estimands, results = self._asymptotic_results(preds, lenses, rng, summed)
            null_text = (
                f"{DRAWN_LABELS_TEXT if summed is None else CLUSTERED_LABELS_TEXT}, so that"
                f" {self.describe_null(results, clustered=summed is not None)}"
            )
            null_text += TWICE_THE_MEAN_TEXT if preds.votes is not None and summed is None else ""
            return [self._build_verdict(estimands[some], results[some], None, null_text, notes) for some in families]
        estimands = [Estimand(_TestStatistic(self), lens, lens.views(preds)) for lens in lenses]
        sets = self._null_draws(preds, estimands, rng, progress)
        joint = preds.kind != "multilabel"
        null_min_pvalue = (
            0.0 if preds.cluster is None else 2.0 ** -float(preds.cluster.max())
        )  # of G clusters: 2^(1 − G)
        results = self._add_draw_results(estimands, self._evaluate_views(estimands, rng), sets)
        null = null_description(preds, self.redraw) + self.joint_null
        summaries = [self._summarize_all_draws(estimands, draws) for draws in sets]

        def verdict(some: slice) -> Verdict:
            pvalue_sets = [
                self.pvalues(estimands[some], of_lenses[some], joint_views=joint, joint_lenses=joint)
                for of_lenses in summaries
            ]
            return self._build_verdict(
                estimands[some], results[some], pvalue_sets, null, notes, null_min_pvalue, sets[0][0].shape[1]
            )

        return [verdict(some) for some in families]

    def _null_draws(
        self,
        preds: Predictions,
        estimands: Sequence[Estimand],
        rng: np.random.Generator,
        progress: FractionProgress | None,
    ) -> list[list[Array]]:
        """Draws of each view of each lens under each null distribution, with more of them for borderline p-values."""
        samplers = [functools.partial(null_draws, redraw=self.redraw)]
        if preds.cluster is not None and preds.kind != "multilabel":
            # Sign flips have no variance in a bin without any event; labels redrawn with correlation do.
            samplers.append(functools.partial(null_draws, cluster_share=cluster_correlation(preds, estimands)))
        first = self.resamples or DEFAULT_RESAMPLES
        sets = [sampler(preds, estimands, first, rng, progress=progress) for sampler in samplers]
        more = 0 if self.resamples else min(MAX_RESAMPLES, MAX_LABELS // max(1, preds.n)) - first
        if more > 0:
            joint = preds.kind != "multilabel"
            p = max(
                self.pvalues(
                    estimands, self._summarize_all_draws(estimands, draws), joint_views=joint, joint_lenses=joint
                ).family_pvalue
                for draws in sets
            )
            if BORDERLINE_PVALUES[0] <= p <= BORDERLINE_PVALUES[1]:
                for draws, sampler in zip(sets, samplers, strict=True):
                    added = sampler(preds, estimands, more, rng, progress=progress)
                    draws[:] = [np.concatenate(both, axis=1) for both in zip(draws, added, strict=True)]
        return sets

    def _asymptotic_results(
        self, preds: Predictions, lenses: Sequence[Lens], rng: np.random.Generator, cluster: Array | None
    ) -> tuple[list[Estimand], list[list[ViewResult]]]:
        """Asymptotic results; with votes, averaged over many draws of one vote per row."""
        sets = [preds] if preds.votes is None or cluster is not None else draw_vote_labels(preds, rng)
        every = []
        for rows in sets:
            estimands = [Estimand(_TestStatistic(self), lens, lens.views(rows)) for lens in lenses]
            every.append(self._evaluate_views(estimands, rng, cluster))
        if len(every) == 1:
            return estimands, every[0]
        views = [
            [[results[i][v] for results in every] for v in range(len(estimand.views))]
            for i, estimand in enumerate(estimands)
        ]
        return estimands, [[average_votes(one) for one in lens_views] for lens_views in views]

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally, each treated as rows with its mean prediction."""
        if self.needs_rows:
            return super().from_tally(tally, lenses, rng)
        if self.redraw == "both":
            raise InputError(
                "TO205",
                "redraw='both' requires the rows, which a tally does not store.",
                "redraw='both'",
                "Omit redraw, or use mode='exact'.",
            )
        if tally.counts.voted and self.null == "asymptotic":
            raise InputError(
                "TO205",
                f"The asymptotic distribution of {self.name} assumes one label per row, and this tally contains shares"
                " of votes.",
                "votes with null='asymptotic'",
                "Use null='redraw', which flips the signs of residuals, or mode='exact'.",
            )
        estimands = [measure.tally_estimand(tally, _TestStatistic(self), lens) for lens in lenses]
        results = self._evaluate_views(estimands, rng)
        notes = list(dict.fromkeys(note for estimand in estimands for note in measure.tally_notes(tally, estimand)))
        if self.null != "redraw":
            null_text = f"{DRAWN_LABELS_TEXT}, so that {self.describe_null(results, clustered=False)}"
            return self._build_verdict(estimands, results, None, null_text, notes)
        drawn = [
            measure.tally_null_draws(tally, estimand, self.resamples or DEFAULT_RESAMPLES, rng)
            for estimand in estimands
        ]
        notes.append(
            Note("TN403", "Outcomes were drawn per cell of the tally; the family-wise p-value is Holm-adjusted.")
        )
        pvalues = self.pvalues(
            estimands,
            self._summarize_all_draws(estimands, [draws for draws, _ in drawn]),
            joint_views=all(joint for _, joint in drawn),
            joint_lenses=False,
        )
        null = SIGN_FLIPS_TEXT.format(unit="rows") if tally.counts.voted else DRAWN_LABELS_TEXT
        results = self._add_draw_results(estimands, results, [[draws for draws, _ in drawn]])
        return self._build_verdict(estimands, results, [pvalues], null + self.joint_null, notes)

    def estimand(self, preds: Predictions, lens: Lens) -> Estimand | None:
        """The statistic of each view, if labels are redrawn."""
        if (self.null, self.redraw) != ("redraw", "labels"):
            return None
        return Estimand(_TestStatistic(self), lens, lens.views(preds))

    def pvalue_from_draws(self, estimand: Estimand, draws: Array, *, joint: bool) -> float:
        """Smallest adjusted p-value of the views."""
        summaries = self._summarize_all_draws([estimand], [draws])
        return self.pvalues([estimand], summaries, joint_views=joint, joint_lenses=joint).family_pvalue

    def summarize_draws(self, estimand: Estimand, draws: Array) -> Any:
        """Return what `pvalues` needs of the draws of one lens, (views, draws, …); called once for lens and family."""
        return draws

    def _summarize_all_draws(self, estimands: Sequence[Estimand], draws: Sequence[Array]) -> list[Any]:
        return [self.summarize_draws(estimand, drawn) for estimand, drawn in zip(estimands, draws, strict=True)]

    def pvalues(
        self, estimands: Sequence[Estimand], summaries: Sequence[Any], *, joint_views: bool, joint_lenses: bool
    ) -> PValues:
        """Return the p-values of every view, every lens and the family, from the summary of the draws of each lens."""
        return PValues.from_draws(estimands, summaries, joint_views=joint_views, joint_lenses=joint_lenses)

    def _evaluate_views(
        self, estimands: Sequence[Estimand], rng: np.random.Generator, cluster: Array | None = None
    ) -> list[list[ViewResult]]:
        for view in (view for estimand in estimands for view in estimand.views):
            if not self.accepts_joint_views:
                require_one_score(view, self.name)
            if self.needs_rows:
                require_single_rows(view, self.name)
        if cluster is not None:
            return [[self.evaluate_with_clusters(view, cluster) for view in estimand.views] for estimand in estimands]
        return [[self.evaluate_with_draws(view, rng) for view in estimand.views] for estimand in estimands]

    def _add_draw_results(
        self, estimands: Sequence[Estimand], results: Sequence[Sequence[ViewResult]], sets: Sequence[Sequence[Array]]
    ) -> list[list[ViewResult]]:
        return [
            [
                self.add_draw_results(one, estimand.views[v], estimand.values[v], [draws[i][v] for draws in sets])
                for v, one in enumerate(results[i])
            ]
            for i, estimand in enumerate(estimands)
        ]

    def _build_verdict(
        self,
        estimands: Sequence[Estimand],
        results: Sequence[Sequence[ViewResult]],
        pvalue_sets: Sequence[PValues] | None,
        null: str,
        notes: Sequence[Note],
        null_min_pvalue: float = 0.0,
        resamples: int | None = None,
    ) -> Verdict:
        """Verdict from the results of the views and, if labels were redrawn, their p-values."""
        asymptotic = pvalue_sets is None
        if pvalue_sets is None:
            pvalue_sets = [PValues.from_asymptotic([[one.pvalue for one in lens_results] for lens_results in results])]
        pvalues = largest_pvalues(pvalue_sets, null_min_pvalue)
        settings: dict[str, Any] = {"null": self.null} | ({} if asymptotic else {"redraw": self.redraw})
        min_pvalue = None
        if self.null in self.simulated_nulls:
            settings["resamples"] = resamples = resamples or self.resamples or DEFAULT_RESAMPLES
            min_pvalue = max(1 / (1 + resamples), pvalues.smallest_pvalue) * (1 if asymptotic else pvalues.claims)
        view_results = [one for lens_results in results for one in lens_results]
        notes = [*notes, *(note for one in view_results for note in one.notes)]
        if asymptotic:
            doubts = dict.fromkeys(doubt for one in view_results for doubt in one.doubts)
            notes += [
                Note("TN212", f"{doubt} Use {self.recommended_alternative}, which keeps its level.") for doubt in doubts
            ]
        settings |= shared_settings([one.settings_used for one in view_results])
        context = VerdictContext(
            self.name,
            null,
            None if min_pvalue is None else min(1.0, min_pvalue),
            settings,
            tuple(dict.fromkeys(notes)),
        )
        if len(estimands) == 1:
            return lens_verdict(estimands[0], results[0], pvalues, context)
        return family_verdict(estimands, results, pvalues, context)


@dataclass(frozen=True)
class _TestStatistic(Estimator):
    """Adapter that presents the statistic of a test as an estimator for the null draws."""

    name: ClassVar[str] = "surprise"
    test: ViewTest

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        """Whether the test requires rows."""
        return self.test.needs_rows

    @property
    def partition(self) -> Any:
        """The bins of the test, or None."""
        return getattr(self.test, "partition", None)

    def value(self, view: View) -> float:
        """The statistic of the view; larger is more extreme."""
        return self.cell_statistic(view).value()

    def cell_statistic(self, view: View) -> CellStatistic:
        """The cells of the test."""
        return self.test.cell_statistic(view)
