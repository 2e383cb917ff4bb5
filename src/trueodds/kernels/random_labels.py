"""Draw labels from predicted probabilities with counter-based random numbers, and sum weights per cell and draw."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compiled, draws_at_once, in_blocks

DRAW_RANGE = 4294967296.0  # random integers are below 2^32
AT_ONCE = 512  # maximum number of draws per block with few classes, so that sums stay in the core's own cache


@compiled
def mix_bits(z):  # type: ignore[no-untyped-def]
    """Return 64 random bits from a counter, by the finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def uniform(row_key, draw):  # type: ignore[no-untyped-def]
    """Return a uniform integer below 2^32, which depends only on the row's key and the number of the draw."""
    bits = mix_bits(row_key + np.uint64((draw >> 1) + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32((bits >> np.uint64(32 * (draw & 1))) & np.uint64(0xFFFFFFFF))


@compiled
def uniform_pairs(row_key, first, words):  # type: ignore[no-untyped-def]
    """Fill `words` with random bits: two uniform draws per word, from draw 2 · first on, the lower half first."""
    for j in range(words.shape[0]):
        words[j] = mix_bits(row_key + np.uint64(first + j + 1) * np.uint64(0x9E3779B97F4A7C15))


@compiled
def threshold(share, dither):  # type: ignore[no-untyped-def]
    """Return the number of the 2^32 integers that represent a probability; randomized rounding makes it unbiased.

    `dither` in [0, 1) is the random number of the row (see `dither_of`).
    """
    return np.floor(share * DRAW_RANGE + dither)


@compiled
def row_key(key, row):  # type: ignore[no-untyped-def]
    """Return the key of the random stream of one row."""
    return mix_bits(np.uint64(key) + np.uint64(row + 1) * np.uint64(0xD1B54A32D192ED03))


@compiled
def pick(cumulative, k, u):  # type: ignore[no-untyped-def]
    """Return the first class whose cumulative probability exceeds u, or the last possible class in case of rounding."""
    if k <= 16:  # comparison with all is faster than a search with unpredictable branches
        c = 0
        for before in range(k - 1):
            c += int(u >= cumulative[before])
        return c
    low, high = 0, k - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def dither_of(stream):  # type: ignore[no-untyped-def]
    """Return a uniform random number in [0, 1) for the row with this stream."""
    return np.float64(mix_bits(~stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def _accumulate(P, i, dither, cumulative):  # type: ignore[no-untyped-def]
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
        cumulative[c] = threshold(cumulative[c] / total, dither)
    for c in range(last, k):
        cumulative[c] = DRAW_RANGE  # a label with predicted probability 0 is never drawn


@compiled
def chance(stream, cluster_stream, share, draw):  # type: ignore[no-untyped-def]
    """Return the random integer of the row, or with probability `share` that of its cluster, in this draw."""
    if share > 0.0 and uniform(mix_bits(cluster_stream), draw) < share * DRAW_RANGE:
        return uniform(cluster_stream, draw)
    return uniform(stream, draw)


@compiled
def _labels(P, cluster, share, key, start, stop, out):  # type: ignore[no-untyped-def]
    cumulative = np.empty(P.shape[1])
    for i in range(P.shape[0]):
        stream = row_key(key, i)
        _accumulate(P, i, dither_of(stream), cumulative)
        cluster_stream = row_key(~np.uint64(key), cluster[i]) if share > 0.0 else stream
        for r in range(start, stop):
            out[r - start, i] = pick(cumulative, P.shape[1], chance(stream, cluster_stream, share, r))


@compiled
def _add_draws(P, w, tables, rows, cluster, share, key, start, stop, out):  # type: ignore[no-untyped-def]
    cumulative = np.empty(P.shape[1])
    for i in range(P.shape[0]):
        stream = row_key(key, rows[i] if rows.shape[0] > 0 else i)
        _accumulate(P, i, dither_of(stream), cumulative)
        cluster_stream = row_key(~np.uint64(key), cluster[i]) if share > 0.0 else stream
        for r in range(start, stop):
            c = pick(cumulative, P.shape[1], chance(stream, cluster_stream, share, r))
            for t in range(tables.shape[0]):
                bin_index = tables[t, i, c]
                if bin_index >= 0:
                    out[bin_index, r - start] += w[i]


@compiled
def _add_where_between(out, u, low, width, weight):  # type: ignore[no-untyped-def]
    """Add `weight` to `out` (draws,) where low ≤ u < low + width, with one comparison in unsigned arithmetic."""
    for r in range(u.shape[0]):
        out[r] += weight if np.uint32(u[r] - low) < width else weight - weight


@compiled
def _sums_small_k(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the weights of `_add_draws` for few classes and independent rows, with vectorized loops over the draws.

    Consecutive labels with the same cell are treated as one interval of random integers.
    """
    k = P.shape[1]
    cumulative = np.empty(k)
    skipped = start & 1
    words = np.empty((stop - start + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + stop - start]
    for i in range(P.shape[0]):
        stream = row_key(key, i)
        _accumulate(P, i, dither_of(stream), cumulative)
        uniform_pairs(stream, start >> 1, words)
        weight = out.dtype.type(w[i])
        for t in range(tables.shape[0]):
            c = 0
            while c < k:
                first, bin_index = c, tables[t, i, c]
                while c < k and tables[t, i, c] == bin_index:
                    c += 1
                if bin_index < 0:
                    continue
                low = cumulative[first - 1] if first > 0 else 0.0
                if cumulative[c - 1] - low == DRAW_RANGE:
                    for r in range(u.shape[0]):
                        out[bin_index, r] += weight
                else:
                    _add_where_between(out[bin_index], u, np.uint32(low), np.uint32(cumulative[c - 1] - low), weight)


@compiled
def _separate_sums(P, w, tables, key, start, stop, out):  # type: ignore[no-untyped-def]
    k = P.shape[1]
    for i in range(P.shape[0]):
        for c in range(k):
            stream = row_key(key, i * k + c)
            bound = threshold(np.float64(P[i, c]), dither_of(stream))
            for r in range(start, stop):
                if uniform(stream, r) < bound:
                    for t in range(tables.shape[0]):
                        bin_index = tables[t, i, c]
                        if bin_index >= 0:
                            out[bin_index, r - start] += w[i]


MAX_LINEAR_SEARCH = 32  # number of classes up to which comparison with all thresholds is faster than binary search
MANY = 2**16  # number of cells above which labels are drawn one by one, best for rows sorted by cell
_NONE = np.empty(0, dtype=np.int64)


def draw_labels(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, share: float = 0.0
) -> Array:
    """Draw a label for each row and draw from the predicted probabilities P (n, K), (stop − start, n).

    With probability `share`, a row uses the random number of its cluster in a draw, otherwise its own. The result for a
    draw depends only on `key` and the number of the draw.
    """
    P = np.ascontiguousarray(P)
    of = _NONE if cluster is None else cluster

    def work(a: int, b: int) -> Array:
        out = np.empty((b - a, len(P)), dtype=np.int64)
        _labels(P, of, share, key, a + start, b + start, out)
        return out

    return np.concatenate(list(in_blocks(work, stop - start, 32)))


def sum_draws(
    P: Array,
    w: Array,
    tables: Array,
    size: int,
    key: int,
    start: int,
    stop: int,
    *,
    separate: bool = False,
    rows: Array | None = None,
    cluster: Array | None = None,
    share: float = 0.0,
) -> Array:
    """Return the total weight per cell and draw, (stop − start, size), with labels drawn from the predictions.

    `tables[t, i, c]` is the cell to which row i adds its weight if label c is drawn, or −1. With `separate` the labels
    are independent (multilabel). `rows` are the numbers of the rows, if they are sorted by cell for locality. `share`
    is as in `draw_labels`.
    """
    P, tables = np.ascontiguousarray(P), np.ascontiguousarray(tables)
    of, known = (_NONE if array is None else array for array in (cluster, rows))
    small = P.shape[1] <= MAX_LINEAR_SEARCH and size <= MANY and share == 0 and not separate and rows is None
    assert rows is None or not separate
    counted = small and bool((w == 1).all())  # integer counts are exact and take half the memory

    def work(a: int, b: int) -> Array:
        shape = (size, b - a) if rows is None else (b - a, size)
        out = np.zeros(shape, dtype=np.int32 if counted else np.float64)
        out = out if rows is None else out.T  # cells contiguous, in the order of access and of the result
        if small:
            _sums_small_k(P, w, tables, key, a + start, b + start, out)
        elif separate:
            _separate_sums(P, w, tables, key, a + start, b + start, out)
        else:
            _add_draws(P, w, tables, known, of, share, key, a + start, b + start, out)
        return out.T

    chunk = draws_at_once(size) if rows is None else 8  # rows sorted by cell access few cells at a time
    block = max(chunk, min(AT_ONCE, 2**19 // max(1, size))) if small else chunk
    parts = in_blocks(work, stop - start, block)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(np.float64, copy=False)


ROWS = 256


@compiled
def _draw_row_labels(P, row, key, start, out):  # type: ignore[no-untyped-def]
    """Write the labels of the rows from number `row` on to `out` (rows, draws).

    A label is the number of cumulative thresholds at or below the random integer.
    """
    cumulative = np.empty(P.shape[1])
    skipped = start & 1
    words = np.empty((out.shape[1] + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + out.shape[1]]
    for i in range(P.shape[0]):
        stream = row_key(key, row + i)
        _accumulate(P, i, dither_of(stream), cumulative)
        uniform_pairs(stream, start >> 1, words)
        labels = out[i]
        labels[:] = 0
        for c in range(P.shape[1]):
            if cumulative[c] == DRAW_RANGE:
                break
            bound = np.uint32(cumulative[c])
            for r in range(u.shape[0]):
                labels[r] += u[r] >= bound


def draw_labels_by_row(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, share: float = 0.0
) -> Array:
    """Return the labels of `draw_labels` as (n, stop − start), in the smallest suitable integer type."""
    dtype = np.min_scalar_type(P.shape[1] - 1)
    if P.shape[1] > MAX_LINEAR_SEARCH or share > 0:
        labels = draw_labels(P, key, start, stop, cluster=cluster, share=share)
        return np.ascontiguousarray(labels.T, dtype=dtype)
    P = as_plain_array(P)
    out = np.empty((len(P), stop - start), dtype=dtype)

    def work(a: int, b: int) -> None:
        _draw_row_labels(P[a:b], a, key, start, out[a:b])

    in_blocks(work, len(P), ROWS)
    return out
