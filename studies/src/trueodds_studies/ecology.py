"""Do three models of where trees grow say it right? Binary MCLLO where the rows of one plot belong together."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds_studies.base import Finding, folder
from trueodds_studies.comparators import METHODS, Method, evaluate_methods
from trueodds_studies.data import stamp
from trueodds_studies.recalibrated import figures, presence
from trueodds_studies.recalibrated.losses import mixed
from trueodds_studies.recalibrated.plots import FILE, MODELS, Plots
from trueodds_studies.resumable_runs import Progress, rows_of

EVERY = (
    *METHODS,
    Method("Platt", "platt"),
    Method("beta", "beta"),
    Method("isotonic", "isotonic"),
    Method("auto", "auto"),
)


@dataclass(frozen=True)
class Plan:
    """How many halvings of the plots."""

    splits: int = 12
    resamples: int = 999
    shuffles: int = 200
    seed: int = 0


QUICK = Plan(splits=1, resamples=199, shuffles=20)


@dataclass(frozen=True)
class Cell:
    """One model and one halving."""

    model: str
    split: int
    data: str | None

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.model} | {self.split}"


def ecology(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Presence of 13 tree species on 386 plots in Utah by three models; the rows of a plot are not independent.

    The paper's ecology data are not public, and these stand in for them. Per model: δ and γ with standard errors of
    rows and of plots, p with plots respected and not, ECE, log loss; the same by species; and every recalibration for
    two classes fitted on half of the plots and judged on the other. With a folder also a picture, `ecology.svg`. Needs
    `ecology_tree_species.parquet` in `data` (TO802). Sources: Vennos, Xing & Franck (2026), whose ecology study is in
    their supplement; the data: Freeman & Moisen (2008), R package PresenceAbsence.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, plots = folder(out), Plots.of(data)
    place = None if data is None else str(data)
    cells = [Cell(model, split, place) for model in MODELS for split in range(plan.splits)]
    results = rows_of("ecology", cells, measure_cell, plan, where, progress, {FILE: stamp(FILE, data)})
    finding = presence.ecology(plots, results, plan)
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:
            figures.ecology(results, where / "ecology.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """Every method on one half of the plots, judged on the other."""
    plots = Plots.of(cell.data)
    first, other = plots.halves(np.random.default_rng([plan.seed, cell.split]))
    learn, held_out = plots.rows(cell.model, first), plots.rows(cell.model, other)
    rows = []
    for one in evaluate_methods(learn, held_out, EVERY):
        assert held_out.y is not None
        rows.append(one.row | {"mixed": mixed(one.after.P, held_out.y, learn.n), "chose": one.calibration_map.name})
    return {"model": cell.model, "split": cell.split, "rows": rows}
