"""What are the sums of each bin, where rows are sorted by score and a bin is a stretch of them?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import plain, reordered, summed
from trueodds.kernels.edges import thresholds
from trueodds.kernels.sort import bits_of, decode_scores

_BLOCK = 2**17
_ROWS = 2**14  # whose scores are read off their keys at a time, so that they stay in a core's own cache


@reordered
def _spans(p, keys, start, ends, out):  # type: ignore[no-untyped-def]
    """n, Σp, Σy, Σpy and Σp² of the rows between ends, into out (bins, 5); p and keys are those from `start` on."""
    i, b = 0, np.searchsorted(ends, start, "right")
    while i < p.shape[0]:
        stop = min(ends[b] - start, p.shape[0])
        sum_p = sum_y = both = squares = 0.0
        for j in range(i, stop):
            x = np.float64(p[j])
            y = np.float64(keys[j] & 1)
            sum_p += x
            sum_y += y
            both += x * y
            squares += x * x
        out[b, 0] += stop - i
        out[b, 1] += sum_p
        out[b, 2] += sum_y
        out[b, 3] += both
        out[b, 4] += squares
        i, b = stop, b + 1


def reached(edges: Array, closed: str, dtype: Any) -> list[Any]:
    """The largest key that lies within each inner edge, None where none does."""
    bounds = thresholds(edges, closed, np.float64 if dtype == np.uint64 else np.float32)[: len(edges) - 2]
    # A row that does not exceed a bound of its bin comes no later than one that says the bound itself and came.
    keys = (bits_of(np.maximum(bounds, 0)) << dtype.type(1)) | dtype.type(1)
    return [None if bound < 0 else key for bound, key in zip(bounds, keys, strict=True)]


def in_bins(keys: Array, edges: Array, closed: str) -> Array:
    """n, Σp, Σy, Σpy and Σp² of the rows of sorted keys in each bin, (bins, 5)."""
    bins = len(edges) - 1
    within = reached(edges, closed, keys.dtype)
    ends = np.array([0 if key is None else np.searchsorted(keys, key, "right") for key in within] + [len(keys)])
    keys = plain(keys)

    def add(start: int, stop: int, out: Array) -> None:
        for a in range(start, stop, _ROWS):
            block = keys[a : min(a + _ROWS, stop)]
            _spans(decode_scores(block), block, a, ends, out)

    return summed(add, len(keys), (bins, 5), block=_BLOCK)
