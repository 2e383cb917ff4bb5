"""Which estimators take part, in the form that each lens asks for, and which truth does each aim at?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.estimators.debiased import DebiasedL1
from trueodds.problem.selections import Selections
from trueodds.problem.view import View
from trueodds_studies.trajectories.pool import InOrder

Array = NDArray[Any]

LENSES = ("confidence", "classwise")
SQUARE = 580  # rows up to which members take part whose cost is quadratic


@dataclass(frozen=True)
class Member:
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
    few: bool = False  # looks at the first few resamples only: one call costs as much as a hundred of the others
    most: int = 10**9  # rows
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
        return np.asarray(np.mean([_each(estimator, one) for one in some], axis=0))


class Zero(Estimator):
    """The constant answer 0, which looks at nothing."""

    name: ClassVar[str] = "zero"

    def value(self, view: View) -> float:
        """0."""
        return 0.0

    def each(self, of: Selections) -> Array:
        """0 for each."""
        return np.zeros(len(of))


def _each(estimator: Estimator, of: InOrder) -> Array:
    """All resamples at once, also for debiased errors, whose formula takes the sums of many sets of bins."""
    if isinstance(estimator, DebiasedL1) and of.alike and (sums := estimator.partition.sums(of)) is not None:
        n, wp, wy = sums
        return estimator.of_bins(n, wp, wy, n)
    return estimator.evaluate_selections(of)


def _paper() -> list[Member]:
    """The fifteen of Posocco & Bonnefoy (2021), with the weights that they describe."""
    variants = []
    for base, convex, label in (
        ("uniform", False, "ece"), ("equal-mass", False, "ece_a"), ("uniform", True, "ece_c"), ("equal-mass", True, "ece_ac"),
    ):  # fmt: skip
        for bins in (10, 30, "sqrt"):
            how = {"mapping": "convex"} if convex else {"mapping": "one-bin", "closed": "left"}
            settings = {"bins": bins, "partition": base, **how}
            variants.append(Member(f"{label}[{bins}]", "ece_linear", settings, "paper", ranged=convex))
    widths = ("silverman", 0.1, 0.033)
    variants += [Member(f"kde[{h}]", "ece_kde", {"bandwidth": h}, "paper", ranged=True) for h in widths]
    return variants


def _swapped() -> list[Member]:
    """The six whose released code gives the nearer center the smaller weight."""
    return [
        Member(
            f"{variant.label} swapped", variant.name, {**variant.settings, "weights": "swapped"}, "swapped", ranged=True
        )
        for variant in _paper()
        if variant.settings.get("mapping") == "convex"
    ]


def _ours() -> list[Member]:
    alone = LENSES[:1]
    auto = {"bins": "auto"}
    mass = {"partition": "equal-mass"}
    return [
        Member("ece", "ece"),
        Member("ece auto", "ece", auto),
        Member("ece mass", "ece", mass),
        Member("ece mass auto", "ece", {**mass, **auto}),
        Member("ece_linear", "ece_linear"),
        Member("ece_kde", "ece_kde", lenses=alone),  # class by class it is kde[silverman]
        Member("debiased_l1", "debiased_l1"),
        Member("debiased_l1 15", "debiased_l1", {"bins": 15, "partition": "uniform"}),
        Member("rmsce", "rmsce", target="l2"),
        Member("rmsce mass auto", "rmsce", {**mass, **auto}, target="l2"),
        Member("debiased_l2", "debiased_l2", target="l2", few=True),
        Member("sweep", "sweep", few=True),
        Member("ici", "ici", lenses=alone, few=True, most=SQUARE),
        Member("cross_fitted", "cross_fitted", lenses=alone, few=True, most=SQUARE),
        Member("smece", "smece", target="own", lenses=alone, few=True),
        Member("ks", "ks", target="own", few=True),
    ]


def _debiased(of: Sequence[Member]) -> list[Member]:
    by = {variant.label: variant for variant in of}
    labels = ("ece", "ece_linear", "ece_ac[sqrt]", "kde[silverman]")
    return [
        Member(f"{name} debiased", by[name].name, by[name].settings, "debiased", ranged=by[name].ranged, of=name,
               lenses=LENSES[:1] if by[name].name == "ece_kde" else LENSES)
        for name in labels
    ]  # fmt: skip


_EVERY = [Member("0", "zero", kind="zero"), *_paper(), *_swapped(), *_ours()]
MEMBERS: dict[str, Member] = {variant.label: variant for variant in (*_EVERY, *_debiased(_EVERY))}
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


def chosen(names: Sequence[str]) -> tuple[Member, ...]:
    """The members by label or by name in the registry, all if none is asked; those that a debiased one needs too."""
    if not names:
        return tuple(MEMBERS.values())
    for name in names:
        if name not in MEMBERS and name not in {variant.name for variant in MEMBERS.values()}:
            raise InputError("TO201", "No such estimator takes part.", repr(name), near(name, list(MEMBERS)))
    labels = {m.label for m in MEMBERS.values() if m.label in names or (m.name in names and not m.of)}
    labels |= {MEMBERS[label].of for label in labels} | {"0"}
    return tuple(variant for label, variant in MEMBERS.items() if label in labels)
