"""Power of the tests of an audit and of the best single test, for designs with one known miscalibration each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.test import test
from trueodds.core.progress import Progress
from trueodds.data.predictions import Predictions
from trueodds_studies.common.power_worlds import POWER_WORLDS, MiscalibratedWorld
from trueodds_studies.common.rejection_rates import clopper_pearson
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

ALPHA = 0.05
SINGLE_TESTS: Mapping[int, Sequence[tuple[str, str, Mapping[str, Any]]]] = {
    2: (
        ("spiegelhalter", "positive", {}),
        ("cox", "positive", {}),
        ("tcal", "positive", {}),
        ("ks", "positive", {"null": "redraw"}),
        ("debiased_l2", "positive", {"null": "redraw"}),
        ("consistency", "positive", {}),
    ),
    3: (
        ("spiegelhalter", "confidence", {}),
        ("cox", "confidence", {}),
        ("score", "canonical", {"statistic": "log_loss"}),
        ("skce", "canonical", {"null": "redraw"}),
        ("tcal", "canonical", {}),
        ("ks", "classwise", {"null": "redraw"}),
        ("debiased_l2", "classwise", {"null": "redraw"}),
    ),
}
"""Test, lens and settings, by number of classes; those for three classes are used for more, too."""
MANY_CLASSES = 100  # number of classes from which on only half as many data sets are drawn
SATURATED_POWER = 98  # rejection rate in percent from which two tests cannot be distinguished
MAX_SMALL_N = 300  # number of rows up to which the power for probability vectors is also stated separately
SLOW_TESTS = {"skce": 1000, "tcal": 1000}  # largest number of rows for tests whose draws take long


@dataclass(frozen=True)
class Plan:
    """Size of the simulation. Each data set has its own random stream."""

    sets: int = 50  # data sets per miscalibrated design and number of rows
    calibrated: int = 200  # data sets per calibrated design and number of rows
    rows: tuple[int, ...] = (100, 300, 1000, 5000)
    max_classes: int = 100
    resamples: int = 199
    seed: int = 0

    def rng(self, world: MiscalibratedWorld, n: int, repetition: int) -> np.random.Generator:
        """The random stream of one data set: the same rows for every test."""
        return np.random.default_rng([self.seed, *f"{world.name} {world.k}".encode(), n, repetition])


QUICK = Plan(sets=8, calibrated=20, rows=(100,), max_classes=3, resamples=99)

LEGEND = """Rejection rates at 5 % in percent. audit: the audit's family of lenses, by the omnibus test. earlier
audit: the same family by the smallest p-value of the ECE of all lenses and classes, which audits used earlier. best
test: rejection rate of the single test, one of {names}, that rejects most often in this design; test: its name. held
out: whether the weights of the omnibus test were chosen without designs of this kind. For calibrated designs, audit
and earlier audit are the size; low and high are 99 % Clopper-Pearson limits. {resamples} redraws."""


@dataclass(frozen=True)
class Cell:
    """One design and one number of rows."""

    name: str
    k: int
    n: int

    @property
    def world(self) -> MiscalibratedWorld:
        """The design, looked up by name because its functions cannot be sent to worker processes."""
        return next(world for world in POWER_WORLDS if (world.name, world.k) == (self.name, self.k))

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.name} | {self.k} | {self.n}"


def power(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    worlds: Sequence[MiscalibratedWorld] = POWER_WORLDS,
    progress: Progress | None = None,
) -> StudyResult:
    """Power at 5 % of the audit's family of tests and of the best single test, for one known miscalibration each.

    >>> finding = power(plan=Plan(2, 2, rows=(50,), resamples=19), worlds=POWER_WORLDS[:1])
    >>> [(row["design"], row["K"], row["n"], row["data sets"]) for row in finding.rows]
    [('calibrated, logits N(0, 2)', 2, 50, 2)]
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows = run_cells("power", list(power_cells(plan, worlds)), measure_cell, plan, folder, progress)
    names = ", ".join(dict.fromkeys(name for tests in SINGLE_TESTS.values() for name, _, _ in tests))
    finding = StudyResult(
        "power", summarize(rows), rows, plan.__dict__, LEGEND.format(names=names, resamples=plan.resamples)
    )
    if folder is not None:
        finding.save(folder)
    return finding


def power_cells(plan: Plan, worlds: Sequence[MiscalibratedWorld]) -> Iterator[Cell]:
    """Every design of at most `plan.max_classes` classes, with every number of rows."""
    for world in worlds:
        if world.k <= plan.max_classes:
            yield from (Cell(world.name, world.k, n) for n in plan.rows)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    world, n = cell.world, cell.n
    sets = plan.calibrated if world.calibrated else plan.sets
    if world.k >= MANY_CLASSES:
        sets = math.ceil(sets / 2)
    lenses = ["positive"] if world.k == 2 else ["confidence", "classwise", "canonical"]
    # Name in the table, test, lenses and settings.
    tests: list[tuple[str, str, str | Sequence[str], Mapping[str, Any]]] = [
        ("audit", "omnibus", lenses, {}),
        ("earlier audit", "consistency", lenses, {}),
    ]
    if not world.calibrated:
        fast_enough = [single for single in SINGLE_TESTS[min(world.k, 3)] if n <= SLOW_TESTS.get(single[0], n)]
        tests += [(name, name, lens, settings) for name, lens, settings in fast_enough]
    rejected: dict[str, list[bool]] = {}
    for repetition in range(sets):
        rng = plan.rng(world, n, repetition)
        preds = world.rows(rng, n)
        seed = int(rng.integers(2**31))
        for key, name, lens, settings in tests:
            p = _pvalue(preds, name, lens, settings, plan.resamples, seed)
            rejected.setdefault(key, []).append(p <= ALPHA + 1e-12)
    rate = {key: 100 * float(np.mean(rejections)) for key, rejections in rejected.items()}
    row: dict[str, Any] = {"design": world.title, "K": world.k, "n": n, "data sets": sets}
    row |= {"audit": rate.pop("audit"), "earlier audit": rate.pop("earlier audit")}  # single tests remain
    if world.calibrated:
        low, high = clopper_pearson(sum(rejected["audit"]), sets)
        return row | {"best test": None, "test": "", "held out": None, "low": 100 * low, "high": 100 * high}
    winner = max(rate, key=lambda key: rate[key])
    return row | {"best test": rate[winner], "test": winner, "held out": not world.chosen, "low": None, "high": None}


def _pvalue(
    preds: Predictions, name: str, lens: str | Sequence[str], settings: Mapping[str, Any], resamples: int, seed: int
) -> float:
    """The p-value of a test, joint over the lenses if there are several."""
    makes_draws = name in ("omnibus", "consistency", "tcal") or settings.get("null") == "redraw"
    test_settings = {**settings, "resamples": resamples} if makes_draws else settings
    lens = lens[0] if not isinstance(lens, str) and len(lens) == 1 else lens
    verdict = test(preds, name, lens=lens, rng=seed, **test_settings)
    return verdict.pvalue if verdict.family_pvalue is None else verdict.family_pvalue


def summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """Mean power in words: of the audit, of the earlier audit, and of the best single test in each cell."""
    miscalibrated = [row for row in rows if row["best test"] is not None]
    if not miscalibrated:
        return "Only calibrated designs were simulated."
    parts = []
    held_out = [row for row in miscalibrated if row["held out"]]
    for name, cells in (("", miscalibrated), ("held-out ", held_out)):
        if cells:
            audit, before, single = (
                np.mean([row[key] for row in cells]) for key in ("audit", "earlier audit", "best test")
            )
            parts.append(
                f"over {len(cells)} {name}cells, the audit rejects {audit:.0f} %, the earlier one {before:.0f} %, and"
                f" the best single test {single:.0f} % ({100 * audit / max(single, 1e-9):.0f} % of it)"
            )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}. {_summarize_unsaturated(miscalibrated)}"


def _summarize_unsaturated(miscalibrated: Sequence[Mapping[str, Any]]) -> str:
    """Share of the power of the best single test without the cells in which both tests nearly always reject."""

    def share(cells: Sequence[Mapping[str, Any]]) -> float:
        """Mean power of the audit, in percent of that of the best single test."""
        return float(100 * np.mean([row["audit"] for row in cells]) / np.mean([row["best test"] for row in cells]))

    unsaturated = [row for row in miscalibrated if min(row["audit"], row["best test"]) < SATURATED_POWER]
    n_saturated = len(miscalibrated) - len(unsaturated)
    if not any(row["best test"] for row in unsaturated):
        return f"Both reject at least {SATURATED_POWER} % in all cells."
    text = (
        f"Both reject at least {SATURATED_POWER} % in {n_saturated} of these cells; over the other {len(unsaturated)}"
        f" the audit has {share(unsaturated):.0f} % of the power of the best single test"
    )
    small = [row for row in unsaturated if row["K"] > 2 and row["n"] <= MAX_SMALL_N]
    if any(row["best test"] for row in small):
        text += f", and {share(small):.0f} % over the {len(small)} of them with three or more classes and up to"
        text += f" {MAX_SMALL_N} rows"
    n_weak = sum(row["audit"] < 0.6 * row["best test"] for row in unsaturated)
    return f"{text}. In {n_weak} cells it has less than 60 %."
