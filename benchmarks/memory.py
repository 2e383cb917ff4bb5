"""Peak memory of a call, in excess of the memory resident before."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_of(work: Callable[[], T]) -> tuple[T, float]:
    """Result of the call, and its peak memory in megabytes."""
    _returned()
    if not _reset():
        before = _highest()
        return work(), _highest() - before  # without the reset, only growth beyond an earlier peak is visible
    before = _status("VmRSS")
    result = work()
    return result, max(0.0, _status("VmHWM") - before)


def _returned() -> None:
    """Return freed memory to the system, so that a job cannot reuse memory of an earlier one."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _reset() -> bool:
    try:
        RESET.write_text("5")  # sets the high-water mark to what is resident
    except OSError:
        return False
    return True


def _status(name: str) -> float:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def _highest() -> float:
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
