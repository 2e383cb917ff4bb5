"""Which test to believe? How often each rejects where every probability is right, and where they are not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.verbs import test
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.hypotests import TESTS
from trueodds_studies.base import Finding, folder
from trueodds_studies.figures import levels
from trueodds_studies.forms import Form, forms_of
from trueodds_studies.rates import clopper_pearson
from trueodds_studies.resumable_runs import Progress, rows_of
from trueodds_studies.sizes import BY_TEST, LEVELS, by_test, sentence, with_verdicts
from trueodds_studies.stated import BENT, WORLDS, Stated


@dataclass(frozen=True)
class Plan:
    """How much is simulated; every data set has its own stream, so that a study stopped and resumed gives the same."""

    sets: int = 1000  # with draws
    asymptotic_sets: int = 2000  # without: they cost little
    powered: int = 200  # of each kind of miscalibration
    rows: tuple[int, ...] = (30, 100, 500, 2000)
    worlds: tuple[str, ...] = tuple(world.name for world in WORLDS)
    resamples: int = 199
    seed: int = 0

    def rng(self, world: Stated, n: int, repetition: int) -> np.random.Generator:
        """The stream of one data set: the same rows for every test."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=20, asymptotic_sets=20, powered=10, rows=(30, 100), worlds=("sure", "rare", "sharp 3"))

LEGEND = """sets: data sets in which every probability is right; they are the same for every test. logit-normal: logit p ~ N(0, 1.3);
sure: p ~ Beta(0.3, 0.3); rare: p ~ Beta(1, 19); dirichlet: vectors from Dirichlet(1); sharp 3: Dirichlet(0.3); sharp 10: Dirichlet(0.1).
Two classes are seen through positive, more through canonical where the test takes vectors, else through confidence.
size5, size1: how often the test rejects at 5 and 1 %, low and high: 99 % Clopper-Pearson limits of each rate by itself.
silent5, silent1: the same among the data sets without the note TN212. doubt: share of data sets with that note.
undefined: share without a p-value; it counts as no rejection. power: rejections at 5 % on {powered} data sets (fewer for slow tests)
whose labels follow p^0.7 (overconfident), or whose last class comes with 1.5 times the odds (shift).
verdict: exceeds where the lower 99 % limit, Bonferroni over all {rates} rates of the table (each tail 0.005/{rates}), is above the
level; exceeds, said: where most of those rejections carry the note TN212, and the data sets without it keep the level.
{resamples} redraws."""


@dataclass(frozen=True)
class Cell:
    """One form of a test in one world at one number of rows."""

    form: Form
    world: Stated
    n: int

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.form.label} | {self.form.null} | {self.world.name} | {self.n}"


@dataclass(frozen=True)
class SimulatedPValues:
    """What a test said of many data sets of one world."""

    pvalues: Array  # (sets,), NaN where there is none
    doubted: Array  # (sets,) whether the note TN212 was raised

    def hits(self, level: float, among: Array | None = None) -> int:
        """How many were rejected; a p-value that is not defined rejects nothing."""
        rejected = self.pvalues <= level + 1e-12
        return int(rejected.sum() if among is None else rejected[among].sum())

    def rate(self, level: float) -> float:
        """The share that was rejected."""
        return self.hits(level) / len(self.pvalues)


def level(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Size at 5 % and 1 %, and power at 5 %, of every test under every null law that it offers.

    Worlds: two classes with ordinary, sure and rare predictions, 3 and 10 classes with flat and sharp vectors; every
    probability right for the size, labels from p^0.7 or with a class of 1.5 times the odds for the power. With a
    folder the table by test goes to `level.tests.md`, the whole one to `level.md`.

    >>> finding = level(methods=["spiegelhalter"], plan=Plan(2, 2, 1, rows=(30,), worlds=("sure",), resamples=19))
    >>> [(row["test"], row["null"], row["K"], row["n"]) for row in finding.rows]
    [('spiegelhalter', 'asymptotic', 2, 30), ('spiegelhalter', 'redraw', 2, 30)]
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    where = folder(out)
    rows = with_verdicts(rows_of("level", list(cells(plan, methods)), measure_cell, plan, where, progress))
    legend = LEGEND.format(powered=plan.powered, rates=2 * len(rows), resamples=plan.resamples)
    finding = Finding("level", sentence(rows), rows, plan.__dict__, legend)
    if where is not None:
        finding.save(where)
        Finding("level.tests", sentence(rows), by_test(rows), plan.__dict__, BY_TEST).save(where)
        _draw(finding, where)
    return finding


def cells(plan: Plan, methods: Sequence[str] | None = None) -> Iterator[Cell]:
    """Every form of every member, in every world that it has a meaning in."""
    worlds = [world for world in WORLDS if world.name in plan.worlds]
    for name in methods or TESTS.names():
        for form in forms_of(name):
            for world in worlds:
                yield from (Cell(form, world, n) for n in plan.rows if form.fits(world.k, n))


def simulate_pvalues(form: Form, world: Stated, n: int, sets: int, plan: Plan) -> SimulatedPValues:
    """The test's verdicts on so many data sets; one that it refuses for its values has no p-value."""
    pvalues, doubted = np.full(sets, np.nan), np.zeros(sets, dtype=bool)
    settings, lens = form.settings(plan.resamples), form.claim(world.k)
    for repetition in range(sets):
        rng = plan.rng(world, n, repetition)
        preds = world.rows(rng, n)
        try:
            verdict = test(preds, form.name, lens=lens, rng=rng, **settings)
        except InputError as refusal:
            if refusal.code != "TO205":
                raise
            continue
        pvalues[repetition] = verdict.pvalue
        doubted[repetition] = any(note.code == "TN212" for note in verdict.notes)
    return SimulatedPValues(pvalues, doubted)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of one cell."""
    form, world, n = cell.form, cell.world, cell.n
    sets = form.sets(n, plan.sets if form.draws else plan.asymptotic_sets)
    simulation = simulate_pvalues(form, world, n, sets, plan)
    silent = ~simulation.doubted
    row: dict[str, Any] = {
        "test": form.label, "null": form.null, "K": world.k, "design": world.name, "n": n, "sets": sets,
    }  # fmt: skip
    for name, nominal in LEVELS.items():
        low, high = clopper_pearson(simulation.hits(nominal), sets)
        row |= {f"size{name}": simulation.rate(nominal), f"low{name}": low, f"high{name}": high}
    for name, how in BENT.items():
        other = simulate_pvalues(form, world.bent(name, **how), n, form.sets(n, plan.powered), plan)
        row[f"power_{name}"] = other.rate(LEVELS["5"])
    row["doubt"] = float(simulation.doubted.mean())
    for name, nominal in LEVELS.items():
        row[f"silent{name}"] = simulation.hits(nominal, silent) / int(silent.sum()) if silent.any() else None
    return row | {"undefined": float(np.isnan(simulation.pvalues).mean())}


def _draw(finding: Finding, where: Path) -> None:
    """Size and power as a picture; without matplotlib there is only the table."""
    if importlib.util.find_spec("matplotlib") is not None:
        levels(finding, where / "level.svg")
