"""In which form is each estimator judged, and what is the truth that it estimates?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.arguments import lens_for
from trueodds.estimators.base import Estimator, combine, shares
from trueodds_studies.designs import FEWER, Crowd, Design, DirichletModel


@dataclass(frozen=True)
class Case:
    """A member with the settings of a study, and the truth it is held against.

    `target` is `own` (the member itself, or its stand-in, on the whole world: for errors whose definition is on fixed bins or has
    none), `l1` or `l2` (the mean distance of said and true, which members with a bandwidth or with growing bins aim
    at).
    """

    name: str
    variant: str = ""  # what tells it from the other cases of the member
    fixed_settings: tuple[tuple[str, Any], ...] = ()  # its settings
    growing: bool = False  # ⌈n^(2/5)⌉ bins instead of a fixed number
    lens: str | None = None
    target: str = "own"
    worlds: str = "scores"  # "scores", "vectors" (both take binary worlds), or "crowds"
    from_below: bool = False  # the interval is for a lower bound of the target: it has to reach below it only
    max_rows: int = 10**9  # rows, for members that take their time
    quadratic: bool = False  # the truth is taken from fewer nodes

    @property
    def label(self) -> str:
        """The name in the table."""
        return f"{self.name} {self.variant}".strip()

    def settings(self, n: int) -> dict[str, Any]:
        """The settings for n rows."""
        return dict(self.fixed_settings) | ({"bins": math.ceil(n**0.4)} if self.growing else {})

    def fits(self, world: Design) -> bool:
        """Whether the member has a meaning in this world."""
        if isinstance(world, Crowd):
            return self.worlds == "crowds"
        if isinstance(world, DirichletModel):
            return self.worlds in ("scores", "vectors", "only vectors")
        return self.worlds in ("scores", "vectors", "binary")


def truth(case: Case, estimator: Estimator, world: Design) -> float:
    """What the estimator would give on endless rows."""
    population = world.population(FEWER) if case.quadratic else world.population()
    lens = lens_for(population, case.lens, estimator)
    views = lens.views(population)
    if case.target == "own":
        values = np.array([estimator.stand_in().value(view) for view in views])
    else:
        power = 2.0 if case.target == "l2" else 1.0
        gaps = [np.abs(v.y - v.p) if not v.joint else np.abs(v.y - v.p).sum(axis=1) / 2 for v in views]
        if case.target == "l1 of vectors":  # ‖r − p‖₁, twice the total variation where there are vectors
            gaps = [gap * (2 if v.joint else 1) for v, gap in zip(views, gaps, strict=True)]
        values = np.array(
            [float((v.w @ gap**power) / v.total) ** (1 / power) for v, gap in zip(views, gaps, strict=True)]
        )
    value = values[0] if len(views) == 1 else combine(values, shares(views, lens.aggregate), lens.aggregate)
    return 0.0 if abs(float(value)) < 1e-12 else float(value)  # what rounding leaves of a zero is zero


def cases_of(name: str) -> tuple[Case, ...]:
    """The cases of a member: as it is, where the table has no line for it."""
    return CASES.get(name, (Case(name),))


def _cases(*cases: Case) -> dict[str, tuple[Case, ...]]:
    table: dict[str, tuple[Case, ...]] = {}
    for case in cases:
        table[case.name] = (*table.get(case.name, ()), case)
    return table


CASES = _cases(
    Case("ece"),
    Case("ece", "n^(2/5) bins", growing=True, target="l1"),
    Case("ece", "classwise", lens="classwise", worlds="only vectors"),
    Case("ece", "canonical", lens="canonical", worlds="only vectors", target="l1", max_rows=1000),
    Case("mce", "10 bins", (("bins", 10),)),
    Case("rmsce"),
    Case("rmsce", "n^(2/5) equal mass", (("partition", "equal-mass"),), growing=True),
    Case("debiased_l2", growing=True),
    Case("debiased_l1", growing=True),
    Case("ece_linear", "10 bins", (("bins", 10),)),
    Case("ece_kde", target="l1", max_rows=200),
    Case("kde_mixnmatch", target="l1", max_rows=200),
    Case("dirichlet_kde", worlds="vectors", target="l1 of vectors", max_rows=200, quadratic=True),
    Case("skce", worlds="vectors", quadratic=True),
    Case("smece", max_rows=200),
    Case("interval_ce", max_rows=200),
    Case("ici", target="l1", max_rows=200, quadratic=True),
    Case("e50", max_rows=200, quadratic=True),
    Case("e90", max_rows=200, quadratic=True),
    Case("emax", max_rows=200, quadratic=True),
    Case("brier", worlds="vectors"),
    Case("log_loss", worlds="vectors"),
    Case("spherical", worlds="vectors"),
    Case("rps", worlds="vectors"),
    Case("murphy_loss", worlds="binary"),
    Case("entce", worlds="crowds"),
    Case("distce", worlds="crowds"),
    Case("rankcs", worlds="crowds"),
    Case("human_distance", worlds="crowds"),
    Case("cross_fitted", target="l1", from_below=True),
    Case("decision_regret", worlds="binary", max_rows=1000),
    Case("utility", worlds="vectors"),
)
