"""Results of the comparison: measurements, their agreement with trueodds, and ratios of run times for each job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers.jobs import Job, select_jobs
from benchmarks.peers.tools import ARRAY_COPY, TRUEODDS


@dataclass
class Measurement:
    """Measurements of one call of one tool for one job."""

    job: str
    tool: str
    label: str = ""  # of the call; empty for the main one
    wall: list[float] = field(default_factory=list)  # seconds of each repeat; empty if it was not timed
    cpu: list[float] = field(default_factory=list)
    peak: float | None = None  # MB above what was resident before
    value: list[float] = field(default_factory=list)  # numbers of the result, to be compared
    note: str = ""  # why it was not timed, or timed only once

    @property
    def min_wall(self) -> float:
        """Minimum wall time, which has the least noise."""
        return min(self.wall, default=float("inf"))

    def add(self, reply: dict[str, Any]) -> None:
        """Add the measurements of one turn, as `TimedCall.run` returns them, or the error."""
        if "failed" in reply:
            self.note = reply["failed"]
            return
        self.wall += reply["wall"]
        self.cpu += reply["cpu"]
        self.value = reply["value"]


@dataclass
class Results:
    """All measurements, with the machine and the versions of the tools."""

    machine: dict[str, Any]  # of `machine.describe_machine`
    tools: dict[str, dict[str, Any]]  # replies of `Worker.describe`, by tool
    absent: list[str]  # tools that cannot be imported, with the reason
    shapes: dict[str, str]  # shape of the probabilities, by data set
    measurements: list[Measurement]
    scale: float = 1.0  # share of the rows of each data set


@dataclass(frozen=True)
class JobResult:
    """One job with all its measurements."""

    job: Job
    ours: Measurement | None  # main call of trueodds
    other_calls: list[Measurement]  # other calls of trueodds
    peers: list[Measurement]  # timed calls of other tools, fastest first
    copies: list[Measurement]  # copies of the array
    not_timed: list[Measurement]  # calls that were too slow, or failed
    differs: dict[str, str]  # why the value of a tool is not compared, by tool

    @property
    def timed(self) -> list[Measurement]:
        """The timed calls: of trueodds, of peers from fast to slow, and copies of the array."""
        return [*([] if self.ours is None else [self.ours]), *self.other_calls, *self.peers, *self.copies]

    @property
    def comparable_peers(self) -> list[Measurement]:
        """The peers whose value agrees, or estimates the same quantity with other draws; fastest first."""
        return [peer for peer in self.peers if self.agrees(peer) is not False]

    @property
    def ratio(self) -> float | None:
        """Time of the fastest comparable peer divided by that of the main call of trueodds."""
        return None if self.ours is None else self.ratio_to(self.ours)

    def ratio_to(self, call: Measurement) -> float | None:
        """Return the time of the fastest comparable peer divided by that of a call of trueodds."""
        return self.comparable_peers[0].min_wall / call.min_wall if self.comparable_peers else None

    @property
    def cpu_ratio(self) -> float | None:
        """The ratio in CPU time, with the peer that uses the least; other work of the machine affects it less."""
        if self.ours is None or not self.comparable_peers:
            return None
        return min(min(peer.cpu) for peer in self.comparable_peers) / min(self.ours.cpu)

    def agrees(self, peer: Measurement) -> bool | None:
        """Return whether a value agrees with ours within the tolerance of the job; None if they are not compared."""
        if self.ours is None or peer.tool in self.differs or not peer.value or not self.ours.value:
            return None
        if len(peer.value) != len(self.ours.value):
            return False
        return bool(np.max(np.abs(np.subtract(peer.value, self.ours.value))) <= self.job.tolerance)

    def time_in_copies(self, label: str) -> float | None:
        """Return the time of trueodds divided by that of copying the same array, in the way of this label."""
        copy = next((measurement for measurement in self.copies if measurement.label == label), None)
        return None if copy is None or self.ours is None else self.ours.min_wall / copy.min_wall

    def is_within_limit(self, call: Measurement) -> bool | None:
        """Return whether a call of trueodds is within its time limit; None if it has none."""
        limit = self.job.time_limits.get(call.label)
        return None if limit is None else call.min_wall <= limit


def results_by_job(results: Results) -> list[JobResult]:
    """Return the measurements by job, in the order in which the jobs were run."""
    names = list(dict.fromkeys(measurement.job for measurement in results.measurements))
    return [_result_of_job(job, results) for job in select_jobs(names)]


def _result_of_job(job: Job, results: Results) -> JobResult:
    measurements = [measurement for measurement in results.measurements if measurement.job == job.name]
    timed = [measurement for measurement in measurements if measurement.wall]
    ours = [measurement for measurement in timed if measurement.tool == TRUEODDS]
    peers = [measurement for measurement in timed if measurement.tool not in (TRUEODDS, ARRAY_COPY)]
    reasons = {tool: description["differs"].get(job.task) for tool, description in results.tools.items()}
    return JobResult(
        job,
        ours=next((measurement for measurement in ours if not measurement.label), None),
        other_calls=[measurement for measurement in ours if measurement.label],
        peers=sorted(peers, key=lambda measurement: measurement.min_wall),
        copies=[measurement for measurement in timed if measurement.tool == ARRAY_COPY],
        not_timed=[measurement for measurement in measurements if not measurement.wall],
        differs={tool: reason for tool, reason in reasons.items() if reason is not None},
    )
