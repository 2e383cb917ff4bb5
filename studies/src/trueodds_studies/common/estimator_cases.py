"""Settings of each estimator in simulations, where it is evaluated, and the population value of its estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.arguments import resolve_lens
from trueodds.estimators.base import Estimator, aggregate_values, aggregation_weights
from trueodds.lenses.view import View
from trueodds_studies.common.simulated_worlds import REDUCED_DRAWS, NoisyDirichletWorld, SimulatedWorld, VoteWorld


@dataclass(frozen=True)
class EstimatorCase:
    """An estimator with the settings of a simulation.

    `target` defines the population value that its estimates are compared with. `own` is the value of the estimator (or
    its `interval_estimator`) for the whole population; it is used for errors with fixed bins or without bins. `l1` is
    the mean distance of predicted and true probabilities and `l2` its root mean square; they are used for estimators
    with a bandwidth or a growing number of bins. Vectors have the total variation distance, and with `l1 of vectors`
    the L1 distance.
    """

    name: str
    variant: str = ""  # part of the label, which distinguishes the cases of one estimator
    fixed_settings: tuple[tuple[str, Any], ...] = ()
    growing: bool = False  # whether there are ⌈n^(2/5)⌉ bins instead of a fixed number
    lens: str | None = None
    target: str = "own"
    worlds: str = "binary, multiclass"  # that, or only "binary", only "multiclass", or "votes"
    from_below: bool = False  # whether the estimate is a lower bound, whose interval has only a lower limit
    max_rows: int = 10**9  # largest number of rows; fewer for slow estimators
    quadratic: bool = False  # whether the cost is quadratic, so that fewer draws represent the population

    @property
    def label(self) -> str:
        """The name in the tables."""
        return f"{self.name} {self.variant}".strip()

    def settings(self, n: int) -> dict[str, Any]:
        """The settings of the estimator for n rows."""
        return dict(self.fixed_settings) | ({"bins": math.ceil(n**0.4)} if self.growing else {})

    def fits(self, world: SimulatedWorld) -> bool:
        """Whether the estimator is meaningful in this world."""
        if isinstance(world, VoteWorld):
            return self.worlds == "votes"
        if isinstance(world, NoisyDirichletWorld):
            return self.worlds in ("binary, multiclass", "multiclass")
        return self.worlds in ("binary, multiclass", "binary")


def population_value(case: EstimatorCase, estimator: Estimator, world: SimulatedWorld) -> float:
    """The population value that estimates are compared with, as defined by `case.target`."""
    population = world.population(REDUCED_DRAWS) if case.quadratic else world.population()
    lens = resolve_lens(population, case.lens, estimator)
    views = lens.views(population)
    if case.target == "own":
        values = np.array([estimator.interval_estimator().value(view) for view in views])
    else:
        values = np.array([_mean_distance(view, case.target) for view in views])
    if len(views) == 1:
        value = float(values[0])
    else:
        value = float(aggregate_values(values, aggregation_weights(views, lens.aggregate), lens.aggregate))
    return 0.0 if abs(value) < 1e-12 else value  # remove what rounding leaves of a zero


def _mean_distance(view: View, target: str) -> float:
    """Mean distance of predicted and true probabilities in a view, or for `l2` the root mean squared distance.

    The distance of vectors is total variation or, for `l1 of vectors`, the L1 distance ‖r − p‖₁, which is twice as
    large.
    """
    distances = np.abs(view.y - view.p)
    if view.joint:
        distances = distances.sum(axis=1) / 2
        if target == "l1 of vectors":
            distances = distances * 2
    power = 2.0 if target == "l2" else 1.0
    return float((view.w @ distances**power) / view.total) ** (1 / power)


def estimator_cases(name: str) -> tuple[EstimatorCase, ...]:
    """The cases of an estimator: those of `CASES`, or one with default settings."""
    return CASES.get(name, (EstimatorCase(name),))


def _group_by_estimator(*cases: EstimatorCase) -> dict[str, tuple[EstimatorCase, ...]]:
    """The cases as a table from the name of the estimator to its cases."""
    table: dict[str, tuple[EstimatorCase, ...]] = {}
    for case in cases:
        table[case.name] = (*table.get(case.name, ()), case)
    return table


CASES = _group_by_estimator(
    EstimatorCase("ece"),
    EstimatorCase("ece", "n^(2/5) bins", growing=True, target="l1"),
    EstimatorCase("ece", "classwise", lens="classwise", worlds="multiclass"),
    EstimatorCase("ece", "canonical", lens="canonical", worlds="multiclass", target="l1", max_rows=1000),
    EstimatorCase("mce", "10 bins", (("bins", 10),)),
    EstimatorCase("rmsce"),
    EstimatorCase("rmsce", "n^(2/5) equal mass", (("partition", "equal-mass"),), growing=True),
    EstimatorCase("debiased_l2", growing=True),
    EstimatorCase("debiased_l1", growing=True),
    EstimatorCase("ece_linear", "10 bins", (("bins", 10),)),
    EstimatorCase("ece_kde", target="l1", max_rows=200),
    EstimatorCase("kde_mixnmatch", target="l1", max_rows=200),
    EstimatorCase("dirichlet_kde", target="l1 of vectors", max_rows=200, quadratic=True),
    EstimatorCase("skce", quadratic=True),
    EstimatorCase("smece", max_rows=200),
    EstimatorCase("interval_ce", max_rows=200),
    EstimatorCase("ici", target="l1", max_rows=200, quadratic=True),
    EstimatorCase("e50", max_rows=200, quadratic=True),
    EstimatorCase("e90", max_rows=200, quadratic=True),
    EstimatorCase("emax", max_rows=200, quadratic=True),
    EstimatorCase("brier"),
    EstimatorCase("log_loss"),
    EstimatorCase("spherical"),
    EstimatorCase("rps"),
    EstimatorCase("murphy_loss", worlds="binary"),
    EstimatorCase("net_benefit", worlds="binary"),
    EstimatorCase("entce", worlds="votes"),
    EstimatorCase("distce", worlds="votes"),
    EstimatorCase("rankcs", worlds="votes"),
    EstimatorCase("human_distance", worlds="votes"),
    EstimatorCase("cross_fitted", target="l1", from_below=True),
    EstimatorCase("decision_regret", worlds="binary", max_rows=1000),
    EstimatorCase("utility"),
)
