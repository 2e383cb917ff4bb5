"""How do masses at scores spread over a grid? Their moments within each cell, from which any spline follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, plain, summed

Array = NDArray[Any]

_ROWS = 2**15  # whose masses are made at a time, so that they stay in a core's own cache


@compiled
def added(x, mass, first, per, middle, out):  # type: ignore[no-untyped-def]
    """Adds the moments of masses at x to out (cells, powers)."""
    cells, powers = out.shape
    for i in range(x.shape[0]):
        t = (np.float64(x[i]) - first) * per
        cell = min(max(np.int64(t), 0), cells - 1)
        u, term = t - cell - middle, mass[i]
        for k in range(powers):
            out[np.uint32(cell), np.uint32(k)] += term
            term *= u


@compiled
def _off(p, y, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = np.float64(y[i]) - np.float64(p[i])


def residuals(p: Array, y: Array, w: Array | None) -> Callable[[int, int], Array]:
    """w(y − p) of rows from one number to another, for `moments`."""

    def mass(start: int, stop: int) -> Array:
        out = np.empty(stop - start)
        _off(plain(p[start:stop]), plain(y[start:stop]), out)
        return out if w is None else np.multiply(out, w[start:stop], out=out)

    return mass


def moments(
    x: Array,
    mass: Callable[[int, int], Array],
    cells: int,
    powers: int,
    *,
    first: float = 0.0,
    last: float = 1.0,
    middle: float = 0.0,
) -> Array:
    """Σ mass · u^k in each of the cells that cut [first, last] evenly, (cells, powers).

    u runs from −middle to 1 − middle over a cell. What lies beyond the ends belongs to the outer cells. x (n,) is in
    any order; `mass(start, stop)` gives the masses of some rows in turn, so that they never need be there together.
    """
    x, per = plain(x), cells / (last - first)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _ROWS):
            b = min(a + _ROWS, stop)
            added(x[a:b], plain(mass(a, b)), first, per, middle, out)

    return summed(add, len(x), (cells, powers), block=2 * _ROWS)
