"""Number of probabilities that fit into the memory of this process, which is that of the machine or its container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

MAX_PROBABILITIES = 20_000_000  # largest number of probabilities that are kept in memory by default
BYTES_PER_PROBABILITY = 160  # peak memory of an audit of rows in memory, per probability
BASE_BYTES = 450_000_000  # memory of the program and its libraries


@cache
def max_probabilities_in_memory() -> int:
    """Return the number of probabilities up to which rows are kept in memory by default.

    The limit is that of the memory that exists, not of the memory that is free at the moment, so that a call on one
    machine, or in one container, always makes the same choice.
    """
    available = min(_memory_sizes(), default=None)
    if available is None:
        return MAX_PROBABILITIES
    return max(0, min(MAX_PROBABILITIES, (available - BASE_BYTES) // BYTES_PER_PROBABILITY))


def _memory_sizes() -> Iterator[int]:
    """Yield the bytes of memory of the machine, and the limits that Linux containers set for this process."""
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _limit_files(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")):
        with suppress(ValueError, OSError):  # no such file, or "max"
            yield int(file.read_text(encoding="ascii"))


def _limit_files(membership: Path, root: Path) -> Iterator[Path]:
    """Yield the files with the memory limits of the control groups (cgroups) of a process and of their parents.

    `membership` lists the groups, one per line as ``number:controllers:path``, and `root` is the folder of all groups.
    A line without controllers is of version 2 of control groups, whose files have other names than those of version 1.
    Not all of the files need exist.
    """
    lines: list[str] = []
    with suppress(OSError, UnicodeError):
        lines = membership.read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        is_version_2 = not controllers
        if is_version_2:
            folder, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = folder / path.lstrip("/")
        yield from (parent / name for parent in (group, *group.parents) if parent.is_relative_to(folder))
