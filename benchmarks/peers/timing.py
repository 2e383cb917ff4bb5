"""Time a call and measure its peak memory; creating its argument and reading its result are not timed."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

# Linux: the memory of this process, and the file that resets its peak.
_STATUS_FILE, _RESET_FILE = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class TimedCall:
    """A call of a tool, of which only `call` itself is timed."""

    call: Callable[..., Any]
    make_argument: Callable[[], Any] | None = None  # makes a new argument for each call, without cached results
    extract_value: Callable[[Any], Any] | None = None  # extracts the numbers to compare from the result

    def run(self, times: int, *, memory: bool = False) -> dict[str, Any]:
        """Make the call several times and return the measurements as JSON values.

        Keys: "wall" and "cpu", the seconds of each call; "peak", the extra memory of the last call in MB with `memory`,
        else None; "value", the numbers of the last result.
        """
        wall: list[float] = []
        cpu: list[float] = []
        result, peak = None, None
        for _ in range(times):
            arguments = () if self.make_argument is None else (self.make_argument(),)
            if memory:
                result, peak = measure_peak(lambda arguments=arguments: self._run_once(arguments, wall, cpu))
            else:
                result = self._run_once(arguments, wall, cpu)
        value = result if self.extract_value is None else self.extract_value(result)
        return {"wall": wall, "cpu": cpu, "peak": peak, "value": as_finite_list(value)}

    def _run_once(self, arguments: tuple[Any, ...], wall: list[float], cpu: list[float]) -> Any:
        """Make the call, append its times to `wall` and `cpu`, and return its result."""
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        result = self.call(*arguments)
        wall.append(time.perf_counter() - wall_start)
        cpu.append(time.process_time() - cpu_start)
        return result


def as_finite_list(value: Any) -> list[float]:
    """Return a number or an array as a list; empty for a call without a result, such as a copy."""
    array = np.ravel(np.asarray([] if value is None else value, dtype=np.float64))
    if not np.isfinite(array).all():
        raise ValueError(f"the value is {value}")
    return array.tolist()


def measure_peak(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a call, and how much its peak memory exceeds the memory before, in megabytes.

    Where the peak of the process cannot be reset, only growth beyond an earlier peak is visible.
    """
    _release_freed_memory()
    if not _reset_peak():
        peak_before = _peak_of_process()
        return work(), _peak_of_process() - peak_before
    resident_before = _read_status("VmRSS")
    result = work()
    return result, max(0.0, _read_status("VmHWM") - resident_before)


def _release_freed_memory() -> None:
    """Return freed memory to the system, so that a call cannot reuse memory of an earlier one unnoticed."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> bool:
    """Set the peak memory of the process to what is resident now; return False where that is not possible."""
    try:
        _RESET_FILE.write_text("5", encoding="utf-8")  # the command of Linux for the peak, see proc(5)
    except OSError:
        return False
    return True


def _read_status(name: str) -> float:
    """Return an entry of the status file in megabytes: VmRSS is resident memory, VmHWM its peak."""
    line = next(line for line in _STATUS_FILE.read_text(encoding="utf-8").splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def _peak_of_process() -> float:
    """Return the peak memory since the process was started, in megabytes."""
    units_per_megabyte = 1 << 20 if sys.platform == "darwin" else 1 << 10  # macOS counts bytes, Linux kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / units_per_megabyte
