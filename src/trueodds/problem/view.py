"""What a lens sees: said against seen, row by row or cell by cell, with the sums that cells carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

SUMS = ("ww", "wpp", "wpy", "wyy", "wwv", "wwr")
"""The sums beyond n, Σw, Σwp and Σwy that a binary cell carries:
Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)²."""


class View:
    """Predictions and outcomes through one lens.

    A binary view holds the probability `p` of one outcome and how often it came, `y`; a joint view holds
    vectors over m outcomes in both. `w` is the weight. A raw row is a cell of one row; a cell of many rows
    carries the means in `p` and `y`, the weight sum in `w` and further sums. `y` may be fractional (votes).

    >>> view = View(p=[0.9, 0.8], y=[1, 0])
    >>> view.n_rows, float(view.pool(np.array([0, 0]), 1).p[0].round(2))
    (2, 0.85)
    """

    __slots__ = ("_sums", "at", "classes", "n", "name", "p", "votes", "w", "y")

    p: Array  # (n,) in [0, 1], or (n, m) with rows on the simplex
    y: Array  # same shape as p
    w: Array  # (n,) ≥ 0
    n: Array  # (n,) how many rows each cell holds; a row of weight 0 is none
    votes: Array | None  # (n,) how many people chose in each row, where that is known
    at: Array  # (n,) or (n, m): where a partition looks to place the cell; p itself for rows

    def __init__(
        self,
        p: ArrayLike,
        y: ArrayLike,
        w: ArrayLike | None = None,
        *,
        n: ArrayLike | None = None,
        sums: Mapping[str, Array] | None = None,
        at: ArrayLike | None = None,
        name: str = "",
        classes: int = 2,
        votes: ArrayLike | None = None,
    ) -> None:
        self.p = np.asarray(p)
        if self.p.dtype.kind != "f":
            self.p = self.p.astype(np.float64)
        self.y = np.asarray(y, dtype=np.float64)
        self.w = np.ones(len(self.p)) if w is None else np.asarray(w, dtype=np.float64)
        self.n = (self.w > 0).astype(np.float64) if n is None else np.asarray(n, dtype=np.float64)
        self._sums = None if sums is None else dict(sums)
        self.at = self.p if at is None else np.asarray(at)
        self.votes = None if votes is None else np.asarray(votes)
        self.name = name
        self.classes = classes  # K of the problem that the lens looked at, 0 where nobody knows it

    @property
    def joint(self) -> bool:
        """Whether `p` and `y` are vectors."""
        return self.p.ndim == 2

    @property
    def is_rows(self) -> bool:
        """Whether every cell is a single row, so that row-wise statistics exist."""
        return self._sums is None

    @property
    def n_rows(self) -> int:
        """How many rows the view stands for."""
        return int(self.n.sum())

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.w.sum())

    @property
    def worth(self) -> float:
        """As many rows of equal weight as the weights are worth, (Σw)²/Σw²; 0 where no row has weight."""
        return self.total**2 / float(self.sums("ww").sum()) if self.total > 0 else 0.0

    @property
    def whole(self) -> bool:
        """Whether the weights are counts, so that a weight of two can be two rows exactly."""
        return bool((self.w == np.rint(self.w)).all())

    @property
    def counted(self) -> float:
        """How many rows the weights stand for: their sum where they are counts, else the rows that have weight."""
        return self.total if self.whole else self.n_rows

    def sums(self, name: str) -> Array:
        """One of the sums per cell (see SUMS); derived for raw rows."""
        if self._sums is not None:
            return self._sums[name]
        w, y = self.w, self.y
        p = self.p.astype(np.float64, copy=False)
        if name == "ww":
            return w * w
        if name == "wpp":
            return w * p * p
        if name == "wpy":
            return w * p * y
        if name == "wyy":
            return w * y * y
        if name == "wwv":
            return w * w * p * (1 - p)
        return w * w * (y - p) ** 2

    def pool(self, index: Array, size: int) -> View:
        """The view of the cells that `index` puts together; cells without weight are absent.

        Linear in the rows; every sum is a float64 sum of the parts' sums, so pooling in steps changes nothing.
        """
        w = np.bincount(index, self.w, size)
        keep = np.flatnonzero(w > 0)
        n = np.bincount(index, self.n, size)[keep]
        mass = w[keep]
        if self.joint:
            ww = np.bincount(index, self.sums("ww"), size)[keep]
            p = self._columns(self.p, index, size)[keep] / mass[:, None]
            y = self._columns(self.y, index, size)[keep] / mass[:, None]
            return View(p, y, mass, n=n, sums={"ww": ww}, name=self.name, classes=self.classes)
        sums = {name: np.bincount(index, self.sums(name), size)[keep] for name in SUMS}
        p = np.bincount(index, self.w * self.p, size)[keep] / mass
        y = np.bincount(index, self.w * self.y, size)[keep] / mass
        return View(p, y, mass, n=n, sums=sums, name=self.name, classes=self.classes)

    def _columns(self, x: Array, index: Array, size: int) -> Array:
        return np.stack([np.bincount(index, self.w * column, size) for column in x.T], axis=1)

    def with_y(self, y: Array) -> View:
        """The same rows with other outcomes."""
        return View(self.p, y, self.w, n=self.n, at=self.at, name=self.name, classes=self.classes, votes=self.votes)

    def take(self, rows: Array) -> View:
        """The chosen rows, in that order, with repetition."""
        assert self.is_rows  # a cell of many rows has sums that would be lost
        return View(
            self.p[rows],
            self.y[rows],
            self.w[rows],
            n=self.n[rows],
            at=self.at[rows],
            name=self.name,
            classes=self.classes,
            votes=None if self.votes is None else self.votes[rows],
        )
