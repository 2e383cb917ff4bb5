"""Find the largest probability of each row, and sum it with its correctness per bin."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain, summed
from trueodds.kernels.bins import merge_outer_bins, number_bins, scale, thresholds
from trueodds.kernels.prefetch import CACHE_LINE, prefetch
from trueodds.kernels.row_statistics import ROWS, transpose_rows
from trueodds.kernels.smoothing import add_moments

_WIDE = 16  # number of classes above which rows are searched without transposing
_PART = 128  # number of values per part of a long row; ties are searched only in a part with the maximum
_AHEAD = 52 * CACHE_LINE  # prefetch distance in bytes for long rows
# Number of values per thread task: for short rows, for long rows, which are read faster, and for rows copied first.
_VALUES, _LONG, _COPIED = 2**19, 2**21, 2**18


@compiled
def _top_of_columns(columns, m, top, second, at):  # type: ignore[no-untyped-def]
    """Find the largest value of each row, the lowest class that has it, and the second largest value.

    `columns` (K, ROWS) are m transposed rows. The results are written to `top`, `at` and `second`.
    """
    k = columns.shape[0]
    for i in range(m):
        top[i] = columns[0, i]
        second[i] = -1.0
        at[i] = 0
    for c in range(1, k - 1, 2):  # two columns at a time, to halve the number of stores
        column, after = columns[c], columns[c + 1]
        for i in range(m):
            x, t, o, q = column[i], top[i], second[i], at[i]
            larger = x > t
            other = t if larger else x
            o = other if other > o else o
            q = np.int32(c) if larger else q
            t = x if larger else t
            x = after[i]
            larger = x > t
            other = t if larger else x
            second[i] = other if other > o else o
            at[i] = np.int32(c + 1) if larger else q
            top[i] = x if larger else t
    if k % 2 == 0:
        column = columns[k - 1]
        for i in range(m):
            x, t = column[i], top[i]
            larger = x > t
            other = t if larger else x
            second[i] = other if other > second[i] else second[i]
            at[i] = np.int32(k - 1) if larger else at[i]
            top[i] = x if larger else t


@compiled
def _top_of_rows(P, bits, start, m, top, second, at):  # type: ignore[no-untyped-def]
    """Find the largest value of each long row and the lowest class that has it; `second` equals `top` only if tied.

    Values are compared by their `bits`, which is faster: bits of nonnegative floats have the same order as the floats.
    """
    k = np.int32(P.shape[1])
    for i in range(m):
        row = bits[start + i]
        highest = row[0]
        for c in range(k):
            highest = max(highest, row[c])
        first, count = k, np.int32(0)
        for c in range(k):
            same = row[c] == highest
            count += np.int32(same)
            first = min(first, np.int32(c) if same else k)
        at[i] = first
        top[i] = P[start + i, first]
        second[i] = top[i] if count > 1 else -1.0


@compiled
def _tops(P, bits, start, m, columns, top, second, at):  # type: ignore[no-untyped-def]
    """Write `top`, `second` and `at` for m rows of any length; return the number of rows with a tied maximum."""
    if P.shape[1] <= _WIDE:
        transpose_rows(P, start, m, 0, columns)
        _top_of_columns(columns, m, top, second, at)
    else:
        _top_of_rows(P, bits, start, m, top, second, at)
    ties = 0
    for i in range(m):
        ties += top[i] == second[i]
    return ties


@compiled
def _largest_of_two(flat, a, b, m):  # type: ignore[no-untyped-def]
    """Return the maxima of the m values from index a and from index b; unsigned indices avoid wraparound checks."""
    highest, beyond = flat[a], flat[b]
    for c in range(m):
        highest = max(highest, flat[a + np.uint64(c)])
        beyond = max(beyond, flat[b + np.uint64(c)])
    return highest, beyond


@compiled
def _several(flat, a, m, top, parts):  # type: ignore[no-untyped-def]
    """Return whether a row's maximum is tied: it occurs in several parts, or repeatedly in m values from index a."""
    count = np.int32(0)
    for c in range(m):
        count += np.int32(flat[a + np.uint64(c)] == top)
    return (parts > 1) | (count > 1)


@compiled
def _hits(row, top, several, label):  # type: ignore[no-untyped-def]
    """Return whether the label is the top class; ties are resolved to the lowest class."""
    if not several:
        return row[label] == top
    first = 0
    while row[first] != top:
        first += 1
    return first == label


@compiled
def _hits_of_rows(bits, y, start, m, tops, hit):  # type: ignore[no-untyped-def]
    """Write the bits of the maximum of long rows to `tops`, and whether it is the label's to `hit`; return the ties.

    Two distant rows are processed at a time, because two memory streams are faster than one.
    """
    flat, k, ties, half = bits.reshape(-1), bits.shape[1], 0, (m + 1) // 2
    line, ahead = CACHE_LINE // bits.itemsize, _AHEAD // bits.itemsize
    for i in range(half):
        j = min(i + half, m - 1)
        row, other = np.uint64((start + i) * k), np.uint64((start + j) * k)
        top, within, parts = flat[row], 0, 0  # maximum so far, a part that has it, number of such parts
        other_top, there, others = flat[other], 0, 0
        for c in range(0, k, _PART):
            for soon in range(c + ahead, c + ahead + _PART, line):
                prefetch(flat, row + np.uint64(soon))
                prefetch(flat, other + np.uint64(soon))
            x, z = _largest_of_two(flat, row + np.uint64(c), other + np.uint64(c), min(_PART, k - c))
            parts = 1 if x > top else parts + (x == top)
            others = 1 if z > other_top else others + (z == other_top)
            within = c if x > top else within
            there = c if z > other_top else there
            top, other_top = max(top, x), max(other_top, z)
        several = _several(flat, row + np.uint64(within), min(_PART, k - within), top, parts)
        tops[i], hit[i] = top, _hits(bits[start + i], top, several, y[start + i])
        ties += int(several)
        several = _several(flat, other + np.uint64(there), min(_PART, k - there), other_top, others)
        if i + half < m:
            tops[j], hit[j] = other_top, _hits(bits[start + j], other_top, several, y[start + j])
            ties += int(several)
    return ties


@compiled
def _sums(P, bits, y, bounds, bins, by, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σp² of incorrect and correct rows per bin to `out` (bins + 2, 2, 4), tied rows to [0, 0, 3]."""
    n, k = P.shape
    columns = np.empty((min(k, _WIDE), ROWS), dtype=P.dtype)
    tops, second = np.empty(ROWS, dtype=bits.dtype), np.empty(ROWS, dtype=P.dtype)
    top = tops.view(P.dtype)
    at, hit, bin_index = np.empty(ROWS, np.int32), np.empty(ROWS, np.int32), np.empty(ROWS, np.int32)
    none = np.zeros(ROWS, np.int32)
    size = 2 * out.shape[0]
    count, one, two = np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)
    ties = 0
    for a in range(0, n, ROWS):
        m = min(ROWS, n - a)
        if k > _WIDE:
            ties += _hits_of_rows(bits, y, a, m, tops, hit)
        else:
            labels = y[a : a + m]
            ties += _tops(P, bits, a, m, columns, top, second, at)
            for i in range(m):
                hit[i] = np.int64(at[i]) == labels[i]
        number_bins(top, m, bounds, bins, by, none, bin_index)
        for i in range(m):
            bin_index[i] = bin_index[i] * 2 + hit[i]
        for i in range(m):
            s, x = np.uint32(bin_index[i]), np.float64(top[i])
            count[s] += 1
            one[s] += x
            two[s] += x * x
    for t in range(size):
        cell = out[t // 2, t % 2]
        cell[0] += np.float64(count[t])
        cell[1] += one[t]
        cell[2] += two[t]
    out[0, 0, 3] += ties


@compiled
def _columns(P, bits, y, top, out):  # type: ignore[no-untyped-def]
    """Write the largest value of each row to `top`; return the number of rows with a tied maximum.

    `out` receives the class of the largest value, or with labels y whether this class is the label.
    """
    n, k = P.shape
    columns, at = np.empty((min(k, _WIDE), ROWS), dtype=P.dtype), np.empty(ROWS, dtype=np.int32)
    second = np.empty(ROWS, dtype=P.dtype)
    ties = 0
    for a in range(0, n, ROWS):
        m = min(ROWS, n - a)
        values, into = top[a : a + m], out[a : a + m]
        ties += _tops(P, bits, a, m, columns, values, second, at)
        if y.shape[0] == 0:
            into[:] = at[:m]
        else:
            labels = y[a : a + m]
            for i in range(m):
                into[i] = np.int64(at[i]) == labels[i]
    return ties


@compiled
def _keyed(P, bits, y, keys):  # type: ignore[no-untyped-def]
    """Write the keys of top probability and correctness (see `sort.row_keys`); return the number of tied rows."""
    n, k = P.shape
    columns, at = np.empty((min(k, _WIDE), ROWS), dtype=P.dtype), np.empty(ROWS, dtype=np.int32)
    top, second = np.empty(ROWS, dtype=P.dtype), np.empty(ROWS, dtype=P.dtype)
    word = top.view(keys.dtype)
    ties = 0
    for a in range(0, n, ROWS):
        m = min(ROWS, n - a)
        into, labels = keys[a : a + m], y[a : a + m]
        ties += _tops(P, bits, a, m, columns, top, second, at)
        for i in range(m):
            into[i] = (word[i] << 1) | (np.int64(at[i]) == labels[i])
    return ties


@compiled
def _moments(P, bits, y, out):  # type: ignore[no-untyped-def]
    """Add the moments of correctness minus confidence to `out` (cells, powers); return the number of tied rows."""
    n, k = P.shape
    columns, at = np.empty((min(k, _WIDE), ROWS), dtype=P.dtype), np.empty(ROWS, dtype=np.int32)
    top, second, residuals = np.empty(ROWS, dtype=P.dtype), np.empty(ROWS, dtype=P.dtype), np.empty(ROWS)
    offset, place = np.empty(ROWS, dtype=np.int32), np.empty(ROWS)
    ties = 0
    for a in range(0, n, ROWS):
        m = min(ROWS, n - a)
        labels = y[a : a + m]
        ties += _tops(P, bits, a, m, columns, top, second, at)
        for i in range(m):
            residuals[i] = np.float64(np.int64(at[i]) == labels[i]) - np.float64(top[i])
        add_moments(top, residuals, m, 0.0, np.float64(out.shape[0]), 0.0, offset, place, out)
    return ties


def _bits(P: Array) -> Array:
    return plain(P.view(np.int32 if P.dtype == np.float32 else np.int64))


def _laid(P: Array) -> tuple[Array, int]:
    """Return the rows in the memory layout of the kernels, and the number of rows per thread task."""
    ready = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    values = _COPIED if not ready else _LONG if P.shape[1] > _WIDE else _VALUES
    return plain(P) if ready else P, max(1, values // P.shape[1])


def largest_sums(P: Array, y: Array, edges: Array, closed: str) -> tuple[Array, int]:
    """Return n, Σp and Σp² of the top probability per bin, (bins, 2, 3), for incorrect and correct rows.

    The second result is the number of rows with a tied maximum, where the lowest class counts. P is (n, K), y (n,)
    int64.
    """
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    bounds, by, bins = thresholds(edges, closed, dtype), scale(edges, closed, dtype), len(edges) - 1
    (P, step), y = _laid(P), plain(y)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, step):
            b = min(a + step, stop)
            block = plain(P[a:b])
            _sums(block, _bits(block), y[a:b], bounds, bins, by, out)

    table = summed(add, len(P), (bins + 2, 2, 4), block=step)
    ties = int(table[0, 0, 3])
    return merge_outer_bins(table.reshape(bins + 2, 8)).reshape(bins, 2, 4)[..., :3], ties


def largest_moments(P: Array, y: Array, cells: int, powers: int) -> tuple[Array, int]:
    """Return the moments of correctness minus confidence of the top class per cell, and the number of tied rows.

    The moments are (cells, powers), see `smoothing.moments`. If the maximum is tied, the lowest class counts.
    """
    (P, step), y = _laid(P), plain(y)
    ties: list[int] = []

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, step):
            block, labels = plain(P[a : min(a + step, stop)]), y[a : min(a + step, stop)]
            ties.append(int(_moments(block, _bits(block), labels, out)))

    return summed(add, len(P), (cells, powers), block=2 * step), sum(ties)


def largest(P: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, the lowest class that has it (int32), and the number of tied rows."""
    return _find_largest(P, np.empty(0, dtype=np.int64), np.empty(len(P), dtype=np.int32))


def largest_hits(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, whether its (lowest) class is the label, and the number of tied rows."""
    return _find_largest(P, y, np.empty(len(P), dtype=np.bool_))


def _find_largest(P: Array, y: Array, out: Array) -> tuple[Array, Array, int]:
    top = np.empty(len(P), dtype=np.float32 if P.dtype == np.float16 else P.dtype)
    (P, step), y = _laid(P), plain(y)

    def work(start: int, stop: int) -> int:
        block = plain(P[start:stop])
        return int(_columns(block, _bits(block), y[start:stop], top[start:stop], out[start:stop]))

    return top, out, sum(in_blocks(work, len(P), step))


def largest_keys(P: Array, y: Array) -> tuple[Array, int]:
    """Return the first two results of `largest_hits` as keys (see `sort.row_keys`), and the number of tied rows."""
    keys = np.empty(len(P), dtype=np.uint64 if P.dtype == np.float64 else np.uint32)
    (P, step), y = _laid(P), plain(y)

    def work(start: int, stop: int) -> int:
        block = plain(P[start:stop])
        return int(_keyed(block, _bits(block), y[start:stop], keys[start:stop]))

    return keys, sum(in_blocks(work, len(P), step))
