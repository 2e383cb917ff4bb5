"""Compute the log loss of a softmax with one parameter, such as an inverse temperature, and six derivatives.

The class probabilities of a row are proportional to p^β (tempered) or to exp(θx) (linear). The logarithm of their
normalizing constant is a cumulant generating function: its derivatives in the parameter are the cumulants of log p or x
under these probabilities. With so many derivatives, few passes over the rows find the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_fused, map_blocks

_LOG_OF_2 = math.log(2)
_MIN_INTEGER = np.int64(-(2**63))  # start of a search for the largest bits
_SIGN_FLIP_MASK = np.int64(2**63 - 1)  # orders the bits of negative numbers as integers

# Indices are unsigned, because signed ones are checked for negative values. Rows are not sliced, because each slice
# would cost reference counting.


@compile_fused
def copy_tile(source, start, m, out, out_start):  # type: ignore[no-untyped-def]
    """Copy m numbers of `source` from index `start` to `out` from index `out_start`."""
    # A separate pass, because the processor prefetches less well if loads are mixed with arithmetic.
    source_index, out_index = np.uint64(start), np.uint64(out_start)
    for i in range(np.uint64(m)):
        out[out_index + i] = source[source_index + i]


@compile_fused
def subtract_max(x, bits, k):  # type: ignore[no-untyped-def]
    """Subtract the maximum from each row of k numbers of x (rows · k,); it is found from `bits`, x as integers."""
    for row in range(x.shape[0] // k):
        start, stop = np.uint64(row * k), np.uint64((row + 1) * k)
        largest = _MIN_INTEGER
        for i in range(start, stop):
            largest = max(largest, bits[i] ^ ((bits[i] >> 63) & _SIGN_FLIP_MASK))
        row_max = np.int64(largest ^ ((largest >> 63) & _SIGN_FLIP_MASK)).view(np.float64)
        for i in range(start, stop):
            x[i] -= row_max


@compile_fused
def add_likelihood_derivatives(x, y, exponent_scale, unnormalized, k, Y, w, first, row_step, out):  # type: ignore[no-untyped-def]
    """Add the negative log-likelihood of the rows of x and its six derivatives to `out` (7,).

    `unnormalized` = 2^(exponent_scale · y) are the class probabilities of each row up to a factor, and x the values
    whose cumulants are the derivatives; each has k numbers per row. Y are (n, k) shares or (n, 1) class numbers, of
    which the rows of x are the rows `first` · `row_step`, (`first` + 1) · `row_step`, …
    """
    for row in range(x.shape[0] // k):
        start, stop, source_row = np.uint64(row * k), np.uint64((row + 1) * k), (first + row) * row_step
        weight = w[source_row]
        total, mean = _sum_and_mean(x, unnormalized, start, stop)
        second, third, fourth, fifth, sixth = _central_moments(x, unnormalized, 1.0 / total, mean, start, stop)
        observed, exponent = _observed_means(x, y, Y, source_row, start)
        out[0] += weight * _LOG_OF_2 * (log2(total) - exponent_scale * exponent)
        out[1] += weight * (mean - observed)
        out[2] += weight * second
        out[3] += weight * third
        out[4] += weight * (fourth - 3.0 * second * second)
        out[5] += weight * (fifth - 10.0 * third * second)
        out[6] += weight * (sixth - 15.0 * fourth * second - 10.0 * third * third + 30.0 * second * second * second)


@compile_fused
def _sum_and_mean(x, unnormalized, start, stop):  # type: ignore[no-untyped-def]
    """Return the sum of the unnormalized probabilities of a row, and the mean of x under them."""
    total = weighted_sum = 0.0
    for i in range(start, stop):
        total += unnormalized[i]
        weighted_sum += unnormalized[i] * x[i]
    return total, weighted_sum / total


@compile_fused
def _central_moments(x, unnormalized, inverse_total, mean, start, stop):  # type: ignore[no-untyped-def]
    """Return the central moments 2 to 6 of x under the probabilities of a row (start..stop−1)."""
    second = third = fourth = fifth = sixth = 0.0
    for i in range(start, stop):
        deviation = x[i] - mean
        square = deviation * deviation
        cube = square * deviation
        weighted_square = unnormalized[i] * square
        second += weighted_square
        third += unnormalized[i] * cube
        fourth += weighted_square * square
        fifth += weighted_square * cube
        sixth += unnormalized[i] * cube * cube
    return (
        inverse_total * second,
        inverse_total * third,
        inverse_total * fourth,
        inverse_total * fifth,
        inverse_total * sixth,
    )


@compile_fused
def _observed_means(x, y, Y, row, start):  # type: ignore[no-untyped-def]
    """Return the means of x and y over the observed outcomes of a row: a class number, or the shares of all classes."""
    if Y.shape[1] == 1:
        index = start + np.uint64(Y[row, 0])
        return x[index], y[index]
    mean_x = mean_y = 0.0
    for c in range(np.uint64(Y.shape[1])):
        mean_x += Y[row, c] * x[start + c]
        mean_y += Y[row, c] * y[start + c]
    return mean_x, mean_y


N_SUMS = 7  # the value and six derivatives
VALUES_PER_BLOCK = 2**18  # number of values per thread task
_VALUES_PER_TILE = 2**12  # number of values processed at a time, so that they stay in the L1 cache
_SMALLEST_NORMAL = 2.0**-1022  # smallest number of which `log2` computes the logarithm
_LOG_OF_ZERO = -1e300  # base-2 logarithm of an exact zero; its power is 0


def tempered_log_loss(P: Array, Y: Array, w: Array, beta: float, min_prob: float, row_step: int = 1) -> Array:
    """Return the negative log-likelihood of rows proportional to max(p, min_prob)^β, and six derivatives in β, (7,).

    Only every `row_step`-th row is used, starting with the first. Logarithms are recomputed in every pass, which takes
    about as long as reading them from memory.
    """
    p, (n, k) = as_plain_array(P).reshape(-1), P.shape
    outcomes, mass = _as_outcomes(Y), _as_float64(w)

    def add_rows(start: int, stop: int, out: Array) -> None:
        _tempered_log_loss_blocks(p, k, row_step, outcomes, mass, beta, min_prob, start, stop, out)

    return _sum_in_blocks(add_rows, -(-n // row_step), k) * _LOG_OF_2 ** np.arange(N_SUMS)


def linear_log_loss(X: Array, Y: Array, w: Array, theta: float, offset: Array | None = None) -> Array:
    """Return the negative log-likelihood of rows proportional to exp(o + θx), and six derivatives in θ, (7,)."""
    x, (n, k) = as_plain_array(X).reshape(-1), X.shape
    outcomes, mass = _as_outcomes(Y), _as_float64(w)
    o = _as_float64(np.empty(0) if offset is None else offset).reshape(-1)

    def add_rows(start: int, stop: int, out: Array) -> None:
        _linear_log_loss_blocks(x, k, outcomes, mass, theta, o, start, stop, out)

    return _sum_in_blocks(add_rows, n, k)


def temper_probabilities(P: Array, beta: float) -> Array:
    """Return rows proportional to p^β, normalized to sum 1, (n, K) float64; exact zeros stay zero."""
    p, (n, k) = as_plain_array(P).reshape(-1), P.shape
    out = np.empty((n, k))
    out_values = out.reshape(-1)

    def temper_rows(start: int, stop: int) -> None:
        _temper_blocks(p, k, beta, start, stop, out_values)

    map_blocks(temper_rows, n, max(1, VALUES_PER_BLOCK // k))
    return out


def _as_outcomes(Y: Array) -> Array:
    return as_plain_array(Y[:, None].astype(np.int64, copy=False)) if Y.ndim == 1 else as_plain_array(Y)


def _as_float64(x: Array) -> Array:
    return as_plain_array(x.astype(np.float64, copy=False))


def _sum_in_blocks(add_rows: Callable[[int, int, Array], None], n: int, k: int) -> Array:
    """Return the sums over n rows, (7,), from blocks of rows that are added in a fixed order."""

    def sum_block(start: int, stop: int) -> Array:
        out = np.zeros(N_SUMS)
        add_rows(start, stop, out)
        return out

    return np.sum([np.zeros(N_SUMS), *map_blocks(sum_block, n, max(1, VALUES_PER_BLOCK // k))], axis=0)


@compile_fused
def _tempered_log_loss_blocks(P, k, row_step, Y, w, beta, min_prob, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the sums of `tempered_log_loss` of the rows start..stop−1 to `out` (7,), tile by tile."""
    rows = max(1, _VALUES_PER_TILE // k)
    log_buffer, power_buffer = np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        logs, powers = log_buffer[:m], power_buffer[:m]
        for row in range(m // k):
            copy_tile(P, (first + row) * row_step * k, k, powers, row * k)
        log2_clipped(powers, min_prob, logs)
        subtract_max(logs, logs.view(np.int64), k)
        exp2_scaled(logs, beta, powers)
        add_likelihood_derivatives(logs, logs, beta, powers, k, Y, w, first, row_step, out)


@compile_fused
def _temper_blocks(P, k, beta, start, stop, out):  # type: ignore[no-untyped-def]
    rows = max(1, _VALUES_PER_TILE // k)
    logs = np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        powers = out[first * k : first * k + m]
        copy_tile(P, first * k, m, powers, 0)
        log2_clipped(powers, _SMALLEST_NORMAL, logs[:m])
        for i in range(m):
            logs[i] = logs[i] if powers[i] > 0.0 else _LOG_OF_ZERO
        subtract_max(logs[:m], logs[:m].view(np.int64), k)
        exp2_scaled(logs[:m], beta, powers)
        for row in range(m // k):
            row_start, row_stop = np.uint64(row * k), np.uint64((row + 1) * k)
            total = 0.0
            for i in range(row_start, row_stop):
                total += powers[i]
            inverse_total = 1.0 / total
            for i in range(row_start, row_stop):
                powers[i] *= inverse_total


@compile_fused
def _linear_log_loss_blocks(X, k, Y, w, theta, offset, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the sums of `linear_log_loss` of the rows start..stop−1 to `out` (7,), tile by tile."""
    rows = max(1, _VALUES_PER_TILE // k)
    x_buffer, exponent_buffer, power_buffer = np.empty(rows * k), np.empty(rows * k), np.empty(rows * k)
    for first in range(start, stop, rows):
        m = min(rows, stop - first) * k
        x, exponents, powers = x_buffer[:m], exponent_buffer[:m], power_buffer[:m]
        copy_tile(X, first * k, m, x, 0)
        if offset.shape[0] > 0:
            copy_tile(offset, first * k, m, exponents, 0)
        else:
            exponents[:] = 0.0
        for i in range(m):
            exponents[i] = (exponents[i] + theta * x[i]) / _LOG_OF_2
        subtract_max(exponents, exponents.view(np.int64), k)
        exp2_scaled(exponents, 1.0, powers)
        add_likelihood_derivatives(x, exponents, 1.0, powers, k, Y, w, first, 1, out)


_MIN_EXPONENT = -1021.0  # exponents of 2 below this are treated as −∞
# The bits of √½ as an integer: mantissas are reduced to [√½, √2), so that their logarithms are centered at 0.
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MAX_SQUARED_RATIO = (3 - math.sqrt(8)) ** 2  # s² for mantissas of √½ and √2


def _interpolate_polynomial(
    function: Callable[[float], float], low: float, high: float, degree: int
) -> tuple[float, ...]:
    """Return the coefficients of the polynomial through the Chebyshev nodes, which is nearly the best approximation."""
    angle = (np.arange(degree + 1) + 0.5) * math.pi / (degree + 1)
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    return tuple(
        np.linalg.solve(nodes[:, None] ** np.arange(degree + 1), [function(node) for node in nodes.tolist()]).tolist()
    )


def _odd_log_ratio(squared_ratio: float) -> float:
    """Return log₂((1 + s)/(1 − s))/s, given s²."""
    ratio = math.sqrt(squared_ratio)
    return 2 / math.log(2) * math.atanh(ratio) / ratio


_LOG2_COEF = _interpolate_polynomial(_odd_log_ratio, 0, _MAX_SQUARED_RATIO, 7)
# The degree is even, so that 0 is a node up to rounding.
_EXP2_COEF = _interpolate_polynomial(lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 10)


@compile_fused
def log2(x):  # type: ignore[no-untyped-def]
    """Return log₂ x of a positive normal number, with relative error 1e-15."""
    bits = np.float64(x).view(np.int64)
    power = np.int32((bits - _SQRT_HALF_BITS) >> 52)
    mantissa = np.int64(bits - (np.int64(power) << 52)).view(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    squared_ratio = ratio * ratio
    high_terms = _LOG2_COEF[4] + squared_ratio * (
        _LOG2_COEF[5] + squared_ratio * (_LOG2_COEF[6] + squared_ratio * _LOG2_COEF[7])
    )
    return np.float64(power) + ratio * (
        _LOG2_COEF[0]
        + squared_ratio
        * (
            _LOG2_COEF[1]
            + squared_ratio * (_LOG2_COEF[2] + squared_ratio * (_LOG2_COEF[3] + squared_ratio * high_terms))
        )
    )


@compile_fused
def exp2(y):  # type: ignore[no-untyped-def]
    """Return 2^y for y ≤ 0, with relative error 1e-15; 0 for y ≤ −1021."""
    clipped = y if y > _MIN_EXPONENT else _MIN_EXPONENT
    power = np.int32(clipped - 0.5)
    fraction = clipped - np.float64(power)
    polynomial = _EXP2_COEF[7] + fraction * (_EXP2_COEF[8] + fraction * (_EXP2_COEF[9] + fraction * _EXP2_COEF[10]))
    polynomial = _EXP2_COEF[3] + fraction * (
        _EXP2_COEF[4] + fraction * (_EXP2_COEF[5] + fraction * (_EXP2_COEF[6] + fraction * polynomial))
    )
    polynomial = fraction * (
        _EXP2_COEF[0] + fraction * (_EXP2_COEF[1] + fraction * (_EXP2_COEF[2] + fraction * polynomial))
    )
    scale = np.int64((np.int64(power) + 1023) << 52).view(np.float64)
    return (1.0 + polynomial) * (scale if y > _MIN_EXPONENT else 0.0)


@compile_fused
def log2_clipped(p, min_prob, out):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        out[i] = log2(p[i] if p[i] > min_prob else min_prob)


@compile_fused
def exp2_scaled(y, scale, out):  # type: ignore[no-untyped-def]
    for i in range(y.shape[0]):
        out[i] = exp2(scale * y[i])
