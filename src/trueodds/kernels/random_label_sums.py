"""Sum the weights of rows per cell for labels drawn from the predicted probabilities, for many draws at once.

The sums are those of null draws: what would be observed in each cell, such as a bin and class, if the predictions were
calibrated. With few classes, labels are not stored; each label is an interval of random integers, and its weight is
added to the draws whose integer lies in the interval.

Total variation distances process the cells one after the other: only the sums of one cell, for all draws, are in
memory.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, draws_per_block, map_blocks, sum_blocks
from trueodds.kernels.random_labels import (
    MAX_COMPARED_CLASSES,
    draw_labels_by_row,
    fill_guide,
    fill_thresholds,
    find_class,
    label_threshold,
    n_guide_bits,
)
from trueodds.kernels.random_streams import (
    DRAW_RANGE,
    SHORT_RANGE,
    fill_uniform_words,
    row_dither,
    row_stream_key,
    uniform_integer,
)

MAX_DRAWS_PER_BLOCK = 512  # with few classes, so that the sums stay in the core's own cache
MAX_VECTORIZED_CELLS = 2**16  # number of cells above which labels are drawn one by one, best for rows sorted by cell
ROWWISE_DRAWS_PER_BLOCK = 256  # of labels drawn row by row, so that the cells of a row serve many draws
MAX_LABELS = 2**26  # number of labels, drawn row by row, in memory
MIN_ROWS_OF_SHORT_INTEGERS = 2**16  # rows from which on thresholds of 16 bits are used: twice as many draws at a time
ROWS_PER_COUNT = 2**16 - 1  # rows that one table counts at a time, so that 16-bit counts do not overflow


@compile_kernel
def _add_weights(labels, w, tables, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to the cell of its label, for labels (rows, draws) and sums `out` (cells, draws).

    `w` is (rows,), and `tables` (tables, rows, K) as in `sum_label_weights`.
    """
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
        out[r] += weight if np.uint32(integers[r] - low) < width else weight - weight  # a zero of the type of weight


@compile_kernel
def _add_weights_vectorized(P, numbers, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Draw labels and add the weights of `_add_weights`, for few classes and rows that do not share random numbers.

    The loops over the draws are vectorized. Consecutive labels with the same cell are one interval of random integers.
    """
    k = P.shape[1]
    cumulative = np.empty(k)
    skipped = start & 1
    words = np.empty((stop - start + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + stop - start]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
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
def _count_labels(P, numbers, tables, key, start, counts):  # type: ignore[no-untyped-def]
    """Add 1 to the cell of each label in `counts` (cells, draws) uint16, for rows P (rows, K).

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
        stream = row_stream_key(key, numbers[i])
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
def _add_independent_weights(P, numbers, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to the cells of its labels, drawn independently for each class, in `out`."""
    k = P.shape[1]
    for i in range(P.shape[0]):
        for c in range(k):
            stream = row_stream_key(key, numbers[i] * k + c)
            bound = label_threshold(np.float64(P[i, c]), row_dither(stream), DRAW_RANGE)
            for r in range(start, stop):
                if uniform_integer(stream, r) < bound:
                    for table in range(tables.shape[0]):
                        cell = tables[table, i, c]
                        if cell >= 0:
                            out[cell, r - start] += w[i]


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
    short_integers: bool | None = None,
    row_numbers: Array | None = None,
) -> Array:
    """Return the total weight per draw and cell, (stop − start, size), with labels drawn from the probabilities.

    If label c of row i is drawn, its weight is added to the cell `tables[t, i, c]` of each table t, unless it is −1.
    With `independent` (multilabel) each class is drawn on its own; otherwise labels are compared with the thresholds of
    all classes, and `DrawnLabels` with `sum_weights_of_labels` is faster if `needs_single_labels`. `short_integers` (by
    default as `allows_short_integers` says) draws rows of weight 1 with 16-bit integers, which is faster and gives
    other labels than `draw_labels`. Rows with the same of `row_numbers`, 0..n−1 by default, have the same labels.
    """
    P, w, tables = as_plain_array(P), as_plain_array(w), as_plain_array(tables)
    numbers = as_plain_array(np.arange(len(P)) if row_numbers is None else row_numbers)
    if not independent and (allows_short_integers(w) if short_integers is None else short_integers):
        return _count_labels_in_blocks(P, numbers, tables, size, key, start, stop)
    add = _add_independent_weights if independent else _add_weights_vectorized
    sums = np.empty((stop - start, size))

    def sum_draws(first: int, last: int) -> None:
        out = np.zeros((size, last - first), dtype=_dtype_of_sums(w))
        add(P, numbers, w, tables, key, first + start, last + start, out)
        sums[first:last] = out.T

    block = draws_per_block(size)
    block = block if independent else max(block, min(MAX_DRAWS_PER_BLOCK, 2**19 // max(1, size)))
    map_blocks(sum_draws, stop - start, min(block, max(1, -(-(stop - start) // 2))))  # for two threads at least
    return sums


@compile_kernel
def _add_values(P, numbers, values, key, start, out):  # type: ignore[no-untyped-def]
    """Add to `out` (draws,) the value (rows, K) of the label of each row, drawn as in `_add_weights_vectorized`."""
    k = P.shape[1]
    cumulative = np.empty(k)
    skipped = start & 1
    words = np.empty((out.shape[0] + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + out.shape[0]]
    shift = 32 - n_guide_bits(k)
    guide = np.empty(1 << (32 - shift), dtype=np.int32)
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        if k > 2:
            fill_guide(cumulative, shift, guide)
            for r in range(integers.shape[0]):
                out[r] += values[i, find_class(cumulative, guide, shift, integers[r])]
        else:
            low, high = values[i, 0], values[i, 1]
            if cumulative[0] == DRAW_RANGE:
                high = low
            bound = np.uint32(min(cumulative[0], DRAW_RANGE - 1))
            for r in range(integers.shape[0]):
                out[r] += low if integers[r] < bound else high


def sum_label_values(
    P: Array, values: Array, key: int, start: int, stop: int, row_numbers: Array | None = None
) -> Array:
    """Return the sum over rows of the value (n, K) of each row's label, (stop − start,), with labels drawn from P."""
    P, values = as_plain_array(P), as_plain_array(values)
    numbers = as_plain_array(np.arange(len(P)) if row_numbers is None else row_numbers)
    sums = np.zeros(stop - start)

    def sum_draws(first: int, last: int) -> None:
        _add_values(P, numbers, values, key, first + start, sums[first:last])

    map_blocks(sum_draws, stop - start, min(MAX_DRAWS_PER_BLOCK, max(1, -(-(stop - start) // 2))))
    return sums


def allows_short_integers(w: Array) -> bool:
    """Return whether labels of rows with these weights (n,) are drawn with 16-bit integers: many rows of weight 1."""
    return len(w) >= MIN_ROWS_OF_SHORT_INTEGERS and bool((w == 1).all())


def needs_single_labels(k: int, size: int, cluster_probability: float) -> bool:
    """Return whether labels of k classes are drawn one by one before their weights are added to `size` cells."""
    return k > MAX_COMPARED_CLASSES or size > MAX_VECTORIZED_CELLS or cluster_probability > 0


def sum_weights_of_labels(labels: Array, w: Array, tables: Array, size: int) -> Array:
    """Return the sums of `sum_label_weights` for given labels (n, draws), (draws, size)."""
    w, tables, draws = as_plain_array(w), as_plain_array(tables), labels.shape[1]
    sums = np.empty((draws, size))

    def sum_draws(first: int, last: int) -> None:
        out = np.zeros((size, last - first), dtype=_dtype_of_sums(w))
        _add_weights(labels[:, first:last], w, tables, out)
        sums[first:last] = out.T

    block = max(8, min(ROWWISE_DRAWS_PER_BLOCK, 2**24 // max(1, size)))
    map_blocks(sum_draws, draws, min(block, max(1, -(-draws // 2))))  # for two threads at least
    return sums


def _dtype_of_sums(w: Array) -> np.dtype[Any]:
    """Return the type of sums of these weights: integer counts are exact and take half the memory."""
    return np.dtype(np.int32 if bool((w == 1).all()) else np.float64)


class DrawnLabels:
    """Labels that are drawn row by row (see `draw_labels`), for as many draws at once as fit into memory."""

    def __init__(
        self,
        P: Array,
        key: int,
        draws: int,
        *,
        row_numbers: Array | None = None,
        cluster: Array | None = None,
        cluster_probability: float = 0.0,
    ) -> None:
        self.P, self.key, self.draws = P, key, draws
        self.row_numbers, self.cluster, self.cluster_probability = row_numbers, cluster, cluster_probability
        self.first, self.block = 0, np.empty((len(P), 0), dtype=np.uint8)

    def labels(self, start: int, stop: int) -> Array:
        if not self.first <= start <= stop <= self.first + self.block.shape[1]:
            last = min(self.draws, max(stop, start + MAX_LABELS // max(1, len(self.P))))
            self.first, self.block = start, np.empty((len(self.P), 0), dtype=np.uint8)  # frees the previous block
            self.block = draw_labels_by_row(
                self.P,
                self.key,
                start,
                last,
                row_numbers=self.row_numbers,
                cluster=self.cluster,
                cluster_probability=self.cluster_probability,
            )
        return self.block[:, start - self.first : stop - self.first]


def _count_labels_in_blocks(
    P: Array, numbers: Array, tables: Array, size: int, key: int, start: int, stop: int
) -> Array:
    """Return the number of rows per cell and draw, (stop − start, size), for labels drawn with integers of 16 bits."""
    totals, lock = np.zeros((size, stop - start), dtype=np.int32), threading.Lock()

    def add_rows(first: int, last: int) -> None:
        counts = np.zeros(totals.shape, dtype=np.uint16)
        _count_labels(P[first:last], numbers[first:last], tables[:, first:last], key, start, counts)
        with lock:  # integer sums do not depend on their order
            totals.__iadd__(counts)

    map_blocks(add_rows, len(P), max(1, ROWS_PER_COUNT // len(tables)))
    return totals.T.astype(np.float64)


CELLS_PER_BLOCK = 16  # minimum number of cells per thread task
MAX_PARTIAL_SUMS = 2**19  # number of partial sums, one per draw and thread task, in memory


@compile_inline
def _add_drawn_weights(integers, cumulative, outcomes, weight, sums):  # type: ignore[no-untyped-def]
    """Add the weight of one row to the outcome of its label in each draw, in `sums` (outcomes, draws)."""
    low = 0.0
    for c in range(cumulative.shape[0]):
        width = cumulative[c] - low
        if width > 0:
            outcome_sums = sums[outcomes[c]]
            if width == DRAW_RANGE:
                for r in range(integers.shape[0]):
                    outcome_sums[r] += weight
            else:
                add_where_between(outcome_sums, integers, np.uint32(low), np.uint32(width), weight)
        low = cumulative[c]


@compile_kernel
def _add_residual_norms(P, numbers, outcomes, w, wp, rows, first, start, stop, key, draws, is_searched, sums, out):  # type: ignore[no-untyped-def]
    """Add Σ|Σw(p − y)| of the cells start..stop−1 to `out` (draws,), with labels drawn from the predictions.

    The outer sum is over cells and outcomes, the inner one over the rows of a cell. `is_searched` says that classes are
    found by guided search; `sums` (m, draws) is a buffer.
    """
    k, m = P.shape[1], wp.shape[1]
    shift = 32 - n_guide_bits(k)
    cumulative, guide = np.empty(k), np.empty(1 << (32 - shift), dtype=np.int32)
    words = np.empty((draws + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[:draws]
    for cell in range(start, stop):
        sums[:] = 0
        for i in rows[first[cell] : first[cell + 1]]:
            stream = row_stream_key(key, numbers[i])
            fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
            fill_uniform_words(stream, 0, words)
            outcome, weight = outcomes[i % outcomes.shape[0]], sums.dtype.type(w[i])
            if is_searched:
                fill_guide(cumulative, shift, guide)
                for r in range(draws):
                    sums[outcome[find_class(cumulative, guide, shift, integers[r])], r] += weight
            else:
                _add_drawn_weights(integers, cumulative, outcome, weight, sums)
        for j in range(m):
            outcome_sums, expected = sums[j], wp[cell, j]
            for r in range(draws):
                out[r] += abs(expected - outcome_sums[r])


def drawn_total_variation(
    P: Array,
    outcomes: Array,
    w: Array,
    wp: Array,
    rows: Array,
    first: Array,
    key: int,
    draws: int,
    row_numbers: Array | None = None,
) -> Array:
    """Return Σ|Σw(p − y)| / (2 Σw) for each draw: the weighted mean over cells of the total variation distance.

    Labels are drawn from P (n, K). `outcomes` (1, K) or (n, K) is the outcome of the view, 0..m−1, for each label, `w`
    (n,) the weights and `wp` (cells, m) their sums with the predictions. `rows` are the rows of positive weight, sorted
    by cell, and `first` (cells + 1,) the start of each cell in them. `row_numbers` are those in the random streams.
    """
    is_unweighted, is_searched = bool((w == 1).all()), P.shape[1] > MAX_COMPARED_CLASSES
    dtype = np.int32 if is_unweighted else np.float64  # integer counts are exact and take half the memory
    outcomes = outcomes.astype(np.int32, copy=False)
    numbers = np.arange(len(P)) if row_numbers is None else row_numbers
    P, numbers, outcomes, w, wp, rows, first = (
        as_plain_array(array) for array in (P, numbers, outcomes, w, wp, rows, first)
    )

    def add_cells(start: int, stop: int, out: Array) -> None:
        sums = np.empty((wp.shape[1], draws), dtype=dtype)
        _add_residual_norms(P, numbers, outcomes, w, wp, rows, first, start, stop, key, draws, is_searched, sums, out)

    norms = sum_blocks(add_cells, len(wp), (draws,), block=CELLS_PER_BLOCK, max_values=MAX_PARTIAL_SUMS)
    return norms / (2 * w.sum())
