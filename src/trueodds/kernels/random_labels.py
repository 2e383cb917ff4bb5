"""Draw labels from predicted probabilities with counter-based random numbers, and sum weights per cell and draw."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, draws_per_block, map_blocks

DRAW_RANGE = 4294967296.0  # random integers are below 2^32
SHORT_RANGE = 65536.0  # random integers of 16 bits are below 2^16
MAX_DRAWS_PER_BLOCK = 512  # with few classes, so that the sums stay in the core's own cache


@compile_kernel
def mix_bits(z):  # type: ignore[no-untyped-def]
    """Return 64 random bits from a counter, by the finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compile_kernel
def uniform_integer(stream, draw):  # type: ignore[no-untyped-def]
    """Return a uniform integer below 2^32, which depends only on the row's key and the number of the draw."""
    bits = mix_bits(stream + np.uint64((draw >> 1) + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32((bits >> np.uint64(32 * (draw & 1))) & np.uint64(0xFFFFFFFF))


@compile_kernel
def fill_uniform_words(stream, first, words):  # type: ignore[no-untyped-def]
    """Fill `words` with random bits: two uniform draws per word, from draw 2 · first on, the lower half first."""
    for j in range(words.shape[0]):
        words[j] = mix_bits(stream + np.uint64(first + j + 1) * np.uint64(0x9E3779B97F4A7C15))


@compile_kernel
def label_threshold(share, dither, n_integers):  # type: ignore[no-untyped-def]
    """Return how many of `n_integers` random integers represent a probability; randomized rounding makes it unbiased.

    `dither` in [0, 1) is the random number of the row (see `row_dither`).
    """
    return np.floor(share * n_integers + dither)


@compile_kernel
def row_stream_key(key, row):  # type: ignore[no-untyped-def]
    """Return the key of the random stream of one row."""
    return mix_bits(np.uint64(key) + np.uint64(row + 1) * np.uint64(0xD1B54A32D192ED03))


@compile_kernel
def row_dither(stream):  # type: ignore[no-untyped-def]
    """Return a uniform random number in [0, 1) for the row with this stream."""
    return np.float64(mix_bits(~stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compile_kernel
def fill_thresholds(P, i, dither, n_integers, cumulative):  # type: ignore[no-untyped-def]
    """Write the cumulative thresholds of the classes of row i to `cumulative` (K,)."""
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


@compile_kernel
def clustered_integer(stream, cluster_stream, share, draw):  # type: ignore[no-untyped-def]
    """Return the random integer of the row, or with probability `share` that of its cluster, in this draw."""
    if share > 0.0 and uniform_integer(mix_bits(cluster_stream), draw) < share * DRAW_RANGE:
        return uniform_integer(cluster_stream, draw)
    return uniform_integer(stream, draw)


@compile_kernel
def fill_guide(cumulative, shift, guide):  # type: ignore[no-untyped-def]
    """Write to `guide` the class of the smallest random integer with each value of the leading bits, u >> shift."""
    c = 0
    for leading in range(guide.shape[0]):
        smallest = np.float64(leading << shift)
        while cumulative[c] <= smallest:  # the last threshold is 2^32
            c += 1
        guide[leading] = c


@compile_kernel
def find_class(cumulative, guide, shift, u):  # type: ignore[no-untyped-def]
    """Return the first class whose cumulative threshold exceeds u, searched from the entry of `fill_guide` on."""
    c = guide[u >> shift]
    while cumulative[c] <= u:
        c += 1
    return c


@compile_kernel
def n_guide_bits(k):  # type: ignore[no-untyped-def]
    """Return the number of leading bits for a guide of K classes: about two entries or more per class."""
    bits = 4
    while (1 << bits) < 2 * k and bits < 16:
        bits += 1
    return bits


@compile_kernel
def _draw_labels(P, numbers, cluster, share, key, start, labels):  # type: ignore[no-untyped-def]
    """Write labels (rows, draws) of the rows P (rows, K); `numbers` (rows,) are the numbers of their streams."""
    k, draws = P.shape[1], labels.shape[1]
    shift = 32 - n_guide_bits(k)
    cumulative, guide = np.empty(k), np.empty(1 << (32 - shift), dtype=np.int32)
    skipped = start & 1
    words = np.empty((draws + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + draws]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_guide(cumulative, shift, guide)
        if share > 0.0:
            cluster_stream = row_stream_key(~np.uint64(key), cluster[i])
            for r in range(draws):
                u[r] = clustered_integer(stream, cluster_stream, share, start + r)
        else:
            fill_uniform_words(stream, start >> 1, words)
        for r in range(draws):
            labels[i, r] = find_class(cumulative, guide, shift, u[r])


@compile_kernel
def _add_weights(labels, w, tables, out):  # type: ignore[no-untyped-def]
    """Add the weight of each row to the cell of its label, for labels (rows, draws) and sums `out` (cells, draws)."""
    for i in range(labels.shape[0]):
        weight = out.dtype.type(w[i])
        for t in range(tables.shape[0]):
            cells = tables[t, i]
            for r in range(labels.shape[1]):
                cell = cells[labels[i, r]]
                if cell >= 0:
                    out[cell, r] += weight


@compile_kernel
def _add_where_between(out, u, low, width, weight):  # type: ignore[no-untyped-def]
    """Add `weight` to `out` (draws,) where low ≤ u < low + width, with one comparison in unsigned arithmetic."""
    for r in range(u.shape[0]):
        out[r] += weight if np.uint32(u[r] - low) < width else weight - weight


@compile_kernel
def _add_weights_vectorized(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the weights of `_add_weights` for few classes and independent rows, with vectorized loops over the draws.

    Consecutive labels with the same cell are treated as one interval of random integers.
    """
    k = P.shape[1]
    cumulative = np.empty(k)
    skipped = start & 1
    words = np.empty((stop - start + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + stop - start]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, i)
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        weight = out.dtype.type(w[i])
        for t in range(tables.shape[0]):
            c = 0
            while c < k:
                first, cell = c, tables[t, i, c]
                while c < k and tables[t, i, c] == cell:
                    c += 1
                if cell < 0:
                    continue
                low = cumulative[first - 1] if first > 0 else 0.0
                if cumulative[c - 1] - low == DRAW_RANGE:
                    for r in range(u.shape[0]):
                        out[cell, r] += weight
                else:
                    _add_where_between(out[cell], u, np.uint32(low), np.uint32(cumulative[c - 1] - low), weight)


@compile_kernel
def _count_where_between(counts, u, low, width):  # type: ignore[no-untyped-def]
    """Add 1 to `counts` (draws,) where low ≤ u < low + width, in unsigned arithmetic of 16 bits."""
    for r in range(u.shape[0]):
        counts[r] += np.uint16(np.uint16(u[r] - low) < width)


@compile_kernel
def _count_twice_where_between(counts, others, u, low, width):  # type: ignore[no-untyped-def]
    """Add 1 to `counts` and to `others` (draws,) where low ≤ u < low + width, in unsigned arithmetic of 16 bits."""
    for r in range(u.shape[0]):
        is_between = np.uint16(np.uint16(u[r] - low) < width)
        counts[r] += is_between
        others[r] += is_between


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
    u = words.view(np.uint16)[skipped : skipped + draws]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, first + i)
        fill_thresholds(P, i, row_dither(stream), SHORT_RANGE, cumulative)
        fill_uniform_words(stream, start >> 2, words)
        for t in range(0, n_tables, 2):
            c = 0
            while c < k:
                low = cumulative[c - 1] if c > 0 else 0.0
                cell = tables[t, i, c]
                next_cell = tables[t + 1, i, c] if t + 1 < n_tables else -1
                c += 1
                while c < k and tables[t, i, c] == cell and (t + 1 == n_tables or tables[t + 1, i, c] == next_cell):
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
                    _count_twice_where_between(counts[cell], counts[next_cell], u, np.uint16(low), np.uint16(width))
                else:
                    _count_where_between(counts[cell if cell >= 0 else next_cell], u, np.uint16(low), np.uint16(width))


@compile_kernel
def _add_independent_weights(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    k = P.shape[1]
    for i in range(P.shape[0]):
        for c in range(k):
            stream = row_stream_key(key, i * k + c)
            bound = label_threshold(np.float64(P[i, c]), row_dither(stream), DRAW_RANGE)
            for r in range(start, stop):
                if uniform_integer(stream, r) < bound:
                    for t in range(tables.shape[0]):
                        cell = tables[t, i, c]
                        if cell >= 0:
                            out[cell, r - start] += w[i]


MAX_COMPARED_CLASSES = 32  # number of classes up to which comparison with all thresholds is faster than a guided search
MAX_VECTORIZED_CELLS = 2**16  # number of cells above which labels are drawn one by one, best for rows sorted by cell
ROWWISE_DRAWS_PER_BLOCK = 256  # of labels drawn row by row, so that the tables of a row serve many draws
MIN_ROWS_OF_SHORT_INTEGERS = 2**16  # rows from which on thresholds of 16 bits are used: twice as many draws at a time
ROWS_PER_COUNT = 2**16 - 1  # rows that one table counts at a time, so that 16-bit counts do not overflow
LABELS_PER_TILE = 2**17  # number of labels of a tile, which stays in the cache while its weights are added up
_NO_CLUSTERS = np.empty(0, dtype=np.int64)


def draw_labels(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, cluster_probability: float = 0.0
) -> Array:
    """Draw a label for each row and draw from the predicted probabilities P (n, K), (stop − start, n).

    With probability `cluster_probability`, a row uses the random number of its cluster in a draw, otherwise its own.
    The result for a draw depends only on `key` and the number of the draw.
    """
    out = np.empty((stop - start, len(P)), dtype=np.int64)
    for rows, labels in _draw_label_tiles(P, np.arange(len(P)), cluster, cluster_probability, key, start, stop):
        out[:, rows] = labels.T
    return out


def _draw_label_tiles(
    P: Array, numbers: Array, cluster: Array | None, cluster_probability: float, key: int, start: int, stop: int
) -> Iterator[tuple[slice, Array]]:
    """Yield the labels (rows, draws) of one tile of rows after the other."""
    clusters = _NO_CLUSTERS if cluster is None else cluster
    rows_per_tile = max(1, LABELS_PER_TILE // max(1, stop - start))
    labels = np.empty((min(rows_per_tile, len(P)), stop - start), dtype=np.min_scalar_type(max(P.shape[1] - 1, 0)))
    for first in range(0, len(P), rows_per_tile):
        rows = slice(first, min(first + rows_per_tile, len(P)))
        tile = labels[: rows.stop - first]
        _draw_labels(P[rows], numbers[rows], clusters[rows], cluster_probability, key, start, tile)
        yield rows, tile


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
    cluster: Array | None = None,
    cluster_probability: float = 0.0,
) -> Array:
    """Return the total weight per cell and draw, (stop − start, size), with labels drawn from the predictions.

    `tables[t, i, c]` is the cell to which row i adds its weight if label c is drawn, or −1. With `independent` the
    labels are independent (multilabel). `row_numbers` are the numbers of the rows, if they are sorted by cell for
    locality. `cluster_probability` is as in `draw_labels`.
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
    if vectorized and is_unweighted and len(P) >= MIN_ROWS_OF_SHORT_INTEGERS:
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
        counts = np.zeros(totals.shape, dtype=np.uint16)
        _count_labels(P[first:last], tables[:, first:last], first, key, start, counts)
        with lock:  # integer sums do not depend on their order
            totals.__iadd__(counts)

    map_blocks(add_rows, len(P), max(1, ROWS_PER_COUNT // len(tables)))
    return totals.T.astype(np.float64)
