"""What would isotonic regression say of one more row, at any score, if it came or if it did not?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain


@compiled
def _turn(ax, ay, bx, by, cx, cy):  # type: ignore[no-untyped-def]
    """Above 0 where the way from a over b to c turns left."""
    return (bx - ax) * (cy - by) - (by - ay) * (cx - bx)


@compiled
def _with_added_event(mass, events, rise, run):  # type: ignore[no-untyped-def]
    """The isotonic mean rise/run of an added row of weight 1 that came, just below each of the rising scores.

    The cumulative sums (Σw, Σwy) are points, and the means are the slopes of the greatest convex function below them.
    The added row is a step (1, 1). As it moves up past one score after the other, one point changes at a time; the
    slope over it never falls, so the corners on its left are never needed again.
    """
    m = mass.shape[0]
    x, y = np.empty(m + 1), np.empty(m + 1)  # corners from the right to the left
    x[0], y[0] = -1.0, -1.0  # first from the left to the right, with the added row before all others
    corners, w, wy = 1, 0.0, 0.0
    for i in range(m):
        w += mass[i]
        wy += events[i]
        while corners > 1 and _turn(x[corners - 2], y[corners - 2], x[corners - 1], y[corners - 1], w, wy) <= 0.0:
            corners -= 1
        x[corners], y[corners] = w, wy
        corners += 1
    x[:corners], y[:corners] = x[:corners][::-1].copy(), y[:corners][::-1].copy()
    w, wy = -1.0, -1.0
    for i in range(m):
        top = corners - 1
        rise[i], run[i] = y[top - 1] - y[top], x[top - 1] - x[top]
        w += mass[i]
        wy += events[i]
        if _turn(x[top], y[top], w, wy, x[top - 1], y[top - 1]) <= 0.0:
            continue  # the new point lies not below the line over the added row
        corners -= 1
        while corners > 1 and _turn(w, wy, x[corners - 1], y[corners - 1], x[corners - 2], y[corners - 2]) <= 0.0:
            corners -= 1
        x[corners], y[corners] = w, wy
        corners += 1


def one_more(mass: Array, events: Array) -> tuple[Array, Array]:
    """The isotonic means of an added row of weight 1 that did not come, and of one that came, each (m,).

    Given Σw and Σwy at rising scores s (m,). The first holds from s_j up to the next score without it, and is 0
    below all; the second from beyond the score before up to s_j with it, and is 1 above all. Cost: O(m).
    Source: Vovk, Petej & Fedorova (2015), algorithms 1 to 4.
    """
    rise, run = np.empty((2, len(mass))), np.empty((2, len(mass)))
    # That it did not come is that the opposite came, seen from above.
    ways = ((mass - events)[::-1], events)
    for way, wy in enumerate(ways):
        _with_added_event(plain(mass[::-1] if way == 0 else mass), plain(wy), rise[way], run[way])
    run = np.maximum(run, 1.0)  # weights beyond 2⁵³ swallow the added row
    low, high = ((run[0] - rise[0]) / run[0])[::-1], rise[1] / run[1]
    # Sums of weighted rows are rounded: the means are not to fall for it, nor to leave [0, 1].
    low, high = (np.clip(np.maximum.accumulate(means), 0.0, 1.0) for means in (low, high))
    return np.minimum(low, high), high
