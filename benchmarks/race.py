"""Comparison of run times: every tool runs in a separate process, and the tools take turns at each job."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import data, jobs, machine
from benchmarks.jobs import Job
from benchmarks.process import ROOT
from benchmarks.tools import LIMIT, OURS, TOOLS

TURN = 0.05  # seconds: a short job is repeated within a turn, so that the processor is not idle before it
CALLS = 10  # at most, in one turn


@dataclass
class Measurement:
    """Measurements of one tool for one job."""

    job: str
    tool: str
    label: str = ""
    wall: list[float] = field(default_factory=list)  # seconds of each call
    cpu: list[float] = field(default_factory=list)
    peak: float | None = None  # MB above what was resident
    value: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def min_wall(self) -> float:
        """Minimum wall time, which has the least noise."""
        return min(self.wall, default=float("inf"))

    def add(self, answer: dict[str, Any]) -> None:
        """Add the measurements of one turn."""
        if "failed" in answer:
            self.note = answer["failed"]
            return
        self.wall += answer["wall"]
        self.cpu += answer["cpu"]
        self.value = answer["value"]


@dataclass
class Results:
    """All measurements, with the machine and the versions."""

    machine: dict[str, Any]
    tools: dict[str, dict[str, Any]]
    absent: list[str]
    shapes: dict[str, str]
    measurements: list[Measurement]
    scale: float = 1.0


class Runner:
    """One tool in a separate process."""

    def __init__(self, tool: str, python: str) -> None:
        self.tool = tool
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process, until close()
        self.process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "benchmarks.worker", tool],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
        )
        self.about = self._answer()

    def ask(self, do: str, **order: Any) -> dict[str, Any]:
        """Send a command and wait for the reply."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a process that ended does not reply; the caller reports why
            print(json.dumps({"do": do, **order}), file=self.process.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
        self.stderr.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            return json.loads(line)
        self.process.wait()
        self.stderr.seek(0)
        last = self.stderr.read().decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        return {"failed": f"the process ended: {last[0][:200]}", "ended": True}


def run(args: argparse.Namespace) -> Results:
    """Start the tools, run each job in turns, and stop the tools."""
    chosen = jobs.named(args.jobs)
    runners, absent = start(args.tools, args.peers or [sys.executable])
    try:
        with tempfile.TemporaryDirectory() as name:
            folder, shapes, measurements = Path(name), {}, []
            for key in dict.fromkeys(job.data for job in chosen):
                data.save(key, args.scale, folder)
                shapes[key] = data.shape(data.load(key, folder))
            for job in chosen:
                print(f"{job.name} …", file=sys.stderr, flush=True)
                measurements += at(job, runners, folder, args.repeats, args.patience)
        about = {runner.tool: runner.about for runner in runners}
        return Results(machine.described(), about, absent, shapes, measurements, args.scale)
    finally:
        for runner in runners:
            runner.close()


def start(names: Sequence[str] | None, peers: Sequence[str]) -> tuple[list[Runner], list[str]]:
    """Every tool that can be imported.

    trueodds and the copy run in this interpreter, a peer in the first interpreter that has it.
    """
    runners, absent = [], []
    for tool in dict.fromkeys((OURS, LIMIT, *(names or TOOLS))):
        if tool not in TOOLS:
            raise SystemExit(f"There is no tool {tool}. Known: {', '.join(TOOLS)}.")
        for python in [sys.executable] if tool in (OURS, LIMIT) else peers:
            runner = Runner(tool, python)
            if "failed" not in runner.about and "absent" not in runner.about:
                runners.append(runner)
                break
            reason = runner.about.get("absent") or runner.about["failed"]
            runner.close()
        else:
            absent.append(f"{tool}: {reason}")
    return runners, absent


@dataclass
class Entry:
    """One call of one tool, with its number of turns."""

    runner: Runner
    one: Measurement
    turns: int = 0
    calls: int = 0


def at(job: Job, runners: Sequence[Runner], folder: Path, repeats: int, patience: float) -> list[Measurement]:
    """Run one job: warm up each tool, time all tools in turns, and finally measure memory."""
    entries = [entry for runner in runners for entry in entered(job, runner, folder, repeats, patience)]
    for turn in range(repeats):
        for entry in entries:
            if turn < entry.turns:
                entry.one.add(entry.runner.ask("run", label=entry.one.label, times=entry.calls, memory=False))
    for entry in entries:
        if entry.turns:
            entry.one.peak = entry.runner.ask("run", label=entry.one.label, times=1, memory=True).get("peak")
    for runner in runners:
        runner.ask("drop")
    return [entry.one for entry in entries]


def entered(job: Job, runner: Runner, folder: Path, repeats: int, patience: float) -> list[Entry]:
    """The calls of a tool for a job, each run once or twice.

    Empty if the tool does not support the job, and without times if it fails.
    """
    about = runner.about
    if job.question not in about["questions"]:
        return []
    if reason := about["too_slow"].get(job.name):
        return [Entry(runner, Measurement(job.name, runner.tool, note=reason))]
    loaded = runner.ask("load", job=job.name, folder=str(folder))
    if "failed" in loaded:
        return [Entry(runner, Measurement(job.name, runner.tool, note=loaded["failed"]))]
    return [warmed(Measurement(job.name, runner.tool, label), runner, repeats, patience) for label in loaded["labels"]]


def warmed(measurement: Measurement, runner: Runner, repeats: int, patience: float) -> Entry:
    """Run the first call, which determines the number of further calls."""
    last = runner.ask("run", label=measurement.label, times=1, memory=True)
    measurement.peak = last.get("peak")
    if "failed" not in last and last["wall"][0] <= patience:  # a first call may compile, or import what it needs
        last = runner.ask("run", label=measurement.label, times=1, memory=False)
    if "failed" in last:
        measurement.note = last["failed"]
        return Entry(runner, measurement)
    turns, calls = plan(last["wall"][0], repeats, patience)
    if not turns:
        measurement.add(last)
        measurement.note = "timed once"
    return Entry(runner, measurement, turns, calls)


def plan(took: float, repeats: int, patience: float) -> tuple[int, int]:
    """Number of turns, and of calls per turn, given the time of one call; zero if it is too slow."""
    if 2 * took > patience:
        return 0, 0
    return max(1, min(repeats, int(patience / took) - 1)), max(1, min(CALLS, int(TURN / took)))
