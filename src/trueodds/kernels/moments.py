"""How do masses at scores spread over a grid? Their moments within each cell, from which any spline follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain, summed

_ROWS = 2**15  # whose masses are made at a time, so that they stay in a core's own cache
_STEP = 1024  # of them that are placed at a time


@compiled
def added(x, mass, m, first, per, middle, offset, place, out):  # type: ignore[no-untyped-def]
    """Adds the moments of the first m masses at x to out (cells, powers); slot and place are room for as many rows."""
    cells, powers = out.shape
    last, sums = np.float64(cells - 1), out.reshape(-1)
    for i in range(m):
        t = (np.float64(x[i]) - first) * per
        cell = min(max(np.floor(t), 0.0), last)
        place[i] = t - cell - middle
        offset[i] = np.int32(cell) * powers
    if powers == 4:  # those of a cubic, of which rows are seen in the millions
        for i in range(m):
            s, u, one = np.uint32(offset[i]), place[i], mass[i]
            two = one * u
            three = two * u
            sums[s] += one
            sums[s + 1] += two
            sums[s + 2] += three
            sums[s + 3] += three * u
    else:
        for i in range(m):
            s, u, term = np.uint32(offset[i]), place[i], mass[i]
            for k in range(powers):
                sums[s + np.uint32(k)] += term
                term *= u


@compiled
def _of_masses(x, mass, first, per, middle, out):  # type: ignore[no-untyped-def]
    """The same of any number of masses."""
    offset, place = np.empty(_STEP, dtype=np.int32), np.empty(_STEP)
    for a in range(0, x.shape[0], _STEP):
        m = min(_STEP, x.shape[0] - a)
        added(x[a : a + m], mass[a : a + m], m, first, per, middle, offset, place, out)


@compiled
def _residuals(p, y, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = np.float64(y[i]) - np.float64(p[i])


def residuals(p: Array, y: Array, w: Array | None) -> Callable[[int, int], Array]:
    """w(y − p) of rows from one number to another, for `moments`."""

    def mass(start: int, stop: int) -> Array:
        out = np.empty(stop - start)
        _residuals(plain(p[start:stop]), plain(y[start:stop]), out)
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
            _of_masses(x[a:b], plain(mass(a, b)), first, per, middle, out)

    return summed(add, len(x), (cells, powers), block=2 * _ROWS)
