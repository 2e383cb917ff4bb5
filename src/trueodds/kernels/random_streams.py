"""Generate random numbers from counters, so that each depends only on a key, a row and a draw.

Every row has a stream, an integer key from which the random bits of any draw are computed directly, by the generator
splitmix64 (Steele, Lea & Flood, 2014). So results do not depend on the order of the computation.

Random signs flip residuals: all residuals of a cluster get the same sign, +1 or −1 (a wild bootstrap with Rademacher
weights), so that the draws have the dependence of the residuals within clusters, and a mean of 0.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, draws_per_block, map_blocks

DRAW_RANGE = 4294967296.0  # random integers are below 2^32
SHORT_RANGE = 65536.0  # random integers of 16 bits are below 2^16


@compile_inline
def mix_bits(z):  # type: ignore[no-untyped-def]
    """Return 64 random bits from a counter z, by the finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compile_inline
def uniform_integer(stream, draw):  # type: ignore[no-untyped-def]
    """Return the uniform integer below 2^32 of a draw in the stream with this key; two draws share 64 random bits."""
    bits = mix_bits(stream + np.uint64((draw >> 1) + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.uint32((bits >> np.uint64(32 * (draw & 1))) & np.uint64(0xFFFFFFFF))


@compile_inline
def fill_uniform_words(stream, first, words):  # type: ignore[no-untyped-def]
    """Fill `words` with random bits: two uniform draws per word, from draw 2 · first on, the lower half first."""
    for j in range(words.shape[0]):
        words[j] = mix_bits(stream + np.uint64(first + j + 1) * np.uint64(0x9E3779B97F4A7C15))


@compile_inline
def row_stream_key(key, row):  # type: ignore[no-untyped-def]
    return mix_bits(np.uint64(key) + np.uint64(row + 1) * np.uint64(0xD1B54A32D192ED03))


@compile_inline
def row_dither(stream):  # type: ignore[no-untyped-def]
    """Return the uniform random number in [0, 1) by which the thresholds of the row with this stream are rounded."""
    return np.float64(mix_bits(~stream) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compile_inline
def clustered_integer(stream, cluster_stream, share, draw):  # type: ignore[no-untyped-def]
    """Return a row's random integer in this draw, or with probability `share` that of its cluster."""
    if share > 0.0 and uniform_integer(mix_bits(cluster_stream), draw) < share * DRAW_RANGE:
        return uniform_integer(cluster_stream, draw)
    return uniform_integer(stream, draw)


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
