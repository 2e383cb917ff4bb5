"""Are the p-values of redrawn labels what they say: uniform on 1/(B + 1), …, 1 where every probability is right?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.hypotests import TESTS
from trueodds.kernels.holm import holm
from trueodds_studies.base import Finding, folder
from trueodds_studies.forms import forms_of
from trueodds_studies.level import Cell, simulate_pvalues
from trueodds_studies.level import Plan as LevelPlan
from trueodds_studies.rates import distances, kolmogorov, randomize_pvalues
from trueodds_studies.resumable_runs import Progress, rows_of
from trueodds_studies.stated import WORLDS

LEGEND = """{sets} data sets of {rows} rows, every probability right, {draws} redraws. A p-value is made continuous by a uniform step of
its grid. above: how far the distribution function of the p-values lies above that of the uniform law (a test that rejects too often),
below: below it (one that rejects too seldom, as where many draws tie with the data). p_above: exact one-sided Kolmogorov p-value;
p_uniform: of both sides. verdict: by Holm's correction over the rows of the table at 1 %."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated."""

    sets: int = 2000
    rows: int = 40
    worlds: tuple[str, ...] = ("logit-normal", "dirichlet 3")
    resamples: int = 99
    seed: int = 0

    @property
    def of_level(self) -> LevelPlan:
        """The streams are those of the study of levels."""
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
) -> Finding:
    """Kolmogorov's test of the p-values of every test whose labels are redrawn, on few rows, where laws of large numbers do not help.

    >>> finding = uniform(methods=["spiegelhalter"], plan=Plan(sets=5, worlds=("logit-normal",), resamples=9))
    >>> finding.rows[0]["test"], finding.rows[0]["verdict"]
    ('spiegelhalter', 'uniform')
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    rows = _with_verdicts(rows_of("uniform", list(_cells(plan, methods)), measure_cell, plan, where, progress))
    legend = LEGEND.format(sets=plan.sets, rows=plan.rows, draws=plan.resamples)
    finding = Finding("uniform", _sentence(rows), rows, plan.__dict__, legend)
    if where is not None:
        finding.save(where)
    return finding


def _cells(plan: Plan, methods: Sequence[str] | None) -> Iterator[Cell]:
    for name in methods or TESTS.names():
        for form in forms_of(name):
            if form.null == "redraw":
                worlds = (world for world in WORLDS if world.name in plan.worlds and form.fits(world.k, plan.rows))
                yield from (Cell(form, world, plan.rows) for world in worlds)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of one cell."""
    simulation = simulate_pvalues(cell.form, cell.world, cell.n, plan.sets, plan.of_level)
    p = simulation.pvalues[~np.isnan(simulation.pvalues)]
    row: dict[str, Any] = {"test": cell.form.label, "design": cell.world.name, "n": cell.n, "sets": len(p)}
    if len(p) == 0:
        return row | dict.fromkeys(("above", "below", "p_above", "p_uniform"))
    above, below = distances(randomize_pvalues(p, plan.resamples, np.random.default_rng(plan.seed)))
    return row | {
        "above": above, "below": below, "p_above": kolmogorov(len(p), above, sides=1),
        "p_uniform": kolmogorov(len(p), max(above, below)),
    }  # fmt: skip


def _with_verdicts(rows: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    one_sided, both = (
        holm([float("nan") if row[key] is None else row[key] for row in rows]) for key in ("p_above", "p_uniform")
    )
    return tuple({**row, "verdict": _verdict(a, b)} for row, a, b in zip(rows, one_sided, both, strict=True))


def _verdict(above: float, both: float) -> str:
    if np.isnan(both):
        return "no answer"
    return "exceeds" if above <= 0.01 else "too seldom" if both <= 0.01 else "uniform"


def _sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    count = {what: sum(row["verdict"] == what for row in rows) for what in ("uniform", "too seldom", "exceeds")}
    return (
        f"Of {len(rows)} sets of p-values from redrawn labels {count['uniform']} are uniform as far as can be seen,"
        f" {count['too seldom']} reject too seldom, as where draws tie with the data, and {count['exceeds']} too often."
    )
