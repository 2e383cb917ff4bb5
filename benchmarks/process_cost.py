"""Measure the CPU time, wall time, and peak memory of a new process, as the minimum of several runs.

The minimum is the value least affected by other processes on the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessCost:
    """Resources used by one process."""

    cpu: float  # seconds
    wall: float  # seconds
    peak: float  # MB of resident memory


def measure_process(command: Sequence[str], repeats: int = 1, *, empty_cache: bool = False) -> ProcessCost:
    """Return the minimum of each resource over several runs of a command.

    With `empty_cache`, numba's cache is empty at the start of each run, so that each compiles its kernels anew.
    """
    runs = [run_process(command, empty_cache=empty_cache) for _ in range(repeats)]
    return ProcessCost(
        cpu=min(run.cpu for run in runs), wall=min(run.wall for run in runs), peak=min(run.peak for run in runs)
    )


def run_process(command: Sequence[str], *, empty_cache: bool = False) -> ProcessCost:
    """Run a command once and return its resources; exit with its error output if it fails.

    `wait4` returns the resources of this child alone, whereas `getrusage` sums over all children.
    """
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryDirectory() as cache_folder:
        environment = os.environ | ({"NUMBA_CACHE_DIR": cache_folder} if empty_cache else {})
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            stderr.seek(0)
            raise SystemExit(f"{' '.join(command[:3])} failed:\n{stderr.read().decode()}")
    units_per_megabyte = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kilobytes
    return ProcessCost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / units_per_megabyte)


def trueodds_command() -> str:
    """Return the path of the `trueodds` command of this interpreter."""
    return str(Path(sys.executable).with_name("trueodds"))


def write_predictions_file(path: Path, rows: int, dtype: str = "float64") -> None:
    """Write simulated predictions of ten classes to a Parquet file, in a separate process.

    A child process starts with the peak memory of its parent, so this process must not hold the rows itself.
    """
    script = Path(__file__).with_name("write_predictions.py")
    subprocess.run([sys.executable, str(script), str(path), str(rows), dtype], check=True)
