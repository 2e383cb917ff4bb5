"""Integrate the sums over a window of fixed width that slides over sorted scores."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

_SCORES = 2**16


@compile_kernel
def _stops(s, width, first, behind, length):  # type: ignore[no-untyped-def]
    low = high = 0
    at = s[0] - width
    for j in range(2 * s.shape[0]):
        enters = s[high] - width if high < s.shape[0] else np.inf
        until = min(enters, s[low])
        first[j], behind[j], length[j] = low, high, until - at
        at = until
        if enters <= s[low]:
            high += 1
        else:
            low += 1


@compile_kernel
def _window_integral(e, first, behind, length, out):  # type: ignore[no-untyped-def]
    sums = np.zeros(e.shape[1] + 1)
    for b in range(e.shape[0]):
        for i in range(e.shape[1]):
            sums[i + 1] = sums[i] + e[b, i]
        total = 0.0
        for j in range(length.shape[0]):
            total += length[j] * abs(sums[behind[j]] - sums[first[j]])
        out[b] = total


@compile_kernel
def _integral_between(s, sums, width, start, stop):  # type: ignore[no-untyped-def]
    """Return the part of the integral where the lowest score in the window is one of the scores start..stop−1."""
    m = s.shape[0]
    at = s[start - 1] if start > 0 else s[0] - width
    high = np.searchsorted(s, at + width, "right") if start > 0 else 0
    while high > 0 and s[high - 1] - width > at:  # at + width is rounded
        high -= 1
    total = 0.0
    for low in range(start, stop):
        while high < m and s[high] - width <= s[low]:
            until = s[high] - width
            total += (until - at) * abs(sums[high] - sums[low])
            at = until
            high += 1
        total += (s[low] - at) * abs(sums[high] - sums[low])
        at = s[low]
    return total


def mean_absolute_window_sum(s: Array, e: Array, width: float) -> float:
    """Return ∫ |Σ of e in the window [a, a + width)| da / width, for values e (m,) at sorted scores s (m,)."""
    s, sums = as_plain_array(s), np.zeros(len(s) + 1)
    np.cumsum(e, out=sums[1:])
    return sum(map_blocks(lambda a, b: _integral_between(s, sums, width, a, b), len(s), _SCORES)) / width


class SlidingWindows:
    """Sums of values in a sliding window [a, a + width) over sorted scores `s` (m,), for many draws."""

    def __init__(self, s: Array, width: float) -> None:
        self.width = width
        self.first, self.behind = np.empty(2 * len(s), np.int32), np.empty(2 * len(s), np.int32)
        self.length = np.empty(2 * len(s))
        _stops(s, width, self.first, self.behind, self.length)

    def mean_absolute_sums(self, e: Array) -> Array:
        """Return ∫ |Σ of e in the window| da / width for each row of e (draws, m), (draws,)."""
        e = np.ascontiguousarray(e)

        def work(a: int, b: int) -> Array:
            out = np.empty(b - a)
            _window_integral(e[a:b], self.first, self.behind, self.length, out)
            return out

        return np.concatenate(list(map_blocks(work, len(e), 16))) / self.width
