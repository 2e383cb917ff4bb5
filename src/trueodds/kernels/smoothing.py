"""Smooth residuals and outcomes over the scores: by cell moments, kernels, sliding windows and linear binning.

- The moments Σ mass · u^k in equal cells of an interval of scores, with u the position of a row in its cell, determine
  the sum of every polynomial in u of the same degree. So kernel estimators need a single pass over the rows: their
  kernel, or the spline by which rows are assigned to grid points, is a polynomial within each cell.
- The triweight kernel (35/32) (1 − u²)³ on [−1, 1] has the Fourier transform 105 [(15 − 6z²) sin z − z (15 − z²) cos z]
  / z⁷, which is 1 at z = 0; near 0, a power series is used.
- While a window that slides over sorted scores contains the same scores, its sum is constant. So the integral of its
  absolute sum is a sum over intervals of positions.
- Many sets of scores, such as those of many bootstrap resamples, are counted between edges, or each score is split
  between the two nearest bin centers or grid points (linear binning).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, map_blocks, sum_blocks

# Number of rows whose masses are computed at a time, so that they stay in the core's own cache.
_ROWS_PER_MASS_BLOCK = 2**15
_ROWS_PER_CELL_PASS = 1024  # number of rows assigned to cells at a time


@compile_inline
def add_block_moments(x, mass, m, first, cells_per_unit, middle, cell_offset, position_in_cell, out):  # type: ignore[no-untyped-def]
    """Add the moments of the first m masses at the scores x to `out` (cells, powers), see `cell_moments`.

    `first` is the start of the first cell, and `cells_per_unit` the inverse of the width of a cell. `middle` is the
    point of a cell at which u = 0, as a fraction of its width. `cell_offset` (int32) and `position_in_cell` (float64)
    are buffers of m or more.
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
    """Return a function that computes the residuals w(y − p) of the rows start..stop−1, for `cell_moments`."""

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
    """Return Σ mass · u^k in each of the equal cells of [first, last], for k = 0, …, powers − 1, (cells, powers).

    `mass(start, stop)` returns the masses of these rows, so that they need not be in memory at once. u is the position
    in a cell, as a fraction of its width, from −`middle` to 1 − `middle`. Scores beyond the ends belong to the outer
    cells.
    """
    x, cells_per_unit = as_plain_array(x), cells / (last - first)

    def add_rows(start: int, stop: int, out: Array) -> None:
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

    return sum_blocks(add_rows, len(x), (cells, powers), block=2 * _ROWS_PER_MASS_BLOCK)


_NEGLIGIBLE_SQUARED_DISTANCE = 74.0  # in units of h²: e^(−74/2) is less than the rounding error of 1
_POINTS_PER_TASK = 64  # minimum number of points per thread task


@compile_kernel
def _gaussian_sums(points, scores, w, wy, bandwidth, max_excess, out):  # type: ignore[no-untyped-def]
    """Write the results of `gaussian_sums` to `out`, without those too far beyond the nearest (`max_excess`, in h²)."""
    m = scores.shape[0]
    for i in range(points.shape[0]):
        point = points[i]
        next_score = np.searchsorted(scores, point)
        nearest_squared = np.inf
        if next_score < m:
            nearest_squared = scores[next_score] - point
        if next_score > 0:
            nearest_squared = min(nearest_squared, point - scores[next_score - 1])
        nearest_squared = (nearest_squared / bandwidth) ** 2
        low, high = next_score, next_score
        while low > 0 and ((point - scores[low - 1]) / bandwidth) ** 2 <= nearest_squared + max_excess:
            low -= 1
        while high < m and ((scores[high] - point) / bandwidth) ** 2 <= nearest_squared + max_excess:
            high += 1
        mass = events = mass_slope = event_slope = 0.0
        for k in range(low, high):
            distance = (point - scores[k]) / bandwidth
            kernel = np.exp((nearest_squared - distance * distance) / 2.0)
            mass += w[k] * kernel
            events += wy[k] * kernel
            mass_slope -= w[k] * kernel * distance
            event_slope -= wy[k] * kernel * distance
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = (
            mass,
            events,
            mass_slope / bandwidth,
            event_slope / bandwidth,
            -nearest_squared / 2.0,
        )


def gaussian_sums(points: Array, scores: Array, w: Array, wy: Array, bandwidth: float) -> Array:
    r"""Return Σwg and Σwyg over the sorted scores at each point x, with g(u) = exp(−u²/2h²) of x − s and bandwidth h.

    The five columns are Σwg, Σwyg and their derivatives in x, all divided by the g of the nearest score, and the
    logarithm of that g. Without this division all terms would underflow for an x far from every score; ratios of sums
    do not change.
    """
    out = np.empty((len(points), 5))
    points, scores, w, wy = (as_plain_array(np.asarray(array, dtype=np.float64)) for array in (points, scores, w, wy))
    map_blocks(
        lambda start, stop: _gaussian_sums(
            points[start:stop], scores, w, wy, bandwidth, _NEGLIGIBLE_SQUARED_DISTANCE, out[start:stop]
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
    """Write the transform at 0, z, 2z, … to `out` (n, count + 1), one row for each z (n,)."""
    sine, cosine = np.empty(_MULTIPLES_PER_PASS), np.empty(_MULTIPLES_PER_PASS)
    for r in range(z.shape[0]):
        step, row = z[r], out[r]
        for j in range(_MULTIPLES_PER_PASS):
            sine[j], cosine[j] = np.sin(j * step), np.cos(j * step)
        for start in range(0, row.shape[0], _MULTIPLES_PER_PASS):
            start_sine, start_cosine = np.sin(start * step), np.cos(start * step)
            for j in range(min(_MULTIPLES_PER_PASS, row.shape[0] - start)):
                multiple_sine = start_sine * cosine[j] + start_cosine * sine[j]
                multiple_cosine = start_cosine * cosine[j] - start_sine * sine[j]
                row[start + j] = _triweight_closed_form((start + j) * step, multiple_sine, multiple_cosine)
        # The closed form is NaN at 0 and loses digits near it: the series replaces these values.
        k = 0
        while k < row.shape[0] and k * step < _MAX_SERIES_ARGUMENT:
            row[k] = _triweight_series(k * step * k * step)
            k += 1


def triweight_transform(z: Array) -> Array:
    """Return the Fourier transform of the triweight kernel at each z ≥ 0, of the shape of z."""
    out = np.empty(np.size(z))
    _fill_triweight_transform(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape(np.shape(z))


def triweight_transform_of_multiples(z: Array, count: int) -> Array:
    """Return the transform (see `triweight_transform`) at 0, z, 2z, …, count · z for each z ≥ 0, (…, count + 1)."""
    out = np.empty((np.size(z), count + 1))
    _fill_transform_of_multiples(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape((*np.shape(z), count + 1))


_SCORES_PER_TASK = 2**16  # minimum number of scores per thread task


@compile_kernel
def _find_intervals(scores, width, first, end, length):  # type: ignore[no-untyped-def]
    """Write the intervals of positions a whose window [a, a + width) contains the same scores, first..end−1."""
    low = high = 0
    position = scores[0] - width
    for j in range(2 * scores.shape[0]):
        entry = scores[high] - width if high < scores.shape[0] else np.inf
        next_position = min(entry, scores[low])
        first[j], end[j], length[j] = low, high, next_position - position
        position = next_position
        if entry <= scores[low]:
            high += 1
        else:
            low += 1


@compile_kernel
def _window_integral(values, first, end, length, out):  # type: ignore[no-untyped-def]
    """Write Σ length · |sum of the values in the window| over the intervals to `out`, for `values` (draws, m)."""
    sums = np.zeros(values.shape[1] + 1)
    for draw in range(values.shape[0]):
        for i in range(values.shape[1]):
            sums[i + 1] = sums[i] + values[draw, i]
        total = 0.0
        for j in range(length.shape[0]):
            total += length[j] * abs(sums[end[j]] - sums[first[j]])
        out[draw] = total


@compile_kernel
def _integral_between(scores, sums, width, start, stop):  # type: ignore[no-untyped-def]
    """Return the part of the integral with the lowest score in the window among start..stop−1."""
    m = scores.shape[0]
    position = scores[start - 1] if start > 0 else scores[0] - width
    high = np.searchsorted(scores, position + width, "right") if start > 0 else 0
    while high > 0 and scores[high - 1] - width > position:  # position + width is rounded
        high -= 1
    total = 0.0
    for low in range(start, stop):
        while high < m and scores[high] - width <= scores[low]:
            next_position = scores[high] - width
            total += (next_position - position) * abs(sums[high] - sums[low])
            position = next_position
            high += 1
        total += (scores[low] - position) * abs(sums[high] - sums[low])
        position = scores[low]
    return total


def mean_absolute_window_sum(scores: Array, values: Array, width: float) -> float:
    """Return ∫ |Σ of the values in the window [a, a + width)| da / width, for values (m,) at sorted scores (m,)."""
    scores, sums = as_plain_array(scores), np.zeros(len(scores) + 1)
    np.cumsum(values, out=sums[1:])
    integrals = map_blocks(
        lambda start, stop: _integral_between(scores, sums, width, start, stop), len(scores), _SCORES_PER_TASK
    )
    return sum(integrals) / width


class SlidingWindows:
    """Sums of values in a sliding window [a, a + width) over sorted `scores` (m,), for many draws."""

    def __init__(self, scores: Array, width: float) -> None:
        self.width = width
        # (2m,) first score in the window, score after the last one, and length of each interval of positions
        self.first, self.end = np.empty(2 * len(scores), np.int32), np.empty(2 * len(scores), np.int32)
        self.length = np.empty(2 * len(scores))
        _find_intervals(scores, width, self.first, self.end, self.length)

    def mean_absolute_sums(self, values: Array) -> Array:
        """Return ∫ |Σ of the values in the window| da / width for each row of `values` (draws, m), (draws,)."""
        values = np.ascontiguousarray(values)

        def integrate_draws(start: int, stop: int) -> Array:
            out = np.empty(stop - start)
            _window_integral(values[start:stop], self.first, self.end, self.length, out)
            return out

        return np.concatenate(list(map_blocks(integrate_draws, len(values), 16))) / self.width


def upper_share(x: Any, low: Any, high: Any, swapped: bool) -> Any:
    """Share of a score x between two bin centers that belongs to the upper one, or 1 minus it if `swapped`."""
    share = (x - low) / (high - low)
    return 1 - share if swapped else share


_upper_share = compile_kernel(upper_share)


@compile_kernel
def _is_beyond_edge(x, edge, right):  # type: ignore[no-untyped-def]
    return x > edge if right else x >= edge


@compile_kernel
def _add_between_edges(p, y, inner, right, out):  # type: ignore[no-untyped-def]
    """Add n, Σp and Σy per bin of the sorted scores p (sets, m) to `out` (3, sets, bins), in one pass over each set.

    `inner` (sets, bins − 1), or (1, bins − 1) for all sets, are the inner edges. `right` says that bins are
    right-closed.
    """
    for r in range(p.shape[0]):
        edges, bin_index = inner[min(r, inner.shape[0] - 1)], 0
        for i in range(p.shape[1]):
            while bin_index < edges.shape[0] and _is_beyond_edge(p[r, i], edges[bin_index], right):
                bin_index += 1
            out[0, r, bin_index] += 1.0
            out[1, r, bin_index] += p[r, i]
            out[2, r, bin_index] += y[r, i]


@compile_kernel
def _add_linear_shares(p, y, centers, right, swapped, out):  # type: ignore[no-untyped-def]
    """Add the shares of each residual y − p to the bins with the two nearest centers, in `out` (sets, bins).

    `centers` is (sets, bins), or (1, bins) for all sets. `right` assigns a score at a center to the interval below it.
    """
    distinct = np.empty(centers.shape[1])
    for r in range(p.shape[0]):
        n_distinct = 0  # number of distinct centers
        for center in centers[min(r, centers.shape[0] - 1)]:
            if n_distinct == 0 or center > distinct[n_distinct - 1]:
                distinct[n_distinct] = center
                n_distinct += 1
        n_below = 0  # number of centers below the score
        for i in range(p.shape[1]):
            while n_below < n_distinct and _is_beyond_edge(p[r, i], distinct[n_below], right):
                n_below += 1
            residual = y[r, i] - p[r, i]
            if n_below == 0 or n_below == n_distinct:
                out[r, max(n_below - 1, 0)] += residual
            else:
                above = residual * _upper_share(p[r, i], distinct[n_below - 1], distinct[n_below], swapped)
                out[r, n_below - 1] += residual - above
                out[r, n_below] += above


@compile_kernel
def _add_linearly_binned(p, y, low, high, cell_index, out):  # type: ignore[no-untyped-def]
    size = cell_index.shape[0]
    for r in range(p.shape[0]):
        for i in range(p.shape[1]):
            cell_position = (min(max(p[r, i], low), high) - low) / (high - low) * size - 0.5
            cell = np.int64(np.floor(cell_position))
            upper = cell_position - cell
            # Shares beyond the outer midpoints are reflected into the outer cells.
            below, above = cell_index[max(cell, 0)], cell_index[min(cell + 1, size - 1)]
            out[r, 0, below] += 1.0 - upper
            out[r, 0, above] += upper
            out[r, 1, below] += y[r, i] * (1.0 - upper)
            out[r, 1, above] += y[r, i] * upper


def sum_between_edges(p: Array, y: Array, inner: Array, closed: str) -> Array:
    """Return n, Σp and Σy per bin for each set of sorted scores, (3, sets, bins).

    p and y are (sets, m), sorted by p. The sorted inner edges `inner` are (sets, bins − 1), or (1, bins − 1) if all
    sets share them. A bin above an infinite edge is empty.
    """
    out = np.zeros((3, len(p), inner.shape[1] + 1))
    _map_sets(
        p,
        lambda start, stop: _add_between_edges(
            p[start:stop], y[start:stop], _slice_sets(inner, start, stop), closed == "right", out[:, start:stop]
        ),
    )
    return out


def sum_linear_shares(p: Array, y: Array, centers: Array, closed: str, swapped: bool) -> Array:
    """Return Σ(y − p) per bin for each set of sorted scores, with linear binning between bin centers, (sets, bins).

    A score between two centers is split between their bins (see `upper_share`). p and y are (sets, m), sorted by p. The
    sorted centers are (sets, bins), or (1, bins) if all sets share them. Bins with equal centers are merged.
    """
    out = np.zeros((len(p), centers.shape[1]))
    _map_sets(
        p,
        lambda start, stop: _add_linear_shares(
            p[start:stop], y[start:stop], _slice_sets(centers, start, stop), closed == "right", swapped, out[start:stop]
        ),
    )
    return out


def bin_linearly(p: Array, y: Array, low: float, high: float, cell_index: Array) -> Array:
    """Return the linearly binned counts of rows and events of each set in equal cells of [low, high], (sets, 2, cells).

    Each score is split between the cells with the two nearest midpoints. Cell j is stored at index `cell_index[j]`.
    """
    out = np.zeros((len(p), 2, len(cell_index)))
    _map_sets(
        p,
        lambda start, stop: _add_linearly_binned(p[start:stop], y[start:stop], low, high, cell_index, out[start:stop]),
    )
    return out


def _slice_sets(x: Array, start: int, stop: int) -> Array:
    return x if len(x) == 1 else x[start:stop]


def _map_sets(p: Array, work: Callable[[int, int], None]) -> None:
    map_blocks(work, len(p), max(32, _SCORES_PER_TASK // max(1, p.shape[1])))
