"""Do the measures of calibration put several models in the same order, and how much of an order do the rows settle?"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueodds_studies.base import Finding, folder
from trueodds_studies.lineup import figures, measures, orders, ranking_tables, ranking_text, subsample_pvalues
from trueodds_studies.nets.catalog import CIFAR10
from trueodds_studies.resumable_runs import Progress, rows_of


@dataclass(frozen=True)
class Plan:
    """How many rows, halves of them and small sets of them, redraws of each small set, and resamples of the intervals."""

    rows: int | None = None
    draws: int = 200
    redraws: int = 199
    resamples: int = 2000
    seed: int = 0


QUICK = Plan(rows=2000, draws=20, redraws=99, resamples=400)


@dataclass(frozen=True)
class Cell:
    """One measure, or the p-values of one number of rows."""

    task: str | int
    nets: tuple[str, ...]
    data: str | None

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        what = self.task if isinstance(self.task, str) else f"p of {self.task} rows"
        return f"{what} | {', '.join(self.nets)}"


def model_comparison(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Seven networks on CIFAR-10's test images, put in order by eighteen measures, and by p-values of fewer rows.

    Tables: every measure of every net, the orders and how much of each is settled, pairs, Kendall's tau between orders,
    p-values, and the paper's sentences beside what is found. Pictures: ranks, tau, and the nets on one pair of axes.
    `methods` are nets, two at least. Source: Vaicenavicius et al. (2019), sections 2.1 and 4.3.
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where, place = folder(out), None if data is None else str(data)
    names = measures.entrants(tuple(methods or CIFAR10))
    nets = measures.models(names, place, plan.rows, plan.seed)  # here: rows that do not match are refused at once
    n = next(iter(nets.values())).n
    tasks: list[str | int] = list(measures.QUICK_MEASURES if quick else measures.MEASURES)
    tasks += [size for size in (subsample_pvalues.SIZES[:3] if quick else subsample_pvalues.SIZES) if size < n] + [n]
    cells = [Cell(task, names, place) for task in tasks]
    results = rows_of("model_comparison", cells, measure_cell, plan, where, progress, measures.stamps(names, place))
    by_measure = [row for row in results if "measure" in row]
    by_size = [row for row in results if "pvalues" in row]
    rows = ranking_tables.values(by_measure)
    also = _also(by_measure, by_size, measures.right(nets), plan)
    finding = Finding(
        "model_comparison", ranking_text.sentence(by_measure), rows, plan.__dict__, ranking_tables.VALUES, also
    )
    if where is not None:
        finding.save(where)
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            figures.ranks(by_measure, where / "model_comparison.ranks.svg")
            figures.alike(by_measure, where / "model_comparison.tau.svg")
            figures.lineup(nets, where / "model_comparison.lineup.svg")
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """What is found of one measure, or of one number of rows."""
    nets = measures.models(cell.nets, cell.data, plan.rows, plan.seed)
    if isinstance(cell.task, int):
        return subsample_pvalues.draw_pvalues(cell.task, nets, plan.draws, plan.redraws, plan.seed)
    return orders.rank_models(cell.task, nets, plan.draws, plan.resamples, plan.seed)


def _also(
    by_measure: Sequence[Mapping[str, Any]],
    by_size: Sequence[Mapping[str, Any]],
    right: Mapping[str, Mapping[str, float]],
    plan: Plan,
) -> tuple[Finding, ...]:
    """The further tables."""
    made = (
        ("orders", ranking_text.orders(by_measure), ranking_tables.orders(by_measure), ranking_tables.ORDERS),
        (
            "nets",
            "The nets, each by its own words and outcomes.",
            ranking_tables.nets(right, by_measure),
            ranking_tables.NETS,
        ),
        ("pairs", ranking_text.pairs(by_measure), ranking_tables.pairs(by_measure), ranking_tables.PAIRS),
        ("tau", ranking_text.alike(by_measure), ranking_tables.taus(by_measure), ranking_tables.TAU),
        ("pvalues", ranking_text.pvalues(by_size), ranking_tables.pvalues(by_size), ranking_tables.PVALUES),
        (
            "paper",
            "What the paper says, and what these nets show.",
            ranking_text.paper(by_measure, by_size, right),
            ranking_text.FROM,
        ),
    )
    return tuple(
        Finding(f"model_comparison.{name}", words, rows, plan.__dict__, why) for name, words, rows, why in made
    )
