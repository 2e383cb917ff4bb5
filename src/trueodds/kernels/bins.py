"""Find the bin of each score by comparing it with the stored bin edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

Closed = Literal["left", "right"]


class FittedPartition(Protocol):
    """A fitted partition of the scores, which assigns any score to a cell."""

    @property
    def size(self) -> int:
        """Number of cells."""
        ...

    def index(self, at: Array) -> Array:
        """Return the cell index of each score."""
        ...


@dataclass(frozen=True)
class Bins:
    """Bins between given edges, right-closed `(lo, hi]` with the first closed at its lower edge.

    A score is assigned by comparison with the stored edges, not by arithmetic. Scores outside the range belong to the
    first or the last bin.

    >>> import numpy as np
    >>> Bins(np.arange(11) / 10).index(np.array([0.0, 0.3, 0.7, 1.0])).tolist()
    [0, 2, 6, 9]
    """

    edges: Array  # (size + 1,)
    closed: Closed = "right"

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def index(self, at: Array) -> Array:
        """Return the bin index of each score, (n,) int64."""
        return find_bins(at, self.edges, self.closed)


MAX_COMPARED_EDGES = 64  # number of inner edges up to which comparison with all is faster than binary search
_STEP = 8  # number of edges compared in one pass over a buffer
_BLOCK = 2**18


def bin_thresholds(edges: Array, closed: str, dtype: Any) -> Array:
    """Return the threshold that a value of this dtype must exceed to fall beyond each inner edge, padded with inf.

    The thresholds are exact. For right-closed bins, a threshold is the largest number of this dtype that is not above
    the edge. For left-closed bins, it is the predecessor of the smallest number that is not below the edge.
    """
    inner = np.asarray(edges[1:-1], dtype=np.float64)
    near = inner.astype(dtype)
    if closed == "right":
        bound = np.where(near > inner, np.nextafter(near, dtype(-np.inf)), near)
    else:
        above = np.where(near < inner, np.nextafter(near, dtype(np.inf)), near)
        bound = np.nextafter(above, dtype(-np.inf))
    padded = np.full(
        -(-len(bound) // _STEP) * _STEP if len(bound) <= MAX_COMPARED_EDGES else len(bound), np.inf, dtype=dtype
    )
    padded[: len(bound)] = bound
    padded.flags.writeable = False
    return padded


def exact_scale(edges: Array, closed: str, dtype: Any) -> float:
    """Return the number of bins if ⌈x · bins⌉ numbers them from 1 exactly as comparison with the edges does, else 0.

    The product is monotone in x, so it is correct everywhere if it is correct on both sides of each edge.
    """
    bins = len(edges) - 1
    below = bin_thresholds(edges, closed, dtype)[: bins - 1]
    above = np.nextafter(below, dtype(2))
    number = np.arange(1, bins)
    exact = (np.ceil(below.astype(np.float64) * bins) == number).all()
    exact &= (np.ceil(above.astype(np.float64) * bins) == number + 1).all()
    return float(bins) if exact else 0.0


@compile_kernel
def number_bins(x, m, bounds, bins, scale, base, bin_index):  # type: ignore[no-untyped-def]
    """Set bin_index[j] to base[j] plus the bin number of x[j], for the first m values x.

    Bins are numbered from 1. The numbers 0 and bins + 1 can occur for values in the first and the last bin (see
    `merge_outer_bins`). `bounds` and `exact_scale` are the results of `bin_thresholds` and `exact_scale`.
    """
    if scale > 0:
        limit = np.float64(bins + 1)
        for j in range(m):
            v = np.ceil(np.float64(x[j]) * scale)
            v = v if v < limit else limit
            bin_index[j] = base[j] + np.int32(v)
        return
    if bounds.shape[0] > MAX_COMPARED_EDGES:
        for j in range(m):
            low, high = 0, bounds.shape[0]
            while low < high:
                middle = (low + high) // 2
                if x[j] > bounds[middle]:
                    low = middle + 1
                else:
                    high = middle
            bin_index[j] = base[j] + np.int32(low + 1)
        return
    for j in range(m):
        bin_index[j] = base[j] + np.int32(1)
    for e in range(0, bounds.shape[0], _STEP):
        a, b, c, d = bounds[e], bounds[e + 1], bounds[e + 2], bounds[e + 3]
        f, g, h, k = bounds[e + 4], bounds[e + 5], bounds[e + 6], bounds[e + 7]
        for j in range(m):
            v = x[j]
            lower = np.int32(v > a) + np.int32(v > b) + np.int32(v > c) + np.int32(v > d)
            bin_index[j] += lower + np.int32(v > f) + np.int32(v > g) + np.int32(v > h) + np.int32(v > k)


def merge_outer_bins(table: Array) -> Array:
    """Convert sums by bin number of `number_bins` (…, bins + 2, sums) to sums by bin (…, bins, sums)."""
    sums = table[..., 1:-1, :].copy()
    sums[..., 0, :] += table[..., 0, :]
    sums[..., -1, :] += table[..., -1, :]
    return sums


def find_bins(x: Array, edges: Array, closed: str) -> Array:
    """Return the bin index of each value x (n,), from 0, as (n,) int64; values outside belong to the outer bins."""
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    bounds, by, bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    out = np.zeros(len(x), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        bin_index = np.zeros(stop - start, dtype=np.int32)
        number_bins(as_plain_array(x[start:stop]), stop - start, bounds, bins, by, bin_index, bin_index)
        out[start:stop] = np.clip(bin_index - 1, 0, bins - 1)

    map_blocks(work, len(x), _BLOCK)
    return out
