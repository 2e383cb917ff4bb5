"""Which rows are pooled where each bin shall hold so many of them? Groups of a fixed size by rising score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.binning.by_score import by_place
from trueodds.binning.partition import Partition, _binary_only, _mass_edges, _midway
from trueodds.binning.selections import Selections
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import Count, digits
from trueodds.core.typing import Array
from trueodds.kernels.bin_index import Bins, Closed, Frozen
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Mass(Partition):
    """Groups of so many rows by rising score; the last one takes those that are left over, so it may hold nearly twice
    as many.

    `partition="mass:100"` of `rmsce` is the calibration error that benchmarks of language models report. Equal scores
    are never split, and the edge between two groups is the midpoint of the neighboring scores; where many rows state
    the same score, as stated confidences do, groups hold more rows than asked. A weight of two counts as two rows;
    weights that are no counts are cut as the rows that they are worth.

    >>> str(Mass(100)), Mass(2).freeze(View(p=[0.1, 0.2, 0.4, 0.5, 0.9], y=[0, 0, 1, 0, 1])).size
    ('mass 100', 2)
    """

    rows: Count = 100
    closed: Closed = "right"

    def freeze(self, view: View) -> Frozen:
        """The edges for these scores."""
        _binary_only(view, "mass")
        by_score, n = by_place(view), self._count(view)
        if n // self.rows <= len(view):
            return Bins(_mass_edges(by_score, self._cuts(view)), self.closed)
        # Of more groups than there are rows, the last that each row completes tells as much.
        step = self.rows * view.total / n
        ends = np.unique(np.floor(np.cumsum(by_score.sums()[1]) / step))
        return Bins(_mass_edges(by_score, ends[(ends >= 1) & (ends < n // self.rows)] * step), self.closed)

    def sums(self, of: Selections) -> Array:
        """The sums of the bins, cut anew for each selection."""
        inner = _midway(of, self._cuts(of.first))
        return of.sums(np.where(inner < 1, inner, np.inf), self.closed)

    def _cuts(self, view: View) -> Array:
        """After which weight each group but the last ends."""
        n = self._count(view)
        k = max(1, int(n // self.rows))
        return np.arange(1, k) * (self.rows * view.total / n)

    def _count(self, view: View) -> float:
        """How many rows the weights stand for."""
        return round(view.total) if view.has_integer_weights else view.effective_n

    def __str__(self) -> str:
        return f"mass {self.rows}" + (", left-closed" if self.closed == "left" else "")


def named(name: str, closed: Closed) -> Mass:
    """The partition behind `mass:100`."""
    rows = digits(name.removeprefix("mass:"))
    if rows is None:
        raise InputError("TO203", "mass:ROWS says how many rows a bin holds.", describe(name), "For instance mass:100.")
    return Mass(rows, closed)
