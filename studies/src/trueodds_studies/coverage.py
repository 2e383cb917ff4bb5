"""Bias, RMSE, interval coverage and ranking of every estimator in simulated worlds with a known true error."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.arguments import resolve_lens
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws
from trueodds_studies.common.estimator_cases import EstimatorCase, estimator_cases, population_value
from trueodds_studies.common.figures import RED, colors_by_size, draw_dots, make_figure, save_dot_plot
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.simulated_worlds import BINARY_WORLDS, MULTICLASS_WORLDS, VOTE_WORLDS, SimulatedWorld
from trueodds_studies.common.study_result import StudyResult, make_folder

RANKED_PAIR = ("mild", "strong")  # two worlds whose order by the size of the error is known
CLEAR_FLOORS = 3.0  # noise floors: a truth that is larger by this factor is called clear of noise


LEGEND = """{sets} data sets per row. world: in calibrated, mild, strong, and rare, the model multiplies the logit of a
latent score by 1, 1.3, 1.8 (shifted), and 1.3 (rare events, shifted); mixture: the Gaussian mixture of Vaicenavicius et
al.; dirichlet: vectors of three classes, noisy if 40 % of the labels are random; crowd: 30 votes per row. truth: the
limit for infinitely many rows. bias, rmse: of the estimate; rmse_debiased: of its debiased form; rmse_of_0: of the
constant 0. floor: mean noise floor. method: of the default 95 % interval; covers, above, below: how often the truth
lies in it, above it, and below it; width: its mean width; without: data sets without an interval. clear: the truth
exceeds three noise floors. ranks: how often the mild model gets a smaller error than the strong one on the same
rows."""


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each data set has its own random stream, so resuming does not change results."""

    sets: int = 200  # data sets per cell
    rows: tuple[int, ...] = (200, 1000)
    resamples: int = 300
    redraws: int = 99
    seed: int = 0

    def rng(self, world: SimulatedWorld, n: int, repetition: int) -> np.random.Generator:
        """The random stream of one data set: the same rows for every estimator."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=20, rows=(200, 1000), resamples=200, redraws=99)


@dataclass(frozen=True)
class Cell:
    """One estimator in one world at one number of rows."""

    case: EstimatorCase
    world: SimulatedWorld
    n: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.case.label} | {self.world.name} | {self.n}"


def coverage(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Bias, error, interval coverage and ranking of every estimator where the true error is known by quadrature.

    Worlds: the Gaussian mixture of Vaicenavicius et al. (2019), logistic distortions (calibrated, mild, strong, rare),
    the Dirichlet model, and 30 votes per row. Per estimator, world and number of rows: the bias, the root mean squared
    error and that of the constant 0, how often the 95 % interval covers the truth, lies above or below it, its mean
    width, and how often the estimate for the mild distortion is smaller than that for the strong one.

    >>> finding = coverage(methods=["ece"], plan=Plan(sets=2, rows=(50,), resamples=20, redraws=19))
    >>> finding.rows[0]["estimator"], finding.rows[0]["world"]
    ('ece', 'calibrated')
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    cells = list(_cells(plan, methods))
    folder = make_folder(out)
    rows = run_cells("coverage", cells, measure_cell, plan, folder, progress)
    finding = StudyResult("coverage", _summarize(rows), rows, plan.__dict__, LEGEND.format(sets=plan.sets))
    if folder is not None:
        finding.save(folder)
        _draw_if_possible(finding, folder)
    return finding


def _cells(plan: Plan, methods: Sequence[str] | None) -> Iterator[Cell]:
    """Every case of the estimators, in every world where it is meaningful, with every number of rows."""
    for name in methods or ESTIMATORS.names():
        ESTIMATORS.load(name)  # raises an error for an unknown name
        for case in estimator_cases(name):
            for world in (*BINARY_WORLDS, *MULTICLASS_WORLDS, *VOTE_WORLDS):
                if case.fits(world):
                    yield from (Cell(case, world, n) for n in plan.rows if n <= case.max_rows)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    estimator = ESTIMATORS.make(cell.case.name, cell.case.settings(cell.n))
    target = population_value(cell.case, estimator, cell.world)
    interval_spec = IntervalSpec(resamples=plan.resamples)
    values, lows, highs, noise_floors, debiased = [], [], [], [], []
    for repetition in range(plan.sets):
        rng = plan.rng(cell.world, cell.n, repetition)
        preds = cell.world.rows(rng, cell.n)
        estimands = [_make_estimand(estimator, cell.case, preds)]
        draw_noise_floors = partial(_draw_noise_floors, preds, rng, plan.redraws)
        (estimate,) = estimate_all(preds, estimands, interval_spec, rng, draw_noise_floors)
        values.append(estimate.value)
        debiased.append(estimate.value if estimate.debiased is None else estimate.debiased)
        noise_floors.append(math.nan if estimate.noise_floor is None else estimate.noise_floor)
        lows.append(estimate.interval.low if estimate.interval else math.nan)
        highs.append(estimate.interval.high if estimate.interval else math.nan)
    v, low, high = np.array(values), np.array(lows), np.array(highs)
    has_interval = np.isfinite(low)
    high = np.where(cell.case.from_below & has_interval, np.inf, high)
    best_value = type(estimator).best_value
    row: dict[str, Any] = {
        "estimator": cell.case.label,
        "world": cell.world.name,
        "n": cell.n,
        "truth": target,
        "bias": float(v.mean() - target),
        "rmse": _root_mean_square(v - target),
        "rmse_debiased": _root_mean_square(np.array(debiased) - target),
        "rmse_of_0": None if isinstance(estimator, ProperScore) else abs(target - best_value),
        "floor": _finite_or_none(float(np.mean(noise_floors))),
        "method": estimate.interval.method if estimate.interval else "none",
        "covers": _finite_or_none(float(((low <= target) & (target <= high))[has_interval].mean()))
        if has_interval.any()
        else None,
        "above": float((target > high)[has_interval].mean()) if has_interval.any() else None,
        "below": float((target < low)[has_interval].mean()) if has_interval.any() else None,
        "width": _finite_or_none(float((high - low)[has_interval].mean())) if has_interval.any() else None,
        "without": int((~has_interval).sum()),
        "clear": bool(abs(target - best_value) > CLEAR_FLOORS * abs(float(np.mean(noise_floors)) - best_value)),
    }
    if cell.world.name == RANKED_PAIR[1]:
        row["ranks"] = _ranking_rate(cell, estimator, plan, v)
    return {key: _finite_or_none(value) if isinstance(value, float) else value for key, value in row.items()}


def _draw_noise_floors(
    preds: Predictions, rng: np.random.Generator, redraws: int, estimands: Sequence[Estimand]
) -> list[Array | None]:
    """Values of each estimand for redrawn labels; the estimands come last, as `estimate_all` passes them."""
    return noise_floor_draws(preds, estimands, rng, redraws)


def _make_estimand(estimator: Estimator, case: EstimatorCase, preds: Predictions) -> Estimand:
    lens = resolve_lens(preds, case.lens, estimator)
    return Estimand.from_predictions(estimator, lens, preds, lens.aggregate)


def _ranking_rate(cell: Cell, estimator: Estimator, plan: Plan, strong: Any) -> float:
    """The share of data sets in which the mild distortion has the smaller estimate; ties count one half.

    `strong` has the estimates for the strong distortion, (sets,), on data sets from the same random streams.
    """
    mild = next(world for world in BINARY_WORLDS if world.name == RANKED_PAIR[0])
    in_order = 0.0
    for repetition, value in enumerate(strong):
        preds = mild.rows(plan.rng(cell.world, cell.n, repetition), cell.n)
        estimand = _make_estimand(estimator, cell.case, preds)
        mild_value = float(estimand.combine_views(estimand.values))
        gap = float(estimator.as_loss(value) - estimator.as_loss(np.float64(mild_value)))
        in_order += 0.5 if gap == 0 else float(gap > 0)
    return in_order / len(strong)


def _root_mean_square(x: Any) -> float:
    return float(np.sqrt(np.mean(x * x)))


def _finite_or_none(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """In words, how many intervals cover the truth often enough or too often, and how often 0 is closer."""
    with_interval = [row for row in rows if row["covers"] is not None]
    low = [row for row in with_interval if row["covers"] < 0.93]
    too_wide = [row for row in with_interval if row["clear"] and row["covers"] > 0.98]
    beaten = [row for row in rows if row["rmse_of_0"] and row["rmse"] > row["rmse_of_0"]]
    return (
        f"Of {len(with_interval)} intervals {len(with_interval) - len(low)} cover the truth in at least 93 % of the"
        f" data sets; where the truth is clear of noise {len(too_wide)} cover more than 98 %. In {len(beaten)} of"
        f" {len(rows)} cases the constant answer 0 would have come closer than the estimate."
    )


def _draw_if_possible(finding: StudyResult, folder: Path) -> None:
    """Draw the figure if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is not None:
        draw_coverage(finding, folder / "coverage.svg")


def draw_coverage(finding: StudyResult, path: Path) -> None:
    """Draw by estimator the interval coverage, the error relative to that of the constant 0, and the ranking rate."""
    names = list(dict.fromkeys(row["estimator"] for row in finding.rows))
    position_of_name = {name: i for i, name in enumerate(reversed(names))}
    figure = make_figure((11, 1.6 + 0.24 * len(names)))
    coverage_ax, error_ax, ranking_ax = figure.subplots(1, 3, sharey=True, width_ratios=(3, 3, 1.4))
    sizes = sorted({row["n"] for row in finding.rows})
    color_of_size = dict(zip(sizes, colors_by_size(len(sizes)), strict=True))
    coverage_ax.axvspan(0.93, 0.98, color="#e8eef5", lw=0)
    draw_dots(coverage_ax, finding.rows, position_of_name, color_of_size, "covers")
    coverage_ax.set(xlim=(0.75, 1.01), title="95 % interval covers the truth", xlabel="share of data sets")
    rows_with_ratio = [{**row, "ratio": _rmse_ratio(row)} for row in finding.rows]
    error_ax.axvline(1, color=RED, lw=1)
    draw_dots(error_ax, rows_with_ratio, position_of_name, color_of_size, "ratio")
    error_ax.set(xscale="log", title="error against that of answering 0", xlabel="RMSE / RMSE of the constant 0")
    draw_dots(ranking_ax, finding.rows, position_of_name, color_of_size, "ranks")
    ranking_ax.set(xlim=(0.45, 1.02), title="ranks two right", xlabel="share of data sets")
    save_dot_plot(figure, (coverage_ax, error_ax, ranking_ax), list(position_of_name), color_of_size, path)


def _rmse_ratio(row: Mapping[str, Any]) -> float | None:
    """RMSE of the estimate divided by that of the constant 0; None where the latter is 0 or does not apply."""
    return row["rmse"] / row["rmse_of_0"] if row["rmse_of_0"] and row["rmse"] is not None else None
