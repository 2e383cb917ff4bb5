"""Timing of a call: its argument is created, and its value extracted, outside the measured time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.memory import peak_of


@dataclass(frozen=True)
class Timed:
    """A timed call; preparation and extraction of the value are not timed."""

    call: Callable[..., Any]
    fresh: Callable[[], Any] | None = (
        None  # creates the argument, so that no cached result of the previous call is used
    )
    value: Callable[[Any], Any] | None = None  # extracts the numbers from the result, if it is not a number itself

    def run(self, times: int, *, memory: bool = False) -> dict[str, Any]:
        """Wall and CPU time of each call, optionally the extra peak memory, and the value of the last call."""
        wall, cpu, result, peak = [], [], None, None
        for _ in range(times):
            made = () if self.fresh is None else (self.fresh(),)
            if memory:
                result, peak = peak_of(lambda made=made: self._clocked(made, wall, cpu))
            else:
                result = self._clocked(made, wall, cpu)
        read = result if self.value is None else self.value(result)
        return {"wall": wall, "cpu": cpu, "peak": peak, "value": numbers(read)}

    def _clocked(self, made: tuple[Any, ...], wall: list[float], cpu: list[float]) -> Any:
        begun, spent = time.perf_counter(), time.process_time()
        result = self.call(*made)
        wall.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - spent)
        return result


def numbers(value: Any) -> list[float]:
    """A value as a list; empty for a call without a value, such as a copy."""
    array = np.ravel(np.asarray([] if value is None else value, dtype=np.float64))
    if not np.isfinite(array).all():
        raise ValueError(f"the value is {value}")
    return array.tolist()
