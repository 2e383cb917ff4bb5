"""Integrate the absolute sum of the values in a window of fixed width that slides over sorted scores.

While the window contains the same scores, its sum is constant. So the integral is a sum over intervals of positions.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

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
