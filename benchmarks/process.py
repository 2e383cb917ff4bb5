"""CPU time, wall time, and peak memory of a new process, each the minimum of several runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cost:
    """Resources used by one process."""

    cpu: float  # seconds
    wall: float  # seconds
    peak: float  # MB


def cost(command: Sequence[str], repeats: int = 1, *, empty_cache: bool = False) -> Cost:
    """The minimum of each quantity over several runs; with `empty_cache` each compiles its kernels anew."""
    runs = [once(command, empty_cache=empty_cache) for _ in range(repeats)]
    return Cost(min(r.cpu for r in runs), min(r.wall for r in runs), min(r.peak for r in runs))


def once(command: Sequence[str], *, empty_cache: bool = False) -> Cost:
    """One run; wait4 returns the resources of this child process alone."""
    with tempfile.TemporaryFile() as stderr, tempfile.TemporaryDirectory() as folder:
        environment = os.environ | ({"NUMBA_CACHE_DIR": folder} if empty_cache else {})
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            stderr.seek(0)
            raise SystemExit(f"{' '.join(command[:3])} failed:\n{stderr.read().decode()}")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kilobytes
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / unit)


def command_line() -> list[str]:
    """Path of the `trueodds` command of this interpreter."""
    return [str(Path(sys.executable).with_name("trueodds"))]


def write(path: Path, rows: int, dtype: str = "float64") -> None:
    """Write predictions for ten classes in a separate process.

    What this process ever held counts into its children's peak memory, so it has to stay small.
    """
    maker = Path(__file__).with_name("predictions.py")
    subprocess.run([sys.executable, str(maker), str(path), str(rows), dtype], check=True)
