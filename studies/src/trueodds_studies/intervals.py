"""Coverage and width of the default confidence intervals of calibration errors, by size of the true error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.arguments import resolve_lens
from trueodds.binning.equal_mass import EqualMass
from trueodds.core.errors import InputError
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator, aggregate_values, aggregation_weights
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws
from trueodds_studies.common.distorted_worlds import DistortedWorld, count_noise_floors, scale_to_noise_floors
from trueodds_studies.common.estimator_cases import EstimatorCase
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

CASES = (
    EstimatorCase("ece"),
    EstimatorCase("ace"),
    EstimatorCase("corp"),
    EstimatorCase("rmsce"),
    EstimatorCase("debiased_l1", growing=True),
    EstimatorCase("debiased_l2", growing=True),
    EstimatorCase("ece_linear", fixed_settings=(("bins", 10),)),
)
SQUARED = ("rmsce", "debiased_l2")  # estimators of the root mean square
FINE_BINS = 400  # equal-mass bins that stand for no bins, where the truth depends on vectors and not on scores alone
TARGET_COVERAGE, MIN_COVERAGE = 0.93, 0.91  # of 95 % intervals: of most, and of every one
CLEAR_FLOORS = 2.0  # noise floors from which on the truth is called clear of noise, and widths are compared
MAX_WIDTH = 1.5  # largest accepted width, relative to 3.92 standard deviations of the estimate

LEGEND = """{sets} data sets per row. shape: form of the miscalibration; floors: the true error in 15 uniform bins
divided by its noise floor. truth: limit of the estimate for infinitely many rows, in the same bins; unbinned: the mean
distance (root mean square for rmsce, debiased_l2) of predicted and true probability. covers, low_misses, high_misses:
how often the default 95 % interval covers the truth, lies above it, and lies below it; covers_unbinned: how often it
covers the unbinned value. width: mean width divided by 3.92 standard deviations of the estimate. half: the worlds
alternate between two halves; the constants of the intervals were chosen with both."""


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; `floors` are the true errors as multiples of the noise floor."""

    sets: int = 400  # data sets per cell
    resamples: int = 300
    redraws: int = 99
    rows: tuple[int, ...] = (100, 300, 1000, 5000)
    binary: tuple[tuple[str, str], ...] = (  # distribution of the scores, and shape of the distortion
        ("normal", "temperature"),
        ("normal", "waves"),
        ("normal", "local"),
        ("sharp", "shift"),
        ("sharp", "underconfident"),
        ("rare", "temperature"),
        ("rare", "shift"),
        ("uniform", "smooth"),
        ("uniform", "local"),
    )
    # number of classes and lens
    several: tuple[tuple[int, str], ...] = ((3, "confidence"), (3, "classwise"), (10, "confidence"), (10, "classwise"))
    floors: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0)
    seed: int = 0


QUICK = Plan(
    sets=20,
    resamples=100,
    redraws=49,
    rows=(300,),
    binary=(("normal", "temperature"), ("normal", "local")),
    several=((3, "classwise"),),
    floors=(0.0, 2.0),
)


@dataclass(frozen=True)
class Cell:
    """One estimator in one world at one number of rows."""

    case: EstimatorCase
    lens: str
    world: DistortedWorld
    floors: float
    n: int
    half: int  # the cells alternate between two halves, 0 and 1

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.case.label} | {self.lens} | {self.world.name} | {self.floors:g} | {self.n}"


def intervals(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Coverage and width of the default intervals where the true error is 0, 1, 2 and 5 noise floors.

    Lenses: `positive` for two classes, `confidence` and `classwise` for 3 and 10. Models are over- or underconfident,
    shifted, or miscalibrated smoothly, in waves, or in 6 % of the rows only. The true value is computed from 100,000
    rows, in the bins of the estimator and without bins.

    >>> worlds = {"binary": (("normal", "local"),), "several": (), "floors": (2.0,)}
    >>> small = Plan(sets=2, rows=(50,), resamples=20, redraws=19, **worlds)
    >>> finding = intervals(methods=["ece"], plan=small)
    >>> finding.rows[0]["estimator"], finding.rows[0]["shape"]
    ('ece', 'local')
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    cases = [case for case in CASES if methods is None or case.name in methods]
    if methods is not None and len(cases) < len(set(methods)):
        names = ", ".join(case.name for case in CASES)
        raise InputError("TO203", "The study has no such estimator.", ", ".join(methods), f"Choose among {names}.")
    cells = [cell for case in cases for cell in _cells(case, plan)]
    folder = make_folder(out)
    rows = run_cells("intervals", cells, measure_cell, plan, folder, progress)
    finding = StudyResult("intervals", _summarize(rows), rows, plan.__dict__, LEGEND.format(sets=plan.sets))
    if folder is not None:
        finding.save(folder)
    return finding


def _cells(case: EstimatorCase, plan: Plan) -> Iterator[Cell]:
    """One case in every world at every multiple of the noise floor; calibrated worlds, whose shapes are equal, once."""
    worlds = [("positive", DistortedWorld(f"{scores} {shape}", 2, scores, shape)) for scores, shape in plan.binary]
    worlds += [
        (lens, DistortedWorld(f"{k} classes {shape}", k, "softmax", shape))
        for k, lens in plan.several
        for shape in ("temperature", "shift", "local" if lens == "confidence" else "underconfident")
    ]
    calibrated: set[tuple[str, int, str, int]] = set()
    number = 0
    for lens, world in worlds:
        for n_floors in plan.floors:
            for n in plan.rows:
                calibrated_cell = (lens, world.k, world.scores, n)
                if n_floors == 0 and calibrated_cell in calibrated:
                    continue
                if n_floors == 0:
                    calibrated.add(calibrated_cell)
                number += 1
                yield Cell(case, lens, world, n_floors, n, number % 2)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    world = _scaled_world(cell.world, cell.lens, cell.floors, cell.n)
    estimator = ESTIMATORS.make(cell.case.name, cell.case.settings(cell.n))
    truth = _binned_truth(estimator, cell.lens, world)
    unbinned = _unbinned_truth(cell.case.name, cell.lens, world)
    interval_spec = IntervalSpec(resamples=plan.resamples)
    values, lows, highs, noise = [], [], [], []
    for repetition in range(plan.sets):
        rng = np.random.default_rng([plan.seed, *cell.world.name.encode(), round(10 * cell.floors), cell.n, repetition])
        preds = world.rows(rng, cell.n)
        lens = resolve_lens(preds, cell.lens, estimator)
        estimands = [Estimand.from_predictions(estimator, lens, preds, lens.aggregate)]
        draw_noise_floors = partial(_draw_noise_floors, preds, rng, plan.redraws)
        (estimate,) = estimate_all(preds, estimands, interval_spec, rng, draw_noise_floors)
        values.append(estimate.value)
        noise.append(math.nan if estimate.noise_floor is None else estimate.noise_floor)
        lows.append(estimate.interval.low if estimate.interval else math.nan)
        highs.append(estimate.interval.high if estimate.interval else math.nan)
    value, low, high = np.array(values), np.array(lows), np.array(highs)
    has_interval = np.isfinite(low)
    low, high = low[has_interval] - 1e-12, high[has_interval]
    sd = float(value.std(ddof=1)) if len(value) > 1 else math.nan
    return {
        "estimator": cell.case.label,
        "lens": cell.lens,
        "classes": cell.world.k,
        "scores": cell.world.scores,
        "shape": "calibrated" if cell.floors == 0 else cell.world.shape,
        "floors": round(count_noise_floors(world, cell.lens, cell.n), 2),
        "n": cell.n,
        "half": cell.half,
        "truth": truth,
        "unbinned": unbinned,
        "mean": float(value.mean()),
        "sd": sd,
        "floor": float(np.mean(noise)),
        "method": estimate.interval.method if estimate.interval else "none",
        "covers": _share_of_true((low <= truth) & (truth <= high)),
        "low_misses": _share_of_true(truth < low),
        "high_misses": _share_of_true(truth > high),
        "covers_unbinned": _share_of_true((low <= unbinned) & (unbinned <= high)),
        "width": float((high - low).mean() / (3.92 * sd)) if has_interval.any() and sd > 0 else None,
        "without": int((~has_interval).sum()),
    }


@cache
def _scaled_world(world: DistortedWorld, lens: str, n_floors: float, n: int) -> DistortedWorld:
    """`scale_to_noise_floors`, computed once for all estimators."""
    return scale_to_noise_floors(world, lens, n_floors, n)


def _draw_noise_floors(
    preds: Predictions, rng: np.random.Generator, redraws: int, estimands: Sequence[Estimand]
) -> list[Array | None]:
    """Values of each estimand for redrawn labels; the estimands come last, as `estimate_all` passes them."""
    return noise_floor_draws(preds, estimands, rng, redraws)


def _binned_truth(estimator: Estimator, name: str, world: DistortedWorld) -> float:
    """The limit of the estimate for infinitely many rows, in the estimator's own bins."""
    population = world.population()
    lens = resolve_lens(population, name, estimator)
    views = lens.views(population)
    values = np.array([estimator.interval_estimator().value(view) for view in views])
    return _combine_views(values, views, lens.aggregate)


def _unbinned_truth(name: str, lens_name: str, world: DistortedWorld) -> float:
    """Mean distance of predicted and true probability, or its root mean square for the estimators in `SQUARED`.

    The estimator `corp` has no bins, so that its unbinned truth is its own population value.
    """
    if name == "corp":
        return _binned_truth(ESTIMATORS.make(name, {}), lens_name, world)
    population = world.population()
    lens = resolve_lens(population, lens_name, ESTIMATORS.make(name, {}))
    views, power = lens.views(population), 2.0 if name in SQUARED else 1.0
    fine = [view if world.k == 2 else view.binned(EqualMass(FINE_BINS).fit(view)) for view in views]
    gaps = [float(v.w @ np.abs(v.y - v.p) ** power / v.total) ** (1 / power) for v in fine]
    return _combine_views(np.array(gaps), views, lens.aggregate)


def _combine_views(values: Array, views: Sequence[View], aggregate: str) -> float:
    """The aggregate of the values of several views, or the value of a single one."""
    value = values[0] if len(views) == 1 else aggregate_values(values, aggregation_weights(views, aggregate), aggregate)
    return 0.0 if abs(float(value)) < 1e-9 else float(value)  # remove what rounding leaves of a zero


def _share_of_true(hits: Array) -> float | None:
    """The share of true values, or None without values."""
    return float(hits.mean()) if len(hits) else None


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """In words, how many intervals cover the truth often enough, and how wide they are where it is clear of noise."""
    with_interval = [row for row in rows if row["covers"] is not None]
    clear = [row for row in with_interval if row["truth"] >= CLEAR_FLOORS * row["floor"] and row["width"] is not None]
    enough = sum(row["covers"] >= TARGET_COVERAGE for row in with_interval)
    min_coverage = min((row["covers"] for row in with_interval), default=math.nan)
    text = (
        f"{enough} of {len(with_interval)} intervals cover the truth in at least {TARGET_COVERAGE:.0%} of the data"
        f" sets, the worst in {min_coverage:.1%}."
    )
    if clear:
        widths = [row["width"] for row in clear]
        n_wide = sum(width > MAX_WIDTH for width in widths)
        text += (
            f" From {CLEAR_FLOORS:g} noise floors on they are {np.mean(widths):.2f} times ±1.96 standard deviations"
            f" wide in the mean, {max(widths):.2f} at most; {n_wide} of {len(clear)} are wider than {MAX_WIDTH:g}"
            " times."
        )
    return text
