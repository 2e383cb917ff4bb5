"""Sums over one block of rows, of which a tally is made: cells, proper scores, null covariance and special rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, map_blocks, row_statistics
from trueodds.kernels.fine_grid import CELL_EDGES, CELL_MIDDLES
from trueodds.kernels.outcome_covariance import (
    add_shared_bin_covariances,
    covariance_matrix,
    first_bin_edge,
    zero_covariance_sums,
)
from trueodds.tallies import proper_score_sums as scores
from trueodds.tallies.cells import Cells, cells_by_class, cells_by_rank
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.row_block import RowBlock
from trueodds.tallies.tally_sums import SpecialRowCounts

VALUES_PER_TASK = 2**22  # number of values per thread task
# What `summarize_rows` finds in a block, in the order of their outputs: fields of `SpecialRowCounts`.
SURVEY_COUNTS = ("zeros", "ones", "above", "inexact_sums", "ties")
SURVEY_EXTREMES = ("excess", "worst_sum")
EMPTY_ARRAY = as_plain_array(np.empty(0))  # stands for no weights, or for squares that are not needed


@dataclass(frozen=True, slots=True, eq=False)
class BlockSums:
    """The sums that a tally keeps of some rows."""

    cells: Cells
    null: Array | None  # upper triangle of the null covariance, as of a Tally
    scores: dict[str, ProperScoreSums]  # by the name of the score
    counts: SpecialRowCounts


def sum_block(rows: RowBlock, ranks: int, classes: range, bins: int | None) -> BlockSums:
    """Compute the sums of a block of rows.

    The cells are those of the largest probabilities (`ranks` of them, at most three), followed by those of the
    `classes`. The null covariance is computed for this number of uniform `bins`, and omitted if it is None.
    """
    k = rows.P.shape[1]
    survey = _survey_block(rows, ranks if k > 1 else 0)
    starts_and_cells = [(0, cells_by_rank(rows, survey.ranked_columns))] if ranks else []
    if len(classes):
        starts_and_cells.append((ranks, cells_by_class(rows, classes.start, classes.stop)))
    score_sums = {
        name: ProperScoreSums.from_scores(values, rows.w)
        for name, values in zip(SCORES, row_scores(rows, survey.squares), strict=True)
    }
    return BlockSums(
        Cells.concatenate_views(starts_and_cells),
        None if bins is None else null_covariance(rows, bins),
        score_sums,
        survey.special_row_counts(rows, score_sums["log_loss"].infinite),
    )


def null_covariance(rows: RowBlock, bins: int) -> Array:
    """Return Σ w²(δ_kl p_k − p_k p_l) between pairs of class and uniform bin, the upper triangle (K·bins, K·bins)."""
    k, bin_of_cell = rows.P.shape[1], report_bin_of_cells(bins)
    first = first_bin_edge(bin_of_cell, k)
    covariance_sums = zero_covariance_sums(k, bins, first)
    w = EMPTY_ARRAY if rows.w is None else rows.w
    add_shared_bin_covariances(rows.P, w, bin_of_cell, bins, first, rows.has_exact_cells, CELL_EDGES, covariance_sums)
    return covariance_matrix(covariance_sums)


def report_bin_of_cells(bins: int) -> Array:
    """Return the uniform bin of each cell, (cells,); edges that are not of the grid move to the nearest."""
    return np.searchsorted(np.arange(1, bins) / bins, CELL_MIDDLES, "left").astype(np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class RowSurvey:
    """Largest probabilities, squares and special rows of a block of n rows, found in one pass."""

    ranked_columns: Array  # (n, ranks) columns of the largest values
    squares: Array  # (n,) Σp²
    counts: Array  # (5,) SURVEY_COUNTS
    extremes: Array  # (2,) SURVEY_EXTREMES

    def special_row_counts(self, rows: RowBlock, true_zeros: int) -> SpecialRowCounts:
        counts = dict(zip(SURVEY_COUNTS, self.counts.tolist(), strict=True))
        if rows.logits is not None:
            counts["zeros"], counts["ones"] = (int(counts.sum()) for counts in count_zeros_and_ones(rows))
        if not self.ranked_columns.shape[1]:
            counts["ties"] = 0
        return SpecialRowCounts(
            **counts,
            **dict(zip(SURVEY_EXTREMES, self.extremes.tolist(), strict=True)),
            true_zeros=true_zeros,
            voted=len(rows.P) if rows.votes is not None else 0,
        )


def _zero_survey() -> tuple[Array, Array]:
    """Return zero counts and extremes, to which a kernel adds."""
    return np.zeros(len(SURVEY_COUNTS), dtype=np.int64), np.zeros(len(SURVEY_EXTREMES))


def _survey_block(rows: RowBlock, ranks: int) -> RowSurvey:
    """Find the largest values and the special rows of a block, with its rows split over threads."""
    n, k = rows.P.shape
    ranked_columns, squares = np.empty((n, ranks), dtype=np.int32), np.empty(n)

    def survey_task(a: int, b: int) -> tuple[Array, Array]:
        P, (counts, extremes) = rows.P[a:b], _zero_survey()
        bits = P.view(np.int32 if rows.has_exact_cells else np.int64)
        row_statistics.summarize_rows(
            P, bits, rows.rounding_tolerance, ranked_columns[a:b], squares[a:b], counts, extremes
        )
        return counts, extremes

    counts, extremes = zip(*map_blocks(survey_task, n, max(1, VALUES_PER_TASK // k)), strict=True)
    return RowSurvey(ranked_columns, squares, np.sum(counts, axis=0), np.max(extremes, axis=0))


def count_zeros_and_ones(rows: RowBlock) -> tuple[Array, Array]:
    """Number of probabilities of each row that are exactly 0 and 1, (n,) both, of rows with logits.

    Logits give exact zeros only if −inf; log odds, of two classes or of independent labels, are finite.
    """
    assert rows.logits is not None
    if rows.logits.ndim == 1 or rows.kind == "multilabel":
        return np.zeros(len(rows.P), dtype=np.int64), np.zeros(len(rows.P), dtype=np.int64)
    zero = np.isneginf(rows.logits)
    zeros = zero.sum(axis=1)
    return zeros, (zeros == zero.shape[1] - 1).astype(np.int64)


def row_scores(rows: RowBlock, squares: Array) -> tuple[Array, Array]:
    """Brier score and log loss of each row: of the vector, of the last column for two classes, or mean over labels."""
    if rows.votes is None and rows.kind != "multilabel":
        brier, loss = np.empty(len(rows.P)), np.empty(len(rows.P))
        row_statistics.score_rows(rows.P, rows.y, squares, rows.has_one_column, brier, loss)
    elif rows.kind == "multilabel":
        assert rows.y is not None
        p, y = rows.P.ravel(), rows.y.ravel().astype(np.float64)
        brier = scores.brier(p, y).reshape(rows.P.shape).mean(axis=1)
        loss = scores.log_loss(p, y).reshape(rows.P.shape).mean(axis=1)
    else:
        assert rows.votes is not None
        p, y = (rows.P[:, 1], rows.votes[:, 1]) if rows.P.shape[1] == 2 else (rows.P, rows.votes)
        brier = scores.brier(p, y)
        loss = scores.log_loss(p, y) if rows.has_one_column else scores.log_loss(rows.P, rows.votes)
    return brier, loss if rows.log_observed is None else -rows.log_observed
