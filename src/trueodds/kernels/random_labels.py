"""Draw labels from predicted probabilities, with random numbers that depend only on key, row and draw.

A label is the first class whose cumulative probability exceeds a uniform random number. Both are compared as integers:
cumulative probabilities are rounded to thresholds, at random for each row, so that the expected rounding error is 0.
With many classes the search for the class starts from a guide table (Chen & Asau, 1974), indexed by the leading bits of
the random integer.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, map_blocks
from trueodds.kernels.random_streams import (
    DRAW_RANGE,
    clustered_integer,
    fill_uniform_words,
    row_dither,
    row_stream_key,
)

MAX_COMPARED_CLASSES = 32  # number of classes up to which comparison with all thresholds is faster than a guided search
ROWS_PER_BLOCK = 256  # number of rows per thread task
_NO_CLUSTERS = np.empty(0, dtype=np.int64)  # stands for clusters that are not used, with the same dtype


@compile_inline
def label_threshold(share, dither, n_integers):  # type: ignore[no-untyped-def]
    """Return the threshold below which a uniform integer below `n_integers` lies with the probability `share`.

    `dither` in [0, 1), a random number of the row, rounds it up or down, so that its expectation is exact.
    """
    return np.floor(share * n_integers + dither)


@compile_inline
def fill_thresholds(P, i, dither, n_integers, cumulative):  # type: ignore[no-untyped-def]
    """Write the thresholds of the cumulative probabilities of row i of P to `cumulative` (K,)."""
    total = 0.0
    last = 0
    k = P.shape[1]
    for c in range(k):
        total += np.float64(P[i, c])
        cumulative[c] = total
        if P[i, c] > 0:
            last = c
    for c in range(k):
        cumulative[c] = label_threshold(cumulative[c] / total, dither, n_integers)
    for c in range(last, k):
        cumulative[c] = n_integers  # a label with predicted probability 0 is never drawn


@compile_inline
def fill_guide(cumulative, shift, guide):  # type: ignore[no-untyped-def]
    """Write the guide table: for each value of the leading bits, u >> shift, the class of the smallest integer u."""
    c = 0
    for leading in range(guide.shape[0]):
        smallest = np.float64(leading << shift)
        while cumulative[c] <= smallest:  # the last threshold is 2^32
            c += 1
        guide[leading] = c


@compile_inline
def find_class(cumulative, guide, shift, integer):  # type: ignore[no-untyped-def]
    """Return the first class whose cumulative threshold exceeds a random integer, with the table of `fill_guide`."""
    c = guide[integer >> shift]
    while cumulative[c] <= integer:
        c += 1
    return c


@compile_inline
def n_guide_bits(k):  # type: ignore[no-untyped-def]
    """Return the number of leading bits for the guide table of k classes: two entries or more per class, up to 2¹⁶."""
    bits = 4
    while (1 << bits) < 2 * k and bits < 16:
        bits += 1
    return bits


@compile_kernel
def _draw_labels(P, numbers, cluster, share, key, start, labels):  # type: ignore[no-untyped-def]
    """Write labels (rows, draws) of the rows P (rows, K), for the draws from `start` on, by guided search.

    With probability `share`, a row uses the random integer of its `cluster` (rows,), which may be empty if it is 0.
    """
    k, draws = P.shape[1], labels.shape[1]
    shift = 32 - n_guide_bits(k)
    cumulative, guide = np.empty(k), np.empty(1 << (32 - shift), dtype=np.int32)
    skipped = start & 1
    words = np.empty((draws + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + draws]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_guide(cumulative, shift, guide)
        if share > 0.0:
            cluster_stream = row_stream_key(~np.uint64(key), cluster[i])
            for r in range(draws):
                integers[r] = clustered_integer(stream, cluster_stream, share, start + r)
        else:
            fill_uniform_words(stream, start >> 1, words)
        for r in range(draws):
            labels[i, r] = find_class(cumulative, guide, shift, integers[r])


def draw_labels(
    P: Array, key: int, start: int, stop: int, *, cluster: Array | None = None, cluster_probability: float = 0.0
) -> Array:
    """Draw a label for each row and draw from the probabilities P (n, K); the labels are (stop − start, n) int64.

    The labels of a draw depend only on the key and the number of the draw. With the `cluster_probability`, all rows of
    a cluster use one random number in a draw, instead of their own.
    """
    labels = draw_labels_by_row(P, key, start, stop, cluster=cluster, cluster_probability=cluster_probability)
    return np.ascontiguousarray(labels.T, dtype=np.int64)


@compile_kernel
def _compare_with_thresholds(P, numbers, key, start, out):  # type: ignore[no-untyped-def]
    """Write the labels of `_draw_labels` without clusters: the number of thresholds at or below the random integer."""
    cumulative = np.empty(P.shape[1])
    skipped = start & 1
    words = np.empty((out.shape[1] + skipped + 1) >> 1, dtype=np.uint64)
    integers = words.view(np.uint32)[skipped : skipped + out.shape[1]]
    for i in range(P.shape[0]):
        stream = row_stream_key(key, numbers[i])
        fill_thresholds(P, i, row_dither(stream), DRAW_RANGE, cumulative)
        fill_uniform_words(stream, start >> 1, words)
        labels = out[i]
        labels[:] = 0
        for c in range(P.shape[1]):
            if cumulative[c] == DRAW_RANGE:
                break
            bound = np.uint32(cumulative[c])
            for r in range(integers.shape[0]):
                labels[r] += integers[r] >= bound


def draw_labels_by_row(
    P: Array,
    key: int,
    start: int,
    stop: int,
    *,
    row_numbers: Array | None = None,
    cluster: Array | None = None,
    cluster_probability: float = 0.0,
) -> Array:
    """Return the labels of `draw_labels` as (n, stop − start), in the smallest suitable integer type."""
    P = as_plain_array(P)
    numbers = as_plain_array(np.arange(len(P)) if row_numbers is None else row_numbers)
    clusters = as_plain_array(_NO_CLUSTERS if cluster is None else cluster)
    out = np.empty((len(P), stop - start), dtype=np.min_scalar_type(max(P.shape[1] - 1, 0)))

    def draw_rows(first: int, last: int) -> None:
        if P.shape[1] > MAX_COMPARED_CLASSES or cluster_probability > 0:
            _draw_labels(
                P[first:last],
                numbers[first:last],
                clusters[first:last],
                cluster_probability,
                key,
                start,
                out[first:last],
            )
        else:
            _compare_with_thresholds(P[first:last], numbers[first:last], key, start, out[first:last])

    map_blocks(draw_rows, len(P), ROWS_PER_BLOCK)
    return out
