"""Sort scores by integer keys, find order statistics, and search among sorted numbers.

A key consists of the bits of the score, followed by one bit for the outcome: 1 for an event. The bits of a nonnegative
float have the same order as the float, so sorting the keys sorts the rows by score, and among equal scores non-events
before events. Integers are sorted several times as fast as rows. Keys have 32 bits for float32 and 64 bits for float64.
Bins of equal mass need only the order statistics at their edges, so only keys near these ranks are sorted.

To search among sorted numbers (knots), the range [0, 1] is divided into buckets of equal width, whose first knots are
stored. A value is compared only with the knots in its bucket.

NumPy encodes, counts and searches few numbers, with the same results, so that nothing is compiled for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, count_threads, map_blocks, sum_blocks
from trueodds.kernels.bins import (
    ROWS_PER_TILE,
    add_scores,
    add_to_columns,
    bin_sums_of_keys,
    decode_scores,
    edge_keys,
    floats_of_bits,
    score_bits,
    zero_score_sums,
)
from trueodds.kernels.parallel import MAX_NUMPY_VALUES, MAX_SERIAL_ROWS

T = TypeVar("T")

_ROWS_PER_TASK = 2**17  # minimum number of rows of one class per thread task
_VALUES_PER_TASK = 2**18  # minimum number of values of several classes per thread task
_VALUES_PER_SORT = 2**14  # minimum number of keys sorted per thread task
_MAX_KEYS_IN_MEMORY = 2**24  # number of keys in memory at a time, as for a million rows of sixteen classes
_N_SAMPLED_ROWS = 64  # number of rows that are checked first for scores that float32 cannot represent


def encode_and_sort(p: Array, y: Array) -> Array | None:
    """Return the sorted keys (n,) of scores p (n,) ≥ 0 with outcomes y (n,); None if an outcome is neither 0 nor 1."""
    keys = encode_rows(p, y)
    if keys is not None:
        keys.sort()
    return keys


def encode_rows(p: Array, y: Array) -> Array | None:
    """Return the keys of `encode_and_sort` in the order of the rows, (n,); None if an outcome is neither 0 nor 1."""
    bits = score_bits(p)
    y = as_plain_array(y.view(np.uint8) if y.dtype == bool else y.astype(np.float64, copy=False))
    if len(bits) <= MAX_NUMPY_VALUES:
        event = y == 1
        return (bits << 1) | event if (event | (y == 0)).all() else None
    keys = np.empty(len(bits), dtype=bits.dtype)
    n_invalid = sum(map_blocks(lambda a, b: _encode_keys(bits[a:b], y[a:b], keys[a:b]), len(bits), _ROWS_PER_TASK))
    return None if n_invalid else keys


@compile_kernel
def _encode_keys(bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the bits of each score followed by its outcome to `keys`; return the number of invalid outcomes."""
    n_invalid = 0
    for i in range(bits.shape[0]):
        event = y[i] == 1
        n_invalid += not (event | (y[i] == 0))
        keys[i] = (bits[i] << 1) | event  # the sign is shifted out, so that −0 is 0
    return n_invalid


def scores_of_keys(keys: Array) -> Array:
    return decode_scores(keys).astype(np.float64, copy=False)


def argsort_scores(p: Array) -> Array:
    """Return the indices that sort the scores, (n,) int64; the sort is stable for nonnegative float32 scores."""
    bits = score_bits(p)
    if bits.dtype == np.uint64 or (len(p) and p.min() < 0):  # negative floats have their bits in reverse order
        return np.argsort(p)
    bits_and_rows = (bits & np.uint32(2**31 - 1)).astype(np.uint64)  # without the sign, as −0 is 0
    bits_and_rows <<= np.uint64(32)
    bits_and_rows |= np.arange(len(p), dtype=np.uint64)
    bits_and_rows.sort()
    bits_and_rows &= np.uint64(2**32 - 1)
    return bits_and_rows.view(np.int64)


def map_sorted_keys(P: Array, Y: Array, work: Callable[[Array], T], classes: range | None = None) -> list[T] | None:
    """Apply `work(keys)` to the sorted keys of every class against the rest; classes are processed on several threads.

    Y are class numbers (n,), or outcomes (n, K); None is returned if one is neither 0 nor 1. Only the columns `classes`
    of P (n, K) are used. If float32 represents all scores exactly, keys have 32 bits, because they are sorted in half
    the time of 64 bits.
    """
    n, classes = len(P), range(P.shape[1]) if classes is None else classes
    if n == 0:
        return [work(np.empty(0, dtype=np.uint32)) for _ in classes]
    results: list[T] = []
    batch_size = max(count_threads(), _MAX_KEYS_IN_MEMORY // n)
    for first in range(classes.start, classes.stop, batch_size):
        keys = _encode_classes(P, Y, first, min(first + batch_size, classes.stop))
        if keys is None:
            return None
        results += _sort_and_map(keys, work)
    return results


def _sort_and_map(keys: Array, work: Callable[[Array], T]) -> list[T]:
    """Sort the keys of each class, (K, n), in place, and return the results of `work` for each class."""

    def sort_classes(start: int, stop: int) -> list[T]:
        keys[start:stop].sort(axis=1)
        return [work(class_keys) for class_keys in keys[start:stop]]

    classes_per_task = max(1, _VALUES_PER_SORT // keys.shape[1])
    return [result for results in map_blocks(sort_classes, len(keys), classes_per_task) for result in results]


def _encode_classes(P: Array, Y: Array, first: int, last: int) -> Array | None:
    """Return the keys of the classes first..last−1, (K, n), of 32 bits if exact; None if an outcome is invalid."""
    sample = P[:_N_SAMPLED_ROWS, first:last]
    if P.dtype != np.float64 or bool((sample.astype(np.float32) == sample).all()):
        keys, n_inexact, n_invalid = _encode_classes_as(np.float32, P, Y, first, last)
        if n_invalid > 0:
            return None
        if n_inexact == 0:
            return keys
        del keys  # frees the memory for the keys of 64 bits
    keys, _, n_invalid = _encode_classes_as(np.float64, P, Y, first, last)
    return None if n_invalid > 0 else keys


def _encode_classes_as(dtype: Any, P: Array, Y: Array, first: int, last: int) -> tuple[Array, int, int]:
    """Return the keys (K, n) of these classes, and the numbers of scores that are not exact and of invalid outcomes."""
    n, k = len(P), last - first
    keys = np.empty((k, n), dtype=np.uint32 if dtype == np.float32 else np.uint64)

    def encode_block(start: int, stop: int) -> tuple[int, int]:
        p, y = P[start:stop, first:last], Y[start:stop]
        scores = p.astype(dtype, order="C")
        block_keys = scores.view(keys.dtype) << 1  # the sign is shifted out, so that −0 is 0
        if y.ndim == 1:
            rows = np.flatnonzero((y >= first) & (y < last))
            block_keys[rows, y[rows].astype(np.int64, copy=False) - first] |= 1
            n_invalid = 0
        else:
            outcomes = y[:, first:last]
            events = outcomes == 1
            block_keys |= events
            n_invalid = outcomes.size - int(np.count_nonzero(events)) - int(np.count_nonzero(outcomes == 0))
        keys[:, start:stop] = block_keys.T
        return int(np.count_nonzero(scores != p)), n_invalid

    counts = map_blocks(encode_block, n, max(1, _VALUES_PER_TASK // k))
    return keys, sum(n_inexact for n_inexact, _ in counts), sum(n_invalid for _, n_invalid in counts)


@compile_kernel
def _count_distinct_scores(keys):  # type: ignore[no-untyped-def]
    count = 1
    for i in range(1, keys.shape[0]):
        count += (keys[i] >> 1) != (keys[i - 1] >> 1)
    return count


@compile_kernel
def _count_rows_and_events(keys, bits, n, events):  # type: ignore[no-untyped-def]
    """Write the bits of each distinct score, and its numbers of rows and events, to `bits`, `n` and `events` (m,)."""
    j, total, previous_score = 0, 0, keys[0] >> 1
    for i in range(keys.shape[0]):
        score = keys[i] >> 1
        j += score != previous_score
        total += keys[i] & 1
        bits[j], n[j], events[j] = score, i + 1, total
        previous_score = score
    for j in range(n.shape[0] - 1, 0, -1):
        n[j] -= n[j - 1]
        events[j] -= events[j - 1]


@compile_kernel
def _sum_weighted_rows(p, y, w, order, scores, mass, events):  # type: ignore[no-untyped-def]
    """Write each distinct score with its Σw and Σwy to `scores`, `mass` and `events`; return their number."""
    m = 0
    for position in range(order.shape[0]):
        i = order[position]
        if w[i] > 0:
            score = np.float64(p[i]) + 0.0
            if m == 0 or score != scores[m - 1]:
                scores[m], mass[m], events[m] = score, 0.0, 0.0
                m += 1
            mass[m - 1] += w[i]
            events[m - 1] += w[i] * y[i]
    return m


def count_by_score(keys: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of sorted keys, with the number of rows and events at each, (m,) float64."""
    if not len(keys):
        return np.empty(0), np.empty(0), np.empty(0)
    if len(keys) <= MAX_NUMPY_VALUES:
        scores = decode_scores(keys)
        first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        n, events = np.diff(first, append=len(keys)), np.add.reduceat(keys & 1, first)
        return scores[first].astype(np.float64), n.astype(np.float64), events.astype(np.float64)
    keys = as_plain_array(keys)
    m = int(_count_distinct_scores(keys))
    bits, n, events = np.empty(m, dtype=keys.dtype), np.empty(m), np.empty(m)
    _count_rows_and_events(keys, bits, n, events)
    return floats_of_bits(bits).astype(np.float64, copy=False), n, events


def sum_by_score(p: Array, y: Array, w: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the sorted distinct scores of the rows with positive weight, with Σw and Σwy at each, (m,) float64."""
    scores, mass, events = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    rows = [as_plain_array(x) for x in (p, y.astype(np.float64, copy=False), w.astype(np.float64, copy=False), order)]
    m = int(_sum_weighted_rows(*rows, scores, mass, events))
    return (scores, mass, events) if m == len(p) else (scores[:m].copy(), mass[:m].copy(), events[:m].copy())


def find_scores(p: Array, scores: Array) -> Array:
    """Return the index of the last of the sorted `scores` (m,) that is at most each p (n,); the first if none is."""
    last_not_above = np.maximum(np.arange(-1, len(scores)), 0)
    return Knots(scores).evaluate_steps(p, last_not_above, right=True).astype(np.int64)


_LOOKUPS_PER_TASK = 2**15  # number of evaluated points per thread task
_COMPARISONS_PER_TASK = 2**17  # number of values that are only compared with a bound, per thread task
_MAX_BUCKETS = 4096  # maximum number of buckets
_LOOKUPS_PER_TILE = 256  # number of values looked up at a time


@compile_inline
def _find_bucket(value, n_buckets):  # type: ignore[no-untyped-def]
    return np.int32(max(min(value * n_buckets, n_buckets - 1.0), 0.0))


@compile_kernel
def _index_knots(x, starts):  # type: ignore[no-untyped-def]
    """Write the index of the first knot in each bucket or a later one to `starts` (buckets + 1,)."""
    n_buckets, next_bucket = np.float64(starts.shape[0] - 1), 0
    for j in range(x.shape[0]):
        bucket = _find_bucket(x[j], n_buckets)
        while next_bucket <= bucket:
            starts[next_bucket] = j
            next_bucket += 1
    starts[next_bucket:] = x.shape[0]


@compile_kernel
def _count_knots_below(p, x, starts, first_step, right, values, n_below):  # type: ignore[no-untyped-def]
    """Count the knots below each value of p (m,), or with `right` the knots not above it, in `n_below` (≥ m,).

    A binary search in the bucket takes the same steps, `first_step`, `first_step` / 2, …, 1, for all values, because
    branches would be unpredictable. It ends at the right knot because `first_step` is a power of two and no bucket has
    2 · `first_step` knots; a knot beyond the bucket (x is padded with ∞) is larger than the value.
    """
    n_buckets = np.float64(starts.shape[0] - 1)
    for i in range(p.shape[0]):
        values[i] = p[i]
        n_below[i] = starts[np.uint32(_find_bucket(values[i], n_buckets))]
    step = first_step
    while step > 0:
        for i in range(p.shape[0]):
            knot = x[np.uint32(n_below[i] + step - np.int32(1))]
            n_below[i] += step if (knot <= values[i] if right else knot < values[i]) else np.int32(0)
        step >>= np.int32(1)


@compile_kernel
def _interpolate_linearly(p, x, y, starts, first_step, out):  # type: ignore[no-untyped-def]
    values, n_below = np.empty(_LOOKUPS_PER_TILE), np.empty(_LOOKUPS_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _LOOKUPS_PER_TILE):
        m = min(_LOOKUPS_PER_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, first_step, True, values, n_below)
        for i in range(m):
            below = np.uint32(max(n_below[i] - np.int32(1), np.int32(0)))
            above = np.uint32(below + np.uint32(1))
            # Interpolated by the share of the distance, so that no slope overflows; clipped against rounding.
            share = max(values[i] - x[below], 0.0) / (x[above] - x[below])
            interpolated = y[below] + share * (y[above] - y[below])
            out[start + i] = min(max(interpolated, min(y[below], y[above])), max(y[below], y[above]))


@compile_kernel
def _evaluate_steps(p, x, y, starts, first_step, right, out):  # type: ignore[no-untyped-def]
    values, n_below = np.empty(_LOOKUPS_PER_TILE), np.empty(_LOOKUPS_PER_TILE, dtype=np.int32)
    for start in range(0, p.shape[0], _LOOKUPS_PER_TILE):
        m = min(_LOOKUPS_PER_TILE, p.shape[0] - start)
        _count_knots_below(p[start : start + m], x, starts, first_step, right, values, n_below)
        for i in range(m):
            out[start + i] = y[np.uint32(n_below[i])]


@compile_kernel
def _check_all_or_none_below(P, lower, out):  # type: ignore[no-untyped-def]
    """Write to `out` (n,) whether all or none of the values of a row of P are at or below `lower` (K,)."""
    for i in range(P.shape[0]):
        n_below = 0
        for c in range(P.shape[1]):
            n_below += P[i, c] <= lower[c]
        out[i] = n_below == 0 or n_below == P.shape[1]


class Knots:
    """Sorted knots x (m,) ≥ 0 of functions; evaluating one at a point takes O(1) if the knots are spread evenly."""

    def __init__(self, x: Array) -> None:
        self._x = np.asarray(x, dtype=np.float64)

    @cached_property
    def _buckets(self) -> tuple[Array, Array, Any]:
        """Knots, padded with ∞, first knot of each bucket, and first step of the search (see `_count_knots_below`)."""
        x = self._x
        starts = np.empty(min(_MAX_BUCKETS, 1 << max(4, 2 * len(x) - 1).bit_length()) + 1, dtype=np.int32)
        _index_knots(as_plain_array(x), starts)
        first_step = np.int32(1 << int(np.diff(starts).max()).bit_length() >> 1)
        return as_plain_array(np.append(x, np.full(2 * int(first_step) + 1, np.inf))), starts, first_step

    def interpolate(self, p: Array, y: Array) -> Array:
        """Interpolate the values y (m,) at the knots linearly at each p (n,) ≥ 0; constant outside the knots."""
        y = as_plain_array(np.append(y, y[-1]))
        if len(p) <= MAX_SERIAL_ROWS:
            return _interpolate_few(p.astype(np.float64, copy=False), np.append(self._x, np.inf), y)
        x, starts, first_step = self._buckets
        return _evaluate_in_blocks(p, lambda block, out: _interpolate_linearly(block, x, y, starts, first_step, out))

    def evaluate_steps(self, p: Array, y: Array, *, right: bool) -> Array:
        """Return y[j] for each p (n,) ≥ 0, where j knots are below p, or with `right` at or below p; y is (m + 1,)."""
        y = as_plain_array(np.asarray(y, dtype=np.float64))
        if len(p) <= MAX_SERIAL_ROWS:
            return y[np.searchsorted(self._x, p, "right" if right else "left")]
        x, starts, first_step = self._buckets
        return _evaluate_in_blocks(p, lambda block, out: _evaluate_steps(block, x, y, starts, first_step, right, out))


def _interpolate_few(p: Array, x: Array, y: Array) -> Array:
    """Compute what `_interpolate_linearly` does, with an ∞ after the knots x and the last value after the values y."""
    below = np.maximum(np.searchsorted(x, p, "right") - 1, 0)
    low, high = y[below], y[below + 1]
    share = np.maximum(p - x[below], 0.0) / (x[below + 1] - x[below])
    return np.minimum(np.maximum(low + share * (high - low), np.minimum(low, high)), np.maximum(low, high))


def _evaluate_in_blocks(p: Array, work: Callable[[Array, Array], None]) -> Array:
    """Run `work(block, out)` on blocks of p (n,), where `out` is the part of the result for a block; return it (n,)."""
    out = np.empty(len(p))
    map_blocks(lambda start, stop: work(as_plain_array(p[start:stop]), out[start:stop]), len(p), _LOOKUPS_PER_TASK)
    return out


def are_all_or_none_below(P: Array, lower: Array) -> Array:
    """Return whether all or none of the values of each row of P (n, K) are at or below `lower` (K,), as a mask (n,)."""
    out, lower = np.empty(len(P), dtype=np.bool_), as_plain_array(np.asarray(lower, dtype=np.float64))
    map_blocks(
        lambda start, stop: _check_all_or_none_below(as_plain_array(P[start:stop]), lower, out[start:stop]),
        len(P),
        max(1, _COMPARISONS_PER_TASK // max(1, P.shape[1])),
    )
    return out


# Keys are counted in 2^13 cells, whose counts stay in the core's own cache, or in 2^16 if there are many ranks.
_CELL_INDEX_BITS, _MANY_RANKS_CELL_INDEX_BITS = 13, 16
_MANY_RANKS = 129  # more ranks than 64 bins have, which need the ranks on both sides of every cut
_KEYS_PER_TASK = 2**18  # minimum number of keys per thread task
_MIN_SAMPLE_SIZE = 1000  # number of sampled keys, from which the cells of the ranks are estimated
_SAMPLED_KEYS_PER_RANK = 20  # minimum number, so that the sampled keys at the ranks are a small share of the sample
_MAX_SAMPLE_SHARE = 0.25  # maximum share of the sample in these cells; above it, sorting all keys is not slower


@compile_kernel
def _find_key_range(keys):  # type: ignore[no-untyped-def]
    low = high = keys[0]
    for i in range(keys.shape[0]):
        low, high = min(low, keys[i]), max(high, keys[i])
    return low, high


@compile_kernel
def _count_keys(keys, low, shift, out):  # type: ignore[no-untyped-def]
    """Add the number of keys in each cell to `out` (cells,); `low` and `shift` are those of `OrderStatistics`."""
    count = np.zeros(out.shape[0], dtype=np.int64)
    for i in range(keys.shape[0]):
        count[(keys[i] - low) >> shift] += 1
    for cell in range(out.shape[0]):
        out[cell] += np.float64(count[cell])


@compile_kernel
def _partition_keys(keys, empty_scores, low, shift, segment, selected_keys, out):  # type: ignore[no-untyped-def]
    """Write the keys of segment 0 to `selected_keys` and return their number; add n, Σp and Σp² to `out`.

    `segment` (cells,) has the segment of each cell. `out` (2 · segments, 3) has rows for non-events and events of each
    segment. `empty_scores` (0,) has the dtype of the scores.
    """
    bin_index, bits, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.empty(ROWS_PER_TILE, dtype=keys.dtype),
        zero_score_sums(out.shape[0]),
    )
    scores = bits.view(empty_scores.dtype)
    n_selected = 0
    for start in range(0, keys.shape[0], ROWS_PER_TILE):
        block = keys[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        for i in range(m):
            bits[i] = block[i] >> 1
        for i in range(m):
            bin_index[i] = segment[(block[i] - low) >> shift] * 2 + np.int32(block[i] & 1)
        for i in range(m):
            selected_keys[np.uint32(n_selected)] = block[i]
            n_selected += bin_index[i] < 2
        add_scores(scores, m, bin_index, sums)
    add_to_columns(sums, out)
    return n_selected


class OrderStatistics:
    """The sorted keys near given ranks, and the sums of all other keys, by segments between the ranks.

    A key belongs to the cell (key − low) >> shift; `count` (cells,) is the number of keys in each. The keys of the
    cells that contain a rank are sorted; these cells form segment 0. The cells before, between and after them form the
    segments 1, 2, …, of which only sums are stored.
    """

    def __init__(self, keys: Array, low: Any, shift: Any, count: Array, ranks: Array) -> None:
        # Numbers of keys up to and including each cell: of all keys, and of those that are not sorted.
        self._cumulative_count = np.cumsum(count)
        is_selected = _cell_mask(self._find_cells_of_ranks(ranks), len(count))
        segment = np.where(is_selected, 0, np.cumsum(is_selected) + 1).astype(np.int32)
        n_segments, empty_scores = int(is_selected.sum()) + 2, decode_scores(keys[:0])

        def partition_block(start: int, stop: int) -> tuple[Array, Array]:
            selected_keys, sums = np.empty(stop - start, dtype=keys.dtype), np.zeros((2 * n_segments, 3))
            n_selected = _partition_keys(keys[start:stop], empty_scores, low, shift, segment, selected_keys, sums)
            return selected_keys[:n_selected].copy(), sums

        key_blocks, block_sums = zip(*map_blocks(partition_block, len(keys), _KEYS_PER_TASK), strict=True)
        self.keys = np.concatenate(key_blocks)
        self.keys.sort()
        # (segments, 2, 3) n, Σp and Σp² of non-events and events in the segments 1, 2, …
        self._segment_sums = np.sum(block_sums, axis=0).reshape(-1, 2, 3)[1:]
        self._low, self._shift, self._is_selected, self._count = low, shift, is_selected, count
        self._cumulative_unselected = np.cumsum(np.where(is_selected, 0.0, count))

    def select(self, ranks: Array) -> Array:
        """Return the order statistics (keys) at these ranks, from 0, which must lie in cells whose keys are sorted."""
        n_unsorted_below = self._cumulative_unselected[self._find_cells_of_ranks(ranks)].astype(np.int64)
        return self.keys[ranks - n_unsorted_below]

    def _find_cells_of_ranks(self, ranks: Array) -> Array:
        return np.searchsorted(self._cumulative_count, ranks, "right")

    def sum_bins(self, edges: Array, closed: str) -> Array | None:
        """Return n, Σp and Σp² per bin of non-events and events, (bins, 2, 3), without a further pass over all keys.

        None unless every inner edge lies in a cell with sorted keys or without keys, and between complete segments.
        """
        cells = [self._find_cell_of_key(key) for key in edge_keys(edges, closed, self.keys.dtype)]
        if any(cell >= 0 and not self._is_selected[cell] and self._count[cell] > 0 for cell in cells):
            return None
        n_unsorted_below = np.array([0.0 if cell < 0 else self._cumulative_unselected[cell] for cell in cells])
        cumulative_count = np.concatenate(([0.0], np.cumsum(self._segment_sums[:, :, 0].sum(axis=1))))
        segments_below = np.searchsorted(cumulative_count, n_unsorted_below)  # number of segments below each edge
        if not np.array_equal(cumulative_count[segments_below], n_unsorted_below):
            return None
        table = bin_sums_of_keys(self.keys, edges, closed)
        bin_of_segment = np.searchsorted(segments_below, np.arange(1, len(self._segment_sums) + 1))
        np.add.at(table, bin_of_segment, self._segment_sums)
        return table

    def _find_cell_of_key(self, key: Any) -> int:
        """Return the cell of a key: the last one for larger keys, −1 for smaller ones."""
        if key is None or key < self._low:
            return -1
        return min(int((key - self._low) >> self._shift), len(self._count) - 1)


def select_order_statistics(keys: Array, ranks: Array) -> OrderStatistics | None:
    """Return the order statistics of keys, in any order, near these ranks; None if sorting all keys is not slower."""
    keys = as_plain_array(keys)
    key_ranges = np.array(
        map_blocks(lambda start, stop: _find_key_range(keys[start:stop]), len(keys), _KEYS_PER_TASK), dtype=keys.dtype
    )
    low, high = key_ranges.min(), key_ranges.max()
    cell_index_bits = _CELL_INDEX_BITS if len(ranks) < _MANY_RANKS else _MANY_RANKS_CELL_INDEX_BITS
    n_cells, shift = 2**cell_index_bits, keys.dtype.type(max(0, int(high - low).bit_length() - cell_index_bits))
    sample_size = max(_MIN_SAMPLE_SIZE, _SAMPLED_KEYS_PER_RANK * len(ranks))
    sampled_cells = np.sort((keys[:: max(1, len(keys) // sample_size)] - low) >> shift)
    is_near_rank = _cell_mask(sampled_cells[ranks * len(sampled_cells) // len(keys)], n_cells)
    if is_near_rank[sampled_cells].mean() > _MAX_SAMPLE_SHARE:
        return None
    count = sum_blocks(
        lambda start, stop, out: _count_keys(keys[start:stop], low, shift, out),
        len(keys),
        (n_cells,),
        block=_KEYS_PER_TASK,
    )
    return OrderStatistics(keys, low, shift, count, ranks)


def _cell_mask(cells: Array, n_cells: int) -> Array:
    mask = np.zeros(n_cells, dtype=np.bool_)
    mask[cells] = True
    return mask
