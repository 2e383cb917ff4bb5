"""Partition of probability vectors by the predicted class, further split by trees if there are few classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from trueodds.binning.median_variance import DEFAULT_LEAVES, SMALLEST_LEAF, Tree, grow_tree, smallest_equal_leaf
from trueodds.binning.partition import Partition
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View

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
