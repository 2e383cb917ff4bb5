"""Sum weights and outcomes with a Gaussian kernel, for kernel regression (Nadaraya–Watson)."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

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
