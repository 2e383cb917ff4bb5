"""Mean total variation distance between the predictions and drawn labels of each cell, for many draws of the labels.

The cells are processed one after the other: only the sums of one cell, for all draws, are in memory, and not those of
all cells.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, sum_blocks
from trueodds.kernels.random_label_sums import add_where_between
from trueodds.kernels.random_labels import (
    MAX_COMPARED_CLASSES,
    fill_guide,
    fill_thresholds,
    find_class,
    n_guide_bits,
)
from trueodds.kernels.random_streams import DRAW_RANGE, fill_uniform_words, row_dither, row_stream_key

CELLS_PER_BLOCK = 16  # minimum number of cells per thread task
MAX_PARTIAL_SUMS = 2**19  # number of partial sums, one per draw and thread task, in memory


@compile_inline
def _add_drawn_weights(integers, cumulative, outcomes, weight, sums):  # type: ignore[no-untyped-def]
    """Add the weight of one row to the outcome of its label in each draw, in `sums` (outcomes, draws)."""
    low = 0.0
    for c in range(cumulative.shape[0]):
        width = cumulative[c] - low
        if width > 0:
            outcome_sums = sums[outcomes[c]]
            if width == DRAW_RANGE:
                for r in range(integers.shape[0]):
                    outcome_sums[r] += weight
            else:
                add_where_between(outcome_sums, integers, np.uint32(low), np.uint32(width), weight)
        low = cumulative[c]


@compile_kernel
def _add_residual_norms(P, numbers, outcomes, w, wp, rows, first, start, stop, key, draws, is_searched, sums, out):  # type: ignore[no-untyped-def]
    """Add Σ|Σw(p − y)| of the cells start..stop−1 to `out` (draws,), with labels drawn from the predictions.

    The outer sum is over cells and outcomes, the inner one over the rows of a cell. `is_searched` says that classes are
    found by guided search; `sums` (m, draws) is a buffer.
    """
    k, m = P.shape[1], wp.shape[1]
    shift = 32 - n_guide_bits(k)
    cumulative, guide = np.empty(k), np.empty(1 << (32 - shift), dtype=np.int32)
    words = np.empty((draws + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[:draws]
    for cell in range(start, stop):
        sums[:] = 0
        for i in rows[first[cell] : first[cell + 1]]:
            stream = row_stream_key(key, numbers[i])
            fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
            fill_uniform_words(stream, 0, words)
            outcome, weight = outcomes[i % outcomes.shape[0]], sums.dtype.type(w[i])
            if is_searched:
                fill_guide(cumulative, shift, guide)
                for r in range(draws):
                    sums[outcome[find_class(cumulative, guide, shift, integers[r])], r] += weight
            else:
                _add_drawn_weights(integers, cumulative, outcome, weight, sums)
        for j in range(m):
            outcome_sums, expected = sums[j], wp[cell, j]
            for r in range(draws):
                out[r] += abs(expected - outcome_sums[r])


def drawn_total_variation(
    P: Array,
    outcomes: Array,
    w: Array,
    wp: Array,
    rows: Array,
    first: Array,
    key: int,
    draws: int,
    row_numbers: Array | None = None,
) -> Array:
    """Return Σ|Σw(p − y)| / (2 Σw) for each draw: the weighted mean over cells of the total variation distance.

    Labels are drawn from P (n, K). `outcomes` (1, K) or (n, K) is the outcome of the view, 0..m−1, for each label, `w`
    (n,) the weights and `wp` (cells, m) their sums with the predictions. `rows` are the rows of positive weight, sorted
    by cell, and `first` (cells + 1,) the start of each cell in them. `row_numbers` are those in the random streams.
    """
    is_unweighted, is_searched = bool((w == 1).all()), P.shape[1] > MAX_COMPARED_CLASSES
    dtype = np.int32 if is_unweighted else np.float64  # integer counts are exact and take half the memory
    outcomes = outcomes.astype(np.int32, copy=False)
    numbers = np.arange(len(P)) if row_numbers is None else row_numbers
    P, numbers, outcomes, w, wp, rows, first = (
        as_plain_array(array) for array in (P, numbers, outcomes, w, wp, rows, first)
    )

    def add_cells(start: int, stop: int, out: Array) -> None:
        sums = np.empty((wp.shape[1], draws), dtype=dtype)
        _add_residual_norms(P, numbers, outcomes, w, wp, rows, first, start, stop, key, draws, is_searched, sums, out)

    norms = sum_blocks(add_cells, len(wp), (draws,), block=CELLS_PER_BLOCK, max_values=MAX_PARTIAL_SUMS)
    return norms / (2 * w.sum())
