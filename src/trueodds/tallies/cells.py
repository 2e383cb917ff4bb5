"""What are the sums per cell of the fine grid? Several binary views side by side, only occupied cells stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.cells import CELLS, EDGES, WIDTH
from trueodds.kernels.merged import merged, occupied
from trueodds.lenses.view import SUMS, View

PLAIN = ("wp", "wpp", "wy", "wpy")  # rows of weight 1 with one label each: every other sum follows from these and n
FULL = ("w", "wp", "wy", *SUMS)


class _TableCache(threading.local):
    """Each thread's empty tables: to clear the few cells in use costs less than new memory for every block."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, int], tuple[Array, Array]] = {}


_table_cache = _TableCache()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sums over cells which add: a cell of view v and number c has the index v · size + c.

    The fine grid has edges i/3840, with the first and the last cell halved 20 times; all cells are right-closed
    `(lo, hi]`, the first closed at 0. Memory: 48 or 88 bytes for each occupied cell.

    >>> a = Cells.of([0.2, 0.2, 0.9], [0, 1, 1])
    >>> (a + a).n.tolist(), (a + a).view(0).y.tolist()
    ([4, 2], [0.5, 1.0])
    """

    index: Array  # (m,) int64, rising
    n: Array  # (m,) int64, rows in the cell, at least 1
    sums: Array  # (m, 4) float64 as PLAIN names them, or (m, 9) as FULL does
    bins: int | None = None  # uniform bins after `coarsen`; None for the fine grid

    @classmethod
    def of(cls, p: Any, y: Any, w: Any = None) -> Cells:
        """The cells of one binary view: p (n,) in [0, 1], y (n,) in [0, 1], w (n,) ≥ 0."""
        from trueodds.tallies.rows import binary

        return binary(View(p, y, w))

    @classmethod
    def summed(cls, views: int, width: int, fill: Callable[[Array, Array], None]) -> Cells:
        """What `fill` adds into a dense table of so many views, n (views · CELLS,) and sums (views · CELLS, width)."""
        shape = (views * CELLS, width)
        # Taken out while in use: a table that an interrupt leaves half filled is never used again.
        table = _table_cache.tables.pop(shape, None)
        if table is None:
            table = np.zeros(shape[0], dtype=np.int64), np.zeros(shape)
            _table_cache.tables.clear()  # of one shape or two: memory stays a few MB
        fill(*table)
        cells = cls(*occupied(*table))
        _table_cache.tables[shape] = table
        return cells

    @classmethod
    def side_by_side(cls, parts: Sequence[tuple[int, Cells]]) -> Cells:
        """One table of several, each starting at the given view; the starts rise."""
        cells = [part for _, part in parts]
        if len({part.sums.shape[1] for part in cells}) > 1:
            cells = [part.full() for part in cells]
        index = [part.index + start * part.size for (start, _), part in zip(parts, cells, strict=True)]
        return cls(
            np.concatenate(index),
            np.concatenate([part.n for part in cells]),
            np.concatenate([part.sums for part in cells]),
            cells[0].bins,
        )

    @property
    def size(self) -> int:
        """How many cells each view may occupy."""
        return self.bins or CELLS

    @property
    def edges(self) -> Array:
        """The edges of a view's cells, (size + 1,)."""
        return np.arange(self.bins + 1) / self.bins if self.bins else EDGES

    @property
    def plain(self) -> bool:
        """Whether every row so far had weight 1 and one label."""
        return self.sums.shape[1] == len(PLAIN)

    def full(self) -> Cells:
        """The same cells with every sum written out."""
        if not self.plain:
            return self
        n = self.n.astype(np.float64)
        wp, wpp, wy, wpy = self.sums.T
        wwr = np.maximum(wy - 2 * wpy + wpp, 0)  # w² = w = 1 and y² = y; a square is not below 0 by rounding
        columns = (n, wp, wy, n, wpp, wpy, wy, wp - wpp, wwr)
        return Cells(self.index, self.n, np.stack(columns, axis=1), self.bins)

    def __add__(self, other: Cells) -> Cells:
        if self.bins != other.bins:
            raise InputError(
                "TO401",
                "Only cells of the same grid can be added.",
                f"{self.bins or 'the fine grid'} and {other.bins or 'the fine grid'}",
                "Add first, then coarsen.",
            )
        if self.plain != other.plain:
            return self.full() + other.full()
        if np.array_equal(self.index, other.index):
            return Cells(self.index, self.n + other.n, self.sums + other.sums, self.bins)
        one, two = (self.index, self.n, self.sums), (other.index, other.n, other.sums)
        index, n, sums = merged(*one, *two)
        return Cells(index, n, sums, self.bins)

    def coarsen(self, bins: int) -> Cells:
        """The same sums over uniform bins; exact, so the bins must divide the grid.

        Raises TO203 for other numbers of bins.
        """
        width = self.bins or WIDTH
        if bins < 1 or width % bins:
            raise InputError(
                "TO203",
                f"Bins must divide {width:,} to be exact.",
                repr(bins),
                "For instance 10, 12, 15, 16, 20 or 30.",
            )
        view, cell = np.divmod(self.index, self.size)
        coarse = view * bins + np.searchsorted(np.arange(1, bins) / bins, self.edges[1:][cell], "left")
        index, first = np.unique(coarse, return_index=True)
        if len(index) == 0:
            return Cells(index, self.n, self.sums, bins)
        return Cells(index, np.add.reduceat(self.n, first), np.add.reduceat(self.sums, first, axis=0), bins)

    def view(self, number: int, name: str = "", classes: int = 2) -> View:
        """One view of cells: means in p and y, sums beside them, placed at the middle of the cell.

        The middle lies strictly inside, so a partition whose edges nest places a cell exactly as it places its
        rows, and any other one uses the nearest edges of cells.
        """
        start, stop = np.searchsorted(self.index, [number * self.size, (number + 1) * self.size])
        part = Cells(self.index[start:stop] - number * self.size, self.n[start:stop], self.sums[start:stop], self.bins)
        sums = dict(zip(FULL, part.full().sums.T, strict=True))
        edges = self.edges
        middle = ((edges[:-1] + edges[1:]) / 2)[part.index]
        w = sums.pop("w")
        some = w > 0  # rows of weight 0 are in n and nowhere else
        p = np.divide(sums.pop("wp"), w, out=middle.copy(), where=some)
        y = np.divide(sums.pop("wy"), w, out=np.zeros(len(w)), where=some)
        return View(p, y, w, n=part.n, sums=sums, at=middle, name=name, classes=classes)
