"""Find the largest number of bins with nondecreasing event rates, for every draw (monotonic sweep).

Source: Roelofs et al. (2022), "Mitigating bias in calibration error estimation", who call the binned error with these
bins ECE sweep. In shapes, m is the number of distinct scores. A cell is one of them with weight in a draw, and a bin is
a range of cells.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

CUT_TOLERANCE = 1e-12  # relative to the total weight: cuts this close to a cumulative weight are equal to it
RATE_TOLERANCE = 1e-12  # tolerance of equal rates for the rounding of sums, relative to the total weight


@compile_kernel
def _first_cut(position, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number j ≥ 1 of the first cut j · extent / k, between k bins, that is not below `position`."""
    if not position > 0:
        return 1
    j = np.int64(np.ceil((position + tolerance) / extent * k))  # up to rounding
    while j > 1 and (j - 1) * extent / k - tolerance >= position:
        j -= 1
    while j * extent / k - tolerance < position:
        j += 1
    return j


@compile_kernel
def _find_bin_end(position, j, start, n_cells, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number of cells at or below cut j, by binary search from `start` to `n_cells`."""
    if j >= k:
        return n_cells
    cut = j * extent / k - tolerance
    low, high = start, n_cells
    while low < high:
        middle = (low + high) // 2
        if position[middle] > cut:
            high = middle
        else:
            low = middle + 1
    return low


@compile_kernel
def _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):  # type: ignore[no-untyped-def]
    weight_before, weight_after = mass[boundary] - mass[begin], mass[end] - mass[boundary]
    return (events[end] - events[boundary]) / weight_after < (
        events[boundary] - events[begin]
    ) / weight_before - RATE_TOLERANCE * mass[n_cells] / min(weight_before, weight_after)


@compile_kernel
def _find_points_above_hull(mass, events, n_cells, above, hull):  # type: ignore[no-untyped-def]
    """Return the number of points of the curve of cumulative sums (mass, events) above its greatest convex minorant.

    `above` receives the indices of these points, `hull` those on the minorant. If a bin ends at a point of the
    minorant, the event rate cannot decrease there.
    """
    size = 0
    for point in range(n_cells + 1):
        while size >= 2:
            if not _has_decreasing_rate(mass, events, n_cells, hull[size - 2], hull[size - 1], point):
                break
            size -= 1
        hull[size] = point
        size += 1
    n_above, i_hull = 0, 0
    for point in range(n_cells + 1):
        if i_hull < size and hull[i_hull] == point:
            i_hull += 1
        else:
            above[n_above] = point
            n_above += 1
    return n_above


@compile_kernel
def _has_nondecreasing_rates(mass, events, position, n_cells, k, extent, tolerance, above, n_above):  # type: ignore[no-untyped-def]
    """Return whether the event rates of k bins are nondecreasing, from the fewer of bins and points above the hull."""
    if k <= n_above:
        begin, boundary = 0, 0
        while boundary < n_cells:
            end = _find_bin_end(
                position, _first_cut(position[boundary], k, extent, tolerance), boundary, n_cells, k, extent, tolerance
            )
            if boundary > 0 and _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):
                return False
            begin, boundary = boundary, end
        return True
    for i_above in range(n_above):
        boundary = above[i_above]
        j = _first_cut(position[boundary - 1], k, extent, tolerance)
        if _find_bin_end(position, j, boundary - 1, n_cells, k, extent, tolerance) == boundary:
            begin = 0 if j == 1 else _find_bin_end(position, j - 1, 0, n_cells, k, extent, tolerance)
            end = _find_bin_end(
                position, _first_cut(position[boundary], k, extent, tolerance), boundary, n_cells, k, extent, tolerance
            )
            if _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):
                return False
    return True


@compile_kernel
def _fill_cumulative_sums(w, wp, wy, scores, by_mass, mass, predicted, events, position):  # type: ignore[no-untyped-def]
    """Write the cumulative Σw, Σwp, Σwy and the positions of the scores with weight to the last four arguments.

    A position is the score itself or, with `by_mass`, the cumulative weight. Return the number of scores with weight,
    the extent of the positions, and the tolerance of cuts.
    """
    n_cells = 0
    mass[0] = predicted[0] = events[0] = 0.0
    for i in range(scores.shape[0]):
        if w[i] > 0:  # skip scores without weight in this draw
            if not by_mass:
                position[n_cells] = scores[i]
            n_cells += 1
            mass[n_cells] = mass[n_cells - 1] + w[i]
            predicted[n_cells] = predicted[n_cells - 1] + wp[i]
            events[n_cells] = events[n_cells - 1] + wy[i]
    if by_mass:
        position[0] = -np.inf
        for i in range(1, n_cells + 1):
            position[i] = mass[i]
        return n_cells, mass[n_cells], CUT_TOLERANCE * mass[n_cells]
    position[n_cells] = np.inf
    return n_cells, 1.0, 0.0


@compile_kernel
def _binned_error(mass, predicted, events, position, n_cells, n_bins, extent, tolerance, order):  # type: ignore[no-untyped-def]
    """Return the weighted norm, of this order, of the gaps between mean prediction and event rate of the bins.

    High powers of small gaps underflow, so for an order above 2 a first pass finds the largest gap, by which all gaps
    are divided in the second one.
    """
    largest, total = 0.0 if order > 2 else 1.0, 0.0
    for summed in range(0 if order > 2 else 1, 2):
        begin = 0
        while begin < n_cells and (summed == 0 or (largest > 0 and not np.isinf(order))):
            j = _first_cut(position[begin], n_bins, extent, tolerance)
            end = _find_bin_end(position, j, begin, n_cells, n_bins, extent, tolerance)
            share = (mass[end] - mass[begin]) / mass[n_cells]
            gap = abs((predicted[end] - predicted[begin]) - (events[end] - events[begin])) / (mass[end] - mass[begin])
            if summed == 0:
                largest = max(largest, gap)
            else:
                total += share * (gap / largest) ** order
            begin = end
    return largest if np.isinf(order) else largest * total ** (1.0 / order)


@compile_kernel
def _sweep_draws(w, wp, wy, scores, max_bins, by_mass, order, start, stop, values, chosen_n_bins):  # type: ignore[no-untyped-def]
    """Write the binned error and the number of bins of the draws start..stop−1 to `values` and `chosen_n_bins`."""
    size = scores.shape[0]
    mass, predicted, events, position = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    above, hull = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    for r in range(start, stop):
        w_row, wp_row, wy_row = w[min(r, w.shape[0] - 1)], wp[min(r, wp.shape[0] - 1)], wy[min(r, wy.shape[0] - 1)]
        n_cells, extent, tolerance = _fill_cumulative_sums(
            w_row, wp_row, wy_row, scores, by_mass, mass, predicted, events, position
        )
        n_above = _find_points_above_hull(mass, events, n_cells, above, hull)
        n_bins = max_bins
        if n_above > 0:
            n_bins = 1
            while n_bins < max_bins and _has_nondecreasing_rates(
                mass, events, position, n_cells, n_bins + 1, extent, tolerance, above, n_above
            ):
                n_bins += 1
        values[r] = _binned_error(mass, predicted, events, position, n_cells, n_bins, extent, tolerance, order)
        chosen_n_bins[r] = n_bins


def monotonic_sweep(
    w: Array, wp: Array, wy: Array, scores: Array, *, max_bins: int, by_mass: bool, order: float
) -> tuple[Array, Array]:
    """Return the binned error of each draw with the largest number of bins of nondecreasing rates, and that number.

    The sums w, wp and wy (draws, m) or (1, m) belong to the sorted distinct scores (m,). Numbers of bins from 2 to
    `max_bins` are tried, of equal weight `by_mass` or of equal width, until event rates decrease. `order` is that of
    the norm of the gaps: 1 for ECE, ∞ for the maximum. Cost: O(m + k² log m) per draw for a result of k bins.
    """
    draws = max(len(w), len(wp), len(wy))
    values, chosen_n_bins = np.empty(draws), np.empty(draws, np.int64)
    arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in (w, wp, wy, scores)]
    max_bins, order = max(1, max_bins), float(order)
    block = max(32, 2**17 // len(scores))  # minimum work per thread task
    map_blocks(
        lambda start, stop: _sweep_draws(*arrays, max_bins, by_mass, order, start, stop, values, chosen_n_bins),
        draws,
        block,
    )
    return values, chosen_n_bins
