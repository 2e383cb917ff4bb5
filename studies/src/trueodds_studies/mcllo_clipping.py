"""Who decides MCLLO's verdict where a forest says 0: the data, or the number that stands in for the zeros?"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.verbs import test
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.base import Finding, folder, moved
from trueodds_studies.mcllo.forest import FLOORS, Forest, Stand, stands, unexpected
from trueodds_studies.rates import above, clopper_pearson
from trueodds_studies.resumable_runs import Progress, Row, rows_of

LEVEL = 0.05
MIN_TEST_PROB = 1e-15  # the smallest floor that the test itself takes
KINDS = ("all rows", "without them")  # them: the rows whose outcome had no votes

ONE = """One forest: {rows} rows, 20 votes among 3 classes, {zeros} rows with a zero, {missed} of which came. rows: all, or without those {missed}.
stand-in: what is said instead of 0. lrt, p: likelihood ratio against the last class, χ² with 4 degrees of freedom; lrt_low, lrt_high:
its least and largest value over the three baselines; gamma, delta: slopes and shifts; score, p_redrawn: score statistic and its
p-value among {resamples} redraws from the stood-in probabilities. p_zeros_meant: the same where labels are redrawn from the shares
of the votes themselves, in which a zero means never, and the floor, from 1e-15 on,
stands in only inside the logs."""

MANY = """{sets} forests of {rows} rows. Votes + 1/2 are exactly right by construction: there a test at 5 % may reject 5 %. Elsewhere the
stood-in probabilities are wrong, by as much as the floor is. lrt, redrawn: share of forests rejected at 5 % by the likelihood ratio
and by the score among {resamples} redraws, with 99 % Clopper-Pearson limits; verdict: for what is right, exceeds where the lower
limit, Bonferroni over both tests, is above 5 %. without: the same on the rows whose outcome had votes; that choice looks at the
outcomes, so that nothing is exactly right there. lrt_median: the likelihood ratio of the forest in the middle."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated; every forest has its own stream."""

    sets: int = 500
    rows: int = 240
    missed: int = 5  # outcomes without votes that the one forest has at least
    resamples: int = 999  # for the one forest
    redraws: int = 199  # for each of many
    seed: int = 0

    def forest(self, repetition: int) -> tuple[Array, Array]:
        """Votes and labels of one of many forests."""
        return Forest(self.rows).rows(np.random.default_rng([self.seed, self.rows, repetition]))

    def shown(self) -> tuple[Array, Array]:
        """The first of them in which as many outcomes as `missed` had no votes."""
        every = (self.forest(repetition) for repetition in itertools.count())
        return next((votes, y) for votes, y in every if unexpected(votes, y).sum() >= self.missed)


QUICK = Plan(sets=25)


@dataclass(frozen=True)
class Cell:
    """One stand-in, on all rows or without those whose outcome had no votes."""

    stand: Stand
    kind: str

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.stand.name} | {self.kind}"


def mcllo_clipping(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """One forest under many stand-ins for its zeros, with and without outcomes that had no votes; then 500 of them.

    The paper says of no zero what was done about it. Votes + 1/2 are exactly right in these forests, so that the
    share of them that each stand-in has rejected is known to be chance or the stand-in's own doing.

    >>> finding = mcllo_clipping(plan=Plan(sets=2, rows=60, missed=1, resamples=19, redraws=19))
    >>> len(finding.rows), [table.name for table in finding.also]
    (18, ['mcllo_clipping.many'])
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    votes, y = plan.shown()
    cells = [Cell(stand, kind) for kind in KINDS for stand in stands()]
    rows = tuple(forest_row(votes, y, cell, plan) for cell in cells)
    zeros, missed = int((votes == 0).any(axis=1).sum()), int(unexpected(votes, y).sum())
    legend_values = plan.__dict__ | {"zeros": zeros, "missed": missed}
    many_cells = [Cell(stand, kind) for stand in stands() for kind in KINDS]
    many = _side_by_side(rows_of("mcllo_clipping", many_cells, measure_cell, plan, where, progress))
    also = Finding(
        "mcllo_clipping.many",
        of_many(many),
        many,
        plan.__dict__,
        MANY.format(**legend_values | {"resamples": plan.redraws}),
    )
    finding = Finding("mcllo_clipping", sentence(rows, many), rows, plan.__dict__, ONE.format(**legend_values), (also,))
    if where is not None:
        finding.save(where)
        _draw(finding, where)
    return finding


def forest_row(votes: Array, y: Array, cell: Cell, plan: Plan) -> Row:
    """What the test says of one forest."""
    mask = ~unexpected(votes, y) if cell.kind == KINDS[1] else np.ones(len(y), dtype=bool)
    votes, y, stand = votes[mask], y[mask], cell.stand
    preds = Predictions(y, stand.of(votes))
    ratios = [test(preds, "mcllo", baseline=c) for c in range(votes.shape[1])]
    last, drawn = ratios[-1], test(preds, "mcllo", null="redraw", resamples=plan.resamples, rng=plan.seed)
    row: dict[str, Any] = {
        "rows": cell.kind, "stand-in": stand.name, "n": preds.n, "lrt": last.statistic, "p": last.pvalue,
        "lrt_low": min(verdict.statistic for verdict in ratios), "lrt_high": max(verdict.statistic for verdict in ratios),
        "verdict": _verdict(last.pvalue), "score": drawn.statistic, "p_redrawn": drawn.pvalue,
        "verdict_redrawn": _verdict(drawn.pvalue), "p_zeros_meant": None,
    }  # fmt: skip
    for j in range(votes.shape[1] - 1):
        row |= {f"{name}_{j + 1}": last.parts[f"class:{j}"][name] for name in ("gamma", "delta")}
    if stand.kind == "floor" and stand.amount >= MIN_TEST_PROB:
        vote_shares = Predictions(y, votes / votes.sum(axis=1, keepdims=True))
        zeros_verdict = test(
            vote_shares, "mcllo", null="redraw", min_prob=stand.amount, resamples=plan.resamples, rng=plan.seed
        )
        row["p_zeros_meant"] = zeros_verdict.pvalue
    return row


def measure_cell(cell: Cell, plan: Plan) -> Row:
    """How often each form of the test rejects under one stand-in."""
    ratios, pvalues = [], []
    for repetition in range(plan.sets):
        votes, y = plan.forest(repetition)
        mask = ~unexpected(votes, y) if cell.kind == KINDS[1] else np.ones(len(y), dtype=bool)
        preds = Predictions(y[mask], cell.stand.of(votes[mask]))
        drawn = test(preds, "mcllo", null="redraw", resamples=plan.redraws, rng=repetition)
        asymptotic = test(preds, "mcllo")
        ratios.append(asymptotic.statistic)
        pvalues.append((asymptotic.pvalue, drawn.pvalue))
    hits = (np.array(pvalues) <= LEVEL + 1e-12).sum(axis=0)
    row: dict[str, Any] = {"stand-in": cell.stand.name, "rows": cell.kind, "lrt_median": float(np.median(ratios))}
    for name, count in zip(("lrt", "redrawn"), hits.tolist(), strict=True):
        low, high = clopper_pearson(count, plan.sets)
        row |= {name: count / plan.sets, f"{name}_low": low, f"{name}_high": high}
    right = cell.stand == Stand("votes", 0.5) and cell.kind == KINDS[0]
    beyond = any(above(count, plan.sets, LEVEL, 2) for count in hits.tolist())
    return row | {"verdict": ("exceeds" if beyond else "keeps") if right else ""}


def _side_by_side(rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per stand-in."""
    table = []
    for every, without in zip(rows[::2], rows[1::2], strict=True):
        row = {key: value for key, value in every.items() if key != "rows"}
        table.append(row | {f"without: {name}": without[name] for name in ("lrt_median", "lrt", "redrawn")})
    return tuple(table)


def sentence(rows: Sequence[Row], many: Sequence[Row]) -> str:
    """What was found, in one."""
    every, rest = (_decided([row for row in rows if row["rows"] == kind]) for kind in KINDS)
    shares = [100 * row["lrt"] for row in many if row["stand-in"].startswith("floor")]
    right = next(row for row in many if row["verdict"])
    return (
        f"One forest: {every}. Without its rows whose outcome had no votes {rest}. Of forests whose votes + 1/2 are exactly right, floors from {FLOORS[0]:g} to {FLOORS[-1]:g} have"
        f" {shares[0]:.0f} % to {shares[-1]:.0f} % rejected at 5 %, and votes + 1/2 {100 * right['lrt']:.1f} %"
        f" ({100 * right['redrawn']:.1f} % by redrawn labels)."
    )


def _decided(rows: Sequence[Row]) -> str:
    """How far the verdict hangs on what stands in for zeros."""
    floors, rejected = [row for row in rows if row["stand-in"].startswith("floor")], [row["p"] <= LEVEL for row in rows]
    if all(rejected) or not any(rejected):
        text = f"every stand-in {'rejects' if rejected[0] else 'passes'}"
    else:
        text = f"the stand-in decides, {sum(rejected)} of {len(rejected)} reject"
    ends = moved(floors[0]["lrt"], floors[-1]["lrt"], 2)
    return f"{text}, and the likelihood ratio {ends} as the floor goes from {FLOORS[0]:g} to {FLOORS[-1]:g}"


def of_many(many: Sequence[Row]) -> str:
    """What many forests come to."""
    gap = max(abs(row["lrt"] - row["redrawn"]) for row in many)
    worst = max(many, key=lambda row: abs(row["lrt"] - row["redrawn"]))
    return (
        f"Redrawn labels are exact for the probabilities that they are given, floor and all: the two tests differ by at most"
        f" {100 * gap:.1f} points, with {worst['stand-in']}."
    )


def _verdict(pvalue: float) -> str:
    return "rejects" if pvalue <= LEVEL else "does not"


def _draw(finding: Finding, where: Path) -> None:
    """The picture; without matplotlib there are only the tables."""
    if importlib.util.find_spec("matplotlib") is not None:
        from trueodds_studies.mcllo.floors import floors

        floors(finding.rows, finding.also[0].rows, where / "mcllo_clipping.svg")
