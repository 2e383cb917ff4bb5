"""Whose outcomes hang together? Rows or clusters that are independent of each other, and their sums of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array


@dataclass(frozen=True, eq=False)
class Units:
    """Independent of each other; whatever happens within one is in its sum."""

    of: Array  # (n,) the number of each row's unit
    count: int  # G, those with weight

    @classmethod
    def of_rows(cls, w: Array) -> Units:
        """Every row by itself."""
        return cls(np.arange(len(w)), int((w > 0).sum()))

    @classmethod
    def of_clusters(cls, w: Array, cluster: Array) -> Units:
        """Rows of one cluster together."""
        names, of = np.unique(cluster, return_inverse=True)
        return cls(of.reshape(-1), int((np.bincount(of.reshape(-1), w > 0, len(names)) > 0).sum()))

    @property
    def bias_correction(self) -> float:
        """G/(G − 1): squares about an estimated mean of 0 come out too small by the inverse."""
        return self.count / (self.count - 1) if self.count > 1 else 1.0

    def totals(self, values: Array) -> Array:
        """The sum over each unit, (G,)."""
        return np.bincount(self.of, values, int(self.of.max(initial=0)) + 1)

    def sums(self, x: Array, residuals: Array) -> Array:
        """Σ r x and Σ r of each unit, (G, d) with the columns of each class in turn; x and r are (n, m)."""
        size = int(self.of.max(initial=0)) + 1
        unit_sums = np.empty((size, 2 * x.shape[1]))
        for j, (column, r) in enumerate(zip(x.T, residuals.T, strict=True)):
            unit_sums[:, 2 * j] = np.bincount(self.of, r * column, size)
            unit_sums[:, 2 * j + 1] = np.bincount(self.of, r, size)
        return unit_sums
