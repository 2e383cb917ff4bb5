"""Sums per cell of a fine grid on [0, 1] for several binary views, counted from blocks of rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_observed
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import NOTED_SUM_DEVIATION, two_columns
from trueodds.kernels import as_plain_array, grid_sums, map_blocks
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS, N_EQUAL_CELLS, merge_cells, pop_occupied_cells
from trueodds.lenses.view import SUMS, View

# Sums of rows of weight 1 with one label each: all other sums follow from these and n.
UNWEIGHTED_SUMS = ("wp", "wpp", "wy", "wpy")
WEIGHTED_SUMS = ("w", "wp", "wy", *SUMS)


class _TableCache(threading.local):
    """Zeroed tables of each thread: clearing the few cells in use is faster than allocating memory for every block."""

    def __init__(self) -> None:
        self.tables: dict[tuple[int, int], tuple[Array, Array]] = {}


_table_cache = _TableCache()


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sums per cell of one or several binary views, which `+` merges.

    Cell c of view v has the index v · cells_per_view + c.

    The fine grid has edges i/3840, with the first and the last cell halved 20 times. All cells are right-closed `(lo,
    hi]`, and the first contains 0. Memory: 48 or 88 bytes per occupied cell.

    >>> a = Cells.from_scores([0.2, 0.2, 0.9], [0, 1, 1])
    >>> (a + a).n.tolist(), (a + a).view(0).y.tolist()
    ([4, 2], [0.5, 1.0])
    """

    index: Array  # (m,) int64, increasing
    n: Array  # (m,) int64, rows in the cell, at least 1
    sums: Array  # (m, 4) float64 in the order of UNWEIGHTED_SUMS, or (m, 9) in that of WEIGHTED_SUMS
    bins: int | None = None  # uniform bins after `coarsen`; None for the fine grid

    @classmethod
    def from_scores(cls, p: Any, y: Any, w: Any = None) -> Cells:
        """Cells of one binary view: p (n,) in [0, 1], y (n,) in [0, 1], w (n,) ≥ 0."""

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
        """Combine several tables, each starting at the given view, with increasing starts."""
        cells = [part for _, part in starts_and_cells]
        if len({part.sums.shape[1] for part in cells}) > 1:
            cells = [part.with_explicit_sums() for part in cells]
        index = [
            part.index + start * part.cells_per_view for (start, _), part in zip(starts_and_cells, cells, strict=True)
        ]
        return cls(
            np.concatenate(index),
            np.concatenate([part.n for part in cells]),
            np.concatenate([part.sums for part in cells]),
            cells[0].bins,
        )

    @property
    def cells_per_view(self) -> int:
        """Number of cells per view."""
        return self.bins or N_CELLS

    @property
    def edges(self) -> Array:
        """The edges of a view's cells, (cells_per_view + 1,)."""
        return np.arange(self.bins + 1) / self.bins if self.bins else CELL_EDGES

    @property
    def is_unweighted(self) -> bool:
        """Whether every row so far had weight 1 and one label."""
        return self.sums.shape[1] == len(UNWEIGHTED_SUMS)

    def with_explicit_sums(self) -> Cells:
        """Return these cells with all sums stored explicitly."""
        if not self.is_unweighted:
            return self
        n = self.n.astype(np.float64)
        wp, wpp, wy, wpy = self.sums.T
        wwr = np.maximum(wy - 2 * wpy + wpp, 0)  # w² = w = 1 and y² = y; rounding must not make a square negative
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
        if self.is_unweighted != other.is_unweighted:
            return self.with_explicit_sums() + other.with_explicit_sums()
        if np.array_equal(self.index, other.index):
            return Cells(self.index, self.n + other.n, self.sums + other.sums, self.bins)
        own_arrays, other_arrays = (self.index, self.n, self.sums), (other.index, other.n, other.sums)
        index, n, sums = merge_cells(*own_arrays, *other_arrays)
        return Cells(index, n, sums, self.bins)

    def coarsen(self, bins: int) -> Cells:
        """Return the sums over uniform bins, which must divide the grid so that the result is exact.

        Raises TO203 for other numbers of bins.
        """
        n_cells = self.bins or N_EQUAL_CELLS
        if bins < 1 or n_cells % bins:
            raise InputError(
                "TO203",
                f"Bins must divide {n_cells:,} to be exact.",
                repr(bins),
                "For instance 10, 12, 15, 16, 20 or 30.",
            )
        view, fine_cell = np.divmod(self.index, self.cells_per_view)
        coarse_index = view * bins + np.searchsorted(np.arange(1, bins) / bins, self.edges[1:][fine_cell], "left")
        index, first = np.unique(coarse_index, return_index=True)
        if len(index) == 0:
            return Cells(index, self.n, self.sums, bins)
        return Cells(index, np.add.reduceat(self.n, first), np.add.reduceat(self.sums, first, axis=0), bins)

    def view(self, view_number: int, name: str = "", classes: int = 2) -> View:
        """One view whose rows are cells, with means p and y, further sums, and the midpoints of the cells as locations.

        The midpoint lies strictly inside the cell, so a partition with nested edges assigns a cell exactly as its rows.
        Other partitions use the nearest cell edges.
        """
        start, stop = np.searchsorted(
            self.index, [view_number * self.cells_per_view, (view_number + 1) * self.cells_per_view]
        )
        cells = Cells(
            self.index[start:stop] - view_number * self.cells_per_view,
            self.n[start:stop],
            self.sums[start:stop],
            self.bins,
        )
        sums = dict(zip(WEIGHTED_SUMS, cells.with_explicit_sums().sums.T, strict=True))
        edges = self.edges
        midpoints = ((edges[:-1] + edges[1:]) / 2)[cells.index]
        w = sums.pop("w")
        has_weight = w > 0  # rows of weight 0 count only in n
        p = np.divide(sums.pop("wp"), w, out=midpoints.copy(), where=has_weight)
        y = np.divide(sums.pop("wy"), w, out=np.zeros(len(w)), where=has_weight)
        return View(p, y, w, n=cells.n, sums=sums, partition_values=midpoints, name=name, classes=classes)


# Number of classes with dense cells in memory at a time: 2.5 MB, or 1.6 MB of the wider ones, to fit the cache.
CLASSES_PER_TASK, WEIGHTED_CLASSES_PER_TASK = 16, 5


@dataclass(frozen=True, slots=True, eq=False)
class TallyRows:
    """A block of rows in the memory layout of the kernels: read-only and C-ordered."""

    kind: str  # of the predictions
    P: Array  # (n, m), float32 or float64; m = 1 for bare confidence
    y: Array | None  # (n,) labels, or (n, m) of 0 and 1 for multilabel
    votes: Array | None  # (n, m) votes
    w: Array | None  # (n,)
    rounding_tolerance: float  # largest deviation of a row sum from 1 by rounding
    has_one_column: bool  # whether one column was given, so that the probability of the first of two classes is 1 − p
    logits: Array | None = None  # (n,) or (n, m) as given, if P was computed from logits and may underflow
    log_observed: Array | None = None  # (n,) log-probability of the observed class, if there are logits

    @classmethod
    def from_predictions(cls, preds: Predictions, selection: slice | Array) -> TallyRows:
        """Copy the selected rows into the layout of the kernels."""
        p = preds.p[selection]
        if preds.kind == "confidence":
            P = p[:, None]
        else:
            P = two_columns(p, None if preds.logits is None else preds.logits[selection]) if p.ndim == 1 else p
        dtype = np.dtype(preds.dtype)
        eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
        rounding_tolerance = (
            max(P.shape[1] * eps, NOTED_SUM_DEVIATION) if preds.kind == "classes" and p.ndim == 2 else np.inf
        )
        y, shares, w = (
            None if array is None else as_plain_array(array[selection])
            for array in (preds.y, preds.votes, preds.weight)
        )
        logits = log_probs = None
        if preds.logits is not None:
            logits, log_probs = (
                preds.logits[selection],
                preds.cached("log observed", partial(log_observed, preds))[selection],
            )
        return cls(preds.kind, as_plain_array(P), y, shares, w, rounding_tolerance, p.ndim == 1, logits, log_probs)

    @property
    def has_exact_cells(self) -> bool:
        """Whether float64 arithmetic alone determines the cell, as for float32 values."""
        return self.P.dtype == np.float32

    @property
    def is_unweighted(self) -> bool:
        """Whether each row has one label and there are no weights."""
        return self.w is None and self.votes is None

    @property
    def weights(self) -> Array:
        """The weights, or ones if there are none."""
        return np.ones(len(self.P)) if self.w is None else self.w


def cells_of_view(view: View) -> Cells:
    """The cells of one binary view of rows."""
    is_unweighted = bool(((view.y == 0) | (view.y == 1)).all() and (view.w == 1).all())
    return cells_of_columns(
        as_plain_array(view.p[:, None]), view.y[:, None], None if is_unweighted else as_plain_array(view.w)
    )


def cells_by_rank(rows: TallyRows, ranked_columns: Array) -> Cells:
    """Cells of the largest probabilities of each row; `ranked_columns` (n, ranks) are their columns."""
    return cells_of_columns(*values_by_rank(rows, ranked_columns), None if rows.is_unweighted else rows.weights)


def values_by_rank(rows: TallyRows, ranked_columns: Array) -> tuple[Array, Array]:
    """The largest probabilities of each row and their outcomes, both (n, ranks), from their columns (n, ranks)."""
    if rows.votes is not None:
        return as_plain_array(np.take_along_axis(rows.P, ranked_columns, axis=1)), np.take_along_axis(
            rows.votes, ranked_columns, axis=1
        )
    assert rows.y is not None
    if rows.kind == "confidence":
        return rows.P, rows.y[:, None]
    return as_plain_array(np.take_along_axis(rows.P, ranked_columns, axis=1)), ranked_columns == rows.y[:, None]


def cells_by_class(rows: TallyRows, first: int, last: int) -> Cells:
    """Cells of the classes first..last−1, each against the rest, with several classes per thread."""
    classes_per_task = CLASSES_PER_TASK if rows.is_unweighted else WEIGHTED_CLASSES_PER_TASK

    def tally_task(start: int, stop: int) -> tuple[int, Cells]:
        """Count the cells of the classes first + start to first + stop − 1."""
        return start, _tally_classes(rows, first + start, first + stop)

    return Cells.concatenate_views(map_blocks(tally_task, last - first, classes_per_task))


def cells_of_columns(P: Array, Y: Array, w: Array | None) -> Cells:
    """The cells of columns P (n, m) with their outcomes Y (n, m); without w the outcomes are 0 or 1."""
    m, has_exact_cells = P.shape[1], P.dtype == np.float32
    if w is None:
        outcome_inputs = (P, as_plain_array(Y == 1), 0, m, CELL_EDGES, has_exact_cells)
        return Cells.from_dense_table(
            m, len(UNWEIGHTED_SUMS), lambda n, sums: grid_sums.tally_outcomes(*outcome_inputs, n, sums)
        )
    share_inputs = (P, as_plain_array(Y.astype(np.float64)), w, 0, m, CELL_EDGES, has_exact_cells)
    return Cells.from_dense_table(
        m, len(WEIGHTED_SUMS), lambda n, sums: grid_sums.tally_weighted_shares(*share_inputs, n, sums)
    )


def _tally_classes(rows: TallyRows, first: int, last: int) -> Cells:
    """Cells of the classes first..last−1, counted in one thread."""
    P, kernel_settings = rows.P, (first, last, CELL_EDGES, rows.has_exact_cells)
    if not rows.is_unweighted:
        share_inputs = (
            P,
            as_plain_array(outcomes_by_class(rows, first, last)),
            as_plain_array(rows.weights),
            *kernel_settings,
        )
        return Cells.from_dense_table(
            last - first, len(WEIGHTED_SUMS), lambda n, sums: grid_sums.tally_weighted_shares(*share_inputs, n, sums)
        )
    assert rows.y is not None
    if rows.kind == "multilabel":
        outcome_inputs = (P, as_plain_array(rows.y[:, first:last] == 1), *kernel_settings)
        return Cells.from_dense_table(
            last - first, len(UNWEIGHTED_SUMS), lambda n, sums: grid_sums.tally_outcomes(*outcome_inputs, n, sums)
        )
    label_inputs = (P, rows.y, *kernel_settings)
    return Cells.from_dense_table(
        last - first, len(UNWEIGHTED_SUMS), lambda n, sums: grid_sums.tally_labels(*label_inputs, n, sums)
    )


def values_by_class(rows: TallyRows, first: int, last: int) -> tuple[Array, Array]:
    """The probabilities and the outcomes of the classes first..last−1, both (n, last − first)."""
    return as_plain_array(rows.P[:, first:last]), outcomes_by_class(rows, first, last)


def outcomes_by_class(rows: TallyRows, first: int, last: int) -> Array:
    """The outcome shares of some classes, (n, last − first) float64."""
    if rows.votes is not None:
        return rows.votes[:, first:last]
    assert rows.y is not None
    observed = rows.y[:, first:last] if rows.kind == "multilabel" else rows.y[:, None] == np.arange(first, last)
    return observed.astype(np.float64)
