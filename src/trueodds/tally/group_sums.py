"""The tally of each group of rows: small groups are counted thousands at a time, to the bit as each by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import plain
from trueodds.core.kernels import rows as single
from trueodds.core.kernels.cells import CELLS, EDGES, cells_of
from trueodds.problem.predictions import Predictions
from trueodds.tally import slots
from trueodds.tally.cells import FULL, PLAIN
from trueodds.tally.counted import row_scores
from trueodds.tally.counts import COUNTS
from trueodds.tally.groups import Columns, GroupTallies, Make, added_up
from trueodds.tally.rows import Rows, outcomes
from trueodds.tally.scores import ScoreSums

if TYPE_CHECKING:
    from trueodds.tally.tally import Tally

Array = NDArray[Any]


SMALL = 512  # rows below which a group is counted together with others
AT_ONCE = 65_536  # rows of small groups that are counted at a time


def of_groups(preds: Predictions, values: Array, bins: int, count: Callable[..., Tally]) -> GroupTallies:
    """The tally of the rows of each value, by the value as text; `count` makes that of many rows."""
    found, inverse = np.unique(values, return_inverse=True)
    names = np.array([str(value) for value in found], dtype=object)
    order = np.argsort(names, kind="stable")
    names, number = names[order], np.argsort(order)[inverse.reshape(-1)]
    size, rows = np.bincount(number), np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    small = size < SMALL
    large = [(names[g], rows[starts[g] : starts[g + 1]]) for g in np.flatnonzero(~small)]
    parts = [Columns.of({name: count(preds, where, bins, group=True) for name, where in large})]
    rows, names, starts = rows[np.repeat(small, size)], names[small], np.concatenate([[0], np.cumsum(size[small])])
    for few in np.split(np.arange(len(names)), np.flatnonzero(np.diff(starts[1:] // AT_ONCE)) + 1):
        if len(few):
            first, last = few[0], few[-1] + 1
            where = rows[starts[first] : starts[last]]
            at = starts[first : last + 1] - starts[first]
            parts.append(_counted(preds, bins, Rows.of(preds, where), at, tuple(names[first:last])))
    return GroupTallies(Columns.together([part for part in parts if part is not None]))


def _counted(preds: Predictions, bins: int, rows: Rows, starts: Array, names: tuple[str, ...]) -> Columns:
    """The tallies of groups whose rows follow each other: group g has the rows from starts[g] up to starts[g + 1]."""
    ranks, classes = slots.standing(preds.kind, preds.k, group=True)
    sums_of = PLAIN if rows.plain else FULL
    make = Make(preds.kind, preds.classes, preds.dtype, bins, slots.named(ranks, classes), len(sums_of))
    n, k = rows.P.shape
    which, squares = np.empty((n, ranks if k > 1 else 0), dtype=np.int32), np.empty(n)
    special, extremes = np.zeros((len(names), 5), dtype=np.int64), np.zeros((len(names), 2))
    bits = rows.P.view(np.int32 if rows.exact else np.int64)
    for g, (a, b) in enumerate(pairwise(starts.tolist())):
        single.surveyed(rows.P[a:b], bits[a:b], rows.off_by, which[a:b], squares[a:b], special[g], extremes[g])
    scores = np.stack([_score_sums(each, rows.w, starts) for each in row_scores(rows, squares)], axis=1)
    size = np.diff(starts)
    counts = {name: special[:, i] for i, name in enumerate(("zeros", "ones", "above", "off_sums", "ties"))}
    counts |= {"true_zeros": scores[:, 1, 5], "voted": size * (rows.shares is not None)}
    counts |= {"excess": extremes[:, 0], "worst_sum": extremes[:, 1]}
    P, Y = _views(rows, which, ranks, classes)
    m = P.shape[1]
    cells = np.empty((n, m), dtype=np.uint16, order="F")
    cells_of(P, 0, m, EDGES, rows.exact, cells)
    view = np.repeat(np.arange(len(names)), size)[:, None] * m + np.arange(m)
    key, sums = added_up((view * CELLS + cells).ravel(), _summands(P, Y, rows))
    return Columns(
        make,
        names,
        n=size,
        weight=size.astype(np.float64) if rows.w is None else segment_sums(rows.w[None], starts)[0],
        starts=np.searchsorted(key, np.arange(len(names) + 1) * m * CELLS),
        index=key % (m * CELLS),
        rows=sums[:, 0].astype(np.int64),
        sums=sums[:, 1:].copy(),
        scores=scores,
        counts=np.stack([counts[name] for name in COUNTS], axis=1).astype(np.float64),
    )


def segment_sums(columns: Array, starts: Array) -> Array:
    """The sums (c, G) of the segments of each column (c, n), to the bit those that `column[a:b].sum()` gives.

    NumPy adds up a long array in another order than one after the other, and a row of a matrix as it does an array:
    segments of the same length become a matrix.

    >>> segment_sums(np.array([[1.0, 2.0, 4.0]]), np.array([0, 1, 3])).tolist()
    [[1.0, 6.0]]
    """
    size = np.diff(starts)
    out = np.empty((len(columns), len(size)))
    order = np.argsort(size, kind="stable")
    lengths, first = np.unique(size[order], return_index=True)
    for length, at in zip(lengths.tolist(), np.split(order, first[1:]), strict=True):
        out[:, at] = np.take(columns, starts[at][:, None] + np.arange(length), axis=1).sum(axis=-1)
    return out


def _score_sums(s: Array, w: Array | None, starts: Array) -> Array:
    """The fields (G, 7) of the `ScoreSums` of each group."""
    finite, zero = np.isfinite(s), np.zeros(len(starts) - 1)
    kept = np.where(finite, s, 0.0)
    if w is None:
        n = np.diff(starts).astype(np.float64)
        ws, wwss = segment_sums(np.stack([kept, kept * kept]), starts)
        found = np.stack([n, n, ws, ws, wwss, zero, zero], axis=1)
    else:
        ww = w * w
        sums = segment_sums(np.stack([w, ww, w * kept, ww * kept, ww * kept * kept]), starts)
        found = np.stack([*sums, zero, zero], axis=1)
    for g in np.unique(np.searchsorted(starts, np.flatnonzero(~finite), "right") - 1).tolist():
        rows = slice(starts[g], starts[g + 1])
        found[g] = astuple(ScoreSums.of(s[rows], None if w is None else w[rows]))
    return found


def _views(rows: Rows, which: Array, ranks: int, classes: range) -> tuple[Array, Array]:
    """The probabilities and outcomes of the binary views that a group keeps, (n, m) both."""
    if not ranks:
        return plain(rows.P[:, classes.start : classes.stop]), outcomes(rows, classes.start, classes.stop)
    assert rows.y is not None or rows.shares is not None
    if rows.kind == "confidence":
        return rows.P, rows.y[:, None]
    hit = which == rows.y[:, None] if rows.shares is None else np.take_along_axis(rows.shares, which, axis=1)
    return plain(np.take_along_axis(rows.P, which, axis=1)), hit


def _summands(P: Array, Y: Array, rows: Rows) -> Array:
    """What each value adds to its cell, (n · m, 1 + c): one row, and the sums that `Cells` names PLAIN or FULL."""
    p, z = P.astype(np.float64).ravel(), Y.astype(np.float64).ravel()
    if rows.plain:
        return np.stack([np.ones(len(p)), p, p * p, z, z * p], axis=1)
    a = np.repeat(rows.weight, P.shape[1])
    squares = (a * p * p, a * p * z, a * z * z, a * a * p * (1.0 - p), a * a * (z - p) * (z - p))
    return np.stack([np.ones(len(p)), a, a * p, a * z, a * a, *squares], axis=1)
