"""Boosting of log odds by small regression trees on binned features, which are saved as their splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import expit

from trueodds.calibrators.saved_parameters import Numbers, Saved
from trueodds.core.settings import Range
from trueodds.core.typing import Array

_LEARNING_RATE = 0.15
_MAX_LEAVES = 5
_MIN_ROWS_PER_LEAF = 20
_RIDGE = 1.0  # added to the information of a leaf
_CATEGORY_RIDGE = 11.0  # added to the information of a category when categories are sorted by their scores


class Split(Saved):
    """Rows of a leaf that are not in the left bins of a feature go to a new leaf, the next number."""

    leaf: Annotated[int, Range(0, _MAX_LEAVES)]
    feature: Annotated[int, Range(0)]  # position among the features
    left: Annotated[Array, Numbers(0, 2**31, kind=int)]  # bins that stay in the leaf


class BoostedTree(Saved):
    """A regression tree, which adds a value to the log odds of each row."""

    splits: tuple[Split, ...]
    values: Annotated[Array, Numbers(-1e3, 1e3)]  # of the leaves

    def predict(self, bins: Array) -> Array:
        """The value of each row, (n,), from the bins (features, n)."""
        leaf = np.zeros(bins.shape[1], dtype=np.int64)
        for new_leaf, split in enumerate(self.splits, start=1):
            leaf[(leaf == split.leaf) & ~_are_in(bins[split.feature], split.left)] = new_leaf
        return np.asarray(self.values[leaf])


def _are_in(bins: Array, chosen: Array) -> Array:
    """Whether each bin is among the chosen ones."""
    is_chosen = np.zeros(max(int(bins.max(initial=0)), int(chosen.max())) + 1, dtype=bool)
    is_chosen[chosen] = True
    return is_chosen[bins]


class BinnedRows(NamedTuple):
    """Rows with binned features."""

    bins: Array  # (features, n) int64
    n_bins: Array  # (features,)
    is_category: Array  # (features,) whether the bins of a feature have no order
    offset: Array  # (n,) log odds before boosting
    y: Array  # (n,)
    w: Array  # (n,)

    def select(self, rows: Array) -> BinnedRows:
        return self._replace(
            bins=np.ascontiguousarray(self.bins[:, rows]), offset=self.offset[rows], y=self.y[rows], w=self.w[rows]
        )


class _Leaf(NamedTuple):
    """A leaf that may be split: its rows, sums by bin (3, features, bins) of score, information and rows, and split."""

    rows: Array
    sums: Array
    gain: float
    feature: int
    left: Array  # bins


def fit_tree(data: BinnedRows, log_odds: Array) -> BoostedTree:
    """Fit a tree to the scores y − q: the leaf with the largest gain is split first."""
    q = expit(log_odds)
    score, information = data.w * (data.y - q), data.w * q * (1 - q)
    n_features, width = len(data.n_bins), int(data.n_bins.max())

    def sums_of(rows: Array) -> Array:
        sums = np.empty((3, n_features, width))
        score_of_row, information_of_row = score[rows], information[rows]
        for f in range(n_features):
            bins = data.bins[f, rows]
            sums[0, f] = np.bincount(bins, score_of_row, width)
            sums[1, f] = np.bincount(bins, information_of_row, width)
            sums[2, f] = np.bincount(bins, minlength=width)
        return sums

    root = np.arange(len(q))
    leaves, splits = [_best_split(data, root, sums_of(root))], []
    while len(leaves) < _MAX_LEAVES:
        i = int(np.argmax([leaf.gain for leaf in leaves]))
        leaf = leaves[i]
        if leaf.gain <= 0:
            break
        is_left = _are_in(data.bins[leaf.feature, leaf.rows], leaf.left)
        left, right = leaf.rows[is_left], leaf.rows[~is_left]
        # The sums of the smaller part are computed, those of the larger one are the difference.
        smaller = sums_of(left if len(left) <= len(right) else right)
        left_sums = smaller if len(left) <= len(right) else leaf.sums - smaller
        splits.append(Split(i, leaf.feature, leaf.left))
        leaves[i] = _best_split(data, left, left_sums)
        leaves.append(_best_split(data, right, leaf.sums - left_sums))
    totals = [leaf.sums[:2, 0].sum(axis=1) for leaf in leaves]
    values = np.array([_LEARNING_RATE * score / (information + _RIDGE) for score, information in totals])
    return BoostedTree(tuple(splits), values)


def _best_split(data: BinnedRows, rows: Array, sums: Array) -> _Leaf:
    """The leaf with its best split; a gain of 0 if there is none."""
    score, information, _ = sums
    bin_order = np.broadcast_to(np.arange(score.shape[1]), score.shape)
    order = np.argsort(
        np.where(data.is_category[:, None], score / (information + _CATEGORY_RIDGE), bin_order), axis=1, kind="stable"
    )
    left = np.cumsum(np.take_along_axis(sums, order[None], axis=2), axis=2)
    total = left[:, :, -1:]
    right = total - left
    gain = left[0] ** 2 / (left[1] + _RIDGE) + right[0] ** 2 / (right[1] + _RIDGE) - total[0] ** 2 / (total[1] + _RIDGE)
    gain[(np.minimum(left[2], right[2]) < _MIN_ROWS_PER_LEAF) | ~np.isfinite(gain)] = 0.0
    feature, position = np.unravel_index(int(gain.argmax()), gain.shape)
    bins = order[feature, : position + 1]
    return _Leaf(rows, sums, float(gain[feature, position]), int(feature), np.sort(bins[bins < data.n_bins[feature]]))


def boost(data: BinnedRows, n_trees: int) -> tuple[BoostedTree, ...]:
    """Fit this number of trees, each to the scores that the trees before it leave."""
    log_odds, trees = data.offset.copy(), []
    for _ in range(n_trees):
        trees.append(fit_tree(data, log_odds))
        log_odds += trees[-1].predict(data.bins)
    return tuple(trees)


def predict_trees(trees: Sequence[BoostedTree], bins: Array) -> Array:
    """Sum of the values of all trees, (n,)."""
    total = np.zeros(bins.shape[1])
    for tree in trees:
        total += tree.predict(bins)
    return total
