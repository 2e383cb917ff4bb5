"""Which estimator to believe? Bias, error, coverage and ranking of every one, where the truth is known."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.api.arguments import lens_for
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimates
from trueodds.resampling.floors import floors
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds_studies import figures
from trueodds_studies.base import Finding, folder
from trueodds_studies.cases import Case, cases_of, truth
from trueodds_studies.designs import BINARY, CROWDS, VECTORS, Design
from trueodds_studies.resumable_runs import Progress, rows_of

RIVAL = ("mild", "strong")  # the two models that an estimator has to put in order
CLEAR = 3.0  # floors: where the truth is further than that from calibrated, an interval may cover 98 % at most


LEGEND = """{sets} data sets per row. world: calibrated, mild, strong and rare are a latent score whose logit the model
takes times 1, 1.3, 1.8 (shifted) and 1.3 (rare events, shifted); mixture is the Gaussian mixture of Vaicenavicius et al.;
dirichlet are vectors of three classes, noisy where 40 % of the labels are random; crowd are 30 votes per row.
truth: the value on endless rows. bias, rmse: of the estimate; rmse_debiased: of its debiased form; rmse_of_0: of the constant 0.
floor: mean noise floor. method: of the default interval at 95 %; covers, above, below: how often the truth lies in it, above it,
below it; width: its mean; without: data sets without an interval. clear: the truth exceeds three floors.
ranks: how often the mild model gets the smaller value than the strong one on the same rows."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated; every cell has its own stream, so that a study stopped and resumed gives the same."""

    sets: int = 200
    rows: tuple[int, ...] = (200, 1000)
    resamples: int = 300
    redraws: int = 99
    seed: int = 0

    def rng(self, world: Design, n: int, repetition: int) -> np.random.Generator:
        """The stream of one data set: the same rows for every estimator."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=20, rows=(200, 1000), resamples=200, redraws=99)


@dataclass(frozen=True)
class Cell:
    """One estimator in one world at one number of rows."""

    case: Case
    world: Design
    n: int

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.case.label} | {self.world.name} | {self.n}"


def coverage(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Every estimator where the truth is known by quadrature, beside the constant answer 0.

    Worlds: the Gaussian mixture of the 2019 paper, logistic distortions (calibrated, mild, strong, rare), the
    Dirichlet model, and crowds of 30 votes. Per estimator, world and number of rows: the mean's bias, the root mean
    square error beside that of the constant 0, how often the 95 % interval covers the truth, lies above or below it,
    its mean width, and how often the estimator puts the mild and the strong distortion, on the same rows, in order.

    >>> finding = coverage(methods=["ece"], plan=Plan(sets=2, rows=(50,), resamples=20, redraws=19))
    >>> finding.rows[0]["estimator"], finding.rows[0]["world"]
    ('ece', 'calibrated')
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    cells = list(_cells(plan, methods))
    where = folder(out)
    rows = rows_of("coverage", cells, measure_cell, plan, where, progress)
    finding = Finding("coverage", _sentence(rows), rows, plan.__dict__, LEGEND.format(sets=plan.sets))
    if where is not None:
        finding.save(where)
        _draw(finding, where)
    return finding


def _cells(plan: Plan, methods: Sequence[str] | None) -> Iterator[Cell]:
    for name in methods or ESTIMATORS.names():
        ESTIMATORS.load(name)  # an unknown one is refused by the table
        for case in cases_of(name):
            for world in (*BINARY, *VECTORS, *CROWDS):
                if case.fits(world):
                    yield from (Cell(case, world, n) for n in plan.rows if n <= case.max_rows)


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of one cell."""
    estimator = ESTIMATORS.make(cell.case.name, cell.case.settings(cell.n))
    target = truth(cell.case, estimator, cell.world)
    interval_spec = IntervalSpec(resamples=plan.resamples)
    values, lows, highs, noise_floors, debiased = [], [], [], [], []
    for repetition in range(plan.sets):
        rng = plan.rng(cell.world, cell.n, repetition)
        preds = cell.world.rows(rng, cell.n)
        estimands = [_estimand(estimator, cell.case, preds)]
        (estimate,) = estimates(preds, estimands, interval_spec, rng, partial(_floors, preds, rng, plan.redraws))
        values.append(estimate.value)
        debiased.append(estimate.value if estimate.debiased is None else estimate.debiased)
        noise_floors.append(math.nan if estimate.noise_floor is None else estimate.noise_floor)
        lows.append(estimate.interval.low if estimate.interval else math.nan)
        highs.append(estimate.interval.high if estimate.interval else math.nan)
    v, low, high = np.array(values), np.array(lows), np.array(highs)
    some = np.isfinite(low)
    high = np.where(cell.case.from_below & some, np.inf, high)
    best_value = type(estimator).best_value
    row: dict[str, Any] = {
        "estimator": cell.case.label, "world": cell.world.name, "n": cell.n, "truth": target,
        "bias": float(v.mean() - target), "rmse": _rms(v - target), "rmse_debiased": _rms(np.array(debiased) - target),
        "rmse_of_0": None if isinstance(estimator, ProperScore) else abs(target - best_value), "floor": _finite(float(np.mean(noise_floors))),
        "method": estimate.interval.method if estimate.interval else "none",
        "covers": _finite(float(((low <= target) & (target <= high))[some].mean())) if some.any() else None,
        "above": float((target > high)[some].mean()) if some.any() else None,
        "below": float((target < low)[some].mean()) if some.any() else None,
        "width": _finite(float((high - low)[some].mean())) if some.any() else None,
        "without": int((~some).sum()),
        "clear": bool(abs(target - best_value) > CLEAR * abs(float(np.mean(noise_floors)) - best_value)),
    }  # fmt: skip
    if cell.world.name == RIVAL[1]:
        row["ranks"] = _ranks(cell, estimator, plan, v)
    return {key: _finite(value) if isinstance(value, float) else value for key, value in row.items()}


def _floors(
    preds: Predictions, rng: np.random.Generator, redraws: int, every: Sequence[Estimand]
) -> list[Array | None]:
    return floors(preds, every, rng, redraws)


def _estimand(estimator: Estimator, case: Case, preds: Predictions) -> Estimand:
    lens = lens_for(preds, case.lens, estimator)
    return Estimand.of(estimator, lens, preds, lens.aggregate)


def _ranks(cell: Cell, estimator: Estimator, plan: Plan, strong: Any) -> float:
    """The share of data sets in which the mild distortion gets the smaller error, on the same rows."""
    mild = next(world for world in BINARY if world.name == RIVAL[0])
    right = 0.0
    for repetition, value in enumerate(strong):
        preds = mild.rows(plan.rng(cell.world, cell.n, repetition), cell.n)
        estimand = _estimand(estimator, cell.case, preds)
        other = float(estimand.combined(estimand.values))
        gap = float(estimator.as_loss(value) - estimator.as_loss(np.float64(other)))
        right += 0.5 if gap == 0 else float(gap > 0)
    return right / len(strong)


def _rms(x: Any) -> float:
    return float(np.sqrt(np.mean(x * x)))


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    with_interval = [row for row in rows if row["covers"] is not None]
    low = [row for row in with_interval if row["covers"] < 0.93]
    wide = [row for row in with_interval if row["clear"] and row["covers"] > 0.98]
    beaten = [row for row in rows if row["rmse_of_0"] and row["rmse"] > row["rmse_of_0"]]
    return (
        f"Of {len(with_interval)} intervals {len(with_interval) - len(low)} cover the truth in at least 93 % of the data sets; where"
        f" the truth is clear of noise {len(wide)} cover more than 98 %. In {len(beaten)} of {len(rows)} cases the"
        " constant answer 0 would have come closer than the estimate."
    )


def _draw(finding: Finding, where: Path) -> None:
    """Coverage and error of every estimator as a picture; without matplotlib there is only the table."""
    if importlib.util.find_spec("matplotlib") is not None:
        figures.coverage(finding, where / "coverage.svg")
