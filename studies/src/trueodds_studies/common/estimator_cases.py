"""Settings of each estimator in the simulations, and the population value that its estimate is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.arguments import resolve_lens
from trueodds.estimators.base import Estimator, aggregate_values, aggregation_weights
from trueodds_studies.common.simulated_worlds import REDUCED_DRAWS, NoisyDirichletWorld, SimulatedWorld, VoteWorld


@dataclass(frozen=True)
class EstimatorCase:
    """An estimator with the settings of a study, and the population value that its estimates are compared with.

    `target` is `own` (the estimator itself, or its replacement, for the whole population: for errors that are defined
    with fixed bins or without bins), `l1` or `l2` (the mean distance of predicted and true probabilities, or its root
    mean square, which estimators with a bandwidth or with a growing number of bins estimate).
    """

    name: str
    variant: str = ""  # distinguishes the cases of one estimator
    fixed_settings: tuple[tuple[str, Any], ...] = ()  # its settings
    growing: bool = False  # ⌈n^(2/5)⌉ bins instead of a fixed number
    lens: str | None = None
    target: str = "own"
    worlds: str = "scores"  # "scores", "vectors" (both take binary worlds), or "crowds"
    from_below: bool = False  # the interval is for a lower bound of the target: it has to reach below it only
    max_rows: int = 10**9  # rows, for slow estimators
    quadratic: bool = False  # the truth is taken from fewer nodes

    @property
    def label(self) -> str:
        """The name in the table."""
        return f"{self.name} {self.variant}".strip()

    def settings(self, n: int) -> dict[str, Any]:
        """The settings for n rows."""
        return dict(self.fixed_settings) | ({"bins": math.ceil(n**0.4)} if self.growing else {})

    def fits(self, world: SimulatedWorld) -> bool:
        """Whether the estimator is meaningful in this world."""
        if isinstance(world, VoteWorld):
            return self.worlds == "crowds"
        if isinstance(world, NoisyDirichletWorld):
            return self.worlds in ("scores", "vectors", "only vectors")
        return self.worlds in ("scores", "vectors", "binary")


def population_value(case: EstimatorCase, estimator: Estimator, world: SimulatedWorld) -> float:
    """The limit of the estimate for infinitely many rows."""
    population = world.population(REDUCED_DRAWS) if case.quadratic else world.population()
    lens = resolve_lens(population, case.lens, estimator)
    views = lens.views(population)
    if case.target == "own":
        values = np.array([estimator.interval_estimator().value(view) for view in views])
    else:
        power = 2.0 if case.target == "l2" else 1.0
        gaps = [np.abs(v.y - v.p) if not v.joint else np.abs(v.y - v.p).sum(axis=1) / 2 for v in views]
        if case.target == "l1 of vectors":  # ‖r − p‖₁, twice the total variation where there are vectors
            gaps = [gap * (2 if v.joint else 1) for v, gap in zip(views, gaps, strict=True)]
        values = np.array(
            [float((v.w @ gap**power) / v.total) ** (1 / power) for v, gap in zip(views, gaps, strict=True)]
        )
    value = (
        values[0]
        if len(views) == 1
        else aggregate_values(values, aggregation_weights(views, lens.aggregate), lens.aggregate)
    )
    return 0.0 if abs(float(value)) < 1e-12 else float(value)  # what rounding leaves of a zero is zero


def estimator_cases(name: str) -> tuple[EstimatorCase, ...]:
    """The cases of an estimator; one case with default settings if the table has none."""
    return CASES.get(name, (EstimatorCase(name),))


def _by_estimator(*cases: EstimatorCase) -> dict[str, tuple[EstimatorCase, ...]]:
    table: dict[str, tuple[EstimatorCase, ...]] = {}
    for case in cases:
        table[case.name] = (*table.get(case.name, ()), case)
    return table


CASES = _by_estimator(
    EstimatorCase("ece"),
    EstimatorCase("ece", "n^(2/5) bins", growing=True, target="l1"),
    EstimatorCase("ece", "classwise", lens="classwise", worlds="only vectors"),
    EstimatorCase("ece", "canonical", lens="canonical", worlds="only vectors", target="l1", max_rows=1000),
    EstimatorCase("mce", "10 bins", (("bins", 10),)),
    EstimatorCase("rmsce"),
    EstimatorCase("rmsce", "n^(2/5) equal mass", (("partition", "equal-mass"),), growing=True),
    EstimatorCase("debiased_l2", growing=True),
    EstimatorCase("debiased_l1", growing=True),
    EstimatorCase("ece_linear", "10 bins", (("bins", 10),)),
    EstimatorCase("ece_kde", target="l1", max_rows=200),
    EstimatorCase("kde_mixnmatch", target="l1", max_rows=200),
    EstimatorCase("dirichlet_kde", worlds="vectors", target="l1 of vectors", max_rows=200, quadratic=True),
    EstimatorCase("skce", worlds="vectors", quadratic=True),
    EstimatorCase("smece", max_rows=200),
    EstimatorCase("interval_ce", max_rows=200),
    EstimatorCase("ici", target="l1", max_rows=200, quadratic=True),
    EstimatorCase("e50", max_rows=200, quadratic=True),
    EstimatorCase("e90", max_rows=200, quadratic=True),
    EstimatorCase("emax", max_rows=200, quadratic=True),
    EstimatorCase("brier", worlds="vectors"),
    EstimatorCase("log_loss", worlds="vectors"),
    EstimatorCase("spherical", worlds="vectors"),
    EstimatorCase("rps", worlds="vectors"),
    EstimatorCase("murphy_loss", worlds="binary"),
    EstimatorCase("net_benefit", worlds="binary"),
    EstimatorCase("entce", worlds="crowds"),
    EstimatorCase("distce", worlds="crowds"),
    EstimatorCase("rankcs", worlds="crowds"),
    EstimatorCase("human_distance", worlds="crowds"),
    EstimatorCase("cross_fitted", target="l1", from_below=True),
    EstimatorCase("decision_regret", worlds="binary", max_rows=1000),
    EstimatorCase("utility", worlds="vectors"),
)
