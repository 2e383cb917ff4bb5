"""Compiled loops: nogil numba kernels over fixed blocks, so that no result depends on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba

T = TypeVar("T")


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled on first use and kept on disk; where no folder is writable, in memory."""
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no place for its cache
        return numba.njit(nogil=True, error_model="numpy")(function)


def threads() -> int:
    """How many threads to use: TRUEODDS_THREADS, else the cores of this process."""
    asked = os.environ.get("TRUEODDS_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_blocks(work: Callable[[int, int], T], total: int, block: int) -> Iterable[T]:
    """`work(start, stop)` over fixed blocks on a thread pool; results come in the order of the blocks."""
    spans = [(start, min(start + block, total)) for start in range(0, total, block)]
    if threads() == 1 or len(spans) == 1:
        return [work(*span) for span in spans]
    with ThreadPoolExecutor(threads()) as pool:
        return list(pool.map(lambda span: work(*span), spans))


def draws_at_once(size: int) -> int:
    """How many draws share a block of accumulators: as many as a core's own cache holds, from 8 to 128."""
    return max(8, min(128, 2**18 // max(1, size)))
