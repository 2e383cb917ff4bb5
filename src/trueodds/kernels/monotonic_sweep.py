"""Find the largest number of bins with nondecreasing event rates, for every draw (monotonic sweep)."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_blocks

CUT_TOLERANCE = 1e-12  # relative to the total weight: cuts this close to a cumulative weight are equal to it
RATE_TOLERANCE = 1e-12  # tolerance of equal rates for the rounding of sums, relative to the total weight


@compile_kernel
def _first_cut(at, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number j ≥ 1 of the first cut j · extent / k that is not below `at`."""
    if not at > 0:
        return 1
    j = np.int64(np.ceil((at + tolerance) / extent * k))  # up to rounding
    while j > 1 and (j - 1) * extent / k - tolerance >= at:
        j -= 1
    while j * extent / k - tolerance < at:
        j += 1
    return j


@compile_kernel
def _end(position, j, t, m, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number of cells at or below cut j, by binary search from t to m."""
    if j >= k:
        return m
    cut = j * extent / k - tolerance
    low, high = t, m
    while low < high:
        middle = (low + high) // 2
        if position[middle] > cut:
            high = middle
        else:
            low = middle + 1
    return low


@compile_kernel
def _decreases(mass, events, m, a, t, c):  # type: ignore[no-untyped-def]
    """Return whether the event rate of the cells t..c−1 is below that of the cells a..t−1."""
    before, after = mass[t] - mass[a], mass[c] - mass[t]
    return (events[c] - events[t]) / after < (events[t] - events[a]) / before - RATE_TOLERANCE * mass[m] / min(
        before, after
    )


@compile_kernel
def _above_hull(mass, events, m, above, hull):  # type: ignore[no-untyped-def]
    """Return the number of points of the curve (mass, events) above its greatest convex minorant.

    `above` receives the indices of these points, `hull` those on the minorant.
    """
    size = 0
    for t in range(m + 1):
        while size >= 2:
            if not _decreases(mass, events, m, hull[size - 2], hull[size - 1], t):
                break
            size -= 1
        hull[size] = t
        size += 1
    n_above, h = 0, 0
    for t in range(m + 1):
        if h < size and hull[h] == t:
            h += 1
        else:
            above[n_above] = t
            n_above += 1
    return n_above


@compile_kernel
def _nondecreasing(mass, events, position, m, k, extent, tolerance, above, n_above):  # type: ignore[no-untyped-def]
    """Return whether the event rates of k bins are nondecreasing.

    They can decrease only at a boundary above the convex minorant, so the loop runs over the bins or over these points,
    whichever are fewer.
    """
    if k <= n_above:
        a, t = 0, 0
        while t < m:
            c = _end(position, _first_cut(position[t], k, extent, tolerance), t, m, k, extent, tolerance)
            if t > 0 and _decreases(mass, events, m, a, t, c):
                return False
            a, t = t, c
        return True
    for f in range(n_above):
        t = above[f]
        j = _first_cut(position[t - 1], k, extent, tolerance)
        if _end(position, j, t - 1, m, k, extent, tolerance) == t:
            a = 0 if j == 1 else _end(position, j - 1, 0, m, k, extent, tolerance)
            c = _end(position, _first_cut(position[t], k, extent, tolerance), t, m, k, extent, tolerance)
            if _decreases(mass, events, m, a, t, c):
                return False
    return True


@compile_kernel
def _sweep_draws(w, wp, wy, s, max_bins, by_mass, order, start, stop, values, bins):  # type: ignore[no-untyped-def]
    """Write the binned error and the number of bins of the draws start..stop−1 to `values` and `bins`."""
    size = s.shape[0]
    mass, predicted, events, position = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    above, hull = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    for r in range(start, stop):
        of_w, of_wp, of_wy = min(r, w.shape[0] - 1), min(r, wp.shape[0] - 1), min(r, wy.shape[0] - 1)
        m = 0
        mass[0] = predicted[0] = events[0] = 0.0
        for i in range(size):
            if w[of_w, i] > 0:  # skip scores without weight in this draw
                if not by_mass:
                    position[m] = s[i]
                m += 1
                mass[m] = mass[m - 1] + w[of_w, i]
                predicted[m] = predicted[m - 1] + wp[of_wp, i]
                events[m] = events[m - 1] + wy[of_wy, i]
        if by_mass:
            position[0] = -np.inf
            for i in range(1, m + 1):
                position[i] = mass[i]
            extent, tolerance = mass[m], CUT_TOLERANCE * mass[m]
        else:
            position[m] = np.inf
            extent, tolerance = 1.0, 0.0
        n_above = _above_hull(mass, events, m, above, hull)
        k = max_bins
        if n_above > 0:
            k = 1
            while k < max_bins and _nondecreasing(mass, events, position, m, k + 1, extent, tolerance, above, n_above):
                k += 1
        # High powers of small gaps underflow, so gaps are divided by the largest one, which is found first.
        largest, total = 0.0 if order > 2 else 1.0, 0.0
        for summed in range(0 if order > 2 else 1, 2):
            t = 0
            while t < m and (summed == 0 or (largest > 0 and not np.isinf(order))):
                c = _end(position, _first_cut(position[t], k, extent, tolerance), t, m, k, extent, tolerance)
                share = (mass[c] - mass[t]) / mass[m]
                gap = abs((predicted[c] - predicted[t]) - (events[c] - events[t])) / (mass[c] - mass[t])
                if summed == 0:
                    largest = max(largest, gap)
                else:
                    total += share * (gap / largest) ** order
                t = c
        values[r] = largest if np.isinf(order) else largest * total ** (1.0 / order)
        bins[r] = k


def monotonic_sweep(
    w: Array, wp: Array, wy: Array, s: Array, *, max_bins: int, by_mass: bool, order: float
) -> tuple[Array, Array]:
    """Return the binned error of each draw with the largest number of bins of nondecreasing rates, and that number.

    `w`, `wp` and `wy` are (draws, m) or (1, m), the sums at the sorted scores `s` (m,). Bins have equal weight
    (`by_mass`) or equal width; numbers from 2 to `max_bins` are tried. Cost: O(m + k² log m) for a result of k bins.
    """
    draws = max(len(w), len(wp), len(wy))
    values, bins = np.empty(draws), np.empty(draws, np.int64)
    arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in (w, wp, wy, s)]
    max_bins, order = max(1, max_bins), float(order)
    block = max(32, 2**17 // len(s))  # minimum work per thread task
    list(map_blocks(lambda a, b: _sweep_draws(*arrays, max_bins, by_mass, order, a, b, values, bins), draws, block))
    return values, bins
