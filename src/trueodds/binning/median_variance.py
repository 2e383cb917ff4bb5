"""Median-variance trees: splits at medians partition scores, the simplex, or the rows of each predicted class."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.arithmetic import round_significant
from trueodds.core.errors import InputError
from trueodds.core.settings import Count
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks
from trueodds.kernels.bins import FittedPartition
from trueodds.kernels.partitions import LEAF, NO_SPLIT, median_splits
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View

DEFAULT_LEAVES = 16
SMALLEST_LEAF = 10  # rows of a leaf, unless `min_size` is set
SMALLEST_SHARE = 0.6  # rows of a leaf relative to equal leaves; above a half, because halves of a leaf are none
MAX_BLOCK_ROWS = 2**15  # rows whose leaves are found at a time, in the cache


@dataclass(frozen=True)
class MedianVariance(Partition):
    """Tree on the simplex that splits the axis of largest variance at its median.

    By default the tree has 16 leaves of about n / 16 rows. With `bins` it has that number of leaves, of about n / B or
    2n / B rows, where B is the next power of two. No leaf has fewer than 10 rows or three fifths of n / B, so few rows
    or many equal predictions can leave fewer leaves. With `min_size` alone, every leaf has at least that number of
    rows, and the number of leaves grows with n. With both, there are at most `bins` such leaves.

    With weights, the rows that they represent are counted: the sum of the weights if all of them are whole numbers, and
    otherwise of the weights divided by their mean. A leaf of rows with large weights can therefore have fewer rows.

    Leaves of largest variance are split first. Rows equal to the median go to the upper child. Source: Vaicenavicius et
    al. (2019), in the form of Widmann et al. (2019), which is ``min_size=10``.

    >>> str(MedianVariance()), str(MedianVariance(min_size=10)), str(MedianVariance(min_size=10, bins=5))
    ('median-variance 16', 'median-variance min 10', 'median-variance 5 min 10')
    """

    min_size: Count | None = None  # rows; None: at least 10, and not much fewer than in equal leaves
    bins: Count | None = None  # leaves; None: 16, or any number with `min_size`

    def fit(self, view: View) -> FittedPartition:
        n_rows = n_represented(view)
        tree: Tree = grow_tree(
            view.partition_values if view.joint else view.partition_values[:, None],
            view.w * (n_rows / view.total),
            self._smallest_leaf(n_rows),
            self._max_leaves,
        )
        return tree

    def __str__(self) -> str:
        leaves = "" if self._max_leaves is None else f" {self._max_leaves}"
        return f"median-variance{leaves}" + ("" if self.min_size is None else f" min {self.min_size}")

    @property
    def _max_leaves(self) -> int | None:
        return DEFAULT_LEAVES if self.bins is None and self.min_size is None else self.bins

    def _smallest_leaf(self, n_rows: float) -> int:
        """Return the minimum number of rows of a leaf, for a number of rows in all."""
        if self.min_size is not None:
            return self.min_size
        return smallest_equal_leaf(n_rows, self.bins or DEFAULT_LEAVES)


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
            rows = np.arange(stop - start)
            while len(rows):
                at_node = node[rows]
                node[rows] = at_node = children[(block[rows, axis[at_node]] >= cut[at_node]).astype(np.intp), at_node]
                rows = rows[axis[at_node] >= 0]
            return leaf_number[node]

        return np.concatenate([np.empty(0, dtype=np.intp), *map_blocks(find_leaves, len(x), MAX_BLOCK_ROWS)])


def smallest_equal_leaf(n_rows: float, n_leaves: int) -> int:
    """Return the minimum number of rows of a leaf, so that a tree of this many leaves has about equal ones."""
    n_equal_leaves = 2 ** math.ceil(math.log2(n_leaves))
    return max(SMALLEST_LEAF, math.ceil(SMALLEST_SHARE * round_significant(n_rows / n_equal_leaves)))


def grow_tree(x: Array, w: Array, min_size: int, max_bins: int | None = None) -> Tree:
    """Grow the tree: split at the median of the axis of largest variance while both children hold `min_size` rows.

    `x` is (n, m), and `w` is the number of rows that each represents. Rows below the median go to the lower child, ties
    to the upper one.
    """
    tree = Tree()
    if w.sum() < 2 * min_size:  # so that few rows compile no kernel
        return tree
    splits = median_splits(x, w, min_size)
    ranks = [
        (-round_significant(v), axis) for v, axis in zip(splits.variance.tolist(), splits.axis.tolist(), strict=True)
    ]
    cuts, children = splits.cut.tolist(), splits.children.tolist()
    # Leaves that may be split, the one of largest variance first: rank, number of the node and of its split. Nodes are
    # numbered as they are created, so that of equal variance and axis the older one is split first.
    heap = [(*ranks[0], 0, 0)]
    n_leaves = 1
    while heap and (max_bins is None or n_leaves < max_bins):
        _, axis, node, split = heapq.heappop(heap)
        if children[split][0] == NO_SPLIT:
            continue
        n_leaves += 1
        for child, child_split in zip(tree.split(node, axis, cuts[split]), children[split], strict=True):
            if child_split != LEAF:
                heapq.heappush(heap, (*ranks[child_split], child, child_split))
    return tree


_OTHERS = -1  # the class that stands for all that are predicted in few rows
SMALLEST_CLASS = 1 / 32  # share of the rows from which on a class has its own cells: half an equal leaf
_DECIMALS = 6  # of a number of rows, so that rounding errors of weights do not decide


@dataclass(frozen=True)
class PredictedClass(Partition):
    """Cells of rows with the same predicted class, split by trees into leaves of about n / 16 rows.

    Within the rows of one predicted class, errors of its probability do not cancel, as they do in the leaves of
    `MedianVariance`, which contain rows of several predicted classes. Classes that are predicted in less than a 32nd of
    the rows, or in fewer than 10, are combined. If no class is predicted more often, as for a hundred classes of equal
    frequency, the cells are the leaves of one tree, as there are too few rows of each class.

    With weights, the rows that they represent are counted, as by `MedianVariance`.

    >>> view = View([[0.6, 0.3, 0.1]] * 10 + [[0.2, 0.2, 0.6]] * 20, [[0, 1, 0]] * 30)
    >>> fitted = PredictedClass().fit(view)
    >>> fitted.size, np.bincount(fitted.index(view.p)).tolist()
    (2, [10, 20])
    """

    def fit(self, view: View) -> PredictedClassCells:
        """Group the rows by predicted class, and grow a tree for each group.

        Raises InputError TO205 for one score per row.
        """
        if not view.joint:
            fix = f"Use a lens such as 'canonical', or ⟨partition='equal-mass'⟩ for the lens {view.name}."
            raise InputError(
                "TO205", "Cells by predicted class need a vector per row.", "partition predicted-class", fix
            )
        n_rows = n_represented(view)
        x, w = view.partition_values, view.w * (n_rows / view.total)
        predicted = x.argmax(axis=1)
        n_by_class = np.round(np.bincount(predicted, w, minlength=x.shape[1]), _DECIMALS)
        smallest_class = max(SMALLEST_LEAF, round(SMALLEST_CLASS * n_rows, _DECIMALS))
        own_classes = np.flatnonzero(n_by_class >= smallest_class).tolist()
        trees = {c: _grow_equal_tree(x, w, predicted == c, n_rows) for c in own_classes}
        is_other = (n_by_class < smallest_class)[predicted]
        if is_other.any():
            trees[_OTHERS] = _grow_equal_tree(x, w, is_other, n_rows)
        return PredictedClassCells(trees)

    def __str__(self) -> str:
        return "predicted-class"


class PredictedClassCells:
    """The fitted cells: the leaves of a tree for each class with enough rows, and of one for all other classes."""

    def __init__(self, trees: Mapping[int, Tree]) -> None:
        self._trees = trees
        *first_cells, self.size = accumulate((tree.size for tree in trees.values()), initial=0)
        self._first_cells = dict(zip(trees, first_cells, strict=True))

    def index(self, values: Array) -> Array:
        """Return the cell of each vector (n, m); without other classes, a class that is new goes to the first cell."""
        first_cell = np.full(values.shape[1], self._first_cells.get(_OTHERS, 0))
        own_classes = [c for c in self._trees if c != _OTHERS]
        if not own_classes:
            return self._trees[_OTHERS].index(values)
        first_cell[own_classes] = [self._first_cells[c] for c in own_classes]
        predicted = values.argmax(axis=1)
        cell = first_cell[predicted]
        for c, tree in self._trees.items():
            if tree.size > 1:
                rows = ~np.isin(predicted, own_classes) if c == _OTHERS else predicted == c
                cell[rows] += tree.index(values[rows])
        return cell


def _grow_equal_tree(x: Array, w: Array, rows: Array, n_rows: float) -> Tree:
    """Grow a tree on some of the rows, with as many leaves as their share of 16 leaves is, but at least one."""
    n = float(w[rows].sum())
    n_leaves = max(1, math.floor(round(DEFAULT_LEAVES * n / n_rows, _DECIMALS) + 0.5))
    own_x, own_w = (x, w) if rows.all() else (x[rows], w[rows])
    return grow_tree(own_x, own_w, smallest_equal_leaf(n, n_leaves), n_leaves)
