"""Description of the machine: processor, cores, memory, interpreter, and load."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any


def described() -> dict[str, Any]:
    """Facts about the machine, as far as available."""
    known = _cpuinfo()
    flags = known.get("flags", "").split()
    return {
        "cpu": known.get("model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "avx512": "avx512f" in flags if flags else None,
        "memory_gb": _memory(),
        "system": platform.system(),
        "python": sys.version.split()[0],
        "load": round(os.getloadavg()[0], 1),  # mean number of runnable processes in the last minute
    }


def sentence(about: dict[str, Any]) -> str:
    """Description of the machine in one line."""
    vector_extension = {True: "AVX-512", False: "no AVX-512", None: "AVX-512 unknown"}[about["avx512"]]
    return (
        f"{about['cpu']}, {about['cores']} cores, {vector_extension}, {about['memory_gb']} GB, {about['system']}, "
        f"Python {about['python']}, load {about['load']}"
    )


def busy(about: dict[str, Any]) -> bool:
    """Whether the load exceeds the number of cores; the benchmark itself keeps one process busy."""
    return about["load"] > 1.25 * about["cores"]


def _cpuinfo() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _memory() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
    except (ValueError, OSError):
        return None
