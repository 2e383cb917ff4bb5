"""Kolmogorov tests of the uniformity of resampling p-values for calibrated models on few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import smirnov

from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.hypotests import TESTS
from trueodds.kernels.holm import holm
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

    sets: int = 2000
    rows: int = 40
    worlds: tuple[str, ...] = ("logit-normal", "dirichlet 3")
    resamples: int = 99
    seed: int = 0

    @property
    def of_level(self) -> LevelPlan:
        """Plan of the study `level`, whose random streams are reused."""
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
    where = make_folder(out)
    rows = _add_verdicts(run_cells("uniform", list(_cells(plan, methods)), measure_cell, plan, where, progress))
    legend = LEGEND.format(sets=plan.sets, rows=plan.rows, draws=plan.resamples)
    finding = StudyResult("uniform", _summarize(rows), rows, plan.__dict__, legend)
    if where is not None:
        finding.save(where)
    return finding


def _cells(plan: Plan, methods: Sequence[str] | None) -> Iterator[Cell]:
    for name in methods or TESTS.names():
        for form in hypothesis_forms(name):
            if form.null == "redraw":
                worlds = (
                    world for world in CALIBRATED_WORLDS if world.name in plan.worlds and form.fits(world.k, plan.rows)
                )
                yield from (Cell(form, world, plan.rows) for world in worlds)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    simulation = simulate_pvalues(cell.form, cell.world, cell.n, plan.sets, plan.of_level)
    p = simulation.pvalues[~np.isnan(simulation.pvalues)]
    row: dict[str, Any] = {"test": cell.form.label, "design": cell.world.name, "n": cell.n, "sets": len(p)}
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
    one_sided, both = (
        holm([float("nan") if row[key] is None else row[key] for row in rows]) for key in ("p_above", "p_uniform")
    )
    return tuple({**row, "verdict": _verdict(a, b)} for row, a, b in zip(rows, one_sided, both, strict=True))


def _verdict(above: float, both: float) -> str:
    if np.isnan(both):
        return "undefined"
    return "exceeds" if above <= 0.01 else "conservative" if both <= 0.01 else "uniform"


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    count = {what: sum(row["verdict"] == what for row in rows) for what in ("uniform", "conservative", "exceeds")}
    return (
        f"Of {len(rows)} sets of p-values from redrawn labels, {count['uniform']} are consistent with a uniform"
        f" distribution, {count['conservative']} are conservative, as with draws that tie with the data, and"
        f" {count['exceeds']} are liberal."
    )


def randomize_pvalues(pvalues: Array, draws: int, rng: np.random.Generator) -> Array:
    """Make p-values on {1/(B+1), …, 1} continuous: they are uniform on [0, 1] if and only if uniform on their grid.

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
