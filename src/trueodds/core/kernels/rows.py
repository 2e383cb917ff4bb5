"""What each row says for itself: its largest values, its proper scores, what is special about it."""

from __future__ import annotations

import math

import numpy as np

from trueodds.core.kernels import compiled


@compiled
def largest(P, which, value):  # type: ignore[no-untyped-def]
    """The one to three largest values of each row and their columns, the lower column first among equals.

    Returns how many rows have several largest values.
    """
    ranks = which.shape[1]
    few = P.shape[1] <= 16  # a branch per value is guessed wrong too often in short rows
    ties = 0
    for i in range(P.shape[0]):
        a = b = c = np.float64(-1.0)
        at_a = at_b = at_c = 0
        tied = 0
        for j in range(P.shape[1]):
            x = np.float64(P[i, j])
            if few or x > c:
                over_a, over_b, over_c = x > a, x > b, x > c
                tied = 0 if over_a else (1 if x == a else tied)
                c, at_c = (b if over_b else (x if over_c else c)), (at_b if over_b else (j if over_c else at_c))
                b, at_b = (a if over_a else (x if over_b else b)), (at_a if over_a else (j if over_b else at_b))
                a, at_a = (x if over_a else a), (j if over_a else at_a)
        ties += tied
        which[i, 0], value[i, 0] = at_a, a
        if ranks > 1:
            which[i, 1], value[i, 1] = at_b, b
        if ranks > 2:
            which[i, 2], value[i, 2] = at_c, c
    return ties


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
