"""The estimators that are compared, with their settings, and their values on many resamples of one holdout set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.sorted_scores import RowSelections
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.estimators.debiased import DebiasedL1
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


class SortedSelections(RowSelections):
    """Resamples whose rows are already sorted by score.

    `rows` are row numbers of the view and `scores` their scores, (resamples, n) both. Views that differ by their labels
    share them, so that resamples are sorted only once.
    """

    def __init__(self, view: View, rows: Array, scores: Array) -> None:
        super().__init__(view, rows)
        self.scores = scores

    @cached_property
    def is_vectorizable(self) -> bool:
        """True, as all resamples have equally many rows, with weight 1 and one score each."""
        return True

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        """Scores and outcomes, (resamples, n) each, which are sorted already."""
        return self.scores, self.view.y[self.rows]


class ResamplePool:
    """Views of a holdout set through one lens, each sorted by score, so that sorted resamples read memory in order."""

    def __init__(self, P: Array, y: Array, lens: str) -> None:
        self.P, self.lens = P, lens
        views = as_lens(lens).views(Predictions(y, P))
        self.order = [np.argsort(view.p, kind="stable").astype(np.int32) for view in views]
        # Position of each row of the holdout set in each sorted view.
        self.positions = [np.argsort(order).astype(np.int32) for order in self.order]
        self.views = [
            View(view.p[order].astype(np.float64), view.y[order], name=view.name, classes=view.classes)
            for view, order in zip(views, self.order, strict=True)
        ]

    def relabel(self, y: Array) -> list[View]:
        """The same views with other labels y of the rows of the holdout set, (rows,)."""
        new_views = as_lens(self.lens).views(Predictions(y, self.P))
        return [
            View(view.p, new_view.y[order], name=view.name, classes=view.classes)
            for view, new_view, order in zip(self.views, new_views, self.order, strict=True)
        ]

    def rows(self, drawn: Array) -> list[tuple[Array, Array]]:
        """For each view, the sorted row numbers of the resamples and their scores, (resamples, n) each.

        `drawn` are row numbers of the holdout set, (resamples, n).
        """
        sorted_rows = [np.sort(positions[drawn], axis=1) for positions in self.positions]
        return [(rows, view.p[rows]) for rows, view in zip(sorted_rows, self.views, strict=True)]


def select_resamples(
    views: Sequence[View], rows: Sequence[tuple[Array, Array]], limit: int | None = None
) -> list[SortedSelections]:
    """All resamples of each view, or the first `limit` of them; `rows` are those of `ResamplePool.rows`."""
    return [
        SortedSelections(view, selected[:limit], scores[:limit])
        for view, (selected, scores) in zip(views, rows, strict=True)
    ]


def draw_labels(P: Array, rng: np.random.Generator) -> Array:
    """Draw one label per row from its probabilities P (n, K), for which the model is calibrated."""
    cumulative = np.cumsum(P, axis=1)
    y = (cumulative < rng.random(len(P))[:, None] * cumulative[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(y, P.shape[1] - 1))


LENSES = ("confidence", "classwise")
MAX_QUADRATIC_ROWS = 580  # largest number of rows for estimators whose cost is quadratic


@dataclass(frozen=True)
class EstimatorVariant:
    """An estimator with its settings and its label in the tables.

    `kind` is `paper` (of Posocco & Bonnefoy, 2021), `swapped` (the same with the weights of their released code),
    `ours`, `debiased` (another estimator minus its noise floor) or `zero`. `target` is what it estimates: `l1` is the
    mean distance of predicted and true probabilities, `l2` its root mean square, and `own` a scale of its own.
    """

    label: str
    name: str  # in the registry
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "ours"
    target: str = "l1"
    ranged: bool = False  # whether the confidence of K classes is binned or smoothed on [1/K, 1]
    lenses: tuple[str, ...] = LENSES
    slow: bool = False  # whether it is computed for few resamples only, as a call takes as long as a hundred others
    max_rows: int = 10**9  # largest number of rows
    of: str = ""  # label of the estimator whose noise floor is subtracted

    def estimator(self, lens: str) -> Estimator:
        """The estimator with its settings for this lens."""
        if self.name == ZeroEstimator.name:
            return ZeroEstimator()
        range_setting = {"range": "1/K"} if self.ranged and lens == "confidence" else {}
        estimator: Estimator = ESTIMATORS.make(self.name, {**self.settings, **range_setting})
        return estimator

    def values(self, selections: Sequence[SortedSelections], lens: str) -> Array:
        """The estimates for all resamples, (resamples,): means over the views, of which each has its selections."""
        estimator = self.estimator(lens)
        return np.asarray(np.mean([_evaluate_resamples(estimator, selection) for selection in selections], axis=0))


class ZeroEstimator(Estimator):
    """The constant estimate 0, which does not depend on the data."""

    name: ClassVar[str] = "zero"

    def value(self, view: View) -> float:
        """0."""
        return 0.0

    def evaluate_selections(self, of: RowSelections) -> Array:
        """0 for each selection, (selections,)."""
        return np.zeros(len(of))


def _evaluate_resamples(estimator: Estimator, selections: SortedSelections) -> Array:
    """The estimates for all resamples, (resamples,).

    All are computed at once also for `DebiasedL1`, whose formula accepts the sums of many sets of bins.
    """
    if isinstance(estimator, DebiasedL1) and selections.is_vectorizable:
        sums = estimator.partition.sums_by_selection(selections)
        if sums is not None:
            n, wp, wy = sums
            return estimator.statistic_from_bins(n, wp, wy, n)
    return estimator.evaluate_selections(selections)


def _published_variants() -> list[EstimatorVariant]:
    """The fifteen estimators of Posocco & Bonnefoy (2021), with the weights that the paper describes."""
    variants = []
    for partition, convex, label in (
        ("uniform", False, "ece"),
        ("equal-mass", False, "ece_a"),
        ("uniform", True, "ece_c"),
        ("equal-mass", True, "ece_ac"),
    ):
        for bins in (10, 30, "sqrt"):
            mapping = {"mapping": "convex"} if convex else {"mapping": "one-bin", "closed": "left"}
            settings = {"bins": bins, "partition": partition, **mapping}
            variants.append(EstimatorVariant(f"{label}[{bins}]", "ece_linear", settings, "paper", ranged=convex))
    widths = ("silverman", 0.1, 0.033)
    variants += [EstimatorVariant(f"kde[{h}]", "ece_kde", {"bandwidth": h}, "paper", ranged=True) for h in widths]
    return variants


def _swapped_weight_variants() -> list[EstimatorVariant]:
    """The six with convex weights as in the released code, which gives the nearer bin center the smaller weight."""
    return [
        EstimatorVariant(
            f"{variant.label} swapped", variant.name, {**variant.settings, "weights": "swapped"}, "swapped", ranged=True
        )
        for variant in _published_variants()
        if variant.settings.get("mapping") == "convex"
    ]


def _library_variants() -> list[EstimatorVariant]:
    """Estimators of the library, with defaults and some other settings."""
    confidence_only = LENSES[:1]
    auto = {"bins": "auto"}
    mass = {"partition": "equal-mass"}
    return [
        EstimatorVariant("ece", "ece"),
        EstimatorVariant("ece auto", "ece", auto),
        EstimatorVariant("ece mass", "ece", mass),
        EstimatorVariant("ece mass auto", "ece", {**mass, **auto}),
        EstimatorVariant("ece_linear", "ece_linear"),
        EstimatorVariant("ece_kde", "ece_kde", lenses=confidence_only),  # through `classwise` it equals kde[silverman]
        EstimatorVariant("debiased_l1", "debiased_l1"),
        EstimatorVariant("debiased_l1 15", "debiased_l1", {"bins": 15, "partition": "uniform"}),
        EstimatorVariant("rmsce", "rmsce", target="l2"),
        EstimatorVariant("rmsce mass auto", "rmsce", {**mass, **auto}, target="l2"),
        EstimatorVariant("debiased_l2", "debiased_l2", target="l2", slow=True),
        EstimatorVariant("sweep", "sweep", slow=True),
        EstimatorVariant("ici", "ici", lenses=confidence_only, slow=True, max_rows=MAX_QUADRATIC_ROWS),
        EstimatorVariant(
            "cross_fitted", "cross_fitted", lenses=confidence_only, slow=True, max_rows=MAX_QUADRATIC_ROWS
        ),
        EstimatorVariant("smece", "smece", target="own", lenses=confidence_only, slow=True),
        EstimatorVariant("ks", "ks", target="own", slow=True),
    ]


def _debiased_variants(variants: Sequence[EstimatorVariant]) -> list[EstimatorVariant]:
    """Four of these estimators minus their noise floors."""
    by_label = {variant.label: variant for variant in variants}
    labels = ("ece", "ece_linear", "ece_ac[sqrt]", "kde[silverman]")
    return [
        EstimatorVariant(
            f"{name} debiased",
            by_label[name].name,
            by_label[name].settings,
            "debiased",
            ranged=by_label[name].ranged,
            of=name,
            lenses=LENSES[:1] if by_label[name].name == "ece_kde" else LENSES,
        )
        for name in labels
    ]


_ALL_VARIANTS = [
    EstimatorVariant("0", "zero", kind="zero"),
    *_published_variants(),
    *_swapped_weight_variants(),
    *_library_variants(),
]
VARIANTS: dict[str, EstimatorVariant] = {
    variant.label: variant for variant in (*_ALL_VARIANTS, *_debiased_variants(_ALL_VARIANTS))
}
BIN_COUNTS = (
    2,
    3,
    4,
    5,
    7,
    10,
    14,
    20,
    28,
    40,
    57,
    80,
)  # candidates for the best number of bins, by factors of about √2


def choose_variants(names: Sequence[str]) -> tuple[EstimatorVariant, ...]:
    """Estimators by label or registered name (by default all), the constant 0, and those that debiased ones require."""
    if not names:
        return tuple(VARIANTS.values())
    for name in names:
        if name not in VARIANTS and name not in {variant.name for variant in VARIANTS.values()}:
            raise InputError("TO201", "No such estimator takes part.", repr(name), suggest_names(name, list(VARIANTS)))
    labels = {
        variant.label
        for variant in VARIANTS.values()
        if variant.label in names or (variant.name in names and not variant.of)
    }
    labels |= {VARIANTS[label].of for label in labels} | {"0"}
    return tuple(variant for label, variant in VARIANTS.items() if label in labels)
