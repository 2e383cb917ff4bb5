"""Ratios of run times, agreement of results, and a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import machine
from benchmarks.jobs import Job, named
from benchmarks.race import Measurement, Results
from benchmarks.tools import LIMIT, OURS


@dataclass(frozen=True)
class JobResult:
    """One job with all its measurements."""

    job: Job
    ours: Measurement | None  # our main call
    also: list[Measurement]  # our other calls
    peers: list[Measurement]  # timed peers, fastest first
    copies: list[Measurement]
    missing: list[Measurement]  # too slow, or failed
    differs: dict[str, str]  # peer -> why its value is not compared

    @property
    def rivals(self) -> list[Measurement]:
        """The peers included in the ratio: their value agrees, or estimates the same quantity with other draws."""
        return [peer for peer in self.peers if self.agrees(peer) is not False]

    @property
    def ratio(self) -> float | None:
        """Time of the fastest peer divided by ours."""
        return None if self.ours is None else self.against(self.ours)

    def against(self, call: Measurement) -> float | None:
        """The same ratio for another call of trueodds."""
        return self.rivals[0].min_wall / call.min_wall if self.rivals else None

    @property
    def cpu_ratio(self) -> float | None:
        """The same ratio in CPU time, with the peer that uses the least; a busy machine affects it less."""
        if self.ours is None or not self.rivals:
            return None
        return min(min(peer.cpu) for peer in self.rivals) / min(self.ours.cpu)

    def agrees(self, peer: Measurement) -> bool | None:
        """Whether a value agrees with ours within the tolerance of the job; None if they are not compared."""
        if self.ours is None or peer.tool in self.differs or not peer.value or not self.ours.value:
            return None
        if len(peer.value) != len(self.ours.value):
            return False
        return bool(np.max(np.abs(np.subtract(peer.value, self.ours.value))) <= self.job.tolerance)

    def copying(self, label: str) -> float | None:
        """Our time relative to the time of copying the same array."""
        copy = next((measurement for measurement in self.copies if measurement.label == label), None)
        return None if copy is None or self.ours is None else self.ours.min_wall / copy.min_wall

    def within_limit(self, call: Measurement) -> bool | None:
        """Whether one of our calls is within its time limit."""
        limit = self.job.time_limits.get(call.label)
        return None if limit is None else call.min_wall <= limit


def job_results(results: Results) -> list[JobResult]:
    """The measurements by job, in the order of the jobs."""
    names = list(dict.fromkeys(measurement.job for measurement in results.measurements))
    return [_job_result(job, results) for job in named(names)]


def _job_result(job: Job, results: Results) -> JobResult:
    measurements = [measurement for measurement in results.measurements if measurement.job == job.name]
    timed = [measurement for measurement in measurements if measurement.wall]
    ours = [measurement for measurement in timed if measurement.tool == OURS]
    differs = {
        tool: about["differs"][job.question]
        for tool, about in results.tools.items()
        if job.question in about["differs"]
    }
    return JobResult(
        job,
        next((measurement for measurement in ours if not measurement.label), None),
        [measurement for measurement in ours if measurement.label],
        sorted(
            (measurement for measurement in timed if measurement.tool not in (OURS, LIMIT)),
            key=lambda measurement: measurement.min_wall,
        ),
        [measurement for measurement in timed if measurement.tool == LIMIT],
        [measurement for measurement in measurements if not measurement.wall],
        differs,
    )


BUSY = "The machine was busy with other work: CPU times are more reliable than wall times."
HEADER = ("", "min", "median", "CPU", "extra peak", "value", "")


def text(results: Results) -> str:
    """The complete output for the terminal."""
    lines = [machine.sentence(results.machine), versions(results)]
    lines += [f"left out: {reason}" for reason in results.absent]
    lines += [BUSY] if machine.busy(results.machine) else []
    for job_result in job_results(results):
        lines += ["", f"{job_result.job.title}  ({results.shapes[job_result.job.data]})", *aligned(rows(job_result))]
        lines += [f"  {measurement.tool}: {measurement.note}" for measurement in job_result.missing]
        lines += [f"  {summary(job_result)}"] if summary(job_result) else []
    return "\n".join(lines)


def versions(results: Results) -> str:
    """`torch 2.13.0, …`."""
    return ", ".join(f"{tool} {about['version']}".strip() for tool, about in results.tools.items())


def rows(job_result: JobResult) -> list[tuple[str, ...]]:
    """The header, and a row for each timed call."""
    ours = [] if job_result.ours is None else [job_result.ours]
    table = [HEADER]
    for measurement in [*ours, *job_result.also, *job_result.peers, *job_result.copies]:
        name = f"{measurement.tool}{', ' if measurement.label else ''}{measurement.label}"
        peak = "" if measurement.peak is None else f"{measurement.peak:.{int(measurement.peak < 10)}f} MB"
        table.append((
            name, seconds(measurement.min_wall), seconds(float(np.median(measurement.wall))),
            seconds(min(measurement.cpu)), peak,
            " ".join(f"{v:.6f}" for v in measurement.value[:2]), _remark(job_result, measurement),
        ))  # fmt: skip
    return table


def _remark(job_result: JobResult, measurement: Measurement) -> str:
    if measurement.tool == OURS:
        within_limit, limit = job_result.within_limit(measurement), job_result.job.time_limits.get(measurement.label)
        return "" if within_limit is None else f"{'within' if within_limit else 'OVER'} {seconds(limit)}"
    if measurement.tool == LIMIT:
        return ""
    agreement = {True: "agrees", False: "DIFFERS", None: "not compared"}[job_result.agrees(measurement)]
    return f"{agreement}, {measurement.note}" if measurement.note else agreement


def summary(job_result: JobResult) -> str:
    """`torchmetrics ÷ ours = 13.2, from arrays 4.1; CPU 12; ours = 1.4 × copyto, 0.5 × copy`."""
    parts = []
    if job_result.ratio is not None:
        also = "".join(
            f", {measurement.label} {job_result.against(measurement):.3g}" for measurement in job_result.also
        )
        parts.append(
            f"{job_result.rivals[0].tool} ÷ ours = {job_result.ratio:.3g}{also}; CPU {job_result.cpu_ratio:.3g}"
        )
    copies = [
        f"{times:.3g} × {measurement.label}"
        for measurement in job_result.copies
        if (times := job_result.copying(measurement.label)) is not None
    ]
    if copies:
        parts.append("ours = " + ", ".join(copies))
    return "; ".join(parts)


def seconds(t: float) -> str:
    """Format a time with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if t >= 0.9995 * size:
            return f"{t / size:.3g} {unit}"
    return f"{t / 1e-6:.3g} µs"


def aligned(table: Sequence[tuple[str, ...]]) -> list[str]:
    """Format columns of equal width, with numbers right-aligned."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if i in (0, 6) else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
