"""The bootstrap: rows or whole clusters are resampled with replacement, and every estimand is evaluated again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np

from trueodds.binning.row_selections import RowSelections
from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import CellStatistic, Estimator, Mean
from trueodds.kernels import map_blocks, map_items
from trueodds.kernels.bins import sums_by_cell
from trueodds.kernels.bootstrap_multiplicities import BootstrapMultiplicities
from trueodds.kernels.bootstrap_sums import CellSums, ResidualNorms, VectorCellSums, argsort_bins
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK
from trueodds.lenses.view import View
from trueodds.resampling.cell_bootstrap import BootstrapResult, bootstrap_cells
from trueodds.resampling.estimand import AccumulatorLayout, Estimand

T = TypeVar("T")  # result of one block of resamples

MAX_SEQUENTIAL_DRAWS = 2**20  # up to this total number of draws, rows are drawn as `rng.integers(0, n, (resamples, n))`
RESAMPLES_PER_BLOCK = 128  # resamples that a thread evaluates at once
MAX_BLOCK_MULTIPLICITIES = 2**25  # multiplicities in memory per thread
MAX_BLOCK_ACCUMULATORS = 2**19  # accumulators of each kind in memory per thread


class SharedResamples:
    """Multiplicities of the units (rows or clusters) in each resample; all estimands share one set of resamples.

    A small number of draws comes from the generator one by one, which reference values rely on. A large number uses
    multiplicities that depend only on the row, the resample and a key. `order` (n,) is the row number at each position
    of the multiplicities, by default that of the rows.
    """

    def __init__(
        self, n: int, cluster: Array | None, resamples: int, rng: np.random.Generator, order: Array | None = None
    ) -> None:
        self.n, self.cluster, self.n_resamples, self.order = n, cluster, resamples, order
        self.n_units = n if cluster is None else int(cluster.max()) + 1
        self._stored_multiplicities: Array | None = None
        if self.n_units * resamples <= MAX_SEQUENTIAL_DRAWS:
            drawn = rng.integers(0, self.n_units, (resamples, self.n_units))
            flat_index = drawn + np.arange(resamples)[:, None] * self.n_units
            counts = np.bincount(flat_index.ravel(), minlength=flat_index.size).reshape(flat_index.shape).T
            self._stored_multiplicities = counts.astype(np.uint8)
        else:
            self._multiplicity_generator = BootstrapMultiplicities(self.n_units, stream_key(rng), order)

    @property
    def unit(self) -> Array | None:
        """Position of each row's unit among the multiplicities, (n,); None if it is the number of the row."""
        if self.cluster is not None or self.order is None:
            return self.cluster
        position = np.empty(self.n, dtype=np.int64)
        position[self.order] = np.arange(self.n)
        return position

    def multiplicities(self, start: int, stop: int) -> Array:
        """Multiplicities of each unit in the resamples start..stop−1, (units, stop − start) uint8."""
        if self._stored_multiplicities is not None:
            return self._stored_multiplicities[:, start:stop]
        return self._multiplicity_generator.draw(start, stop)

    def row_indices(self, start: int, stop: int) -> list[Array]:
        """Row indices of these resamples, each sorted."""
        multiplicities = self.multiplicities(start, stop)
        assert self.order is None
        row_multiplicities = multiplicities if self.cluster is None else multiplicities[self.cluster]
        return [np.repeat(np.arange(self.n), column) for column in row_multiplicities.T]

    def map_blocks(self, evaluate: Callable[[Array], T], n_accumulators: int) -> list[T]:
        """Apply `evaluate` to the multiplicities (units, draws) of each block of resamples, in order."""
        max_resamples = min(
            RESAMPLES_PER_BLOCK, MAX_BLOCK_MULTIPLICITIES // self.n_units, MAX_BLOCK_ACCUMULATORS // n_accumulators
        )
        block_size = max(16, max_resamples // 2 * 2)  # an even number
        return map_blocks(lambda start, stop: evaluate(self.multiplicities(start, stop)), self.n_resamples, block_size)


Sums = tuple[Array, Array, Array]  # Σw, Σwp and Σwy of a view's cells, by draw

MAX_RESAMPLED_ROWS = 200_000  # with more rows, multinomial counts over bins and outcomes are drawn: O(bins), not O(n)
ROW_RESAMPLES_PER_BLOCK = 32  # resamples whose row numbers are in memory at once
MAX_BLOCK_SUMS = 2**21  # sums of vectors in memory at once, 16 MB
MAX_ROWS_TIMES_VIEWS = 2**20  # rows times views that are resampled together, which limits the memory
MAX_VECTOR_CELLS = 10_000  # cells of vectors; with more of them, rows are drawn
# Number of random groups of rows. The standard deviation of a resampled sum has a relative standard error of
# 1/√(2 · groups). There are fewer groups for more than MANY_CLASSES classes or labels, because each group has sums of
# all bins. The number does not depend on the predictions, so that two models that are compared share their groups.
RANDOM_GROUPS = 1000
RANDOM_GROUPS_OF_MANY_CLASSES = 250
MANY_CLASSES = 20
MAX_GROUP_SUMS = 2**22  # sums over groups and bins, of each kind, in memory


class ViewDraws(NamedTuple):
    """Draws of the views of an estimand; each field has the shape (views, draws)."""

    values: Array
    norms: Array | None  # of the centered residuals; None if the statistic has no such norm
    mean_gaps: Array | None = None  # mean outcome minus mean prediction; None unless the view is one with one score


BootstrapPath = Literal["means", "cells", "groups", "vectors", "bins", "rows"]


def bootstrap(
    preds: Predictions, estimands: Sequence[Estimand], resamples: int, rng: np.random.Generator, resample: str = "auto"
) -> list[BootstrapResult]:
    """Bootstrap all estimands on one set of resamples; rows keep their weights, clusters are resampled whole.

    Partitions that do not depend on the labels are held fixed. Up to 2²⁰ row draws follow
    `rng.integers(0, n, (resamples, n))`. `resample` is "rows" to resample rows or clusters, "cells" to draw multinomial
    counts of independent rows over cells, or "auto" to use the estimator's own resampling if it has one, and otherwise,
    for more than 200,000 rows, cells (one view) or random groups of rows (several views, because cells lose the
    covariance of the views). A statistic without centered norms has None in their place.

    The draws of an estimand do not depend on the others, because each way of resampling begins with the same generator.
    """
    if resample == "cells" and preds.cluster is not None:
        raise InputError(
            "TO205",
            "Resampling cells assumes independent rows, and these rows are clustered.",
            "⟨resample='cells'⟩",
            "Omit resample to resample whole clusters.",
        )
    initial_state = rng.bit_generator.state

    def rng_at_start() -> np.random.Generator:
        rng.bit_generator.state = initial_state
        return rng

    resampled: dict[int, BootstrapResult] = {}
    if resample == "auto" and preds.cluster is None:
        for i, estimand in enumerate(estimands):
            own_resamples = estimand.estimator.resample_units(estimand.views, resamples, rng_at_start())
            if own_resamples is not None:
                values, resampled_units = own_resamples
                resampled[i] = BootstrapResult(values, None, resampled_units)
    indices_by_path: dict[BootstrapPath, list[int]] = {path: [] for path in get_args(BootstrapPath)}
    for i, estimand in enumerate(estimands):
        if i not in resampled:
            indices_by_path[_choose_path(preds, estimand, resample)].append(i)
    for i in indices_by_path["cells"]:
        resampled[i] = bootstrap_cells(estimands[i], resamples, rng_at_start())
    for i in indices_by_path["groups"]:
        resampled[i] = _resample_random_groups(estimands[i], resamples, rng_at_start())
    means, vectors, binned, row_based = (indices_by_path[path] for path in ("means", "vectors", "bins", "rows"))
    if means or vectors or binned or row_based:
        only_vectors_and_means = bool(vectors) and not binned and not row_based
        order = _order_by_cell(preds, estimands[vectors[0]]) if only_vectors_and_means else None
        shared_resamples = SharedResamples(preds.n, preds.cluster, resamples, rng_at_start(), order)
        resampled_units = "rows" if preds.cluster is None else "clusters"
        means_and_vectors = [*means, *vectors]
        results = _resample_means_and_vectors([estimands[i] for i in means_and_vectors], shared_resamples)
        for i, result in zip(means_and_vectors, results, strict=True):
            resampled[i] = _bootstrap_result(result, resampled_units)
        for i in binned:
            resampled[i] = _bootstrap_result(_resample_bins(estimands[i], shared_resamples), resampled_units)
        for i in row_based:
            resampled[i] = BootstrapResult(_evaluate_from_rows(shared_resamples, estimands[i]), None, resampled_units)
    return [resampled[i] for i in range(len(estimands))]


def _choose_path(preds: Predictions, estimand: Estimand, resample: str) -> BootstrapPath:
    """Return how an estimand is resampled: "cells", random "groups", complete "rows", or rows through sums.

    Rows or clusters are resampled through the sums of "means", of "vectors" by cell or of "bins" where possible.
    """
    if isinstance(estimand.estimator, Mean):
        return "means"
    if estimand.cell_statistics is None:
        return "rows"
    if resample == "cells" and len(estimand.views) > 1:
        raise InputError(
            "TO205",
            "Cells do not retain the covariance between views.",
            "⟨resample='cells'⟩ with several views",
            "Use ⟨resample='rows'⟩, or a lens with one view.",
        )
    has_many_rows = preds.n > MAX_RESAMPLED_ROWS and preds.cluster is None
    if resample == "auto" and has_many_rows and len(estimand.views) > 1 and can_resample_groups(estimand):
        return "groups"
    if resample == "cells" or (resample != "rows" and has_many_rows and not _has_many_vector_cells(estimand)):
        return "cells"
    return "vectors" if estimand.views[0].joint else "bins"


def _order_by_cell(preds: Predictions, estimand: Estimand) -> Array | None:
    """Rows sorted by the cell of a vector, so that those of a cell are neighbors in memory; None for few rows."""
    if preds.cluster is not None or preds.n <= MAX_RESAMPLED_ROWS or estimand.cell_statistics is None:
        return None
    cell_statistic = estimand.cell_statistics[0]
    return argsort_bins(cell_statistic.index, cell_statistic.size)


def _resample_means_and_vectors(estimands: Sequence[Estimand], shared_resamples: SharedResamples) -> list[ViewDraws]:
    """Return the draws of each estimand. The multiplicities of a block are drawn once for all of them."""
    if not estimands:
        return []
    bootstraps = [_create_bootstrap(estimand, shared_resamples) for estimand in estimands]

    def evaluate(multiplicities: Array) -> list[ViewDraws]:
        return [estimand_bootstrap.evaluate_draws(multiplicities) for estimand_bootstrap in bootstraps]

    blocks = shared_resamples.map_blocks(
        evaluate, max(estimand_bootstrap.n_accumulators for estimand_bootstrap in bootstraps)
    )
    return [_concatenate(estimand_blocks, axis=1) for estimand_blocks in zip(*blocks, strict=True)]


def _create_bootstrap(estimand: Estimand, shared_resamples: SharedResamples) -> _EstimandBootstrap:
    if isinstance(estimand.estimator, Mean):
        return MeanBootstrap(estimand, shared_resamples)
    if all(cell_statistic.is_mean_total_variation for cell_statistic in estimand.cell_statistics or ()):
        return ResidualBootstrap(estimand, shared_resamples.unit)
    return VectorBootstrap(estimand, shared_resamples.unit)


def _resample_bins(estimand: Estimand, shared_resamples: SharedResamples) -> ViewDraws:
    """Return the draws of a statistic on bins, for a few views at a time: a thousand may not fit into memory."""
    views_per_block = max(1, MAX_ROWS_TIMES_VIEWS // max(1, shared_resamples.n))
    view_blocks = []
    for first in range(0, len(estimand.views), views_per_block):
        block_estimand = estimand
        if len(estimand.views) > views_per_block:
            block_estimand = replace(estimand, views=estimand.views[first : first + views_per_block])
        bin_bootstrap = BinBootstrap(block_estimand, shared_resamples.unit)
        draw_blocks = shared_resamples.map_blocks(bin_bootstrap.evaluate_draws, bin_bootstrap.n_accumulators)
        view_blocks.append(_concatenate(draw_blocks, axis=1))
    return _concatenate(view_blocks, axis=0)


def can_resample_groups(estimand: Estimand) -> bool:
    """Return whether random groups of rows can be resampled, through the sums of few enough bins."""
    cell_statistics = estimand.cell_statistics
    if cell_statistics is None or estimand.views[0].joint:
        return False
    n_bins = sum(cell_statistic.size for cell_statistic in cell_statistics)
    return _count_random_groups(estimand) * n_bins <= MAX_GROUP_SUMS


def _count_random_groups(estimand: Estimand) -> int:
    n_classes = max(estimand.views[0].classes, len(estimand.views))  # a view of several labels has two classes
    return RANDOM_GROUPS if n_classes <= MANY_CLASSES else RANDOM_GROUPS_OF_MANY_CLASSES


def _resample_random_groups(estimand: Estimand, resamples: int, rng: np.random.Generator) -> BootstrapResult:
    """Assign rows to groups at random, and resample groups.

    The sums over random groups have the covariance of the sums over rows, within and between views. Resampling up to
    1,000 groups is faster than resampling all rows.
    """
    rng = np.random.default_rng(stream_key(rng))  # a stream of its own, as in `bootstrap_cells`
    n_groups = _count_random_groups(estimand)
    group = rng.integers(0, n_groups, len(estimand.views[0]), dtype=np.uint16)
    group_bootstrap = RandomGroupBootstrap(estimand, group, n_groups)
    shared_resamples = SharedResamples(n_groups, None, resamples, rng)
    blocks = shared_resamples.map_blocks(group_bootstrap.evaluate_draws, group_bootstrap.n_accumulators)
    return _bootstrap_result(_concatenate(blocks, axis=1), "random groups")


def _has_many_vector_cells(estimand: Estimand) -> bool:
    """Whether vectors are in so many small cells that resampling cells costs as much as resampling rows."""
    return any(
        view.joint and cell_statistic.size > MAX_VECTOR_CELLS
        for view, cell_statistic in zip(estimand.views, estimand.cell_statistics or (), strict=True)
    )


def _bootstrap_result(draws: ViewDraws, resampled_units: str) -> BootstrapResult:
    return BootstrapResult(draws.values, draws.norms, resampled_units, draws.mean_gaps)


def _concatenate(blocks: Sequence[ViewDraws], axis: int) -> ViewDraws:
    def concatenate_existing(arrays: Sequence[Array | None]) -> Array | None:
        existing = [array for array in arrays if array is not None]
        return np.concatenate(existing, axis=axis) if len(existing) == len(arrays) else None

    values = np.concatenate([block.values for block in blocks], axis=axis)
    norms = concatenate_existing([block.norms for block in blocks])
    return ViewDraws(values, norms, concatenate_existing([block.mean_gaps for block in blocks]))


def _evaluate_from_rows(shared_resamples: SharedResamples, estimand: Estimand) -> Array:
    """Return values (views, draws) of a statistic that requires the rows."""
    evaluate = estimand.estimator.evaluate_selections
    blocks = []
    for start in range(0, shared_resamples.n_resamples, ROW_RESAMPLES_PER_BLOCK):
        stop = min(start + ROW_RESAMPLES_PER_BLOCK, shared_resamples.n_resamples)
        rows = shared_resamples.row_indices(start, stop)
        blocks.append([evaluate(RowSelections(view, rows)) for view in estimand.views])
    return np.concatenate(blocks, axis=1)


class MeanBootstrap:
    """The bootstrap of means of one score per row, through their sums."""

    def __init__(self, estimand: Estimand, shared_resamples: SharedResamples) -> None:
        assert isinstance(estimand.estimator, Mean)
        weights = np.stack([view.w for view in estimand.views], axis=1)
        score = np.stack([estimand.estimator.row_scores(view) for view in estimand.views], axis=1)
        finite = np.isfinite(score)  # an infinite score makes the mean of every resample with its row infinite
        finite_part = weights * np.where(finite, score, 0.0)
        infinite_part = weights * np.where(finite, 0.0, np.sign(score))
        if shared_resamples.order is not None:
            weights, finite_part, infinite_part = (
                x[shared_resamples.order] for x in (weights, finite_part, infinite_part)
            )
        self.n_accumulators = len(estimand.views)
        accumulator_index = np.broadcast_to(np.arange(self.n_accumulators), weights.shape)
        self.sums = CellSums(
            accumulator_index,
            weights,
            finite_part,
            infinite_part,
            self.n_accumulators,
            shared_resamples.cluster,
        )

    def evaluate_draws(self, multiplicities: Array) -> ViewDraws:
        w, finite_sums, infinite_sums = self.sums.sum_cells(multiplicities)
        with np.errstate(divide="ignore", invalid="ignore"):
            return ViewDraws(np.where(infinite_sums == 0, finite_sums / w, infinite_sums * np.inf).T, None)


class _FixedBinBootstrap:
    """The bootstrap of a statistic on fixed bins, through one array of accumulators for all views."""

    def __init__(self, layout: AccumulatorLayout, sums: CellSums, observed_sums: Sequence[Sums]) -> None:
        self.layout, self.sums, self.observed_sums = layout, sums, observed_sums
        self.n_accumulators = layout.n_accumulators

    def evaluate_draws(self, multiplicities: Array) -> ViewDraws:
        draws = list(
            zip(*(self.layout.split_by_view(sums) for sums in self.sums.sum_cells(multiplicities)), strict=True)
        )
        return _values_and_norms(self.layout.cell_statistics, self.observed_sums, draws)


class BinBootstrap(_FixedBinBootstrap):
    """The bootstrap of a statistic on fixed bins from the rows."""

    def __init__(self, estimand: Estimand, unit: Array | None) -> None:
        layout = AccumulatorLayout([estimand])
        predicted, observed = layout.predicted_and_observed()
        weights = np.stack([view.w for view in estimand.views], axis=1)
        sums = CellSums(layout.accumulator_index(), weights, predicted, observed, layout.n_accumulators, unit)
        super().__init__(layout, sums, list(zip(*layout.observed_sums(), strict=True)))


class RandomGroupBootstrap(_FixedBinBootstrap):
    """The bootstrap of a statistic on fixed bins from the sums of random groups; `group` is that of each row."""

    def __init__(self, estimand: Estimand, group: Array, n_groups: int) -> None:
        sums_by_view = map_items(
            lambda view: _sum_random_groups(view, estimand.estimator, group, n_groups), estimand.views
        )
        w, wp, wy = (np.concatenate(sums, axis=1) for sums in zip(*sums_by_view, strict=True))
        accumulator_index = np.broadcast_to(np.arange(w.shape[1], dtype=np.int32), w.shape)
        sums = CellSums(accumulator_index, w, wp, wy, w.shape[1])
        observed_sums = [tuple(x.sum(axis=0, keepdims=True) for x in view_sums) for view_sums in sums_by_view]
        super().__init__(AccumulatorLayout([estimand]), sums, observed_sums)


def _sum_random_groups(view: View, estimator: Estimator, group: Array, n_groups: int) -> Sums:
    """Σw, Σwp and Σwy (groups, bins) of a view, block by block, so that temporary arrays are small."""
    cell_statistic = estimator.cell_statistic(view)  # not the cached one, whose bin of each row would stay in memory
    assert cell_statistic is not None
    bin_index, size, weights, p, y = cell_statistic.index, cell_statistic.size, view.w, view.p, view.outcomes
    w, wp, wy = np.zeros((3, n_groups * size))
    for start in range(0, len(group), VALUES_PER_ROW_BLOCK):
        rows = slice(start, start + VALUES_PER_ROW_BLOCK)
        index = group[rows].astype(np.int64) * size + bin_index[rows]
        w += sums_by_cell(index, weights[rows], len(w))
        wp += sums_by_cell(index, p[rows], len(w), weights[rows])
        wy += sums_by_cell(index, y[rows], len(w), weights[rows])
    return w.reshape(n_groups, size), wp.reshape(n_groups, size), wy.reshape(n_groups, size)


class VectorBootstrap:
    """The bootstrap of a statistic on many fixed cells of vectors, for a few resamples at a time."""

    n_accumulators = 1  # sums are computed for a few resamples at a time, so they do not limit the block

    def __init__(self, estimand: Estimand, unit: Array | None) -> None:
        self.cell_statistics = estimand.cell_statistics or ()
        self.sums_by_view, self.observed_sums = [], []
        for view, cell_statistic in zip(estimand.views, self.cell_statistics, strict=True):
            w = view.w[:, None]
            sums = VectorCellSums(cell_statistic.index, view.w, w * view.p, w * view.y, cell_statistic.size, unit)
            self.sums_by_view.append(sums)
            self.observed_sums.append(sums.sum_vectors(np.ones((1, len(sums.unit)), dtype=np.uint8)))

    def evaluate_draws(self, multiplicities: Array) -> ViewDraws:
        step = max(1, MAX_BLOCK_SUMS // sum(sums.n_sums for sums in self.sums_by_view))
        sorted_multiplicities = [sums.sort_multiplicities(multiplicities) for sums in self.sums_by_view]
        starts = range(0, multiplicities.shape[1], step)
        return _concatenate(
            [self._evaluate_block([counts[a : a + step] for counts in sorted_multiplicities]) for a in starts], axis=1
        )

    def _evaluate_block(self, multiplicities: Sequence[Array]) -> ViewDraws:
        draws = [
            sums.sum_vectors(view_multiplicities)
            for sums, view_multiplicities in zip(self.sums_by_view, multiplicities, strict=True)
        ]
        return _values_and_norms(self.cell_statistics, self.observed_sums, draws)


class ResidualBootstrap:
    """The bootstrap of weighted means of the total variation distances of cells, without the sums of each resample."""

    n_accumulators = 1  # no sums are kept, so they do not limit the block

    def __init__(self, estimand: Estimand, unit: Array | None) -> None:
        self.norms_by_view = [
            ResidualNorms(cell_statistic.index, view.w, view.p, view.outcomes, cell_statistic.size, unit)
            for view, cell_statistic in zip(estimand.views, estimand.cell_statistics or (), strict=True)
        ]

    def evaluate_draws(self, multiplicities: Array) -> ViewDraws:
        values, norms = zip(
            *(view_norms.residual_norms(multiplicities) for view_norms in self.norms_by_view), strict=True
        )
        return ViewDraws(np.stack(values) / 2, np.stack(norms) / 2)


_EstimandBootstrap = MeanBootstrap | BinBootstrap | VectorBootstrap | ResidualBootstrap


def _values_and_norms(
    cell_statistics: Sequence[CellStatistic], observed: Sequence[Sums], draws: Sequence[Sums]
) -> ViewDraws:
    """Values, centered norms and mean gaps of all views from observed and resampled sums."""
    mean_gaps = None
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no row of a view
        values = np.stack(
            [cell_statistic.statistic(*drawn) for cell_statistic, drawn in zip(cell_statistics, draws, strict=True)]
        )
        norms = [
            cell_statistic.centered_norms(w[0], wp[0], wy[0], drawn)
            for cell_statistic, (w, wp, wy), drawn in zip(cell_statistics, observed, draws, strict=True)
        ]
        if len(draws) == 1 and draws[0][1].ndim == 2:  # one score
            w, wp, wy = draws[0]
            mean_gaps = ((wy - wp).sum(axis=-1) / w.sum(axis=-1))[None]
    existing_norms = [norm for norm in norms if norm is not None]
    return ViewDraws(values, np.stack(existing_norms) if len(existing_norms) == len(norms) else None, mean_gaps)
