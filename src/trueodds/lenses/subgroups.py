"""Subgroups formed by the values of group columns, and lenses restricted to one subgroup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens, OutcomeCodes
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View

ROUNDING_ERROR = 1e-12  # residuals, per unit of weight, that can be due to the rounding of their sum


@dataclass(frozen=True, eq=False)
class GroupLens(Lens):
    """A lens on the rows with one value of a group column."""

    lens: Lens  # the underlying lens
    column: str  # name of the group column, or of several joined by ×
    value: Any  # of the column, in the rows of the subgroup

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.lens.name} | {self.column}={self.value}"

    def row_mask(self, preds: Predictions) -> Array:
        return np.asarray(preds.group[self.column] == self.value)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Views of the underlying lens, with weight zero outside the subgroup."""
        mask = self.row_mask(preds).astype(np.float64)
        label = f"{self.column}={self.value}"
        return tuple(
            View(
                view.p, view.y, view.w * mask,
                n=view.n * mask, name=f"{view.name} | {label}", classes=view.classes, votes=view.votes,
                exact=view.exact,
            )
            for view in self.lens.views(preds)
        )  # fmt: skip

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return self.lens.outcome_codes(preds)

    def class_columns(self, preds: Predictions) -> list[int]:
        return self.lens.class_columns(preds)


@dataclass(frozen=True)
class Subgroup:
    """The rows that have one value in each of some group columns.

    >>> preds = Predictions([0, 1], [0.2, 0.9], group={"sex": ["f", "m"], "site": ["a", "a"]})
    >>> one = Subgroup((("sex", "f"), ("site", "a")))
    >>> one.label, one.column, one.row_mask(preds).tolist()
    ('sex=f, site=a', 'sex × site', [True, False])
    """

    values: tuple[tuple[str, Any], ...]  # pairs of column and value
    is_complement: bool = False  # whether the subgroup holds all other rows instead

    @property
    def column(self) -> str:
        """Name of the column, or of the columns joined by ×."""
        return " × ".join(column for column, _ in self.values)

    @property
    def value(self) -> str:
        """The value, or the values joined by ×."""
        return ("not " if self.is_complement else "") + " × ".join(str(value) for _, value in self.values)

    @property
    def label(self) -> str:
        """Columns and values, such as `sex=f, site=a`."""
        return ("not " if self.is_complement else "") + ", ".join(f"{column}={value}" for column, value in self.values)

    def row_mask(self, preds: Predictions) -> Array:
        mask = np.logical_and.reduce([np.asarray(preds.group[column] == value) for column, value in self.values])
        return np.asarray(mask != self.is_complement)

    def restrict_lens(self, lens: Lens) -> GroupLens:
        """Restrict a lens to these rows. Other rows get weight zero, so that all subgroups share the same draws."""
        return _SubgroupLens(lens, self.column, self.value, self)


@dataclass(frozen=True, eq=False)
class _SubgroupLens(GroupLens):
    """A lens on a subgroup defined by any number of columns."""

    subgroup: Subgroup

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.lens.name} | {self.subgroup.label}"

    def row_mask(self, preds: Predictions) -> Array:
        return self.subgroup.row_mask(preds)


@dataclass(frozen=True)
class SubgroupPartition:
    """The disjoint subgroups of one column, or of several columns combined."""

    column: str  # name of the column, or of several joined by ×
    groups: tuple[Subgroup, ...]  # those that are examined
    unexamined_groups: tuple[Subgroup, ...] = ()  # those beyond the limit that the caller has set
    zero_weight_groups: tuple[Subgroup, ...] = ()  # no row has weight, or a label is unknown in all rows
    n_empty: int = 0  # number of combinations of values that no row has


def subgroup_partitions(
    preds: Predictions,
    max_columns: int = 1,
    max_groups: int | None = None,
    lens: Lens | None = None,
    weighted_rows: Predictions | None = None,
) -> list[SubgroupPartition]:
    """Return the subgroups of each column, then of each pair of columns, up to `max_columns` columns at a time.

    With `max_groups`, only so many subgroups of each column or combination are examined, in the order of their
    `group_zscores` through the lens. `weighted_rows` are the rows that are evaluated if they are not `preds`: without
    those of weight 0, or repeated by their weights.

    >>> preds = Predictions([0, 1], [0.2, 0.9], group={"sex": ["f", "m"], "site": ["a", "b"]})
    >>> partitions = subgroup_partitions(preds, max_columns=2)
    >>> [(partition.column, len(partition.groups), partition.n_empty) for partition in partitions]
    [('sex', 2, 0), ('site', 2, 0), ('sex × site', 2, 2)]
    """
    return [
        _partition_by_columns(preds, names, max_groups, lens, preds if weighted_rows is None else weighted_rows)
        for size in range(1, max_columns + 1)
        for names in combinations(preds.group, size)
    ]


def rows_of_groups(preds: Predictions, groups: Sequence[Subgroup]) -> list[Array]:
    """Return the numbers of the rows of each subgroup, ascending, in one pass over the rows for each column."""
    rows: list[Array] = [np.empty(0, dtype=np.int64)] * len(groups)
    by_columns: dict[tuple[str, ...], list[int]] = {}
    for number, group in enumerate(groups):
        if group.is_complement:
            rows[number] = np.flatnonzero(group.row_mask(preds))
            continue
        by_columns.setdefault(tuple(column for column, _ in group.values), []).append(number)
    for names, numbers in by_columns.items():
        positions = [{value: i for i, value in enumerate(_values_and_codes(preds, name)[0])} for name in names]
        codes, sizes = _combined_codes(preds, names)
        order = np.argsort(codes, kind="stable")
        sorted_codes = codes[order]
        for number in numbers:
            values = [value for _, value in groups[number].values]
            if all(value in known for known, value in zip(positions, values, strict=True)):
                indices = [known[value] for known, value in zip(positions, values, strict=True)]
                code = np.ravel_multi_index(indices, sizes)
                rows[number] = order[slice(*np.searchsorted(sorted_codes, [code, code + 1]))]
    return rows


def group_zscores(views: Sequence[View], group_of_row: Array | None = None, n_groups: int = 1) -> Array:
    r"""Return for each group the largest z-score of calibration-in-the-large over some views, (groups,).

    .. math:: |\sum_i w_i (y_i - p_i)| / \sqrt{\sum_i w_i^2 p_i (1 - p_i)}

    It is infinite if only the denominator is 0. `group_of_row` (n,) are the numbers of the groups; None for a single
    group, whose views may be cells of many rows. Cost: O(n).
    """
    zscores = np.zeros(n_groups)
    for view in views:
        groups = np.zeros(len(view), dtype=np.int64) if group_of_row is None else group_of_row
        ps, ys = (view.p.T, view.y.T) if view.joint else (view.p[None], view.y[None])  # a row for each outcome
        for p, y in zip(ps.astype(np.float64), ys, strict=True):
            variances = view.w**2 * p * (1 - p) if view.joint else view.sums("wwv")
            residuals = np.abs(np.bincount(groups, view.w * (y - p), n_groups))
            residuals[residuals <= ROUNDING_ERROR * np.bincount(groups, view.w, n_groups)] = 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                std = np.sqrt(np.maximum(np.bincount(groups, variances, n_groups), 0.0))
                zscores = np.fmax(zscores, residuals / std)
    return zscores


def largest_zscores(zscores: Array, max_groups: int | None) -> Array:
    """Return the mask of the groups that a limit on their number allows, those of the largest z-scores, (groups,)."""
    if max_groups is None:
        return np.ones(len(zscores), dtype=bool)
    return np.isin(np.arange(len(zscores)), np.argsort(-zscores, kind="stable")[:max_groups])


def _values_and_codes(preds: Predictions, name: str) -> tuple[Array, Array]:
    """Return the sorted values of a group column, and the number of the value of each row (n,)."""

    def find_values() -> tuple[Array, Array]:
        values, codes = np.unique(preds.group[name], return_inverse=True)
        return values, codes.reshape(-1)

    return preds.cached(("group", name), find_values)


def _combined_codes(preds: Predictions, names: Sequence[str]) -> tuple[Array, tuple[int, ...]]:
    """Return the number of the combination of values of each row (n,), and the number of values of each column."""
    values_and_codes = [_values_and_codes(preds, name) for name in names]
    sizes = tuple(len(values) for values, _ in values_and_codes)
    return np.ravel_multi_index([codes for _, codes in values_and_codes], sizes), sizes


def _partition_by_columns(
    preds: Predictions, names: tuple[str, ...], max_groups: int | None, lens: Lens | None, weighted_rows: Predictions
) -> SubgroupPartition:
    """Partition the rows by the combinations of values of some columns; see `subgroup_partitions`."""
    codes, sizes = _combined_codes(preds, names)
    occupied_codes, group_of_row = np.unique(codes, return_inverse=True)
    group_of_row = group_of_row.reshape(-1)
    has_weight = np.bincount(group_of_row, preds.w) > 0
    if preds.known is not None:  # every label must be known in some row of a group
        has_weight = np.min([np.bincount(group_of_row, preds.w * known) for known in preds.known.T], axis=0) > 0
    groups = [
        Subgroup(tuple((name, _values_and_codes(preds, name)[0][i]) for name, i in zip(names, numbers, strict=True)))
        for numbers in zip(*np.unravel_index(occupied_codes, sizes), strict=True)
    ]
    is_examined = has_weight
    if max_groups is not None and has_weight.sum() > max_groups:
        group_of_weighted_row = np.empty(weighted_rows.n, dtype=np.int64)
        for number, rows in enumerate(rows_of_groups(weighted_rows, groups)):
            group_of_weighted_row[rows] = number
        views = (lens or default_lens(preds)).views(weighted_rows)
        zscores = group_zscores(views, group_of_weighted_row, len(groups))
        is_examined = largest_zscores(np.where(has_weight, zscores, -1.0), max_groups)
    return SubgroupPartition(
        column=" × ".join(names),
        groups=tuple(group for i, group in enumerate(groups) if is_examined[i]),
        unexamined_groups=tuple(group for i, group in enumerate(groups) if has_weight[i] and not is_examined[i]),
        zero_weight_groups=tuple(group for i, group in enumerate(groups) if not has_weight[i]),
        n_empty=math.prod(sizes) - len(groups),
    )
