"""How does one tool work at its jobs? A process that reads orders, a JSON line each, and answers on standard output."""

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
    """One tool with the job it holds at the moment."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tool = importlib.import_module(TOOLS[name])
        self.prepared: dict[str, Timed] = {}

    def hello(self) -> dict[str, Any]:
        """Who answers, and to which questions."""
        tool = self.tool
        return {
            "version": importlib.metadata.version(tool.DISTRIBUTION) if tool.DISTRIBUTION else "",
            "python": sys.version.split()[0],
            "questions": sorted(tool.ANSWERS),
            "too_slow": getattr(tool, "TOO_SLOW", {}),
            "differs": getattr(tool, "DIFFERS", {}),
        }

    def load(self, job: str, folder: str) -> dict[str, Any]:
        """Read the job's arrays and prepare what the tool takes; the labels of what can be timed."""
        (selected,) = jobs.named([job])
        self.prepared = labeled(self.tool.ANSWERS[selected.question](data.load(selected.data, Path(folder))))
        return {"labels": list(self.prepared)}

    def run(self, label: str, times: int, memory: bool) -> dict[str, Any]:
        """Time it."""
        return self.prepared[label].run(times, memory=memory)

    def drop(self) -> dict[str, Any]:
        """Let the arrays go."""
        self.prepared = {}
        return {}


def labeled(answer: Any) -> dict[str, Timed]:
    """A tool may give one call, or several by label; the one without a label is its main one."""
    calls: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {"": answer}
    return {label: call if isinstance(call, Timed) else Timed(call) for label, call in calls.items()}


def answered(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the work gave, or what went wrong: one tool's failure at one job must not end the race."""
    try:
        return work()
    except Exception as fault:  # noqa: BLE001 - any fault of a stranger's code
        return {"failed": f"{type(fault).__name__}: {fault}".splitlines()[0][:200], "trace": traceback.format_exc()}


def main(name: str) -> None:
    """Answer until there are no more orders."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a tool prints must not stand between the answers
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
