"""Compute the log-likelihood of a tempered or linear softmax in one parameter, with its derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

_MIN_EXPONENT = -1021.0  # exponents of 2 below this are treated as −∞
# The bits of √½ as an integer: mantissas are reduced to [√½, √2), so that their logarithms are centered at 0.
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MAX_SQUARED_RATIO = (3 - math.sqrt(8)) ** 2  # s² for mantissas of √½ and √2


def compile_reordered(function: Any) -> Any:
    """Compile a function and allow the compiler to reorder sums and to use fused multiply-add instructions."""
    return compile_kernel(function, fastmath={"reassoc", "nsz", "contract"})


def _polynomial(function: Callable[[float], float], low: float, high: float, degree: int) -> tuple[float, ...]:
    """Return the coefficients of the polynomial that interpolates a function at the Chebyshev nodes of [low, high].

    Its maximum error is close to that of the best approximation.
    """
    angle = (np.arange(degree + 1) + 0.5) * math.pi / (degree + 1)
    at = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    return tuple(np.linalg.solve(at[:, None] ** np.arange(degree + 1), [function(x) for x in at.tolist()]).tolist())


def _odd_log_ratio(z: float) -> float:
    """Return log₂((1 + s)/(1 − s))/s, given z = s²."""
    s = math.sqrt(z)
    return 2 / math.log(2) * math.atanh(s) / s


_LOG = _polynomial(_odd_log_ratio, 0, _MAX_SQUARED_RATIO, 7)
_EXP = _polynomial(lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 10)  # 0 is a node up to rounding


@compile_reordered
def log2(x):  # type: ignore[no-untyped-def]
    """Return log₂ x of a positive normal number, with relative error 1e-15."""
    bits = np.float64(x).view(np.int64)
    power = np.int32((bits - _SQRT_HALF_BITS) >> 52)
    m = np.int64(bits - (np.int64(power) << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    a = _LOG[4] + z * (_LOG[5] + z * (_LOG[6] + z * _LOG[7]))
    return np.float64(power) + s * (_LOG[0] + z * (_LOG[1] + z * (_LOG[2] + z * (_LOG[3] + z * a))))


@compile_reordered
def exp2(y):  # type: ignore[no-untyped-def]
    """Return 2^y for y ≤ 0, with relative error 1e-15; 0 for y ≤ −1021."""
    inside = y if y > _MIN_EXPONENT else _MIN_EXPONENT
    power = np.int32(inside - 0.5)
    f = inside - np.float64(power)
    a = _EXP[7] + f * (_EXP[8] + f * (_EXP[9] + f * _EXP[10]))
    a = _EXP[3] + f * (_EXP[4] + f * (_EXP[5] + f * (_EXP[6] + f * a)))
    a = f * (_EXP[0] + f * (_EXP[1] + f * (_EXP[2] + f * a)))
    scale = np.int64((np.int64(power) + 1023) << 52).view(np.float64)
    return (1.0 + a) * (scale if y > _MIN_EXPONENT else 0.0)


@compile_reordered
def log2_clipped(p, min_prob, out):  # type: ignore[no-untyped-def]
    """Write log₂ max(p, min_prob) of each p to `out`."""
    for t in range(p.shape[0]):
        out[t] = log2(p[t] if p[t] > min_prob else min_prob)


@compile_reordered
def exp2_scaled(y, scale, out):  # type: ignore[no-untyped-def]
    """Write 2 to the power `by` · y, which is at most 0, to `out`."""
    for t in range(y.shape[0]):
        out[t] = exp2(scale * y[t])


_LOG_OF_2 = math.log(2)
_MIN_INTEGER = np.int64(-(2**63))
_SIGN_FLIP_MASK = np.int64(2**63 - 1)  # orders the bits of negative numbers as integers

# Indices are unsigned, because signed ones are checked for negative values. Rows are not sliced, because each slice
# would cost reference counting.


@compile_reordered
def copy_tile(source, start, m, out, at):  # type: ignore[no-untyped-def]
    """Copy m numbers of `source` from index `start` to `out` from index `at`."""
    # A separate pass, because the processor prefetches less well if loads are mixed with arithmetic.
    begin, to = np.uint64(start), np.uint64(at)
    for t in range(np.uint64(m)):
        out[to + t] = source[begin + t]


@compile_reordered
def subtract_max(x, bits, k):  # type: ignore[no-untyped-def]
    """Subtract the maximum from each row of k numbers; the maximum is found from `bits`, x as integers."""
    for row in range(x.shape[0] // k):
        start, stop = np.uint64(row * k), np.uint64((row + 1) * k)
        largest = _MIN_INTEGER
        for t in range(start, stop):
            largest = max(largest, bits[t] ^ ((bits[t] >> 63) & _SIGN_FLIP_MASK))
        top = np.int64(largest ^ ((largest >> 63) & _SIGN_FLIP_MASK)).view(np.float64)
        for t in range(start, stop):
            x[t] -= top


@compile_reordered
def add_likelihood_derivatives(x, y, by, e, k, Y, w, first, every, out):  # type: ignore[no-untyped-def]
    """Add the log-likelihood terms of the rows of x and their six derivatives to `out` (7,).

    e = 2^(by·y) are the unnormalized class probabilities of each row, and x the values whose cumulants are the
    derivatives. The rows are `every` rows apart in the outcomes Y and the weights w, starting with number `first`.
    """
    for row in range(x.shape[0] // k):
        start, stop, which = np.uint64(row * k), np.uint64((row + 1) * k), (first + row) * every
        weight = w[which]
        total, mean = _total_and_mean(x, e, start, stop)
        second, third, fourth, fifth, sixth = _central_moments(x, e, 1.0 / total, mean, start, stop)
        observed, exponent = _observed_means(x, y, Y, which, start)
        out[0] += weight * _LOG_OF_2 * (log2(total) - by * exponent)
        out[1] += weight * (mean - observed)
        out[2] += weight * second
        out[3] += weight * third
        out[4] += weight * (fourth - 3.0 * second * second)
        out[5] += weight * (fifth - 10.0 * third * second)
        out[6] += weight * (sixth - 15.0 * fourth * second - 10.0 * third * third + 30.0 * second * second * second)


@compile_reordered
def _total_and_mean(x, e, start, stop):  # type: ignore[no-untyped-def]
    total = first = 0.0
    for t in range(start, stop):
        total += e[t]
        first += e[t] * x[t]
    return total, first / total


@compile_reordered
def _central_moments(x, e, share, mean, start, stop):  # type: ignore[no-untyped-def]
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


@compile_reordered
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


N_SUMS = 7  # the value and six derivatives
VALUES_PER_BLOCK = 2**18  # number of values per thread task
_VALUES_PER_TILE = 2**12  # number of values processed at a time, so that they stay in the L1 cache
_SMALLEST_NORMAL = 2.0**-1022
_LOG_OF_ZERO = -1e300  # base-2 logarithm of an exact zero; its power is 0


def tempered_log_loss(P: Array, Y: Array, w: Array, beta: float, min_prob: float, every: int = 1) -> Array:
    """Return the negative log-likelihood of rows proportional to max(p, min_prob)^β, and six derivatives in β, (7,).

    P (n, K) are probabilities of any float type, Y (n, K) shares of the outcomes or (n,) class numbers, w (n,) weights;
    only every `every`-th row is used, starting with the first. Logarithms are recomputed in every pass, which takes
    about as long as reading them from memory.
    """
    p, (n, k) = as_plain_array(P).reshape(-1), P.shape
    outcomes, mass = _outcomes(Y), _as_float64(w)

    def add_block(start: int, stop: int, out: Array) -> None:
        _tempered_log_loss_blocks(p, k, every, outcomes, mass, beta, min_prob, start, stop, out)

    return _sum_blocks(add_block, -(-n // every), k) * _LOG_OF_2 ** np.arange(N_SUMS)


def linear_log_loss(X: Array, Y: Array, w: Array, theta: float, offset: Array | None = None) -> Array:
    """Return the negative log-likelihood of rows proportional to exp(o + θx), and six derivatives in θ, (7,).

    X and the offsets o are (n, K); Y and w are as in `tempered_log_loss`.
    """
    x, (n, k) = as_plain_array(X).reshape(-1), X.shape
    outcomes, mass = _outcomes(Y), _as_float64(w)
    o = _as_float64(np.empty(0) if offset is None else offset).reshape(-1)

    def add_block(start: int, stop: int, out: Array) -> None:
        _linear_log_loss_blocks(x, k, outcomes, mass, theta, o, start, stop, out)

    return _sum_blocks(add_block, n, k)


def temper_probabilities(P: Array, beta: float) -> Array:
    """Return rows proportional to p^β, normalized to sum 1, (n, K) float64; exact zeros stay zero."""
    p, (n, k) = as_plain_array(P).reshape(-1), P.shape
    out = np.empty((n, k))
    flat = out.reshape(-1)

    def work(start: int, stop: int) -> None:
        _temper_blocks(p, k, beta, start, stop, flat)

    map_blocks(work, n, max(1, VALUES_PER_BLOCK // k))
    return out


def _outcomes(Y: Array) -> Array:
    return as_plain_array(Y[:, None].astype(np.int64, copy=False)) if Y.ndim == 1 else as_plain_array(Y)


def _as_float64(x: Array) -> Array:
    return as_plain_array(x.astype(np.float64, copy=False))


def _sum_blocks(add_block: Callable[[int, int, Array], None], n: int, k: int) -> Array:
    """Sum the blocks over all rows in a fixed order, independent of the threads."""

    def work(start: int, stop: int) -> Array:
        out = np.zeros(N_SUMS)
        add_block(start, stop, out)
        return out

    return np.sum([np.zeros(N_SUMS), *map_blocks(work, n, max(1, VALUES_PER_BLOCK // k))], axis=0)


@compile_reordered
def _tempered_log_loss_blocks(P, k, every, Y, w, beta, min_prob, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _VALUES_PER_TILE // k)
    left, right = np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, e = left[:m], right[:m]
        for row in range(m // k):
            copy_tile(P, (first + row) * every * k, k, e, row * k)
        log2_clipped(e, min_prob, x)
        subtract_max(x, x.view(np.int64), k)
        exp2_scaled(x, beta, e)
        add_likelihood_derivatives(x, x, beta, e, k, Y, w, first, every, out)


@compile_reordered
def _temper_blocks(P, k, beta, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _VALUES_PER_TILE // k)
    x = np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        e = out[first * k : first * k + m]
        copy_tile(P, first * k, m, e, 0)
        log2_clipped(e, _SMALLEST_NORMAL, x[:m])
        for t in range(m):
            x[t] = x[t] if e[t] > 0.0 else _LOG_OF_ZERO
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


@compile_reordered
def _linear_log_loss_blocks(X, k, Y, w, theta, offset, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _VALUES_PER_TILE // k)
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
            y[t] = (y[t] + theta * x[t]) / _LOG_OF_2
        subtract_max(y, y.view(np.int64), k)
        exp2_scaled(y, 1.0, e)
        add_likelihood_derivatives(x, y, 1.0, e, k, Y, w, first, 1, out)
