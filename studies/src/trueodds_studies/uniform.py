"""Whether p-values from redrawn labels are uniform for calibrated models with few rows, by Kolmogorov tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import smirnov

from trueodds.core.progress import Progress
from trueodds.core.pvalues import holm
from trueodds.core.typing import Array
from trueodds.hypotests import TESTS
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.simulated_worlds import CALIBRATED_WORLDS
from trueodds_studies.common.study_result import StudyResult, make_folder
from trueodds_studies.level import Cell, hypothesis_forms, simulate_pvalues
from trueodds_studies.level import Plan as LevelPlan

LEGEND = """{sets} data sets of {rows} rows, calibrated predictions, {draws} redraws. A p-value is made continuous by
subtracting a uniform variable with the width of its grid. above: largest distance by which the distribution function of
the p-values exceeds the uniform one (a liberal test); below: largest distance below it (a conservative test, as with
many draws that tie with the data). p_above: exact one-sided Kolmogorov p-value; p_uniform: two-sided. verdict: by
Holm's correction over the rows of the table at 1 %."""


@dataclass(frozen=True)
class Plan:
    """Size of the simulation."""

    sets: int = 2000  # data sets per test and design
    rows: int = 40  # per data set
    worlds: tuple[str, ...] = ("logit-normal", "dirichlet 3")
    resamples: int = 99
    seed: int = 0

    @property
    def level_plan(self) -> LevelPlan:
        """The plan of the study `level` with the same random streams."""
        return LevelPlan(resamples=self.resamples, seed=self.seed)


QUICK = Plan(sets=200)


def uniform(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Kolmogorov tests of the p-values of every test with redrawn labels, on too few rows for asymptotic results.

    >>> finding = uniform(methods=["spiegelhalter"], plan=Plan(sets=5, worlds=("logit-normal",), resamples=9))
    >>> finding.rows[0]["test"], finding.rows[0]["verdict"]
    ('spiegelhalter', 'uniform')
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows = _add_verdicts(run_cells("uniform", list(_cells(plan, methods)), measure_cell, plan, folder, progress))
    legend = LEGEND.format(sets=plan.sets, rows=plan.rows, draws=plan.resamples)
    finding = StudyResult("uniform", _summarize(rows), rows, plan.__dict__, legend)
    if folder is not None:
        finding.save(folder)
    return finding


def _cells(plan: Plan, methods: Sequence[str] | None) -> Iterator[Cell]:
    """Every variant of the tests with redrawn labels, with every design to which it applies."""
    for name in methods or TESTS.names():
        for form in hypothesis_forms(name):
            if form.null == "redraw":
                worlds = (
                    world for world in CALIBRATED_WORLDS if world.name in plan.worlds and form.fits(world.k, plan.rows)
                )
                yield from (Cell(form, world, plan.rows) for world in worlds)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    simulation = simulate_pvalues(cell.form, cell.world, cell.n, plan.sets, plan.level_plan)
    p = simulation.pvalues[~np.isnan(simulation.pvalues)]
    row: dict[str, Any] = {"test": cell.form.label, "design": cell.world.title, "n": cell.n, "sets": len(p)}
    if len(p) == 0:
        return row | dict.fromkeys(("above", "below", "p_above", "p_uniform"))
    above, below = uniform_distances(randomize_pvalues(p, plan.resamples, np.random.default_rng(plan.seed)))
    return row | {
        "above": above,
        "below": below,
        "p_above": kolmogorov_pvalue(len(p), above, sides=1),
        "p_uniform": kolmogorov_pvalue(len(p), max(above, below)),
    }


def _add_verdicts(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Add the column `verdict`, from p-values adjusted by Holm's method over all rows."""
    p_above, p_uniform = (
        holm([float("nan") if row[key] is None else row[key] for row in rows]) for key in ("p_above", "p_uniform")
    )
    return tuple({**row, "verdict": _verdict(a, b)} for row, a, b in zip(rows, p_above, p_uniform, strict=True))


def _verdict(p_above: float, p_uniform: float) -> str:
    """The verdict at 1 %; `exceeds` is a liberal test."""
    if np.isnan(p_uniform):
        return "undefined"
    if p_above <= 0.01:
        return "exceeds"
    return "conservative" if p_uniform <= 0.01 else "uniform"


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """In words, how many sets of p-values are uniform, conservative and liberal."""
    verdicts = ("uniform", "conservative", "exceeds")
    count = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in verdicts}
    return (
        f"Of {len(rows)} sets of p-values from redrawn labels, {count['uniform']} are consistent with a uniform"
        f" distribution, {count['conservative']} are conservative, as with draws that tie with the data, and"
        f" {count['exceeds']} are liberal."
    )


def randomize_pvalues(pvalues: Array, draws: int, rng: np.random.Generator) -> Array:
    """Make p-values on the grid {1/(B + 1), …, 1} of B draws continuous.

    The results are uniform on [0, 1] if and only if the p-values are uniform on their grid.

    >>> float(randomize_pvalues(np.array([1.0]), 99, np.random.default_rng(0))[0]) > 0.99
    True
    """
    return np.asarray(pvalues - rng.random(len(pvalues)) / (draws + 1))


def uniform_distances(values: Sequence[float] | Array) -> tuple[float, float]:
    """Largest distances of the empirical distribution function above and below the uniform one (D⁺, D⁻).

    >>> uniform_distances([0.1, 0.2])
    (0.8, 0.1)
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = len(x)
    return float((np.arange(1, n + 1) / n - x).max()), float((x - np.arange(n) / n).max())


def kolmogorov_pvalue(n: int, distance: float, sides: int = 2) -> float:
    """The p-value of Kolmogorov's test of n values: exact if one-sided, an upper bound if two-sided.

    >>> round(kolmogorov_pvalue(1, 0.975, sides=1), 3)  # of one value: P(U < 0.025)
    0.025
    """
    return min(1.0, sides * float(smirnov(n, max(distance, 0.0))))
