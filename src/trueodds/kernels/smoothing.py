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
        position = (np.float64(x[i]) - first) * cells_per_unit
        cell = min(max(np.floor(position), 0.0), last)
        position_in_cell[i] = position - cell - middle
        cell_offset[i] = np.int32(cell) * powers
    if powers == 4:  # unrolled for the most frequent case
        for i in range(m):
            index, offset, moment0 = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            moment1 = moment0 * offset
            moment2 = moment1 * offset
            sums[index] += moment0
            sums[index + 1] += moment1
            sums[index + 2] += moment2
            sums[index + 3] += moment2 * offset
    else:
        for i in range(m):
            index, offset, term = np.uint32(cell_offset[i]), position_in_cell[i], mass[i]
            for k in range(powers):
                sums[index + np.uint32(k)] += term
                term *= offset


@compile_kernel
def add_cell_moments(x, mass, first, cells_per_unit, middle, out):  # type: ignore[no-untyped-def]
    """Add the moments of all masses at x to `out` (cells, powers)."""
    cell_offset, position_in_cell = np.empty(_ROWS_PER_CELL_PASS, dtype=np.int32), np.empty(_ROWS_PER_CELL_PASS)
    for start in range(0, x.shape[0], _ROWS_PER_CELL_PASS):
        m = min(_ROWS_PER_CELL_PASS, x.shape[0] - start)
        add_block_moments(
            x[start : start + m],
            mass[start : start + m],
            m,
            first,
            cells_per_unit,
            middle,
            cell_offset,
            position_in_cell,
            out,
        )


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
    x, cells_per_unit = as_plain_array(x), cells / (last - first)

    def add(start: int, stop: int, out: Array) -> None:
        for block_start in range(start, stop, _ROWS_PER_MASS_BLOCK):
            block_stop = min(block_start + _ROWS_PER_MASS_BLOCK, stop)
            add_cell_moments(
                x[block_start:block_stop],
                as_plain_array(mass(block_start, block_stop)),
                first,
                cells_per_unit,
                middle,
                out,
            )

    return sum_blocks(add, len(x), (cells, powers), block=2 * _ROWS_PER_MASS_BLOCK)


_NEGLIGIBLE_SQUARED_DISTANCE = 74.0  # in units of h²: e^(−74/2) is less than the rounding error of 1
_POINTS_PER_TASK = 64  # minimum number of points per thread task


@compile_kernel
def _gaussian_sums(points, s, w, wy, h, max_excess, out):  # type: ignore[no-untyped-def]
    m = s.shape[0]
    for i in range(points.shape[0]):
        point = points[i]
        next_score = np.searchsorted(s, point)
        squared_distance = np.inf
        if next_score < m:
            squared_distance = s[next_score] - point
        if next_score > 0:
            squared_distance = min(squared_distance, point - s[next_score - 1])
        squared_distance = (squared_distance / h) ** 2
        low, high = next_score, next_score
        while low > 0 and ((point - s[low - 1]) / h) ** 2 <= squared_distance + max_excess:
            low -= 1
        while high < m and ((s[high] - point) / h) ** 2 <= squared_distance + max_excess:
            high += 1
        mass = events = mass_slope = event_slope = 0.0
        for k in range(low, high):
            distance = (point - s[k]) / h
            kernel = np.exp((squared_distance - distance * distance) / 2.0)
            mass += w[k] * kernel
            events += wy[k] * kernel
            mass_slope -= w[k] * kernel * distance
            event_slope -= wy[k] * kernel * distance
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = (
            mass,
            events,
            mass_slope / h,
            event_slope / h,
            -squared_distance / 2.0,
        )


def gaussian_sums(points: Array, s: Array, w: Array, wy: Array, h: float) -> Array:
    r"""Return Gaussian kernel sums of weights and outcomes at given points, with their derivatives.

    The sums are :math:`\sum_k w_k g(x - s_k)` and the same with wy, with :math:`g(u) = e^{-u^2/2h^2}`. The result (n,
    5) has Σwg, Σwyg and their two derivatives, all divided by the g of the nearest score, and the log of that g. So
    ratios are accurate wherever x in `points` (n,) lies. The scores s (m,) are sorted, m ≥ 1, w > 0.
    """
    out = np.empty((len(points), 5))
    points, s, w, wy = (as_plain_array(np.asarray(v, dtype=np.float64)) for v in (points, s, w, wy))
    map_blocks(
        lambda start, stop: _gaussian_sums(
            points[start:stop], s, w, wy, h, _NEGLIGIBLE_SQUARED_DISTANCE, out[start:stop]
        ),
        len(points),
        _POINTS_PER_TASK,
    )
    return out


_N_SERIES_TERMS = 12  # number of terms of the series; the last is below 1e-16 up to _MAX_SERIES_ARGUMENT
_MAX_SERIES_ARGUMENT = 2.0  # argument below which the closed form loses digits, so that the series is used
_MULTIPLES_PER_PASS = 32  # number of multiples whose sines and cosines are computed by the addition theorem


@compile_kernel
def _triweight_series(z2):  # type: ignore[no-untyped-def]
    """Return the power series of the transform in q = z²."""
    value = 1.0
    for k in range(_N_SERIES_TERMS, 0, -1):
        value = 1.0 - value * z2 / (2 * k * (2 * k + 7))
    return value


@compile_kernel
def _triweight_closed_form(z, sine, cosine):  # type: ignore[no-untyped-def]
    z2 = z * z
    return 105.0 * ((15.0 - 6.0 * z2) * sine - z * (15.0 - z2) * cosine) / (z2 * z2 * z2 * z)


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
            start_sine, start_cosine = np.sin(start * step), np.cos(start * step)
            for j in range(min(_MULTIPLES_PER_PASS, row.shape[0] - start)):
                multiple_sine, multiple_cosine = (
                    start_sine * cosine[j] + start_cosine * sine[j],
                    start_cosine * cosine[j] - start_sine * sine[j],
                )
                row[start + j] = _triweight_closed_form((start + j) * step, multiple_sine, multiple_cosine)
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
