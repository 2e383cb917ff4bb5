"""Probabilities, outcomes and bin sums of the rows behind a binary view, computed without copying columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import sort
from trueodds.kernels.bin_sums import class_sums, label_sums
from trueodds.kernels.largest import largest_hits, largest_keys, largest_moments, largest_sums
from trueodds.kernels.smoothing import moments, residuals


class Rows(Protocol):
    """The rows behind a binary view, of weight 1 and one label each: columns for those who read them, sums without."""

    n: int

    def predicted(self) -> Array:
        """The probability of each row."""
        ...

    def observed(self) -> Array:
        """Whether its event came, bool."""
        ...

    def keys(self) -> Array:
        """Both as one number that rises with the probability (see `sort.row_keys`)."""
        ...

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        """n, wp, wy and wpy of each bin, and wpp where it costs nothing."""
        ...

    def moments(self, cells: int, powers: int) -> Array:
        """Σ(y − p)u^k in each of the cells that cut [0, 1] evenly, u the place within it (see `kernels.moments`)."""
        ...


class Exact(Protocol):
    """What a lens knows of its probabilities beyond `p`: complements that 1 − p would round, and logarithms."""

    @property
    def has_logs(self) -> bool:
        """Whether log-probabilities are known beyond the probabilities, from logits."""
        ...

    def complement(self, p: Array) -> Array:
        """The probability that an event of probability p (n,) does not come, (n,) float64."""
        ...

    def logs(self, outcomes: int) -> Array | None:
        """The log-probability of each outcome, (n, outcomes), where it is known beyond its probability."""
        ...


class Largest:
    """The largest probability of each row against whether its class came; `tied` hears how many rows have several."""

    def __init__(self, P: Array, y: Array, tied: Callable[[int], None]) -> None:
        self.P, self.y, self.n, self._tied = P, y, len(P), tied
        self._observed: Array | None = None

    def predicted(self) -> Array:
        """The largest values; whether they were right is seen on the way."""
        top, self._observed, ties = largest_hits(self.P, self.y)
        self._tied(ties)
        return top

    def observed(self) -> Array:
        """Whether the lowest class that has the largest value came."""
        if self._observed is None:
            self.predicted()
        assert self._observed is not None
        return self._observed

    def keys(self) -> Array:
        """Both in one number."""
        keys, ties = largest_keys(self.P, self.y)
        self._tied(ties)
        return keys

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        """The sums of each bin."""
        table, ties = largest_sums(self.P, self.y, edges, closed)
        self._tied(ties)
        return by_outcome(table)

    def moments(self, cells: int, powers: int) -> Array:
        """The residuals by cell of their scores."""
        table, ties = largest_moments(self.P, self.y, cells, powers)
        self._tied(ties)
        return table


class Column:
    """One column of probabilities against whether its label came."""

    def __init__(self, p: Array, y: Array, label: int) -> None:
        self.p, self.y, self.label, self.n = p, y, label, len(p)

    def predicted(self) -> Array:
        """The column itself."""
        return self.p

    def observed(self) -> Array:
        """Whether the label is this one."""
        return np.asarray(self.y == self.label)

    def keys(self) -> Array:
        """Both in one number."""
        encoded = sort.row_keys(self.p, self.observed())
        assert encoded is not None
        return encoded

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        """The sums of each bin."""
        return by_outcome(label_sums(self.p, self.y, self.label, edges, closed))

    def moments(self, cells: int, powers: int) -> Array:
        """The residuals by cell of their scores."""
        return moments(self.p, residuals(self.p, self.observed(), None), cells, powers)


class Classes:
    """Every class against the rest: one pass over the rows makes the sums of all."""

    def __init__(self, P: Array, y: Array) -> None:
        self.P, self.y = P, y
        self._cache: dict[tuple[bytes, str], Array] = {}

    def sums(self, edges: Array, closed: str) -> Array:
        """n, Σp, Σy and Σpy, (K, bins, 4)."""
        key = (edges.tobytes(), closed)
        if key not in self._cache:
            self._cache[key] = class_sums(self.P, self.y, edges, closed)
        return self._cache[key]


class OneOfClasses(Column):
    """One class among those whose sums are made together."""

    def __init__(self, classes: Classes, c: int) -> None:
        super().__init__(classes.P[:, c], classes.y, c)
        self.classes = classes

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        """The sums of each bin."""
        return dict(zip(("n", "wp", "wy", "wpy"), self.classes.sums(edges, closed)[self.label].T, strict=True))


def by_outcome(table: Array) -> Mapping[str, Array]:
    """n, wp, wy, wpy and wpp from n, Σp and Σp² of the rows without and with the event, (bins, 2, 3)."""
    n, wp, wpp = table.sum(axis=1).T
    return {"n": n, "wp": wp, "wy": table[:, 1, 0], "wpy": table[:, 1, 1], "wpp": wpp}
