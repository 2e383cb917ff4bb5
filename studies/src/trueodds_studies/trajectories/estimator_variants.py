"""Which estimators take part, in the form that each lens asks for, and which truth does each aim at?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.estimators.debiased import DebiasedL1
from trueodds.lenses.view import View
from trueodds_studies.trajectories.pool import InOrder

LENSES = ("confidence", "classwise")
SQUARE = 580  # rows up to which members take part whose cost is quadratic


@dataclass(frozen=True)
class EstimatorVariant:
    """An estimator of the table."""

    label: str
    name: str  # in the registry
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = (
        "ours"  # "paper", "swapped" (as the authors' code has it), "ours", "debiased" (of another member), "zero"
    )
    target: str = "l1"  # the mean distance; "l2" its root mean square; "own" is on a scale of its own
    ranged: bool = False  # whether the confidence of K classes is binned or smoothed on [1/K, 1]
    lenses: tuple[str, ...] = LENSES
    slow: bool = False  # looks at the first few resamples only: one call costs as much as a hundred of the others
    max_rows: int = 10**9  # rows
    of: str = ""  # the member whose noise floor is taken off

    def estimator(self, lens: str) -> Estimator:
        """With its settings through this lens."""
        if self.name == Zero.name:
            return Zero()
        more = {"range": "1/K"} if self.ranged and lens == "confidence" else {}
        made: Estimator = ESTIMATORS.make(self.name, {**self.settings, **more})
        return made

    def values(self, some: Sequence[InOrder], lens: str) -> Array:
        """The mean over the views of each resample."""
        estimator = self.estimator(lens)
        return np.asarray(np.mean([_evaluate(estimator, one) for one in some], axis=0))


class Zero(Estimator):
    """The constant answer 0, which looks at nothing."""

    name: ClassVar[str] = "zero"

    def value(self, view: View) -> float:
        """0."""
        return 0.0

    def evaluate_selections(self, of: Selections) -> Array:
        """0 for each."""
        return np.zeros(len(of))


def _evaluate(estimator: Estimator, of: InOrder) -> Array:
    """All resamples at once, also for debiased errors, whose formula takes the sums of many sets of bins."""
    if isinstance(estimator, DebiasedL1) and of.alike and (sums := estimator.partition.sums(of)) is not None:
        n, wp, wy = sums
        return estimator.of_bins(n, wp, wy, n)
    return estimator.evaluate_selections(of)


def _paper() -> list[EstimatorVariant]:
    """The fifteen of Posocco & Bonnefoy (2021), with the weights that they describe."""
    variants = []
    for base, convex, label in (
        ("uniform", False, "ece"), ("equal-mass", False, "ece_a"), ("uniform", True, "ece_c"), ("equal-mass", True, "ece_ac"),
    ):  # fmt: skip
        for bins in (10, 30, "sqrt"):
            how = {"mapping": "convex"} if convex else {"mapping": "one-bin", "closed": "left"}
            settings = {"bins": bins, "partition": base, **how}
            variants.append(EstimatorVariant(f"{label}[{bins}]", "ece_linear", settings, "paper", ranged=convex))
    widths = ("silverman", 0.1, 0.033)
    variants += [EstimatorVariant(f"kde[{h}]", "ece_kde", {"bandwidth": h}, "paper", ranged=True) for h in widths]
    return variants


def _swapped() -> list[EstimatorVariant]:
    """The six whose released code gives the nearer center the smaller weight."""
    return [
        EstimatorVariant(
            f"{variant.label} swapped", variant.name, {**variant.settings, "weights": "swapped"}, "swapped", ranged=True
        )
        for variant in _paper()
        if variant.settings.get("mapping") == "convex"
    ]


def _ours() -> list[EstimatorVariant]:
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
        EstimatorVariant("ici", "ici", lenses=alone, slow=True, max_rows=SQUARE),
        EstimatorVariant("cross_fitted", "cross_fitted", lenses=alone, slow=True, max_rows=SQUARE),
        EstimatorVariant("smece", "smece", target="own", lenses=alone, slow=True),
        EstimatorVariant("ks", "ks", target="own", slow=True),
    ]


def _debiased(of: Sequence[EstimatorVariant]) -> list[EstimatorVariant]:
    by = {variant.label: variant for variant in of}
    labels = ("ece", "ece_linear", "ece_ac[sqrt]", "kde[silverman]")
    return [
        EstimatorVariant(f"{name} debiased", by[name].name, by[name].settings, "debiased", ranged=by[name].ranged, of=name,
               lenses=LENSES[:1] if by[name].name == "ece_kde" else LENSES)
        for name in labels
    ]  # fmt: skip


_EVERY = [EstimatorVariant("0", "zero", kind="zero"), *_paper(), *_swapped(), *_ours()]
VARIANTS: dict[str, EstimatorVariant] = {variant.label: variant for variant in (*_EVERY, *_debiased(_EVERY))}
COUNTS = (
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


def chosen(names: Sequence[str]) -> tuple[EstimatorVariant, ...]:
    """The members by label or by name in the registry, all if none is asked; those that a debiased one needs too."""
    if not names:
        return tuple(VARIANTS.values())
    for name in names:
        if name not in VARIANTS and name not in {variant.name for variant in VARIANTS.values()}:
            raise InputError("TO201", "No such estimator takes part.", repr(name), near(name, list(VARIANTS)))
    labels = {m.label for m in VARIANTS.values() if m.label in names or (m.name in names and not m.of)}
    labels |= {VARIANTS[label].of for label in labels} | {"0"}
    return tuple(variant for label, variant in VARIANTS.items() if label in labels)
