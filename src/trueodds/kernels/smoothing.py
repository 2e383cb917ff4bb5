"""Sums for kernel smoothing: moments per grid cell, Gaussian kernel sums, and the triweight kernel's transform."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks, sum_blocks

_ROWS_PER_MASS_BLOCK = (
    2**15
)  # number of rows whose masses are computed at a time, so that they stay in the core's own cache
_ROWS_PER_CELL_PASS = 1024  # number of rows assigned to cells at a time


@compile_kernel
def add_block_moments(x, mass, m, first, cells_per_unit, middle, cell_offset, position_in_cell, out):  # type: ignore[no-untyped-def]
    """Add the moments of the first m masses at x to `out` (cells, powers), see `cell_moments`.

    `cell_offset` (int32) and `position_in_cell` (float64) are buffers of m or more.
    """
    cells, powers = out.shape
    last, sums = np.float64(cells - 1), out.reshape(-1)
    for i in range(m):
        t = (np.float64(x[i]) - first) * cells_per_unit
        cell = min(max(np.floor(t), 0.0), last)
        position_in_cell[i] = t - cell - middle
        cell_offset[i] = np.int32(cell) * powers
    if powers == 4:  # unrolled for the most frequent case
        for i in range(m):
            s, u, one = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            two = one * u
            three = two * u
            sums[s] += one
            sums[s + 1] += two
            sums[s + 2] += three
            sums[s + 3] += three * u
    else:
        for i in range(m):
            s, u, term = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            for k in range(powers):
                sums[s + np.uint32(k)] += term
                term *= u


@compile_kernel
def add_cell_moments(x, mass, first, cells_per_unit, middle, out):  # type: ignore[no-untyped-def]
    """Add the moments of all masses at x to `out` (cells, powers)."""
    offset, place = np.empty(_ROWS_PER_CELL_PASS, dtype=np.int32), np.empty(_ROWS_PER_CELL_PASS)
    for a in range(0, x.shape[0], _ROWS_PER_CELL_PASS):
        m = min(_ROWS_PER_CELL_PASS, x.shape[0] - a)
        add_block_moments(x[a : a + m], mass[a : a + m], m, first, cells_per_unit, middle, offset, place, out)


@compile_kernel
def _fill_residuals(p, y, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = np.float64(y[i]) - np.float64(p[i])


def residual_function(p: Array, y: Array, w: Array | None) -> Callable[[int, int], Array]:
    """Return a function of start and stop that computes w(y − p) of these rows, for `cell_moments`."""

    def mass(start: int, stop: int) -> Array:
        out = np.empty(stop - start)
        _fill_residuals(as_plain_array(p[start:stop]), as_plain_array(y[start:stop]), out)
        return out if w is None else np.multiply(out, w[start:stop], out=out)

    return mass


def cell_moments(
    x: Array,
    mass: Callable[[int, int], Array],
    cells: int,
    powers: int,
    *,
    first: float = 0.0,
    last: float = 1.0,
    middle: float = 0.0,
) -> Array:
    """Return Σ mass · u^k in each of the equal cells of [first, last], (cells, powers).

    u runs from −middle to 1 − middle over a cell. Values beyond the ends belong to the outer cells. x (n,) is in any
    order; `mass(start, stop)` returns the masses of some rows, so that they need not be in memory at once.
    """
    x, per = as_plain_array(x), cells / (last - first)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _ROWS_PER_MASS_BLOCK):
            b = min(a + _ROWS_PER_MASS_BLOCK, stop)
            add_cell_moments(x[a:b], as_plain_array(mass(a, b)), first, per, middle, out)

    return sum_blocks(add, len(x), (cells, powers), block=2 * _ROWS_PER_MASS_BLOCK)


_NEGLIGIBLE_SQUARED_DISTANCE = 74.0  # in units of h²: e^(−74/2) is less than the rounding error of 1
_POINTS_PER_TASK = 64  # minimum number of points per thread task


@compile_kernel
def _gaussian_sums(at, s, w, wy, h, lost, out):  # type: ignore[no-untyped-def]
    m = s.shape[0]
    for i in range(at.shape[0]):
        x = at[i]
        j = np.searchsorted(s, x)
        nearest = np.inf
        if j < m:
            nearest = s[j] - x
        if j > 0:
            nearest = min(nearest, x - s[j - 1])
        nearest = (nearest / h) ** 2
        low, high = j, j
        while low > 0 and ((x - s[low - 1]) / h) ** 2 <= nearest + lost:
            low -= 1
        while high < m and ((s[high] - x) / h) ** 2 <= nearest + lost:
            high += 1
        mass = events = tilt = turn = 0.0
        for k in range(low, high):
            u = (x - s[k]) / h
            near = np.exp((nearest - u * u) / 2.0)
            mass += w[k] * near
            events += wy[k] * near
            tilt -= w[k] * near * u
            turn -= wy[k] * near * u
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = mass, events, tilt / h, turn / h, -nearest / 2.0


def gaussian_sums(at: Array, s: Array, w: Array, wy: Array, h: float) -> Array:
    r"""Return Gaussian kernel sums of weights and outcomes at given points, with their derivatives.

    The sums are :math:`\sum_k w_k g(x - s_k)` and the same with wy, with :math:`g(u) = e^{-u^2/2h^2}`. The result (n,
    5) has Σwg, Σwyg and their two derivatives, all divided by the g of the nearest score, and the log of that g. So
    ratios are accurate wherever x in `at` (n,) lies. The scores s (m,) are sorted, m ≥ 1, w > 0.
    """
    out = np.empty((len(at), 5))
    at, s, w, wy = (as_plain_array(np.asarray(v, dtype=np.float64)) for v in (at, s, w, wy))
    map_blocks(
        lambda a, b: _gaussian_sums(at[a:b], s, w, wy, h, _NEGLIGIBLE_SQUARED_DISTANCE, out[a:b]),
        len(at),
        _POINTS_PER_TASK,
    )
    return out


_N_SERIES_TERMS = 12  # number of terms of the series; the last is below 1e-16 up to _MAX_SERIES_ARGUMENT
_MAX_SERIES_ARGUMENT = 2.0  # argument below which the closed form loses digits, so that the series is used
_MULTIPLES_PER_PASS = 32  # number of multiples whose sines and cosines are computed by the addition theorem


@compile_kernel
def _triweight_series(q):  # type: ignore[no-untyped-def]
    """Return the power series of the transform in q = z²."""
    value = 1.0
    for k in range(_N_SERIES_TERMS, 0, -1):
        value = 1.0 - value * q / (2 * k * (2 * k + 7))
    return value


@compile_kernel
def _triweight_closed_form(z, sine, cosine):  # type: ignore[no-untyped-def]
    q = z * z
    return 105.0 * ((15.0 - 6.0 * q) * sine - z * (15.0 - q) * cosine) / (q * q * q * z)


@compile_kernel
def _fill_triweight_transform(z, out):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        out[i] = (
            _triweight_series(z[i] * z[i])
            if z[i] < _MAX_SERIES_ARGUMENT
            else _triweight_closed_form(z[i], np.sin(z[i]), np.cos(z[i]))
        )


@compile_kernel
def _fill_transform_of_multiples(z, out):  # type: ignore[no-untyped-def]
    sine, cosine = np.empty(_MULTIPLES_PER_PASS), np.empty(_MULTIPLES_PER_PASS)
    for r in range(z.shape[0]):
        step, row = z[r], out[r]
        for j in range(_MULTIPLES_PER_PASS):
            sine[j], cosine[j] = np.sin(j * step), np.cos(j * step)
        for start in range(0, row.shape[0], _MULTIPLES_PER_PASS):
            s, c = np.sin(start * step), np.cos(start * step)
            for j in range(min(_MULTIPLES_PER_PASS, row.shape[0] - start)):
                a, b = s * cosine[j] + c * sine[j], c * cosine[j] - s * sine[j]
                row[start + j] = _triweight_closed_form((start + j) * step, a, b)
        k = 0
        while k < row.shape[0] and k * step < _MAX_SERIES_ARGUMENT:
            row[k] = _triweight_series(k * step * k * step)
            k += 1


def triweight_transform(z: Array) -> Array:
    """Return the Fourier transform of the triweight kernel on [−1, 1] at each z ≥ 0; it is 1 at z = 0."""
    out = np.empty(np.size(z))
    _fill_triweight_transform(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape(np.shape(z))


def triweight_transform_of_multiples(z: Array, count: int) -> Array:
    """Return the transform (see `triweight_transform`) at 0, z, 2z, …, count · z for each z ≥ 0, (…, count + 1)."""
    out = np.empty((np.size(z), count + 1))
    _fill_transform_of_multiples(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape((*np.shape(z), count + 1))
