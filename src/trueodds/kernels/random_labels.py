"""Draw random signs and labels, and sum the weights of rows per cell for many draws of labels.

Random numbers are generated from counters: every row has a stream, an integer key from which the random bits of any
draw are computed directly, by the generator splitmix64 (Steele, Lea & Flood, 2014). So results do not depend on the
order of the computation. Random signs flip residuals: all residuals of a cluster get the same sign, +1 or −1 (a wild
bootstrap with Rademacher weights), so that the draws have the dependence of the residuals within clusters, and a mean
of 0.

A label is the first class whose cumulative probability exceeds a uniform random number. Both are compared as integers:
cumulative probabilities are rounded to thresholds, at random for each row, so that the expected rounding error is 0.
With many classes the search for the class starts from a guide table (Chen & Asau, 1974), indexed by the leading bits of
the random integer.

The sums are those of null draws: what would be observed in each cell, such as a bin and class, if the predictions were
calibrated. With few classes, labels are not stored; each label is an interval of random integers, and its weight is
added to the draws whose integer lies in the interval.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, draws_per_block, map_blocks

DRAW_RANGE = 4294967296.0  # random integers are below 2^32
SHORT_RANGE = 65536.0  # random integers of 16 bits are below 2^16


def random_bits(z: Any) -> Any:
    """Return 64 random bits from each counter z (uint64), by the finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


mix_bits = compile_kernel(random_bits)  # for kernels, which call it so often that inlined code would compile longer


@compile_inline
def uniform_integer(stream, draw):  # type: ignore[no-untyped-def]
    """Return the uniform integer below 2^32 of a draw in the stream with this key; two draws share 64 random bits."""
    bits = mix_bits(stream + np.uint64((draw >> 1) + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32((bits >> np.uint64(32 * (draw & 1))) & np.uint64(0xFFFFFFFF))


@compile_inline
def fill_uniform_words(stream, first, words):  # type: ignore[no-untyped-def]
    """Fill `words` with random bits: two uniform draws per word, from draw 2 · first on, the lower half first."""
    for j in range(words.shape[0]):
        words[j] = mix_bits(stream + np.uint64(first + j + 1) * np.uint64(0x9E3779B97F4A7C15))


@compile_inline
def row_stream_key(key, row):  # type: ignore[no-untyped-def]
    return mix_bits(np.uint64(key) + np.uint64(row + 1) * np.uint64(0xD1B54A32D192ED03))


@compile_inline
def row_dither(stream):  # type: ignore[no-untyped-def]
    """Return the uniform random number in [0, 1) by which the thresholds of the row with this stream are rounded."""
    return np.float64(mix_bits(~stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compile_inline
def clustered_integer(stream, cluster_stream, share, draw):  # type: ignore[no-untyped-def]
    """Return a row's random integer in this draw, or with probability `share` that of its cluster."""
    if share > 0.0 and uniform_integer(mix_bits(cluster_stream), draw) < share * DRAW_RANGE:
        return uniform_integer(cluster_stream, draw)
    return uniform_integer(stream, draw)


@compile_inline
def random_sign(stream, draw):  # type: ignore[no-untyped-def]
    bits = mix_bits(stream + np.uint64(draw // 64 + 1) * np.uint64(0x9E3779B97F4A7C15))
    return 1.0 if (bits >> np.uint64(draw % 64)) & np.uint64(1) else -1.0


@compile_kernel
def _fill_signs(n_clusters, key, start, stop, out):  # type: ignore[no-untyped-def]
    for cluster in range(n_clusters):
        stream = row_stream_key(key, cluster)
        for r in range(start, stop):
            out[r - start, cluster] = random_sign(stream, r)


@compile_kernel
def _add_signed_residuals(cluster, cells, residuals, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the residuals (n, m) times the signs of their clusters to their `cells` (n, m) in `out` (cells, draws)."""
    for i in range(cells.shape[0]):
        stream = row_stream_key(key, cluster[i])
        for r in range(start, stop):
            sign = random_sign(stream, r)
            for column in range(cells.shape[1]):
                out[cells[i, column], r - start] += sign * residuals[i, column]


def random_signs(n_clusters: int, key: int, start: int, stop: int) -> Array:
    """Return a random sign for each draw and cluster, (stop − start, clusters), as in `sum_sign_flips`."""
    out = np.empty((stop - start, n_clusters))
    _fill_signs(n_clusters, key, start, stop, out)
    return out


def sum_sign_flips(cluster: Array, cells: Array, residuals: Array, size: int, key: int, start: int, stop: int) -> Array:
    """Return the sums of residuals (n, m) with a random sign per cluster, by draw and cell, (stop − start, size)."""
    cluster, cells, residuals = as_plain_array(cluster), as_plain_array(cells), as_plain_array(residuals)

    def sum_draws(first: int, last: int) -> Array:
        out = np.zeros((size, last - first))
        _add_signed_residuals(cluster, cells, residuals, key, first + start, last + start, out)
        return out.T

    return np.concatenate(list(map_blocks(sum_draws, stop - start, draws_per_block(size))))


MAX_COMPARED_CLASSES = 32  # number of classes up to which comparison with all thresholds is faster than a guided search
ROWS_PER_BLOCK = 256  # number of rows per thread task
_NO_CLUSTERS = np.empty(0, dtype=np.int64)  # stands for clusters that are not used, with the same dtype


@compile_inline
def label_threshold(share, dither, n_integers):  # type: ignore[no-untyped-def]
    """Return the threshold below which a uniform integer below `n_integers` lies with the probability `share`.

    `dither` in [0, 1), a random number of the row, rounds it up or down, so that its expectation is exact.
    """
    return np.floor(share * n_integers + dither)


@compile_inline
def fill_thresholds(P, i, dither, n_integers, cumulative):  # type: ignore[no-untyped-def]
    """Write the thresholds of the cumulative probabilities of row i of P to `cumulative` (K,)."""
    total = 0.0
    last = 0
    k = P.shape[1]
    for c in range(k):
        total += np.float64(P[i, c])
        cumulative[c] = total
        if P[i, c] > 0:
            last = c
    for c in range(k):
        cumulative[c] = label_threshold(cumulative[c] / total, dither, n_integers)
    for c in range(last, k):
        cumulative[c] = n_integers  # a label with predicted probability 0 is never drawn


@compile_inline
def fill_guide(cumulative, shift, guide):  # type: ignore[no-untyped-def]
    """Write the guide table: for each value of the leading bits, u >> shift, the class of the smallest integer u."""
    c = 0
    for leading in range(guide.shape[0]):
        smallest = np.float64(leading << shift)
        while cumulative[c] <= smallest:  # the last threshold is 2^32
            c += 1
        guide[leading] = c


@compile_inline
def find_class(cumulative, guide, shift, integer):  # type: ignore[no-untyped-def]
    """Return the first class whose cumulative threshold exceeds a random integer, with the table of `fill_guide`."""
    c = guide[integer >> shift]
    while cumulative[c] <= integer:
        c += 1
    return c


@compile_inline
def n_guide_bits(k):  # type: ignore[no-untyped-def]
    """Return the number of leading bits for the guide table of k classes: two entries or more per class, up to 2¹⁶."""
    bits = 4
    while (1 << bits) < 2 * k and bits < 16:
        bits += 1
    return bits


@compile_kernel
def _draw_labels(P, numbers, cluster, share, key, start, labels):  # type: ignore[no-untyped-def]
    """Write labels (rows, draws) of the rows P (rows, K), for the draws from `start` on, by guided search.

    With probability `share`, a row uses the random integer of its `cluster` (rows,), which may be empty if it is 0.
    """
    k, draws = P.shape[1], labels.shape[1]
    shift = 32 - n_guide_bits(k)
    cumulative, guide = np.empty(k), np.empty(1 << (32 - shift), dtype=np.int32)
    skipped = start & 1
    words = np.empty((draws + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + draws]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_guide(cumulative, shift, guide)
        if share > 0.0:
            cluster_stream = row_stream_key(~np.uint64(key), cluster[i])
            for r in range(draws):
                integers[r] = clustered_integer(stream, cluster_stream, share, start + r)
        else:
            fill_uniform_words(stream, start >> 1, words)
        for r in range(draws):
            labels[i, r] = find_class(cumulative, guide, shift, integers[r])


def draw_labels(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, cluster_probability: float = 0.0
) -> Array:
    """Draw a label for each row and draw from the probabilities P (n, K); the labels are (stop − start, n) int64.

    The labels of a draw depend only on the key and the number of the draw. With the `cluster_probability`, all rows of
    a cluster use one random number in a draw, instead of their own.
    """
    labels = draw_labels_by_row(P, key, start, stop, cluster=cluster, cluster_probability=cluster_probability)
    return np.ascontiguousarray(labels.T, dtype=np.int64)


@compile_kernel
def _compare_with_thresholds(P, numbers, key, start, out):  # type: ignore[no-untyped-def]
    """Write the labels of `_draw_labels` without clusters: the number of thresholds at or below the random integer."""
    cumulative = np.empty(P.shape[1])
    skipped = start & 1
    words = np.empty((out.shape[1] + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + out.shape[1]]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        labels = out[i]
        labels[:] = 0
        for c in range(P.shape[1]):
            if cumulative[c] == DRAW_RANGE:
                break
            bound = np.uint32(cumulative[c])
            for r in range(integers.shape[0]):
                labels[r] += integers[r] >= bound


def draw_labels_by_row(
    P: Array,
    key: int,
    start: int,
    stop: int,
    *,
    row_numbers: Array | None = None,
    cluster: Array | None = None,
    cluster_probability: float = 0.0,
) -> Array:
    """Return the labels of `draw_labels` as (n, stop − start), in the smallest suitable integer type."""
    P = as_plain_array(P)
    numbers = as_plain_array(np.arange(len(P)) if row_numbers is None else row_numbers)
    clusters = as_plain_array(_NO_CLUSTERS if cluster is None else cluster)
    out = np.empty((len(P), stop - start), dtype=np.min_scalar_type(max(P.shape[1] - 1, 0)))

    def draw_rows(first: int, last: int) -> None:
        if P.shape[1] > MAX_COMPARED_CLASSES or cluster_probability > 0:
            _draw_labels(
                P[first:last],
                numbers[first:last],
                clusters[first:last],
                cluster_probability,
                key,
                start,
                out[first:last],
            )
        else:
            _compare_with_thresholds(P[first:last], numbers[first:last], key, start, out[first:last])

    map_blocks(draw_rows, len(P), ROWS_PER_BLOCK)
    return out


MAX_DRAWS_PER_BLOCK = 512  # with few classes, so that the sums stay in the core's own cache
MIN_DRAWS_PER_BLOCK = 16  # with fewer draws, the thresholds of a row take longer than the draws
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
def _add_weights_vectorized(P, numbers, w, tables, key, start, cumulative, words, integers, out):  # type: ignore[no-untyped-def]
    """Draw labels and add the weights of `_add_weights`, for few classes and rows that do not share random numbers.

    The loops over the draws are vectorized. Consecutive labels with the same cell are one interval of random integers.
    `cumulative` (K,), `words` and the `integers` in them, one per draw, are buffers.
    """
    k = P.shape[1]
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
    sums = np.empty((stop - start, size))

    def sum_draws(first: int, last: int) -> None:
        out = np.zeros((size, last - first), dtype=_dtype_of_sums(w))
        if independent:
            _add_independent_weights(P, numbers, w, tables, key, first + start, last + start, out)
        else:
            skipped = (first + start) % 2
            words = np.empty((skipped + last - first + 1) // 2, dtype=np.uint64)
            buffers = np.empty(P.shape[1]), words, words.view(np.uint32)[skipped : skipped + last - first]
            _add_weights_vectorized(P, numbers, w, tables, key, first + start, *buffers, out)
        sums[first:last] = out.T

    block = draws_per_block(size)
    block = block if independent else max(block, min(MAX_DRAWS_PER_BLOCK, 2**19 // max(1, size)))
    # For two threads at least, unless there are few draws.
    map_blocks(sum_draws, stop - start, min(block, max(MIN_DRAWS_PER_BLOCK, -(-(stop - start) // 2))))
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

    map_blocks(sum_draws, stop - start, min(MAX_DRAWS_PER_BLOCK, max(MIN_DRAWS_PER_BLOCK, -(-(stop - start) // 2))))
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
