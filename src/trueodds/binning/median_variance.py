"""Median-variance tree: a partition of scores or of the probability simplex by splits at medians."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.ordering import round_significant
from trueodds.core.settings import Count
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.bins import FittedPartition
from trueodds.kernels.variance_splits import LEAF, NO_SPLIT, median_splits
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View

MAX_BLOCK_ROWS = 2**15  # rows whose leaves are found at a time, in the cache


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
        weights = view.w * (n_represented(view) / view.total)
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
        return sum(axis < 0 for axis in self.axis)

    def index(self, values: Array) -> Array:
        """Return the leaf of each vector (n, m) or score (n,), numbered from 0 in the order of creation."""
        x = values if values.ndim == 2 else values[:, None]
        axis, cut, children = np.array(self.axis), np.array(self.cut), np.array([self.low, self.high])
        leaf_number = np.cumsum(axis < 0) - 1

        def find_leaves(start: int, stop: int) -> Array:
            block, node = x[start:stop], np.zeros(stop - start, dtype=np.intp)
            rows = np.arange(stop - start) if axis[0] >= 0 else np.empty(0, dtype=np.intp)
            while len(rows):
                at_node = node[rows]
                node[rows] = at_node = children[(block[rows, axis[at_node]] >= cut[at_node]).astype(np.intp), at_node]
                rows = rows[axis[at_node] >= 0]
            return leaf_number[node]

        return np.concatenate([np.empty(0, dtype=np.intp), *map_blocks(find_leaves, len(x), MAX_BLOCK_ROWS)])


def grow_tree(x: Array, w: Array, min_size: int, max_bins: int | None = None) -> Tree:
    """Grow the tree: split at the median of the axis of largest variance while both children hold `min_size` rows.

    `x` is (n, m), and `w` is the number of rows that each represents. Rows below the median go to the lower child, ties
    to the upper one.
    """
    tree = Tree()
    if w.sum() < 2 * min_size:
        return tree
    splits = median_splits(x, w, min_size)
    ranks = [
        (-round_significant(v), axis) for v, axis in zip(splits.variance.tolist(), splits.axis.tolist(), strict=True)
    ]
    cuts, children = splits.cut.tolist(), splits.children.tolist()
    creation_order = 0  # nodes of equal variance and axis are split in the order of creation
    # Leaves that may be split, the one of largest variance first: rank, order, number of the node and of its split.
    heap = [(*ranks[0], creation_order, 0, 0)]
    n_leaves = 1
    while heap and (max_bins is None or n_leaves < max_bins):
        _, axis, _, node, split = heapq.heappop(heap)
        if children[split][0] == NO_SPLIT:
            continue
        n_leaves += 1
        for child, child_split in zip(tree.split(node, axis, cuts[split]), children[split], strict=True):
            if child_split != LEAF:
                creation_order += 1
                heapq.heappush(heap, (*ranks[child_split], creation_order, child, child_split))
    return tree
