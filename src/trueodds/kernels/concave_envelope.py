"""Compute the concave envelope, at one half, of a sum of piecewise linear terms, for many draws.

The concave envelope of a function is the least concave function that is nowhere below it, here the upper convex hull of
the graph of D. D(t) is the regret of acting on the predictions at the decision threshold t; its envelope at 1/2 gives
the largest regret over all decision tasks (see `estimators.decision_regret`).
"""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compile_kernel


@compile_kernel
def envelope_at_half(low, high, intercept, slope, out):  # type: ignore[no-untyped-def]
    """Compute the concave envelope at 1/2 of max(D(t), 0), which is 0 at t = 0 and t = 1.

    D(t) = Σ (intercept + slope · t) over the intervals [low, high] that contain t. All arguments are (draws, k). At a
    jump of D the larger limit is used. `out` (draws, 5) receives the fields of `estimators.decision_regret.WorstTasks`:
    twice the envelope at 1/2, the largest D(t) / max(t, 1 − t), its t, and the two t between which the envelope at 1/2
    is linear.
    """
    k = low.shape[1]
    breakpoints = np.empty(2 * k + 3)
    x, y = np.empty(4 * k + 6), np.empty(4 * k + 6)
    hull = np.empty(4 * k + 6, dtype=np.int64)
    for r in range(low.shape[0]):
        m = _fill_breakpoints(low[r], high[r], breakpoints)
        intercept_change, slope_change = _sum_changes(low[r], high[r], intercept[r], slope[r], breakpoints[:m])
        n, largest_ratio, t_of_largest = _trace_sum(breakpoints[:m], intercept_change, slope_change, x, y)
        n_hull = _find_upper_hull(x[:n], y[:n], hull)
        for j in range(1, n_hull):
            right, left = hull[j], hull[j - 1]
            if x[left] <= 0.5 <= x[right]:
                share = (0.5 - x[left]) / (x[right] - x[left])
                out[r, 0] = 2.0 * (y[left] + share * (y[right] - y[left]))
                out[r, 3], out[r, 4] = x[left], x[right]
                break
        out[r, 1], out[r, 2] = largest_ratio, t_of_largest


@compile_kernel
def _fill_breakpoints(low, high, breakpoints):  # type: ignore[no-untyped-def]
    """Write the sorted ends of the nonempty intervals, with 0, 1/2 and 1, to `breakpoints`; return their number."""
    m = 0
    for b in range(low.shape[0]):
        if low[b] < high[b]:
            breakpoints[m] = low[b]
            breakpoints[m + 1] = high[b]
            m += 2
    breakpoints[m], breakpoints[m + 1], breakpoints[m + 2] = 0.0, 0.5, 1.0
    m += 3
    breakpoints[:m].sort()
    return m


@compile_kernel
def _sum_changes(low, high, intercept, slope, breakpoints):  # type: ignore[no-untyped-def]
    """Return the changes of the intercept and of the slope of D at each of the sorted breakpoints, each (m,)."""
    intercept_change, slope_change = np.zeros(breakpoints.shape[0]), np.zeros(breakpoints.shape[0])
    for b in range(low.shape[0]):
        if low[b] < high[b]:
            i = np.searchsorted(breakpoints, low[b])
            j = np.searchsorted(breakpoints, high[b])
            intercept_change[i] += intercept[b]
            intercept_change[j] -= intercept[b]
            slope_change[i] += slope[b]
            slope_change[j] -= slope[b]
    return intercept_change, slope_change


@compile_kernel
def _trace_sum(breakpoints, intercept_change, slope_change, x, y):  # type: ignore[no-untyped-def]
    """Write the points (t, max(D(t), 0)) at the ends of every linear piece to x and y.

    Return the number of points, the largest D(t) / max(t, 1 − t) and its t. The first point is (0, 0), the last (1, 0).
    """
    x[0], y[0] = 0.0, 0.0
    n = 1
    intercept = slope = 0.0
    largest_ratio, t_of_largest = 0.0, 0.5
    for j in range(breakpoints.shape[0] - 1):
        intercept += intercept_change[j]
        slope += slope_change[j]
        if breakpoints[j + 1] == breakpoints[j]:
            continue
        for t in (breakpoints[j], breakpoints[j + 1]):
            value = max(intercept + slope * t, 0.0)
            x[n], y[n] = t, value
            n += 1
            if value / max(t, 1.0 - t) > largest_ratio:
                largest_ratio, t_of_largest = value / max(t, 1.0 - t), t
    x[n], y[n] = 1.0, 0.0
    return n + 1, largest_ratio, t_of_largest


@compile_kernel
def _find_upper_hull(x, y, hull):  # type: ignore[no-untyped-def]
    """Write the indices of the points of the upper convex hull to `hull`; at a jump, two points have the same x."""
    n_hull = 0
    for j in range(x.shape[0]):
        while n_hull > 0 and x[hull[n_hull - 1]] == x[j] and y[hull[n_hull - 1]] <= y[j]:
            n_hull -= 1
        if n_hull > 0 and x[hull[n_hull - 1]] == x[j]:
            continue
        while n_hull > 1:
            last, previous = hull[n_hull - 1], hull[n_hull - 2]
            if (y[last] - y[previous]) * (x[j] - x[previous]) > (y[j] - y[previous]) * (x[last] - x[previous]):
                break
            n_hull -= 1
        hull[n_hull] = j
        n_hull += 1
    return n_hull
