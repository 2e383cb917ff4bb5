"""How often a monitor raises a false alarm, how late it sees a drift, and how well it states onset and error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from trueodds.core.progress import Progress
from trueodds.core.typing import Array
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds_studies.common.rejection_rates import clopper_pearson
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import StudyResult, format_range, make_folder
from trueodds_studies.monitor.batch import BatchMonitor
from trueodds_studies.monitor.charts import Charts
from trueodds_studies.monitor.dependence import DEPENDENCE_CELLS, DEPENDENCE_LEGEND, measure_dependence
from trueodds_studies.monitor.peers import Peers
from trueodds_studies.monitor.reports import (
    REAL_LEGEND,
    REPORT_CELLS,
    measure_report_cell,
    real_streams,
    reports_legend,
)
from trueodds_studies.monitor.streams import DRIFTS, SCORES, Drift, Rng, draw_labels, within_margin

ROWS_PER_PART = 2_000_000  # of several streams that are simulated together
NEVER = 10**6
REFERENCE_COHORTS = 20  # before a stream begins, from which MAPIE learns what is usual


@dataclass(frozen=True)
class Plan:
    """Size of the simulation."""

    streams: int = 1000  # per design of calibrated predictions
    cohorts: int = 200  # of these
    sizes: tuple[int, ...] = (1, 2, 3, 5, 50, 5000)
    few_streams: int = 1000  # per design with the largest cohorts or ten classes
    drifting: int = 150  # streams per drift
    rows: int = 2000  # per cohort of a drift
    changes: tuple[int, ...] = (20, 150)
    peer_streams: int = 60  # of them, for the monitors of other packages
    reports: int = 400  # streams of which the report is read
    shuffles: int = 100  # of the Adult data
    seed: int = 0


QUICK = Plan(
    streams=40,
    cohorts=40,
    sizes=(1, 50),
    few_streams=4,
    drifting=6,
    rows=500,
    changes=(20,),
    peer_streams=0,
    reports=3,
    shuffles=3,
)

FALSE_ALARMS_LEGEND = """streams: simulated streams of {cohorts} cohorts, looked at after each. rows: per cohort. error:
none, or odds that are wrong by up to 5 % in one direction, differently in every row. alarms 5 %, alarms 1 %: share of
the streams with an alarm at alpha = .05 and .01. high 5 %: upper 99 % Clopper-Pearson limit of the former. largest:
largest e-value of all streams."""

DELAYS_LEGEND = """Median number of cohorts of {rows} rows after the change until the alarm, and in brackets the 90 %
quantile, of the streams without an alarm before it; > {cohorts}: not within {cohorts} cohorts. margin 1.05, margin 1:
the monitor with these odds margins, alpha = .05. Hosmer-Lemeshow: in each cohort, ten groups, level .05/208. CUSUM 5,
CUSUM 7: of (Σy − Σp)/sd, k = .5, h = 5 and 7. Shewhart 3: the same statistic beyond ±3. probcal: `CalibrationMonitor`
of probcal 0.4, alpha = .05, which learns from the last 10 cohorts. MAPIE: `RiskMonitoring` of MAPIE 1.6 for the Brier
score, level .05, without tolerance, after 20 cohorts for reference. These two see the first {peers} streams of the
others, and only two classes."""

# Of charts, the mean time between false alarms of normal z: by Siegmund's formula for two-sided CUSUM, 1/P(|z| > 3).
PROMISES = {
    "margin 1.05": "at most 5 %, however often one looks, if no odds are more than 5 % off",
    "margin 1": "at most 5 %, however often one looks, if the probabilities are exact",
    "Hosmer-Lemeshow": "at most 5 % in 208 cohorts, if events are not rare",
    "CUSUM 5": "none; a false alarm in 470 cohorts on average",
    "CUSUM 7": "none; a false alarm in 3,500 cohorts on average",
    "Shewhart 3": "none; a false alarm in 370 cohorts on average",
    "probcal": "at most 5 %, however often one looks, if the probabilities are exact",
    "MAPIE": "at most 5 %, however often one looks, if the Brier score does not rise",
}

PROMISES_LEGEND = """promised: the probability of a false alarm. The other columns: share of the streams with an alarm
before the change, from the drift with the lowest share to that with the highest."""


@dataclass(frozen=True)
class CalibratedCell:
    """Streams of a calibrated model, or of one that is wrong within the margin."""

    scores: str
    rows: int
    error: str

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.scores}, {self.rows}, {self.error}"


@dataclass(frozen=True)
class DriftCell:
    """Streams with a drift that begins in a cohort."""

    drift: int  # its position, because functions are not sent to other processes
    change: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{DRIFTS[self.drift].name}, {self.change}"


def monitor(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    data: str | Path | None = None,
    rng: int = 0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """False alarms of monitors, delays after a drift, and coverage of the intervals of onset and error.

    >>> finding = monitor(plan=Plan(3, 3, (1,), 1, 2, 50, (2,), 0, 1, 1))
    >>> finding.rows[0]["rows"], finding.rows[0]["alarms 5 %"]
    (1, 0.0)
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder = make_folder(out)
    calibrated = run_cells("monitor.calibrated", _calibrated_cells(plan), measure_calibrated, plan, folder, progress)
    drift_cells = [DriftCell(i, change) for change in plan.changes for i in range(len(DRIFTS))]
    delays = run_cells("monitor.delays", drift_cells, measure_delays, plan, folder, progress)
    dependent = run_cells("monitor.dependence", DEPENDENCE_CELLS, measure_dependence, plan, folder, progress)
    reported = run_cells("monitor.reports", REPORT_CELLS, measure_report_cell, plan, folder, progress)
    real = real_streams(data, plan.shuffles, plan.seed)
    settings = plan.__dict__
    legend = DELAYS_LEGEND.format(rows=f"{plan.rows:,}", cohorts=DRIFTS[0].cohorts, peers=plan.peer_streams)
    times = tuple({name: value for name, value in row.items() if name != "false"} for row in delays)
    promises = _promises(delays, plan)
    finding = StudyResult(
        "monitor",
        _summarize(calibrated),
        calibrated,
        settings,
        FALSE_ALARMS_LEGEND.format(cohorts=plan.cohorts),
        (
            StudyResult("monitor.delays", "How late an alarm is.", times, settings, legend),
            StudyResult("monitor.promises", "False alarms, promised and seen.", promises, settings, PROMISES_LEGEND),
            StudyResult(
                "monitor.dependence",
                "False alarms if labels come late, or rows share shocks.",
                dependent,
                settings,
                DEPENDENCE_LEGEND.format(cohorts=plan.cohorts),
            ),
            StudyResult("monitor.reports", "What reports state.", reported, settings, reports_legend(plan.rows)),
            StudyResult("monitor.real", "Streams of real predictions.", real, settings, REAL_LEGEND),
        ),
    )
    if folder is not None:
        finding.save(folder)
    return finding


def _calibrated_cells(plan: Plan) -> list[CalibratedCell]:
    cells = [
        CalibratedCell(scores, rows, error)
        for rows in plan.sizes
        for scores in SCORES
        for error in ("none", "within the margin")
        if scores != "ten classes" or rows in (5, 50)
    ]
    return [cell for cell in cells if cell.rows <= 50 or cell.scores == "13 %"]


def measure_calibrated(cell: CalibratedCell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table of false alarms."""
    is_large = cell.rows > 50 or cell.scores == "ten classes"
    streams = plan.few_streams if is_large else plan.streams
    largest: list[Array] = []
    for part, n in enumerate(_parts(streams, cell.rows)):
        rng = np.random.default_rng([plan.seed, *cell.key.encode(), part])
        largest.append(_largest_evidence(cell, n, plan.cohorts, rng))
    values = np.concatenate(largest)
    alarms = [float((values >= -math.log(alpha)).mean()) for alpha in (0.05, 0.01)]
    return {
        "scores": cell.scores, "rows": cell.rows, "error": cell.error, "streams": streams,
        "alarms 5 %": alarms[0], "high 5 %": clopper_pearson(round(alarms[0] * streams), streams)[1],
        "alarms 1 %": alarms[1], "largest": float(np.exp(values.max())),
    }  # fmt: skip


def _parts(streams: int, rows: int) -> list[int]:
    """Divide streams into parts of about as many rows per cohort."""
    size = max(1, min(streams, ROWS_PER_PART // max(rows, 100)))
    return [min(size, streams - start) for start in range(0, streams, size)]


def _largest_evidence(cell: CalibratedCell, streams: int, cohorts: int, rng: Rng) -> Array:
    """The largest log evidence of each stream."""
    P = SCORES[cell.scores](rng, 10_000)
    n_views = 1 if P.ndim == 1 else P.shape[1]
    batch = BatchMonitor(streams, MonitorSettings(), float(logit(P.mean() if P.ndim == 1 else 1 / n_views)), n_views)
    largest = np.zeros(streams)
    for _ in range(cohorts):
        p = SCORES[cell.scores](rng, streams * cell.rows)
        truth = p if cell.error == "none" else within_margin(p, rng)
        largest = np.maximum(largest, batch.judge(*_views(p, draw_labels(truth, rng), streams)))
    return largest


def _views(p: Array, y: Array, streams: int) -> tuple[Array, Array]:
    """Probabilities and outcomes of each view, (views, streams, rows)."""
    if p.ndim == 1:
        return p.reshape(1, streams, -1), y.reshape(1, streams, -1)
    k = p.shape[1]
    outcomes = y[:, None] == np.arange(k)
    return tuple(values.T.reshape(k, streams, -1) for values in (p, outcomes))  # type: ignore[return-value]


def measure_delays(cell: DriftCell, plan: Plan) -> Mapping[str, Any]:
    """The row of the table of delays, and for each method the share of streams with an alarm before the change."""
    drift = DRIFTS[cell.drift]
    found: dict[str, list[Array]] = {}
    n_peers = plan.peer_streams
    for part, n in enumerate(_parts(plan.drifting, plan.rows)):
        rng = np.random.default_rng([plan.seed, *cell.key.encode(), part])
        for name, first_alarms in _first_alarms(drift, cell.change, n, min(n, n_peers), plan.rows, rng).items():
            found.setdefault(name, []).append(first_alarms)
        n_peers -= min(n, n_peers)
    alarms = {name: np.concatenate(parts) for name, parts in found.items()}
    return {
        "drift": drift.name, "change": cell.change,
        **{
            name: _describe_delay(alarms[name], cell.change, drift.cohorts) if name in alarms else None
            for name in PROMISES
        },
        "false": {name: float((first < cell.change).mean()) for name, first in alarms.items()},
    }  # fmt: skip


def _first_alarms(drift: Drift, change: int, streams: int, n_peers: int, rows: int, rng: Rng) -> dict[str, Array]:
    """The first cohort with an alarm of each stream, for all methods; those of other packages see some streams only."""
    p = SCORES[drift.scores](rng, 10_000)
    is_binary = p.ndim == 1
    n_views = 1 if is_binary else p.shape[1]
    center = float(logit(p.mean() if is_binary else 1 / n_views))
    batches = {
        name: BatchMonitor(streams, MonitorSettings(odds_margin=margin), center, n_views, drift.groups)
        for name, margin in (("margin 1.05", 1.05), ("margin 1", 1.0))
    }
    alarms = {name: np.full(streams, NEVER) for name in batches}
    charts = Charts(streams, NEVER)
    peers = start_peers(drift, n_peers, rows) if is_binary and n_peers else None
    for cohort, views in enumerate(draw_cohorts(drift, change, streams, rows, rng)):
        for name, batch in batches.items():
            is_alarm = batch.judge(*views) >= math.log(20)
            alarms[name] = np.where(is_alarm, np.minimum(alarms[name], cohort), alarms[name])
        if is_binary:
            charts.observe(cohort, views[0][0], views[1][0])
        if peers is not None:
            peers.observe(cohort, views[0][0, :n_peers], views[1][0, :n_peers])
    return alarms | (charts.alarms if is_binary else {}) | ({} if peers is None else peers.alarms)


def draw_cohorts(drift: Drift, change: int, streams: int, rows: int, rng: Rng) -> Iterator[tuple[Array, Array]]:
    """Probabilities and outcomes of each view and cohort, (views, streams, rows)."""
    for cohort in range(change + drift.cohorts):
        p = SCORES[drift.scores](rng, streams * rows)
        truth = drift.probabilities(p, cohort, change)
        if drift.groups:  # rows belong to groups in turn, of which the last one drifts
            truth = np.where(np.arange(len(p)) % rows % drift.groups == drift.groups - 1, truth, p)
        yield _views(p, draw_labels(truth, rng), streams)


def start_peers(drift: Drift, streams: int, rows: int) -> Peers:
    """The monitors of other packages, with cohorts for reference that are drawn for each stream."""
    rng = np.random.default_rng([REFERENCE_COHORTS, *drift.name.encode()])
    p = SCORES[drift.scores](rng, streams * REFERENCE_COHORTS * rows)
    p, y = _views(p, draw_labels(p, rng), streams)
    return Peers((p[0], y[0]), NEVER)


def _describe_delay(alarms: Array, change: int, cohorts: int) -> str:
    """Median and 90 % quantile of the delays of the streams without a false alarm."""
    delays = alarms[alarms >= change] - change + 1
    if not len(delays):
        return ""
    texts = [
        f"{value:.0f}" if value <= cohorts else f"> {cohorts}"
        for value in (np.quantile(delays, q, method="inverted_cdf") for q in (0.5, 0.9))
    ]
    return f"{texts[0]} ({texts[1]})"


def _promises(rows: Sequence[Mapping[str, Any]], plan: Plan) -> tuple[Mapping[str, Any], ...]:
    """For each method what it promises, and the range over all drifts of its share of false alarms."""
    table = []
    for name, promise in PROMISES.items():
        shares = {
            change: [row["false"][name] for row in rows if row["change"] == change and name in row["false"]]
            for change in plan.changes
        }
        seen = {f"before cohort {change}": _percents(values) if values else None for change, values in shares.items()}
        table.append({"method": name, "promised": promise, **seen})
    return tuple(table)


def _percents(shares: Sequence[float]) -> str:
    return f"{format_range([100 * share for share in shares], 0)} %"


def _summarize(rows: Sequence[Mapping[str, Any]]) -> str:
    """In words, how often the monitor alarmed without a drift."""
    streams = sum(row["streams"] for row in rows)
    rate = sum(row["streams"] * row["alarms 5 %"] for row in rows) / streams
    largest = max(rows, key=lambda row: row["alarms 5 %"])
    exceeding = sum(
        clopper_pearson(round(row["alarms 5 %"] * row["streams"]), row["streams"])[0] > 0.05 for row in rows
    )
    return (
        f"Of {streams:,} streams in {len(rows)} designs without an error beyond the margin, {rate:.2%} have an alarm at"
        f" alpha = .05; at most {largest['alarms 5 %']:.1%} in one design ({largest['scores']}, {largest['rows']} rows"
        f" per cohort). The rate is significantly above 5 % in {exceeding} designs."
    )
