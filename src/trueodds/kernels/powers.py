"""What are the logs and the powers of many numbers? To base 2, in loops that become vectors, as the library's do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.kernels import compiled

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
    """log₂((1 + s)/(1 − s))/s, given z = s²."""
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
def logs(p, min_prob, out):  # type: ignore[no-untyped-def]
    """log₂ max(p, floor) of each into `out`."""
    for t in range(p.shape[0]):
        out[t] = log2(p[t] if p[t] > min_prob else min_prob)


@loop
def powers(y, by, out):  # type: ignore[no-untyped-def]
    """2 to `by` · y of each, which are at most 0, into `out`."""
    for t in range(y.shape[0]):
        out[t] = exp2(by * y[t])
