"""Find the order statistics of scores, and the sums between them, without sorting all rows.

Scores with their outcomes are given as integer keys (see `score_keys`). Bins of equal mass, for instance, need only the
order statistics at their edges, so only keys near these ranks are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks, sum_blocks
from trueodds.kernels.bin_sums import (
    ROWS_PER_TILE,
    add_scores,
    add_to_columns,
    bin_sums_of_keys,
    edge_keys,
    zero_score_sums,
)
from trueodds.kernels.score_keys import decode_scores

# Keys are counted in 2^13 cells, whose counts stay in the core's own cache, or in 2^16 if there are many ranks.
_CELL_INDEX_BITS, _MANY_RANKS_CELL_INDEX_BITS = 13, 16
_MANY_RANKS = 129  # more ranks than 64 bins have, which need the ranks on both sides of every cut
_KEYS_PER_TASK = 2**18  # minimum number of keys per thread task
_MIN_SAMPLE_SIZE = 1000  # number of sampled keys, from which the cells of the ranks are estimated
_SAMPLED_KEYS_PER_RANK = 20  # minimum number, so that the sampled keys at the ranks are a small share of the sample
_MAX_SAMPLE_SHARE = 0.25  # maximum share of the sample in these cells; above it, sorting all keys is not slower


@compile_kernel
def _find_key_range(keys):  # type: ignore[no-untyped-def]
    low = high = keys[0]
    for i in range(keys.shape[0]):
        low, high = min(low, keys[i]), max(high, keys[i])
    return low, high


@compile_kernel
def _count_keys(keys, low, shift, out):  # type: ignore[no-untyped-def]
    """Add the number of keys in each cell to `out` (cells,); `low` and `shift` are those of `OrderStatistics`."""
    count = np.zeros(out.shape[0], dtype=np.int64)
    for i in range(keys.shape[0]):
        count[(keys[i] - low) >> shift] += 1
    for cell in range(out.shape[0]):
        out[cell] += np.float64(count[cell])


@compile_kernel
def _partition_keys(keys, empty_scores, low, shift, segment, selected_keys, out):  # type: ignore[no-untyped-def]
    """Write the keys of segment 0 to `selected_keys` and return their number; add n, Σp and Σp² to `out`.

    `segment` (cells,) has the segment of each cell. `out` (2 · segments, 3) has rows for non-events and events of each
    segment. `empty_scores` (0,) has the dtype of the scores.
    """
    bin_index, bits, sums = (
        np.empty(ROWS_PER_TILE, dtype=np.int32),
        np.empty(ROWS_PER_TILE, dtype=keys.dtype),
        zero_score_sums(out.shape[0]),
    )
    scores = bits.view(empty_scores.dtype)
    n_selected = 0
    for start in range(0, keys.shape[0], ROWS_PER_TILE):
        block = keys[start : start + ROWS_PER_TILE]
        m = block.shape[0]
        for i in range(m):
            bits[i] = block[i] >> 1
        for i in range(m):
            bin_index[i] = segment[(block[i] - low) >> shift] * 2 + np.int32(block[i] & 1)
        for i in range(m):
            selected_keys[np.uint32(n_selected)] = block[i]
            n_selected += bin_index[i] < 2
        add_scores(scores, m, bin_index, sums)
    add_to_columns(sums, out)
    return n_selected


class OrderStatistics:
    """The sorted keys near given ranks, and the sums of all other keys, by segments between the ranks.

    A key belongs to the cell (key − low) >> shift; `count` (cells,) is the number of keys in each. The keys of the
    cells that contain a rank are sorted; these cells form segment 0. The cells before, between and after them form the
    segments 1, 2, …, of which only sums are stored.
    """

    def __init__(self, keys: Array, low: Any, shift: Any, count: Array, ranks: Array) -> None:
        # Numbers of keys up to and including each cell: of all keys, and of those that are not sorted.
        self._cumulative_count = np.cumsum(count)
        is_selected = _cell_mask(self._find_cells_of_ranks(ranks), len(count))
        segment = np.where(is_selected, 0, np.cumsum(is_selected) + 1).astype(np.int32)
        n_segments, empty_scores = int(is_selected.sum()) + 2, decode_scores(keys[:0])

        def partition_block(start: int, stop: int) -> tuple[Array, Array]:
            selected_keys, sums = np.empty(stop - start, dtype=keys.dtype), np.zeros((2 * n_segments, 3))
            n_selected = _partition_keys(keys[start:stop], empty_scores, low, shift, segment, selected_keys, sums)
            return selected_keys[:n_selected].copy(), sums

        key_blocks, block_sums = zip(*map_blocks(partition_block, len(keys), _KEYS_PER_TASK), strict=True)
        self.keys = np.concatenate(key_blocks)
        self.keys.sort()
        # (segments, 2, 3) n, Σp and Σp² of non-events and events in the segments 1, 2, …
        self._segment_sums = np.sum(block_sums, axis=0).reshape(-1, 2, 3)[1:]
        self._low, self._shift, self._is_selected, self._count = low, shift, is_selected, count
        self._cumulative_unselected = np.cumsum(np.where(is_selected, 0.0, count))

    def select(self, ranks: Array) -> Array:
        """Return the order statistics (keys) at these ranks, from 0, which must lie in cells whose keys are sorted."""
        n_unsorted_below = self._cumulative_unselected[self._find_cells_of_ranks(ranks)].astype(np.int64)
        return self.keys[ranks - n_unsorted_below]

    def _find_cells_of_ranks(self, ranks: Array) -> Array:
        return np.searchsorted(self._cumulative_count, ranks, "right")

    def sum_bins(self, edges: Array, closed: str) -> Array | None:
        """Return n, Σp and Σp² per bin of non-events and events, (bins, 2, 3), without a further pass over all keys.

        None unless every inner edge lies in a cell with sorted keys or without keys, and between complete segments.
        """
        cells = [self._find_cell_of_key(key) for key in edge_keys(edges, closed, self.keys.dtype)]
        if any(cell >= 0 and not self._is_selected[cell] and self._count[cell] > 0 for cell in cells):
            return None
        n_unsorted_below = np.array([0.0 if cell < 0 else self._cumulative_unselected[cell] for cell in cells])
        cumulative_count = np.concatenate(([0.0], np.cumsum(self._segment_sums[:, :, 0].sum(axis=1))))
        segments_below = np.searchsorted(cumulative_count, n_unsorted_below)  # number of segments below each edge
        if not np.array_equal(cumulative_count[segments_below], n_unsorted_below):
            return None
        table = bin_sums_of_keys(self.keys, edges, closed)
        bin_of_segment = np.searchsorted(segments_below, np.arange(1, len(self._segment_sums) + 1))
        np.add.at(table, bin_of_segment, self._segment_sums)
        return table

    def _find_cell_of_key(self, key: Any) -> int:
        """Return the cell of a key: the last one for larger keys, −1 for smaller ones."""
        if key is None or key < self._low:
            return -1
        return min(int((key - self._low) >> self._shift), len(self._count) - 1)


def select_order_statistics(keys: Array, ranks: Array) -> OrderStatistics | None:
    """Return the order statistics of keys, in any order, near these ranks; None if sorting all keys is not slower."""
    keys = as_plain_array(keys)
    key_ranges = np.array(
        map_blocks(lambda start, stop: _find_key_range(keys[start:stop]), len(keys), _KEYS_PER_TASK), dtype=keys.dtype
    )
    low, high = key_ranges.min(), key_ranges.max()
    cell_index_bits = _CELL_INDEX_BITS if len(ranks) < _MANY_RANKS else _MANY_RANKS_CELL_INDEX_BITS
    n_cells, shift = 2**cell_index_bits, keys.dtype.type(max(0, int(high - low).bit_length() - cell_index_bits))
    sample_size = max(_MIN_SAMPLE_SIZE, _SAMPLED_KEYS_PER_RANK * len(ranks))
    sampled_cells = np.sort((keys[:: max(1, len(keys) // sample_size)] - low) >> shift)
    is_near_rank = _cell_mask(sampled_cells[ranks * len(sampled_cells) // len(keys)], n_cells)
    if is_near_rank[sampled_cells].mean() > _MAX_SAMPLE_SHARE:
        return None
    count = sum_blocks(
        lambda start, stop, out: _count_keys(keys[start:stop], low, shift, out),
        len(keys),
        (n_cells,),
        block=_KEYS_PER_TASK,
    )
    return OrderStatistics(keys, low, shift, count, ranks)


def _cell_mask(cells: Array, n_cells: int) -> Array:
    mask = np.zeros(n_cells, dtype=np.bool_)
    mask[cells] = True
    return mask
