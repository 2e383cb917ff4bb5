"""Worker process of one tool: it reads commands as JSON lines and replies on standard output."""

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

from benchmarks import data, jobs
from benchmarks.timed import Timed
from benchmarks.tools import TOOLS


class Worker:
    """One tool with its current job."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tool = importlib.import_module(TOOLS[name])
        self.prepared: dict[str, Timed] = {}

    def hello(self) -> dict[str, Any]:
        """Name of the tool, and the tasks that it supports."""
        tool = self.tool
        return {
            "version": importlib.metadata.version(tool.DISTRIBUTION) if tool.DISTRIBUTION else "",
            "python": sys.version.split()[0],
            "questions": sorted(tool.ANSWERS),
            "too_slow": getattr(tool, "TOO_SLOW", {}),
            "differs": getattr(tool, "DIFFERS", {}),
        }

    def load(self, job: str, folder: str) -> dict[str, Any]:
        """Load the arrays of a job and prepare the calls of the tool; return the labels of the calls."""
        (selected,) = jobs.named([job])
        self.prepared = labeled(self.tool.ANSWERS[selected.question](data.load(selected.data, Path(folder))))
        return {"labels": list(self.prepared)}

    def run(self, label: str, times: int, memory: bool) -> dict[str, Any]:
        """Time a call."""
        return self.prepared[label].run(times, memory=memory)

    def drop(self) -> dict[str, Any]:
        """Release the arrays."""
        self.prepared = {}
        return {}


def labeled(answer: Any) -> dict[str, Timed]:
    """A tool may provide one call, or several by label; the call without a label is the main one."""
    calls: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {"": answer}
    return {label: call if isinstance(call, Timed) else Timed(call) for label, call in calls.items()}


def answered(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The reply or the error message: the failure of one tool at one job must not stop the benchmark."""
    try:
        return work()
    except Exception as fault:  # noqa: BLE001 - any fault of a stranger's code
        return {"failed": f"{type(fault).__name__}: {fault}".splitlines()[0][:200], "trace": traceback.format_exc()}


def main(name: str) -> None:
    """Reply until there are no more commands."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of a tool must not mix with the replies
    try:
        worker = Worker(name)
    except ImportError as absent:
        print(json.dumps({"absent": str(absent)}), file=out, flush=True)
        return
    print(json.dumps(worker.hello()), file=out, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        work = getattr(worker, order.pop("do"))
        print(json.dumps(answered(lambda work=work, order=order: work(**order))), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
