"""Tallies of many groups, held column by column: a hundred thousand of them are made and added up in one pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.cells import CELLS
from trueodds.tallies.cells import Cells
from trueodds.tallies.counts import COUNTS, EXTREMES, Counts
from trueodds.tallies.scores import SCORES, ScoreSums

if TYPE_CHECKING:
    from trueodds.tallies.tally import Tally


_SCORE_SUMS = tuple(field.name for field in fields(ScoreSums))
_EXTREMES = np.array([COUNTS.index(name) for name in EXTREMES])
_PENDING = 4096  # cells that may always wait to be added


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumns:
    """The tallies of G groups: the cells of one group after the other, and one row per group of every other sum."""

    template: Tally  # of any of the groups, for what all have in common
    names: tuple[str, ...]  # (G,) sorted
    n: Array  # (G,) int64
    weight: Array  # (G,)
    starts: Array  # (G + 1,) where the cells of each group start
    index: Array  # (m,) as in Cells
    rows: Array  # (m,) int64, `n` of Cells
    sums: Array  # (m, 4 or 9) as in Cells
    scores: Array  # (G, 2, 7) by the name of the score and the field of ScoreSums
    counts: Array  # (G, 9) by the field of Counts

    @classmethod
    def of(cls, tallies: Mapping[str, Tally]) -> GroupColumns | None:
        """The columns of tallies that have everything but their sums in common; None for others, or for no tally."""
        names = tuple(sorted(tallies))
        parts = [tallies[name] for name in names]
        if len({_layout(part) for part in parts}) != 1:
            return None
        return cls(
            parts[0],
            names,
            np.array([part.n for part in parts], dtype=np.int64),
            np.array([part.weight for part in parts], dtype=np.float64),
            np.cumsum([0, *(len(part.cells.index) for part in parts)]),
            np.concatenate([part.cells.index for part in parts]),
            np.concatenate([part.cells.n for part in parts]),
            np.concatenate([part.cells.sums for part in parts]),
            np.array([[astuple(part.scores[name]) for name in SCORES] for part in parts], dtype=np.float64),
            np.array([astuple(part.counts) for part in parts], dtype=np.float64),
        )

    @classmethod
    def added(cls, parts: Sequence[GroupColumns]) -> GroupColumns:
        """The sum of the parts, to the bit as if the tallies of each group were added in their order."""
        if len(parts) == 1:
            return parts[0]
        names = tuple(sorted({name for part in parts for name in part.names}))
        position = {name: i for i, name in enumerate(names)}
        n_groups, size = len(names), len(parts[0].template.slots) * CELLS
        n, weight = np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups)
        scores = np.full((n_groups, *parts[0].scores.shape[1:]), -0.0)  # −0 + x is x for every x; 0 + −0 is 0
        counts = np.zeros((n_groups, len(COUNTS)))
        keys = []
        for part in parts:
            at = np.array([position[name] for name in part.names])
            n[at] += part.n
            weight[at] += part.weight
            scores[at] += part.scores
            largest = np.maximum(counts[at], part.counts)[:, _EXTREMES]
            counts[at] += part.counts
            counts[at[:, None], _EXTREMES] = largest
            keys.append(np.repeat(at, np.diff(part.starts)) * size + part.index)
        key, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        starts = np.searchsorted(key, np.arange(n_groups + 1) * size)
        rows = _sum_by(inverse, np.concatenate([part.rows for part in parts])).astype(np.int64)
        columns = np.concatenate([part.sums for part in parts]).T
        sums = np.stack([_sum_by(inverse, column) for column in columns], axis=1)
        return cls(parts[0].template, names, n, weight, starts, key % size, rows, sums, scores, counts)

    def tally(self, i: int) -> Tally:
        """The tally of one group."""
        cells = slice(self.starts[i], self.starts[i + 1])
        return replace(
            self.template,
            n=int(self.n[i]),
            weight=float(self.weight[i]),
            cells=Cells(self.index[cells], self.rows[cells], self.sums[cells]),
            scores={name: _score_sums(row) for name, row in zip(SCORES, self.scores[i].tolist(), strict=True)},
            counts=_counts(self.counts[i].tolist()),
        )


class GroupTallies(Mapping[str, "Tally"]):
    """The tally of each group by its name, in the order of the names.

    `+` lets summands wait until they are as long as the sum so far, so that many batches are added in linear time.
    """

    def __init__(self, *parts: GroupColumns) -> None:
        self._parts = parts

    def __add__(self, other: GroupTallies) -> GroupTallies:
        total = GroupTallies(*self._parts, other.columns)
        first, *pending = (len(part.index) for part in total._parts)
        if sum(pending) > max(first, _PENDING):
            total._parts = (total.columns,)
        return total

    @property
    def columns(self) -> GroupColumns:
        """All groups as one sum."""
        if len(self._parts) > 1:
            self._parts = (GroupColumns.added(self._parts),)
        return self._parts[0]

    @property
    def template(self) -> Tally:
        """A tally with everything that the groups have in common."""
        return self._parts[0].template

    def __getitem__(self, name: str) -> Tally:
        i = bisect_left(self.columns.names, name)
        if self.columns.names[i : i + 1] != (name,):
            raise KeyError(name)
        return self.columns.tally(i)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns.names)

    def __len__(self) -> int:
        return len(self.columns.names)


def union(a: Mapping[str, Tally], b: Mapping[str, Tally]) -> Mapping[str, Tally]:
    """The tallies of the groups of both, those of one name added up."""
    first, second = _by_columns(a), _by_columns(b)
    if first is not None and second is not None and _layout(first.template) == _layout(second.template):
        return first + second
    both = {**a, **b, **{name: a[name] + b[name] for name in a if name in b}}
    return dict(sorted(both.items()))


def _by_columns(tallies: Mapping[str, Tally]) -> GroupTallies | None:
    """The same tallies column by column; None where they have different layouts."""
    if isinstance(tallies, GroupTallies):
        return tallies
    columns = GroupColumns.of(tallies)
    return None if columns is None else GroupTallies(columns)


def _layout(tally: Tally) -> tuple[Any, ...]:
    """What tallies must have in common to be held in the same columns."""
    return tally.kind, tally.classes, tally.dtype, tally.bins, tally.slots, tally.cells.plain


def _sum_by(bin_index: Array, values: Array) -> Array:
    """The sum of the values of each slot, in their order."""
    return np.bincount(bin_index, weights=values)


def _score_sums(row: list[float]) -> ScoreSums:
    values: dict[str, Any] = dict(zip(_SCORE_SUMS, row, strict=True))
    return ScoreSums(**{**values, "infinite": int(values["infinite"])})


def _counts(row: list[float]) -> Counts:
    values: dict[str, Any] = {name: x if name in EXTREMES else int(x) for name, x in zip(COUNTS, row, strict=True)}
    return Counts(**values)
