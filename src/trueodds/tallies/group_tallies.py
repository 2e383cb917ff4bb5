"""Tallies of many groups of rows, stored in common arrays, so that they are counted and added without a loop."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import as_plain_array, fine_grid, row_statistics
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS, find_class_cells
from trueodds.tallies import tally_sums
from trueodds.tallies.block_sums import SURVEY_COUNTS, SURVEY_EXTREMES, count_zeros_and_ones, row_scores
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS, Cells
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums, score_terms
from trueodds.tallies.row_block import RowBlock, values_by_class, values_by_rank
from trueodds.tallies.tally_sums import COUNT_FIELDS, MAXIMUM_FIELDS, SpecialRowCounts, TallySums

T = TypeVar("T", bound=TallySums)

_SCORE_FIELDS = tuple(field.name for field in fields(ProperScoreSums))  # columns of a score in `GroupColumns.scores`
_MAXIMUM_COLUMNS = np.array([COUNT_FIELDS.index(name) for name in MAXIMUM_FIELDS])  # columns of `GroupColumns.counts`
_MIN_PENDING_CELLS = 4096  # minimum number of cells that are collected before they are added


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumns(Generic[T]):
    """Tallies of G groups in arrays: the cells of all groups one after the other, and one row per group otherwise."""

    template: T  # tally of any group, for the attributes that all groups share
    names: tuple[str, ...]  # (G,) names of the groups, sorted
    n: Array  # (G,) int64, number of rows
    weight: Array  # (G,) total weight
    cell_starts: Array  # (G + 1,) position of the first cell of each group, and the number of cells m
    cell_index: Array  # (m,) `index` of Cells
    rows_per_cell: Array  # (m,) int64, `n` of Cells
    sums_per_cell: Array  # (m, 4 or 9) `sums` of Cells
    scores: Array  # (G, 2, 7) by score, in the order of SCORES, and field of ProperScoreSums
    counts: Array  # (G, 9) by the field of SpecialRowCounts

    @classmethod
    def from_tallies(cls, tallies: Mapping[str, T]) -> GroupColumns[T] | None:
        """Return the arrays of tallies by name; None if they cannot share arrays or there is no tally."""
        names = tuple(sorted(tallies))
        ordered = [tallies[name] for name in names]
        if len({_shared_attributes(tally) for tally in ordered}) != 1:
            return None
        return cls(
            template=ordered[0],
            names=names,
            n=np.array([tally.n for tally in ordered], dtype=np.int64),
            weight=np.array([tally.weight for tally in ordered], dtype=np.float64),
            cell_starts=np.cumsum([0, *(len(tally.cells.index) for tally in ordered)]),
            cell_index=np.concatenate([tally.cells.index for tally in ordered]),
            rows_per_cell=np.concatenate([tally.cells.n for tally in ordered]),
            sums_per_cell=np.concatenate([tally.cells.sums for tally in ordered]),
            scores=np.array([[astuple(tally.scores[name]) for name in SCORES] for tally in ordered], dtype=np.float64),
            counts=np.array([astuple(tally.counts) for tally in ordered], dtype=np.float64),
        )

    @classmethod
    def add_all(cls, parts: Sequence[GroupColumns[T]]) -> GroupColumns[T]:
        """Return the sum of the parts by group, bit-identical to adding the tallies of each group in order."""
        if len(parts) == 1:
            return parts[0]
        names = tuple(sorted({name for part in parts for name in part.names}))
        index_by_name = {name: i for i, name in enumerate(names)}
        n_groups, cells_per_group = len(names), len(parts[0].template.view_names) * N_CELLS
        n, weight = np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups)
        scores = np.full((n_groups, *parts[0].scores.shape[1:]), -0.0)  # −0 + x is x for every x; 0 + −0 is 0
        counts = np.zeros((n_groups, len(COUNT_FIELDS)))
        keys = []  # of the cells of each part: a cell of group g has the key g · cells_per_group + its index
        for part in parts:
            group_index = np.array([index_by_name[name] for name in part.names])
            n[group_index] += part.n
            weight[group_index] += part.weight
            scores[group_index] += part.scores
            maxima = np.maximum(counts[group_index], part.counts)[:, _MAXIMUM_COLUMNS]
            counts[group_index] += part.counts
            counts[group_index[:, None], _MAXIMUM_COLUMNS] = maxima
            keys.append(np.repeat(group_index, np.diff(part.cell_starts)) * cells_per_group + part.cell_index)
        key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        starts = np.searchsorted(key, np.arange(n_groups + 1) * cells_per_group)
        rows_per_cell = _sum_by_index(inverse, np.concatenate([part.rows_per_cell for part in parts])).astype(np.int64)
        columns = np.concatenate([part.sums_per_cell for part in parts]).T
        sums = np.stack([_sum_by_index(inverse, column) for column in columns], axis=1)
        return cls(
            template=parts[0].template,
            names=names,
            n=n,
            weight=weight,
            cell_starts=starts,
            cell_index=key % cells_per_group,
            rows_per_cell=rows_per_cell,
            sums_per_cell=sums,
            scores=scores,
            counts=counts,
        )

    def tally_of_group(self, i: int) -> T:
        cells = slice(self.cell_starts[i], self.cell_starts[i + 1])
        return replace(
            self.template,
            n=int(self.n[i]),
            weight=float(self.weight[i]),
            cells=Cells(self.cell_index[cells], self.rows_per_cell[cells], self.sums_per_cell[cells]),
            scores={
                name: _record_from_row(ProperScoreSums, row)
                for name, row in zip(SCORES, self.scores[i].tolist(), strict=True)
            },
            counts=_record_from_row(SpecialRowCounts, self.counts[i].tolist()),
        )


class GroupTallies(Mapping[str, T]):
    """Mapping from the name of each group to its tally, in the order of the names.

    `+` collects summands and adds them only when together they have as many cells as the sum so far, so that adding
    many batches takes linear time.
    """

    def __init__(self, *parts: GroupColumns[T]) -> None:
        self._parts = parts

    def __add__(self, other: GroupTallies[T]) -> GroupTallies[T]:
        total = GroupTallies(*self._parts, other.columns)
        n_summed, *n_pending = (len(part.cell_index) for part in total._parts)  # numbers of cells
        if sum(n_pending) > max(n_summed, _MIN_PENDING_CELLS):
            total._parts = (total.columns,)
        return total

    @property
    def columns(self) -> GroupColumns[T]:
        if len(self._parts) > 1:
            self._parts = (GroupColumns.add_all(self._parts),)
        return self._parts[0]

    @property
    def template(self) -> T:
        """A tally with all attributes that the groups share."""
        return self._parts[0].template

    def __getitem__(self, name: str) -> T:
        i = bisect_left(self.columns.names, name)
        if self.columns.names[i : i + 1] != (name,):
            raise KeyError(name)
        return self.columns.tally_of_group(i)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns.names)

    def __len__(self) -> int:
        return len(self.columns.names)


def merge_groups(a: Mapping[str, T], b: Mapping[str, T]) -> Mapping[str, T]:
    """Return the tallies of the groups in a or b, by name. Groups of the same name are added."""
    first, second = _as_group_tallies(a), _as_group_tallies(b)
    if (
        first is not None
        and second is not None
        and _shared_attributes(first.template) == _shared_attributes(second.template)
    ):
        return first + second
    sums_of_common_groups = {name: a[name] + b[name] for name in a if name in b}
    return dict(sorted({**a, **b, **sums_of_common_groups}.items()))


def _as_group_tallies(tallies: Mapping[str, T]) -> GroupTallies[T] | None:
    """Return the tallies in common arrays; None if they cannot share arrays."""
    if isinstance(tallies, GroupTallies):
        return tallies
    columns = GroupColumns.from_tallies(tallies)
    return None if columns is None else GroupTallies(columns)


def _shared_attributes(tally: TallySums) -> tuple[Any, ...]:
    """Return the attributes in which tallies must agree to share arrays."""
    return tally.kind, tally.classes, tally.dtype, tally.bins, tally.view_names, tally.cells.is_unweighted


def _sum_by_index(index: Array, values: Array) -> Array:
    """Return the sum of the values (n,) with each index (n,), added in order."""
    return np.bincount(index, weights=values)


def _record_from_row(record_type: type[Any], row: list[float]) -> Any:
    """Return the sums or counts whose fields, in their order, have these values."""
    integers = tally_sums.integer_fields(record_type)
    items = zip(fields(record_type), row, strict=True)
    return record_type(**{field.name: int(x) if field.name in integers else x for field, x in items})


MIN_ROWS_OF_LARGE_GROUP = 512  # number of rows below which a group is counted together with others
VALUES_PER_BLOCK = 65_536  # number of probabilities of small groups that are counted at a time


def tally_groups(preds: Predictions, values: Array, tally_rows_of_group: Callable[[Array], T]) -> GroupTallies[T]:
    """Return the tallies of the rows with each value (n,), by the value as text.

    Large groups are tallied one by one by `tally_rows_of_group`, which takes row numbers. Small ones are counted many
    at a time.
    """
    names, group_of_row = _number_values(values)
    size, rows = np.bincount(group_of_row), np.argsort(group_of_row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    is_small = size < MIN_ROWS_OF_LARGE_GROUP
    large_groups = GroupColumns.from_tallies(
        {names[g]: tally_rows_of_group(rows[starts[g] : starts[g + 1]]) for g in np.flatnonzero(~is_small)}
    )
    parts = [] if large_groups is None else [large_groups]
    template = tally_rows_of_group(rows[:1])
    # The rows of the small groups, sorted by group, are counted in blocks of whole groups.
    rows, names = rows[np.repeat(is_small, size)], names[is_small]
    starts = np.concatenate([[0], np.cumsum(size[is_small])])
    block_of_group = starts[:-1] // max(1, VALUES_PER_BLOCK // len(template.view_names))
    _, first_groups = np.unique(block_of_group, return_index=True)
    for first, last in pairwise([*first_groups.tolist(), len(names)]):
        block = RowBlock.from_predictions(preds, rows[starts[first] : starts[last]])
        parts.append(
            _count_small_groups(block, starts[first : last + 1] - starts[first], tuple(names[first:last]), template)
        )
    return GroupTallies(GroupColumns.add_all(parts))


def _number_values(values: Array) -> tuple[Array, Array]:
    """Return the distinct values as text, sorted, and the position of each value (n,) among them, (n,)."""
    unique, inverse = np.unique(values, return_inverse=True)
    names, position = np.unique(np.array([str(value) for value in unique], dtype=object), return_inverse=True)
    return names, position[inverse.reshape(-1)]


def _count_small_groups(rows: RowBlock, starts: Array, names: tuple[str, ...], template: T) -> GroupColumns[T]:
    """Return the tallies of groups of consecutive rows: group g has the rows starts[g] to starts[g + 1] − 1."""
    ranks, classes = tally_sums.default_views(template.kind, template.k, default_lens_only=True)
    n, size = len(rows.P), np.diff(starts)
    ranked_columns, squares = np.empty((n, ranks if rows.P.shape[1] > 1 else 0), dtype=np.int32), np.empty(n)
    special_counts = np.zeros((len(names), len(SURVEY_COUNTS)), dtype=np.int64)
    extremes = np.zeros((len(names), len(SURVEY_EXTREMES)))
    bits = rows.P.view(np.int32 if rows.has_exact_cells else np.int64)
    row_statistics.summarize_row_groups(
        rows.P, bits, rows.rounding_tolerance, starts, ranked_columns, squares, special_counts, extremes
    )
    if rows.logits is not None:
        zeros_and_ones = [SURVEY_COUNTS.index("zeros"), SURVEY_COUNTS.index("ones")]
        special_counts[:, zeros_and_ones] = np.add.reduceat(np.stack(count_zeros_and_ones(rows), axis=1), starts[:-1])
    scores = np.stack([_score_sums_by_group(values, rows.w, starts) for values in row_scores(rows, squares)], axis=1)
    counts = dict(zip(SURVEY_COUNTS, special_counts.T, strict=True))
    n_infinite = scores[:, SCORES.index("log_loss"), _SCORE_FIELDS.index("infinite")]
    counts |= {"true_zeros": n_infinite, "voted": size * (rows.votes is not None)}
    counts |= dict(zip(SURVEY_EXTREMES, extremes.T, strict=True))
    P, Y = values_by_rank(rows, ranked_columns) if ranks else values_by_class(rows, classes.start, classes.stop)
    n_cells = P.shape[1] * N_CELLS
    key, cell_n, cell_sums = _sum_cells_of_groups(rows, P, Y, np.repeat(np.arange(len(names)), size))
    return GroupColumns(
        template,
        names,
        n=size,
        weight=size.astype(np.float64) if rows.w is None else segment_sums(rows.w[None], starts)[0],
        cell_starts=np.searchsorted(key, np.arange(len(names) + 1) * n_cells),
        cell_index=key % n_cells,
        rows_per_cell=cell_n,
        sums_per_cell=cell_sums,
        scores=scores,
        counts=np.stack([counts[name] for name in COUNT_FIELDS], axis=1).astype(np.float64),
    )


def _sum_cells_of_groups(rows: RowBlock, P: Array, Y: Array, group: Array) -> tuple[Array, Array, Array]:
    """Return the keys, counts and sums of the occupied cells of each group of rows.

    P (n, m) and Y (n, m) are the probabilities and outcomes of m binary views, and `group` (n,) is the group of each
    row. A cell of group g with the index i, as in `Cells`, has the key g · m · N_CELLS + i.
    """
    n, m = P.shape
    cell = np.empty((m, n), dtype=np.uint16)
    find_class_cells(P, 0, m, CELL_EDGES, rows.has_exact_cells, cell)
    keys = (group[:, None] * m + np.arange(m)) * N_CELLS + cell.T
    key, inverse = np.unique(keys, return_inverse=True)
    counts = np.zeros(len(key), dtype=np.int64)
    sums = np.zeros((len(key), len(UNWEIGHTED_SUMS if rows.is_unweighted else WEIGHTED_SUMS)))
    fine_grid.tally_bins(P, as_plain_array(Y.astype(np.float64)), rows.weights, inverse.reshape(n, m), counts, sums)
    return key, counts, sums


def _score_sums_by_group(s: Array, w: Array | None, starts: Array) -> Array:
    """Return the fields (G, 7) of the `ProperScoreSums` of each group, for the score s (n,) of each row."""
    finite = np.isfinite(s)
    terms = score_terms(np.where(finite, s, 0.0), w)
    sums = np.zeros((len(starts) - 1, len(_SCORE_FIELDS)))
    sums[:, : len(terms)] = segment_sums(terms, starts).T
    for g in np.unique(np.searchsorted(starts, np.flatnonzero(~finite), "right") - 1).tolist():
        rows = slice(starts[g], starts[g + 1])
        sums[g] = astuple(ProperScoreSums.from_scores(s[rows], None if w is None else w[rows]))
    return sums


def segment_sums(columns: Array, starts: Array) -> Array:
    """Return the sums (c, G) of the segments of each column (c, n), bit-identical to `column[a:b].sum()`.

    Segment g has the positions starts[g] to starts[g + 1] − 1.

    NumPy's order of summation depends on the length only, so segments of equal length are summed as the rows of one
    matrix.

    >>> segment_sums(np.array([[1.0, 2.0, 4.0]]), np.array([0, 1, 3])).tolist()
    [[1.0, 6.0]]
    """
    size = np.diff(starts)
    sums = np.empty((len(columns), len(size)))
    order = np.argsort(size, kind="stable")
    lengths, first = np.unique(size[order], return_index=True)
    for length, segments in zip(lengths.tolist(), np.split(order, first[1:]), strict=True):
        sums[:, segments] = np.take(columns, starts[segments][:, None] + np.arange(length), axis=1).sum(axis=-1)
    return sums
