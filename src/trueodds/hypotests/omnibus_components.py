"""Component statistics of the omnibus test, from residual sums in nested cells of a score or of probability vectors.

The components are the level, the slope, and squared residual sums in the nodes of several scales. A node consists of
adjacent fine cells, and the nodes of a scale are nested in those of the coarser scales.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.core.typing import Array
from trueodds.kernels import map_items
from trueodds.kernels.partitions import nested_cells, nested_squares
from trueodds.lenses.view import View, has_vote_shares


@dataclass(frozen=True)
class Component:
    """One component statistic of a combined test."""

    name: str  # key of its result in the parts
    weight: float  # weight of its p-value in the harmonic mean
    df: int = 0  # degrees of freedom of χ²; 0 for a two-sided normal statistic
    is_centered: bool = False  # whether its mean is 0, as that of squares without their diagonal terms
    n_maximum: int = 1  # number of normal statistics of which it is the maximum


MAX_CELLS = 256  # maximum number of equal-mass cells of a binary view
MAX_TOTAL_CELLS = 2**12  # number of cells of all classes together, unless the finest scale has more nodes per class
NODE_COUNTS = (2, 4, 8, 16, 32, 64)  # numbers of nodes in which residuals are squared
# The weights of the components add up to 1. The last axis of their statistics has this order.
BINARY_COMPONENTS = (
    Component("level", 0.2),
    Component("slope", 0.2),
    Component("level and slope", 0.2, df=2),
    *(Component(f"squares in {m} nodes", 0.4 / len(NODE_COUNTS), df=m, is_centered=True) for m in NODE_COUNTS),
)

N_LINEAR = len(BINARY_COMPONENTS) - len(NODE_COUNTS)  # components that are no squares in nodes

MIN_VARIANCE = 1e-100  # replaces a variance of 0, so that statistics of impossible outcomes are large and finite
MIN_NODE_VARIANCE = 1e-12  # lower limit of the variance of a node, relative to the total variance
MIN_PROB = 1e-300  # lower limit of probabilities in logarithms


class BinaryCells:
    """Cells of a binary view with the coefficients of the component statistics.

    Attributes
    ----------
    index, size : ndarray of shape (n,), int
        Cell of each row, and the number of cells, which are ordered by score.
    variance : ndarray of shape (cells,)
        Null variance of the residual sum of each cell.
    nodes : Nodes
        The nodes of the scales of `NODE_COUNTS` that are not finer than the cells.
    linear : ndarray of shape (cells, 3)
        See `_linear_coefficients`.
    precision, diagonal_slope, diagonal_constant : ndarray
        See `_square_coefficients`.
    """

    def __init__(self, view: View) -> None:
        n_cells = min(MAX_CELLS, max(max(NODE_COUNTS), MAX_TOTAL_CELLS // max(view.classes, 1)))
        cells = EqualMass(n_cells).fit(view)
        _, self.index, self.size = _renumber_occupied(view.assign(cells), cells.size)
        self.variance = self._sum_by_cell(np.maximum(view.sums("wwv"), 0.0))
        mass = np.cumsum(self._sum_by_cell(view.w))
        self.nodes = Nodes([_node_starts(mass, m) for m in NODE_COUNTS if m <= self.size], self.size)
        self.linear = self._linear_coefficients(view)
        self.precision, self.diagonal_slope, self.diagonal_constant = self._square_coefficients(view)
        self.index = self.index.astype(np.int32)  # kept for every class; the sums above need no conversion before

    def _sum_by_cell(self, x: Array) -> Array:
        """Sum of x (n,) over the rows of each cell, (cells,)."""
        return np.bincount(self.index, x, self.size)

    def _linear_coefficients(self, view: View) -> Array:
        """Coefficients (cells, 3) of the residual sums in the level, the slope and the slope given the level.

        Each statistic has null variance 1. The level and the slope given the level, whose logits are centered, are
        uncorrelated, so the sum of their squares is Cox's score statistic.
        """
        variance = self.variance
        logit = np.log(np.maximum(view.p.astype(np.float64), MIN_PROB)) - np.log(np.maximum(view.q, MIN_PROB))
        slope = _cell_mean(self._sum_by_cell, logit, view.sums("wwv"), view.w)
        total_variance, slope_variance = variance.sum(), (slope**2 * variance).sum()
        centered = slope - (slope @ variance) / max(total_variance, MIN_VARIANCE)
        return np.stack(
            [
                np.full(self.size, 1 / np.sqrt(max(total_variance, MIN_VARIANCE))),
                slope / np.sqrt(max(slope_variance, MIN_VARIANCE)),
                centered / np.sqrt(max((centered**2 * variance).sum(), MIN_VARIANCE)),
            ],
            axis=1,
        )

    def _square_coefficients(self, view: View) -> tuple[Array, Array, Array]:
        """Coefficients of Σ (R² − Σw²(y − p)²) / V over the nodes of each scale, with residual sums R of variance V.

        Returned are the weights 1/V of the squares, by the node to which each cell belongs (scales, cells, 1). The sum
        of the diagonal terms Σw²(y − p)² / V is linear in the Σwy of the cells, with a slope (cells, scales) and a
        constant (scales,).
        """
        p, ww = view.p.astype(np.float64), view.sums("ww")
        if has_vote_shares(view):  # squared residuals do not change when their signs are flipped
            per_outcome, without_outcome = np.zeros(self.size), self._sum_by_cell(view.sums("wwr"))
        else:  # w²(y − p)² = w²(y (1 − 2p) + p²), as a line in the cell's outcomes
            mass = np.maximum(self._sum_by_cell(view.w), MIN_VARIANCE)
            per_outcome, without_outcome = self._sum_by_cell(ww * (1 - 2 * p)) / mass, self._sum_by_cell(ww * p * p)
        min_variance = MIN_NODE_VARIANCE * max(self.variance.sum(), MIN_VARIANCE)
        precision = [1 / np.maximum(x, min_variance) for x in self.nodes.sums(self.variance)]
        cell_precision = np.array([self.nodes.broadcast_to_cells(x, self.size) for x in precision])
        cell_precision = cell_precision.reshape(-1, self.size)
        return cell_precision[:, :, None], (cell_precision * per_outcome).T, cell_precision @ without_outcome

    def statistics(self, w: Array, wp: Array, wy: Array) -> Array:
        """Component statistics of each draw, (…, components); NaN for scales finer than the cells."""
        residual = wy - wp
        level, slope, centered = np.moveaxis(residual @ self.linear, -1, 0)
        statistics = np.full((*level.shape, len(BINARY_COMPONENTS)), np.nan)
        statistics[..., 0], statistics[..., 1], statistics[..., 2] = level, slope, level**2 + centered**2
        squares = self.nodes.squares(residual[..., None], self.precision)
        squares = squares - (wy @ self.diagonal_slope + self.diagonal_constant)
        statistics[..., N_LINEAR : N_LINEAR + squares.shape[-1]] = squares
        return statistics


class Nodes:
    """Nested nodes of adjacent cells, from coarse to fine; sums of all scales cost as much as the finest one.

    `starts` has one array per scale, with the first cell of each node, among `n_cells` cells.
    """

    def __init__(self, starts: Sequence[Array], n_cells: int) -> None:
        self.starts = starts
        # Whether each cell is the last one of its node, (scales, cells), from the finest scale to the coarsest.
        self.is_last = np.zeros((len(starts), n_cells), dtype=bool)
        for is_last, scale_starts in zip(self.is_last, reversed(starts), strict=True):
            is_last[np.append(scale_starts[1:], n_cells) - 1] = True
        self.first_children = [np.searchsorted(finer, coarser) for coarser, finer in pairwise(starts)]

    def node_of_cell(self, cell: Array, max_nodes: int) -> Array:
        """Node (n,) of each of these cells (n,) at the finest scale of at most `max_nodes` nodes; 0 without one."""
        scales = [scale for scale in self.starts if len(scale) <= max_nodes]
        if not scales:
            return np.zeros_like(cell)
        node_by_cell = np.searchsorted(scales[-1], np.arange(self.is_last.shape[1]), "right") - 1
        return node_by_cell[cell]

    def broadcast_to_cells(self, x: Array, n_cells: int) -> Array:
        """Repeat the values x (nodes,) of the nodes of one scale for each of their cells, (cells,)."""
        starts = next(scale for scale in self.starts if len(scale) == len(x))
        return np.repeat(x, np.diff(np.append(starts, n_cells)))

    def sums(self, x: Array) -> list[Array]:
        """Return the sums of x (cells,) over the cells of each node, for every scale."""
        if not self.starts:
            return []
        by_scale = [np.add.reduceat(x, self.starts[-1])]
        for first_children in reversed(self.first_children):
            by_scale.append(np.add.reduceat(by_scale[-1], first_children))
        return by_scale[::-1]

    def squares(self, x: Array, weights: Array) -> Array:
        """Return Σ weight · (sum of x in a node)² over the nodes and columns of x (…, cells, m), (…, scales).

        `weights` (scales, cells, m) are those of the node to which each cell belongs.
        """
        draws = x.reshape(-1, *x.shape[-2:])
        return nested_squares(draws, self.is_last, weights[::-1].copy())[:, ::-1].reshape(*x.shape[:-2], -1)


def _renumber_occupied(cell: Array, n_cells: int) -> tuple[Array, Array, int]:
    """Return the occupied cells in increasing order, the number of each row's cell among them, and their number.

    `cell` (n,) is the cell of each row among `n_cells`.
    """
    is_occupied = np.bincount(cell, minlength=n_cells) > 0
    occupied = np.flatnonzero(is_occupied)
    return occupied, (np.cumsum(is_occupied) - 1)[cell], len(occupied)


def _cell_mean(sum_by_cell: Callable[[Array], Array], x: Array, weight: Array, fallback: Array) -> Array:
    """Weighted mean of x (n,) in each cell with weights `weight` (n,), or `fallback` (n,) where these sum to 0."""
    weights, fallback_weights = sum_by_cell(weight), sum_by_cell(fallback)
    fallback_mean = sum_by_cell(x * fallback) / np.maximum(fallback_weights, MIN_VARIANCE)
    return np.where(weights > 0, sum_by_cell(x * weight) / np.where(weights > 0, weights, 1.0), fallback_mean)


def _node_starts(mass: Array, n_nodes: int) -> Array:
    """First cell of each of at most `n_nodes` nodes of equal mass, from the cumulative mass (cells,) of the cells."""
    mass_below = np.append(0.0, mass[:-1])
    middle = mass - (mass - mass_below) / 2
    return _run_starts(np.minimum((middle * n_nodes / mass[-1]).astype(np.int64), n_nodes - 1))


def _run_starts(values: Array) -> Array:
    """Position of the first of each run of equal values."""
    starts: Array = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return starts


MAX_LEAF_OUTCOMES = 2**14  # maximum number of leaves times classes
MIN_CLASS_SHARE = 1e-3  # lower limit of the variance share of a class among K, times K
# Weights in the harmonic mean of the p-values of squared residuals, by number of nodes.
VECTOR_NODE_WEIGHTS = {4: 0.1, 8: 0.1, 16: 0.15, 64: 0.07, 256: 0.03}


def vector_components(n_classes: int) -> tuple[Component, ...]:
    """The component statistics for probability vectors of `n_classes` classes, in the order of the last axis."""
    return (
        Component("temperature", 0.2),
        Component("largest level", 0.08, n_maximum=n_classes),
        Component("levels", 0.12, df=n_classes - 1),
        Component("largest slope", 0.05, n_maximum=n_classes),
        Component("slopes", 0.1, df=n_classes),
        *(
            Component(f"squares in {m} nodes", weight, df=m * (n_classes - 1), is_centered=True)
            for m, weight in VECTOR_NODE_WEIGHTS.items()
        ),
    )


class VectorLeaves:
    """Leaves of a tree over probability vectors with the coefficients of the component statistics.

    Attributes
    ----------
    index, size : ndarray of shape (n,), int
        Leaf of each row, and the number of leaves.
    logs : ndarray of shape (leaves · K,)
        Coefficients of the residual sums in the temperature direction: mean log p of the leaf.
    level : ndarray of shape (K,)
        Coefficients in the level of each class.
    slope : ndarray of shape (leaves, K)
        Coefficients in the slope of each class: centered mean log odds of the leaf.
    class_weights : ndarray of shape (K,)
        Weights of the squares of each class.
    per_outcome, without_outcome : ndarray of shape (leaves · K,), float
        The diagonal terms of the squares add up to `without_outcome` + Σwy · `per_outcome`.
    nodes, node_weights : Nodes, ndarray of shape (scales, leaves, K)
        The nodes of all scales, and the weights of their squares by leaf.
    """

    def __init__(self, view: View) -> None:
        k = view.p.shape[1]
        depth = int(np.log2(max(MAX_LEAF_OUTCOMES // k, 4)))
        P = view.p.astype(np.float64, copy=False)
        occupied, self.index, self.size = _renumber_occupied(nested_cells(P, depth), 2**depth)
        w, ww = view.w, view.w**2 if view.is_rows else view.sums("ww")
        mass = np.maximum(np.bincount(self.index, w, self.size), MIN_VARIANCE)
        variance, logs, slope, per_outcome, without_outcome = (
            np.stack(sums, axis=1)
            for sums in zip(*map_items(lambda c: self._sums_of_class(P[:, c], w, ww, mass), range(k)), strict=True)
        )
        total = np.maximum(variance.sum(axis=0), MIN_VARIANCE)
        self.logs = logs.ravel()
        slope -= (slope * variance).sum(axis=0) / total
        self.slope = slope / np.sqrt(np.maximum((slope**2 * variance).sum(axis=0), MIN_VARIANCE))
        self.level = 1 / np.sqrt(total)
        self.class_weights = 1 / np.maximum(total / total.sum(), MIN_CLASS_SHARE / k)
        if has_vote_shares(view):
            self.per_outcome = np.zeros(self.size * k)
            self.without_outcome = float((ww[:, None] * (view.y - P) ** 2 @ self.class_weights).sum())
        else:
            self.per_outcome = (per_outcome / mass[:, None] * self.class_weights).ravel()
            self.without_outcome = float((without_outcome * self.class_weights).sum())
        starts = []
        for m in VECTOR_NODE_WEIGHTS:
            if m > 2**depth // 2 or m > self.size:
                break
            starts.append(_run_starts(occupied // (2**depth // m)))
        self.nodes = Nodes(starts, self.size)
        self.node_weights = np.broadcast_to(self.class_weights, (len(starts), self.size, k))
        self.index = self.index.astype(np.int32)

    def _sums_of_class(self, p: Array, w: Array, ww: Array, mass: Array) -> tuple[Array, ...]:
        """Sums by leaf (leaves,) for the probabilities p (n,) of one class, whose leaves have the weight `mass`.

        They are the variance, the mean logarithm, the mean log odds, and the slope and the constant of the squared
        residuals as a line in the outcomes.
        """
        p = np.ascontiguousarray(p)
        v = p * (1 - p)
        logs = np.log(np.maximum(p, MIN_PROB))
        log_odds = logs - np.log(np.maximum(1 - p, MIN_PROB))

        def sum_by_leaf(x: Array) -> Array:
            """Sum of x (n,) over the rows of each leaf, (leaves,)."""
            return np.bincount(self.index, x, self.size)

        variance = sum_by_leaf(ww * v)

        def mean_by_leaf(x: Array) -> Array:
            """Mean of x (n,) in each leaf, weighted by the variance, or by w where that is 0; (leaves,)."""
            by_variance = sum_by_leaf(ww * v * x) / np.where(variance > 0, variance, 1.0)
            return np.where(variance > 0, by_variance, sum_by_leaf(w * x) / mass)

        return (
            variance,
            mean_by_leaf(logs),
            mean_by_leaf(log_odds),
            sum_by_leaf(ww * (1 - 2 * p)),
            sum_by_leaf(ww * p * p),
        )

    def statistics(self, w: Array, wp: Array, wy: Array) -> Array:
        """Component statistics of each draw, (…, components); NaN for scales finer than the leaves."""
        residual = wy - wp
        level = residual.sum(axis=-2) * self.level
        slope = np.einsum("...lk,lk->...k", residual, self.slope)
        linear_and_quadratic = [
            residual.reshape((*residual.shape[:-2], -1)) @ self.logs,
            np.abs(level).max(axis=-1),
            (level**2).sum(axis=-1),
            np.abs(slope).max(axis=-1),
            (slope**2).sum(axis=-1),
        ]
        diagonal = wy.reshape((*wy.shape[:-2], -1)) @ self.per_outcome + self.without_outcome
        squares = self.nodes.squares(residual, self.node_weights) - diagonal[..., None]
        m = len(linear_and_quadratic)
        statistics = np.full((*level.shape[:-1], m + len(VECTOR_NODE_WEIGHTS)), np.nan)
        statistics[..., :m] = np.stack(linear_and_quadratic, axis=-1)
        statistics[..., m : m + squares.shape[-1]] = squares
        return statistics
