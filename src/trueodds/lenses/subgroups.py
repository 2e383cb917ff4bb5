"""Subgroups formed by the values of group columns, and lenses restricted to one subgroup."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens, OutcomeCodes
from trueodds.lenses.view import View


@dataclass(frozen=True, eq=False)
class GroupLens(Lens):
    """A lens on the rows with one value of a group column."""

    lens: Lens  # the underlying lens
    column: str  # name of the group column, or of several joined by ×
    value: Any  # of the column, in the rows of the subgroup

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the lens, such as `confidence | site=A`."""
        return f"{self.lens.name} | {self.column}={self.value}"

    def row_mask(self, preds: Predictions) -> Array:
        """Mask (n,) of the rows of the subgroup."""
        return np.asarray(preds.group[self.column] == self.value)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Views of the underlying lens, with weight zero outside the subgroup."""
        mask = self.row_mask(preds).astype(np.float64)
        label = f"{self.column}={self.value}"
        return tuple(
            View(
                view.p, view.y, view.w * mask,
                n=mask, name=f"{view.name} | {label}", classes=view.classes, votes=view.votes, exact=view.exact,
            )
            for view in self.lens.views(preds)
        )  # fmt: skip

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Mapping of labels by the underlying lens."""
        return self.lens.outcome_codes(preds)

    def class_columns(self, preds: Predictions) -> list[int]:
        """Class numbers of the underlying lens."""
        return self.lens.class_columns(preds)


MAX_EVALUATED_GROUPS = 50  # groups of one column, or combination of columns: of more, only the largest are evaluated


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
        """Mask of the rows of the subgroup, (n,) bool."""
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
        """Name of the lens, such as `confidence | sex=f, site=a`."""
        return f"{self.lens.name} | {self.subgroup.label}"

    def row_mask(self, preds: Predictions) -> Array:
        """Mask (n,) of the rows of the subgroup."""
        return self.subgroup.row_mask(preds)


@dataclass(frozen=True)
class SubgroupPartition:
    """The disjoint subgroups of one column, or of several columns combined."""

    column: str  # name of the column, or of several joined by ×
    groups: tuple[Subgroup, ...]  # the largest subgroups, at most MAX_EVALUATED_GROUPS
    unevaluated_groups: tuple[Subgroup, ...] = ()  # the smaller ones
    zero_weight_groups: tuple[Subgroup, ...] = ()  # all their rows have weight 0
    n_empty: int = 0  # number of combinations of values that no row has


def subgroup_partitions(preds: Predictions, max_columns: int = 1) -> list[SubgroupPartition]:
    """Return the subgroups of each column, then of each pair of columns, up to `max_columns` columns at a time.

    >>> preds = Predictions([0, 1], [0.2, 0.9], group={"sex": ["f", "m"], "site": ["a", "b"]})
    >>> partitions = subgroup_partitions(preds, max_columns=2)
    >>> [(partition.column, len(partition.groups), partition.n_empty) for partition in partitions]
    [('sex', 2, 0), ('site', 2, 0), ('sex × site', 2, 2)]
    """
    values_and_codes = {name: np.unique(labels, return_inverse=True) for name, labels in preds.group.items()}
    return [
        _partition_by_columns(preds, {name: values_and_codes[name] for name in names})
        for size in range(1, max_columns + 1)
        for names in combinations(values_and_codes, size)
    ]


def _partition_by_columns(preds: Predictions, columns: dict[str, tuple[Array, Array]]) -> SubgroupPartition:
    """Partition the rows by columns, each given by its sorted values and the number of the value of each row (n,)."""
    sizes = [len(values) for values, _ in columns.values()]
    codes = np.ravel_multi_index([inverse.reshape(-1) for _, inverse in columns.values()], sizes)
    occupied_codes, group_of_row, n_rows = np.unique(codes, return_inverse=True, return_counts=True)
    has_weight = np.bincount(group_of_row.reshape(-1), preds.w) > 0
    groups = [
        Subgroup(tuple((name, values[i]) for (name, (values, _)), i in zip(columns.items(), numbers, strict=True)))
        for numbers in zip(*np.unravel_index(occupied_codes, sizes), strict=True)
    ]
    largest = set(np.argsort(-np.where(has_weight, n_rows, 0), kind="stable")[:MAX_EVALUATED_GROUPS])
    return SubgroupPartition(
        column=" × ".join(columns),
        groups=tuple(group for i, group in enumerate(groups) if has_weight[i] and i in largest),
        unevaluated_groups=tuple(group for i, group in enumerate(groups) if has_weight[i] and i not in largest),
        zero_weight_groups=tuple(group for i, group in enumerate(groups) if not has_weight[i]),
        n_empty=int(np.prod(sizes)) - len(groups),
    )
