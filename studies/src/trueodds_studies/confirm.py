"""Does `auto` confirm what is there, and nothing else? How often, with what gain, beside one method named beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.auto import AutoSpec
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.choosing.crossed import Rows
from trueodds.calibrators.choosing.folds import fold_of
from trueodds.calibrators.choosing.gain import log_capped, mean_and_error
from trueodds.calibrators.fitted_calibrator import fit
from trueodds.core.typing import Array
from trueodds_studies.base import Finding, folder
from trueodds_studies.distorted import CALIBRATED, DISTORTED
from trueodds_studies.rates import clopper_pearson
from trueodds_studies.resumable_runs import Progress, rows_of
from trueodds_studies.stated import Stated

ALPHA = 0.05
FRESH = 10_000  # rows on which a delivered map is judged, by their true probabilities

LEGEND = """calibrated worlds: every probability is right, so that a confirmed fix is a false one. distorted worlds: the true
probabilities are those stated to a power, the classes' odds times a factor, or a wave in the log odds.
confirmed: share of the sets in which auto confirms a fix at 5 %, low and high: its 99 % Clopper-Pearson limits.
too_few: share without, for which more rows are said to do; needed: the median of how many.
method: the best one, named beforehand; alone: how often a one-sided paired t test of its cross-fitted gain is significant.
gain: mean cross-fitted gain in nats per row where a fix is confirmed; fresh: what the delivered maps gain on {fresh} fresh rows,
by their true probabilities; covers: share of the confirmed whose fresh gain is at least the lower end that is reported.
delivered: mean fresh gain of what auto delivers over all sets, the identity where nothing is confirmed; temperature: the
same of a temperature that is always applied."""


@dataclass(frozen=True)
class Plan:
    """How much is simulated; every set has its own stream, so that a study stopped and resumed gives the same."""

    sets: int = 100  # of each calibrated world at each number of rows
    powered: int = 100  # of each distorted world
    rows: tuple[int, ...] = (100, 300, 1000)
    worlds: tuple[str, ...] = tuple(world.name for world in CALIBRATED) + tuple(case.world.name for case in DISTORTED)
    seed: int = 0

    def rng(self, world: Stated, n: int, repetition: int) -> np.random.Generator:
        """The stream of one data set."""
        return np.random.default_rng([self.seed, *world.name.encode(), n, repetition])


QUICK = Plan(sets=4, powered=4, rows=(100,), worlds=("logit-normal", "exact zeros", "T = 0.6"))


@dataclass(frozen=True)
class Cell:
    """One world at one number of rows."""

    world: Stated
    n: int
    sets: int
    method: str | None = None

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.world.name} | {self.n}"


def confirm(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> Finding:
    """How often `auto` confirms a fix where none is needed and where one is, and whether the gain it reports comes.

    >>> finding = confirm(plan=Plan(1, 1, (100,), ("logit-normal",)))
    >>> finding.rows[0]["world"], finding.rows[0]["sets"]
    ('logit-normal', 1)
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    cells = [Cell(world, n, plan.sets) for world in CALIBRATED if world.name in plan.worlds for n in plan.rows]
    cells += [
        Cell(case.world, case.n, plan.powered, case.method) for case in DISTORTED if case.world.name in plan.worlds
    ]
    where = folder(out)
    rows = rows_of("confirm", cells, measure_cell, plan, where, progress)
    finding = Finding("confirm", _sentence(rows), rows, plan.__dict__, LEGEND.format(fresh=f"{FRESH:,}"))
    if where is not None:
        finding.save(where)
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of one cell."""
    world, fresh = cell.world, cell.world.stated(np.random.default_rng(20_070_602), FRESH)
    truth = world.true(fresh.copy())
    reports, gains, alone, warm = [], [], 0, 0.0
    for repetition in range(cell.sets):
        preds = world.rows(plan.rng(world, cell.n, repetition), cell.n)
        calibrator = fit(AutoSpec(alpha=ALPHA), preds)
        reports.append(calibrator.report.to_dict())
        gains.append(_gain(calibrator.calibration_map, fresh, truth))
        warm += _gain(fit(CALIBRATORS.make("temperature", {}), preds).calibration_map, fresh, truth) / cell.sets
        alone += cell.method is not None and paired(cell.method, preds.P, preds.Y) <= ALPHA
    confirmed = np.array([report["confirmed"] for report in reports])
    required_rows = [report["required_rows"] for report in reports if report["outcome"] == "too few rows"]
    hits, fresh_gains = int(confirmed.sum()), np.array(gains)
    low, high = clopper_pearson(hits, cell.sets)
    some = [report for report in reports if report["confirmed"]]
    return {
        "world": world.name, "K": world.k, "n": cell.n, "sets": cell.sets,
        "confirmed": hits / cell.sets, "low": low, "high": high,
        "method": cell.method, "alone": alone / cell.sets if cell.method else None,
        "too_few": len(required_rows) / cell.sets, "needed": float(np.median(required_rows)) if required_rows else None,
        "gain": _mean([report["gain"] for report in some]), "fresh": _mean(fresh_gains[confirmed]),
        "covers": _mean([g >= report["gain_low"] for g, report in zip(fresh_gains[confirmed], some, strict=True)]),
        "delivered": float(fresh_gains.mean()), "temperature": warm,
    }  # fmt: skip


def paired(method: str, P: Array, Y: Array, folds: int = 5) -> float:
    """The p-value of a one-sided paired t test of what the method gains on each fold by its fit to the others."""
    rows = Rows(P, Y, np.ones(len(P)), fold_of(P, folds, None, np.random.default_rng(0)))
    gains = (Y * (rows.crossed(CALIBRATORS.make(method, {})) - log_capped(P, rows.shares()))).sum(axis=1)
    gain, se = mean_and_error(gains, rows.w)
    return float(stdtr(len(P) - 1, -gain / se)) if se > 0 else 1.0


def _gain(calibration_map: CalibrationMap, P: Array, truth: Array) -> float:
    """By how much the map lowers the expected log loss of these rows; what cannot come costs nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(truth > 0, truth * (np.log(calibration_map.apply(P)) - np.log(P)), 0.0)
    return float(steps.sum(axis=1).mean())


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    null, bent = ([row for row in rows if (row["method"] is None) == none] for none in (True, False))
    parts = []
    if null:
        sets = sum(row["sets"] for row in null)
        hits = round(sum(row["confirmed"] * row["sets"] for row in null))
        above = sum(row["low"] > ALPHA for row in null)
        parts.append(
            f"Of {sets:,} calibrated sets auto confirms a fix in {hits:,} ({100 * hits / sets:.1f} %); in {above} of {len(null)} cells that is clearly above 5 %."
        )
    if bent:
        behind = max(row["alone"] - row["confirmed"] for row in bent)
        share, other = (float(np.mean([row[name] for row in bent])) for name in ("confirmed", "alone"))
        parts.append(
            f"In {len(bent)} distorted worlds it confirms {100 * share:.0f} % on average, where a paired test of the best method, named beforehand, finds {100 * other:.0f} %; it is at most {100 * max(behind, 0.0):.0f} points behind."
        )
    worst = min(row["delivered"] for row in rows)
    parts.append(
        f"On fresh rows what it delivers is on average never more than {max(-worst, 0.0):.4f} nats worse than nothing."
    )
    return " ".join(parts)
