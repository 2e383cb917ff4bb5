"""Null draws row by row: labels drawn with their probabilities or residual signs flipped, added up into bin sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import map_blocks, sign_flips
from trueodds.kernels.bootstrap_sums import argsort_bins, sort_rows_by_cell
from trueodds.kernels.random_label_sums import (
    MAX_VECTORIZED_CELLS,
    DrawnLabels,
    needs_single_labels,
    sum_label_weights,
    sum_weights_of_labels,
)
from trueodds.kernels.random_labels import draw_labels_by_row
from trueodds.kernels.total_variation import drawn_total_variation
from trueodds.lenses.base import OutcomeCodes
from trueodds.resampling.bin_accumulators import AccumulatorLayout, stack_by_estimand
from trueodds.resampling.estimand import Estimand

MAX_BLOCK_LABELS = 2**26  # labels (one byte each) drawn at once


def draw_label_sums(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    cluster_share: float | None,
    *,
    share_integers: bool = False,
) -> list[Array]:
    """Null draws of statistics on bin sums, with labels drawn from the predicted probabilities.

    With `share_integers`, the labels are those of the other functions of this module with the same key.
    """
    layout = AccumulatorLayout(estimands)
    outcomes = [None] * len(layout.views) if preds.kind == "multilabel" else _outcome_codes_of_views(preds, estimands)
    tables = _label_accumulator_tables(layout, outcomes, preds, estimands)
    w, wp, _ = layout.observed_sums()

    P, weights, cluster, rows = preds.P, preds.w, preds.cluster, None
    is_multilabel = preds.kind == "multilabel"
    # Sorting the rows by cell makes consecutive rows add to the same accumulators.
    if layout.n_accumulators > MAX_VECTORIZED_CELLS and all(view.joint for view in layout.views):
        rows = argsort_bins(layout.cell_statistics[0].index, layout.cell_statistics[0].size)
        P, weights, tables = P[rows], weights[rows], tables[:, rows]
        cluster = None if cluster is None else cluster[rows]

    share = cluster_share or 0.0
    if not is_multilabel and (rows is not None or needs_single_labels(P.shape[1], layout.n_accumulators, share)):
        drawn = DrawnLabels(P, key, resamples, row_numbers=rows, cluster=cluster, cluster_probability=share)

        def draw_sums(start: int, stop: int) -> Array:
            """Σwy (draws, accumulators) of the draws from start to stop."""
            return sum_weights_of_labels(drawn.labels(start, stop), weights, tables, layout.n_accumulators)

    else:

        def draw_sums(start: int, stop: int) -> Array:
            """The same, without the labels of single rows."""
            return sum_label_weights(
                P,
                weights,
                tables,
                layout.n_accumulators,
                key,
                start,
                stop,
                independent=is_multilabel,
                allow_short_integers=not share_integers,
            )

    return _evaluate_in_blocks(estimands, layout, resamples, w, wp, draw_sums, progress)


def has_total_variation(preds: Predictions, estimand: Estimand) -> bool:
    """Whether the statistic of each view is the mean total variation distance of its cells, with one label per row."""
    if preds.kind == "multilabel" or estimand.cell_statistics is None:
        return False
    return all(getattr(cell_statistic, "is_mean_total_variation", False) for cell_statistic in estimand.cell_statistics)


def draw_total_variation(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _cluster_share: float | None,
) -> list[Array]:
    """Null draws of mean total variation distances, for independent rows."""
    statistics = []
    for i, estimand in enumerate(estimands):
        layout = AccumulatorLayout([estimand])
        _, wp, _ = layout.observed_sums()
        per_view = []
        for v, outcome in enumerate(estimand.lens.outcome_codes(preds)):
            w, cell_statistic = layout.views[v].w, layout.cell_statistics[v]
            rows, cell_starts = sort_rows_by_cell(cell_statistic.index, w, cell_statistic.size)
            per_view.append(
                drawn_total_variation(preds.P, outcome.code, w, wp[v][0], rows, cell_starts, key, resamples)
            )
        statistics.append(np.stack(per_view))
        if progress:
            progress((i + 1) / len(estimands))
    return statistics


def reads_labels(preds: Predictions, estimand: Estimand) -> bool:
    """Whether the statistic uses the label of each row instead of bin sums."""
    if preds.kind == "multilabel" or estimand.cell_statistics is None:
        return False
    return all(
        getattr(cell_statistic, "statistic_from_labels", None) is not None
        for cell_statistic in estimand.cell_statistics
    )


def draw_row_labels(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    cluster_share: float | None,
) -> list[Array]:
    """Null draws of statistics that use the label of each row."""
    statistics: list[list[list[Array]]] = [[[] for _ in estimand.views] for estimand in estimands]
    outcomes = [estimand.lens.outcome_codes(preds) for estimand in estimands]
    block = max(1, MAX_BLOCK_LABELS // preds.n)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        labels = draw_labels_by_row(
            preds.P, key, start, stop, cluster=preds.cluster, cluster_probability=cluster_share or 0.0
        )
        for i, estimand in enumerate(estimands):
            for v, cell_statistic in enumerate(estimand.cell_statistics or ()):
                statistics[i][v].append(cell_statistic.statistic_from_labels(outcomes[i][v].outcome_numbers(labels)))  # type: ignore[attr-defined]
        if progress:
            progress(stop / resamples)
    return [np.array([np.concatenate(values) for values in per_view]) for per_view in statistics]


def draw_sign_flips(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _cluster_share: float | None,
) -> list[Array]:
    """Null draws with the signs of the residuals of clusters (or rows) flipped at random."""
    layout = AccumulatorLayout(estimands)
    cluster = np.arange(preds.n) if preds.cluster is None else preds.cluster
    accumulator_index = layout.accumulator_index()
    predicted, observed = layout.predicted_and_observed()
    w, wp, _ = layout.observed_sums()
    base = np.bincount(accumulator_index.ravel(), predicted.ravel(), layout.n_accumulators)

    def draw_sums(start: int, stop: int) -> Array:
        """Σwy (draws, accumulators) of the draws from start to stop."""
        return base + sign_flips.sum_sign_flips(
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
    """Evaluate the statistics of all draws, whose Σwy `draw_sums` returns for a range of them."""

    def evaluate_block(drawn_sums: Array) -> list[Array]:
        """Statistic of each view from Σwy (draws, accumulators)."""
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
    """Outcome codes of each view of all estimands."""
    return [outcome for estimand in estimands for outcome in estimand.lens.outcome_codes(preds)]


def _label_accumulator_tables(
    layout: AccumulatorLayout,
    outcomes: Sequence[OutcomeCodes | None],
    preds: Predictions,
    estimands: Sequence[Estimand],
) -> Array:
    """Accumulator index of each row for each drawn label; views that use different labels share a table."""
    tables: list[Array] = []
    readers: list[list[tuple[Array, set[int]]]] = []  # by table: which rows read which labels
    columns = [
        c for estimand in estimands for c in (estimand.lens.class_columns(preds) if preds.kind == "multilabel" else [])
    ]
    for v, (cell_statistic, m, offset) in enumerate(
        zip(layout.cell_statistics, layout.widths, layout.offsets, strict=False)
    ):
        outcome = outcomes[v]
        if outcome is None:
            reads = {columns[v]}
            code = (np.arange(preds.k) == columns[v]).astype(np.int64)[None, :]
        else:
            code = outcome.code
            reads = set(np.flatnonzero(code[0] == 1)) if m == 1 and len(code) == 1 else set(range(preds.k))
        base = (offset + cell_statistic.index * m)[:, None]
        counted = layout.views[v].w[:, None] > 0  # rows outside a subgroup have weight 0
        table = next(
            (t for t, used in enumerate(readers) if not any(_share_labels(counted, reads, *u) for u in used)), None
        )
        if table is None:
            tables.append(np.full((preds.n, preds.k), -1, dtype=np.int32))
            readers.append([])
            table = len(tables) - 1
        readers[table].append((counted, reads))
        if m > 1:
            tables[table] = np.where(counted, base + code, tables[table]).astype(np.int32)
        elif len(code) == 1:
            columns_read = sorted(reads)
            tables[table][:, columns_read] = np.where(counted, base, tables[table][:, columns_read])
        else:
            tables[table] = np.where(counted & (code == 1), base, tables[table]).astype(np.int32)
    return np.stack(tables)


def _share_labels(rows: Array, labels: set[int], other_rows: Array, other_labels: set[int]) -> bool:
    """Whether two views use the same label of the same row."""
    return bool(labels & other_labels) and bool((rows & other_rows).any())
