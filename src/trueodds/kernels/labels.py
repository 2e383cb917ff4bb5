"""Labels of every row in many draws, small and side by side."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled, draws, in_blocks, plain
from trueodds.kernels.draws import DRAW_RANGE, MAX_LINEAR_SEARCH, _accumulate, dither_of, fill, row_key

ROWS = 256


@compiled
def _draw_labels(P, row, key, start, out):  # type: ignore[no-untyped-def]
    """Labels of rows that begin with number `row`: how many thresholds lie at or below each row's number."""
    cumulative = np.empty(P.shape[1])
    skipped = start & 1
    words = np.empty((out.shape[1] + skipped + 1) >> 1, dtype=np.uint64)
    u = words.view(np.uint32)[skipped : skipped + out.shape[1]]
    for i in range(P.shape[0]):
        stream = row_key(key, row + i)
        _accumulate(P, i, dither_of(stream), cumulative)
        fill(stream, start >> 1, words)
        labels = out[i]
        labels[:] = 0
        for c in range(P.shape[1]):
            if cumulative[c] == DRAW_RANGE:
                break
            bound = np.uint32(cumulative[c])
            for r in range(u.shape[0]):
                labels[r] += u[r] >= bound


def by_row(P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, share: float = 0.0) -> Array:
    """The labels that `draws.labels` gives, as (n, stop − start) in the smallest whole numbers that hold them."""
    dtype = np.min_scalar_type(P.shape[1] - 1)
    if P.shape[1] > MAX_LINEAR_SEARCH or share > 0:
        labels = draws.labels(P, key, start, stop, cluster=cluster, share=share)
        return np.ascontiguousarray(labels.T, dtype=dtype)
    P = plain(P)
    out = np.empty((len(P), stop - start), dtype=dtype)

    def work(a: int, b: int) -> None:
        _draw_labels(P[a:b], a, key, start, out[a:b])

    in_blocks(work, len(P), ROWS)
    return out
