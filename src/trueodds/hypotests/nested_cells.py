"""Component statistics of the omnibus test from residual sums in nested cells of a score or of probability vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.median_variance import nested_cells
from trueodds.core.typing import Array
from trueodds.kernels import map_items
from trueodds.kernels.nested_sums import nested_squares
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Component:
    """One component statistic of a combined test."""

    name: str
    weight: float
    degrees: int = 0  # degrees of freedom of χ²; 0 for a two-sided normal statistic
    squares: bool = False  # whether it is centered, as squares without their diagonal terms are
    among: int = 1  # number of normal statistics of which it is the maximum


CELLS = 256  # maximum number of equal-mass cells
ELEMENTS = 2**12  # total number of cells of all classes, with at least as many per class as the finest scale has nodes
NODE_COUNTS = (2, 4, 8, 16, 32, 64)  # numbers of nodes in which residuals are squared
BINARY_COMPONENTS = (
    Component("level", 0.2),
    Component("slope", 0.2),
    Component("level and slope", 0.2, degrees=2),
    *(Component(f"squares in {m} nodes", 0.4 / len(NODE_COUNTS), degrees=m, squares=True) for m in NODE_COUNTS),
)

TINY = 1e-100  # replaces a variance of 0, so that statistics of impossible outcomes are large and finite
MIN_PROB = 1e-300  # lower limit of probabilities in logarithms


class BinaryCells:
    """Cells of a binary view with the coefficients of the component statistics."""

    def __init__(self, view: View) -> None:
        cells = EqualMass(min(CELLS, max(max(NODE_COUNTS), ELEMENTS // max(view.classes, 1)))).fit(view)
        _, self.index, self.size = _renumber_occupied(cells.index(view.partition_values), cells.size)
        p = view.p.astype(np.float64)

        def summed(x: Array) -> Array:
            return np.bincount(self.index, x, self.size)

        self.variance = summed(np.maximum(view.sums("wwv"), 0.0))
        logit = np.log(np.maximum(p, MIN_PROB)) - np.log(np.maximum(view.q, MIN_PROB))
        self.slope = _cell_mean(summed, logit, view.sums("wwv"), view.w)
        total = max(self.variance.sum(), TINY)
        ww = view.sums("ww")
        if has_vote_shares(view):  # squared residuals do not change when their signs are flipped
            per_outcome, without_outcome = np.zeros(self.size), summed(view.sums("wwr"))
        else:  # w²(y − p)² = w²(y (1 − 2p) + p²), as a line in the cell's outcomes
            per_outcome = summed(ww * (1 - 2 * p)) / np.maximum(summed(view.w), TINY)
            without_outcome = summed(ww * p * p)
        mass = np.cumsum(summed(view.w))
        self.nodes = Nodes([_starts(mass, m) for m in NODE_COUNTS if m <= self.size], self.size)
        precision = [1 / np.maximum(x, 1e-12 * total) for x in self.nodes.sums(self.variance)]
        of_cell = np.array([self.nodes.broadcast_to_cells(x, self.size) for x in precision]).reshape(-1, self.size)
        self.precision = of_cell[:, :, None]
        self.diagonal, self.diagonal_without = (of_cell * per_outcome).T, of_cell @ without_outcome
        total_variance, slopes = self.variance.sum(), (self.slope**2 * self.variance).sum()
        centered = self.slope - (self.slope @ self.variance) / total
        self.linear = np.stack(
            [
                np.full(self.size, 1 / np.sqrt(max(total_variance, TINY))),
                self.slope / np.sqrt(max(slopes, TINY)),
                centered / np.sqrt(max((centered**2 * self.variance).sum(), TINY)),
            ],
            axis=1,
        )

    def statistics(self, w: Array, wp: Array, wy: Array) -> Array:
        """Component statistics of each draw, (…, components); NaN for scales finer than the cells."""
        residual = wy - wp
        level, slope, centered = np.moveaxis(residual @ self.linear, -1, 0)
        out = np.full((*level.shape, len(BINARY_COMPONENTS)), np.nan)
        out[..., 0], out[..., 1], out[..., 2] = level, slope, level**2 + centered**2
        squares = self.nodes.squares(residual[..., None], self.precision)
        out[..., 3 : 3 + squares.shape[-1]] = squares - (wy @ self.diagonal + self.diagonal_without)
        return out


class Nodes:
    """Nested nodes of adjacent cells, from coarse to fine; sums of all scales cost as much as the finest one.

    `starts` are the first cells of the nodes of each scale, among this number of cells.
    """

    def __init__(self, starts: Sequence[Array], cells: int) -> None:
        self.starts = starts
        self.is_last = np.zeros((len(starts), cells), dtype=bool)
        for marks, first in zip(self.is_last, reversed(starts), strict=True):
            marks[np.append(first[1:], cells) - 1] = True
        self.within = [np.searchsorted(fine, coarse) for coarse, fine in pairwise(starts)]

    def of(self, cell: Array, max_nodes: int) -> Array:
        """Node of each cell at the finest scale with at most `max_nodes` nodes; 0 if there is none."""
        scales = [scale for scale in self.starts if len(scale) <= max_nodes]
        return np.searchsorted(scales[-1], cell, "right") - 1 if scales else np.zeros_like(cell)

    def broadcast_to_cells(self, x: Array, cells: int) -> Array:
        """Values of the nodes of one scale, repeated for their cells."""
        starts = next(scale for scale in self.starts if len(scale) == len(x))
        return np.repeat(x, np.diff(starts, append=cells))

    def sums(self, x: Array) -> list[Array]:
        """Return the sums of x (cells,) over the cells of each node, for every scale."""
        if not self.starts:
            return []
        by_scale = [np.add.reduceat(x, self.starts[-1])]
        for within in reversed(self.within):
            by_scale.append(np.add.reduceat(by_scale[-1], within))
        return by_scale[::-1]

    def squares(self, x: Array, weights: Array) -> Array:
        """Return Σ weight · (sum of x in a node)² over the nodes of each scale, for x (…, cells, m), (…, scales).

        `weights` (scales, cells, m) are those of the node to which each cell belongs.
        """
        draws = x.reshape(-1, *x.shape[-2:])
        return nested_squares(draws, self.is_last, weights[::-1].copy())[:, ::-1].reshape(*x.shape[:-2], -1)


def _renumber_occupied(cell: Array, n_cells: int) -> tuple[Array, Array, int]:
    """Return the occupied cells in increasing order, the number of each row's cell among them, and their number."""
    is_occupied = np.bincount(cell, minlength=n_cells) > 0
    occupied = np.flatnonzero(is_occupied)
    return occupied, (np.cumsum(is_occupied) - 1)[cell], len(occupied)


def has_vote_shares(view: View) -> bool:
    """Whether the outcomes are shares of votes."""
    return view.is_rows and bool(((view.y > 0) & (view.y < 1)).any())


def _cell_mean(summed: Any, x: Array, weight: Array, fallback: Array) -> Array:
    """Weighted mean of x in each cell; `fallback` weights are used in cells of total weight 0."""
    weights, others = summed(weight), summed(fallback)
    plain = summed(x * fallback) / np.maximum(others, TINY)
    return np.where(weights > 0, summed(x * weight) / np.where(weights > 0, weights, 1.0), plain)


def _starts(mass: Array, nodes: int) -> Array:
    """First cell of each of `nodes` nodes of equal mass, from the cumulative mass of the cells."""
    middle = mass - np.diff(mass, prepend=0.0) / 2
    node = np.minimum((middle * nodes / mass[-1]).astype(np.int64), nodes - 1)
    starts: Array = np.flatnonzero(np.diff(node, prepend=-1))
    return starts


VECTOR_ELEMENTS = 2**14  # maximum number of leaves times classes
VECTOR_SCALES = {4: 0.1, 8: 0.1, 16: 0.15, 64: 0.07, 256: 0.03}  # weights of squared residuals by number of nodes


def vector_components(classes: int) -> tuple[Component, ...]:
    """Component statistics for vectors of `classes` classes."""
    return (
        Component("temperature", 0.2),
        Component("largest level", 0.08, among=classes),
        Component("levels", 0.12, degrees=classes - 1),
        Component("largest slope", 0.05, among=classes),
        Component("slopes", 0.1, degrees=classes),
        *(
            Component(f"squares in {m} nodes", weight, degrees=m * (classes - 1), squares=True)
            for m, weight in VECTOR_SCALES.items()
        ),
    )


class VectorLeaves:
    """Leaves of a tree over probability vectors with the coefficients of the component statistics."""

    def __init__(self, view: View) -> None:
        k = view.p.shape[1]
        depth = int(np.log2(max(VECTOR_ELEMENTS // k, 4)))
        P = view.p.astype(np.float64)
        place = nested_cells(P, depth)
        occupied, self.index, self.size = _renumber_occupied(place, 2**depth)
        w, ww = view.w, view.w**2 if view.is_rows else view.sums("ww")
        mass = np.maximum(np.bincount(self.index, w, self.size), TINY)

        def summed(x: Array) -> Array:
            return np.bincount(self.index, x, self.size)

        def sums_of_class(c: int) -> tuple[Array, ...]:
            """By leaf: variance, mean logarithm, mean log odds, and squared residuals per outcome and without."""
            p = np.ascontiguousarray(P[:, c])
            v = p * (1 - p)
            logs = np.log(np.maximum(p, MIN_PROB))
            odds = logs - np.log(np.maximum(1 - p, MIN_PROB))
            variance = summed(ww * v)

            def mean(x: Array) -> Array:
                by_variance = summed(ww * v * x) / np.where(variance > 0, variance, 1.0)
                return np.where(variance > 0, by_variance, summed(w * x) / mass)

            return variance, mean(logs), mean(odds), summed(ww * (1 - 2 * p)), summed(ww * p * p)

        variance, logs, slope, per_outcome, without_outcome = (
            np.stack(sums, axis=1) for sums in zip(*map_items(sums_of_class, range(k)), strict=True)
        )
        total = np.maximum(variance.sum(axis=0), TINY)
        self.logs = logs.ravel()
        slope -= (slope * variance).sum(axis=0) / total
        self.slope = slope / np.sqrt(np.maximum((slope**2 * variance).sum(axis=0), TINY))
        self.level = 1 / np.sqrt(total)
        self.scale = 1 / np.maximum(total / total.sum(), 1e-3 / k)  # of squares, by class
        if has_vote_shares(view):
            self.per_outcome = np.zeros(self.size * k)
            self.without_outcome = float((ww[:, None] * (view.y - P) ** 2 @ self.scale).sum())
        else:
            self.per_outcome = (per_outcome / mass[:, None] * self.scale).ravel()
            self.without_outcome = float((without_outcome * self.scale).sum())
        starts = []
        for m in VECTOR_SCALES:
            if m > 2**depth // 2 or m > self.size:
                break
            starts.append(np.flatnonzero(np.diff(occupied // (2**depth // m), prepend=-1)))
        self.nodes = Nodes(starts, self.size)
        self.node_weights = np.broadcast_to(self.scale, (len(starts), self.size, k))

    def statistics(self, w: Array, wp: Array, wy: Array) -> Array:
        """Component statistics of each draw, (…, components); NaN for scales finer than the leaves."""
        residual = wy - wp
        flat = (*residual.shape[:-2], -1)
        level = residual.sum(axis=-2) * self.level
        slope = np.einsum("...lk,lk->...k", residual, self.slope)
        values = [
            residual.reshape(flat) @ self.logs,
            np.abs(level).max(axis=-1),
            (level**2).sum(axis=-1),
            np.abs(slope).max(axis=-1),
            (slope**2).sum(axis=-1),
        ]
        single = wy.reshape((*wy.shape[:-2], -1)) @ self.per_outcome + self.without_outcome
        squares = self.nodes.squares(residual, self.node_weights)
        out = np.full((*values[0].shape, 5 + len(VECTOR_SCALES)), np.nan)
        out[..., : len(values)] = np.stack(values, axis=-1)
        out[..., len(values) : len(values) + squares.shape[-1]] = squares - single[..., None]
        return out
