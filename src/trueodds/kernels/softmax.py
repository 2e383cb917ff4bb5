"""Compute the log-likelihood of a tempered or linear softmax in one parameter, with its derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain

_MIN_EXPONENT = -1021.0  # 2 to what is less than that is taken for 0
# √½ as a whole number: the mantissa is counted from there on, so that its log lies around 0.
_HALF = 0x3FE6A09E667F3BCD
_FARTHEST = (3 - math.sqrt(8)) ** 2  # s² for mantissas of √½ and √2


def loop(function: Any) -> Any:
    """Compiled with leave to add up in another order and to multiply and add at once."""
    return compiled(function, fastmath={"reassoc", "nsz", "contract"})


def _polynomial(function: Callable[[float], float], low: float, high: float, degree: int) -> tuple[float, ...]:
    """The one that meets the function at Chebyshev's points, which is all but the closest there is."""
    angle = (np.arange(degree + 1) + 0.5) * math.pi / (degree + 1)
    at = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    return tuple(np.linalg.solve(at[:, None] ** np.arange(degree + 1), [function(x) for x in at.tolist()]).tolist())


def _odd(z: float) -> float:
    """Return log₂((1 + s)/(1 − s))/s, given z = s²."""
    s = math.sqrt(z)
    return 2 / math.log(2) * math.atanh(s) / s


_LOG = _polynomial(_odd, 0, _FARTHEST, 7)
_EXP = _polynomial(lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 10)  # whose points leave 0 out by a hair


@loop
def log2(x):  # type: ignore[no-untyped-def]
    """log₂ x of a positive normal number, to 1e-15 of itself."""
    bits = np.float64(x).view(np.int64)
    power = np.int32((bits - _HALF) >> 52)
    m = np.int64(bits - (np.int64(power) << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    a = _LOG[4] + z * (_LOG[5] + z * (_LOG[6] + z * _LOG[7]))
    return np.float64(power) + s * (_LOG[0] + z * (_LOG[1] + z * (_LOG[2] + z * (_LOG[3] + z * a))))


@loop
def exp2(y):  # type: ignore[no-untyped-def]
    """2^y for y ≤ 0, to 1e-15 of itself."""
    inside = y if y > _MIN_EXPONENT else _MIN_EXPONENT
    power = np.int32(inside - 0.5)
    f = inside - np.float64(power)
    a = _EXP[7] + f * (_EXP[8] + f * (_EXP[9] + f * _EXP[10]))
    a = _EXP[3] + f * (_EXP[4] + f * (_EXP[5] + f * (_EXP[6] + f * a)))
    a = f * (_EXP[0] + f * (_EXP[1] + f * (_EXP[2] + f * a)))
    scale = np.int64((np.int64(power) + 1023) << 52).view(np.float64)
    return (1.0 + a) * (scale if y > _MIN_EXPONENT else 0.0)


@loop
def log2_clipped(p, min_prob, out):  # type: ignore[no-untyped-def]
    """log₂ max(p, floor) of each into `out`."""
    for t in range(p.shape[0]):
        out[t] = log2(p[t] if p[t] > min_prob else min_prob)


@loop
def exp2_scaled(y, by, out):  # type: ignore[no-untyped-def]
    """Write 2 to the power `by` · y, which is at most 0, to `out`."""
    for t in range(y.shape[0]):
        out[t] = exp2(by * y[t])


_LOG_OF_2 = math.log(2)
_LOWEST, _BELOW = np.int64(-(2**63)), np.int64(2**63 - 1)

# Positions are unsigned: of a signed one the compiler must ask each time whether it counts from the end. And rows are
# no arrays of their own, since those would be counted in and out of use one by one.


@loop
def copy_tile(source, start, m, out, at):  # type: ignore[no-untyped-def]
    """Copies m numbers."""
    # A pass of its own: among arithmetic, the processor would not look far enough ahead for what memory is to bring.
    begin, to = np.uint64(start), np.uint64(at)
    for t in range(np.uint64(m)):
        out[to + t] = source[begin + t]


@loop
def subtract_max(x, bits, k):  # type: ignore[no-untyped-def]
    """Subtract from each row of k numbers its maximum, which is found among integers of the same order."""
    for row in range(x.shape[0] // k):
        start, stop = np.uint64(row * k), np.uint64((row + 1) * k)
        largest = _LOWEST
        for t in range(start, stop):
            largest = max(largest, bits[t] ^ ((bits[t] >> 63) & _BELOW))
        top = np.int64(largest ^ ((largest >> 63) & _BELOW)).view(np.float64)
        for t in range(start, stop):
            x[t] -= top


@loop
def add_rows(x, y, by, e, k, Y, w, first, every, out):  # type: ignore[no-untyped-def]
    """Add the terms of rows that are `every` apart in Y and w: e = 2^(by·y) are their weights, x their values."""
    for row in range(x.shape[0] // k):
        start, stop, which = np.uint64(row * k), np.uint64((row + 1) * k), (first + row) * every
        weight = w[which]
        total, mean = _mean(x, e, start, stop)
        second, third, fourth, fifth, sixth = _moments(x, e, 1.0 / total, mean, start, stop)
        observed, exponent = _observed_means(x, y, Y, which, start)
        out[0] += weight * _LOG_OF_2 * (log2(total) - by * exponent)
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
    """Return the means of x and y over the observed outcomes of a row: a class number, or the shares of all classes."""
    if Y.shape[1] == 1:
        t = start + np.uint64(Y[row, 0])
        return x[t], y[t]
    observed = exponent = 0.0
    for c in range(np.uint64(Y.shape[1])):
        observed += Y[row, c] * x[start + c]
        exponent += Y[row, c] * y[start + c]
    return observed, exponent


SUMS = 7  # the value and six derivatives
BLOCK = 2**18  # numbers that one call works through
_TILE = 2**12  # of which so many lie in a core's nearest cache at a time
_LN2 = math.log(2)
_NORMAL, _NOTHING = 2.0**-1022, -1e300


def tempered(P: Array, Y: Array, w: Array, beta: float, min_prob: float, every: int = 1) -> Array:
    """Return the negative log-likelihood of rows proportional to max(p, floor)^β, and six derivatives in β, (7,).

    P (n, K) are probabilities of any float type, Y (n, K) shares of the outcomes or (n,) class numbers, w (n,) weights;
    `every` selects every so many-th row, starting with the first. Logarithms are recomputed in every pass, which takes
    about as long as reading them from memory.
    """
    p, (n, k) = plain(P).reshape(-1), P.shape
    outcomes, mass = _outcomes(Y), _wide(w)

    def some(start: int, stop: int, out: Array) -> None:
        _tempered(p, k, every, outcomes, mass, beta, min_prob, start, stop, out)

    return _sum_blocks(some, -(-n // every), k) * _LN2 ** np.arange(SUMS)


def linear(X: Array, Y: Array, w: Array, theta: float, offset: Array | None = None) -> Array:
    """The same for rows proportional to exp(o + θx), with derivatives by θ; X and o are (n, K)."""
    x, (n, k) = plain(X).reshape(-1), X.shape
    outcomes, mass = _outcomes(Y), _wide(w)
    o = _wide(np.empty(0) if offset is None else offset).reshape(-1)

    def some(start: int, stop: int, out: Array) -> None:
        _linear(x, k, outcomes, mass, theta, o, start, stop, out)

    return _sum_blocks(some, n, k)


def powered(P: Array, beta: float) -> Array:
    """Rows proportional to p^β, (n, K) float64; an exact zero stays one."""
    p, (n, k) = plain(P).reshape(-1), P.shape
    out = np.empty((n, k))
    flat = out.reshape(-1)

    def work(start: int, stop: int) -> None:
        _powered(p, k, beta, start, stop, flat)

    in_blocks(work, n, max(1, BLOCK // k))
    return out


def _outcomes(Y: Array) -> Array:
    return plain(Y[:, None].astype(np.int64, copy=False)) if Y.ndim == 1 else plain(Y)


def _wide(x: Array) -> Array:
    return plain(x.astype(np.float64, copy=False))


def _sum_blocks(some: Callable[[int, int, Array], None], n: int, k: int) -> Array:
    """Sum the blocks over all rows in a fixed order, independent of the threads."""

    def work(start: int, stop: int) -> Array:
        out = np.zeros(SUMS)
        some(start, stop, out)
        return out

    return np.sum([np.zeros(SUMS), *in_blocks(work, n, max(1, BLOCK // k))], axis=0)


@loop
def _tempered(P, k, every, Y, w, beta, min_prob, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    left, right = np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, e = left[:m], right[:m]
        for row in range(m // k):
            copy_tile(P, (first + row) * every * k, k, e, row * k)
        log2_clipped(e, min_prob, x)
        subtract_max(x, x.view(np.int64), k)
        exp2_scaled(x, beta, e)
        add_rows(x, x, beta, e, k, Y, w, first, every, out)


@loop
def _powered(P, k, beta, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    x = np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        e = out[first * k : first * k + m]
        copy_tile(P, first * k, m, e, 0)
        log2_clipped(e, _NORMAL, x[:m])
        for t in range(m):
            x[t] = x[t] if e[t] > 0.0 else _NOTHING
        subtract_max(x[:m], x[:m].view(np.int64), k)
        exp2_scaled(x[:m], beta, e)
        for row in range(m // k):
            begin, end = np.uint64(row * k), np.uint64((row + 1) * k)
            total = 0.0
            for t in range(begin, end):
                total += e[t]
            share = 1.0 / total
            for t in range(begin, end):
                e[t] *= share


@loop
def _linear(X, k, Y, w, theta, offset, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _TILE // k)
    left, middle, right = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, y, e = left[:m], middle[:m], right[:m]
        copy_tile(X, first * k, m, x, 0)
        if offset.shape[0] > 0:
            copy_tile(offset, first * k, m, y, 0)
        else:
            y[:] = 0.0
        for t in range(m):
            y[t] = (y[t] + theta * x[t]) / _LN2
        subtract_max(y, y.view(np.int64), k)
        exp2_scaled(y, 1.0, e)
        add_rows(x, y, 1.0, e, k, Y, w, first, 1, out)
