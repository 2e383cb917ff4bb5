"""What do a few rows of numbers x say under weights 2^y? Steps on tiles of rows that lie one after the other."""

from __future__ import annotations

import math

import numpy as np

from trueodds.kernels.powers import log2, loop

_LN2 = math.log(2)
_LOWEST, _BELOW = np.int64(-(2**63)), np.int64(2**63 - 1)

# Positions are unsigned: of a signed one the compiler must ask each time whether it counts from the end. And rows are
# no arrays of their own, since those would be counted in and out of use one by one.


@loop
def fetch(source, start, m, out, at):  # type: ignore[no-untyped-def]
    """Copies m numbers."""
    # A pass of its own: among arithmetic, the processor would not look far enough ahead for what memory is to bring.
    begin, to = np.uint64(start), np.uint64(at)
    for t in range(np.uint64(m)):
        out[to + t] = source[begin + t]


@loop
def level(x, bits, k):  # type: ignore[no-untyped-def]
    """Each row of k numbers less its largest, which is found among whole numbers that rise as x does."""
    for row in range(x.shape[0] // k):
        start, stop = np.uint64(row * k), np.uint64((row + 1) * k)
        largest = _LOWEST
        for t in range(start, stop):
            largest = max(largest, bits[t] ^ ((bits[t] >> 63) & _BELOW))
        top = np.int64(largest ^ ((largest >> 63) & _BELOW)).view(np.float64)
        for t in range(start, stop):
            x[t] -= top


@loop
def add(x, y, by, e, k, Y, w, first, every, out):  # type: ignore[no-untyped-def]
    """Adds what some rows say, which lie `every` apart in Y and w: e = 2^(by·y) are their weights, x their numbers."""
    for row in range(x.shape[0] // k):
        start, stop, which = np.uint64(row * k), np.uint64((row + 1) * k), (first + row) * every
        weight = w[which]
        total, mean = _mean(x, e, start, stop)
        second, third, fourth, fifth, sixth = _moments(x, e, 1.0 / total, mean, start, stop)
        observed, exponent = _observed_means(x, y, Y, which, start)
        out[0] += weight * _LN2 * (log2(total) - by * exponent)
        out[1] += weight * (mean - observed)
        out[2] += weight * second
        out[3] += weight * third
        out[4] += weight * (fourth - 3.0 * second * second)
        out[5] += weight * (fifth - 10.0 * third * second)
        out[6] += weight * (sixth - 15.0 * fourth * second - 10.0 * third * third + 30.0 * second * second * second)


@loop
def _mean(x, e, start, stop):  # type: ignore[no-untyped-def]
    total = first = 0.0
    for t in range(start, stop):
        total += e[t]
        first += e[t] * x[t]
    return total, first / total


@loop
def _moments(x, e, share, mean, start, stop):  # type: ignore[no-untyped-def]
    second = third = fourth = fifth = sixth = 0.0
    for t in range(start, stop):
        d = x[t] - mean
        square = d * d
        cube = square * d
        even = e[t] * square
        second += even
        third += e[t] * cube
        fourth += even * square
        fifth += even * cube
        sixth += e[t] * cube * cube
    return share * second, share * third, share * fourth, share * fifth, share * sixth


@loop
def _observed_means(x, y, Y, row, start):  # type: ignore[no-untyped-def]
    """The means of x and y over what came in a row: a class number, or the shares of all classes."""
    if Y.shape[1] == 1:
        t = start + np.uint64(Y[row, 0])
        return x[t], y[t]
    observed = exponent = 0.0
    for c in range(np.uint64(Y.shape[1])):
        observed += Y[row, c] * x[start + c]
        exponent += Y[row, c] * y[start + c]
    return observed, exponent
