"""Describe the machine that runs the benchmarks: processor, cores, memory, interpreter, and load."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from pathlib import Path
from typing import Any


def describe_machine() -> dict[str, Any]:
    """Return facts about the machine by name; None for a fact that is not available."""
    cpu_facts = _read_cpu_facts()
    cpu_flags = cpu_facts.get("flags", "").split()
    return {
        "cpu": cpu_facts.get("model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "avx512": "avx512f" in cpu_flags if cpu_flags else None,
        "memory_gb": _memory_gb(),
        "system": platform.system(),
        "python": sys.version.split()[0],
        "date": datetime.date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),  # mean number of runnable processes in the last minute
    }


def machine_name(facts: dict[str, Any]) -> str:
    """Return the processor and the number of cores, for which results are kept.

    >>> machine_name({"cpu": "AMD EPYC", "cores": 2})
    'AMD EPYC, 2 cores'
    """
    return f"{facts['cpu']}, {facts['cores']} core{'' if facts['cores'] == 1 else 's'}"


def format_machine(facts: dict[str, Any]) -> str:
    """Return the facts of `describe_machine` in one line."""
    vector_extension = {True: "AVX-512", False: "no AVX-512", None: "AVX-512 unknown"}[facts["avx512"]]
    return (
        f"{machine_name(facts)}, {vector_extension}, {facts['memory_gb']} GB, {facts['system']}, "
        f"Python {facts['python']}, load {facts['load']}, {facts['date']}"
    )


def is_busy(facts: dict[str, Any]) -> bool:
    """Return whether the load exceeds the number of cores by 25 %; the benchmark itself keeps one process busy."""
    return facts["load"] > 1.25 * facts["cores"]


def _read_cpu_facts() -> dict[str, str]:
    """Return the entries of /proc/cpuinfo by name; empty on systems other than Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _memory_gb() -> int | None:
    """Return the physical memory in gigabytes, if known."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
    except (ValueError, OSError):
        return None
