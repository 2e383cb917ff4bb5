"""Find partitions: bins with nondecreasing event rates (monotonic sweep), and splits of vectors by their variance.

The monotonic sweep finds the largest number of bins with nondecreasing event rates, for every draw. Source: Roelofs et
al. (2022), "Mitigating bias in calibration error estimation", who call the binned error with these bins ECE sweep. In
shapes, m is the number of distinct scores. A cell is one of them with weight in a draw, and a bin is a range of cells.

Vectors are split along the axis of largest variance, again and again: at weighted medians (a tree), or at means. Splits
at means give nested cells, whose sums are squared and added over the cells of all depths (the nodes of a tree). A scale
is a level of the tree; one pass over the cells computes the sums of all scales.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, map_blocks, map_items

CUT_TOLERANCE = 1e-12  # relative to the total weight: cuts this close to a cumulative weight are equal to it
RATE_TOLERANCE = 1e-12  # tolerance of equal rates for the rounding of sums, relative to the total weight


@compile_kernel
def _first_cut(position, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number j ≥ 1 of the first cut j · extent / k, between k bins, that is not below `position`."""
    if not position > 0:
        return 1
    j = np.int64(np.ceil((position + tolerance) / extent * k))  # up to rounding
    while j > 1 and (j - 1) * extent / k - tolerance >= position:
        j -= 1
    while j * extent / k - tolerance < position:
        j += 1
    return j


@compile_kernel
def _find_bin_end(position, j, start, n_cells, k, extent, tolerance):  # type: ignore[no-untyped-def]
    """Return the number of cells at or below cut j, by binary search from `start` to `n_cells`."""
    if j >= k:
        return n_cells
    cut = j * extent / k - tolerance
    low, high = start, n_cells
    while low < high:
        middle = (low + high) // 2
        if position[middle] > cut:
            high = middle
        else:
            low = middle + 1
    return low


@compile_kernel
def _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):  # type: ignore[no-untyped-def]
    weight_before, weight_after = mass[boundary] - mass[begin], mass[end] - mass[boundary]
    return (events[end] - events[boundary]) / weight_after < (
        events[boundary] - events[begin]
    ) / weight_before - RATE_TOLERANCE * mass[n_cells] / min(weight_before, weight_after)


@compile_kernel
def _find_points_above_hull(mass, events, n_cells, above, hull):  # type: ignore[no-untyped-def]
    """Return the number of points of the curve of cumulative sums (mass, events) above its greatest convex minorant.

    `above` receives the indices of these points, `hull` those on the minorant. If a bin ends at a point of the
    minorant, the event rate cannot decrease there.
    """
    size = 0
    for point in range(n_cells + 1):
        while size >= 2:
            if not _has_decreasing_rate(mass, events, n_cells, hull[size - 2], hull[size - 1], point):
                break
            size -= 1
        hull[size] = point
        size += 1
    n_above, i_hull = 0, 0
    for point in range(n_cells + 1):
        if i_hull < size and hull[i_hull] == point:
            i_hull += 1
        else:
            above[n_above] = point
            n_above += 1
    return n_above


@compile_kernel
def _has_nondecreasing_rates(mass, events, position, n_cells, k, extent, tolerance, above, n_above):  # type: ignore[no-untyped-def]
    """Return whether the event rates of k bins are nondecreasing, from the fewer of bins and points above the hull."""
    if k <= n_above:
        begin, boundary = 0, 0
        while boundary < n_cells:
            end = _find_bin_end(
                position, _first_cut(position[boundary], k, extent, tolerance), boundary, n_cells, k, extent, tolerance
            )
            if boundary > 0 and _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):
                return False
            begin, boundary = boundary, end
        return True
    for i_above in range(n_above):
        boundary = above[i_above]
        j = _first_cut(position[boundary - 1], k, extent, tolerance)
        if _find_bin_end(position, j, boundary - 1, n_cells, k, extent, tolerance) == boundary:
            begin = 0 if j == 1 else _find_bin_end(position, j - 1, 0, n_cells, k, extent, tolerance)
            end = _find_bin_end(
                position, _first_cut(position[boundary], k, extent, tolerance), boundary, n_cells, k, extent, tolerance
            )
            if _has_decreasing_rate(mass, events, n_cells, begin, boundary, end):
                return False
    return True


@compile_kernel
def _fill_cumulative_sums(w, wp, wy, scores, by_mass, mass, predicted, events, position):  # type: ignore[no-untyped-def]
    """Write the cumulative Σw, Σwp, Σwy and the positions of the scores with weight to the last four arguments.

    A position is the score itself or, with `by_mass`, the cumulative weight. Return the number of scores with weight,
    the extent of the positions, and the tolerance of cuts.
    """
    n_cells = 0
    mass[0] = predicted[0] = events[0] = 0.0
    for i in range(scores.shape[0]):
        if w[i] > 0:  # skip scores without weight in this draw
            if not by_mass:
                position[n_cells] = scores[i]
            n_cells += 1
            mass[n_cells] = mass[n_cells - 1] + w[i]
            predicted[n_cells] = predicted[n_cells - 1] + wp[i]
            events[n_cells] = events[n_cells - 1] + wy[i]
    if by_mass:
        position[0] = -np.inf
        for i in range(1, n_cells + 1):
            position[i] = mass[i]
        return n_cells, mass[n_cells], CUT_TOLERANCE * mass[n_cells]
    position[n_cells] = np.inf
    return n_cells, 1.0, 0.0


@compile_kernel
def _binned_error(mass, predicted, events, position, n_cells, n_bins, extent, tolerance, order):  # type: ignore[no-untyped-def]
    """Return the weighted norm, of this order, of the gaps between mean prediction and event rate of the bins.

    High powers of small gaps underflow, so for an order above 2 a first pass finds the largest gap, by which all gaps
    are divided in the second one.
    """
    largest, total = 0.0 if order > 2 else 1.0, 0.0
    for summed in range(0 if order > 2 else 1, 2):
        begin = 0
        while begin < n_cells and (summed == 0 or (largest > 0 and not np.isinf(order))):
            j = _first_cut(position[begin], n_bins, extent, tolerance)
            end = _find_bin_end(position, j, begin, n_cells, n_bins, extent, tolerance)
            share = (mass[end] - mass[begin]) / mass[n_cells]
            gap = abs((predicted[end] - predicted[begin]) - (events[end] - events[begin])) / (mass[end] - mass[begin])
            if summed == 0:
                largest = max(largest, gap)
            else:
                total += share * (gap / largest) ** order
            begin = end
    return largest if np.isinf(order) else largest * total ** (1.0 / order)


@compile_kernel
def _sweep_draws(w, wp, wy, scores, max_bins, by_mass, order, start, stop, values, chosen_n_bins):  # type: ignore[no-untyped-def]
    """Write the binned error and the number of bins of the draws start..stop−1 to `values` and `chosen_n_bins`."""
    size = scores.shape[0]
    mass, predicted, events, position = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    above, hull = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    for r in range(start, stop):
        w_row, wp_row, wy_row = w[min(r, w.shape[0] - 1)], wp[min(r, wp.shape[0] - 1)], wy[min(r, wy.shape[0] - 1)]
        n_cells, extent, tolerance = _fill_cumulative_sums(
            w_row, wp_row, wy_row, scores, by_mass, mass, predicted, events, position
        )
        n_above = _find_points_above_hull(mass, events, n_cells, above, hull)
        n_bins = max_bins
        if n_above > 0:
            n_bins = 1
            while n_bins < max_bins and _has_nondecreasing_rates(
                mass, events, position, n_cells, n_bins + 1, extent, tolerance, above, n_above
            ):
                n_bins += 1
        values[r] = _binned_error(mass, predicted, events, position, n_cells, n_bins, extent, tolerance, order)
        chosen_n_bins[r] = n_bins


def monotonic_sweep(
    w: Array, wp: Array, wy: Array, scores: Array, *, max_bins: int, by_mass: bool, order: float
) -> tuple[Array, Array]:
    """Return the binned error of each draw with the largest number of bins of nondecreasing rates, and that number.

    The sums w, wp and wy (draws, m) or (1, m) belong to the sorted distinct scores (m,). Numbers of bins from 2 to
    `max_bins` are tried, of equal weight `by_mass` or of equal width, until event rates decrease. `order` is that of
    the norm of the gaps: 1 for ECE, ∞ for the maximum. Cost: O(m + k² log m) per draw for a result of k bins.
    """
    draws = max(len(w), len(wp), len(wy))
    values, chosen_n_bins = np.empty(draws), np.empty(draws, np.int64)
    arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in (w, wp, wy, scores)]
    max_bins, order = max(1, max_bins), float(order)
    block = max(32, 2**17 // len(scores))  # minimum work per thread task
    map_blocks(
        lambda start, stop: _sweep_draws(*arrays, max_bins, by_mass, order, start, stop, values, chosen_n_bins),
        draws,
        block,
    )
    return values, chosen_n_bins


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
    cut, position, below = 0.0, np.int64(0), 0.0  # no constant, for which a function would be compiled again
    for is_upper in range(2):  # the median is the mean of the lower and the upper one
        threshold = total / 2 + (2 * is_upper - 1) * (_MEDIAN_TOLERANCE * total)
        value, position, below = _weighted_quantile(values, weights, position, below, threshold, is_upper == 1)
        cut += value
    cut /= 2
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
