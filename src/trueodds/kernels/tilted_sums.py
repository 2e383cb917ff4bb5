"""Sum log(1 − p + p e^u) by key and score cell on a grid of tilts u, to integrate a shock that rows share."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks
from trueodds.kernels.likelihood_ratio_sums import LEFT_OUT, ROWS_PER_LOGARITHM

TILT_STEP = 0.1
TILT_GRID: Array = np.arange(-40, 41) * TILT_STEP  # 64 factors of at most e^±4 neither overflow nor underflow
TILT_GRID.flags.writeable = False
_MIN_ROWS_PER_TASK = 2**16
_MAX_TASKS = 8


def sum_tilted(p: Array, outcome: Array, w: Array | None, key: Array, n_keys: int, edges: Array) -> Array:
    """Return Σ w log(1 − p + p e^u) of each key, cell and tilt u of `TILT_GRID`, (keys, cells, tilts).

    Rows with probability 0 or 1 are left out. The arguments are those of `sum_likelihood_ratios`.
    """
    p, outcome, key = as_plain_array(p), as_plain_array(outcome), as_plain_array(key)
    weights = as_plain_array(np.empty(0) if w is None else w)
    growth, total = np.expm1(TILT_GRID), np.zeros((n_keys, len(edges) + 1, len(TILT_GRID)))

    def sum_task(start: int, stop: int) -> tuple[int, Array]:
        rows = slice(start, stop)
        first, last = int(key[rows].min()), int(key[rows].max())
        out = np.zeros((last - first + 1, *total.shape[1:]))
        _add_tilted(p[rows], outcome[rows], weights[rows], key[rows], first, edges, growth, out)
        return first, out

    for first, part in map_blocks(sum_task, len(p), max(_MIN_ROWS_PER_TASK, -(-len(p) // _MAX_TASKS))):
        total[first : first + len(part)] += part
    return total


@compile_kernel
def _add_tilted(p, outcome, w, key, first, edges, growth, out):  # type: ignore[no-untyped-def]
    products, counts = np.ones(out.shape), np.zeros(out.shape[:2], dtype=np.int64)
    for i in range(p.shape[0]):
        x, k = np.float64(p[i]), key[i] - first
        if outcome[i] == LEFT_OUT or x <= 0.0 or x >= 1.0:
            continue
        cell = 0
        for edge in edges:
            cell += x >= edge
        if w.shape[0] > 0:
            for j in range(growth.shape[0]):
                out[k, cell, j] += w[i] * np.log1p(x * growth[j])
            continue
        product = products[k, cell]
        for j in range(growth.shape[0]):
            product[j] *= 1.0 + x * growth[j]
        counts[k, cell] += 1
        if counts[k, cell] == ROWS_PER_LOGARITHM:
            counts[k, cell] = 0
            for j in range(growth.shape[0]):
                out[k, cell, j] += np.log(product[j])
                product[j] = 1.0
    for k in range(out.shape[0]):
        for cell in range(out.shape[1]):
            for j in range(growth.shape[0]):
                out[k, cell, j] += np.log(products[k, cell, j])
