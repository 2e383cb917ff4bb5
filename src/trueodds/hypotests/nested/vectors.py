"""Temperature, level, slopes and local errors of probability vectors, read from residual sums in the leaves of a tree."""

from __future__ import annotations

import numpy as np

from trueodds.binning.tree import nested_cells
from trueodds.core.typing import Array
from trueodds.hypotests.nested.binary import MIN_PROB, TINY, Nodes, are_shares
from trueodds.hypotests.nested.component_pvalues import Component
from trueodds.lenses.view import View

ELEMENTS = 2**14  # leaves times classes that a draw fills at most
SCALES = {
    4: 0.1,
    8: 0.1,
    16: 0.15,
    64: 0.07,
    256: 0.03,
}  # numbers of nodes in which residuals are squared, with weights


def vector_components(classes: int) -> tuple[Component, ...]:
    """The statistics of vectors of so many classes."""
    return (
        Component("temperature", 0.2),
        Component("largest level", 0.08, among=classes),
        Component("levels", 0.12, degrees=classes - 1),
        Component("largest slope", 0.05, among=classes),
        Component("slopes", 0.1, degrees=classes),
        *(
            Component(f"squares in {m} nodes", weight, degrees=m * (classes - 1), squares=True)
            for m, weight in SCALES.items()
        ),
    )


class VectorLeaves:
    """The leaves of a tree over the vectors, and what the statistics need of them besides the residual sums."""

    def __init__(self, view: View) -> None:
        k = view.p.shape[1]
        depth = int(np.log2(max(ELEMENTS // k, 4)))
        P = view.p.astype(np.float64)
        place = nested_cells(P, depth)
        occupied, self.index = np.unique(place, return_inverse=True)
        self.size = len(occupied)
        w, ww = view.w, view.w**2 if view.is_rows else view.sums("ww")

        def summed(x: Array) -> Array:
            return np.stack([np.bincount(self.index, x[:, c], self.size) for c in range(x.shape[1])], axis=1)

        v = P * (1 - P)
        variance = summed(ww[:, None] * v)
        mass = np.maximum(np.bincount(self.index, w, self.size), TINY)[:, None]
        logs = np.log(np.maximum(P, MIN_PROB))
        odds = logs - np.log(np.maximum(1 - P, MIN_PROB))

        def mean(x: Array) -> Array:
            by_variance = summed(ww[:, None] * v * x) / np.where(variance > 0, variance, 1.0)
            return np.where(variance > 0, by_variance, summed(w[:, None] * x) / mass)

        total = np.maximum(variance.sum(axis=0), TINY)
        self.logs = mean(logs).ravel()
        slope = mean(odds)
        slope -= (slope * variance).sum(axis=0) / total
        self.slope = slope / np.sqrt(np.maximum((slope**2 * variance).sum(axis=0), TINY))
        self.level = 1 / np.sqrt(total)
        self.scale = 1 / np.maximum(total / total.sum(), 1e-3 / k)  # of squares, by class
        if are_shares(view):
            self.per_outcome = np.zeros(self.size * k)
            self.without_outcome = float((ww[:, None] * (view.y - P) ** 2 @ self.scale).sum())
        else:
            self.per_outcome = (summed(ww[:, None] * (1 - 2 * P)) / mass * self.scale).ravel()
            self.without_outcome = float((summed(ww[:, None] * P * P) * self.scale).sum())
        starts = []
        for m in SCALES:
            if m > 2**depth // 2 or m > self.size:
                break
            starts.append(np.flatnonzero(np.diff(occupied // (2**depth // m), prepend=-1)))
        self.nodes = Nodes(starts)

    def statistics(self, w: Array, wp: Array, wy: Array) -> Array:
        """The members of each draw, (…, members); NaN at scales that are finer than the leaves."""
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
        values += [(sums**2).sum(axis=-2) @ self.scale - single for sums in self.nodes.sums(residual, axis=-2)]
        out = np.full((*values[0].shape, 5 + len(SCALES)), np.nan)
        out[..., : len(values)] = np.stack(values, axis=-1)
        return out
