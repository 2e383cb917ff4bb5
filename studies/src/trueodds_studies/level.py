"""Size and power of every hypothesis test under each null distribution that it offers."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.hypotests import TESTS
from trueodds_studies.common.figures import RED, colors_by_size, draw_dots, make_figure, save_dot_plot
from trueodds_studies.common.rejection_rates import (
    BY_TEST_LEGEND,
    LEVELS,
    add_verdicts,
    clopper_pearson,
    summarize_by_test,
    summarize_sizes,
)
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.simulated_worlds import CALIBRATED_WORLDS, MISCALIBRATIONS, PowerTransformedWorld
from trueodds_studies.common.study_result import StudyResult, make_folder


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each data set has its own random stream, so resuming does not change results."""

    sets: int = 1000  # data sets per cell with a simulated null distribution
    asymptotic_sets: int = 2000  # data sets per cell without one, which is faster
    powered: int = 200  # data sets per kind of miscalibration
    rows: tuple[int, ...] = (30, 100, 500, 2000)
    worlds: tuple[str, ...] = tuple(world.name for world in CALIBRATED_WORLDS)
    resamples: int = 199
    seed: int = 0

    def rng(self, world: PowerTransformedWorld, n: int, repetition: int) -> np.random.Generator:
        """The random stream of one data set: the same rows for every test."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=20, asymptotic_sets=20, powered=10, rows=(30, 100), worlds=("sure", "rare", "sharp 3"))

LEGEND = """sets: number of data sets with calibrated predictions, the same for every test. logit-normal: logit p ~
N(0, 1.3); extreme: p ~ Beta(0.3, 0.3); rare: p ~ Beta(1, 19); dirichlet: vectors from Dirichlet(1); sharp 3:
Dirichlet(0.3); sharp 10: Dirichlet(0.1). Lens: positive for two classes; for more, canonical if the test supports
vectors, else confidence. size5, size1: rejection rates at 5 and 1 %; low and high: 99 % Clopper-Pearson limits of
each rate by itself. unnoted5, unnoted1: the same among the data sets without the note TN212. noted: share of data
sets with that note. undefined: share without a p-value, which counts as no rejection. power: rejection rate at 5 %
for {powered} data sets (fewer for slow tests) whose labels follow p^0.7 (overconfident), or in which the odds of the
last class are multiplied by 1.5 (shift). verdict: exceeds if the lower 99 % limit, with Bonferroni's correction for
all {rates} rates of the table (each tail 0.005/{rates}), is above the level; exceeds, noted: if most of those
rejections have the note TN212, and the data sets without it keep the level. {resamples} redraws."""


@dataclass(frozen=True)
class HypothesisForm:
    """A test with its null distribution and settings.

    `null` is the null distribution, as in the settings of the test; `redraw` for a test without this setting, and
    `both` if rows are resampled too. `lens` applies to more than two classes; by default it is `canonical` if the test
    supports vectors, else `confidence`.
    """

    name: str
    null: str
    variant: str = ""  # part of the label, which distinguishes it from other variants of the test
    fixed_settings: tuple[tuple[str, Any], ...] = ()  # settings other than the defaults
    lens: str | None = None
    min_classes: int = 2
    max_classes: int = 10**9
    max_rows: int = 10**9
    slow_from: int = 10**9  # number of rows from which on it is slow
    slow_share: float = 0.2  # share of the data sets that are drawn if it is slow

    @property
    def label(self) -> str:
        """The name in the table."""
        return f"{self.name} {self.variant}".strip()

    def lens_name(self, k: int) -> str:
        """The lens for k classes."""
        if k == 2:
            return "positive"
        return self.lens or ("canonical" if TESTS.load(self.name).accepts_joint_views else "confidence")

    @property
    def makes_draws(self) -> bool:
        """Whether the null distribution is simulated, which is expensive."""
        return self.null in getattr(TESTS.load(self.name), "simulated_nulls", (self.null,)) or self.null == "both"

    def settings(self, resamples: int) -> dict[str, Any]:
        """The settings, with the study's number of draws if the test makes any."""
        drawn = {"resamples": resamples} if TESTS.has_setting(self.name, "resamples") else {}
        return drawn | dict(self.fixed_settings)

    def fits(self, k: int, n: int) -> bool:
        """Whether the variant is included for k classes and n rows."""
        return self.min_classes <= k <= self.max_classes and n <= self.max_rows

    def count_sets(self, n: int, sets: int) -> int:
        """Number of data sets of n rows: `sets`, or a share of them if the variant is slow."""
        return math.ceil(sets * self.slow_share) if n >= self.slow_from else sets


@cache
def hypothesis_forms(name: str) -> tuple[HypothesisForm, ...]:
    """All variants of a test: one per null distribution, the default first, then those of `EXTRA_FORMS`."""
    test_class = TESTS.load(name)
    if not test_class.null_distributions:
        return (HypothesisForm(name, "redraw"), *EXTRA_FORMS.get(name, ()))
    (default,) = (field.default for field in dataclasses.fields(test_class) if field.name == "null")
    nulls = list(test_class.null_distributions)
    if default in nulls:
        nulls.sort(key=lambda null: null != default)  # the default first, and the others in their order
    usual = [HypothesisForm(name, null, fixed_settings=() if null == default else (("null", null),)) for null in nulls]
    return (
        *(dataclasses.replace(form, **COSTLY_FORMS.get((name, form.null), {})) for form in usual),
        *EXTRA_FORMS.get(name, ()),
    )


def _group_by_name(*forms: HypothesisForm) -> dict[str, tuple[HypothesisForm, ...]]:
    """The forms as a table from the name of the test to its forms."""
    table: dict[str, tuple[HypothesisForm, ...]] = {}
    for form in forms:
        table[form.name] = (*table.get(form.name, ()), form)
    return table


EXTRA_FORMS = _group_by_name(
    HypothesisForm("consistency", "redraw", "confidence", lens="confidence", min_classes=3),
    HypothesisForm("consistency", "both", "rows too", (("redraw", "both"),), max_classes=2, max_rows=500, slow_from=0),
    HypothesisForm(
        "hosmer_lemeshow", "asymptotic", "exact", (("null", "asymptotic"), ("form", "exact")), max_classes=2
    ),
    HypothesisForm("cox", "asymptotic", "score", (("form", "score"),)),
    HypothesisForm("score", "asymptotic", "log_loss", (("statistic", "log_loss"),)),
    HypothesisForm("cross_fitted", "asymptotic", "log loss", (("score", "log_loss"),)),
    HypothesisForm("decision_regret", "asymptotic", "1 : 4", (("cost", ((0, 4), (1, 0))),), max_classes=2),
)
COSTLY_FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("bins", "redraw"): {"slow_from": 2000},
    ("cme", "asymptotic"): {"slow_from": 2000},
    ("cme", "redraw"): {"slow_from": 2000},
    ("score", "redraw"): {"slow_from": 2000},
    ("skce", "block"): {"slow_from": 500},
    ("skce", "bootstrap"): {"slow_from": 500, "max_rows": 500},
    ("skce", "distribution-free"): {"slow_from": 500},
    ("skce", "redraw"): {"slow_from": 2000},
    ("tcal", "redraw"): {"slow_from": 2000},
}
"""Limits for tests that take long, by name and null distribution."""


@dataclass(frozen=True)
class Cell:
    """One variant of a test, one design, and one number of rows."""

    form: HypothesisForm
    world: PowerTransformedWorld
    n: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.form.label} | {self.form.null} | {self.world.name} | {self.n}"


@dataclass(frozen=True)
class SimulatedPValues:
    """P-values of a test for many data sets of one design."""

    pvalues: Array  # (sets,), NaN where there is none
    doubted: Array  # (sets,) whether note TN212 says that the null distribution is inaccurate

    def count_rejections(self, level: float, among: Array | None = None) -> int:
        """Number of rejections in all data sets or in those of a mask (sets,); undefined p-values do not reject."""
        rejected = self.pvalues <= level + 1e-12
        return int(rejected.sum() if among is None else rejected[among].sum())

    def rejection_rate(self, level: float) -> float:
        """Share of all data sets that are rejected."""
        return self.count_rejections(level) / len(self.pvalues)


def level(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Size at 5 % and 1 %, and power at 5 %, of every test with every null distribution that it offers.

    Designs: two classes with moderate, extreme, and rare-event predictions; 3 and 10 classes with
    uniform and sharp vectors. Predictions are calibrated for the size; for the power, labels come
    from p^0.7, or the odds of one class are multiplied by 1.5. With an output folder, the table by
    test is saved as `level.tests.md` and the complete one as `level.md`.

    >>> finding = level(methods=["spiegelhalter"], plan=Plan(2, 2, 1, rows=(30,), worlds=("sure",), resamples=19))
    >>> [(row["test"], row["null"], row["K"], row["n"]) for row in finding.rows]
    [('spiegelhalter', 'asymptotic', 2, 30), ('spiegelhalter', 'redraw', 2, 30)]
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows = add_verdicts(run_cells("level", list(level_cells(plan, methods)), measure_cell, plan, folder, progress))
    legend = LEGEND.format(powered=plan.powered, rates=2 * len(rows), resamples=plan.resamples)
    finding = StudyResult("level", summarize_sizes(rows), rows, plan.__dict__, legend)
    if folder is not None:
        finding.save(folder)
        StudyResult("level.tests", summarize_sizes(rows), summarize_by_test(rows), plan.__dict__, BY_TEST_LEGEND).save(
            folder
        )
        _draw_if_possible(finding, folder)
    return finding


def level_cells(plan: Plan, methods: Sequence[str] | None = None) -> Iterator[Cell]:
    """Every variant of every test, with every design to which it applies."""
    worlds = [world for world in CALIBRATED_WORLDS if world.name in plan.worlds]
    for name in methods or TESTS.names():
        for form in hypothesis_forms(name):
            for world in worlds:
                yield from (Cell(form, world, n) for n in plan.rows if form.fits(world.k, n))


def simulate_pvalues(
    form: HypothesisForm, world: PowerTransformedWorld, n: int, sets: int, plan: Plan
) -> SimulatedPValues:
    """P-values of a test for `sets` data sets of n rows; NaN where the test raises TO205, which refuses the data."""
    pvalues, doubted = np.full(sets, np.nan), np.zeros(sets, dtype=bool)
    settings, lens = form.settings(plan.resamples), form.lens_name(world.k)
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
    """The row of the table for one cell."""
    form, world, n = cell.form, cell.world, cell.n
    sets = form.count_sets(n, plan.sets if form.makes_draws else plan.asymptotic_sets)
    simulation = simulate_pvalues(form, world, n, sets, plan)
    without_note = ~simulation.doubted
    row: dict[str, Any] = {
        "test": form.label,
        "null": form.null,
        "K": world.k,
        "design": world.title,
        "n": n,
        "sets": sets,
    }
    for name, nominal in LEVELS.items():
        low, high = clopper_pearson(simulation.count_rejections(nominal), sets)
        row |= {f"size{name}": simulation.rejection_rate(nominal), f"low{name}": low, f"high{name}": high}
    for name, powers_and_odds in MISCALIBRATIONS.items():
        miscalibrated = simulate_pvalues(
            form, world.miscalibrated(name, **powers_and_odds), n, form.count_sets(n, plan.powered), plan
        )
        row[f"power_{name}"] = miscalibrated.rejection_rate(LEVELS["5"])
    row["noted"] = float(simulation.doubted.mean())
    for name, nominal in LEVELS.items():
        rejections = simulation.count_rejections(nominal, without_note)
        row[f"unnoted{name}"] = rejections / int(without_note.sum()) if without_note.any() else None
    return row | {"undefined": float(np.isnan(simulation.pvalues).mean())}


def _draw_if_possible(finding: StudyResult, folder: Path) -> None:
    """Draw size and power if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is not None:
        draw_levels(finding, folder / "level.svg")


def draw_levels(finding: StudyResult, path: Path) -> None:
    """Draw by test the rejection rates at 5 and 1 % for calibrated models, and at 5 % for an overconfident model."""
    rows = [{**row, "estimator": row["test"] + (" *" if row["null"] == "redraw" else "")} for row in finding.rows]
    names = list(dict.fromkeys(row["estimator"] for row in rows))
    positions = {name: i for i, name in enumerate(reversed(names))}
    figure = make_figure((11, 1.6 + 0.24 * len(positions)))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 2, 2))
    sizes = sorted({row["n"] for row in rows})
    color_of_size = dict(zip(sizes, colors_by_size(len(sizes)), strict=True))
    panels = (
        ("size5", "rejects at 5 %", 0.05),
        ("size1", "rejects at 1 %", 0.01),
        ("power_overconfident", "power", None),
    )
    for ax, (name, title, nominal) in zip(axes, panels, strict=True):
        if nominal is not None:
            ax.axvline(nominal, color=RED, lw=1)
        draw_dots(ax, rows, positions, color_of_size, name)
        ax.set(title=title, xlabel="share of data sets")
        ax.set_xlim(0, 1.02 if nominal is None else None)
    save_dot_plot(figure, axes, list(positions), color_of_size, path, "* labels redrawn")
