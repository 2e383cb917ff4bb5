"""How often `auto` confirms recalibrations of calibrated and miscalibrated models, and with what gain in log loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, stdtr

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._glm.log_probabilities import softmax
from trueodds.calibrators.auto import AutoSpec
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.choose import CrossFittingRows
from trueodds.calibrators.cross_validation import mean_and_standard_error, stratified_folds
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.uniform_mixture import original_logs
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.probabilities import two_columns
from trueodds_studies.common.rejection_rates import clopper_pearson
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.simulated_worlds import CALIBRATED_WORLDS, LogitNormalWorld, PowerTransformedWorld
from trueodds_studies.common.study_result import StudyResult, make_folder


@dataclass(frozen=True)
class TemperedWorld(PowerTransformedWorld):
    """Vectors softmax(std · z) of standard normal z; class k has true probability ∝ p_k^powers_k · factors_k.

    The power 1/T corrects a temperature T; different powers and factors require a map with more parameters.
    """

    std: float = 1.5
    powers: tuple[float, ...] = ()  # one per class; by default `power` for all
    factors: tuple[float, ...] = ()  # one per class; by default 1

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n predicted vectors, (n, k)."""
        return softmax(self.std * rng.normal(size=(n, self.k)))

    def true_probs(self, P: Array) -> Array:
        """The true class probabilities, (n, k), of the predicted vectors P (n, k)."""
        if not self.powers and not self.factors:
            return super().true_probs(P)
        r = P ** np.array(self.powers or (self.power,) * self.k) * np.array(self.factors or (1.0,) * self.k)
        return np.asarray(r / r.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class WaveWorld(LogitNormalWorld):
    """Two classes whose true log odds oscillate around the predicted ones."""

    height: float = 0.8

    def true_probs(self, P: Array) -> Array:
        """The true class probabilities, (n, 2), of the predicted vectors P (n, 2)."""
        x = np.log(P[:, 1] / P[:, 0])
        return two_columns(expit(x + self.height * np.sin(2 * x)))


@dataclass(frozen=True)
class ExactZerosWorld(PowerTransformedWorld):
    """Two classes with p ~ Beta(0.3, 0.3), and exactly 0 in a third of the rows."""

    k: int = 2

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, 2), confident ones and exact zeros and ones."""
        return two_columns(rng.beta(0.3, 0.3, n) * (rng.random(n) > 1 / 3))


@dataclass(frozen=True)
class HeavyTailsWorld(PowerTransformedWorld):
    """Two classes, with logit p = 3 t, where t has Student's distribution with 2 degrees of freedom."""

    k: int = 2

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, 2), some of them extremely confident."""
        return two_columns(expit(3 * rng.standard_t(2, n)))


class MiscalibratedCase(NamedTuple):
    """A miscalibrated design, its number of rows, and the method that corrects it best."""

    world: PowerTransformedWorld
    n: int
    method: str


CONFIRM_CALIBRATED = (*CALIBRATED_WORLDS, ExactZerosWorld("exact zeros"), HeavyTailsWorld("heavy tails"))
CONFIRM_MISCALIBRATED = (
    MiscalibratedCase(LogitNormalWorld("T = 0.6", std=0.9, power=1 / 0.6), 150, "temperature"),
    MiscalibratedCase(LogitNormalWorld("T = 1.3", std=1.95, power=1 / 1.3), 1000, "temperature"),
    MiscalibratedCase(LogitNormalWorld("T = 1.15", std=1.725, power=1 / 1.15), 5000, "temperature"),
    MiscalibratedCase(LogitNormalWorld("shift", std=1.5, odds=1.35), 1000, "llo"),
    MiscalibratedCase(WaveWorld("wave", std=1.5), 1000, "spline"),
    MiscalibratedCase(TemperedWorld("T = 1.5, 10 classes", k=10, std=2.25, power=1 / 1.5), 300, "temperature"),
    MiscalibratedCase(
        TemperedWorld("one class of 3", k=3, factors=(1.65, 1.0, 1.0)), 500, "bias_corrected_temperature"
    ),
    MiscalibratedCase(TemperedWorld("slopes, 3 classes", k=3, std=1.7, powers=(0.7, 1.0, 1.25)), 1000, "structured"),
    MiscalibratedCase(
        TemperedWorld("slopes, 10 classes", k=10, powers=tuple(np.linspace(0.7, 1.4, 10).tolist())), 1500, "vector"
    ),
)


ALPHA = 0.05
FRESH_ROWS = 10_000  # rows on which a returned map is evaluated with the true probabilities

LEGEND = """calibrated designs: the predictions are calibrated, so a confirmed recalibration is a false positive.
distorted designs: the true probabilities are a power of the predicted ones, the odds of the classes are multiplied by a
factor, or the log odds have a wave. confirmed: share of data sets in which auto confirms a recalibration at 5 %; low
and high: its 99 % Clopper-Pearson limits. too few rows: share without confirmation for which more rows are recommended;
recommended rows: the median of the recommended number. method: the best one, specified in advance; paired t test: how
often a one-sided paired t test of its cross-fitted gain is significant. gain: mean cross-fitted gain in nats per row if
confirmed; gain, new rows: that of the confirmed maps on {fresh} new rows, by their true probabilities; coverage: share
of the confirmed maps whose gain on new rows is at least the reported lower limit. gain, all data sets: mean gain on new
rows of what auto returns over all data sets, including the identity; temperature scaling: the same for temperature
scaling that is always applied."""


@dataclass(frozen=True)
class Plan:
    """Size of the simulation; each data set has its own random stream, so resuming does not change results."""

    sets: int = 100  # data sets per calibrated design and number of rows
    powered: int = 100  # data sets per miscalibrated design
    rows: tuple[int, ...] = (100, 300, 1000)  # of calibrated designs
    worlds: tuple[str, ...] = tuple(world.name for world in CONFIRM_CALIBRATED) + tuple(
        case.world.name for case in CONFIRM_MISCALIBRATED
    )
    seed: int = 0

    def rng(self, world: PowerTransformedWorld, n: int, repetition: int) -> np.random.Generator:
        """The random stream of one data set."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=4, powered=4, rows=(100,), worlds=("logit-normal", "exact zeros", "T = 0.6"))


@dataclass(frozen=True)
class Cell:
    """One design and one number of rows."""

    world: PowerTransformedWorld
    n: int
    sets: int
    method: str | None = None  # the best method for a miscalibrated design

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.world.name} | {self.n}"


def confirm(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """How often `auto` confirms a recalibration with and without need, and whether the reported gain is realized.

    >>> finding = confirm(plan=Plan(1, 1, (100,), ("logit-normal",)))
    >>> finding.rows[0]["design"], finding.rows[0]["data sets"]
    ('logit-normal', 1)
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    cells = [Cell(world, n, plan.sets) for world in CONFIRM_CALIBRATED if world.name in plan.worlds for n in plan.rows]
    cells += [
        Cell(case.world, case.n, plan.powered, case.method)
        for case in CONFIRM_MISCALIBRATED
        if case.world.name in plan.worlds
    ]
    folder = make_folder(out)
    rows = run_cells("confirm", cells, measure_cell, plan, folder, progress)
    finding = StudyResult("confirm", _summarize(rows), rows, plan.__dict__, LEGEND.format(fresh=f"{FRESH_ROWS:,}"))
    if folder is not None:
        finding.save(folder)
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one cell."""
    world = cell.world
    fresh = world.draw_predictions(np.random.default_rng(20_070_602), FRESH_ROWS)
    truth = world.true_probs(fresh.copy())
    reports, gains, n_single, temperature_gain = [], [], 0, 0.0
    for repetition in range(cell.sets):
        preds = world.rows(plan.rng(world, cell.n, repetition), cell.n)
        calibrator = fit(AutoSpec(alpha=ALPHA), preds)
        reports.append(calibrator.report.to_dict())
        gains.append(_expected_gain(calibrator.calibration_map, fresh, truth))
        temperature = fit(CALIBRATORS.make("temperature", {}), preds)
        temperature_gain += _expected_gain(temperature.calibration_map, fresh, truth) / cell.sets
        n_single += cell.method is not None and paired_t_pvalue(cell.method, preds.P, preds.Y) <= ALPHA
    confirmed = np.array([report["confirmed"] for report in reports])
    required_rows = [report["required_rows"] for report in reports if report["outcome"] == "too few rows"]
    n_confirmed = int(confirmed.sum())
    fresh_gains = np.array(gains)
    low, high = clopper_pearson(n_confirmed, cell.sets)
    confirmed_reports = [report for report in reports if report["confirmed"]]
    return {
        "design": world.title,
        "K": world.k,
        "n": cell.n,
        "data sets": cell.sets,
        "confirmed": n_confirmed / cell.sets,
        "low": low,
        "high": high,
        "method": cell.method,
        "paired t test": n_single / cell.sets if cell.method else None,
        "too few rows": len(required_rows) / cell.sets,
        "recommended rows": float(np.median(required_rows)) if required_rows else None,
        "gain": _mean_or_none([report["gain"] for report in confirmed_reports]),
        "gain, new rows": _mean_or_none(fresh_gains[confirmed]),
        "coverage": _mean_or_none(
            [g >= report["gain_low"] for g, report in zip(fresh_gains[confirmed], confirmed_reports, strict=True)]
        ),
        "gain, all data sets": float(fresh_gains.mean()),
        "temperature scaling": temperature_gain,
    }


def paired_t_pvalue(method: str, P: Array, Y: Array, folds: int = 5) -> float:
    """P-value of a one-sided paired t test of the cross-fitted gain in log loss of a method.

    P and Y are the predicted probabilities and the one-hot labels, (n, K) each.
    """
    rows = CrossFittingRows(P, Y, np.ones(len(P)), stratified_folds(P, folds, None, np.random.default_rng(0)))
    logs_after = rows.cross_fitted_logs(CALIBRATORS.make(method, {}))
    logs_before = original_logs(P, rows.uniform_shares())
    gains = (Y * (logs_after - logs_before)).sum(axis=1)  # per row
    gain, se = mean_and_standard_error(gains, rows.w)
    return float(stdtr(len(P) - 1, -gain / se)) if se > 0 else 1.0


def _expected_gain(calibration_map: CalibrationMap, P: Array, truth: Array) -> float:
    """Expected reduction of the log loss by a map, mean over predictions P with true probabilities (n, K) each.

    Outcomes with true probability 0 contribute nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(truth > 0, truth * (np.log(calibration_map.apply(P)) - np.log(P)), 0.0)
    return float(gains.sum(axis=1).mean())


def _mean_or_none(values: Any) -> float | None:
    """The mean, or None without values."""
    return float(np.mean(values)) if len(values) else None


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """In words, how often calibrated and miscalibrated designs are confirmed, and the largest loss on new rows."""
    calibrated = [row for row in rows if row["method"] is None]
    miscalibrated = [row for row in rows if row["method"] is not None]
    parts = []
    if calibrated:
        sets = sum(row["data sets"] for row in calibrated)
        n_confirmed = round(sum(row["confirmed"] * row["data sets"] for row in calibrated))
        above = sum(row["low"] > ALPHA for row in calibrated)
        parts.append(
            f"Of {sets:,} calibrated data sets, auto confirms a recalibration in {n_confirmed:,}"
            f" ({100 * n_confirmed / sets:.1f} %); the rate is significantly above 5 % in {above} of"
            f" {len(calibrated)} cells."
        )
    if miscalibrated:
        largest_shortfall = max(row["paired t test"] - row["confirmed"] for row in miscalibrated)
        share = float(np.mean([row["confirmed"] for row in miscalibrated]))
        share_alone = float(np.mean([row["paired t test"] for row in miscalibrated]))
        parts.append(
            f"In {len(miscalibrated)} distorted designs, it confirms {100 * share:.0f} % on average, compared with"
            f" {100 * share_alone:.0f} % for a paired test of the best method, specified in advance; it is at most"
            f" {100 * max(largest_shortfall, 0.0):.0f} points worse."
        )
    smallest_delivered = min(row["gain, all data sets"] for row in rows)
    parts.append(
        f"On new rows, the returned map is on average never more than {max(-smallest_delivered, 0.0):.4f} nats worse"
        " than the identity."
    )
    return " ".join(parts)
