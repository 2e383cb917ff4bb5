"""Median-variance tree: cells of the simplex found by splitting at medians."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.core.settings import Count
from trueodds.core.typing import Array
from trueodds.kernels.bins import FittedPartition
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MedianVariance(Partition):
    """Tree on the simplex that splits the axis of largest variance at its median.

    Every cell has at least `min_size` rows.

    Cells of largest variance are split first, which matters with `max_bins`. Rows equal to the median go to the upper
    child. Source: Vaicenavicius et al. (2019), in the form of Widmann et al. (2019).
    """

    min_size: Count = 10
    max_bins: Count | None = None

    def freeze(self, view: View) -> FittedPartition:
        """The tree fitted to these predictions. A binary view is split along its single score."""
        weights = view.w * (view.counted / view.total)
        tree: Tree = grow_tree(view.at if view.joint else view.at[:, None], weights, self.min_size, self.max_bins)
        return tree

    def __str__(self) -> str:
        return f"median-variance min {self.min_size}" + (f" max {self.max_bins}" if self.max_bins else "")


class Tree:
    """A fitted tree, which assigns any vector to one of its `size` leaves."""

    def __init__(self) -> None:
        self.axis: list[int] = [-1]  # -1 at a leaf
        self.cut: list[float] = [0.0]
        self.low: list[int] = [0]
        self.high: list[int] = [0]

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

    def index(self, at: Array) -> Array:
        """Return the leaf of each vector, numbered from 0 in the order of creation."""
        x = at if at.ndim == 2 else at[:, None]
        leaf_number = np.cumsum(np.array(self.axis) < 0) - 1
        place = np.zeros(len(x), dtype=np.intp)
        todo: list[tuple[int, Array]] = [(0, np.arange(len(x)))]
        while todo:
            node, rows = todo.pop()
            if self.axis[node] < 0:
                place[rows] = leaf_number[node]
                continue
            is_low = x[rows, self.axis[node]] < np.float64(self.cut[node])
            todo.append((self.low[node], rows[is_low]))
            todo.append((self.high[node], rows[~is_low]))
        return place


def grow_tree(x: Array, w: Array, min_size: int, max_bins: int | None = None) -> Tree:
    """Grow the tree: split at the median of the axis of largest variance while both children hold `min_size` rows.

    `x` is (n, m), and `w` is the number of rows that each represents. Rows below the median go to the lower child, ties
    to the upper one.
    """
    tree = Tree()
    rows = np.arange(len(x))
    if w.sum() < 2 * min_size:
        return tree
    tick = 0  # nodes of equal variance are split in the order of creation
    heap = [(*_widest(x, w, rows), tick, 0, rows)]
    while heap and (max_bins is None or tree.size < max_bins):
        _, axis, _, node, rows = heapq.heappop(heap)
        cut = _median(x[rows, axis], w[rows])
        is_low = x[rows, axis] < np.float64(cut)  # a Python float would be rounded to the float32 of x
        halves = rows[is_low], rows[~is_low]
        if min(w[half].sum() for half in halves) < min_size:
            continue
        for child, half in zip(tree.split(node, axis, cut), halves, strict=True):
            if w[half].sum() >= 2 * min_size:
                tick += 1
                heapq.heappush(heap, (*_widest(x, w, half), tick, child, half))
    return tree


def nested_cells(x: Array, depth: int) -> Array:
    """Cell of each vector (n, m) among 2^depth nested cells, split at the mean of the axis of largest variance.

    A mean lies between clusters of vectors, while a median may split a cluster. The leading bits of a cell number are
    those of its parent cell, so one number per vector gives the cells at every depth. `grow_tree` stops at a minimum
    number of rows instead. Equal vectors share a cell.

    >>> nested_cells(np.array([[0.1], [0.2], [0.8], [0.9]]), 2)
    array([0, 1, 2, 3])
    """
    place = np.zeros(len(x), dtype=np.int64)
    todo = [(np.arange(len(x)), 0, depth)]
    while todo:
        rows, prefix, left = todo.pop()
        if left == 0 or len(rows) < 2:
            place[rows] = prefix << left
            continue
        part = x[rows]
        axis = int(np.argmax(np.round(part.var(axis=0), 12)))
        column = part[:, axis]
        low = column < round(float(column.mean()), 12)  # rounded, so that rounding errors of sums have no effect
        if low.all() or not low.any():  # no vector differs on any axis
            place[rows] = prefix << left
            continue
        todo.append((rows[low], 2 * prefix, left - 1))
        todo.append((rows[~low], 2 * prefix + 1, left - 1))
    return place


def _widest(x: Array, w: Array, rows: Array) -> tuple[float, int]:
    """Negative of the largest variance among the axes, and that axis (the first in case of ties)."""
    part, mass = x[rows].astype(np.float64, copy=False), w[rows]
    total = mass.sum()
    mean = mass @ part / total
    variance = mass @ (part - mean) ** 2 / max(total - 1, np.finfo(float).tiny)
    # Rounded, because the order of the rows changes rounding errors, which must not break ties.
    axis = int(np.argmax(variance >= np.max(variance) * (1 - 1e-9)))
    return -float(f"{variance[axis]:.9g}"), axis


def _median(x: Array, w: Array) -> float:
    """Weighted median, where each row represents `w` rows. For even counts it is the mean of the two middle rows."""
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(w[order])
    half = mass[-1] / 2
    tolerance = 1e-12 * mass[-1]
    below = x[order[np.searchsorted(mass, half - tolerance, "left")]]
    above = x[order[min(np.searchsorted(mass, half + tolerance, "right"), len(x) - 1)]]
    return (float(below) + float(above)) / 2
