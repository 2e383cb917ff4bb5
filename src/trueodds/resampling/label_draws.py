"""Draws of the outcomes of rows: of labels or votes from the predicted probabilities, and of the signs of residuals.

Weights and predictions stay, so that of the sums of cells only Σwy is drawn, without storing the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import two_columns
from trueodds.kernels import map_blocks, random_labels
from trueodds.kernels.bins import sums_by_cell
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.kernels.random_labels import (
    MAX_VECTORIZED_CELLS,
    DrawnLabels,
    draw_labels,
    draw_labels_by_row,
    needs_single_labels,
    sum_label_weights,
    sum_weights_of_labels,
)
from trueodds.lenses.base import OutcomeCodes
from trueodds.resampling.draws import ROW_DRAWS_PER_BLOCK, DrawnRows, Draws, EvaluateSums
from trueodds.resampling.estimand import Estimand, select_rows

T = TypeVar("T")
Progress = Callable[[float], None] | None

MAX_BLOCK_LABELS = 2**26  # labels (one byte each) drawn at once
MAX_SINGLE_VOTES = 1_000_000  # votes of all rows up to which single votes are drawn
MAX_DRAWS_PER_THREAD = 128  # draws that a thread adds up at once


class CellLayout:
    """Which accumulator of one array each row adds to, for the bins of all views of some estimands.

    The accumulators of a view, from `offsets` of the view on, are contiguous; a bin of a joint view of m outcomes, the
    `widths` of the view, has m of them.
    """

    def __init__(self, estimands: Sequence[Estimand]) -> None:
        self.estimands, self.rows = estimands, estimands[0].rows  # all estimands have the same rows
        self.views = [view for estimand in estimands for view in estimand.views]
        self.cell_statistics = [
            cell_statistic for estimand in estimands for cell_statistic in estimand.cell_statistics or ()
        ]
        self.widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        sizes = [cell_statistic.size * m for cell_statistic, m in zip(self.cell_statistics, self.widths, strict=True)]
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.n_accumulators = int(self.offsets[-1])

    @property
    def draws_per_block(self) -> int:
        """Number of draws in memory at once, such that their accumulators take at most 32 MB."""
        return max(1, min(4096, 2**22 // max(1, self.n_accumulators)))

    @property
    def draws_per_thread(self) -> int:
        return max(1, min(MAX_DRAWS_PER_THREAD, self.draws_per_block // 2))

    def accumulator_index(self) -> Array:
        """Accumulator index of each row and column, (n, columns); a joint view has one column per outcome."""
        columns = []
        for cell_statistic, m, offset in zip(self.cell_statistics, self.widths, self.offsets, strict=False):
            columns += [offset + cell_statistic.index * m + j for j in range(m)]
        return np.stack(columns, axis=1).astype(np.int32)

    def predicted_and_observed(self) -> tuple[Array, Array]:
        """wp and wy of each row for the columns of `accumulator_index`, (n, columns)."""
        predicted = [view.w[:, None] * (view.p if view.joint else view.p[:, None]) for view in self.views]
        observed = [view.w[:, None] * (view.y if view.joint else view.y[:, None]) for view in self.views]
        return np.concatenate(predicted, axis=1), np.concatenate(observed, axis=1)

    def split_by_view(self, sums: Array) -> list[Array]:
        """Split sums (draws, n_accumulators) by view: (draws, bins), or (draws, bins, m) for a joint view."""
        by_view = []
        for cell_statistic, m, start, stop in zip(
            self.cell_statistics, self.widths, self.offsets[:-1], self.offsets[1:], strict=True
        ):
            view_sums = sums[:, start:stop]
            by_view.append(view_sums.reshape(len(sums), cell_statistic.size, m) if m > 1 else view_sums)
        return by_view

    def fixed_sums(self) -> list[tuple[Array, Array]]:
        """Σw (1, bins) and Σwp (1, bins) or (1, bins, m) of each view, which draws of outcomes keep."""
        sums = []
        for cell_statistic, view in zip(self.cell_statistics, self.views, strict=True):
            index, size = cell_statistic.index, cell_statistic.size
            sums.append((sums_by_cell(index, view.w, size)[None], sums_by_cell(index, view.p, size, view.w)[None]))
        return sums


class OutcomeDraws(Draws):
    """Draws of the outcomes of rows, of which a subclass draws the sums by cell and the outcomes of the rows."""

    def __init__(self, preds: Predictions, n_draws: int, progress: Progress = None) -> None:
        self.preds, self.n_draws, self.progress = preds, n_draws, progress

    def outcome_sums(self, layout: CellLayout) -> Callable[[int, int], Array]:
        """Return the function that draws Σwy (draws, accumulators) of the draws from start to stop − 1."""
        raise NotImplementedError

    def draw_rows(self, start: int, stop: int) -> Iterator[Array]:
        """Yield what is drawn for each row: labels (n,), outcomes of several labels or shares of votes (n, K)."""
        raise NotImplementedError

    def outcomes(self, estimand: Estimand, v: int, drawn: Array, codes: OutcomeCodes | None) -> Array:
        """Return the outcomes of the rows of view v of an estimand, from what is `drawn` for them (rows, …)."""
        m = estimand.views[v].p.shape[1] if estimand.views[v].joint else 1
        if codes is None:
            return drawn[:, estimand.lens.class_columns(self.preds)[v]]
        return codes.outcomes_of_labels(drawn, m) if drawn.ndim == 1 else codes.outcome_shares(drawn, m)

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        """Apply `evaluate` to the drawn sums of each view; all estimands have the same rows."""
        layout = CellLayout(estimands)
        draw_sums, fixed_sums = self.outcome_sums(layout), layout.fixed_sums()
        blocks: list[list[T]] = []
        for start in range(0, self.n_draws, layout.draws_per_block):
            stop = min(start + layout.draws_per_block, self.n_draws)
            drawn_sums = draw_sums(start, stop)

            def evaluate_block(first: int, last: int, drawn_sums: Array = drawn_sums) -> list[T]:
                by_view = layout.split_by_view(drawn_sums[first:last])
                return [evaluate(v, *fixed_sums[v], wy) for v, wy in enumerate(by_view)]

            blocks += map_blocks(evaluate_block, stop - start, min(layout.draws_per_thread, -(-(stop - start) // 2)))
            if self.progress:
                self.progress(stop / self.n_draws)
        return [list(view_blocks) for view_blocks in zip(*blocks, strict=True)]

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        codes = outcome_codes(self.preds, estimands)
        for start in range(0, self.n_draws, ROW_DRAWS_PER_BLOCK):
            stop = min(start + ROW_DRAWS_PER_BLOCK, self.n_draws)
            for drawn in self.draw_rows(start, stop):
                yield [
                    [
                        [view.with_y(self.outcomes(estimand, v, estimand_rows(estimand, drawn), view_codes))]
                        for v, (view, view_codes) in enumerate(zip(estimand.views, estimand_codes, strict=True))
                    ]
                    for estimand, estimand_codes in zip(estimands, codes, strict=True)
                ]
            if self.progress:
                self.progress(stop / self.n_draws)


def estimand_rows(estimand: Estimand, x: Array) -> Array:
    """Return the values x (n, …) of the rows of an estimand."""
    return x if estimand.rows is None else x[estimand.rows]


def outcome_codes(preds: Predictions, estimands: Sequence[Estimand]) -> list[Sequence[OutcomeCodes | None]]:
    """Return how labels are mapped to the outcomes of each view of each estimand; None for independent labels."""
    if preds.kind == "multilabel":
        return [[None] * len(estimand.views) for estimand in estimands]
    return [estimand.lens.outcome_codes(select_rows(preds, estimand.rows)) for estimand in estimands]


class SignFlips(OutcomeDraws):
    """Residuals of whole clusters (or rows) with their signs flipped at random: the same signs in every subset of rows.

    The signs depend on `key` only.
    """

    def __init__(self, preds: Predictions, n_draws: int, key: int, progress: Progress = None) -> None:
        super().__init__(preds, n_draws, progress)
        self.key, self.cluster = key, np.arange(preds.n) if preds.cluster is None else preds.cluster

    def outcome_sums(self, layout: CellLayout) -> Callable[[int, int], Array]:
        cluster = self.cluster if layout.rows is None else self.cluster[layout.rows]
        index, (predicted, observed) = layout.accumulator_index(), layout.predicted_and_observed()
        predicted_sums = np.bincount(index.ravel(), predicted.ravel(), layout.n_accumulators)
        return lambda start, stop: (
            predicted_sums
            + random_labels.sum_sign_flips(
                cluster, index, observed - predicted, layout.n_accumulators, self.key, start, stop
            )
        )

    def draw_rows(self, start: int, stop: int) -> Iterator[Array]:
        signs = random_labels.random_signs(int(self.cluster.max()) + 1, self.key, start, stop)
        return iter(signs[:, self.cluster])

    def outcomes(self, estimand: Estimand, v: int, drawn: Array, codes: OutcomeCodes | None) -> Array:
        view = estimand.views[v]
        return view.p + (drawn[:, None] if view.joint else drawn) * (view.y - view.p)


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


class Redraw(OutcomeDraws):
    """Labels of rows, or of their single votes, drawn from the predicted probabilities.

    The labels depend on `key` only, unless `short_integers` chooses a faster generator for rows of weight 1.
    `cluster_share` is the probability that a cluster, or the votes of a row, share a random number (see
    `null_distribution.null_draws`).
    """

    def __init__(
        self,
        preds: Predictions,
        n_draws: int,
        key: int,
        progress: Progress = None,
        *,
        cluster_share: float = 0.0,
        short_integers: bool = False,
    ) -> None:
        super().__init__(preds, n_draws, progress)
        self.key, self.cluster_share, self.short_integers = key, cluster_share, short_integers

    def outcome_sums(self, layout: CellLayout) -> Callable[[int, int], Array]:
        P, weights, cluster, row_of_unit, numbers = label_units(self.preds, layout.rows)
        size, is_multilabel, is_sorted = layout.n_accumulators, self.preds.kind == "multilabel", False
        tables = _label_accumulator_tables(layout, select_rows(self.preds, layout.rows))
        if row_of_unit is not None:
            tables = tables.take(row_of_unit, axis=1)
        # With many cells of vectors the rows are sorted by cell, so that consecutive rows add to the same accumulators.
        if size > MAX_VECTORIZED_CELLS and all(view.joint for view in layout.views):
            index = layout.cell_statistics[0].index
            order = argsort_bins(index if row_of_unit is None else index[row_of_unit], layout.cell_statistics[0].size)
            is_sorted, P, weights, tables = True, P[order], weights[order], tables.take(order, axis=1)
            cluster = None if cluster is None else cluster[order]
            numbers = order if numbers is None else numbers[order]

        def drawn_labels(P: Array, key: int) -> DrawnLabels:
            return DrawnLabels(
                P, key, self.n_draws, row_numbers=numbers, cluster=cluster, cluster_probability=self.cluster_share
            )

        if not is_multilabel and (is_sorted or needs_single_labels(P.shape[1], size, self.cluster_share)):
            drawn = drawn_labels(P, self.key)
            return lambda start, stop: sum_weights_of_labels(drawn.labels(start, stop), weights, tables, size)
        if is_multilabel and self.cluster_share > 0:  # each label has a random number of its own for every cluster
            columns = [drawn_labels(two_columns(P[:, k]), label_key(self.key, k)) for k in range(self.preds.k)]
            column_tables = [
                np.stack([np.full_like(tables[:, :, k], -1), tables[:, :, k]], axis=2) for k in range(self.preds.k)
            ]
            return lambda start, stop: np.asarray(
                sum(
                    sum_weights_of_labels(drawn.labels(start, stop), weights, tables_of_label, size)
                    for drawn, tables_of_label in zip(columns, column_tables, strict=True)
                )
            )
        return lambda start, stop: sum_label_weights(
            P,
            weights,
            tables,
            size,
            self.key,
            start,
            stop,
            independent=is_multilabel,
            short_integers=self.short_integers,
            row_numbers=numbers,
        )

    def draw_rows(self, start: int, stop: int) -> Iterator[Array]:
        preds, units = self.preds, label_units(self.preds)
        share: dict[str, Any] = {"cluster": units.cluster, "cluster_probability": self.cluster_share}
        if preds.kind == "multilabel" and self.cluster_share > 0:
            columns = [
                draw_labels(two_columns(preds.P[:, k]), label_key(self.key, k), start, stop, **share)
                for k in range(preds.k)
            ]
            return iter(np.stack(columns, axis=2) > 0)
        if preds.kind == "multilabel":
            return (np.random.default_rng([self.key, r]).random(preds.p.shape) < preds.p for r in range(start, stop))
        labels = draw_labels(units.P, self.key, start, stop, **share)
        return iter(labels) if units.row is None else (units.shares_by_row(drawn, preds.n) for drawn in labels)

    def evaluate_labels(self, estimands: Sequence[Estimand]) -> list[Array]:
        """Return the values (views, draws) of statistics that use the label of each row, which is faster than sums."""
        codes, block_size = outcome_codes(self.preds, estimands), max(1, MAX_BLOCK_LABELS // self.preds.n)
        blocks: list[list[list[Array]]] = [[] for _ in estimands]
        for start in range(0, self.n_draws, block_size):
            stop = min(start + block_size, self.n_draws)
            labels = draw_labels_by_row(
                self.preds.P,
                self.key,
                start,
                stop,
                cluster=self.preds.cluster,
                cluster_probability=self.cluster_share,
            )
            for estimand, estimand_codes, estimand_blocks in zip(estimands, codes, blocks, strict=True):
                labels_of_rows = estimand_rows(estimand, labels)
                estimand_blocks.append(
                    [
                        statistic.statistic_from_labels(view_codes.outcome_numbers(labels_of_rows))  # type: ignore[misc, union-attr]
                        for statistic, view_codes in zip(estimand.cell_statistics or (), estimand_codes, strict=True)
                    ]
                )
            if self.progress:
                self.progress(stop / self.n_draws)
        return [np.concatenate(estimand_blocks, axis=1) for estimand_blocks in blocks]


def uses_row_labels(preds: Predictions, estimand: Estimand) -> bool:
    """Whether `Redraw.evaluate_labels` applies: the statistic uses the single label of each row instead of bin sums."""
    if preds.kind == "multilabel" or preds.votes is not None or estimand.cell_statistics is None:
        return False
    return all(cell_statistic.statistic_from_labels is not None for cell_statistic in estimand.cell_statistics)


def label_key(key: int, k: int) -> int:
    return int(np.random.default_rng([key, k]).integers(2**63 - 1))


class VoteRedraw(OutcomeDraws):
    """The votes of every row, or its one label, drawn as under a calibrated model; statistics require the rows."""

    keeps_cells = False

    def __init__(self, preds: Predictions, n_draws: int, key: int, progress: Progress = None) -> None:
        if preds.votes is not None and preds.counts is None:
            raise InputError(
                "TO205",
                "Redrawing votes requires their number per row.",
                "votes as shares",
                "Pass the votes as integer counts.",
            )
        super().__init__(preds, n_draws, progress)
        self.rng = np.random.default_rng(key)
        self.P = np.maximum(preds.P.astype(np.float64), 0.0)  # 1 − p may round below 0
        if preds.kind != "multilabel":
            self.P = self.P / self.P.sum(axis=1, keepdims=True)
        self.count = (
            np.ones(preds.n, dtype=np.int64) if preds.counts is None else np.rint(preds.counts).astype(np.int64)
        )

    def draw_rows(self, start: int, stop: int) -> Iterator[Array]:
        for _ in range(start, stop):
            if self.preds.kind == "multilabel":
                yield self.rng.random(self.P.shape) < self.P
            else:
                yield self.rng.multinomial(self.count, self.P) / self.count[:, None]


class RowRedraw(Draws):
    """Rows drawn with replacement and then their labels; every draw chooses all partitions again."""

    keeps_cells = False

    def __init__(self, preds: Predictions, n_draws: int, rng: np.random.Generator, progress: Progress = None) -> None:
        self.preds = preds if preds.weight is None else preds[preds.weight > 0]  # rows of weight 0 do not count
        self.n_draws, self.rng, self.progress = n_draws, rng, progress

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        for r in range(self.n_draws):
            sample = self.preds[self.rng.integers(0, self.preds.n, self.preds.n)]
            (labels,) = Redraw(sample, 1, stream_key(self.rng)).draw_rows(0, 1)
            sample = sample.with_labels(labels)
            yield [[[view] for view in estimand.lens.views(sample)] for estimand in estimands]
            if self.progress and r % ROW_DRAWS_PER_BLOCK == 0:
                self.progress(r / self.n_draws)


MAX_LABELINGS = 2**20  # largest number of labelings that are enumerated
LABELINGS_PER_BLOCK = 2**12  # labelings evaluated at once


class AllLabelings(OutcomeDraws):
    """Every possible labeling of a few rows, with its probability: all classes of positive probability of all rows.

    Raises InputError if there are more than MAX_LABELINGS of them, and for rows that are not independent with one label
    each.
    """

    def __init__(self, preds: Predictions) -> None:
        if preds.kind == "multilabel" or preds.cluster is not None:
            raise InputError(
                "TO205",
                "Enumerating all labelings requires independent rows with one label each.",
                "independent labels" if preds.cluster is None else "clusters",
                "Leave redraw out.",
            )
        P = np.asarray(preds.P, dtype=np.float64)
        self.P = P / P.sum(axis=1, keepdims=True)
        self.allowed = [np.flatnonzero(row > 0) for row in self.P]
        n_labelings = float(np.prod([float(len(classes)) for classes in self.allowed]))
        if n_labelings > MAX_LABELINGS:
            raise InputError(
                "TO205",
                f"There are more than {MAX_LABELINGS:,} labelings of these rows.",
                f"{preds.n:,} rows, {n_labelings:.3g} labelings",
                "Leave redraw out: labels are drawn at random.",
            )
        super().__init__(preds, int(n_labelings))

    @property
    def probabilities(self) -> Array:
        """The probability of each labeling."""
        rows = np.arange(self.preds.n)
        return np.concatenate([self.P[rows, self._labels(*span)].prod(axis=1) for span in self._spans])

    @property
    def _spans(self) -> list[tuple[int, int]]:
        starts = range(0, self.n_draws, LABELINGS_PER_BLOCK)
        return [(start, min(start + LABELINGS_PER_BLOCK, self.n_draws)) for start in starts]

    def _labels(self, start: int, stop: int) -> Array:
        """Labels (labelings, n). A labeling is a number whose digit of row i selects one of the classes of this row."""
        digits = np.unravel_index(np.arange(start, stop), [len(classes) for classes in self.allowed])
        return np.stack([classes[digit] for classes, digit in zip(self.allowed, digits, strict=True)], axis=1)

    def outcome_sums(self, layout: CellLayout) -> Callable[[int, int], Array]:
        tables = _label_accumulator_tables(layout, self.preds)
        return lambda start, stop: sum_weights_of_labels(
            self._labels(start, stop).T, self.preds.w, tables, layout.n_accumulators
        )

    def draw_rows(self, start: int, stop: int) -> Iterator[Array]:
        return iter(self._labels(start, stop))


def _label_accumulator_tables(layout: CellLayout, preds: Predictions) -> Array:
    """Return which accumulator a row adds its weight to for each label it can draw, (tables, n, K); −1 for none.

    A drawn label is looked up in every table. Views that depend on different labels, or on different rows, share a
    table, which saves look-ups. `preds` are the rows of the layout.
    """
    columns = []  # of multilabel predictions: the label of each view
    if preds.kind == "multilabel":
        columns = [column for estimand in layout.estimands for column in estimand.lens.class_columns(preds)]
        codes_of_views: list[OutcomeCodes | None] = [None] * len(layout.views)
    else:
        codes_of_views = [codes for estimand in layout.estimands for codes in estimand.lens.outcome_codes(preds)]
    uses_by_table: list[list[_LabelUse]] = []
    uses, table_of_view = [], []
    for v, (view, m) in enumerate(zip(layout.views, layout.widths, strict=True)):
        codes = codes_of_views[v]
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
