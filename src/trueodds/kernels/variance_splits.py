"""Split vectors along the axis of largest variance, again and again: at weighted medians (a tree), or at means.

Splits at means give nested cells, whose sums are squared and added over the cells of all depths (the nodes of a tree).
A scale is a level of the tree; one pass over the cells computes the sums of all scales.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, map_items

_VARIANCE_TOLERANCE = 1e-9  # relative difference up to which the variances of two axes are tied
_MEDIAN_TOLERANCE = 1e-12  # share of a node's weight within which a row completes half of it
_MAX_SUBTREE_ROWS = 2**15  # rows of a node whose subtree is grown by one thread, in its cache

NO_SPLIT = -2  # instead of a child: the node cannot be split
LEAF = -1  # instead of a child: the child is too small to be split


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


MAX_SMALL_CELL_ROWS = 2**15  # rows of a cell whose descendants are split by one thread
_ROUNDED_DECIMALS = 12  # to which means and variances are rounded before they are compared, against rounding errors


def nested_cells(x: Array, depth: int) -> Array:
    """Cell of each vector (n, m) among 2^depth nested cells, split at the mean of the axis of largest variance.

    A mean lies between clusters of vectors, while a median may split a cluster. The leading bits of a cell number are
    those of its parent cell, so one number per vector gives the cells at every depth. Equal vectors share a cell.

    >>> nested_cells(np.array([[0.1], [0.2], [0.8], [0.9]]), 2)
    array([0, 1, 2, 3])
    """
    x, cell_index = as_plain_array(x), np.zeros(len(x), dtype=np.int64)
    current_cells, small_cells = [_PendingCell(np.arange(len(x)), 0, depth)], []
    while current_cells:  # cells of few rows are split further one by one, in the cache
        small_cells += [candidate for candidate in current_cells if len(candidate.rows) <= MAX_SMALL_CELL_ROWS]
        large_cells = [candidate for candidate in current_cells if len(candidate.rows) > MAX_SMALL_CELL_ROWS]
        current_cells = [
            half for pair in map_items(lambda parent: _split(x, parent, cell_index), large_cells) for half in pair
        ]
    map_items(lambda small_cell: _split_completely(x, small_cell, cell_index), small_cells)
    return cell_index


class _PendingCell(NamedTuple):
    """A cell that may be split further."""

    rows: Array  # (rows,) numbers of its rows, in increasing order
    number: int
    depth: int  # number of splits to come


def _split_completely(x: Array, start: _PendingCell, cell_index: Array) -> None:
    rows, number, depth = start
    vectors, descendants = as_plain_array(x.take(rows, axis=0)), np.empty(len(rows), dtype=np.int64)
    pending_cells = [_PendingCell(np.arange(len(rows)), number, depth)]
    while pending_cells:
        pending_cells += _split(vectors, pending_cells.pop(), descendants)
    cell_index[rows] = descendants


def _split(x: Array, parent: _PendingCell, cell_index: Array) -> list[_PendingCell]:
    """Return both halves of a cell of x (n, m), or if it is not split, store its number in `cell_index` (n,)."""
    rows, number, depth = parent
    if depth and len(rows) > 1:
        mean, variance = np.zeros((2, x.shape[1]))
        _means_and_variances(x, rows, mean, variance)
        axis = int(np.argmax(np.round(variance, _ROUNDED_DECIMALS)))
        column = x[rows, axis]
        is_low = column < round(float(column.mean()), _ROUNDED_DECIMALS)
        if is_low.any() and not is_low.all():  # otherwise the vectors are equal on every axis
            return [
                _PendingCell(rows[np.flatnonzero(half)], 2 * number + is_high, depth - 1)
                for is_high, half in enumerate((is_low, ~is_low))
            ]
    cell_index[rows] = number << depth
    return []


@compile_kernel
def _means_and_variances(x, rows, mean, variance):  # type: ignore[no-untyped-def]
    """Write mean and variance of the columns of x (n, m) over some rows to `mean` and `variance` (m,), zero before."""
    n, m = rows.shape[0], x.shape[1]
    for i in range(n):
        for k in range(m):
            mean[k] += x[rows[i], k]
    for k in range(m):
        mean[k] /= n
    for i in range(n):
        for k in range(m):
            deviation = x[rows[i], k] - mean[k]
            variance[k] += deviation * deviation
    for k in range(m):
        variance[k] /= n


@compile_reordering
def _add_squares(sums_by_cell, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the weighted squares of the sums of every node of `sums_by_cell` to `out` (draws, scales)."""
    scales, n_columns = is_last.shape[0], sums_by_cell.shape[2]
    sums = np.empty((scales, n_columns))
    for draw in range(sums_by_cell.shape[0]):
        sums[:] = 0.0
        for cell in range(sums_by_cell.shape[1]):
            for column in range(n_columns):
                sums[0, column] += sums_by_cell[draw, cell, column]
            scale = 0
            while scale < scales and is_last[scale, cell]:
                total = 0.0
                for column in range(n_columns):
                    total += sums[scale, column] * sums[scale, column] * weights[scale, cell, column]
                out[draw, scale] += total
                if scale + 1 < scales:
                    for column in range(n_columns):
                        sums[scale + 1, column] += sums[scale, column]
                for column in range(n_columns):
                    sums[scale, column] = 0.0
                scale += 1


@compile_kernel
def _add_squares_of_one_column(sums_by_cell, is_last, weights, out):  # type: ignore[no-untyped-def]
    """Add the same as `_add_squares` for a single column, without inner loops: `sums_by_cell` (draws, cells)."""
    scales = is_last.shape[0]
    sums = np.empty(scales)
    for draw in range(sums_by_cell.shape[0]):
        sums[:] = 0.0
        for cell in range(sums_by_cell.shape[1]):
            sums[0] += sums_by_cell[draw, cell]
            scale = 0
            while scale < scales and is_last[scale, cell]:
                node_sum = sums[scale]
                out[draw, scale] += node_sum * node_sum * weights[scale, cell]
                sums[scale] = 0.0
                scale += 1
                if scale < scales:
                    sums[scale] += node_sum


def nested_squares(x: Array, is_last: Array, weights: Array) -> Array:
    """Return Σ over nodes and columns of weight · (sum of x in the node)², for each draw and scale, (draws, scales).

    `x` is (draws, cells, m). `is_last` (scales, cells) marks the last cell of every node, the finest scale first; a
    node of one scale consists of complete nodes of the next finer one. `weights` (scales, cells, m) are read at the
    last cell of a node.

    >>> x = np.array([[[1.0], [2.0], [3.0], [4.0]]])
    >>> is_last = np.array([[False, True, False, True], [False, False, False, True]])
    >>> nested_squares(x, is_last, np.ones((2, 4, 1)))  # 3² + 7², (3 + 7)²
    array([[ 58., 100.]])
    """
    out = np.zeros((len(x), len(is_last)))
    if len(is_last) and x.shape[2] == 1:
        _add_squares_of_one_column(np.ascontiguousarray(x[..., 0]), is_last, np.ascontiguousarray(weights[..., 0]), out)
    elif len(is_last):
        _add_squares(np.ascontiguousarray(x), is_last, weights, out)
    return out
