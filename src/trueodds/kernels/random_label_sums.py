"""Sum the weights of rows per cell for labels drawn from the predicted probabilities, for many draws at once."""

from __future__ import annotations

import threading

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, draws_per_block, map_blocks
from trueodds.kernels.random_labels import MAX_COMPARED_CLASSES, _draw_label_tiles, fill_thresholds, label_threshold
from trueodds.kernels.random_streams import (
    DRAW_RANGE,
    SHORT_RANGE,
    fill_uniform_words,
    row_dither,
    row_stream_key,
    uniform_integer,
)

MAX_DRAWS_PER_BLOCK = 512  # with few classes, so that the sums stay in the core's own cache


@compile_kernel
def _add_weights(labels, w, tables, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to the cell of its label, for labels (rows, draws) and sums `out` (cells, draws)."""
    for i in range(labels.shape[0]):
        weight = out.dtype.type(w[i])
        for table in range(tables.shape[0]):
            cells = tables[table, i]
            for r in range(labels.shape[1]):
                cell = cells[labels[i, r]]
                if cell >= 0:
                    out[cell, r] += weight


@compile_kernel
def add_where_between(out, integers, low, width, weight):  # type: ignore[no-untyped-def]
    """Add `weight` to `out` (draws,) where low ≤ integer < low + width, by one comparison in unsigned arithmetic."""
    for r in range(integers.shape[0]):
        out[r] += weight if np.uint32(integers[r] - low) < width else weight - weight


@compile_kernel
def _add_weights_vectorized(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the weights of `_add_weights` for few classes and independent rows, with vectorized loops over the draws.

    Consecutive labels with the same cell are treated as one interval of random integers.
    """
    k = P.shape[1]
    cumulative = np.empty(k)
    skipped = start & 1
    words = np.empty((stop - start + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + stop - start]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, i)
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        weight = out.dtype.type(w[i])
        for table in range(tables.shape[0]):
            c = 0
            while c < k:
                first, cell = c, tables[table, i, c]
                while c < k and tables[table, i, c] == cell:
                    c += 1
                if cell < 0:
                    continue
                low = cumulative[first - 1] if first > 0 else 0.0
                if cumulative[c - 1] - low == DRAW_RANGE:
                    for r in range(integers.shape[0]):
                        out[cell, r] += weight
                else:
                    add_where_between(out[cell], integers, np.uint32(low), np.uint32(cumulative[c - 1] - low), weight)


@compile_kernel
def _count_where_between(counts, integers, low, width):  # type: ignore[no-untyped-def]
    """Add 1 to `counts` (draws,) where low ≤ integer < low + width, in unsigned arithmetic of 16 bits."""
    for r in range(integers.shape[0]):
        counts[r] += np.uint16(np.uint16(integers[r] - low) < width)


@compile_kernel
def _count_twice_where_between(counts1, counts2, integers, low, width):  # type: ignore[no-untyped-def]
    """Add 1 to `counts1` and to `counts2` (draws,) where low ≤ integer < low + width, in 16-bit unsigned arithmetic."""
    for r in range(integers.shape[0]):
        is_between = np.uint16(np.uint16(integers[r] - low) < width)
        counts1[r] += is_between
        counts2[r] += is_between


@compile_kernel
def _count_labels(P, tables, first, key, start, counts):  # type: ignore[no-untyped-def]
    """Add 1 to the cell of each label in `counts` (cells, draws) uint16, for rows P (rows, K) numbered from `first`.

    Thresholds and random integers have 16 bits: four draws share a random word. Consecutive labels with the same cell
    are one interval of random integers. Tables are read in pairs, because two tables that separate the same labels
    share the comparisons.
    """
    k, draws, n_tables = P.shape[1], counts.shape[1], tables.shape[0]
    cumulative = np.empty(k)
    skipped = start & 3
    words = np.empty((draws + skipped + 3) >> 2, dtype=np.uint64)
    integers = words.view(np.uint16)[skipped : skipped + draws]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, first + i)
        fill_thresholds(P, i, row_dither(stream), SHORT_RANGE, cumulative)
        fill_uniform_words(stream, start >> 2, words)
        for table in range(0, n_tables, 2):
            c = 0
            while c < k:
                low = cumulative[c - 1] if c > 0 else 0.0
                cell = tables[table, i, c]
                next_cell = tables[table + 1, i, c] if table + 1 < n_tables else -1
                c += 1
                while (
                    c < k
                    and tables[table, i, c] == cell
                    and (table + 1 == n_tables or tables[table + 1, i, c] == next_cell)
                ):
                    c += 1
                width = cumulative[c - 1] - low
                if width == 0 or (cell < 0 and next_cell < 0):
                    continue
                if width == SHORT_RANGE:
                    if cell >= 0:
                        counts[cell] += np.uint16(1)
                    if next_cell >= 0:
                        counts[next_cell] += np.uint16(1)
                elif cell >= 0 and next_cell >= 0:
                    _count_twice_where_between(
                        counts[cell], counts[next_cell], integers, np.uint16(low), np.uint16(width)
                    )
                else:
                    _count_where_between(
                        counts[cell if cell >= 0 else next_cell], integers, np.uint16(low), np.uint16(width)
                    )


@compile_kernel
def _add_independent_weights(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to the cells of its labels in `out` (cells, draws).

    The labels are drawn independently for each class.
    """
    k = P.shape[1]
    for i in range(P.shape[0]):
        for c in range(k):
            stream = row_stream_key(key, i * k + c)
            bound = label_threshold(np.float64(P[i, c]), row_dither(stream), DRAW_RANGE)
            for r in range(start, stop):
                if uniform_integer(stream, r) < bound:
                    for table in range(tables.shape[0]):
                        cell = tables[table, i, c]
                        if cell >= 0:
                            out[cell, r - start] += w[i]


MAX_VECTORIZED_CELLS = 2**16  # number of cells above which labels are drawn one by one, best for rows sorted by cell
ROWWISE_DRAWS_PER_BLOCK = 256  # of labels drawn row by row, so that the tables of a row serve many draws
MIN_ROWS_OF_SHORT_INTEGERS = 2**16  # rows from which on thresholds of 16 bits are used: twice as many draws at a time
ROWS_PER_COUNT = 2**16 - 1  # rows that one table counts at a time, so that 16-bit counts do not overflow


def sum_label_weights(
    P: Array,
    w: Array,
    tables: Array,
    size: int,
    key: int,
    start: int,
    stop: int,
    *,
    independent: bool = False,
    row_numbers: Array | None = None,
    allow_short_integers: bool = True,
    cluster: Array | None = None,
    cluster_probability: float = 0.0,
) -> Array:
    """Return the total weight per cell and draw, with labels drawn from the predicted probabilities.

    Parameters
    ----------
    P : ndarray of shape (n, K)
        Probabilities from which the labels are drawn.
    w : ndarray of shape (n,)
        Weights.
    tables : ndarray of shape (tables, n, K), int
        `tables[t, i, c]` is the cell to which row i adds its weight if label c is drawn, or −1.
    size : int
        Number of cells.
    key, start, stop : int
        Key of the random numbers, first draw, and draw after the last one.
    independent : bool, default=False
        Draw each class independently of the others (multilabel).
    row_numbers : ndarray of shape (n,), optional
        Numbers of the rows, if they are sorted by cell for locality.
    allow_short_integers : bool, default=True
        Whether many unweighted rows are drawn with 16-bit integers, which gives other labels than `draw_labels`.
    cluster, cluster_probability : ndarray of shape (n,) and float
        As in `draw_labels`.

    Returns
    -------
    sums : ndarray of shape (stop − start, size)
    """
    P, tables = np.ascontiguousarray(P), np.ascontiguousarray(tables)
    vectorized = (
        P.shape[1] <= MAX_COMPARED_CLASSES
        and size <= MAX_VECTORIZED_CELLS
        and cluster_probability == 0
        and not independent
        and row_numbers is None
    )
    assert row_numbers is None or not independent
    numbers = np.arange(len(P)) if row_numbers is None else row_numbers
    is_unweighted = bool((w == 1).all())
    if vectorized and is_unweighted and allow_short_integers and len(P) >= MIN_ROWS_OF_SHORT_INTEGERS:
        return _count_labels_in_blocks(P, tables, size, key, start, stop)
    dtype = np.int32 if is_unweighted else np.float64  # integer counts are exact and take half the memory

    def work(first: int, last: int) -> Array:
        out = np.zeros((size, last - first), dtype=dtype)
        if vectorized:
            _add_weights_vectorized(P, w, tables, key, first + start, last + start, out)
        elif independent:
            _add_independent_weights(P, w, tables, key, first + start, last + start, out)
        else:
            for tile, labels in _draw_label_tiles(
                P, numbers, cluster, cluster_probability, key, first + start, last + start
            ):
                _add_weights(labels, w[tile], tables[:, tile], out)
        return out.T

    if vectorized or independent:
        block = draws_per_block(size)
        block = max(block, min(MAX_DRAWS_PER_BLOCK, 2**19 // max(1, size))) if vectorized else block
    else:
        block = max(8, min(ROWWISE_DRAWS_PER_BLOCK, 2**24 // max(1, size)))
    parts = map_blocks(work, stop - start, min(block, max(1, -(-(stop - start) // 2))))  # for two threads at least
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(np.float64, copy=False)


def _count_labels_in_blocks(P: Array, tables: Array, size: int, key: int, start: int, stop: int) -> Array:
    """Return the number of rows per cell and draw, (stop − start, size), for labels drawn with integers of 16 bits."""
    totals, lock = np.zeros((size, stop - start), dtype=np.int32), threading.Lock()

    def add_rows(first: int, last: int) -> None:
        """Count the labels of the rows first..last−1 with 16 bits and add them to the totals."""
        counts = np.zeros(totals.shape, dtype=np.uint16)
        _count_labels(P[first:last], tables[:, first:last], first, key, start, counts)
        with lock:  # integer sums do not depend on their order
            totals.__iadd__(counts)

    map_blocks(add_rows, len(P), max(1, ROWS_PER_COUNT // len(tables)))
    return totals.T.astype(np.float64)
