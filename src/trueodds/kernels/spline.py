"""How well do log odds fit that run along a cubic spline, and how does that change? Sums between each pair of knots."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, plain, summed

SUMS = 15  # by interval: the value, its slope in four numbers, and its curvature in the ten pairs of them
_BLOCK = 2**14


@compiled
def _between(x, events, missed, knots, f, curvature, out):  # type: ignore[no-untyped-def]
    j, part = -1, np.empty(4)
    low = high = width = 0.0
    for i in range(x.shape[0]):
        if j < 0 or (x[i] > high and j < knots.shape[0] - 2):
            j = max(j, 0)
            while x[i] > knots[j + 1] and j < knots.shape[0] - 2:
                j += 1
            low, high = knots[j], knots[j + 1]
            width = high - low
        up = (x[i] - low) / width
        down = 1.0 - up
        part[0], part[1] = down, up
        # Beyond the knots the curve is a line: the cube is left out.
        part[2] = (max(down, 0.0) ** 3 - down) * width * width / 6.0
        part[3] = (max(up, 0.0) ** 3 - up) * width * width / 6.0
        eta = part[0] * f[j] + part[1] * f[j + 1] + part[2] * curvature[j] + part[3] * curvature[j + 1]
        e = np.exp(-abs(eta))
        near = 1.0 / (1.0 + e)
        complement = e * near
        q, rest = (near, complement) if eta >= 0.0 else (complement, near)
        n = events[i] + missed[i]
        # No difference of numbers that are all but equal: where outcomes are sure, the slope keeps its digits.
        slope = missed[i] * q - events[i] * rest
        curve = n * near * complement
        out[j, 0] += n * np.log1p(e) + (missed[i] * eta if eta >= 0.0 else -events[i] * eta)
        place = 5
        for a in range(4):
            out[j, 1 + a] += slope * part[a]
            for b in range(a + 1):
                out[j, place] += curve * part[a] * part[b]
                place += 1


def between(x: Array, events: Array, missed: Array, knots: Array, f: Array, curvature: Array) -> Array:
    """Minus the log-likelihood of rising scores, with its derivatives, between each pair of knots (m − 1, 15).

    At a score the curve is linear in four numbers: its values and its second derivatives at the knots on both sides.
    In each row stand the value, the slope in these four, and the lower triangle of the curvature. x (n,) rises, came
    and missed (n,) are the weights of what came and what did not, f and bend (m,) belong to the knots (m,).
    """
    rows, fixed = [plain(v) for v in (x, events, missed)], [plain(v) for v in (knots, f, curvature)]

    def add(start: int, stop: int, out: Array) -> None:
        _between(*(v[start:stop] for v in rows), *fixed, out)

    shape = (len(knots) - 1, SUMS)
    if len(x) > _BLOCK:
        return summed(add, len(x), shape, block=_BLOCK)
    out = np.zeros(shape)
    add(0, len(x), out)  # a few rows are done before a thread has started
    return out
