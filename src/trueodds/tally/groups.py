"""Tallies of many groups, held column by column: a hundred thousand of them are made and added up in one pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels.cells import CELLS
from trueodds.tally.cells import Cells
from trueodds.tally.counts import COUNTS, EXTREMES, Counts
from trueodds.tally.scores import SCORES, ScoreSums

if TYPE_CHECKING:
    from trueodds.tally.tally import Tally

Array = NDArray[Any]

_SUMS = tuple(each.name for each in fields(ScoreSums))
_EXTREME = [COUNTS.index(name) for name in EXTREMES]
_FEW = 4096  # cells that are added up sooner than they are put aside


@dataclass(frozen=True, slots=True)
class Make:
    """What tallies of groups have in common that can be added column by column."""

    kind: str
    classes: tuple[Any, ...]
    dtype: str
    bins: int
    slots: tuple[str, ...]
    sums: int  # per cell, 4 or 9


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The tallies of G groups: the cells of one after the other, and a row of every other sum for each."""

    make: Make
    names: tuple[str, ...]  # sorted
    n: Array  # (G,) int64
    weight: Array  # (G,)
    starts: Array  # (G + 1,) of each group's cells
    index: Array  # (m,) as of Cells
    rows: Array  # (m,)
    sums: Array  # (m, 4 or 9)
    scores: Array  # (G, 2, 7) by the name of the score and the fields of ScoreSums
    counts: Array  # (G, 9) by the fields of Counts

    @classmethod
    def of(cls, tallies: Mapping[str, Tally]) -> Columns | None:
        """The columns of tallies that were made alike; None where they were not, or there are none."""
        makes = {
            Make(each.kind, each.classes, each.dtype, each.bins, each.slots, each.cells.sums.shape[1])
            for each in tallies.values()
        }
        if len(makes) != 1:
            return None
        parts = [tallies[name] for name in sorted(tallies)]
        return cls(
            makes.pop(),
            tuple(sorted(tallies)),
            np.array([part.n for part in parts], dtype=np.int64),
            np.array([part.weight for part in parts], dtype=np.float64),
            np.cumsum([0, *(len(part.cells.index) for part in parts)]),
            np.concatenate([part.cells.index for part in parts]),
            np.concatenate([part.cells.n for part in parts]),
            np.concatenate([part.cells.sums for part in parts]),
            np.array([[astuple(part.scores[name]) for name in SCORES] for part in parts], dtype=np.float64),
            np.array([astuple(part.counts) for part in parts], dtype=np.float64),
        )

    def tally(self, i: int) -> Tally:
        """The tally of one group."""
        from trueodds.tally.tally import Tally

        make, cells = self.make, slice(self.starts[i], self.starts[i + 1])
        return Tally(
            kind=make.kind,
            classes=make.classes,
            dtype=make.dtype,
            bins=make.bins,
            grid=None,
            slots=make.slots,
            n=int(self.n[i]),
            weight=float(self.weight[i]),
            cells=Cells(self.index[cells], self.rows[cells], self.sums[cells]),
            joint={},
            null=None,
            scores={name: _score(row) for name, row in zip(SCORES, self.scores[i].tolist(), strict=True)},
            counts=_counts(self.counts[i].tolist()),
            groups={},
        )

    @classmethod
    def together(cls, parts: Sequence[Columns]) -> Columns:
        """The sum of each group in the order of the parts, to the bit as if they had been added one by one."""
        if len(parts) == 1:
            return parts[0]
        names = tuple(sorted({name for part in parts for name in part.names}))
        place = {name: i for i, name in enumerate(names)}
        g, span = len(names), len(parts[0].make.slots) * CELLS
        n, weight = np.zeros(g, dtype=np.int64), np.zeros(g)
        scores = np.full((g, *parts[0].scores.shape[1:]), -0.0)  # to which a first −0 adds up to −0
        counts = np.zeros((g, len(COUNTS)))
        keys = []
        for part in parts:
            at = np.array([place[name] for name in part.names])
            n[at] += part.n
            weight[at] += part.weight
            scores[at] += part.scores
            most = np.maximum(counts[at][:, _EXTREME], part.counts[:, _EXTREME])
            counts[at] += part.counts
            counts[np.ix_(at, _EXTREME)] = most
            keys.append(np.repeat(at, np.diff(part.starts)) * span + part.index)
        sums = np.concatenate([np.column_stack([part.rows, part.sums]) for part in parts])
        key, sums = added_up(np.concatenate(keys), sums)
        starts = np.searchsorted(key, np.arange(g + 1) * span)
        rows = sums[:, 0].astype(np.int64)
        return cls(parts[0].make, names, n, weight, starts, key % span, rows, sums[:, 1:].copy(), scores, counts)


class GroupTallies(Mapping[str, "Tally"]):
    """The tally of each group by its name, in the order of the names.

    `+` puts what is added aside until it is as much as the sum, so that many batches are added up in linear time.
    """

    def __init__(self, *parts: Columns) -> None:
        self._parts = parts

    def __add__(self, other: GroupTallies) -> GroupTallies:
        found = GroupTallies(*self._parts, other.columns)
        first, *later = (len(part.index) for part in found._parts)
        if sum(later) > max(first, _FEW):
            found._parts = (found.columns,)
        return found

    @property
    def columns(self) -> Columns:
        """All of it as one sum."""
        if len(self._parts) > 1:
            self._parts = (Columns.together(self._parts),)
        return self._parts[0]

    @property
    def make(self) -> Make:
        """What the tallies have in common."""
        return self._parts[0].make

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
    one, two = grouped(a), grouped(b)
    if isinstance(one, GroupTallies) and isinstance(two, GroupTallies) and one.make == two.make:
        return one + two
    both = {**a, **b, **{name: a[name] + b[name] for name in a if name in b}}
    return dict(sorted(both.items()))


def grouped(tallies: Mapping[str, Tally]) -> Mapping[str, Tally]:
    """The tallies column by column where they are alike."""
    if isinstance(tallies, GroupTallies):
        return tallies
    columns = Columns.of(tallies)
    return tallies if columns is None else GroupTallies(columns)


def added_up(keys: Array, values: Array) -> tuple[Array, Array]:
    """The different keys (m,), rising, and the sums (m, c) of the values (n, c) that they have, in the order of the rows."""
    found, inverse = np.unique(keys, return_inverse=True)
    sums = [np.bincount(inverse, weights=column, minlength=len(found)) for column in values.T]
    return found, np.stack(sums, axis=1)


def _score(row: list[float]) -> ScoreSums:
    return ScoreSums(**{name: int(x) if name == "infinite" else x for name, x in zip(_SUMS, row, strict=True)})


def _counts(row: list[float]) -> Counts:
    return Counts(**{name: x if name in EXTREMES else int(x) for name, x in zip(COUNTS, row, strict=True)})
