"""How many probabilities fit into the memory that this process may use: that of its container, else of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

MAX_PROBABILITIES = 20_000_000  # probabilities that are collected by default; more are tallied
BYTES_PER_PROBABILITY = 160  # of an audit of rows in memory, at its peak
BASE_BYTES = 450_000_000  # of the program and its libraries


@cache
def max_probabilities_in_memory() -> int:
    """Return the number of probabilities up to which rows are collected by default.

    The limit is that of the memory that exists, not of the memory that is free at the moment, so that a call on one
    machine, or in one container, always makes the same choice.
    """
    available = min(_memory_sizes(), default=None)
    if available is None:
        return MAX_PROBABILITIES
    return max(0, min(MAX_PROBABILITIES, (available - BASE_BYTES) // BYTES_PER_PROBABILITY))


def _memory_sizes() -> Iterator[int]:
    """Yield the bytes of memory of the machine, and the limits of the control groups of this process."""
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _limit_files(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")):
        with suppress(ValueError, OSError):  # no such file, or "max"
            yield int(file.read_text(encoding="ascii"))


def _limit_files(membership: Path, root: Path) -> Iterator[Path]:
    """Yield the files that contain the limits of the control groups of a process and of those around them."""
    lines: list[str] = []
    with suppress(OSError, UnicodeError):
        lines = membership.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = folder / path.lstrip("/")
        yield from (part / name for part in (group, *group.parents) if part.is_relative_to(folder))
