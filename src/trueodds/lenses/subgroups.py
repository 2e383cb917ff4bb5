"""Subgroups formed by the values of group columns, and lenses restricted to one subgroup."""

from __future__ import annotations

from dataclasses import dataclass, field
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

    lens: Lens
    column: str
    value: Any

    @property
    def name(self) -> str:  # type: ignore[override]
        """`confidence | site=A`."""
        return f"{self.lens.name} | {self.column}={self.value}"

    def rows(self, preds: Predictions) -> Array:
        """Mask of the rows of the subgroup."""
        return np.asarray(preds.group[self.column] == self.value)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Views of the underlying lens, with weight zero outside the subgroup."""
        inside = self.rows(preds).astype(np.float64)
        label = f"{self.column}={self.value}"
        return tuple(
            View(
                v.p, v.y, v.w * inside,
                n=inside, name=f"{v.name} | {label}", classes=v.classes, votes=v.votes, exact=v.exact,
            )
            for v in self.lens.views(preds)
        )  # fmt: skip

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Mapping of labels by the underlying lens."""
        return self.lens.outcome_codes(preds)

    def columns(self, preds: Predictions) -> list[int]:
        """Class numbers of the underlying lens."""
        return self.lens.columns(preds)


MAX_EVALUATED_GROUPS = 50  # of one column or crossing: the largest are evaluated, the others counted


@dataclass(frozen=True)
class Subgroup:
    """The rows that have one value in each of some group columns.

    >>> preds = Predictions([0, 1], [0.2, 0.9], group={"sex": ["f", "m"], "site": ["a", "a"]})
    >>> one = Subgroup((("sex", "f"), ("site", "a")))
    >>> one.label, one.column, one.rows(preds).tolist()
    ('sex=f, site=a', 'sex × site', [True, False])
    """

    values: tuple[tuple[str, Any], ...]  # column and value
    rest: bool = False  # the rows that are not in it instead

    @property
    def column(self) -> str:
        """Name of the column, or of the columns joined by ×."""
        return " × ".join(column for column, _ in self.values)

    @property
    def value(self) -> str:
        """The value, or the values joined by ×."""
        return ("not " if self.rest else "") + " × ".join(str(value) for _, value in self.values)

    @property
    def label(self) -> str:
        """`sex=f, site=a`."""
        return ("not " if self.rest else "") + ", ".join(f"{column}={value}" for column, value in self.values)

    def rows(self, preds: Predictions) -> Array:
        """Mask of the rows of the subgroup, (n,) bool."""
        inside = np.logical_and.reduce([np.asarray(preds.group[column] == value) for column, value in self.values])
        return np.asarray(inside != self.rest)

    def of(self, lens: Lens) -> GroupLens:
        """The lens on these rows. Other rows have weight zero, so that draws are shared."""
        return _SubgroupLens(lens, self.column, self.value, self)


@dataclass(frozen=True, eq=False)
class _SubgroupLens(GroupLens):
    """A lens on a subgroup defined by any number of columns."""

    group: Subgroup

    @property
    def name(self) -> str:  # type: ignore[override]
        """`confidence | sex=f, site=a`."""
        return f"{self.lens.name} | {self.group.label}"

    def rows(self, preds: Predictions) -> Array:
        """Mask of the rows of the subgroup."""
        return self.group.rows(preds)


@dataclass(frozen=True)
class SubgroupPartition:
    """The disjoint subgroups of one column, or of several columns combined."""

    column: str
    groups: tuple[Subgroup, ...]
    smaller: tuple[Subgroup, ...] = ()  # beyond the largest MAX_EVALUATED_GROUPS
    weightless: tuple[Subgroup, ...] = ()  # all their rows have weight 0
    empty: int = field(default=0)  # number of combinations of values that no row has


def subgroup_partitions(preds: Predictions, max_columns: int = 1) -> list[SubgroupPartition]:
    """Return the subgroups of each column, then of each pair of columns, up to `max_columns` columns at a time.

    >>> preds = Predictions([0, 1], [0.2, 0.9], group={"sex": ["f", "m"], "site": ["a", "b"]})
    >>> partitions = subgroup_partitions(preds, max_columns=2)
    >>> [(partition.column, len(partition.groups), partition.empty) for partition in partitions]
    [('sex', 2, 0), ('site', 2, 0), ('sex × site', 2, 2)]
    """
    coded = {name: np.unique(labels, return_inverse=True) for name, labels in preds.group.items()}
    return [
        _partition_by_columns(preds, {name: coded[name] for name in names})
        for size in range(1, max_columns + 1)
        for names in combinations(coded, size)
    ]


def _partition_by_columns(preds: Predictions, columns: dict[str, tuple[Array, Array]]) -> SubgroupPartition:
    sizes = [len(values) for values, _ in columns.values()]
    codes = np.ravel_multi_index([inverse.reshape(-1) for _, inverse in columns.values()], sizes)
    present, index, count = np.unique(codes, return_inverse=True, return_counts=True)
    weighty = np.bincount(index.reshape(-1), preds.w) > 0
    groups = [
        Subgroup(tuple((name, values[i]) for (name, (values, _)), i in zip(columns.items(), place, strict=True)))
        for place in zip(*np.unravel_index(present, sizes), strict=True)
    ]
    largest = set(np.argsort(-np.where(weighty, count, 0), kind="stable")[:MAX_EVALUATED_GROUPS])
    mask = [weighty[i] and i in largest for i in range(len(groups))]
    return SubgroupPartition(
        " × ".join(columns),
        tuple(group for group, one in zip(groups, mask, strict=True) if one),
        tuple(group for group, one, heavy in zip(groups, mask, weighty, strict=True) if heavy and not one),
        tuple(group for group, heavy in zip(groups, weighty, strict=True) if not heavy),
        int(np.prod(sizes)) - len(groups),
    )
