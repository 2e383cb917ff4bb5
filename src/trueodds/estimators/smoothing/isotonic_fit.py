"""Which rates that never fall with the score fit the outcomes best? Pool adjacent violators, for many draws at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import compiled

Array = NDArray[Any]


def isotonic_fit(w: Array, wy: Array) -> Array:
    r"""The non-falling means that fit cells in rising order best, (…, m) from Σw and Σwy (…, m).

    .. math:: \min_{r_1 \le \dots \le r_m} \sum_j w_j (y_j - r_j)^2

    which is also the best fit by every other proper score. Leading axes broadcast. Cells without weight take no
    part and show their lower neighbor's value (the first ones their upper neighbor's), so that sums over cells
    may run over them. Cost: O(m) per draw.
    Source: Ayer et al. (1955), pool adjacent violators.

    >>> isotonic_fit(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    shape = np.broadcast_shapes(w.shape, wy.shape)
    mass = np.ascontiguousarray(w, dtype=np.float64).reshape(-1, shape[-1])
    seen = np.ascontiguousarray(np.broadcast_to(wy, shape), dtype=np.float64).reshape(-1, shape[-1])
    if len(mass) not in (1, len(seen)):  # axes that broadcast in the middle
        mass = np.ascontiguousarray(np.broadcast_to(w, shape), dtype=np.float64).reshape(-1, shape[-1])
    fit = np.empty(seen.shape)
    _pooled(mass, seen, fit)
    return fit.reshape(shape)


@compiled
def _pooled(w, wy, fit):  # type: ignore[no-untyped-def]
    m = wy.shape[1]
    mass, seen, last = np.empty(m), np.empty(m), np.empty(m, dtype=np.int64)
    for b in range(wy.shape[0]):
        a = b if w.shape[0] > 1 else 0
        blocks = 0
        for j in range(m):
            if not w[a, j] > 0.0:
                continue
            mass[blocks], seen[blocks], last[blocks] = w[a, j], wy[b, j], j
            # The block before joins while its mean is at least as high; no division, so no rounding of means.
            while blocks > 0 and seen[blocks - 1] * mass[blocks] >= seen[blocks] * mass[blocks - 1]:
                mass[blocks - 1] += mass[blocks]
                seen[blocks - 1] += seen[blocks]
                last[blocks - 1] = last[blocks]
                blocks -= 1
            blocks += 1
        if blocks == 0:
            fit[b, :] = np.nan
            continue
        last[blocks - 1] = m - 1
        start = 0
        for k in range(blocks):
            mean = seen[k] / mass[k]
            # Cells without weight behind a block's last belong to it, those before the first block to the first.
            for j in range(start, last[k] + 1):
                fit[b, j] = mean
            start = last[k] + 1
            while k + 1 < blocks and start < m and not w[a, start] > 0.0:
                fit[b, start] = mean
                start += 1
