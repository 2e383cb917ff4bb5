"""What monitors report of streams: onset and error after a drift, and forecasts of real events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import trueodds as to
from trueodds.core.typing import Array
from trueodds_studies.common.data_files import load_parquet
from trueodds_studies.monitor.streams import DRIFTS, SCORES, Drift, Rng

CHANGE, AFTER = 20, 40  # cohorts before the change, and from it on
MISSED_EVENTS = 0.2  # share of the events that the planted drift turns into nonevents
ADULT_ROWS = 200  # per batch


class ReportPlan(Protocol):
    """What these cases read of the plan of the study."""

    @property
    def reports(self) -> int:
        """Number of streams."""

    @property
    def rows(self) -> int:
        """Rows per cohort."""

    @property
    def seed(self) -> int:
        """Seed of the streams."""


@dataclass(frozen=True)
class ReportCell:
    """A case."""

    case: str

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return self.case


def measure_report_cell(cell: ReportCell, plan: ReportPlan) -> Mapping[str, Any]:
    """The row of the table of reports."""
    rngs = [np.random.default_rng([plan.seed, *cell.case.encode(), stream]) for stream in range(plan.reports)]
    return {"case": cell.case, **_measure_reports_of_drift(_DRIFTS[cell.case], rngs, plan.rows)}


def _measure_reports_of_drift(drift: Drift, rngs: Sequence[Rng], rows: int) -> Mapping[str, Any]:
    """Coverage of the region of the onset and of the interval of the error, by reports at the end of the streams."""
    onset_errors, onset_hits, error_hits, widths, alarms = [], [], [], [], 0
    for rng in rngs:
        cohorts = CHANGE + AFTER
        p = SCORES[drift.scores](rng, cohorts * rows).reshape(cohorts, rows)
        truth = np.stack([drift.probabilities(row, cohort, CHANGE) for cohort, row in enumerate(p)])
        y = rng.random(p.shape) < truth
        monitor = to.Monitor(horizon=0, unit="integer")
        monitor.update(to.Predictions(y.ravel(), p.ravel()), np.repeat(np.arange(cohorts), rows), as_of=cohorts)
        report = monitor.report()
        start = 0
        if report.onset is not None:
            alarms += 1
            start = int(report.onset.since)
            onset_errors.append(abs(start - CHANGE))
            onset_hits.append(int(report.onset.earliest) <= CHANGE <= int(report.onset.latest))
        assert report.error is not None
        error = float((truth - p)[start:].mean())
        error_hits.append(report.error.interval.low <= error <= report.error.interval.high)
        widths.append(report.error.interval.high - report.error.interval.low)
    return {
        "streams": len(rngs), "alarms": alarms / len(rngs),
        "onset within its region": float(np.mean(onset_hits)) if alarms else None,
        "median distance of the onset": float(np.median(onset_errors)) if alarms else None,
        "error within its interval": float(np.mean(error_hits)), "width in points": 100 * float(np.mean(widths)),
    }  # fmt: skip


_DRIFTS = {drift.name: drift for drift in DRIFTS if drift.scores != "ten classes" and not drift.groups}
REPORT_CELLS = tuple(ReportCell(case) for case in _DRIFTS)


def reports_legend(rows: int) -> str:
    """The meaning of the columns of the table of reports."""
    return f"""A drift from cohort {CHANGE} on, {CHANGE + AFTER} cohorts of {rows:,} rows, margin 1.05, alpha = .05; the
report is read after the last cohort. onset within its region: share of the dated alarms whose region contains the
cohort of the change, which is promised for sudden changes only. error within its interval: share of the streams in
which the interval of 95 % contains the mean error of the rows since the reported onset."""


REAL_LEGEND = f"""Football: probabilities of three results, margin 1.05, alpha = .05. Adult: half of the rows fit a
Venn–Abers map of a random forest, the others are shuffled into batches of {ADULT_ROWS} rows; a drift turns this share
of the events into nonevents from batch {CHANGE} on. cohorts until the alarm: from the first cohort, or after the drift
(median)."""


def real_streams(data: str | Path | None, shuffles: int, seed: int) -> tuple[Mapping[str, Any], ...]:
    """Alarms of a monitor of football forecasts by week, and of the Adult data in batches, with and without a drift."""
    columns = load_parquet("fte_soccer.parquet", data, "date", "prob1", "probtie", "prob2", "label")
    P = np.column_stack([columns[name] for name in ("prob1", "probtie", "prob2")])
    date = np.asarray(columns["date"], dtype="datetime64[D]")
    monitor = to.Monitor(horizon="1d", unit="week")
    monitor.update(to.Predictions(columns["label"], P / P.sum(axis=1, keepdims=True)), date, as_of=date.max() + 8)
    report = monitor.report()
    football = {
        "stream": "football forecasts by week", "streams": 1, "alarms": float(report.alarm),
        "cohorts until the alarm": None if report.status.alarm_cohort is None else report.status.judged,
        "largest e-value": float(np.exp(report.status.max_log_evidence)),
    }  # fmt: skip
    columns = load_parquet("adult_rf_predictions.parquet", data, "y", "p")
    return football, *(_measure_adult(columns, share, shuffles, seed) for share in (0.0, MISSED_EVENTS))


def _measure_adult(columns: Mapping[str, Array], share: float, shuffles: int, seed: int) -> Mapping[str, Any]:
    """Alarms for shuffled batches of the half that did not fit the map; this share of later events is missed."""
    alarms, delays, largest = 0, [], 0.0
    for shuffle in range(shuffles):
        rng = np.random.default_rng([seed, shuffle])
        order = rng.permutation(len(columns["y"]))
        y, p = columns["y"][order], columns["p"][order]
        half = len(y) // 2
        calibrator = to.fit(to.Predictions(y[:half], p[:half]), "venn_abers")
        p = calibrator.recalibrate(to.Predictions(y[half:], p[half:])).p
        batch = np.arange(len(p)) // ADULT_ROWS
        y = y[half:] * (rng.random(len(p)) >= share * (batch >= CHANGE))
        monitor = to.Monitor(horizon=0, unit="integer")
        report = monitor.update(to.Predictions(y, p), batch, as_of=int(batch.max()) + 1).report()
        largest = max(largest, report.status.max_log_evidence)
        if report.alarm:
            alarms += 1
            delays.append(int(report.status.alarm_cohort or 0) - CHANGE + 1)
    name = f"Adult, {share:.0%} of the events missed from batch {CHANGE} on" if share else "Adult"
    return {
        "stream": name, "streams": shuffles, "alarms": alarms / shuffles,
        "cohorts until the alarm": float(np.median(delays)) if share and delays else None,
        "largest e-value": float(np.exp(largest)),
    }  # fmt: skip
