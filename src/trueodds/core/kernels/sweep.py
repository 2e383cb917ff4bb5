"""Into how many bins can scores be cut before an outcome rate falls? Searched draw by draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled, in_blocks

Array = NDArray[Any]

SLACK = 1e-12  # of all weight: a cut that a cumulative weight meets up to its rounding ends there
FALL = 1e-12  # equal rates may differ by the rounding of the sums, which is a share of all weight


@compiled
def _cut(at, k, whole, slack):  # type: ignore[no-untyped-def]
    """The first of the cuts j · whole / k, j from 1, that is not below `at`."""
    if not at > 0:
        return 1
    j = np.int64(np.ceil((at + slack) / whole * k))  # up to rounding
    while j > 1 and (j - 1) * whole / k - slack >= at:
        j -= 1
    while j * whole / k - slack < at:
        j += 1
    return j


@compiled
def _end(place, j, t, m, k, whole, slack):  # type: ignore[no-untyped-def]
    """How many cells lie at or below cut j; at least t of them do."""
    if j >= k:
        return m
    cut = j * whole / k - slack
    low, high = t, m
    while low < high:
        middle = (low + high) // 2
        if place[middle] > cut:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _falls(mass, seen, m, a, t, c):  # type: ignore[no-untyped-def]
    """Whether the outcome rate of the cells t to c is below that of the cells a to t."""
    before, after = mass[t] - mass[a], mass[c] - mass[t]
    return (seen[c] - seen[t]) / after < (seen[t] - seen[a]) / before - FALL * mass[m] / min(before, after)


@compiled
def _above_hull(mass, seen, m, above, hull):  # type: ignore[no-untyped-def]
    """The points of the curve (mass, seen) that lie above its greatest convex minorant; how many they are."""
    size = 0
    for t in range(m + 1):
        while size >= 2:
            if not _falls(mass, seen, m, hull[size - 2], hull[size - 1], t):
                break
            size -= 1
        hull[size] = t
        size += 1
    found, h = 0, 0
    for t in range(m + 1):
        if h < size and hull[h] == t:
            h += 1
        else:
            above[found] = t
            found += 1
    return found


@compiled
def _rises(mass, seen, place, m, k, whole, slack, above, found):  # type: ignore[no-untyped-def]
    """Whether the rates of k bins do not fall.

    They can fall only at a boundary above the hull, so the shorter list is gone through: bins or such points.
    """
    if k <= found:
        a, t = 0, 0
        while t < m:
            c = _end(place, _cut(place[t], k, whole, slack), t, m, k, whole, slack)
            if t > 0 and _falls(mass, seen, m, a, t, c):
                return False
            a, t = t, c
        return True
    for f in range(found):
        t = above[f]
        j = _cut(place[t - 1], k, whole, slack)
        if _end(place, j, t - 1, m, k, whole, slack) == t:
            a = 0 if j == 1 else _end(place, j - 1, 0, m, k, whole, slack)
            c = _end(place, _cut(place[t], k, whole, slack), t, m, k, whole, slack)
            if _falls(mass, seen, m, a, t, c):
                return False
    return True


@compiled
def _sweep(w, wp, wy, s, most, by_mass, order, start, stop, values, bins):  # type: ignore[no-untyped-def]
    size = s.shape[0]
    mass, said, seen, place = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    above, hull = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    for r in range(start, stop):
        of_w, of_wp, of_wy = min(r, w.shape[0] - 1), min(r, wp.shape[0] - 1), min(r, wy.shape[0] - 1)
        m = 0
        mass[0] = said[0] = seen[0] = 0.0
        for i in range(size):
            if w[of_w, i] > 0:  # a score that was not drawn is absent
                if not by_mass:
                    place[m] = s[i]
                m += 1
                mass[m] = mass[m - 1] + w[of_w, i]
                said[m] = said[m - 1] + wp[of_wp, i]
                seen[m] = seen[m - 1] + wy[of_wy, i]
        if by_mass:
            place[0] = -np.inf
            place[1 : m + 1] = mass[1 : m + 1]
            whole, slack = mass[m], SLACK * mass[m]
        else:
            place[m] = np.inf
            whole, slack = 1.0, 0.0
        found = _above_hull(mass, seen, m, above, hull)
        k = most
        if found > 0:
            k = 1
            while k < most and _rises(mass, seen, place, m, k + 1, whole, slack, above, found):
                k += 1
        # High powers of small gaps underflow: the largest gap is found first, and the others are taken relative to it.
        largest, total = 0.0 if order > 2 else 1.0, 0.0
        for summed in range(0 if order > 2 else 1, 2):
            t = 0
            while t < m and (summed == 0 or (largest > 0 and not np.isinf(order))):
                c = _end(place, _cut(place[t], k, whole, slack), t, m, k, whole, slack)
                share = (mass[c] - mass[t]) / mass[m]
                gap = abs((said[c] - said[t]) - (seen[c] - seen[t])) / (mass[c] - mass[t])
                if summed == 0:
                    largest = max(largest, gap)
                else:
                    total += share * (gap / largest) ** order
                t = c
        values[r] = largest if np.isinf(order) else largest * total ** (1.0 / order)
        bins[r] = k


def sweep(w: Array, wp: Array, wy: Array, s: Array, *, most: int, by_mass: bool, order: float) -> tuple[Array, Array]:
    """The binned error of each draw on as many bins as keep the outcome rates from falling, and that number.

    `w`, `wp` and `wy` are (draws, m) or (1, m), the sums at the rising scores `s` (m,). Bins hold equal weight
    (`by_mass`) or have equal width; their number is tried from 2 to `most`. Time: O(m + k² log m) for k bins found.
    """
    draws = max(len(w), len(wp), len(wy))
    values, bins = np.empty(draws), np.empty(draws, np.int64)
    arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in (w, wp, wy, s)]
    most, order = max(1, most), float(order)
    block = max(32, 2**17 // len(s))  # few scores are not worth a thread
    list(in_blocks(lambda a, b: _sweep(*arrays, most, by_mass, order, a, b, values, bins), draws, block))
    return values, bins
