"""What do masses on a line look like through a Gaussian, even where the nearest lies far away?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, in_blocks, plain

_LOST = 74.0  # e^(−74/2) is below the rounding of 1
_BLOCK = 64  # places worth a thread's while


@compiled
def _sums(at, s, w, wy, h, lost, out):  # type: ignore[no-untyped-def]
    m = s.shape[0]
    for i in range(at.shape[0]):
        x = at[i]
        j = np.searchsorted(s, x)
        nearest = np.inf
        if j < m:
            nearest = s[j] - x
        if j > 0:
            nearest = min(nearest, x - s[j - 1])
        nearest = (nearest / h) ** 2
        low, high = j, j
        while low > 0 and ((x - s[low - 1]) / h) ** 2 <= nearest + lost:
            low -= 1
        while high < m and ((s[high] - x) / h) ** 2 <= nearest + lost:
            high += 1
        mass = events = tilt = turn = 0.0
        for k in range(low, high):
            u = (x - s[k]) / h
            near = np.exp((nearest - u * u) / 2.0)
            mass += w[k] * near
            events += wy[k] * near
            tilt -= w[k] * near * u
            turn -= wy[k] * near * u
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = mass, events, tilt / h, turn / h, -nearest / 2.0


def gaussian_sums(at: Array, s: Array, w: Array, wy: Array, h: float) -> Array:
    r"""Of :math:`\sum_k w_k g(x - s_k)` and the same with wy, with :math:`g(u) = e^{-u^2/2h^2}`: what they and their slopes are.

    Rows of Σwg, Σwyg, their two derivatives, all over the g of the score nearest to the place, and the log of that g:
    (n, 5). So ratios are right wherever the place x in `at` (n,) lies. The scores s (m,) rise, m ≥ 1, w > 0.
    """
    out = np.empty((len(at), 5))
    at, s, w, wy = (plain(np.asarray(v, dtype=np.float64)) for v in (at, s, w, wy))
    in_blocks(lambda a, b: _sums(at[a:b], s, w, wy, h, _LOST, out[a:b]), len(at), _BLOCK)
    return out
