"""Compute logarithms and powers of base 2 by polynomials, which compilers vectorize.

NumPy's own are as fast only on processors with AVX-512; on others they take three times as long, and with them the fit
of a temperature.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from trueodds.kernels import compile_fused

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
