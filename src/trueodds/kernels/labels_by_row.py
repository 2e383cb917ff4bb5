"""Draw the labels of each row for many draws at once, row by row."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks
from trueodds.kernels.random_labels import (
    DRAW_RANGE,
    MAX_COMPARED_CLASSES,
    draw_labels,
    fill_thresholds,
    fill_uniform_words,
    row_dither,
    row_stream_key,
)

ROWS_PER_BLOCK = 256


@compile_kernel
def _draw_row_labels(P, row, key, start, out):  # type: ignore[no-untyped-def]
    """Write the labels of the rows from number `row` on to `out` (rows, draws).

    A label is the number of cumulative thresholds at or below the random integer.
    """
    cumulative = np.empty(P.shape[1])
    skipped = start & 1
    words = np.empty((out.shape[1] + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + out.shape[1]]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, row + i)
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        labels = out[i]
        labels[:] = 0
        for c in range(P.shape[1]):
            if cumulative[c] == DRAW_RANGE:
                break
            bound = np.uint32(cumulative[c])
            for r in range(u.shape[0]):
                labels[r] += u[r] >= bound


def draw_labels_by_row(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, cluster_probability: float = 0.0
) -> Array:
    """Return the labels of `draw_labels` as (n, stop − start), in the smallest suitable integer type."""
    dtype = np.min_scalar_type(P.shape[1] - 1)
    if P.shape[1] > MAX_COMPARED_CLASSES or cluster_probability > 0:
        labels = draw_labels(P, key, start, stop, cluster=cluster, cluster_probability=cluster_probability)
        return np.ascontiguousarray(labels.T, dtype=dtype)
    P = as_plain_array(P)
    out = np.empty((len(P), stop - start), dtype=dtype)

    def work(first: int, last: int) -> None:
        _draw_row_labels(P[first:last], first, key, start, out[first:last])

    map_blocks(work, len(P), ROWS_PER_BLOCK)
    return out
