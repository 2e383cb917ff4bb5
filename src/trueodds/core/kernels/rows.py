"""What each row says for itself: its largest values, its proper scores, what is special about it."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.kernels import compiled

_ROWS = 248  # rows turned into columns at a time: each step is then one vector instruction for many rows
_FEW = (
    64  # columns up to which turning pays: in long rows few values are among the largest, and a branch skips the rest
)


@compiled
def surveyed(P, off_by, which, squares, counts, extremes):  # type: ignore[no-untyped-def]
    """The largest values of each row, its Σp², and what is special about it, in one pass.

    `which` (ranks, n) takes the columns of the none to three largest values, the lower column first among equals.
    `counts` adds up exact zeros, exact ones, values above 1, rows whose sum is off by more than `off_by`
    and rows with several largest values; `extremes` takes the largest excess over 1 and distance of a sum from 1.
    """
    n, k = P.shape
    if k > _FEW:
        for i in range(n):
            squares[i] = _row(P[i], i, off_by, which, counts, extremes)
        return
    columns = np.empty((k, _ROWS), dtype=P.dtype)
    total, square = np.empty(_ROWS), np.empty(_ROWS)
    special = np.empty((3, _ROWS), dtype=P.dtype)
    top, at = np.empty((3, _ROWS), dtype=P.dtype), np.empty((3, _ROWS), dtype=P.dtype)
    for start in range(0, n, _ROWS):
        m = min(_ROWS, n - start)
        for i in range(m):
            for j in range(k):
                columns[j, i] = P[start + i, j]
        _sums(columns, m, total, square, special)
        for i in range(m):
            squares[start + i] = square[i]
            counts[3] += abs(total[i] - 1.0) > off_by
            extremes[1] = max(extremes[1], abs(total[i] - 1.0) if abs(total[i] - 1.0) > off_by else 0.0)
        for each in range(3):
            count = P.dtype.type(0.0)
            for i in range(m):
                count += special[each, i]
            counts[each] += np.int64(count)
        if which.shape[0] > 0:
            _largest(columns, m, top[0], top[1], top[2], at[0], at[1], at[2])
            for i in range(m):
                counts[4] += top[0, i] == top[1, i]
            for rank in range(which.shape[0]):
                for i in range(m):
                    which[rank, start + i] = np.int32(at[rank, i])
    if counts[2] > 0:
        for i in range(n):
            for j in range(k):
                extremes[0] = max(extremes[0], np.float64(P[i, j]) - 1.0)


@compiled
def _sums(columns, m, total, square, special):  # type: ignore[no-untyped-def]
    """Σp and Σp² of each row, and how many of its values are 0, 1 and above 1."""
    one, none = columns.dtype.type(1.0), columns.dtype.type(0.0)
    total[:], square[:] = 0.0, 0.0
    special[:] = none
    zeros, ones, above = special[0], special[1], special[2]
    for j in range(columns.shape[0]):
        column = columns[j]
        for i in range(m):
            x = np.float64(column[i])
            total[i] += x
            square[i] += x * x
        for i in range(m):
            x = column[i]
            zeros[i] += one if x == none else none
            ones[i] += one if x == one else none
            above[i] += one if x > one else none


@compiled
def _largest(columns, m, a, b, c, at_a, at_b, at_c):  # type: ignore[no-untyped-def]
    """The three largest values of each row and their columns, numbers as wide as the values."""
    low, none = columns.dtype.type(-1.0), columns.dtype.type(0.0)
    a[:], b[:], c[:] = low, low, low
    at_a[:], at_b[:], at_c[:] = none, none, none
    for j in range(columns.shape[0]):
        column, number = columns[j], columns.dtype.type(j)
        for i in range(m):
            x, first, second, third = column[i], a[i], b[i], c[i]
            at_first, at_second, at_third = at_a[i], at_b[i], at_c[i]
            c[i] = second if x > second else (x if x > third else third)
            at_c[i] = at_second if x > second else (number if x > third else at_third)
            b[i] = first if x > first else (x if x > second else second)
            at_b[i] = at_first if x > first else (number if x > second else at_second)
            a[i] = x if x > first else first
            at_a[i] = number if x > first else at_first


@compiled
def _row(p, i, off_by, which, counts, extremes):  # type: ignore[no-untyped-def]
    """The same for one long row; returns its Σp²."""
    a = b = c = p.dtype.type(-1.0)
    at_a = at_b = at_c = 0
    total = square = 0.0
    zeros = ones = above = 0
    for j in range(p.shape[0]):
        x = p[j]
        wide = np.float64(x)
        total += wide
        square += wide * wide
        zeros += wide == 0.0
        ones += wide == 1.0
        if x > c:
            over_a, over_b = x > a, x > b
            c, at_c = (b if over_b else x), (at_b if over_b else j)
            b, at_b = (a if over_a else (x if over_b else b)), (at_a if over_a else (j if over_b else at_b))
            a, at_a = (x if over_a else a), (j if over_a else at_a)
            if wide > 1.0:
                above += 1
                extremes[0] = max(extremes[0], wide - 1.0)
        elif wide > 1.0:
            above += 1
    counts[0] += zeros
    counts[1] += ones
    counts[2] += above
    distance = abs(total - 1.0)
    if distance > off_by:
        counts[3] += 1
        extremes[1] = max(extremes[1], distance)
    counts[4] += a == b
    if which.shape[0] > 0:
        which[0, i] = at_a
    if which.shape[0] > 1:
        which[1, i] = at_b
    if which.shape[0] > 2:
        which[2, i] = at_c
    return square


@compiled
def scored(P, y, squares, binary, brier, loss):  # type: ignore[no-untyped-def]
    """The Brier score and the log loss of each row against its label, given its Σp².

    `binary` scores the last column alone, as a view of two classes does.
    """
    k = P.shape[1]
    for i in range(P.shape[0]):
        seen = np.float64(P[i, y[i]])
        if binary:
            p = np.float64(P[i, k - 1])
            brier[i] = (p - y[i]) * (p - y[i])
            seen = p if y[i] == 1 else 1.0 - p
        else:
            brier[i] = squares[i] - 2.0 * seen + 1.0
        loss[i] = -math.log(seen) if seen > 0 else np.inf
