"""Flip the signs of residuals at random, cluster by cluster, and sum the residuals per cell and draw.

All residuals of a cluster get the same sign, +1 or −1 (a wild bootstrap with Rademacher weights), so that the draws
have the dependence of the residuals within clusters, and a mean of 0.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, draws_per_block, map_blocks
from trueodds.kernels.random_streams import mix_bits, row_stream_key


@compile_inline
def random_sign(stream, draw):  # type: ignore[no-untyped-def]
    bits = mix_bits(stream + np.uint64(draw // 64 + 1) * np.uint64(0x9E3779B97F4A7C15))
    return 1.0 if (bits >> np.uint64(draw % 64)) & np.uint64(1) else -1.0


@compile_kernel
def _fill_signs(n_clusters, key, start, stop, out):  # type: ignore[no-untyped-def]
    for cluster in range(n_clusters):
        stream = row_stream_key(key, cluster)
        for r in range(start, stop):
            out[r - start, cluster] = random_sign(stream, r)


@compile_kernel
def _add_signed_residuals(cluster, cells, residuals, key, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the residuals (n, m) times the signs of their clusters to their `cells` (n, m) in `out` (cells, draws)."""
    for i in range(cells.shape[0]):
        stream = row_stream_key(key, cluster[i])
        for r in range(start, stop):
            sign = random_sign(stream, r)
            for column in range(cells.shape[1]):
                out[cells[i, column], r - start] += sign * residuals[i, column]


def random_signs(n_clusters: int, key: int, start: int, stop: int) -> Array:
    """Return a random sign for each draw and cluster, (stop − start, clusters), as in `sum_sign_flips`."""
    out = np.empty((stop - start, n_clusters))
    _fill_signs(n_clusters, key, start, stop, out)
    return out


def sum_sign_flips(cluster: Array, cells: Array, residuals: Array, size: int, key: int, start: int, stop: int) -> Array:
    """Return the sums of residuals (n, m) with a random sign per cluster, by draw and cell, (stop − start, size)."""
    cluster, cells, residuals = as_plain_array(cluster), as_plain_array(cells), as_plain_array(residuals)

    def sum_draws(first: int, last: int) -> Array:
        out = np.zeros((size, last - first))
        _add_signed_residuals(cluster, cells, residuals, key, first + start, last + start, out)
        return out.T

    return np.concatenate(list(map_blocks(sum_draws, stop - start, draws_per_block(size))))
