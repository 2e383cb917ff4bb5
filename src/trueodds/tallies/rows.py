"""How do rows become cells? Blocks of Predictions through the compiled loops, many classes in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.complements import two_columns
from trueodds.data.log_probabilities import log_observed
from trueodds.data.predictions import Predictions
from trueodds.data.validation import SUM_NOTED
from trueodds.kernels import in_blocks, plain, tables
from trueodds.kernels.cells import EDGES
from trueodds.lenses.view import View
from trueodds.tallies.cells import FULL, PLAIN, Cells

# Classes whose dense cells are held at a time: 2.5 MB, or 1.6 of the wider ones; more falls out of the cache.
CHUNK, WIDE_CHUNK = 16, 5


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A block of rows as the kernels take it: read-only and C-ordered."""

    kind: str
    P: Array  # (n, m), float32 or float64; m = 1 for bare confidence
    y: Array | None  # (n,) labels, or (n, m) of 0 and 1 for multilabel
    shares: Array | None  # (n, m) votes
    w: Array | None  # (n,)
    rounding_tolerance: float  # from 1; a sum that is farther off is no rounding
    single: bool  # whether one column was given, so that the probability of the first of two classes is 1 − p
    logits: Array | None = None  # (n,) or (n, m) as given, where P is made of them and may underflow
    log_observed: Array | None = None  # (n,) log-probability of the observed class, where there are logits

    @classmethod
    def of(cls, preds: Predictions, where: slice | Array) -> Rows:
        """The chosen rows."""
        p = preds.p[where]
        if preds.kind == "confidence":
            P = p[:, None]
        else:
            P = two_columns(p, None if preds.logits is None else preds.logits[where]) if p.ndim == 1 else p
        dtype = np.dtype(preds.dtype)
        eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
        rounding_tolerance = max(P.shape[1] * eps, SUM_NOTED) if preds.kind == "classes" and p.ndim == 2 else np.inf
        y, shares, w = (
            None if array is None else plain(array[where]) for array in (preds.y, preds.votes, preds.weight)
        )
        z = logs = None
        if preds.logits is not None:
            z, logs = preds.logits[where], preds.once("log observed", partial(log_observed, preds))[where]
        return cls(preds.kind, plain(P), y, shares, w, rounding_tolerance, p.ndim == 1, z, logs)

    @property
    def exact(self) -> bool:
        """Whether the cell follows from float64 arithmetic alone, as it does for float32 values."""
        return self.P.dtype == np.float32

    @property
    def plain(self) -> bool:
        """One label per row, no weights."""
        return self.w is None and self.shares is None

    @property
    def weight(self) -> Array:
        """The weights, ones where none were given."""
        return np.ones(len(self.P)) if self.w is None else self.w


def binary(view: View) -> Cells:
    """The cells of one binary view of rows."""
    hard = bool(((view.y == 0) | (view.y == 1)).all() and (view.w == 1).all())
    return _columns(plain(view.p[:, None]), view.y[:, None], None if hard else plain(view.w))


def ranked(rows: Rows, which: Array) -> Cells:
    """The cells of the largest probabilities, which (n, ranks) are their columns."""
    return _columns(*top_values(rows, which), None if rows.plain else rows.weight)


def top_values(rows: Rows, which: Array) -> tuple[Array, Array]:
    """The largest probabilities, which (n, ranks) are their columns, and their outcomes, (n, ranks) both."""
    if rows.shares is not None:
        return plain(np.take_along_axis(rows.P, which, axis=1)), np.take_along_axis(rows.shares, which, axis=1)
    assert rows.y is not None
    if rows.kind == "confidence":
        return rows.P, rows.y[:, None]
    return plain(np.take_along_axis(rows.P, which, axis=1)), which == rows.y[:, None]


def by_class(rows: Rows, first: int, last: int) -> Cells:
    """The cells of the classes first..last−1, each against the rest; some classes per thread at a time."""
    step = CHUNK if rows.plain else WIDE_CHUNK

    def work(start: int, stop: int) -> tuple[int, Cells]:
        return start, _span(rows, first + start, first + stop)

    return Cells.side_by_side(in_blocks(work, last - first, step))


def _columns(P: Array, Y: Array, w: Array | None) -> Cells:
    """The cells of columns P (n, m) with their outcomes Y (n, m); without w the outcomes are 0 or 1."""
    m, exact = P.shape[1], P.dtype == np.float32
    if w is None:
        hit = (P, plain(Y == 1), 0, m, EDGES, exact)
        return Cells.summed(m, len(PLAIN), lambda n, sums: tables.by_hit(*hit, n, sums))
    share = (P, plain(Y.astype(np.float64)), w, 0, m, EDGES, exact)
    return Cells.summed(m, len(FULL), lambda n, sums: tables.by_share(*share, n, sums))


def _span(rows: Rows, first: int, last: int) -> Cells:
    P, where = rows.P, (first, last, EDGES, rows.exact)
    if not rows.plain:
        shares = (P, plain(outcomes(rows, first, last)), plain(rows.weight), *where)
        return Cells.summed(last - first, len(FULL), lambda n, sums: tables.by_share(*shares, n, sums))
    assert rows.y is not None
    if rows.kind == "multilabel":
        hits = (P, plain(rows.y[:, first:last] == 1), *where)
        return Cells.summed(last - first, len(PLAIN), lambda n, sums: tables.by_hit(*hits, n, sums))
    labels = (P, rows.y, *where)
    return Cells.summed(last - first, len(PLAIN), lambda n, sums: tables.by_label(*labels, n, sums))


def class_values(rows: Rows, first: int, last: int) -> tuple[Array, Array]:
    """The probabilities and the outcomes of the classes first..last−1, (n, last − first) both."""
    return plain(rows.P[:, first:last]), outcomes(rows, first, last)


def outcomes(rows: Rows, first: int, last: int) -> Array:
    """The outcome shares of some classes, (n, last − first) float64."""
    if rows.shares is not None:
        return rows.shares[:, first:last]
    assert rows.y is not None
    observed = rows.y[:, first:last] if rows.kind == "multilabel" else rows.y[:, None] == np.arange(first, last)
    return observed.astype(np.float64)
