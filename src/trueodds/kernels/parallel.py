"""Run kernels over fixed blocks of rows on a thread pool, so that results do not depend on the number of threads."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array

S = TypeVar("S")
T = TypeVar("T")

VALUES_PER_ROW_BLOCK = 2**17  # values of a table that are processed at a time: 1 MB
MAX_SERIAL_ROWS = 4096  # number of rows up to which a second thread costs more than it saves
MAX_NUMPY_VALUES = 2**14  # number of values up to which compiling a kernel takes longer than NumPy takes in many calls
_thread_state = threading.local()  # nested calls run serially: a worker that waited for its own pool would deadlock


def count_threads() -> int:
    """Return the number of threads: TRUEODDS_THREADS, else the number of cores of this process."""
    if (n_threads := read_thread_variable("TRUEODDS_THREADS")) is not None:
        return n_threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_thread_variable(name: str) -> int | None:
    """Return the number of threads in an environment variable, None if it is not set; raise TO203 if it is invalid."""
    if not (setting := os.environ.get(name, "")):
        return None
    with suppress(ValueError):
        if (n_threads := int(setting)) > 0:
            return n_threads
    fix = f"Unset it, or set {name}=1."
    raise InputError("TO203", f"The environment variable {name} must be a positive integer.", describe(setting), fix)


@lru_cache(maxsize=1)
def _thread_pool(n_helpers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_helpers, thread_name_prefix="trueodds")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)  # a forked process has the pool, but not its threads


def map_blocks(work: Callable[[int, int], T], total: int, block: int) -> list[T]:
    """Run `work(start, stop)` over fixed blocks on a thread pool; the results are in the order of the blocks.

    `block` must not depend on the number of threads, so that results do not.
    """
    spans = [(start, min(start + block, total)) for start in range(0, total, block)]
    n_helpers = min(count_threads(), len(spans)) - 1 if len(spans) > 1 else 0
    if n_helpers < 1 or getattr(_thread_state, "is_in_block", False):
        return [work(*span) for span in spans]
    results: list[Any] = [None] * len(spans)
    next_span = itertools.count()
    abandoned = threading.Event()

    def run_next_spans() -> None:
        _thread_state.is_in_block, _thread_state.abandoned = True, abandoned
        try:
            while (i := next(next_span)) < len(spans):
                results[i] = work(*spans[i])
        finally:
            _thread_state.is_in_block, _thread_state.abandoned = False, None

    futures = [_thread_pool(count_threads() - 1).submit(run_next_spans) for _ in range(n_helpers)]
    try:
        run_next_spans()
        for future in futures:
            future.result()
    except BaseException:
        abandoned.set()
        next_span = itertools.count(len(spans))  # no thread starts another block
        wait(futures)
        raise
    return results


def is_abandoned() -> bool:
    """Return whether this thread computes blocks whose results are no longer needed, because another one failed."""
    abandoned = getattr(_thread_state, "abandoned", None)
    return abandoned is not None and abandoned.is_set()


def map_items(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Run `work(item)` for each item on a thread pool; the results are in the order of the items."""
    return [result for block in map_blocks(lambda i, _: [work(items[i])], len(items), 1) for result in block]


def map_columns(work: Callable[[int], T], n_columns: int, n_rows: int) -> list[T]:
    """Run `work(column)` for each column of a table, on several threads if it has many rows."""
    if n_rows <= MAX_SERIAL_ROWS:
        return [work(column) for column in range(n_columns)]
    return map_items(work, range(n_columns))


def map_rows_in_blocks(work: Callable[..., tuple[Array, ...]], *tables: Array) -> tuple[Array, ...]:
    """Compute results of each row, (n,), from blocks of the same rows of each table that fit into the cache."""
    n_rows, n_columns = tables[0].shape
    blocks = map_blocks(
        lambda start, stop: work(*(table[start:stop] for table in tables)),
        n_rows,
        max(1, VALUES_PER_ROW_BLOCK // max(1, n_columns)),
    )
    if len(blocks) == 1:
        return blocks[0]
    return tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True)) if blocks else work(*tables)


def sum_blocks(
    add: Callable[[int, int, Array], None], total: int, shape: tuple[int, ...], *, block: int, max_values: int = 2**19
) -> Array:
    """Return a sum over the rows 0..total−1, from partial sums that `add(start, stop, out)` computes on a thread pool.

    The partial sums are added in the order of the spans, which depend only on `total` and on the shape, so the result
    does not depend on the number of threads. There are at most 64 spans, of at least `block` rows, and as few as keep
    all partial sums together within `max_values`.
    """
    if total <= MAX_SERIAL_ROWS:
        sums = np.zeros(shape)
        if total:
            add(0, total, sums)
        return sums
    n_spans = max(2, min(64, max_values // max(1, math.prod(shape)), -(-total // block)))

    def sum_span(start: int, stop: int) -> Array:
        out = np.zeros(shape)
        add(start, stop, out)
        return out

    first, *others = map_blocks(sum_span, total, -(-total // n_spans))
    for partial_sum in others:
        first += partial_sum
    return first


def as_plain_array(x: Array) -> Array:
    """Return a C-contiguous, aligned, read-only view or copy, so that each kernel is compiled only once per dtype."""
    if x.dtype == np.float16:
        x = x.astype(np.float32)
    x = np.require(x, requirements=["C", "A"]).view()
    x.flags.writeable = False
    return x


def draws_per_block(size: int) -> int:
    """Return the number of draws (4 to 128) per block, whose sums, `size` numbers per draw, fit into the cache."""
    return max(4, min(128, 2**18 // max(1, size)))
