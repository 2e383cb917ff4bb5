"""Run the jobs with every tool in a process of its own; the tools take turns, so that all meet the same conditions."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.job_data import describe_shape, load_data_set, save_data_set
from benchmarks.peers.jobs import Job, select_jobs
from benchmarks.peers.machine import describe_machine
from benchmarks.peers.results import Measurement, Results
from benchmarks.peers.tools import ARRAY_COPY, TOOLS, TRUEODDS

ROOT = Path(__file__).parents[2]  # of the project
TURN_SECONDS = 0.05  # a short call is repeated for this time in each turn, so that the processor is not idle before it
MAX_CALLS_PER_TURN = 10


class ToolProcess:
    """A process with one tool, which runs the program of the module `worker`.

    `description` is the reply of `Worker.describe`, {"absent": reason} if the tool cannot be imported, or an error.
    """

    def __init__(self, tool: str, python: str) -> None:
        self.tool = tool
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process, until close()
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "benchmarks.peers.worker", tool],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
        )
        self.description = self._read_reply()

    def send(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command, the name of a method of `Worker`, and wait for the reply; {"failed": reason} for an error."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a process that ended does not reply; `_read_reply` reports why
            print(json.dumps({"command": command, **arguments}), file=self._process.stdin, flush=True)
        return self._read_reply()

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._stderr.close()

    def _read_reply(self) -> dict[str, Any]:
        """Return the next reply, or the last line of the error output if the process ended."""
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return json.loads(line)
        self._process.wait()
        self._stderr.seek(0)
        last_lines = self._stderr.read().decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return {"failed": f"the process ended: {last_lines[0][:200]}", "ended": True}


def run_jobs(
    job_names: Sequence[str] | None,
    tool_names: Sequence[str] | None,
    interpreters: Sequence[str] | None,
    repeats: int,
    max_seconds: float,
    scale: float,
) -> Results:
    """Start the tools, run each job with them, and stop them.

    None selects all jobs, all tools, and this interpreter. `repeats` is the number of turns of each tool at each job,
    `max_seconds` limits the time of one tool at one job, and `scale` is the share of the rows.
    """
    selected_jobs = select_jobs(job_names)
    processes, absent = start_tools(tool_names, interpreters or [sys.executable])
    try:
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            shapes: dict[str, str] = {}
            measurements: list[Measurement] = []
            for data_name in dict.fromkeys(job.data for job in selected_jobs):
                save_data_set(data_name, scale, folder)
                shapes[data_name] = describe_shape(load_data_set(data_name, folder))
            for job in selected_jobs:
                print(f"{job.name} …", file=sys.stderr, flush=True)
                measurements += run_job(job, processes, folder, repeats, max_seconds)
        descriptions = {process.tool: process.description for process in processes}
        return Results(describe_machine(), descriptions, absent, shapes, measurements, scale)
    finally:
        for process in processes:
            process.close()


def start_tools(names: Sequence[str] | None, interpreters: Sequence[str]) -> tuple[list[ToolProcess], list[str]]:
    """Return the processes of the tools that can be imported, and the other tools with the reason.

    trueodds and the copy run in this interpreter, a peer in the first interpreter that has it.
    """
    processes, absent = [], []
    for tool in dict.fromkeys((TRUEODDS, ARRAY_COPY, *(names or TOOLS))):
        if tool not in TOOLS:
            raise SystemExit(f"There is no tool {tool}. Known: {', '.join(TOOLS)}.")
        for python in [sys.executable] if tool in (TRUEODDS, ARRAY_COPY) else interpreters:
            process = ToolProcess(tool, python)
            if "failed" not in process.description and "absent" not in process.description:
                processes.append(process)
                break
            reason = process.description.get("absent") or process.description["failed"]
            process.close()
        else:
            absent.append(f"{tool}: {reason}")
    return processes, absent


@dataclass
class PlannedCall:
    """One call of one tool, with its measurements so far and how often it is still to be made."""

    process: ToolProcess
    measurement: Measurement
    n_turns: int = 0
    calls_per_turn: int = 0


def run_job(
    job: Job, processes: Sequence[ToolProcess], folder: Path, repeats: int, max_seconds: float
) -> list[Measurement]:
    """Run one job: a first call of each tool, then the timed calls in turns, and finally the peak memory."""
    planned_calls = [
        planned for process in processes for planned in plan_calls(job, process, folder, repeats, max_seconds)
    ]
    for turn in range(repeats):
        for planned in planned_calls:
            if turn < planned.n_turns:
                label, times = planned.measurement.label, planned.calls_per_turn
                planned.measurement.add(planned.process.send("run", label=label, times=times, memory=False))
    for planned in planned_calls:
        if planned.n_turns:
            reply = planned.process.send("run", label=planned.measurement.label, times=1, memory=True)
            planned.measurement.peak = reply.get("peak")
    for process in processes:
        process.send("drop")
    return [planned.measurement for planned in planned_calls]


def plan_calls(job: Job, process: ToolProcess, folder: Path, repeats: int, max_seconds: float) -> list[PlannedCall]:
    """Make each call of a tool for a job once or twice, and return how often it is to be made.

    Empty if the tool does not support the task. If it is known to be too slow, or fails, the measurement says so.
    """
    if job.task not in process.description["tasks"]:
        return []
    if reason := process.description["too_slow"].get(job.name):
        return [PlannedCall(process, Measurement(job.name, process.tool, note=reason))]
    reply = process.send("load", job=job.name, folder=str(folder))
    if "failed" in reply:
        return [PlannedCall(process, Measurement(job.name, process.tool, note=reply["failed"]))]
    return [
        make_first_call(Measurement(job.name, process.tool, label), process, repeats, max_seconds)
        for label in reply["labels"]
    ]


def make_first_call(measurement: Measurement, process: ToolProcess, repeats: int, max_seconds: float) -> PlannedCall:
    """Make a call once, and again if it is fast, because the first may compile or import; plan the timed calls."""
    reply = process.send("run", label=measurement.label, times=1, memory=True)
    measurement.peak = reply.get("peak")
    if "failed" not in reply and reply["wall"][0] <= max_seconds:
        reply = process.send("run", label=measurement.label, times=1, memory=False)
    if "failed" in reply:
        measurement.note = reply["failed"]
        return PlannedCall(process, measurement)
    n_turns, calls_per_turn = plan_turns(reply["wall"][0], repeats, max_seconds)
    if not n_turns:
        measurement.add(reply)
        measurement.note = "timed once"
    return PlannedCall(process, measurement, n_turns, calls_per_turn)


def plan_turns(seconds: float, repeats: int, max_seconds: float) -> tuple[int, int]:
    """Return the numbers of turns and of calls per turn, from the time of one call; zeros if it is too slow."""
    if 2 * seconds > max_seconds:
        return 0, 0
    n_turns = max(1, min(repeats, int(max_seconds / seconds) - 1))
    return n_turns, max(1, min(MAX_CALLS_PER_TURN, int(TURN_SECONDS / seconds)))
