"""The tally of each group of rows: small groups are counted thousands at a time, to the bit as each by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import plain, tables
from trueodds.kernels import rows as single
from trueodds.kernels.cells import CELLS, EDGES, cells_of
from trueodds.tallies import slots
from trueodds.tallies.cells import FULL, PLAIN
from trueodds.tallies.counted import row_scores, zeros_and_ones
from trueodds.tallies.counts import COUNTS
from trueodds.tallies.groups import GroupColumns, GroupTallies
from trueodds.tallies.rows import Rows, class_values, top_values
from trueodds.tallies.scores import ScoreSums, score_terms

if TYPE_CHECKING:
    from trueodds.tallies.tally import Tally


SMALL = 512  # rows below which a group is counted together with others
AT_ONCE = 65_536  # values of small groups that are counted at a time


def tally_groups(preds: Predictions, values: Array, count: Callable[[Array], Tally]) -> GroupTallies:
    """The tally of the rows of each value (n,), by the value as text; `count` tallies the rows of one group."""
    names, number = _numbered(values)
    size, rows = np.bincount(number), np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    small = size < SMALL
    large = {names[g]: count(rows[starts[g] : starts[g + 1]]) for g in np.flatnonzero(~small)}
    parts = [columns for columns in [GroupColumns.of(large)] if columns is not None]
    template = count(rows[:1])
    rows, names, starts = rows[np.repeat(small, size)], names[small], np.concatenate([[0], np.cumsum(size[small])])
    _, first = np.unique(starts[:-1] // max(1, AT_ONCE // len(template.slots)), return_index=True)
    for a, b in pairwise([*first.tolist(), len(names)]):
        chosen = Rows.of(preds, rows[starts[a] : starts[b]])
        parts.append(_counted(chosen, starts[a : b + 1] - starts[a], tuple(names[a:b]), template))
    return GroupTallies(GroupColumns.added(parts))


def _numbered(values: Array) -> tuple[Array, Array]:
    """The different values as text, sorted, and the position of each value among them."""
    unique, inverse = np.unique(values, return_inverse=True)
    names, position = np.unique(np.array([str(value) for value in unique], dtype=object), return_inverse=True)
    return names, position[inverse.reshape(-1)]


def _counted(rows: Rows, starts: Array, names: tuple[str, ...], template: Tally) -> GroupColumns:
    """The tallies of groups whose rows follow each other: group g has the rows from starts[g] up to starts[g + 1]."""
    ranks, classes = slots.default_views(template.kind, template.k, group=True)
    n, size = len(rows.P), np.diff(starts)
    which = np.empty((n, ranks if rows.P.shape[1] > 1 else 0), dtype=np.int32)
    squares, special, extremes = np.empty(n), np.zeros((len(names), 5), dtype=np.int64), np.zeros((len(names), 2))
    bits = rows.P.view(np.int32 if rows.exact else np.int64)
    single.surveyed_by_group(rows.P, bits, rows.rounding_tolerance, starts, which, squares, special, extremes)
    if rows.logits is not None:
        special[:, :2] = np.add.reduceat(np.stack(zeros_and_ones(rows.logits), axis=1), starts[:-1])
    scores = np.stack([_score_sums(values, rows.w, starts) for values in row_scores(rows, squares)], axis=1)
    counts = dict(zip(("zeros", "ones", "above", "inexact_sums", "ties"), special.T, strict=True))
    counts |= {"true_zeros": scores[:, 1, 5], "voted": size * (rows.shares is not None)}
    counts |= dict(zip(("excess", "worst_sum"), extremes.T, strict=True))
    P, Y = top_values(rows, which) if ranks else class_values(rows, classes.start, classes.stop)
    n_cells = P.shape[1] * CELLS
    key, cell_n, cell_sums = _cells(rows, P, Y, np.repeat(np.arange(len(names)), size))
    return GroupColumns(
        template,
        names,
        n=size,
        weight=size.astype(np.float64) if rows.w is None else segment_sums(rows.w[None], starts)[0],
        starts=np.searchsorted(key, np.arange(len(names) + 1) * n_cells),
        index=key % n_cells,
        rows=cell_n,
        sums=cell_sums,
        scores=scores,
        counts=np.stack([counts[name] for name in COUNTS], axis=1).astype(np.float64),
    )


def _cells(rows: Rows, P: Array, Y: Array, group: Array) -> tuple[Array, Array, Array]:
    """The occupied cells of binary views P, Y (n, m) of rows in groups (n,): their keys, counts and sums.

    The cell of index i, as in `Cells`, of group g has the key g · m · CELLS + i.
    """
    n, m = P.shape
    cell = np.empty((n, m), dtype=np.uint16, order="F")
    cells_of(P, 0, m, EDGES, rows.exact, cell)
    keys = (group[:, None] * m + np.arange(m)) * CELLS + cell
    key, inverse = np.unique(keys, return_inverse=True)
    counts, sums = np.zeros(len(key), dtype=np.int64), np.zeros((len(key), len(PLAIN if rows.plain else FULL)))
    tables.add_by_bin(P, plain(Y.astype(np.float64)), rows.weight, inverse.reshape(n, m), counts, sums)
    return key, counts, sums


def _score_sums(s: Array, w: Array | None, starts: Array) -> Array:
    """The fields (G, 7) of the `ScoreSums` of each group, for the score s (n,) of each row."""
    finite = np.isfinite(s)
    sums = np.zeros((len(starts) - 1, 7))
    sums[:, :5] = segment_sums(score_terms(np.where(finite, s, 0.0), w), starts).T
    for g in np.unique(np.searchsorted(starts, np.flatnonzero(~finite), "right") - 1).tolist():
        rows = slice(starts[g], starts[g + 1])
        sums[g] = astuple(ScoreSums.of(s[rows], None if w is None else w[rows]))
    return sums


def segment_sums(columns: Array, starts: Array) -> Array:
    """The sums (c, G) of the segments of each column (c, n), to the bit those that `column[a:b].sum()` gives.

    NumPy's order of summation depends on the length alone, so segments of one length are the rows of one matrix.

    >>> segment_sums(np.array([[1.0, 2.0, 4.0]]), np.array([0, 1, 3])).tolist()
    [[1.0, 6.0]]
    """
    size = np.diff(starts)
    sums = np.empty((len(columns), len(size)))
    order = np.argsort(size, kind="stable")
    lengths, first = np.unique(size[order], return_index=True)
    for length, segments in zip(lengths.tolist(), np.split(order, first[1:]), strict=True):
        sums[:, segments] = np.take(columns, starts[segments][:, None] + np.arange(length), axis=1).sum(axis=-1)
    return sums
