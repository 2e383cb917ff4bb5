"""Bins between given edges: find the bin of each score by comparison with the edges, and sum the rows of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks
from trueodds.kernels.parallel import map_columns

Closed = Literal["left", "right"]


class FittedPartition(Protocol):
    """Interface of a fitted partition of the scores into cells, such as bins or the leaves of a tree."""

    @property
    def size(self) -> int: ...

    def index(self, values: Array) -> Array:
        """Return the cell index of each score, (n,) int64."""
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
    # (size + 1,) the edges as log odds, if bins are cut between log odds that are equal as probabilities (see
    # `View.assign`); several `edges` may then be equal.
    log_odds_edges: Array | None = None

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    @property
    def key(self) -> tuple[bytes, bytes | None, str]:
        log_odds_edges = None if self.log_odds_edges is None else self.log_odds_edges.tobytes()
        return self.edges.tobytes(), log_odds_edges, self.closed

    def index(self, values: Array) -> Array:
        """Return the bin index of each score, (n,) int64."""
        return find_bins(values, self.edges, self.closed)


MAX_COMPARED_EDGES = 64  # number of inner edges up to which comparison with all is faster than binary search
_EDGES_PER_PASS = 8  # number of edges compared in one pass over a buffer
_VALUES_PER_TASK = 2**16  # number of values per thread task, which fit into the cache


def bin_thresholds(edges: Array, closed: str, dtype: Any) -> Array:
    """Return the threshold that a value of this dtype must exceed to fall beyond each inner edge, padded with inf.

    The thresholds are exact. For right-closed bins, a threshold is the largest number of this dtype that is not above
    the edge. For left-closed bins, it is the predecessor of the smallest number that is not below the edge.
    """
    inner = np.asarray(edges[1:-1], dtype=np.float64)
    rounded = inner.astype(dtype)
    if closed == "right":
        thresholds = np.where(rounded > inner, np.nextafter(rounded, dtype(-np.inf)), rounded)
    else:
        rounded_up = np.where(rounded < inner, np.nextafter(rounded, dtype(np.inf)), rounded)
        thresholds = np.nextafter(rounded_up, dtype(-np.inf))
    size = len(thresholds)
    if size <= MAX_COMPARED_EDGES:  # `number_bins` compares several thresholds at a time
        size = -(-size // _EDGES_PER_PASS) * _EDGES_PER_PASS
    else:  # it halves their number again and again
        size = 2 ** size.bit_length() - 1
    padded = np.full(size, np.inf, dtype=dtype)
    padded[: len(thresholds)] = thresholds
    padded.flags.writeable = False
    return padded


def exact_scale(edges: Array, closed: str, dtype: Any) -> float:
    """Return the number of bins if ⌈x · bins⌉ numbers them from 1 exactly as comparison with the edges does, else 0.

    For such bins of equal width, a multiplication replaces the comparison. The product is monotone in x, so it is
    correct everywhere if it is correct on both sides of each edge.
    """
    n_bins = len(edges) - 1
    if edges[0] != 0 or edges[-1] != 1:  # of log odds, whose products may exceed the range of an integer
        return 0.0
    thresholds = bin_thresholds(edges, closed, dtype)[: n_bins - 1]
    successors = np.nextafter(thresholds, dtype(2))
    bin_number = np.arange(1, n_bins)
    exact = (np.ceil(thresholds.astype(np.float64) * n_bins) == bin_number).all()
    exact &= (np.ceil(successors.astype(np.float64) * n_bins) == bin_number + 1).all()
    return float(n_bins) if exact else 0.0


@compile_kernel
def number_bins(x, m, thresholds, n_bins, scale, offset, bin_index):  # type: ignore[no-untyped-def]
    """Set bin_index[j] to offset[j] plus the bin number of x[j], for the first m values x; all three are (≥ m,).

    `offset` and `bin_index` must be separate arrays. Bins are numbered from 1. The numbers 0 and n_bins + 1 can occur
    for values in the first and the last bin (see `merge_outer_bins`). `thresholds` and `scale` are the results of
    `bin_thresholds` and `exact_scale`.
    """
    if scale > 0:
        limit = np.float64(n_bins + 1)
        for j in range(m):
            value = np.ceil(np.float64(x[j]) * scale)
            value = value if value < limit else limit
            bin_index[j] = offset[j] + np.int32(value)
        return
    if thresholds.shape[0] > MAX_COMPARED_EDGES:
        # Binary search among 2^k − 1 thresholds, one step for all values at a time: such a loop is vectorized.
        for j in range(m):
            bin_index[j] = 0
        half = np.int32((thresholds.shape[0] + 1) // 2)
        while half > 0:
            for j in range(m):
                is_above = x[j] > thresholds[np.uint32(bin_index[j] + half - np.int32(1))]
                bin_index[j] += half if is_above else np.int32(0)
            half >>= np.int32(1)
        for j in range(m):
            bin_index[j] += offset[j] + np.int32(1)
        return
    for j in range(m):
        bin_index[j] = offset[j] + np.int32(1)
    for first in range(0, thresholds.shape[0], _EDGES_PER_PASS):
        t0, t1, t2, t3 = thresholds[first], thresholds[first + 1], thresholds[first + 2], thresholds[first + 3]
        t4, t5, t6, t7 = thresholds[first + 4], thresholds[first + 5], thresholds[first + 6], thresholds[first + 7]
        for j in range(m):
            value = x[j]
            n_below = np.int32(value > t0) + np.int32(value > t1) + np.int32(value > t2) + np.int32(value > t3)
            bin_index[j] += (
                n_below + np.int32(value > t4) + np.int32(value > t5) + np.int32(value > t6) + np.int32(value > t7)
            )


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
    thresholds, scale, n_bins = bin_thresholds(edges, closed, dtype), exact_scale(edges, closed, dtype), len(edges) - 1
    out = np.zeros(len(x), dtype=np.int64)

    def number_block(start: int, stop: int) -> None:
        no_offset, bin_index = np.zeros((2, stop - start), dtype=np.int32)
        number_bins(as_plain_array(x[start:stop]), stop - start, thresholds, n_bins, scale, no_offset, bin_index)
        out[start:stop] = np.clip(bin_index - 1, 0, n_bins - 1)

    map_blocks(number_block, len(x), _VALUES_PER_TASK)
    return out


def sums_by_cell(index: Array, x: Array, size: int, w: Array | None = None) -> Array:
    """Return Σwx over the rows of each cell, (size,) for x (n,), and (size, m) for the columns of x (n, m).

    `index` (n,) is the cell of each row, below `size`, and `w` (n,) its weight, by default 1.

    >>> sums_by_cell(np.array([0, 2, 0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3).tolist()
    [[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]
    """
    if x.ndim == 1:
        return np.bincount(index, x if w is None else w * x, size)
    sums = np.empty((size, x.shape[1]))

    def sum_column(column: int) -> None:
        sums[:, column] = sums_by_cell(index, x[:, column], size, w)

    map_columns(sum_column, x.shape[1], len(x))
    return sums
