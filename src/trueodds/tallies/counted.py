"""What does a tally keep of some rows? All of it in one pass where there are few classes, else one thing after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import covariance_sums, in_blocks, plain
from trueodds.kernels import rows as single
from trueodds.kernels.cells import EDGES, MIDDLES
from trueodds.kernels.onepass import one_pass
from trueodds.tallies import scores
from trueodds.tallies.cells import PLAIN, Cells
from trueodds.tallies.counts import Counts
from trueodds.tallies.rows import Rows, by_class, ranked
from trueodds.tallies.scores import SCORES, ScoreSums

AT_ONCE = 32  # classes whose cells are held together: 5 MB
LONG = 2**22  # values that a thread looks at
NOTHING = plain(np.empty(0))


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What a tally keeps of some rows."""

    cells: Cells
    null: Array | None  # as of a Tally
    scores: dict[str, ScoreSums]
    counts: Counts


def counted(rows: Rows, ranks: int, classes: range, bins: int | None) -> Counted:
    """The sums of the largest one to three values and of these classes; with `bins` the null covariance."""
    k = rows.P.shape[1]
    if rows.kind == "classes" and rows.plain and ranks and len(classes) == k <= AT_ONCE:
        return _at_once(rows, ranks, bins)
    survey = _surveyed(rows, ranks if k > 1 else 0)
    parts = [(0, ranked(rows, survey.which))] if ranks else []
    if len(classes):
        parts.append((ranks, by_class(rows, classes.start, classes.stop)))
    score_sums = {
        name: ScoreSums.of(values, rows.w)
        for name, values in zip(SCORES, row_scores(rows, survey.squares), strict=True)
    }
    return Counted(
        Cells.side_by_side(parts),
        None if bins is None else null_covariance(rows, bins),
        score_sums,
        survey.special(rows, score_sums["log_loss"].infinite),
    )


def null_covariance(rows: Rows, bins: int) -> Array:
    """Σ w²(δ_kl p_k − p_k p_l) between the report cells (class, bin), (K·bins, K·bins), upper triangle."""
    k, report = rows.P.shape[1], report_bins(bins)
    first = covariance_sums.first_of(report, k)
    sums = covariance_sums.empty(k, bins, first)
    w = NOTHING if rows.w is None else rows.w
    covariance_sums.add_rows(rows.P, w, report, bins, first, rows.exact, EDGES, sums)
    return covariance_sums.matrix(sums)


def report_bins(bins: int) -> Array:
    """The uniform bin of each fine cell; where bins do not nest, by the nearest edges of cells."""
    return np.searchsorted(np.arange(1, bins) / bins, MIDDLES, "left").astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What one look at each row tells."""

    which: Array  # (n, ranks) columns of the largest values
    squares: Array  # (n,) Σp²
    counts: Array  # exact zeros, exact ones, values above 1, rows with another sum than 1, rows with several largest
    extremes: Array  # the largest excess over 1 and distance from sum 1

    def special(self, rows: Rows, true_zeros: int) -> Counts:
        """The special rows."""
        zeros, ones, above, inexact, ties = self.counts.tolist()
        if rows.logits is not None:
            zeros, ones = (int(counts.sum()) for counts in zeros_and_ones(rows.logits))
        return Counts(
            zeros=zeros,
            ones=ones,
            above=above,
            inexact_sums=inexact,
            ties=ties if self.which.shape[1] else 0,
            true_zeros=true_zeros,
            voted=len(rows.P) if rows.shares is not None else 0,
            excess=float(self.extremes[0]),
            worst_sum=float(self.extremes[1]),
        )


def _at_once(rows: Rows, ranks: int, bins: int | None) -> Counted:
    """All of it in one pass, where there are few classes and each row has one label."""
    assert rows.y is not None
    n, k = rows.P.shape
    survey = Survey(np.empty((0, ranks)), NOTHING, np.zeros(5, dtype=np.int64), np.zeros(2))
    scores = np.zeros((2, 3))
    report = report_bins(bins or 1)
    first = covariance_sums.first_of(report, k)
    pairs = covariance_sums.empty(k, bins or 0, first)
    look = (rows.P, rows.y, ranks, rows.rounding_tolerance, rows.exact, rows.single, EDGES)
    outputs = (survey.counts, survey.extremes, scores, report, bins or 0, first, pairs)
    cells = Cells.summed(ranks + k, len(PLAIN), lambda counts, sums: one_pass(*look, counts, sums, *outputs))
    brier, loss = (ScoreSums.counted(n, int(finite), s, ss) for finite, s, ss in scores.tolist())
    if rows.log_observed is not None:
        loss = ScoreSums.of(-rows.log_observed)
    null = None if bins is None else covariance_sums.matrix(pairs)
    return Counted(cells, null, dict(zip(SCORES, (brier, loss), strict=True)), survey.special(rows, loss.infinite))


def _surveyed(rows: Rows, ranks: int) -> Survey:
    """The largest values and the special rows of a block."""
    n, k = rows.P.shape
    which, squares = np.empty((n, ranks), dtype=np.int32), np.empty(n)

    def work(a: int, b: int) -> tuple[Array, Array]:
        P, counts, extremes = rows.P[a:b], np.zeros(5, dtype=np.int64), np.zeros(2)
        bits = P.view(np.int32 if rows.exact else np.int64)
        single.surveyed(P, bits, rows.rounding_tolerance, which[a:b], squares[a:b], counts, extremes)
        return counts, extremes

    counts, extremes = zip(*in_blocks(work, n, max(1, LONG // k)), strict=True)
    return Survey(which, squares, np.sum(counts, axis=0), np.max(extremes, axis=0))


def zeros_and_ones(logits: Array) -> tuple[Array, Array]:
    """How many probabilities of each row are exactly 0 and 1, (n,) both: only −inf says 0, and only beside it 1."""
    zero = np.isneginf(logits)
    if zero.ndim == 1:
        return zero.astype(np.int64), np.zeros(len(zero), dtype=np.int64)
    zeros = zero.sum(axis=1)
    return zeros, (zeros == zero.shape[1] - 1).astype(np.int64)


def row_scores(rows: Rows, squares: Array) -> tuple[Array, Array]:
    """The Brier score and the log loss of each row: over the vector, of the last column for two classes, mean over labels."""
    if rows.shares is None and rows.kind != "multilabel":
        brier, loss = np.empty(len(rows.P)), np.empty(len(rows.P))
        single.scored(rows.P, rows.y, squares, rows.single, brier, loss)
    elif rows.kind == "multilabel":
        assert rows.y is not None
        p, y = rows.P.ravel(), rows.y.ravel().astype(np.float64)
        brier = scores.brier(p, y).reshape(rows.P.shape).mean(axis=1)
        loss = scores.log_loss(p, y).reshape(rows.P.shape).mean(axis=1)
    else:
        assert rows.shares is not None
        p, y = (rows.P[:, 1], rows.shares[:, 1]) if rows.P.shape[1] == 2 else (rows.P, rows.shares)
        brier = scores.brier(p, y)
        loss = scores.log_loss(p, y) if rows.single else scores.log_loss(rows.P, rows.shares)
    return brier, loss if rows.log_observed is None else -rows.log_observed
