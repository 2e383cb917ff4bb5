"""Null draws row by row: the label of each row is drawn from its probabilities, or the sign of its residual is flipped.

Most statistics depend on sums by bin, which are added up without storing the labels. `null_distribution.null_draws`
chooses among the functions `draw_…`, which therefore have the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import two_columns
from trueodds.kernels import map_blocks, random_streams
from trueodds.kernels.bootstrap_sums import argsort_bins, sort_rows_by_cell
from trueodds.kernels.random_label_sums import (
    MAX_VECTORIZED_CELLS,
    DrawnLabels,
    drawn_total_variation,
    needs_single_labels,
    sum_label_weights,
    sum_weights_of_labels,
)
from trueodds.kernels.random_labels import draw_labels_by_row
from trueodds.lenses.base import OutcomeCodes
from trueodds.resampling.estimand import AccumulatorLayout, Estimand, select_rows, stack_by_estimand

MAX_BLOCK_LABELS = 2**26  # labels (one byte each) drawn at once
MAX_SINGLE_VOTES = 1_000_000  # votes of all rows up to which single votes are drawn


class LabelUnits(NamedTuple):
    """What labels are drawn for: rows, or the single votes of rows with several votes."""

    P: Array  # (units, K) probabilities
    w: Array  # (units,) weights; the votes of a row share the weight of the row
    cluster: Array | None  # (units,) cluster of each unit, which for votes is at least their row; None for single rows
    row: Array | None  # (units,) row of each vote; None if the units are rows
    numbers: Array | None = None  # (units,) numbers of the units in the random streams; None for 0, 1, …

    def shares_by_row(self, labels: Array, n_rows: int) -> Array:
        """Return the share of each class among the votes of each row, (n_rows, K), from the label of each vote."""
        assert self.row is not None
        k = self.P.shape[1]
        counts = np.bincount(self.row * k + labels, minlength=n_rows * k).reshape(n_rows, k)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def votes_per_row(preds: Predictions) -> Array | None:
    """Return the number of votes of each row, at most MAX_SINGLE_VOTES; None if single votes cannot be drawn."""
    if preds.votes is None or preds.counts is None:
        return None
    counts = np.rint(preds.counts).astype(np.int64)
    return counts if counts.sum() <= MAX_SINGLE_VOTES else None


def label_units(preds: Predictions, rows: Array | None = None) -> LabelUnits:
    """Return the units whose labels are drawn: votes if their number is known, else rows.

    Of a subset of `rows`, each unit keeps its number and its cluster, so that it has the same labels in every subset.
    """
    counts, cluster, subset = votes_per_row(preds), preds.cluster, select_rows(preds, rows)
    if cluster is not None and rows is not None:
        cluster = cluster[rows]  # those of the subset are renumbered
    if counts is None:
        return LabelUnits(subset.P, subset.w, cluster, None, rows)
    first_units = np.cumsum(counts) - counts
    row_numbers = np.arange(preds.n) if rows is None else rows
    counts, first_units = counts[row_numbers], first_units[row_numbers]
    row = np.repeat(np.arange(subset.n), counts)
    numbers = None if rows is None else np.arange(len(row)) + (first_units - np.cumsum(counts) + counts)[row]
    cluster = row_numbers if cluster is None else cluster
    return LabelUnits(subset.P[row], (subset.w / counts)[row], cluster[row], row, numbers)


def draw_label_sums(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    cluster_share: float | None,
    *,
    short_integers: bool = False,
) -> list[Array]:
    """Return null draws (views, draws) of estimands on bin sums, with labels drawn from the predicted probabilities.

    All estimands have the same rows. The labels depend on `key` only. They are those of the other functions of this
    module with the same key, unless `short_integers` chooses a faster generator for rows of weight 1. `cluster_share`
    is the probability that a cluster, or the votes of a row, share a random number, None for independent rows (see
    `null_distribution.null_draws`).
    """
    layout = AccumulatorLayout(estimands)
    P, weights, cluster, row_of_unit, numbers = label_units(preds, estimands[0].rows)
    preds = select_rows(preds, estimands[0].rows)
    outcomes = [None] * len(layout.views) if preds.kind == "multilabel" else _outcome_codes_of_views(preds, estimands)
    tables = _label_accumulator_tables(layout, outcomes, preds, estimands)
    w, wp, _ = layout.observed_sums()
    if row_of_unit is not None:
        tables = tables.take(row_of_unit, axis=1)
    is_sorted, is_multilabel = False, preds.kind == "multilabel"
    # With many cells of vectors the rows are sorted by cell, so that consecutive rows add to the same accumulators.
    if layout.n_accumulators > MAX_VECTORIZED_CELLS and all(view.joint for view in layout.views):
        index = layout.cell_statistics[0].index
        order = argsort_bins(index if row_of_unit is None else index[row_of_unit], layout.cell_statistics[0].size)
        is_sorted, P, weights, tables = True, P[order], weights[order], tables.take(order, axis=1)
        cluster = None if cluster is None else cluster[order]
        numbers = order if numbers is None else numbers[order]

    share = cluster_share or 0.0
    if not is_multilabel and (is_sorted or needs_single_labels(P.shape[1], layout.n_accumulators, share)):
        drawn = DrawnLabels(P, key, resamples, row_numbers=numbers, cluster=cluster, cluster_probability=share)

        def draw_sums(start: int, stop: int) -> Array:
            """Σwy (draws, accumulators) of the draws from start to stop − 1."""
            return sum_weights_of_labels(drawn.labels(start, stop), weights, tables, layout.n_accumulators)

    elif is_multilabel and share > 0:
        columns = [
            DrawnLabels(
                two_columns(P[:, k]),
                label_key(key, k),
                resamples,
                row_numbers=numbers,
                cluster=cluster,
                cluster_probability=share,
            )
            for k in range(preds.k)
        ]

        def draw_sums(start: int, stop: int) -> Array:
            """The same sums for independent labels, each of which has a random number of its own for every cluster."""
            column_sums = [
                sum_weights_of_labels(
                    drawn.labels(start, stop),
                    weights,
                    np.stack([np.full_like(tables[:, :, k], -1), tables[:, :, k]], axis=2),
                    layout.n_accumulators,
                )
                for k, drawn in enumerate(columns)
            ]
            return np.asarray(np.sum(column_sums, axis=0))

    else:

        def draw_sums(start: int, stop: int) -> Array:
            return sum_label_weights(
                P,
                weights,
                tables,
                layout.n_accumulators,
                key,
                start,
                stop,
                independent=is_multilabel,
                short_integers=short_integers,
                row_numbers=numbers,
            )

    return _evaluate_in_blocks(estimands, layout, resamples, w, wp, draw_sums, progress)


def label_key(key: int, k: int) -> int:
    return int(np.random.default_rng([key, k]).integers(2**63 - 1))


def has_total_variation(preds: Predictions, estimand: Estimand) -> bool:
    """Whether `draw_total_variation` applies: each value is a mean distance of cells, and rows have one label each."""
    if preds.kind == "multilabel" or preds.votes is not None or estimand.cell_statistics is None:
        return False
    return all(cell_statistic.is_mean_total_variation for cell_statistic in estimand.cell_statistics)


def draw_total_variation(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _cluster_share: float | None,
) -> list[Array]:
    """Return null draws (views, draws) of mean total variation distances by cell, for independent rows."""
    statistics = []
    for i, estimand in enumerate(estimands):
        layout = AccumulatorLayout([estimand])
        _, wp, _ = layout.observed_sums()
        subset, per_view = select_rows(preds, estimand.rows), []
        for v, outcome in enumerate(estimand.lens.outcome_codes(subset)):
            w, cell_statistic = layout.views[v].w, layout.cell_statistics[v]
            rows, cell_starts = sort_rows_by_cell(cell_statistic.index, w, cell_statistic.size)
            per_view.append(
                drawn_total_variation(
                    subset.P, outcome.code, w, wp[v][0], rows, cell_starts, key, resamples, estimand.rows
                )
            )
        statistics.append(np.stack(per_view))
        if progress:
            progress((i + 1) / len(estimands))
    return statistics


def uses_row_labels(preds: Predictions, estimand: Estimand) -> bool:
    """Whether `draw_row_labels` applies: the statistic uses the single label of each row instead of bin sums."""
    if preds.kind == "multilabel" or preds.votes is not None or estimand.cell_statistics is None:
        return False
    return all(cell_statistic.statistic_from_labels is not None for cell_statistic in estimand.cell_statistics)


def draw_row_labels(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    cluster_share: float | None,
) -> list[Array]:
    """Return null draws (views, draws) of statistics that use the label of each row."""
    statistics: list[list[list[Array]]] = [[[] for _ in estimand.views] for estimand in estimands]
    outcome_codes = [estimand.lens.outcome_codes(select_rows(preds, estimand.rows)) for estimand in estimands]
    block_size = max(1, MAX_BLOCK_LABELS // preds.n)
    for start in range(0, resamples, block_size):
        stop = min(start + block_size, resamples)
        labels = draw_labels_by_row(
            preds.P, key, start, stop, cluster=preds.cluster, cluster_probability=cluster_share or 0.0
        )
        for i, estimand in enumerate(estimands):
            for v, cell_statistic in enumerate(estimand.cell_statistics or ()):
                labels_of_rows = labels if estimand.rows is None else labels[estimand.rows]
                view_labels = outcome_codes[i][v].outcome_numbers(labels_of_rows)
                statistics[i][v].append(cell_statistic.statistic_from_labels(view_labels))  # type: ignore[misc]
        if progress:
            progress(stop / resamples)
    return [np.array([np.concatenate(blocks) for blocks in by_view]) for by_view in statistics]


def draw_sign_flips(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _cluster_share: float | None,
) -> list[Array]:
    """Return null draws (views, draws) with the signs of the residuals of clusters (or rows) flipped at random.

    The rows have the same signs in every subset of the rows.
    """
    layout, rows = AccumulatorLayout(estimands), estimands[0].rows
    cluster = np.arange(preds.n) if preds.cluster is None else preds.cluster
    cluster = cluster if rows is None else cluster[rows]
    accumulator_index = layout.accumulator_index()
    predicted, observed = layout.predicted_and_observed()
    w, wp, _ = layout.observed_sums()
    predicted_sums = np.bincount(accumulator_index.ravel(), predicted.ravel(), layout.n_accumulators)

    def draw_sums(start: int, stop: int) -> Array:
        return predicted_sums + random_streams.sum_sign_flips(
            cluster, accumulator_index, observed - predicted, layout.n_accumulators, key, start, stop
        )

    return _evaluate_in_blocks(estimands, layout, resamples, w, wp, draw_sums, progress)


def _evaluate_in_blocks(
    estimands: Sequence[Estimand],
    layout: AccumulatorLayout,
    resamples: int,
    w: list[Array],
    wp: list[Array],
    draw_sums: Callable[[int, int], Array],
    progress: Callable[[float], None] | None,
) -> list[Array]:
    """Return the statistics (views, draws) of each estimand, from observed Σw and Σwp by view and drawn Σwy."""

    def evaluate_block(drawn_sums: Array) -> list[Array]:
        drawn = layout.split_by_view(drawn_sums)
        return [
            cell_statistic.statistic(w[v], wp[v], wy)
            for v, (cell_statistic, wy) in enumerate(zip(layout.cell_statistics, drawn, strict=True))
        ]

    statistics: list[list[Array]] = []
    for start in range(0, resamples, layout.draws_per_block):
        stop = min(start + layout.draws_per_block, resamples)
        drawn_sums = draw_sums(start, stop)
        statistics += map_blocks(
            lambda a, b, drawn_sums=drawn_sums: evaluate_block(drawn_sums[a:b]),  # type: ignore[misc]
            stop - start,
            min(layout.draws_per_thread, -(-(stop - start) // 2)),
        )
        if progress:
            progress(stop / resamples)
    return stack_by_estimand(estimands, [np.concatenate(values) for values in zip(*statistics, strict=True)])


def _outcome_codes_of_views(preds: Predictions, estimands: Sequence[Estimand]) -> list[OutcomeCodes | None]:
    """Return how labels are mapped to the outcomes of each view of all estimands."""
    return [codes for estimand in estimands for codes in estimand.lens.outcome_codes(preds)]


def _label_accumulator_tables(
    layout: AccumulatorLayout,
    outcome_codes: Sequence[OutcomeCodes | None],
    preds: Predictions,
    estimands: Sequence[Estimand],
) -> Array:
    """Return which accumulator a row adds its weight to for each label it can draw, (tables, n, K); −1 for none.

    A drawn label is looked up in every table. Views that depend on different labels, or on different rows, share a
    table, which saves look-ups. `outcome_codes` has one item per view; None for multilabel predictions.
    """
    columns = []  # of multilabel predictions: the label of each view
    if preds.kind == "multilabel":
        columns = [column for estimand in estimands for column in estimand.lens.class_columns(preds)]
    uses_by_table: list[list[_LabelUse]] = []
    uses, table_of_view = [], []
    for v, (view, m) in enumerate(zip(layout.views, layout.widths, strict=True)):
        codes = outcome_codes[v]
        if codes is None:
            labels = {columns[v]}
            code = (np.arange(preds.k) == columns[v]).astype(np.int64)[None, :]
        else:
            code = codes.code
            labels = set(np.flatnonzero(code[0] == 1)) if m == 1 and len(code) == 1 else set(range(preds.k))
        use = _LabelUse(view.w[:, None] > 0, code, labels)  # rows outside a subgroup have weight 0
        t = _first_table_without_conflict(uses_by_table, use)
        if t == len(uses_by_table):
            uses_by_table.append([])
        uses_by_table[t].append(use)
        uses.append(use)
        table_of_view.append(t)

    tables = np.full((len(uses_by_table), preds.n, preds.k), -1, dtype=np.int32)
    for t, use, cell_statistic, m, offset in zip(
        table_of_view, uses, layout.cell_statistics, layout.widths, layout.offsets, strict=False
    ):
        first_accumulator = (offset + cell_statistic.index * m)[:, None].astype(np.int32)
        if m > 1:
            np.add(first_accumulator, use.code, out=tables[t], where=use.rows, casting="same_kind")
        elif len(use.code) == 1:
            for label in use.labels:
                np.copyto(tables[t][:, label], first_accumulator[:, 0], where=use.rows[:, 0])
        else:
            np.copyto(tables[t], first_accumulator, where=use.rows & (use.code == 1))
    return tables


class _LabelUse(NamedTuple):
    rows: Array  # (n, 1) bool
    code: Array  # (1, K) or (n, K) outcome of each label
    labels: set[int]

    def conflicts_with(self, other: _LabelUse) -> bool:
        """Whether two views depend on the same label of the same row."""
        return bool(self.labels & other.labels) and bool((self.rows & other.rows).any())


def _first_table_without_conflict(uses_by_table: Sequence[Sequence[_LabelUse]], use: _LabelUse) -> int:
    """Return the number of the first table whose views depend on other labels or rows; the number of tables if none."""
    for t, uses in enumerate(uses_by_table):
        if not any(use.conflicts_with(other) for other in uses):
            return t
    return len(uses_by_table)
