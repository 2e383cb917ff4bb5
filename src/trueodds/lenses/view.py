"""View: the probabilities, outcomes and weights that a lens shows, by row or by cell with its moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.typing import Array
from trueodds.data.weights import are_counts, unit_of
from trueodds.kernels.bin_sums import row_sums
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.rows import Exact, Rows

T = TypeVar("T")

SORTED = "sorted"  # under which a view keeps its rows by score (see by_score.py)
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

    __slots__ = (
        "_at", "_cache", "_n", "_p", "_sums", "_w", "_y", "bin_index", "classes", "exact", "name", "rows", "votes",
    )  # fmt: skip

    exact: Exact | None  # of rows: where complements and logarithms come from; None where p is all there is
    rows: Rows | None  # where the columns come from, if nobody has read them yet
    bin_index: Array | None  # (n,) of a pooled view: the number of each cell in its partition
    votes: Array | None  # (n,) how many people chose in each row, where that is known

    def __init__(
        self,
        p: ArrayLike,
        y: ArrayLike,
        w: ArrayLike | None = None,
        *,
        n: ArrayLike | None = None,
        sums: Mapping[str, Array] | Callable[[], Mapping[str, Array]] | None = None,
        at: ArrayLike | None = None,
        name: str = "",
        classes: int = 2,
        votes: ArrayLike | None = None,
        bin_index: Array | None = None,
        exact: Exact | None = None,
    ) -> None:
        self._p: Array | None = np.asarray(p)
        if self._p.dtype.kind != "f":
            self._p = self._p.astype(np.float64)
        self._y: Array | None = np.asarray(y, dtype=np.float64)
        self._w: Array | None = None if w is None else np.asarray(w, dtype=np.float64)
        self._n: Array | None = None if n is None else np.asarray(n, dtype=np.float64)
        self._sums = sums
        self._at: Array | None = None if at is None else np.asarray(at)
        self.votes = None if votes is None else np.asarray(votes)
        self.name = name
        self.classes = classes  # K of the problem that the lens looked at, 0 where nobody knows it
        self.rows, self.bin_index, self.exact = None, bin_index, exact
        self._cache: dict[object, Any] = {}

    @classmethod
    def of_rows(cls, rows: Rows, *, name: str = "", classes: int = 2, exact: Exact | None = None) -> View:
        """The binary view of these rows; their columns are made when somebody reads them."""
        new = cls.__new__(cls)
        new._p = new._y = new._w = new._n = new._at = new._sums = new.votes = new.bin_index = None
        new.rows, new.name, new.classes, new.exact, new._cache = rows, name, classes, exact, {}
        return new

    @property
    def p(self) -> Array:
        """What was said: (n,) in [0, 1], or (n, m) with rows on the simplex."""
        if self._p is None:
            assert self.rows is not None
            self._p = self.rows.predicted()
        return self._p

    @property
    def y(self) -> Array:
        """What came, in the shape of p, float64."""
        if self._y is None:
            assert self.rows is not None
            self._y = self.rows.observed().astype(np.float64)
        return self._y

    @property
    def q(self) -> Array:
        """The probability that the event of a binary view does not come, (n,) float64, with all digits that are known."""
        if self.exact is None:
            return np.maximum(1 - self.p.astype(np.float64), 0.0)
        return self.once("q", partial(self.exact.complement, self.p))

    @property
    def P(self) -> Array:
        """The probability of each outcome, (n, m) float64: of a binary view the complement and the event."""
        p = self.p.astype(np.float64, copy=False)
        return p if p.ndim == 2 else np.stack([self.q, p], axis=1)

    @property
    def Y(self) -> Array:
        """The observed share of each outcome, in the shape of `P`."""
        return self.y if self.y.ndim == 2 else np.stack([1 - self.y, self.y], axis=1)

    @property
    def log_P(self) -> Array:
        """The log-probability of each outcome, in the shape of `P`; finite wherever a probability is not exactly 0."""
        if not self.joint:
            return self.once("log_P", partial(_logs, self.exact, self.P))
        return _logs(self.exact, self.p)  # of many classes, so it is not kept

    @property
    def has_logs(self) -> bool:
        """Whether log-probabilities are known beyond the probabilities, so that none underflows."""
        return self.exact is not None and self.exact.has_logs

    @property
    def read(self) -> bool:
        """Whether `p` is there already: whoever needs less than columns then does better without a pass over the rows."""
        return self._p is not None

    @property
    def outcomes(self) -> Array:
        """The same for those who read it once: bool where that is all there is to tell, an eighth of the memory."""
        return self.y if self.rows is None or self._y is not None else self.rows.observed()

    @property
    def w(self) -> Array:
        """The weight of each row, (n,) ≥ 0."""
        if self._w is None:
            self._w = np.ones(len(self))
        return self._w

    @property
    def n(self) -> Array:
        """How many rows each cell holds, (n,); a row of weight 0 is none."""
        if self._n is None:
            self._n = self.w if self.plain else (self.w > 0).astype(np.float64)
        return self._n

    @property
    def at(self) -> Array:
        """Where a partition looks to place each cell, (n,) or (n, m): p itself for rows."""
        return self.p if self._at is None else self._at

    def __len__(self) -> int:
        return self.rows.n if self._p is None and self.rows is not None else len(self.p)

    @property
    def plain(self) -> bool:
        """Whether these are rows of weight 1, for all that was said of them."""
        return self._w is None and self._n is None and self._sums is None

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gives, made once for this view; what cannot be a key is made each time.

        It must not hold the view itself: a circle would keep the rows in memory.
        """
        try:
            hash(key)
        except TypeError:
            return make()
        if key not in self._cache:
            self._cache[key] = make()
        cached: T = self._cache[key]
        return cached

    @property
    def joint(self) -> bool:
        """Whether `p` and `y` are vectors."""
        return self._p is not None and self._p.ndim == 2

    @property
    def is_rows(self) -> bool:
        """Whether every cell is a single row, so that row-wise statistics exist."""
        return self._sums is None

    @property
    def n_rows(self) -> int:
        """How many rows the view stands for."""
        return len(self) if self.plain else int(self.n.sum())

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(len(self)) if self.plain else float(self.w.sum())

    @property
    def effective_n(self) -> float:
        """As many rows of equal weight as the weights are worth, (Σw)²/Σw²; 0 where no row has weight."""
        if self.plain:
            return self.total
        return self.total**2 / float(self.sums("ww").sum()) if self.total > 0 else 0.0

    @property
    def has_integer_weights(self) -> bool:
        """Whether the weights are counts, so that a weight of two can be two rows exactly."""
        return self.plain or are_counts(self.w)

    @property
    def unit(self) -> float | None:
        """The weight of one row, where weights are multiples of it; None where they are not."""
        occupied = self.n > 0
        return 1.0 if self.has_integer_weights else unit_of(self.w[occupied] / self.n[occupied])

    @property
    def counted(self) -> float:
        """How many rows the weights stand for: their sum where they are counts, else the rows that have weight."""
        return self.total if self.has_integer_weights else self.n_rows

    def sums(self, name: str) -> Array:
        """One of the sums per cell (see SUMS); derived for raw rows."""
        if callable(self._sums):
            self._sums = self._sums()
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
            return w * w * p * self.q
        return w * w * (y - p) ** 2

    def binned(self, cells: FittedPartition) -> View:
        """The view of the cells of a frozen partition; those without weight are absent."""
        if not isinstance(cells, Bins):  # known by itself: a tree is walked once
            return self.once(cells, lambda: self.pool(cells.index(self.at), cells.size))
        if self.joint or not self.is_rows:
            return self.pool(cells.index(self.at), cells.size)
        return self.once((cells.edges.tobytes(), cells.closed), lambda: self._binned(cells))

    def _binned(self, bins: Bins) -> View:
        table: Mapping[str, Array] | None = None
        if by_score := self._cache.get(SORTED):  # bins are stretches of what somebody has sorted already
            table = by_score.in_bins(bins)
        if table is None and self.rows is not None and self._at is None:
            table = self.rows.sums(bins.edges, bins.closed)
        return self._summed(bins) if table is None else binned_view(table, lambda: self._summed(bins).as_sums, self)

    def _summed(self, bins: Bins) -> View:
        if self._at is not None:
            return self.pool(bins.index(self.at), bins.size)
        table = row_sums(self.p, self.y, self.w, self.n, bins.edges, bins.closed)
        bin_index = np.flatnonzero(table[:, 1] > 0)
        n, mass, wp, wy, *sums = table[bin_index].T
        named = dict(zip(SUMS, sums, strict=True))
        return View(
            wp / mass, wy / mass, mass, n=n, sums=named, name=self.name, classes=self.classes, bin_index=bin_index
        )

    @property
    def as_sums(self) -> Mapping[str, Array]:
        """All the sums of SUMS by name."""
        return {name: self.sums(name) for name in SUMS}

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
            return View(p, y, mass, n=n, sums={"ww": ww}, name=self.name, classes=self.classes, bin_index=keep)
        sums = {name: np.bincount(index, self.sums(name), size)[keep] for name in SUMS}
        p = np.bincount(index, self.w * self.p, size)[keep] / mass
        y = np.bincount(index, self.w * self.y, size)[keep] / mass
        return View(p, y, mass, n=n, sums=sums, name=self.name, classes=self.classes, bin_index=keep)

    def _columns(self, x: Array, index: Array, size: int) -> Array:
        return np.stack([np.bincount(index, self.w * column, size) for column in x.T], axis=1)

    def with_y(self, y: Array) -> View:
        """The same rows with other outcomes."""
        new = View(self.p, y, name=self.name, classes=self.classes, votes=self.votes, exact=self.exact)
        new._w, new._n, new._at = self._w, self._n, self._at
        return new

    def take(self, rows: Array) -> View:
        """The chosen rows, in that order, with repetition."""
        assert self.is_rows  # a cell of many rows has sums that would be lost
        new = View(
            self.p[rows],
            self.y[rows],
            name=self.name,
            classes=self.classes,
            votes=None if self.votes is None else self.votes[rows],
            exact=None if self.exact is None else Chosen(self, rows),
        )
        new._w, new._n, new._at = (None if x is None else x[rows] for x in (self._w, self._n, self._at))
        return new


class Chosen:
    """The complements and logarithms of chosen rows of a view."""

    def __init__(self, view: View, rows: Array) -> None:
        self.view, self.rows = view, rows

    @property
    def has_logs(self) -> bool:
        """Whether the view has."""
        return self.view.has_logs

    def complement(self, p: Array) -> Array:
        """Those of the view, row by row."""
        return np.asarray(self.view.q[self.rows])

    def logs(self, outcomes: int) -> Array:
        """Those of the view, row by row."""
        return np.asarray(self.view.log_P[self.rows])


def _logs(exact: Exact | None, P: Array) -> Array:
    """The log-probabilities where they are known, else the logarithms of the probabilities (n, m)."""
    logs = None if exact is None else exact.logs(P.shape[1])
    if logs is not None:
        return logs
    logs = np.maximum(P, 0.0, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.log(logs, out=logs)


def binned_view(table: Mapping[str, Array], more: Callable[[], Mapping[str, Array]], of: View) -> View:
    """The view of bins of plain rows from n, Σp, Σy and Σpy; the other sums follow from Σp², or are made on demand."""
    bin_index = np.flatnonzero(table["n"] > 0)
    n, wp, wy, wpy = (table[name][bin_index] for name in ("n", "wp", "wy", "wpy"))
    sums: Any = more
    if "wpp" in table:
        wpp = table["wpp"][bin_index]
        wwr = np.maximum(wy - 2 * wpy + wpp, 0.0)  # a square is not below 0 by rounding
        sums = dict(zip(SUMS, (n, wpp, wpy, wy, wp - wpp, wwr), strict=True))
    return View(wp / n, wy / n, n, n=n, sums=sums, name=of.name, classes=of.classes, bin_index=bin_index)
