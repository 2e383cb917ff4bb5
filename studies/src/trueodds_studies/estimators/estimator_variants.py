"""The estimators in the comparison with their settings, computed on many presorted resamples of one holdout set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.row_selections import RowSelections
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
    """Selections whose rows are numbered by rising score already, so that other labels need no new sorting."""

    def __init__(self, view: View, rows: Array, scores: Array) -> None:
        super().__init__(view, rows)
        self.scores = scores  # of these rows, which views that differ by their labels share

    @cached_property
    def is_vectorizable(self) -> bool:
        """Rows of weight 1 and one score, equally many."""
        return True

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        """Scores and outcomes as they stand."""
        return self.scores, self.view.y[self.rows]


class ResamplePool:
    """Views of a holdout through one lens, each sorted by score, so that sorted resamples read memory in order."""

    def __init__(self, P: Array, y: Array, lens: str) -> None:
        self.P, self.lens = P, lens
        views = as_lens(lens).views(Predictions(y, P))
        self.order = [np.argsort(view.p, kind="stable").astype(np.int32) for view in views]
        self.place = [np.argsort(order).astype(np.int32) for order in self.order]  # where each row stands
        self.views = [
            View(view.p[order].astype(np.float64), view.y[order], name=view.name, classes=view.classes)
            for view, order in zip(views, self.order, strict=True)
        ]

    def relabeled(self, y: Array) -> list[View]:
        """The same views with other labels of the holdout's rows."""
        return [
            View(old.p, new.y[order], name=old.name, classes=old.classes)
            for old, new, order in zip(
                self.views, as_lens(self.lens).views(Predictions(y, self.P)), self.order, strict=True
            )
        ]

    def rows(self, drawn: Array) -> list[tuple[Array, Array]]:
        """Where the rows of resamples (resamples, n) of the holdout stand in each view, rising, and their scores."""
        places = [np.sort(place[drawn], axis=1) for place in self.place]
        return [(rows, view.p[rows]) for rows, view in zip(places, self.views, strict=True)]


def select_resamples(
    views: Sequence[View], rows: Sequence[tuple[Array, Array]], limit: int | None = None
) -> list[SortedSelections]:
    """These resamples of each view, or the first few of them."""
    return [
        SortedSelections(view, selected[:limit], scores[:limit])
        for view, (selected, scores) in zip(views, rows, strict=True)
    ]


def draw_labels(P: Array, rng: np.random.Generator) -> Array:
    """One label for each row from its own probabilities, which makes the model calibrated."""
    total = np.cumsum(P, axis=1)
    y = (total < rng.random(len(P))[:, None] * total[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(y, P.shape[1] - 1))


LENSES = ("confidence", "classwise")
MAX_QUADRATIC_ROWS = 580  # rows up to which members take part whose cost is quadratic


@dataclass(frozen=True)
class EstimatorVariant:
    """An estimator of the table."""

    label: str
    name: str  # in the registry
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = (
        "ours"  # "paper", "swapped" (as the authors' code has it), "ours", "debiased" (of another estimator), "zero"
    )
    target: str = "l1"  # the mean distance; "l2" its root mean square; "own" is on a scale of its own
    ranged: bool = False  # whether the confidence of K classes is binned or smoothed on [1/K, 1]
    lenses: tuple[str, ...] = LENSES
    slow: bool = False  # looks at the first few resamples only: one call costs as much as a hundred of the others
    max_rows: int = 10**9  # rows
    of: str = ""  # the estimator whose noise floor is subtracted

    def estimator(self, lens: str) -> Estimator:
        """With its settings through this lens."""
        if self.name == ZeroEstimator.name:
            return ZeroEstimator()
        more = {"range": "1/K"} if self.ranged and lens == "confidence" else {}
        made: Estimator = ESTIMATORS.make(self.name, {**self.settings, **more})
        return made

    def values(self, some: Sequence[SortedSelections], lens: str) -> Array:
        """The mean over the views of each resample."""
        estimator = self.estimator(lens)
        return np.asarray(np.mean([_evaluate(estimator, one) for one in some], axis=0))


class ZeroEstimator(Estimator):
    """The constant answer 0, which looks at nothing."""

    name: ClassVar[str] = "zero"

    def value(self, view: View) -> float:
        """0."""
        return 0.0

    def evaluate_selections(self, of: RowSelections) -> Array:
        """0 for each."""
        return np.zeros(len(of))


def _evaluate(estimator: Estimator, of: SortedSelections) -> Array:
    """All resamples at once, also for debiased errors, whose formula takes the sums of many sets of bins."""
    if (
        isinstance(estimator, DebiasedL1)
        and of.is_vectorizable
        and (sums := estimator.partition.sums_by_selection(of)) is not None
    ):
        n, wp, wy = sums
        return estimator.statistic_from_bins(n, wp, wy, n)
    return estimator.evaluate_selections(of)


def _published_variants() -> list[EstimatorVariant]:
    """The fifteen of Posocco & Bonnefoy (2021), with the weights that they describe."""
    variants = []
    for base, convex, label in (
        ("uniform", False, "ece"),
        ("equal-mass", False, "ece_a"),
        ("uniform", True, "ece_c"),
        ("equal-mass", True, "ece_ac"),
    ):
        for bins in (10, 30, "sqrt"):
            how = {"mapping": "convex"} if convex else {"mapping": "one-bin", "closed": "left"}
            settings = {"bins": bins, "partition": base, **how}
            variants.append(EstimatorVariant(f"{label}[{bins}]", "ece_linear", settings, "paper", ranged=convex))
    widths = ("silverman", 0.1, 0.033)
    variants += [EstimatorVariant(f"kde[{h}]", "ece_kde", {"bandwidth": h}, "paper", ranged=True) for h in widths]
    return variants


def _swapped_weight_variants() -> list[EstimatorVariant]:
    """The six whose released code gives the nearer center the smaller weight."""
    return [
        EstimatorVariant(
            f"{variant.label} swapped", variant.name, {**variant.settings, "weights": "swapped"}, "swapped", ranged=True
        )
        for variant in _published_variants()
        if variant.settings.get("mapping") == "convex"
    ]


def _library_variants() -> list[EstimatorVariant]:
    alone = LENSES[:1]
    auto = {"bins": "auto"}
    mass = {"partition": "equal-mass"}
    return [
        EstimatorVariant("ece", "ece"),
        EstimatorVariant("ece auto", "ece", auto),
        EstimatorVariant("ece mass", "ece", mass),
        EstimatorVariant("ece mass auto", "ece", {**mass, **auto}),
        EstimatorVariant("ece_linear", "ece_linear"),
        EstimatorVariant("ece_kde", "ece_kde", lenses=alone),  # class by class it is kde[silverman]
        EstimatorVariant("debiased_l1", "debiased_l1"),
        EstimatorVariant("debiased_l1 15", "debiased_l1", {"bins": 15, "partition": "uniform"}),
        EstimatorVariant("rmsce", "rmsce", target="l2"),
        EstimatorVariant("rmsce mass auto", "rmsce", {**mass, **auto}, target="l2"),
        EstimatorVariant("debiased_l2", "debiased_l2", target="l2", slow=True),
        EstimatorVariant("sweep", "sweep", slow=True),
        EstimatorVariant("ici", "ici", lenses=alone, slow=True, max_rows=MAX_QUADRATIC_ROWS),
        EstimatorVariant("cross_fitted", "cross_fitted", lenses=alone, slow=True, max_rows=MAX_QUADRATIC_ROWS),
        EstimatorVariant("smece", "smece", target="own", lenses=alone, slow=True),
        EstimatorVariant("ks", "ks", target="own", slow=True),
    ]


def _debiased_variants(of: Sequence[EstimatorVariant]) -> list[EstimatorVariant]:
    by = {variant.label: variant for variant in of}
    labels = ("ece", "ece_linear", "ece_ac[sqrt]", "kde[silverman]")
    return [
        EstimatorVariant(
            f"{name} debiased",
            by[name].name,
            by[name].settings,
            "debiased",
            ranged=by[name].ranged,
            of=name,
            lenses=LENSES[:1] if by[name].name == "ece_kde" else LENSES,
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
)  # bins among which the best number is looked for, each √2 of the last


def choose_variants(names: Sequence[str]) -> tuple[EstimatorVariant, ...]:
    """Estimators by label or registered name, all by default, with those that a debiased one is computed from."""
    if not names:
        return tuple(VARIANTS.values())
    for name in names:
        if name not in VARIANTS and name not in {variant.name for variant in VARIANTS.values()}:
            raise InputError("TO201", "No such estimator takes part.", repr(name), suggest_names(name, list(VARIANTS)))
    labels = {m.label for m in VARIANTS.values() if m.label in names or (m.name in names and not m.of)}
    labels |= {VARIANTS[label].of for label in labels} | {"0"}
    return tuple(variant for label, variant in VARIANTS.items() if label in labels)
