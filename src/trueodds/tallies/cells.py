"""Sums per cell of a fine grid, on [0, 1] for binary views and on the simplex for vectors, which tallies add."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, fine_grid, map_blocks
from trueodds.kernels.bins import Bins
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES, N_CELLS, merge_cells, pop_occupied_cells
from trueodds.lenses.view import SUMS, View
from trueodds.tallies.row_block import RowBlock, outcomes_by_class, values_by_rank

# Saved: names of sums. Those of rows of weight 1 with one label each determine all others, with n.
UNWEIGHTED_SUMS = ("wp", "wpp", "wy", "wpy")
WEIGHTED_SUMS = ("w", "wp", "wy", *SUMS)


class _TableCache(threading.local):
    """Zeroed tables of each thread: clearing the few cells in use is faster than allocating memory for every block."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, int], tuple[Array, Array]] = {}


_table_cache = _TableCache()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sums per occupied cell of one or several binary views. The cells of two batches are merged with `+`.

    Cell c of view v has the index v · N_CELLS + c. The fine grid has edges i/3840, with the first and the last
    cell halved 20 times. All cells are right-closed `(lo, hi]`, and the first contains 0. Memory: 48 or 88 bytes per
    occupied cell.

    >>> a = Cells.from_scores([0.2, 0.2, 0.9], [0, 1, 1])
    >>> (a + a).n.tolist(), (a + a).view(0).y.tolist()
    ([4, 2], [0.5, 1.0])
    """

    index: Array  # (m,) int64, increasing
    n: Array  # (m,) int64, rows in the cell, at least 1
    sums: Array  # (m, 4) float64 in the order of UNWEIGHTED_SUMS, or (m, 9) in that of WEIGHTED_SUMS

    @classmethod
    def from_scores(cls, p: Any, y: Any, w: Any = None) -> Cells:
        """Return the cells of one binary view: p (n,) in [0, 1], y (n,) in [0, 1], w (n,) ≥ 0."""
        return cells_of_view(View(p, y, w))

    @classmethod
    def from_dense_table(cls, n_views: int, n_sums: int, add_rows: Callable[[Array, Array], None]) -> Cells:
        """Collect the occupied cells of a dense table.

        `add_rows` adds rows to the zeroed arrays n (n_views · N_CELLS,) and sums (n_views · N_CELLS, n_sums).
        """
        shape = (n_views * N_CELLS, n_sums)
        # Removed while in use, so that a table that an interrupt leaves half filled is never used again.
        table = _table_cache.tables.pop(shape, None)
        if table is None:
            table = np.zeros(shape[0], dtype=np.int64), np.zeros(shape)
            _table_cache.tables.clear()  # few shapes at a time, so that memory stays at a few MB
        add_rows(*table)
        cells = cls(*pop_occupied_cells(*table))
        _table_cache.tables[shape] = table
        return cells

    @classmethod
    def concatenate_views(cls, starts_and_cells: Sequence[tuple[int, Cells]]) -> Cells:
        """Combine the cells of different views. Each pair holds the number of the first view of its cells.

        The pairs are in increasing order of these numbers.
        """
        starts, tables = zip(*starts_and_cells, strict=True)
        if len({table.is_unweighted for table in tables}) > 1:
            tables = tuple(table.with_explicit_sums() for table in tables)
        index = [table.index + start * N_CELLS for start, table in zip(starts, tables, strict=True)]
        return cls(
            np.concatenate(index),
            np.concatenate([table.n for table in tables]),
            np.concatenate([table.sums for table in tables]),
        )

    @property
    def is_unweighted(self) -> bool:
        """Whether every row so far had weight 1 and one label."""
        return self.sums.shape[1] == len(UNWEIGHTED_SUMS)

    def with_explicit_sums(self) -> Cells:
        """Return these cells with all sums of `WEIGHTED_SUMS`, which those of unweighted rows determine."""
        if not self.is_unweighted:
            return self
        n, sums = self.n.astype(np.float64), dict(zip(UNWEIGHTED_SUMS, self.sums.T, strict=True))
        sums |= {"w": n, "ww": n, "wyy": sums["wy"], "wwv": sums["wp"] - sums["wpp"]}  # as w² = w = 1 and y² = y
        # Rounding must not make a square negative.
        sums["wwr"] = np.maximum(sums["wy"] - 2 * sums["wpy"] + sums["wpp"], 0)
        return Cells(self.index, self.n, np.stack([sums[name] for name in WEIGHTED_SUMS], axis=1))

    def __add__(self, other: Cells) -> Cells:
        if self.is_unweighted != other.is_unweighted:
            return self.with_explicit_sums() + other.with_explicit_sums()
        if np.array_equal(self.index, other.index):
            return Cells(self.index, self.n + other.n, self.sums + other.sums)
        index, n, sums = merge_cells(self.index, self.n, self.sums, other.index, other.n, other.sums)
        return Cells(index, n, sums)

    def view(self, view_number: int, name: str = "", classes: int = 2) -> View:
        """Return one view whose entries are cells, with their means p and y and further sums.

        Partitions assign cells to bins by their midpoints. If all edges of the bins are edges of cells, a cell lies in
        the bin of all its rows. Other bins have the nearest cell edges instead.
        """
        start, stop = np.searchsorted(self.index, [view_number * N_CELLS, (view_number + 1) * N_CELLS])
        cells = Cells(self.index[start:stop] - view_number * N_CELLS, self.n[start:stop], self.sums[start:stop])
        sums = dict(zip(WEIGHTED_SUMS, cells.with_explicit_sums().sums.T, strict=True))
        midpoints = CELL_MIDDLES[cells.index]
        w = sums.pop("w")
        has_weight = w > 0  # rows of weight 0 count only in n
        p = np.divide(sums.pop("wp"), w, out=midpoints.copy(), where=has_weight)
        y = np.divide(sums.pop("wy"), w, out=np.zeros(len(w)), where=has_weight)
        return View(p, y, w, n=cells.n, sums=sums, partition_values=midpoints, name=name, classes=classes)


# Number of classes with dense cells in memory at a time, to fit the cache: 2.5 MB, or 1.6 MB with weights.
CLASSES_PER_TASK, WEIGHTED_CLASSES_PER_TASK = 16, 5


def cells_of_view(view: View) -> Cells:
    is_unweighted = bool(((view.y == 0) | (view.y == 1)).all() and (view.w == 1).all())
    return cells_of_columns(
        as_plain_array(view.p[:, None]), view.y[:, None], None if is_unweighted else as_plain_array(view.w)
    )


def cells_by_rank(rows: RowBlock, ranked_columns: Array) -> Cells:
    """Return the cells of the largest probabilities of each row, whose columns are `ranked_columns` (n, ranks)."""
    return cells_of_columns(*values_by_rank(rows, ranked_columns), None if rows.is_unweighted else rows.weights)


def cells_by_class(rows: RowBlock, first: int, last: int) -> Cells:
    """Return the cells of the classes first..last−1, each against the rest, with several classes per thread."""
    classes_per_task = CLASSES_PER_TASK if rows.is_unweighted else WEIGHTED_CLASSES_PER_TASK

    def tally_task(start: int, stop: int) -> tuple[int, Cells]:
        return start, _tally_classes(rows, first + start, first + stop)

    return Cells.concatenate_views(map_blocks(tally_task, last - first, classes_per_task))


def cells_of_columns(P: Array, Y: Array, w: Array | None, first: int = 0) -> Cells:
    """Return the cells of m columns of P, from the first one on, with outcomes Y (n, m).

    Without weights w the outcomes are 0 or 1.
    """
    m, has_exact_cells = Y.shape[1], P.dtype == np.float32
    if w is None:
        outcome_inputs = (P, as_plain_array(Y == 1), first, first + m, CELL_EDGES, has_exact_cells)
        return Cells.from_dense_table(
            m, len(UNWEIGHTED_SUMS), lambda n, sums: fine_grid.tally_outcomes(*outcome_inputs, n, sums)
        )
    shares = as_plain_array(Y.astype(np.float64, copy=False))
    share_inputs = (P, shares, w, first, first + m, CELL_EDGES, has_exact_cells)
    return Cells.from_dense_table(
        m, len(WEIGHTED_SUMS), lambda n, sums: fine_grid.tally_weighted_shares(*share_inputs, n, sums)
    )


def _tally_classes(rows: RowBlock, first: int, last: int) -> Cells:
    if not rows.is_unweighted:
        return cells_of_columns(rows.P, outcomes_by_class(rows, first, last), as_plain_array(rows.weights), first)
    assert rows.y is not None
    if rows.kind == "multilabel":
        return cells_of_columns(rows.P, rows.y[:, first:last], None, first)
    label_inputs = (rows.P, rows.y, first, last, CELL_EDGES, rows.has_exact_cells)
    return Cells.from_dense_table(
        last - first, len(UNWEIGHTED_SUMS), lambda n, sums: fine_grid.tally_labels(*label_inputs, n, sums)
    )


SIMPLEX_SUMS = ("n", "w", "ww", "wp", "wy")  # the sums of `SimplexCells`


@dataclass(frozen=True, slots=True, eq=False)
class SimplexCells:
    """Sums over the occupied cells of a grid on the simplex. The cells of two batches are merged with `+`.

    Rows share a cell if each of their m coordinates lies in the same bin. Memory: 4·m + 24 + 16·m bytes per occupied
    cell. In the worst case every row has its own cell.
    """

    bins: int  # per axis of the grid
    keys: Array  # (c, m) int32, the bin of each coordinate; rows in lexicographic order
    n: Array  # (c,) int64, rows in the cell
    w: Array  # (c,) Σw
    ww: Array  # (c,) Σw²
    wp: Array  # (c, m) Σwp
    wy: Array  # (c, m) Σwy

    @classmethod
    def from_view(cls, view: View, bins: int) -> SimplexCells:
        """The cells of a joint view of rows."""
        axis_bins = Bins(np.arange(bins + 1) / bins)
        keys = np.stack([axis_bins.index(column) for column in view.partition_values.T], axis=1).astype(np.int32)
        w = view.w[:, None]
        p = view.p.astype(np.float64, copy=False)
        return _merge_cells(
            bins, keys, n=view.n.astype(np.int64), w=view.w, ww=view.sums("ww"), wp=w * p, wy=w * view.y
        )

    def __add__(self, other: SimplexCells) -> SimplexCells:
        if self.bins != other.bins or self.keys.shape[1] != other.keys.shape[1]:
            raise InputError(
                "TO401",
                "Only cells of the same simplex grid can be added.",
                f"{self.bins} bins on {self.keys.shape[1]} axes and {other.bins} on {other.keys.shape[1]}",
                "Tally both with the same grid.",
            )
        columns = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in SIMPLEX_SUMS}
        return _merge_cells(self.bins, np.concatenate([self.keys, other.keys]), **columns)

    def view(self, name: str, classes: int) -> View:
        """The joint view of these cells, each located at the midpoint of its bins."""
        has_weight = (self.w > 0)[:, None]
        midpoints = (self.keys + 0.5) / self.bins
        p = np.divide(self.wp, self.w[:, None], out=midpoints.copy(), where=has_weight)
        y = np.divide(self.wy, self.w[:, None], out=np.zeros_like(self.wy), where=has_weight)
        return View(
            p, y, self.w, n=self.n, sums={"ww": self.ww}, partition_values=midpoints, name=name, classes=classes
        )


def _merge_cells(bins: int, keys: Array, **sums: Array) -> SimplexCells:
    """Merge cells with the same key (c, m) by adding their `SIMPLEX_SUMS` (c, …), and sort them by key."""
    unique, inverse = np.unique(_sortable_keys(keys), return_inverse=True)
    inverse = inverse.reshape(-1)
    order = np.argsort(inverse, kind="stable")
    first = np.searchsorted(inverse[order], np.arange(len(unique)))
    merged = {name: np.add.reduceat(values[order], first, axis=0) for name, values in sums.items()}
    return SimplexCells(bins, keys[order[first]], **merged)


def _sortable_keys(keys: Array) -> Array:
    """Return each row of keys (c, m) as a byte string (c,). The strings sort like the rows, lexicographically."""
    big_endian = np.ascontiguousarray(keys.astype(">u4"))
    return big_endian.view(f"V{4 * keys.shape[1]}")[:, 0]
