"""Which lens, which estimator and which test sees that six predictions are wrong only as a whole?"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.lenses import figures, lens_results, lens_tables
from trueodds_studies.lenses.drawn import LENSES, known
from trueodds_studies.resumable_runs import Progress, rows_of


@dataclass(frozen=True)
class Plan:
    """Rows of a data set, how many of them, resamples of an interval, and redraws of a test."""

    rows: int = 600
    sets: int = 50
    resamples: int = 500
    redraws: int = 99
    seed: int = 0


QUICK = Plan(rows=300, sets=20, resamples=50, redraws=39)
QUICK_LENSES = ("confidence", "classwise", "canonical")

LENSES_LEGEND = """exact: ECE of endless rows, only rows of the same prediction pooled. ECE: of the first data set, value [95 % interval] (noise floor).
reject: the least and the most that a test rejects at 5 %; see it: those that reject more than four standard deviations above 5 %."""
ESTIMATORS = """exact, if calibrated: on 3,000 rows that came exactly as the table says, and as was said. estimate: value [95 % interval] (noise
floor). told apart: in which share of pairs a data set looks worse than one of a calibrated model with the same predictions; .5 is blind. sees it: more
than four standard deviations from .5."""
TESTS = """p: of the first data set. rejects: share of data sets with p ≤ .05; so for a calibrated model with the same predictions; and, through
other lenses, the least and the most."""


@dataclass(frozen=True)
class Cell:
    """One lens."""

    lens: str

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return self.lens


def table1(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Six predictions of three classes that are right by every lens but the canonical one, through all of them.

    Labels are drawn from the laws of the table, and every estimator and every test of the registries is asked, with the
    exact answer beside. Tables: lenses; estimators and tests on whole vectors; on disk also all of them through each
    lens. A picture. `methods` are lenses. Source: Vaicenavicius et al. (2019), Table 1.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    lenses = [known(name) for name in methods or (QUICK_LENSES if quick else LENSES)]
    cells = rows_of("table1", [Cell(lens) for lens in lenses], measure_cell, plan, where, progress)
    finding = Finding(
        "table1", lens_tables.sentence(cells, plan.sets), lens_tables.compare_lenses(cells, plan.sets), plan.__dict__, LENSES_LEGEND,
        _also(cells, plan) if "canonical" in lenses else (),
    )  # fmt: skip
    if where is not None:
        finding.save(where)
        Finding("table1.all", "Every member through every lens.", lens_tables.every(cells), plan.__dict__).save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            figures.draw(cells, plan.sets, where / "table1.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """What is found through one lens."""
    return {
        "lens": cell.lens,
        **lens_results.lens_alone(cell.lens),
        "estimates": lens_results.estimates(cell.lens, plan.rows, plan.sets, plan.resamples, plan.seed),
        "tests": lens_results.verdicts(cell.lens, plan.rows, plan.sets, plan.redraws, plan.seed),
    }


def _also(cells: Sequence[Mapping[str, Any]], plan: Plan) -> tuple[Finding, ...]:
    """The tables of whole vectors."""
    made = (
        (
            "estimators",
            "Every estimator through the canonical lens.",
            lens_tables.estimators(cells, plan.sets),
            ESTIMATORS,
        ),
        ("tests", "Every test through the canonical lens.", lens_tables.tests(cells, plan.sets), TESTS),
    )
    return tuple(Finding(f"table1.{name}", words, rows, plan.__dict__, why) for name, words, rows, why in made)
