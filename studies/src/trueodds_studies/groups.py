"""How often repairs of calibrated groups are confirmed, their power, and the errors of groups on fresh rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitting import fit
from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.tallies.proper_score_sums import log_loss
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, make_folder

LEGEND = """tau: standard deviation of the shifts of groups, in log odds; overall: the shift of all rows. With tau 0,
a confirmed repair is a false one. confirmed: share of the data sets in which `group_shift` is confirmed at 5 %;
error: its standard error. Of the data sets with a repair, on fresh rows with the true probabilities: worst, before
and worst, after: mean of the largest error of a group with at least 1 % of the rows, in probability; lost groups:
share of the groups whose error is more than 0.01 larger than with the overall shift alone. excess loss: mean log loss
above that of the true probabilities, ×10,000, over all data sets: unchanged, with `group_shift`, with isotonic
regression in each group, and with HKRR, the algorithm of Hébert-Johnson et al. (2018), which moves the probabilities
of a group and level by their mean error until none is above 0.02."""

_FRESH_ROWS = 20_000
_HKRR_TOLERANCE, _HKRR_LEVELS, _HKRR_MAX_STEPS = 0.02, 10, 500


class Design(NamedTuple):
    """Groups whose log odds are shifted at random."""

    n: int
    groups: int
    mean: float  # of the predicted log odds, whose standard deviation is 1
    tau: float
    overall: float = 0.0
    crossed: bool = False  # whether a second column has five groups, and crossings are fitted
    clusters: bool = False  # whether rows are in clusters of five with a shared shift of their log odds

    @property
    def name(self) -> str:
        """The number of groups, and what is special."""
        return f"{self.groups} groups" + (" × 5" if self.crossed else "") + (", clusters" if self.clusters else "")


DESIGNS = (
    Design(1000, 10, -1, 0.0),
    Design(1000, 10, -1, 0.0, 0.3),
    Design(3000, 40, -1, 0.0),
    Design(3000, 40, -3, 0.0, 0.3),
    Design(2000, 8, -1, 0.0, 0.0, crossed=True),
    Design(2000, 10, -1, 0.0, 0.0, clusters=True),
    Design(1000, 10, -1, 0.3),
    Design(1000, 10, -1, 0.6, 0.3),
    Design(3000, 40, -1, 0.15),
    Design(3000, 40, -1, 0.3),
    Design(3000, 40, -1, 0.6, 0.3),
    Design(3000, 40, -3, 0.3),
    Design(3000, 40, -3, 0.6, 0.3),
)


@dataclass(frozen=True)
class Plan:
    """Size of the simulation."""

    sets: int = 170  # data sets of a design without differences of groups
    powered: int = 30  # of the others
    seed: int = 0


QUICK = Plan(sets=5, powered=5)


class Cell(NamedTuple):
    """A design."""

    design: Design

    @property
    def key(self) -> str:
        """The name of the cell in saved results."""
        return "{} n={} mean={} tau={} overall={}".format(self.design.name, *self.design[:1], *self.design[2:5])


class Rows(NamedTuple):
    """Rows of a design, with their true probabilities."""

    preds: Predictions
    truth: Array  # (n,)


def draw(design: Design, rng: np.random.Generator, shifts: Array, n: int) -> Rows:
    """Draw rows of groups with these shifts, (groups,) or (groups, 5)."""
    group, second, log_odds = rng.integers(0, design.groups, n), rng.integers(0, 5, n), rng.normal(design.mean, 1, n)
    columns = {"group": group} | ({"second": second} if design.crossed else {})
    shift = shifts[group, second] if design.crossed else shifts[group]
    true_log_odds = log_odds + design.overall + shift
    cluster = np.arange(n) // 5 if design.clusters else None
    # The mean over clusters is the truth: with a shared shift u of standard deviation 1, the log odds are larger by a
    # factor, so that σ(log odds) is about the mean of σ(factor · log odds + u).
    latent = true_log_odds
    if cluster is not None:
        latent = np.sqrt(1 + np.pi / 8) * true_log_odds + rng.normal(size=n)[cluster]
    y = (rng.random(n) < expit(latent)).astype(int)
    return Rows(Predictions(y, expit(log_odds), group=columns, cluster=cluster), expit(true_log_odds))


def groups(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """False confirmations, power and errors of repairs by group.

    >>> finding = groups(plan=Plan(sets=1, powered=1))
    >>> len(finding.rows) == len(DESIGNS)
    True
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    rows = tuple(run_cells("groups", [Cell(design) for design in DESIGNS], measure_cell, plan, folder, progress))
    finding = StudyResult("groups", _summarize(rows), rows, plan.__dict__, LEGEND)
    if folder is not None:
        finding.save(folder)
    return finding


def measure_cell(cell: Cell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table for one design."""
    design, confirmed, repaired = cell.design, 0, []
    losses = []
    sets = plan.powered if design.tau else plan.sets
    for seed in range(sets):
        rng = np.random.default_rng([plan.seed, seed, design.n, design.groups, int(10 * design.tau)])
        shifts = rng.normal(0, design.tau, (design.groups, 5) if design.crossed else design.groups)
        rows = draw(design, rng, shifts, design.n)
        settings = {"crossings": 2} if design.crossed else {}
        calibrator = fit(CALIBRATORS.make("group_shift", settings), rows.preds)
        confirmed += calibrator.report.confirmed
        if design.tau:
            fresh = draw(design, rng, shifts, _FRESH_ROWS)
            q = calibrator.predict_proba(fresh.preds)[:, 1]
            base = expit(logit(fresh.preds.p) + calibrator.m)
            others = (_isotonic_by_group(rows.preds, fresh.preds), hkrr(rows.preds, fresh.preds))
            losses.append([_excess_loss(p, fresh.truth) for p in (fresh.preds.p, q, *others)])
            if calibrator.report.confirmed:
                before, overall, after = (_errors(p, fresh) for p in (fresh.preds.p, base, q))
                repaired.append([before.max(), after.max(), float((after > overall + 0.01).mean())])
    share = confirmed / sets
    means = np.mean(repaired, axis=0).tolist() if repaired else [None] * 3
    excess = np.mean(losses, axis=0).tolist() if losses else [None] * 4
    names = ("unchanged", "group_shift", "isotonic", "HKRR")
    return {
        "design": design.name, "n": design.n, "mean": design.mean, "tau": design.tau, "overall": design.overall,
        "sets": sets, "confirmed": share, "error": float(np.sqrt(max(share * (1 - share), 0.05 * 0.95) / sets)),
        **dict(zip(("worst, before", "worst, after", "lost groups"), means, strict=True)),
        **{f"excess loss, {name}": value for name, value in zip(names, excess, strict=True)},
    }  # fmt: skip


def _errors(q: Array, fresh: Rows) -> Array:
    """Error of each group with at least 1 % of the rows, by the true probabilities."""
    group = fresh.preds.group["group"]
    sizes = np.bincount(group)
    errors = np.abs(np.bincount(group, fresh.truth - q)) / np.maximum(sizes, 1)
    return np.asarray(errors[sizes >= 0.01 * len(q)])


def _excess_loss(q: Array, truth: Array) -> float:
    """Mean log loss above that of the true probabilities, ×10,000; probabilities are limited to [1e-3, 1 − 1e-3]."""
    q, Y = np.clip(q, 1e-3, 1 - 1e-3), np.stack([1 - truth, truth], axis=1)
    losses = [float(log_loss(np.stack([1 - p, p], axis=1), Y).mean()) for p in (q, truth)]
    return 1e4 * (losses[0] - losses[1])


def _isotonic_by_group(rows: Predictions, fresh: Predictions) -> Array:
    """Probabilities of the fresh rows, by isotonic regression in each group."""
    q = fresh.p.copy()
    for group in np.unique(rows.group["group"]):
        own, new = (data.group["group"] == group for data in (rows, fresh))
        q[new] = fit(CALIBRATORS.make("isotonic", {}), rows[own]).predict_proba(fresh.p[new])[:, 1]
    return q


def hkrr(rows: Predictions, fresh: Predictions) -> Array:
    """Probabilities of the fresh rows, by the steps of Hébert-Johnson et al. (2018) that the first rows determine."""
    data = [(preds.p.copy(), preds.group["group"]) for preds in (rows, fresh)]
    assert rows.y is not None
    n_groups = int(rows.group["group"].max()) + 1
    for _ in range(_HKRR_MAX_STEPS):
        cells = [group * _HKRR_LEVELS + np.minimum(q * _HKRR_LEVELS, _HKRR_LEVELS - 1).astype(int) for q, group in data]
        sizes = np.bincount(cells[0], minlength=n_groups * _HKRR_LEVELS)
        errors = np.bincount(cells[0], rows.y - data[0][0], n_groups * _HKRR_LEVELS) / np.maximum(sizes, 1)
        errors[sizes < _HKRR_TOLERANCE * rows.n / _HKRR_LEVELS] = 0.0
        worst = int(np.abs(errors).argmax())
        if abs(errors[worst]) <= _HKRR_TOLERANCE:
            break
        for (q, _), cell in zip(data, cells, strict=True):
            q[cell == worst] = np.clip(q[cell == worst] + errors[worst], 0, 1)
    return data[1][0]


def _summarize(rows: tuple[Mapping[str, Any], ...]) -> str:
    """In words, the false confirmations and the power."""
    calibrated = [row for row in rows if row["tau"] == 0]
    sets = sum(row["sets"] for row in calibrated)
    false = sum(round(row["confirmed"] * row["sets"]) for row in calibrated)
    worst = max(calibrated, key=lambda row: row["confirmed"])
    return (
        f"Without differences between groups, {false} of {sets:,} repairs are confirmed ({false / sets:.1%}), in the"
        f" worst design {worst['confirmed']:.1%}. With differences, the share is"
        f" {min(row['confirmed'] for row in rows if row['tau']):.0%} to"
        f" {max(row['confirmed'] for row in rows if row['tau']):.0%}."
    )
