"""Find the largest probability of each row and whether its class was observed, and sum both per bin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks, sum_blocks
from trueodds.kernels.bin_sums import add_label_sums
from trueodds.kernels.bins import bin_thresholds, exact_scale, merge_outer_bins
from trueodds.kernels.prefetch import CACHE_LINE, prefetch
from trueodds.kernels.row_statistics import ROWS_PER_TILE, transpose_rows
from trueodds.kernels.smoothing import add_cell_moments

_WIDE = 16  # number of classes above which rows are searched without transposing
_PART = 128  # number of values per part of a long row; ties are searched only in a part with the maximum
_AHEAD = 52 * CACHE_LINE  # prefetch distance in bytes for long rows
# Number of values per thread task: for short rows, for long rows, which are read faster, and for rows copied first.
_VALUES, _LONG, _COPIED = 2**19, 2**21, 2**18


@compile_kernel
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


@compile_kernel
def _of_short_rows(P, columns, second, top, at):  # type: ignore[no-untyped-def]
    """Write the largest value of each short row to `top` and its lowest class to `at`; return the number of ties."""
    ties = 0
    for start in range(0, P.shape[0], ROWS_PER_TILE):
        m = min(ROWS_PER_TILE, P.shape[0] - start)
        transpose_rows(P, start, m, 0, columns)
        values = top[start : start + m]
        _top_of_columns(columns, m, values, second, at[start : start + m])
        for i in range(m):
            ties += values[i] == second[i]
    return ties


@compile_kernel
def _of_long_rows(bits, top, at):  # type: ignore[no-untyped-def]
    """Write the bits of the largest value of each long row to `top`, and the lowest class that has it to `at`.

    Values are compared by their bits, which is faster: bits of nonnegative floats have the same order as the floats.
    Return the number of ties.
    """
    ties, k = 0, np.int32(bits.shape[1])
    for i in range(bits.shape[0]):
        row = bits[i]
        highest = row[0]
        for c in range(k):
            highest = max(highest, row[c])
        first, count = k, np.int32(0)
        for c in range(k):
            same = row[c] == highest
            count += np.int32(same)
            first = min(first, np.int32(c) if same else k)
        at[i], top[i] = first, highest
        ties += int(count > 1)
    return ties


@compile_kernel
def _matches(at, y, hit):  # type: ignore[no-untyped-def]
    """Write 1 to `hit` where the class `at` is the label y, else 0."""
    for i in range(hit.shape[0]):
        hit[i] = np.int64(at[i]) == y[i]


@compile_kernel
def _largest_of_two(flat, a, b, m):  # type: ignore[no-untyped-def]
    """Return the maxima of the m values from index a and from index b; unsigned indices avoid wraparound checks."""
    highest, beyond = flat[a], flat[b]
    for c in range(m):
        highest = max(highest, flat[a + np.uint64(c)])
        beyond = max(beyond, flat[b + np.uint64(c)])
    return highest, beyond


@compile_kernel
def _is_tied(flat, a, m, top, parts):  # type: ignore[no-untyped-def]
    """Return whether a row's maximum is tied: it occurs in several parts, or repeatedly in m values from index a."""
    count = np.int32(0)
    for c in range(m):
        count += np.int32(flat[a + np.uint64(c)] == top)
    return (parts > 1) | (count > 1)


@compile_kernel
def _hits(row, top, several, label):  # type: ignore[no-untyped-def]
    """Return whether the label is the top class; ties are resolved to the lowest class."""
    if not several:
        return row[label] == top
    first = 0
    while row[first] != top:
        first += 1
    return first == label


@compile_kernel
def _hits_of_long_rows(bits, y, tops, hit):  # type: ignore[no-untyped-def]
    """Write the bits of the maximum of long rows to `tops`, and whether it is the label's to `hit`; return the ties.

    Two distant rows are processed at a time, because two memory streams are faster than one.
    """
    flat, (m, k), ties = bits.reshape(-1), bits.shape, 0
    half, line, ahead = (m + 1) // 2, CACHE_LINE // bits.itemsize, _AHEAD // bits.itemsize
    for i in range(half):
        j = min(i + half, m - 1)
        row, other = np.uint64(i * k), np.uint64(j * k)
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
        several = _is_tied(flat, row + np.uint64(within), min(_PART, k - within), top, parts)
        tops[i], hit[i] = top, _hits(bits[i], top, several, y[i])
        ties += int(several)
        several = _is_tied(flat, other + np.uint64(there), min(_PART, k - there), other_top, others)
        if i + half < m:
            tops[j], hit[j] = other_top, _hits(bits[j], other_top, several, y[j])
            ties += int(several)
    return ties


def _bits(P: Array) -> Array:
    return P.view(np.int32 if P.dtype == np.float32 else np.int64)


def _kernel_layout(P: Array) -> tuple[Array, int]:
    """Return the rows in the memory layout of the kernels, and the number of rows per thread task."""
    ready = P.flags.c_contiguous and P.flags.aligned and P.dtype != np.float16
    values = _COPIED if not ready else _LONG if P.shape[1] > _WIDE else _VALUES
    return as_plain_array(P) if ready else P, max(1, values // P.shape[1])


def _find_largest(P: Array, top: Array, at: Array) -> int:
    """Write the largest value of each row of a block and its lowest class; return the number of ties."""
    if P.shape[1] > _WIDE:
        return int(_of_long_rows(_bits(P), _bits(top), at))
    columns, second = np.empty((P.shape[1], ROWS_PER_TILE), dtype=P.dtype), np.empty(ROWS_PER_TILE, dtype=P.dtype)
    return int(_of_short_rows(P, columns, second, top, at))


def _find_hits(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row of a block, 1 or 0 (int64) if its class is the label, and the ties."""
    top, hit = np.empty(len(P), dtype=P.dtype), np.empty(len(P), dtype=np.int64)
    if P.shape[1] > _WIDE:
        return top, hit, int(_hits_of_long_rows(_bits(P), y, _bits(top), hit))
    at = np.empty(len(P), dtype=np.int32)
    ties = _find_largest(P, top, at)
    _matches(at, y, hit)
    return top, hit, ties


def _blocks(P: Array, start: int, stop: int, step: int) -> Iterator[tuple[Array, slice]]:
    """Yield the rows from `start` to `stop` in blocks of `step` rows, with the position of each block."""
    for a in range(start, stop, step):
        rows = slice(a, min(a + step, stop))
        yield as_plain_array(P[rows]), rows


def confidence_sums(P: Array, y: Array, edges: Array, closed: str) -> tuple[Array, int]:
    """Return n, Σp and Σp² of the top probability per bin, (bins, 2, 3), for incorrect and correct rows.

    The second result is the number of rows with a tied maximum, where the lowest class counts. P is (n, K), y (n,)
    int64.
    """
    dtype = np.float64 if P.dtype == np.float64 else np.float32
    bounds, by, bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    (P, step), y = _kernel_layout(P), as_plain_array(y)
    ties: list[int] = []

    def add(start: int, stop: int, out: Array) -> None:
        for block, rows in _blocks(P, start, stop, step):
            top, hit, tied = _find_hits(block, y[rows])
            add_label_sums(as_plain_array(top), as_plain_array(hit), 1, bounds, bins, by, out)
            ties.append(tied)

    table = sum_blocks(add, len(P), (2 * (bins + 2), 3), block=step)
    return merge_outer_bins(table.reshape(bins + 2, 6)).reshape(bins, 2, 3), sum(ties)


def confidence_moments(P: Array, y: Array, cells: int, powers: int) -> tuple[Array, int]:
    """Return the moments of correctness minus confidence of the top class per cell, and the number of tied rows.

    The moments are (cells, powers), see `smoothing.moments`. If the maximum is tied, the lowest class counts.
    """
    (P, step), y = _kernel_layout(P), as_plain_array(y)
    ties: list[int] = []

    def add(start: int, stop: int, out: Array) -> None:
        for block, rows in _blocks(P, start, stop, step):
            top, hit, tied = _find_hits(block, y[rows])
            add_cell_moments(as_plain_array(top), hit - top.astype(np.float64), 0.0, float(cells), 0.0, out)
            ties.append(tied)

    return sum_blocks(add, len(P), (cells, powers), block=2 * step), sum(ties)


def row_maxima(P: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, the lowest class that has it (int32), and the number of tied rows."""
    top, at = _top_like(P), np.empty(len(P), dtype=np.int32)
    P, step = _kernel_layout(P)

    def work(start: int, stop: int) -> int:
        return _find_largest(as_plain_array(P[start:stop]), top[start:stop], at[start:stop])

    return top, at, sum(map_blocks(work, len(P), step))


def confidence_and_correctness(P: Array, y: Array) -> tuple[Array, Array, int]:
    """Return the largest value of each row, whether its (lowest) class is the label, and the number of tied rows."""
    top, hit = _top_like(P), np.empty(len(P), dtype=np.bool_)
    (P, step), y = _kernel_layout(P), as_plain_array(y)

    def work(start: int, stop: int) -> int:
        top[start:stop], hit[start:stop], ties = _find_hits(as_plain_array(P[start:stop]), y[start:stop])
        return ties

    return top, hit, sum(map_blocks(work, len(P), step))


def _top_like(P: Array) -> Array:
    return np.empty(len(P), dtype=np.float32 if P.dtype == np.float16 else P.dtype)
