"""Worker process of one tool: reads commands from standard input as JSON lines, and replies on standard output.

`run.ToolProcess` starts it. Each tool has its own process, and possibly its own interpreter, because the packages
require different versions of their dependencies.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers.job_data import load_data_set
from benchmarks.peers.jobs import select_jobs
from benchmarks.peers.timing import TimedCall
from benchmarks.peers.tools import TOOLS


class Worker:
    """One tool with the calls of its current job; the methods other than `describe` are the commands."""

    def __init__(self, name: str) -> None:
        self.tool = importlib.import_module(TOOLS[name])
        self.calls: dict[str, TimedCall] = {}  # of the current job, by label

    def describe(self) -> dict[str, Any]:
        """Return the version of the tool and the tasks that it supports."""
        tool = self.tool
        return {
            "version": importlib.metadata.version(tool.DISTRIBUTION) if tool.DISTRIBUTION else "",
            "python": sys.version.split()[0],
            "tasks": sorted(tool.CALLS_BY_TASK),
            "too_slow": getattr(tool, "TOO_SLOW", {}),
            "differs": getattr(tool, "DIFFERS", {}),
        }

    def load(self, job: str, folder: str) -> dict[str, Any]:
        """Load the arrays of a job and prepare the calls of the tool; return the labels of the calls."""
        (selected_job,) = select_jobs([job])
        arrays = load_data_set(selected_job.data, Path(folder))
        self.calls = as_timed_calls(self.tool.CALLS_BY_TASK[selected_job.task](arrays))
        return {"labels": list(self.calls)}

    def run(self, label: str, times: int, memory: bool) -> dict[str, Any]:
        """Time a call; see `TimedCall.run`."""
        return self.calls[label].run(times, memory=memory)

    def drop(self) -> dict[str, Any]:
        """Release the arrays of the current job."""
        self.calls = {}
        return {}


def as_timed_calls(calls: Any) -> dict[str, TimedCall]:
    """Return the calls of a tool by label: a tool provides several by label, or only its main one, labeled ""."""
    calls_by_label: Mapping[str, Any] = calls if isinstance(calls, Mapping) else {"": calls}
    return {label: call if isinstance(call, TimedCall) else TimedCall(call) for label, call in calls_by_label.items()}


def reply_or_error(command: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the reply to a command, or the message of its error, which must not stop the benchmark."""
    try:
        return command()
    except Exception as problem:  # noqa: BLE001 - another package may raise any error
        message = f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
        return {"failed": message, "trace": traceback.format_exc()}


def main(name: str) -> None:
    """Describe the tool of this name, then reply to commands until there are no more."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the tool prints must not mix with the replies
    try:
        worker = Worker(name)
    except ImportError as problem:
        print(json.dumps({"absent": str(problem)}), file=replies, flush=True)
        return
    print(json.dumps(worker.describe()), file=replies, flush=True)
    for line in sys.stdin:
        arguments = json.loads(line)
        command = getattr(worker, arguments.pop("command"))
        reply = reply_or_error(lambda command=command, arguments=arguments: command(**arguments))
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
