"""What do the rows of a binary view look like from the lowest score to the highest? Sorted once, for all who ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.kernels import sort
from trueodds.core.kernels.stretches import in_bins
from trueodds.problem.bins import Bins
from trueodds.problem.view import SORTED, View

Array = NDArray[Any]

SLACK = 1e-12  # of all weight: a cut that a cumulative weight meets up to its rounding ends there


def by_score(view: View) -> ByScore:
    """The scores of a binary view in rising order, sorted when first asked for."""
    return view.once(SORTED, lambda: ByScore(view.p, view.came, None if view.plain else view.w))


def by_place(view: View) -> ByScore:
    """The same as a partition looks at it: cells lie where they are placed, rows at their scores."""
    return by_score(view) if view.is_rows else ByScore(view.at, view.y, view.w)


class ByScore:
    """Rows or cells by rising score; those without weight are absent.

    What is kept is the order alone, 4 or 8 bytes a row: sums are made for whom they serve, since views of a thousand
    classes would otherwise hold several times what their probabilities take.

    >>> rising = ByScore(np.array([0.9, 0.2, 0.9]), np.array([1.0, 0.0, 0.0]))
    >>> [x.tolist() for x in rising.sums()]
    [[0.2, 0.9], [1.0, 2.0], [0.0, 1.0]]
    """

    def __init__(self, p: Array, y: Array, w: Array | None = None) -> None:
        even = w is None or bool((w == 1).all())
        self._p, self._y, self._w = p, y, w
        self._keys = sort.keys(p, y) if even else None
        self._order = sort.order(p) if self._keys is None else np.empty(0, dtype=np.int64)

    def sums(self) -> tuple[Array, Array, Array]:
        """The rising distinct scores, Σw and Σwy at each, (m,) float64."""
        if self._keys is not None:
            return sort.counts(self._keys)
        w = np.ones(len(self._p)) if self._w is None else self._w
        return sort.sums(self._p, self._y, w, self._order)

    def in_bins(self, bins: Bins) -> Mapping[str, Array] | None:
        """n, wp, wy, wpy and wpp of each bin: bins are stretches of sorted rows. None where rows do not count alike."""
        if self._keys is None:
            return None
        return dict(zip(("n", "wp", "wy", "wpy", "wpp"), in_bins(self._keys, bins.edges, bins.closed).T, strict=True))

    def between(self, mass: Array) -> tuple[Array, Array]:
        """The score of the row that completes each weight, counted from the lowest score, and of the row after it."""
        if self._keys is not None:
            last, following = around(mass, len(self._keys))
            return sort.scores(self._keys[last]), sort.scores(self._keys[following])
        s, w, _ = self.sums()
        if not len(s):
            return s, s
        reached = np.cumsum(w)
        slack = SLACK * reached[-1]
        last = np.searchsorted(reached, mass - slack, "left")
        return s[last], s[np.minimum(np.searchsorted(reached, mass + slack, "right"), len(s) - 1)]


def around(mass: Array, n: int) -> tuple[Array, Array]:
    """Which of n rising rows, of weight 1 each, completes each weight, and which comes after it."""
    slack = SLACK * n
    last = np.clip(np.ceil(mass - slack) - 1, 0, n - 1).astype(np.int64)
    return last, np.minimum(np.floor(mass + slack), n - 1).astype(np.int64)


def grouped(w: Array, most: int) -> Array:
    """The first of the scores of each group, if scores of weight w (m,) make up at most so many groups of equal weight."""
    if len(w) <= most:
        return np.arange(len(w))
    middle = (np.cumsum(w) - w / 2) / w.sum()
    return np.flatnonzero(np.diff((middle * most).astype(np.int64), prepend=-1) > 0)
