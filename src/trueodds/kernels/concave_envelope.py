"""Compute the least concave function above a sum of piecewise linear terms, at one half."""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compile_kernel


@compile_kernel
def envelope_at_half(low, high, height, slope, out):  # type: ignore[no-untyped-def]
    """Compute the concave envelope at 1/2 of D(t) = Σ height + slope · t over the intervals [low, high] that contain t.

    The intervals are (draws, k) within [0, 1]. `out` (draws, 5) receives twice the concave envelope of D at 1/2, the
    largest D(t) / max(t, 1 − t), its t, and the two t that support the envelope. At a jump of D the larger limit is
    used.
    """
    k = low.shape[1]
    breakpoints = np.empty(2 * k + 3)
    x, y = np.empty(4 * k + 6), np.empty(4 * k + 6)
    hull = np.empty(4 * k + 6, dtype=np.int64)
    for r in range(low.shape[0]):
        m = 0
        for b in range(k):
            if low[r, b] < high[r, b]:
                breakpoints[m] = low[r, b]
                breakpoints[m + 1] = high[r, b]
                m += 2
        breakpoints[m], breakpoints[m + 1], breakpoints[m + 2] = 0.0, 0.5, 1.0
        m += 3
        breakpoints[:m].sort()
        intercept_change, slope_change = (
            np.zeros(m),
            np.zeros(m),
        )  # change of intercept and slope at each end of an interval
        for b in range(k):
            if low[r, b] < high[r, b]:
                i = np.searchsorted(breakpoints[:m], low[r, b])
                j = np.searchsorted(breakpoints[:m], high[r, b])
                intercept_change[i] += height[r, b]
                intercept_change[j] -= height[r, b]
                slope_change[i] += slope[r, b]
                slope_change[j] -= slope[r, b]
        x[0], y[0] = 0.0, 0.0
        n = 1
        intercept = current_slope = 0.0
        largest_ratio, t_of_largest = 0.0, 0.5
        for j in range(m - 1):
            intercept += intercept_change[j]
            current_slope += slope_change[j]
            if breakpoints[j + 1] == breakpoints[j]:
                continue
            for t in (breakpoints[j], breakpoints[j + 1]):
                value = max(intercept + current_slope * t, 0.0)
                x[n], y[n] = t, value
                n += 1
                if value / max(t, 1.0 - t) > largest_ratio:
                    largest_ratio, t_of_largest = value / max(t, 1.0 - t), t
        x[n], y[n] = 1.0, 0.0
        n += 1
        h = 0
        for j in range(n):  # upper convex hull; x is sorted, with two limits at a jump
            while h > 0 and x[hull[h - 1]] == x[j] and y[hull[h - 1]] <= y[j]:
                h -= 1
            if h > 0 and x[hull[h - 1]] == x[j]:
                continue
            while h > 1:
                i, g = hull[h - 1], hull[h - 2]
                if (y[i] - y[g]) * (x[j] - x[g]) > (y[j] - y[g]) * (x[i] - x[g]):
                    break
                h -= 1
            hull[h] = j
            h += 1
        for j in range(1, h):
            i, g = hull[j], hull[j - 1]
            if x[g] <= 0.5 <= x[i]:
                share = (0.5 - x[g]) / (x[i] - x[g])
                out[r, 0] = 2.0 * (y[g] + share * (y[i] - y[g]))
                out[r, 3], out[r, 4] = x[g], x[i]
                break
        out[r, 1], out[r, 2] = largest_ratio, t_of_largest
