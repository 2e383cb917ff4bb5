"""Split weighted vectors at the median of the axis of largest variance, again and again: a median-variance tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel, map_items

_VARIANCE_TOLERANCE = 1e-9  # relative difference up to which the variances of two axes are tied
_MEDIAN_TOLERANCE = 1e-12  # share of a node's weight within which a row completes half of it
_MAX_SUBTREE_ROWS = 2**15  # rows of a node whose subtree is grown by one thread, in its cache

NO_SPLIT = -2  # in place of a child: the node cannot be split
LEAF = -1  # in place of a child: the child is too small to be split


class Splits(NamedTuple):
    """The possible splits of the complete tree, the root first."""

    variance: Array  # (splits,) largest variance among the axes of the node
    axis: Array  # (splits,) axis of that variance
    cut: Array  # (splits,) median of that axis; smaller values go to the lower child
    children: Array  # (splits, 2) numbers of the splits of the lower and the upper child, or LEAF or NO_SPLIT


@compile_kernel
def _weighted_quantile(values, weights, start, below, threshold, exceed):  # type: ignore[no-untyped-def]
    """Return the smallest value up to which the sum of the weights reaches a threshold, or exceeds it if `exceed`.

    Only values from position `start` on are considered; the others are smaller, and `below` is their weight. Both
    arrays are reordered. Also returned are the position of the first occurrence and the weight of smaller values. The
    largest value counts if the sum does not reach the threshold.
    """
    low, high = start, values.shape[0]
    pivot = values[low]
    while low < high:
        first, middle, last = values[low], values[(low + high) // 2], values[high - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        first_equal, i, first_larger = low, low, high
        smaller_weight, equal_weight = 0.0, 0.0
        while i < first_larger:  # smaller values, equal ones, larger ones
            value, weight = values[i], weights[i]
            if value < pivot:
                values[i], weights[i] = values[first_equal], weights[first_equal]
                values[first_equal], weights[first_equal] = value, weight
                smaller_weight += weight
                first_equal += 1
                i += 1
            elif value > pivot:
                first_larger -= 1
                values[i], weights[i] = values[first_larger], weights[first_larger]
                values[first_larger], weights[first_larger] = value, weight
            else:
                equal_weight += weight
                i += 1
        smaller, up_to = below + smaller_weight, below + smaller_weight + equal_weight
        if first_equal > low and (smaller > threshold or (smaller == threshold and not exceed)):
            high = first_equal
        elif up_to > threshold or (up_to == threshold and not exceed) or first_larger == values.shape[0]:
            return pivot, first_equal, smaller
        else:
            low, below = first_larger, up_to
    return pivot, low, below


@compile_kernel
def _split_node(x, w, total, values, weights):  # type: ignore[no-untyped-def]
    """Reorder the vectors x (n, m) and weights w (n,) of a node so that those of the lower child come first.

    `total` is the sum of the weights, `values` and `weights` (n,) are buffers. Return the largest variance among the
    axes, its axis, its median, and the number and the weight of the rows of the lower child.
    """
    n, m = x.shape
    mean, variance = np.zeros(m), np.zeros(m)
    for i in range(n):
        for k in range(m):
            mean[k] += w[i] * x[i, k]
    for k in range(m):
        mean[k] /= total
    for i in range(n):
        for k in range(m):
            deviation = x[i, k] - mean[k]
            variance[k] += w[i] * (deviation * deviation)
    largest = 0.0
    for k in range(m):
        largest = max(largest, variance[k])
    axis = 0
    while variance[axis] < largest * (1 - _VARIANCE_TOLERANCE):
        axis += 1
    for i in range(n):
        values[i], weights[i] = x[i, axis], w[i]
    half, tolerance = total / 2, _MEDIAN_TOLERANCE * total
    lower, position, below = _weighted_quantile(values, weights, 0, 0.0, half - tolerance, False)
    upper, _, _ = _weighted_quantile(values, weights, position, below, half + tolerance, True)
    cut = (lower + upper) / 2
    n_low, end, low_weight = 0, n, 0.0
    while n_low < end:
        if x[n_low, axis] < cut:
            low_weight += w[n_low]
            n_low += 1
        else:
            end -= 1
            w[n_low], w[end] = w[end], w[n_low]
            for k in range(m):
                x[n_low, k], x[end, k] = x[end, k], x[n_low, k]
    return variance[axis], axis, cut, n_low, low_weight


@compile_kernel
def _grow_subtree(x, w, min_size, max_deferred_rows, statistics, links, deferred):  # type: ignore[no-untyped-def]
    """Split a node and its descendants, except those of at most `max_deferred_rows` rows.

    The vectors x (n, m) and their weights w (n,) are reordered. The variance and the cut of each split are written to
    `statistics` (splits, 2), its axis and its children to `links` (splits, 3), and the first row, the end, the split of
    the parent and the side of each node that is not split to `deferred` (nodes, 4). Return the numbers of both.
    """
    n = x.shape[0]
    values, weights = np.empty(n), np.empty(n)
    # Nodes to be split: first row, end, number of the parent's split, side. The lower child is split first, which has
    # at most half of the weight, so few upper ones wait: at most 1024 halvings lead from the largest float to 1.
    stack = np.empty((min(n, 1024) + 2, 4), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, -1, 0
    n_stack, n_splits, n_deferred = 1, 0, 0
    while n_stack > 0:
        n_stack -= 1
        start, stop, parent, side = stack[n_stack, 0], stack[n_stack, 1], stack[n_stack, 2], stack[n_stack, 3]
        if parent >= 0:
            if stop - start <= max_deferred_rows:
                for j in range(4):
                    deferred[n_deferred, j] = stack[n_stack, j]
                n_deferred += 1
                continue
            links[parent, 1 + side] = n_splits
        total = 0.0
        for i in range(start, stop):
            total += w[i]
        variance, axis, cut, n_low, low_weight = _split_node(
            x[start:stop], w[start:stop], total, values[start:stop], weights[start:stop]
        )
        high_weight = 0.0
        for i in range(start + n_low, stop):
            high_weight += w[i]
        statistics[n_splits, 0], statistics[n_splits, 1] = variance / max(total - 1, 1e-300), cut
        links[n_splits, 0] = axis
        is_split = min(low_weight, high_weight) >= min_size
        links[n_splits, 1] = links[n_splits, 2] = LEAF if is_split else NO_SPLIT
        if is_split and high_weight >= 2 * min_size:
            stack[n_stack, 0], stack[n_stack, 1] = start + n_low, stop
            stack[n_stack, 2], stack[n_stack, 3] = n_splits, 1
            n_stack += 1
        if is_split and low_weight >= 2 * min_size:
            stack[n_stack, 0], stack[n_stack, 1] = start, start + n_low
            stack[n_stack, 2], stack[n_stack, 3] = n_splits, 0
            n_stack += 1
        n_splits += 1
    return n_splits, n_deferred


def _splits_of_node(x: Array, w: Array, min_size: int, max_deferred_rows: int) -> tuple[Array, Array, Array]:
    """Return the `statistics`, `links` and `deferred` nodes of `_grow_subtree` for the rows of one node."""
    # Leaves have at least one row and the weight `min_size`, and a binary tree has fewer than two nodes per leaf.
    max_splits = 2 * min(len(x), int(w.sum() / min_size)) + 1
    statistics = np.empty((max_splits, 2))  # variance, cut
    links = np.empty((max_splits, 3), dtype=np.int64)  # axis, lower child, upper child
    deferred = np.empty((max_splits if max_deferred_rows else 0, 4), dtype=np.int64)
    n_splits, n_deferred = _grow_subtree(x, w, min_size, max_deferred_rows, statistics, links, deferred)
    return statistics[:n_splits], links[:n_splits], deferred[:n_deferred]


def median_splits(x: Array, w: Array, min_size: int) -> Splits:
    """Split vectors (n, m) of weights w (n,) at medians while both children have at least the weight `min_size`.

    The sum of the weights is at least 2 · `min_size`. `x` and `w` are copied.
    """
    x, w = np.array(x, dtype=np.float64, order="C"), np.array(w, dtype=np.float64)  # copies, which are reordered
    max_deferred_rows = _MAX_SUBTREE_ROWS if len(x) > _MAX_SUBTREE_ROWS else 0  # few rows need no second thread
    statistics, links, deferred = _splits_of_node(x, w, min_size, max_deferred_rows)
    nodes = deferred.tolist()
    subtrees = map_items(lambda node: _splits_of_node(x[node[0] : node[1]], w[node[0] : node[1]], min_size, 0), nodes)
    n_splits, all_statistics, all_links = len(statistics), [statistics], [links]
    for (_, _, parent, side), (subtree_statistics, subtree_links, _) in zip(nodes, subtrees, strict=True):
        links[parent, 1 + side] = n_splits
        children = subtree_links[:, 1:]
        children[children >= 0] += n_splits  # they were numbered from 0 within the subtree
        n_splits += len(subtree_statistics)
        all_statistics.append(subtree_statistics)
        all_links.append(subtree_links)
    statistics, links = np.concatenate(all_statistics), np.concatenate(all_links)
    return Splits(statistics[:, 0], links[:, 0], statistics[:, 1], links[:, 1:])
