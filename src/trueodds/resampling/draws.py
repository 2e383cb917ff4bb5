"""Ways to draw data again, and the bootstrap of rows, clusters or random groups of rows.

`evaluate` evaluates statistics on draws: from the drawn sums of their cells, or from drawn rows. Draws of labels are in
`label_draws`, and draws of the sums themselves, at a cost that does not depend on the number of rows, in `cell_draws`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from trueodds.binning.sorted_scores import RowSelections
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator
from trueodds.kernels import map_blocks, map_items
from trueodds.kernels.bins import sums_by_cell
from trueodds.kernels.bootstrap import BootstrapMultiplicities, CellSums, VectorCellSums
from trueodds.kernels.parallel import VALUES_PER_ROW_BLOCK
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand

T = TypeVar("T")

# Σw (draws, cells), Σwp and Σwy (draws, cells) or (draws, cells, m) of a view, by cell.
Sums = tuple[Array, Array, Array]
EvaluateSums = Callable[[int, Array, Array, Array], T]  # of the number of a view, and its sums
DrawnRows = RowSelections | Sequence[View]  # of one view: selections of its rows, or a view for each draw


class Draws:
    """Base class of the ways to draw data again."""

    keeps_cells: ClassVar[bool] = True  # whether the cells of the observed rows are those of every draw

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        """Apply `evaluate` to the drawn sums of each view, block by block; the results are by view, in this order.

        The views are those of all estimands, and are numbered in this order.
        """
        raise NotImplementedError

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        """Yield some draws at a time: the drawn rows of each view of each estimand."""
        raise NotImplementedError


MAX_SEQUENTIAL_DRAWS = 2**20  # up to this total number of draws, rows are drawn as `rng.integers(0, n, (resamples, n))`
RESAMPLES_PER_BLOCK = 128  # resamples that a thread evaluates at once
MAX_BLOCK_MULTIPLICITIES = 2**25  # multiplicities in memory per thread
MAX_BLOCK_SUMS = 2**21  # sums of one view in memory at once, 16 MB
MAX_ROWS_TIMES_VIEWS = 2**20  # rows times views that are resampled together, which limits the memory
ROW_DRAWS_PER_BLOCK = 32  # draws of which all rows are in memory at once


class Bootstrap(Draws):
    """Resamples of units (rows or clusters) with replacement, which all estimands share.

    A small number of draws comes from the generator one by one, which reference values rely on. A large number uses
    multiplicities that depend only on the row, the resample and a key.
    """

    def __init__(self, n: int, cluster: Array | None, resamples: int, rng: np.random.Generator) -> None:
        self.n, self.cluster, self.n_resamples = n, cluster, resamples
        self.n_units = n if cluster is None else int(cluster.max()) + 1
        self._stored_multiplicities: Array | None = None
        if self.n_units * resamples <= MAX_SEQUENTIAL_DRAWS:
            drawn = rng.integers(0, self.n_units, (resamples, self.n_units))
            flat_index = drawn + np.arange(resamples)[:, None] * self.n_units
            counts = np.bincount(flat_index.ravel(), minlength=flat_index.size).reshape(flat_index.shape).T
            self._stored_multiplicities = counts.astype(np.uint8)
        else:
            self._multiplicity_generator = BootstrapMultiplicities(self.n_units, stream_key(rng))

    def multiplicities(self, start: int, stop: int) -> Array:
        """Multiplicities of each unit in the resamples start..stop−1, (units, stop − start) uint8."""
        if self._stored_multiplicities is not None:
            return self._stored_multiplicities[:, start:stop]
        return self._multiplicity_generator.draw(start, stop)

    def row_indices(self, start: int, stop: int) -> list[Array]:
        """Row indices of these resamples, each sorted."""
        multiplicities = self.multiplicities(start, stop)
        row_multiplicities = multiplicities if self.cluster is None else multiplicities[self.cluster]
        return [np.repeat(np.arange(self.n), column) for column in row_multiplicities.T]

    def map_blocks(self, evaluate: Callable[[Array], T]) -> list[T]:
        """Apply `evaluate` to the multiplicities (units, draws) of each block of resamples, in order."""
        max_resamples = min(RESAMPLES_PER_BLOCK, MAX_BLOCK_MULTIPLICITIES // self.n_units)
        block_size = max(16, max_resamples // 2 * 2)  # an even number
        return map_blocks(lambda start, stop: evaluate(self.multiplicities(start, stop)), self.n_resamples, block_size)

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        return self.map_cells(views_and_statistics(estimands), evaluate)

    def map_cells(self, pairs: Sequence[tuple[View, CellStatistic]], evaluate: EvaluateSums[T]) -> list[list[T]]:
        """Apply `evaluate` to the drawn sums of the cells of each view, as `map_sums`."""
        views_per_pass = max(1, MAX_ROWS_TIMES_VIEWS // max(1, self.n))
        by_view: list[list[T]] = []
        for first in range(0, len(pairs), views_per_pass):
            sums_of_views = map_items(self.unit_sums, pairs[first : first + views_per_pass])

            def evaluate_block(
                multiplicities: Array,
                first: int = first,
                sums_of_views: list[CellSums | VectorCellSums] = sums_of_views,
            ) -> list[list[T]]:
                results = []
                for v, sums in enumerate(sums_of_views, first):
                    step = max(1, MAX_BLOCK_SUMS // sums.n_sums)
                    starts = range(0, multiplicities.shape[1], step)
                    results.append([evaluate(v, *sums.sum_cells(multiplicities[:, a : a + step])) for a in starts])
                return results

            blocks = self.map_blocks(evaluate_block)
            by_view += [[x for results in view_blocks for x in results] for view_blocks in zip(*blocks, strict=True)]
        return by_view

    def unit_sums(self, pair: tuple[View, CellStatistic]) -> CellSums | VectorCellSums:
        """The sums of the cells of a view for any multiplicities of the units."""
        view, statistic = pair
        sum_class, w = (VectorCellSums, view.w[:, None]) if view.joint else (CellSums, view.w)
        return sum_class(statistic.index, view.w, w * view.p, w * view.y, statistic.size, self.cluster)

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        for start in range(0, self.n_resamples, ROW_DRAWS_PER_BLOCK):
            rows = self.row_indices(start, min(start + ROW_DRAWS_PER_BLOCK, self.n_resamples))
            yield [[RowSelections(view, rows) for view in estimand.views] for estimand in estimands]


class FixedCells(CellStatistic):
    """Cells of rows that serve for their drawn sums alone; `index` (n,) is the cell of each row."""

    def __init__(self, index: Array, size: int) -> None:
        self.index, self.size = index, size


def views_and_statistics(estimands: Iterable[Estimand]) -> list[tuple[View, CellStatistic]]:
    return [pair for estimand in estimands for pair in zip(estimand.views, estimand.cell_statistics or (), strict=True)]


# Number of random groups of rows. The standard deviation of a resampled sum has a relative standard error of
# 1/√(2 · groups). There are fewer groups for more than MANY_CLASSES classes or labels, because each group has sums of
# all bins. The number does not depend on the predictions, so that two models that are compared share their groups.
RANDOM_GROUPS = 1000
RANDOM_GROUPS_OF_MANY_CLASSES = 250
MANY_CLASSES = 20
MAX_GROUP_SUMS = 2**22  # sums over groups and bins, of each kind, in memory


class RandomGroupBootstrap(Bootstrap):
    """Resamples of random groups, to which the rows are assigned.

    The sums over random groups have the covariance of the sums over rows, within and between views. Resampling up to
    1,000 groups is faster than resampling all rows.
    """

    def __init__(self, estimand: Estimand, resamples: int, rng: np.random.Generator) -> None:
        rng = np.random.default_rng(stream_key(rng))  # a stream of its own, as in `CellBootstrap`
        n_groups = _count_random_groups(estimand)
        self.estimator: Estimator = estimand.estimator
        self.group = rng.integers(0, n_groups, len(estimand.views[0]), dtype=np.uint16)
        super().__init__(n_groups, None, resamples, rng)

    def unit_sums(self, pair: tuple[View, CellStatistic]) -> CellSums:
        """The sums of the bins of a view, of which those of each group are added up first."""
        w, wp, wy = _sum_groups(pair[0], self.estimator, self.group, self.n)
        return CellSums(np.broadcast_to(np.arange(w.shape[1], dtype=np.int32), w.shape), w, wp, wy, w.shape[1])


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


def _sum_groups(view: View, estimator: Estimator, group: Array, n_groups: int) -> Sums:
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


class Jackknife(Draws):
    """The rows without those of one unit (a row or a cluster), for each unit; `unit_of_row` (n,) numbers them."""

    def __init__(self, unit_of_row: Array) -> None:
        self.unit_of_row, self.n_units = unit_of_row, int(np.max(unit_of_row)) + 1

    def map_sums(self, estimands: Sequence[Estimand], evaluate: EvaluateSums[T]) -> list[list[T]]:
        order = np.argsort(self.unit_of_row, kind="stable")
        unit_starts = np.searchsorted(self.unit_of_row[order], np.arange(self.n_units + 1))

        def evaluate_view(v: int, view: View, statistic: CellStatistic) -> Iterator[T]:
            m, size, index = view.p.shape[1] if view.joint else 1, statistic.size, statistic.index
            w, p, y = view.w, view.p.reshape(len(view.w), m), view.y.reshape(len(view.w), m)
            summands = (w[:, None], w[:, None] * p, w[:, None] * y)
            full_sums = [sums_by_cell(index, x, size) for x in summands]
            step = max(1, MAX_BLOCK_SUMS // (size * m))
            for start in range(0, self.n_units, step):  # a block of units
                stop = min(start + step, self.n_units)
                rows = order[unit_starts[start] : unit_starts[stop]]
                cell_of_unit = (self.unit_of_row[rows] - start) * size + index[rows]
                sums = [
                    full_sum
                    - sums_by_cell(cell_of_unit, x[rows], (stop - start) * size).reshape(stop - start, size, -1)
                    for full_sum, x in zip(full_sums, summands, strict=True)
                ]
                # A bin whose rows are all left out contains only rounding errors and is set to 0.
                weights = np.where(sums[0][..., 0] > 1e-12 * w.sum(), sums[0][..., 0], 0.0)
                wp, wy = sums[1:] if view.joint else (x[..., 0] for x in sums[1:])
                yield evaluate(v, weights, wp, wy)

        return [list(evaluate_view(v, *pair)) for v, pair in enumerate(views_and_statistics(estimands))]

    def map_rows(self, estimands: Sequence[Estimand]) -> Iterator[list[list[DrawnRows]]]:
        remaining = [np.flatnonzero(self.unit_of_row != unit) for unit in range(self.n_units)]
        yield [[RowSelections(view, remaining) for view in estimand.views] for estimand in estimands]


def evaluate(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    """Return the values (views, draws) of each estimand; all of them are evaluated on the same draws."""
    has_cells = [draws.keeps_cells and estimand.cell_statistics is not None for estimand in estimands]
    with_cells = [estimand for estimand, from_sums in zip(estimands, has_cells, strict=True) if from_sums]
    with_rows = [estimand for estimand, from_sums in zip(estimands, has_cells, strict=True) if not from_sums]
    values_from_sums = iter(_evaluate_sums(with_cells, draws) if with_cells else [])
    values_from_rows = iter(_evaluate_rows(with_rows, draws) if with_rows else [])
    return [next(values_from_sums if from_sums else values_from_rows) for from_sums in has_cells]


def _evaluate_sums(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    statistics = [statistic for _, statistic in views_and_statistics(estimands)]

    def evaluate_view(v: int, w: Array, wp: Array, wy: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # a draw may have no row of a view
            return statistics[v].statistic(w, wp, wy)

    by_view = draws.map_sums(estimands, evaluate_view)
    return stack_by_estimand(estimands, [np.concatenate(blocks) for blocks in by_view])


def _evaluate_rows(estimands: Sequence[Estimand], draws: Draws) -> list[Array]:
    blocks: list[list[list[Array]]] = [[] for _ in estimands]
    for drawn_rows in draws.map_rows(estimands):
        for estimand, drawn_views, estimand_blocks in zip(estimands, drawn_rows, blocks, strict=True):
            estimand_blocks.append([_values_of_rows(estimand.estimator, drawn) for drawn in drawn_views])
    return [np.concatenate(estimand_blocks, axis=1) for estimand_blocks in blocks]


def _values_of_rows(estimator: Estimator, drawn: DrawnRows) -> Array:
    if isinstance(drawn, RowSelections):
        return estimator.evaluate_selections(drawn)
    return np.array([estimator.value(view) for view in drawn])


def stack_by_estimand(estimands: Sequence[Estimand], per_view: Sequence[Array]) -> list[Array]:
    """Stack the results (draws,) of consecutive views, to one array (views, draws) for each estimand."""
    stacked, start = [], 0
    for estimand in estimands:
        stacked.append(np.stack(per_view[start : start + len(estimand.views)]))
        start += len(estimand.views)
    return stacked
