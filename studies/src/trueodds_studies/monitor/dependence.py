"""False alarms if labels come late, or if rows share shocks: of a valid way to monitor, and of one that is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, logit

from trueodds.core.typing import Array
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds_studies.common.rejection_rates import clopper_pearson
from trueodds_studies.monitor.batch import BatchMonitor
from trueodds_studies.monitor.streams import SCORES, Rng

MEANS = {"13 %": 0.13, "40 %": 0.40}  # of the scores
EVENT_DELAY, NONEVENT_DELAY = 4, 60  # cohorts after which the outcome of a row becomes known
SHOCK_SD = 0.1
HORIZON = 4  # cohorts whose outcomes share shocks
STREAMS_PER_PART = 100  # simulated together


class DependencePlan(Protocol):
    """What these cases read of the plan of the study."""

    @property
    def streams(self) -> int:
        """Number of streams."""

    @property
    def cohorts(self) -> int:
        """Cohorts per stream."""

    @property
    def rows(self) -> int:
        """Rows per cohort, if shocks are shared."""

    @property
    def seed(self) -> int:
        """Seed of the streams."""


@dataclass(frozen=True)
class DependenceCell:
    """A case, with a number of rows per cohort, or that of the plan."""

    case: str
    scores: str
    rows: int | None = None

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.case}, {self.rows}"


def measure_dependence(cell: DependenceCell, plan: DependencePlan) -> Mapping[str, Any]:
    """The row of the table of late labels and shocks."""
    starts = range(0, plan.streams, STREAMS_PER_PART)
    parts = [
        largest_evidence(cell, min(STREAMS_PER_PART, plan.streams - start), part, plan)
        for part, start in enumerate(starts)
    ]
    alarms, invalid = (np.concatenate(parts, axis=1) >= -math.log(0.05)).sum(axis=1).tolist()
    case = _CASES[cell.case]
    return {
        "case": cell.case, "scores": cell.scores, "rows": cell.rows or plan.rows, "streams": plan.streams,
        "valid": case.valid, "alarms": alarms / plan.streams, "high": clopper_pearson(alarms, plan.streams)[1],
        "instead": case.invalid, "alarms instead": invalid / plan.streams,
        "low": clopper_pearson(invalid, plan.streams)[0],
    }  # fmt: skip


def largest_evidence(cell: DependenceCell, streams: int, part: int, plan: DependencePlan) -> Array:
    """The largest log evidence of each stream in the valid and in the invalid way, (2, streams)."""
    rng = np.random.default_rng([plan.seed, *cell.key.encode(), part])
    draws = Draws(rng, cell.scores, streams, cell.rows or plan.rows)
    return _CASES[cell.case].simulate(draws, plan.cohorts)


@dataclass(frozen=True)
class Draws:
    """Cohorts of several streams, drawn one after the other."""

    rng: Rng
    scores: str
    streams: int
    rows: int

    def cohort(self, shock: Array | float = 0.0) -> tuple[Array, Array]:
        """Probabilities and outcomes, (1, streams, rows), of rows that share a shock of their log odds."""
        p = SCORES[self.scores](self.rng, self.streams * self.rows).reshape(1, self.streams, self.rows)
        return p, self.rng.random(p.shape) < expit(logit(p) + np.reshape(shock, (-1, 1)))

    def monitor(self, shock_sd: float) -> BatchMonitor:
        """The monitors of all streams."""
        center = float(logit(MEANS[self.scores]))
        return BatchMonitor(self.streams, MonitorSettings(shock_sd=shock_sd), center)


def _delay_labels(draws: Draws, cohorts: int) -> Array:
    """Cohorts count in their order, or else in the order in which their own labels become known."""
    p, y = (np.concatenate(values) for values in zip(*(draws.cohort() for _ in range(cohorts)), strict=True))
    known = np.arange(cohorts)[:, None] + np.where(y.all(axis=2), EVENT_DELAY, NONEVENT_DELAY)
    order = known.argsort(axis=0, kind="stable")
    batches = [draws.monitor(0.0) for _ in range(2)]
    largest = np.zeros((2, draws.streams))
    for cohort in range(cohorts):
        for i, chosen in enumerate((np.full(draws.streams, cohort), order[cohort])):
            views = (values[chosen, np.arange(draws.streams)][None] for values in (p, y))
            largest[i] = np.maximum(largest[i], batches[i].judge(*views))
    return largest


def _share_shocks(draws: Draws, cohorts: int) -> Array:
    """The rows of a cohort share a shock; its standard deviation is stated, or not."""
    batches = [draws.monitor(sd) for sd in (SHOCK_SD, 0.0)]
    largest = np.zeros((2, draws.streams))
    for shock in draws.rng.normal(0, SHOCK_SD, (cohorts, draws.streams)):
        views = draws.cohort(shock)
        for i, batch in enumerate(batches):
            largest[i] = np.maximum(largest[i], batch.judge(*views))
    return largest


def _overlap(draws: Draws, cohorts: int) -> Array:
    """Outcomes accrue over several cohorts, each of which has a shock; cohorts are divided into threads, or not."""
    shocks = draws.rng.normal(0, SHOCK_SD / math.sqrt(HORIZON), (cohorts + HORIZON - 1, draws.streams))
    *threads, independent = (draws.monitor(SHOCK_SD) for _ in range(HORIZON + 1))
    largest = np.zeros((2, draws.streams))
    for cohort in range(cohorts):
        ratios = independent.log_ratios(*draws.cohort(shocks[cohort : cohort + HORIZON].sum(axis=0)))
        by_thread = threads[cohort % HORIZON].judge_ratios(ratios) - math.log(HORIZON)
        largest = np.maximum(largest, (by_thread, independent.judge_ratios(ratios)))
    return largest


@dataclass(frozen=True)
class _Case:
    """A case: how to monitor it, how not to, and the largest log evidence of both, (2, streams)."""

    valid: str
    invalid: str
    simulate: Callable[[Draws, int], Array]


_CASES = {
    "late labels": _Case("cohorts in order", "each when complete", _delay_labels),
    "shocks": _Case(f"`shock_sd={SHOCK_SD}`", "`shock_sd=0`", _share_shocks),
    "shocks over four cohorts": _Case('`overlap="threads"`', '`overlap="independent"`', _overlap),
}
DEPENDENCE_CELLS = (
    *(DependenceCell("late labels", "40 %", rows) for rows in (1, 2, 3, 5)),
    DependenceCell("shocks", "13 %"),
    DependenceCell("shocks over four cohorts", "13 %"),
)

DEPENDENCE_LEGEND = f"""streams: of {{cohorts}} cohorts without an error of the probabilities, looked at after each.
alarms: share with an alarm at alpha = .05, monitored in the valid way; high: its upper 99 % Clopper-Pearson limit.
alarms instead: share of the same streams with an alarm in the way that is not valid; low: its lower limit. late labels:
an event becomes known after {EVENT_DELAY} days, a nonevent after {NONEVENT_DELAY}. A day is a cohort, which counts when
its horizon has passed, or when it and all earlier ones are complete, or else as soon as it is itself complete, which
`Monitor` does not offer. shocks: the rows of a cohort share one of the log odds, of standard deviation {SHOCK_SD}.
shocks over four cohorts: outcomes accrue over a horizon of {HORIZON} cohorts, each of which has a shock; the sum of
their shocks has the standard deviation {SHOCK_SD}, and `shock_sd={SHOCK_SD}` is stated."""
