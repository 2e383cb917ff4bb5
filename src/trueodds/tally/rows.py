"""How do rows become sums? Blocks of Predictions through the compiled loops, many classes in chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import cells as kernel
from trueodds.core.kernels import rows as single
from trueodds.problem.predictions import Predictions
from trueodds.problem.view import View
from trueodds.tally import scores
from trueodds.tally.cells import FULL, PLAIN, Cells
from trueodds.tally.counts import Counts
from trueodds.tally.scores import ScoreSums

Array = NDArray[Any]

# Classes whose dense cells are held at a time: 2.5 MB, or 1.6 of the wider ones; more falls out of the cache.
CHUNK, WIDE_CHUNK = 16, 5
SMALL = 512  # K·bins up to which a few copies of the null covariance cost no memory to speak of
NOTHING = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A block of rows as the kernels take it: read-only and C-ordered."""

    kind: str
    P: Array  # (n, m), float32 or float64; m = 1 for bare confidence
    y: Array | None  # (n,) labels, or (n, m) of 0 and 1 for multilabel
    shares: Array | None  # (n, m) votes
    w: Array | None  # (n,)
    _placed: dict[tuple[int, int], Array] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, preds: Predictions, where: slice | Array) -> Rows:
        """The chosen rows."""
        p = preds.p[where]
        if preds.kind == "confidence":
            P = p[:, None]
        else:
            P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
        optional = [None if each is None else _plain(each[where]) for each in (preds.y, preds.votes, preds.weight)]
        return cls(preds.kind, _plain(P), *optional)

    @property
    def exact(self) -> bool:
        """Whether the cell follows from float64 arithmetic alone, as it does for float32 values."""
        return self.P.dtype == np.float32

    def cells(self, first: int, last: int) -> Array:
        """The fine cell of each value of the classes first..last−1, (n, last − first)."""
        if (first, last) not in self._placed:
            out = np.empty((last - first, len(self.P)), dtype=np.uint16).T  # class by class
            kernel.cells_of(self.P, first, last, kernel.EDGES, self.exact, out)
            self._placed.clear()  # one set of classes at a time: a thousand would take a quarter of the rows' own memory
            self._placed[first, last] = out
        return self._placed[first, last]

    @property
    def plain(self) -> bool:
        """One label per row, no weights."""
        return self.w is None and self.shares is None

    @property
    def weight(self) -> Array:
        """The weights, ones where none were given."""
        return np.ones(len(self.P)) if self.w is None else self.w


def _plain(x: Array) -> Array:
    # One memory layout and one mutability, so that each kernel is compiled once per dtype.
    x = np.ascontiguousarray(x).view()
    x.flags.writeable = False
    return x


def binary(view: View) -> Cells:
    """The cells of one binary view of rows."""
    hard = bool(((view.y == 0) | (view.y == 1)).all() and (view.w == 1).all())
    return _columns(_plain(view.p[:, None]), view.y[:, None], None if hard else _plain(view.w))


def _columns(P: Array, Y: Array, w: Array | None) -> Cells:
    """The cells of columns P (n, m) with their outcomes Y (n, m); without w the outcomes are 0 or 1."""
    m = P.shape[1]
    exact = P.dtype == np.float32
    if w is None:
        hit = _plain(Y == 1)
        return Cells.summed(m, len(PLAIN), lambda out: kernel.by_hit(P, hit, 0, m, kernel.EDGES, exact, out))
    share = _plain(Y.astype(np.float64))
    return Cells.summed(m, len(FULL), lambda out: kernel.by_share(P, share, w, 0, m, kernel.EDGES, exact, out))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What one look at each row tells."""

    which: Array  # (ranks, n) columns of the largest values
    squares: Array  # (n,) Σp²
    counts: Array  # exact zeros, exact ones, values above 1, rows with another sum than 1, rows with several largest
    extremes: Array  # the largest excess over 1 and distance from sum 1


def surveyed(rows: Rows, ranks: int, preds: Predictions) -> Survey:
    """The largest values and the special rows of a block of these predictions."""
    n, k = rows.P.shape
    given = np.dtype(preds.dtype)
    eps = float(np.finfo(given if given.kind == "f" else np.float64).eps)
    which = np.empty((ranks if k > 1 else 0, n), dtype=np.int32)
    seen = Survey(which, np.empty(n), np.zeros(5, dtype=np.int64), np.zeros(2))
    off_by = k * eps if preds.kind == "classes" and preds.p.ndim == 2 else np.inf
    single.surveyed(rows.P, off_by, seen.which, seen.squares, seen.counts, seen.extremes)
    return seen


def ranked(rows: Rows, seen: Survey) -> Cells:
    """The cells of the largest one to three probabilities."""
    if rows.kind == "confidence":
        assert rows.y is not None
        return _columns(rows.P, rows.y[:, None], rows.w)
    which = seen.which.T
    value = _plain(np.take_along_axis(rows.P, which, axis=1))
    if rows.shares is not None:
        return _columns(value, np.take_along_axis(rows.shares, which, axis=1), rows.weight)
    assert rows.y is not None
    return _columns(value, which == rows.y[:, None], rows.w)


def summed(rows: Rows, seen: Survey, ranks: int, classes: range) -> Cells:
    """The cells of the largest one to three probabilities and of these classes, side by side."""
    if rows.kind == "classes" and rows.plain and ranks and len(classes) == rows.P.shape[1] <= CHUNK:
        return _at_once(rows, seen)
    parts = [(0, ranked(rows, seen))] if ranks else []
    if len(classes):
        parts.append((ranks, by_class(rows, classes.start, classes.stop)))
    return Cells.side_by_side(parts)


def _at_once(rows: Rows, seen: Survey) -> Cells:
    """All of them in one table, where there are few classes and each row has one label."""
    assert rows.y is not None
    y, ranks, k = rows.y, len(seen.which), rows.P.shape[1]
    cells = rows.cells(0, k)

    def fill(out: Array) -> None:
        kernel.by_rank(rows.P, seen.which, y, cells, out)
        kernel.by_label(rows.P, y, cells, 0, out[ranks * kernel.CELLS :])

    return Cells.summed(ranks + k, len(PLAIN), fill)


def by_class(rows: Rows, first: int, last: int) -> Cells:
    """The cells of the classes first..last−1, each against the rest."""
    step = CHUNK if rows.plain else WIDE_CHUNK
    spans = [(start, min(start + step, last)) for start in range(first, last, step)]
    return Cells.side_by_side([(start - first, _span(rows, start, stop)) for start, stop in spans])


def _span(rows: Rows, first: int, last: int) -> Cells:
    P, exact = rows.P, rows.exact
    if not rows.plain:
        Y, w = _plain(_outcomes(rows, first, last)), _plain(rows.weight)
        shares = (P, Y, w, first, last, kernel.EDGES, exact)
        return Cells.summed(last - first, len(FULL), lambda out: kernel.by_share(*shares, out))
    assert rows.y is not None
    if rows.kind == "multilabel":
        hits = (P, _plain(rows.y[:, first:last] == 1), first, last, kernel.EDGES, exact)
        return Cells.summed(last - first, len(PLAIN), lambda out: kernel.by_hit(*hits, out))
    labels = (P, rows.y, rows.cells(first, last), first)
    return Cells.summed(last - first, len(PLAIN), lambda out: kernel.by_label(*labels, out))


def _outcomes(rows: Rows, first: int, last: int) -> Array:
    """The outcome shares of some classes, (n, last − first) float64."""
    if rows.shares is not None:
        return rows.shares[:, first:last]
    assert rows.y is not None
    seen = rows.y[:, first:last] if rows.kind == "multilabel" else rows.y[:, None] == np.arange(first, last)
    return seen.astype(np.float64)


def null_covariance(rows: Rows, bins: int) -> Array:
    """Σ w²(δ_kl p_k − p_k p_l) between the report cells (class, bin), (K·bins, K·bins), upper triangle."""
    k = rows.P.shape[1]
    out = np.zeros((k * (k + 1) // 2, 4 if k * bins <= SMALL else 1, bins * bins))
    w = NOTHING if rows.w is None else rows.w
    kernel.covariance(rows.P, _plain(w), rows.cells(0, k), report_bins(bins), bins, out)
    pairs = np.zeros((k, bins, k, bins))
    one, other = np.triu_indices(k)
    pairs[one, :, other] = out.sum(axis=1).reshape(-1, bins, bins)
    return pairs.reshape(k * bins, k * bins)


def report_bins(bins: int) -> Array:
    """The uniform bin of each fine cell; where bins do not nest, by the nearest edges of cells."""
    return np.searchsorted(np.arange(1, bins) / bins, kernel.MIDDLES, "left").astype(np.int32)


def scored(rows: Rows, seen: Survey) -> dict[str, ScoreSums]:
    """The sums of the proper scores: over the vector, of the last column for two classes, mean over labels."""
    if rows.shares is None and rows.kind != "multilabel":
        brier, loss = np.empty(len(rows.P)), np.empty(len(rows.P))
        single.scored(rows.P, rows.y, seen.squares, rows.P.shape[1] <= 2, brier, loss)
    elif rows.kind == "multilabel":
        assert rows.y is not None
        p, y = rows.P.ravel(), rows.y.ravel().astype(np.float64)
        brier = scores.brier(p, y).reshape(rows.P.shape).mean(axis=1)
        loss = scores.log_loss(p, y).reshape(rows.P.shape).mean(axis=1)
    else:
        assert rows.shares is not None
        p, y = (rows.P[:, 1], rows.shares[:, 1]) if rows.P.shape[1] == 2 else (rows.P, rows.shares)
        brier, loss = scores.brier(p, y), scores.log_loss(p, y)
    return {"brier": ScoreSums.of(brier, rows.w), "log_loss": ScoreSums.of(loss, rows.w)}


def counted(rows: Rows, seen: Survey, true_zeros: int) -> Counts:
    """The special rows of a block."""
    zeros, ones, above, off, ties = seen.counts.tolist()
    return Counts(
        zeros=zeros,
        ones=ones,
        above=above,
        off_sums=off,
        ties=ties if len(seen.which) else 0,
        true_zeros=true_zeros,
        voted=len(rows.P) if rows.shares is not None else 0,
        excess=float(seen.extremes[0]),
        worst_sum=float(seen.extremes[1]),
    )
