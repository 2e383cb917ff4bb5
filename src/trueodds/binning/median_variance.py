"""Median-variance tree: a partition of scores or of the probability simplex by splits at medians."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.ordering import round_significant
from trueodds.core.settings import Count
from trueodds.core.typing import Array
from trueodds.kernels import map_items
from trueodds.kernels.bins import FittedPartition
from trueodds.kernels.bootstrap_sums import argsort_bins
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MedianVariance(Partition):
    """Tree on the simplex that splits the axis of largest variance at its median.

    Every cell has at least `min_size` rows. With weights, the rows that they represent are counted: the sum of the
    weights if all of them are whole numbers, and otherwise of the weights divided by their mean. A cell of rows with
    large weights can therefore have fewer rows.

    Cells of largest variance are split first, which matters with `max_bins`. Rows equal to the median go to the upper
    child. Source: Vaicenavicius et al. (2019), in the form of Widmann et al. (2019).
    """

    min_size: Count = 10  # rows
    max_bins: Count | None = None  # cells

    def fit(self, view: View) -> FittedPartition:
        """The tree fitted to these predictions. A binary view is split along its single score."""
        weights = view.w * (view.n_represented / view.total)
        tree: Tree = grow_tree(
            view.partition_values if view.joint else view.partition_values[:, None],
            weights,
            self.min_size,
            self.max_bins,
        )
        return tree

    def __str__(self) -> str:
        return f"median-variance min {self.min_size}" + (f" max {self.max_bins}" if self.max_bins else "")


class Tree:
    """A fitted tree, which assigns any vector to one of its `size` leaves.

    The lists hold one entry per node, in the order of creation; node 0 is the root.
    """

    def __init__(self) -> None:
        self.axis: list[int] = [-1]  # axis along which the node is split; -1 at a leaf
        self.cut: list[float] = [0.0]  # smallest value of that axis that goes to the upper child
        self.low: list[int] = [0]  # number of the lower child
        self.high: list[int] = [0]  # number of the upper child

    def split(self, node: int, axis: int, cut: float) -> tuple[int, int]:
        """Turn a leaf into a branch and return the numbers of its two children."""
        children = (len(self.axis), len(self.axis) + 1)
        self.axis[node], self.cut[node], (self.low[node], self.high[node]) = axis, cut, children
        for _ in children:
            self.axis.append(-1)
            self.cut.append(0.0)
            self.low.append(0)
            self.high.append(0)
        return children

    @property
    def size(self) -> int:
        """Number of leaves."""
        return sum(axis < 0 for axis in self.axis)

    def index(self, values: Array) -> Array:
        """Return the leaf of each vector (n, m) or score (n,), numbered from 0 in the order of creation."""
        x = values if values.ndim == 2 else values[:, None]
        axis, cut, children = np.array(self.axis), np.array(self.cut), np.array([self.low, self.high])
        leaf_number = np.cumsum(axis < 0) - 1
        node = np.zeros(len(x), dtype=np.intp)
        rows = np.arange(len(x)) if axis[0] >= 0 else np.empty(0, dtype=np.intp)
        while len(rows):
            at_node = node[rows]
            node[rows] = at_node = children[(x[rows, axis[at_node]] >= cut[at_node]).astype(np.intp), at_node]
            rows = rows[axis[at_node] >= 0]
        return leaf_number[node]


def grow_tree(x: Array, w: Array, min_size: int, max_bins: int | None = None) -> Tree:
    """Grow the tree: split at the median of the axis of largest variance while both children hold `min_size` rows.

    `x` is (n, m), and `w` is the number of rows that each represents. Rows below the median go to the lower child, ties
    to the upper one.
    """
    tree = Tree()
    if w.sum() < 2 * min_size:
        return tree
    splits = _possible_splits(x, w, min_size)
    creation_order = 0  # nodes of equal variance are split in the order of creation
    # Leaves that may be split, the one of largest variance first: rank, order, number of the node and of its split.
    heap = [(*splits[0].rank, creation_order, 0, 0)]
    n_leaves = 1
    while heap and (max_bins is None or n_leaves < max_bins):
        _, axis, _, node, split_number = heapq.heappop(heap)
        split = splits[split_number]
        if split.children is None:
            continue
        n_leaves += 1
        for child, child_number in zip(tree.split(node, axis, split.cut), split.children, strict=True):
            if child_number >= 0:
                creation_order += 1
                heapq.heappush(heap, (*splits[child_number].rank, creation_order, child, child_number))
    return tree


@dataclass
class _Split:
    """A possible split of a node at the median of its axis of largest variance."""

    rank: tuple[float, int]  # negative of that variance, and the axis
    cut: float
    children: tuple[int, int] | None = None  # numbers of the children's splits, −1 if too small; None: no split


_VARIANCE_TOLERANCE = 1e-9  # relative difference up to which the variances of two axes are tied
_MEDIAN_TOLERANCE = 1e-12  # share of a node's weight within which a row completes half of it

# Subtrees of nodes of at most so many rows are grown one by one, in the cache and on several threads.
MAX_SUBTREE_ROWS = 2**15


def _possible_splits(x: Array, w: Array, min_size: int) -> list[_Split]:
    """Return the splits of the complete tree for vectors x (n, m) with weights w (n,), the root first."""
    splits, subtrees = _split_levels(x.astype(np.float64, copy=False), w, min_size, MAX_SUBTREE_ROWS)
    splits_of_subtrees = map_items(lambda subtree: _split_levels(subtree.x, subtree.w, min_size)[0], subtrees)
    for subtree, lower_splits in zip(subtrees, splits_of_subtrees, strict=True):
        n_upper = len(splits)
        _set_child(subtree.parent, subtree.side, n_upper)
        for split in lower_splits:  # numbered from 0 within the subtree so far
            if split.children is not None:
                low, high = split.children
                split.children = (low + n_upper if low >= 0 else low, high + n_upper if high >= 0 else high)
        splits += lower_splits
    return splits


@dataclass
class _Subtree:
    """Rows of a node whose subtree is not grown yet."""

    parent: _Split
    side: int  # 0 for the lower child of the parent, 1 for the upper one
    x: Array  # (rows, m)
    w: Array  # (rows,) number of rows that each represents


def _set_child(parent: _Split, side: int, number: int) -> None:
    """Store the number of the split of a child at its parent."""
    assert parent.children is not None
    parent.children = (number, parent.children[1]) if side == 0 else (parent.children[0], number)


def _split_levels(x: Array, w: Array, min_size: int, max_rows: int = 0) -> tuple[list[_Split], list[_Subtree]]:
    """Split the nodes of the tree level by level; nodes of at most `max_rows` rows, except the root, are not split.

    Returns the splits, and the nodes that were not split because they are small.
    """
    splits: list[_Split] = []
    subtrees: list[_Subtree] = []
    parents: list[tuple[_Split, int]] = []  # the split and the side from which each node of the level comes
    # The vectors `node_rows` and their weights `mass` are sorted by node; `starts` are the first rows of the nodes.
    node_rows, mass, starts = x, w, np.zeros(1, dtype=np.intp)
    while len(starts):
        level, is_continued, child = _split_nodes(node_rows, mass, starts, min_size)
        for number, (parent, side) in enumerate(parents, start=len(splits)):
            _set_child(parent, side, number)
        splits += level
        # The children that are split further are the nodes of the next level. Their rows are sorted by child.
        parents = [(level[i], side) for i, side in np.argwhere(is_continued).tolist()]
        order = argsort_bins(child, 2 * len(starts))
        order = order[is_continued.ravel()[child[order]]]
        node_rows, mass = node_rows[order], mass[order]
        starts = np.flatnonzero(np.diff(child[order], prepend=-1))
        sizes = np.diff(starts, append=len(node_rows))
        is_small = sizes <= max_rows
        if is_small.any():
            for i in np.flatnonzero(is_small):
                rows = slice(starts[i], starts[i] + sizes[i])
                subtrees.append(_Subtree(*parents[i], node_rows[rows], mass[rows]))
            parents = [parents[i] for i in np.flatnonzero(~is_small)]
            is_in_large_node = np.repeat(~is_small, sizes)
            node_rows, mass = node_rows[is_in_large_node], mass[is_in_large_node]
            starts = np.cumsum(sizes[~is_small]) - sizes[~is_small]
    return splits, subtrees


def _split_nodes(node_rows: Array, mass: Array, starts: Array, min_size: int) -> tuple[list[_Split], Array, Array]:
    """Split all nodes of a level, whose rows (n, m) with weights (n,) are contiguous from `starts` (nodes,).

    Returns the split of each node, whether each of its children is split further (nodes, 2), and the child of each row
    (n,): 2i for the lower child of node i and 2i + 1 for the upper one.
    """
    sizes = np.diff(starts, append=len(node_rows))
    total = np.add.reduceat(mass, starts)
    variance, axis = _largest_variance(node_rows, mass, starts, sizes, total)
    node_of_row = np.repeat(np.arange(len(starts)), sizes)
    values = node_rows[np.arange(len(node_rows)), axis[node_of_row]]
    cut = _node_medians(values, mass, node_of_row, starts, total)
    is_low = values < cut[node_of_row]
    low_mass = np.add.reduceat(np.where(is_low, mass, 0.0), starts)
    high_mass = np.add.reduceat(np.where(is_low, 0.0, mass), starts)
    splits = [
        _Split((-round_significant(v), a), c)
        for v, a, c in zip(variance.tolist(), axis.tolist(), cut.tolist(), strict=True)
    ]
    is_possible = np.minimum(low_mass, high_mass) >= min_size
    for i in np.flatnonzero(is_possible):
        splits[i].children = (-1, -1)
    is_continued = np.stack(
        [is_possible & (low_mass >= 2 * min_size), is_possible & (high_mass >= 2 * min_size)], axis=1
    )
    return splits, is_continued, 2 * node_of_row + ~is_low


def _largest_variance(node_rows: Array, mass: Array, starts: Array, sizes: Array, total: Array) -> tuple[Array, Array]:
    """Return the largest variance among the axes of each node, and the first axis that has it, (nodes,) both.

    The rows of a node are contiguous from `starts` (nodes,). `sizes` and `total` (nodes,) are their number and weight.
    """
    is_weighted = bool((mass != 1).any())
    mean = np.add.reduceat(mass[:, None] * node_rows if is_weighted else node_rows, starts, axis=0) / total[:, None]
    squares = node_rows - np.repeat(mean, sizes, axis=0)
    squares *= squares
    if is_weighted:
        squares *= mass[:, None]
    variance = np.add.reduceat(squares, starts, axis=0) / np.maximum(total - 1, np.finfo(float).tiny)[:, None]
    # Rounded, because the order of the rows changes rounding errors, which must not break ties.
    axis = np.argmax(variance >= variance.max(axis=1, keepdims=True) * (1 - _VARIANCE_TOLERANCE), axis=1)
    return variance[np.arange(len(starts)), axis], axis


def _node_medians(values: Array, mass: Array, node_of_row: Array, starts: Array, total: Array) -> Array:
    """Return the weighted median (nodes,) of the values (n,) of each node: the mean of the middle two if n is even.

    Row i represents mass[i] rows. The other arguments are as in `_split_nodes`, with the node (n,) of each row and the
    `total` weight (nodes,) of each node.
    """
    order = np.argsort(values)
    order = order[argsort_bins(node_of_row[order], len(starts))]
    weight_up_to = np.cumsum(mass[order])
    half_weight = np.concatenate([[0.0], weight_up_to])[starts] + total / 2
    # Rounding errors of the cumulative sum grow with the weight of all nodes.
    tolerance = _MEDIAN_TOLERANCE * total + 4 * np.finfo(float).eps * weight_up_to[-1]
    last_rows = np.append(starts[1:], len(values)) - 1
    lower_row = np.searchsorted(weight_up_to, half_weight - tolerance, "left")
    upper_row = np.minimum(np.searchsorted(weight_up_to, half_weight + tolerance, "right"), last_rows)
    return (values[order[lower_row]] + values[order[upper_row]]) / 2
