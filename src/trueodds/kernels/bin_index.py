"""Where a score falls between given edges: compared with them, never computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from trueodds.core.typing import Array
from trueodds.kernels.edges import index

Closed = Literal["left", "right"]


class Frozen(Protocol):
    """A partition that has been chosen: it places any score."""

    @property
    def size(self) -> int:
        """How many cells."""
        ...

    def index(self, at: Array) -> Array:
        """The cell of each score."""
        ...


@dataclass(frozen=True)
class Bins:
    """Cells between given edges, right-closed `(lo, hi]` with the first closed at its lower edge.

    A score is placed by comparing it with the stored edges, never by arithmetic, and a score outside the
    range falls into the first or last bin: nothing is dropped.

    >>> import numpy as np
    >>> Bins(np.arange(11) / 10).index(np.array([0.0, 0.3, 0.7, 1.0])).tolist()
    [0, 2, 6, 9]
    """

    edges: Array  # (size + 1,)
    closed: Closed = "right"

    @property
    def size(self) -> int:
        """How many bins."""
        return len(self.edges) - 1

    def index(self, at: Array) -> Array:
        """The bin of each score."""
        return index(at, self.edges, self.closed)
