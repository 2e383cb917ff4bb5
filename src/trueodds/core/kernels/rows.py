"""What each row says for itself: its largest values, its proper scores, what is special about it."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.kernels import compiled

_ROWS = 248  # rows turned into columns at a time: each step is then one vector instruction for many rows


@compiled
def largest(P, which, value):  # type: ignore[no-untyped-def]
    """The one to three largest values of each row and their columns, the lower column first among equals.

    Returns how many rows have several largest values.
    """
    k, ranks = P.shape[1], which.shape[1]
    columns = np.empty((k, _ROWS), dtype=P.dtype)
    a, b, c = np.empty_like(columns[0]), np.empty_like(columns[0]), np.empty_like(columns[0])
    at = np.empty_like(a)  # a column's number, as wide as the values so that one instruction takes as many
    ties = 0
    for start in range(0, P.shape[0], _ROWS):
        m = min(_ROWS, P.shape[0] - start)
        for i in range(m):
            for j in range(k):
                columns[j, i] = P[start + i, j]
        _largest_values(columns, m, a, b, c)
        for i in range(m):
            ties += a[i] == b[i]
        for rank in range(ranks):
            best = a if rank == 0 else (b if rank == 1 else c)
            _first_columns(columns, m, best, at)
            for i in range(m):
                column = np.int64(at[i])
                which[start + i, rank], value[start + i, rank] = column, best[i]
                columns[column, i] = -1  # taken: among equals the next rank has the next column
    return ties


@compiled
def _largest_values(columns, m, a, b, c):  # type: ignore[no-untyped-def]
    """The three largest values of each row, repeated ones repeatedly."""
    a[:], b[:], c[:] = -1, -1, -1
    for j in range(columns.shape[0]):
        column = columns[j]
        for i in range(m):
            x, first, second, third = column[i], a[i], b[i], c[i]
            a[i] = x if x > first else first
            x = first if x > first else x  # the smaller one goes down a rank
            b[i] = x if x > second else second
            x = second if x > second else x
            c[i] = x if x > third else third


@compiled
def _first_columns(columns, m, value, at):  # type: ignore[no-untyped-def]
    """The lowest column with that value."""
    k = columns.shape[0]
    for down in range(1, k + 1):
        column, number = columns[k - down], at.dtype.type(k - down)
        for i in range(m):
            before, x, y = at[i], column[i], value[i]
            at[i] = number if x == y else before


@compiled
def scored(P, y, binary, brier, loss):  # type: ignore[no-untyped-def]
    """The Brier score and the log loss of each row against its label.

    `binary` scores the last column alone, as a view of two classes does.
    """
    k = P.shape[1]
    for i in range(P.shape[0]):
        if binary:
            p = np.float64(P[i, k - 1])
            brier[i] = (p - y[i]) * (p - y[i])
            seen = p if y[i] == 1 else 1.0 - p
        else:
            squares = 0.0
            for c in range(k):
                squares += np.float64(P[i, c]) * np.float64(P[i, c])
            seen = np.float64(P[i, y[i]])
            brier[i] = squares - 2.0 * seen + 1.0
        loss[i] = -math.log(seen) if seen > 0 else np.inf


@compiled
def inspected(P, off_by, counts, extremes):  # type: ignore[no-untyped-def]
    """Adds up exact zeros, exact ones, values above 1 and rows whose sum is off by more than `off_by`.

    `extremes` takes the largest excess over 1 and the largest distance of a row's sum from 1.
    """
    zeros = ones = above = off = 0
    for i in range(P.shape[0]):
        total = 0.0
        for c in range(P.shape[1]):
            x = np.float64(P[i, c])
            total += x
            zeros += x == 0.0
            ones += x == 1.0
            if x > 1.0:
                above += 1
                extremes[0] = max(extremes[0], x - 1.0)
        distance = abs(total - 1.0)
        if distance > off_by:
            off += 1
            extremes[1] = max(extremes[1], distance)
    counts[0] += zeros
    counts[1] += ones
    counts[2] += above
    counts[3] += off
