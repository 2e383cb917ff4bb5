"""View: the probabilities, outcomes and weights of the event that a lens examines, by row or summed by cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.data.weights import unit_weights
from trueodds.kernels.bins import Bins, FittedPartition, find_bins, sums_by_cell, weighted_bin_sums
from trueodds.lenses.row_sources import ExactProbabilities, RowSource, outcome_logs

T = TypeVar("T")
_Sums = Mapping[str, Array]
SORTED_SCORES_KEY = "sorted"  # cache key of the sorted rows of a view (see binning/sorted_scores.py)
# Outside of these limits, different log odds may have equal probabilities: at 1 − 1e-6 only if they differ by less
# than 1e-10, at 1 − 1e-13 by less than 1e-3, from log odds 37 on always.
MIN_RANKED_PROB, MAX_RANKED_PROB = 1e-300, 1 - 1e-6
SUMS = ("ww", "wpp", "wpy", "wyy", "wwv", "wwr")
"""Sums of a binary cell beyond n, Σw, Σwp and Σwy: Σw², Σwp², Σwpy, Σwy², Σw²p(1−p) and Σw²(y−p)²."""


class View:
    """Predictions and outcomes of one lens, as rows or as cells of many rows.

    A binary view holds the probability and outcome of one event, a joint view vectors over m outcomes. A cell of many
    rows holds their means in `p` and `y`, their total weight in `w`, and further sums. `y` may be fractional (votes).

    Parameters
    ----------
    p, y : array_like, (n,) or (n, m)
        Predicted probabilities and observed outcomes.
    w, n : array_like, (n,), optional
        Weight and number of rows of each cell. The default is 1.
    sums : mapping or callable, optional
        Further sums of cells of many rows by name (see `SUMS`), (n,) each, or a function that returns them.
    partition_values : array_like, (n,) or (n, m), optional
        Values by which a partition assigns cells to bins. The default is `p`.
    name, classes, votes, bin_index, exact, rows : optional
        Name; number of classes (0 if unknown); votes per row; of a pooled view, the number of each cell in its
        partition; source of complements and logarithms; source of `p` and `y` of unweighted rows, instead of these.

    Examples
    --------
    >>> view = View(p=[0.9, 0.8], y=[1, 0])
    >>> view.n_rows, float(view.pool(np.array([0, 0]), 1).p[0].round(2))
    (2, 0.85)
    """

    def __init__(
        self, p: ArrayLike | None = None, y: ArrayLike | None = None, w: ArrayLike | None = None, *,
        n: ArrayLike | None = None, sums: _Sums | Callable[[], _Sums] | None = None,
        partition_values: ArrayLike | None = None, name: str = "", classes: int = 2, votes: ArrayLike | None = None,
        bin_index: Array | None = None, exact: ExactProbabilities | None = None, rows: RowSource | None = None,
    ) -> None:  # fmt: skip
        self.name, self.classes = name, classes
        self.votes: Array | None = None if votes is None else np.asarray(votes)
        self.bin_index, self.exact, self.rows = bin_index, exact, rows
        self.joint = False  # whether `p` and `y` are vectors
        if rows is None:
            self.p = np.asarray(p)
            if self.p.dtype.kind != "f":
                self.p = self.p.astype(np.float64)
            self.joint = self.p.ndim == 2
            y = np.asarray(y)
            self._bool_outcomes = y if y.dtype == bool else None
            if y.dtype != bool:
                self.y = y.astype(np.float64, copy=False)
        # Whether all cells are rows of weight 1, with no further sums.
        self.is_unweighted = w is None and n is None and sums is None
        if self.is_unweighted:
            self.n_rows = len(self.p) if rows is None else rows.n
            self.total = float(self.n_rows)
        # The columns that are not derived from others.
        self._given: dict[str, Any] = {}
        if w is not None:
            self.w = self._given["w"] = np.asarray(w, dtype=np.float64)
        if n is not None:
            self.n = self._given["n"] = np.asarray(n, dtype=np.float64)
        if partition_values is not None:
            self.partition_values = self._given["partition_values"] = np.asarray(partition_values)
        self.is_rows = sums is None  # whether every cell is a single row, so that row-wise statistics are available
        self._sums = sums
        self._cache: dict[object, Any] = {}

    @cached_property
    def p(self) -> Array:
        """Predicted probabilities: (n,) in [0, 1], or (n, m) with rows on the simplex."""
        assert self.rows is not None
        return self.rows.probabilities()

    @cached_property
    def y(self) -> Array:
        """Observed outcomes in the shape of `p`, float64."""
        return self.outcomes.astype(np.float64)

    @property
    def outcomes(self) -> Array:
        """Observed outcomes for a single use, as bool if possible, which needs an eighth of the memory of `y`."""
        if "y" in self.__dict__:
            return self.y
        return cast(Array, self._bool_outcomes) if self.rows is None else self.rows.events()

    @cached_property
    def w(self) -> Array:
        """Weight of each row, (n,) ≥ 0."""
        return unit_weights(len(self))

    @cached_property
    def n(self) -> Array:
        """Number of rows of each cell, (n,). Rows of weight 0 do not count."""
        return self.w if self.is_unweighted else (self.w > 0).astype(np.float64)

    @cached_property
    def partition_values(self) -> Array:
        """Values by which a partition assigns cells to bins, (n,) or (n, m). For rows this is `p`."""
        return self.p

    @property
    def has_logs(self) -> bool:
        """Whether log-probabilities are known independently of the probabilities, so that none underflows."""
        return self.exact is not None and self.exact.has_logs

    @property
    def has_columns(self) -> bool:
        """Whether `p` has been computed already. If not, sums are cheaper than columns."""
        return "p" in self.__dict__

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.n.sum())

    @cached_property
    def total(self) -> float:
        """Total weight; positive in the view of a lens, because Predictions have a row of positive weight."""
        return float(self.w.sum())

    def mean(self, values: Array) -> float:
        """Return a weighted mean over the rows or cells.

        Parameters
        ----------
        values : ndarray
            One value per row or cell, (n,).

        Returns
        -------
        float
            The mean; NaN without weight.
        """
        return float(weighted_sum(self.w, values) / self.total) if self.total > 0 else math.nan

    @property
    def q(self) -> Array:
        """Probability of the complement of the event, (n,) float64, without rounding of 1 − p if known."""
        if self.exact is None:
            return np.maximum(1 - self.p.astype(np.float64), 0.0)
        return self.cached("q", partial(self.exact.complement, self.p))

    @property
    def P(self) -> Array:
        """Probability of each outcome, (n, m) float64. A binary view has the complement and the event."""
        p = self.p.astype(np.float64, copy=False)
        return p if p.ndim == 2 else np.stack([self.q, p], axis=1)

    @property
    def Y(self) -> Array:
        """Observed share of each outcome, in the shape of `P`."""
        return self.y if self.y.ndim == 2 else np.stack([1 - self.y, self.y], axis=1)

    @property
    def log_P(self) -> Array:
        """Log-probability of each outcome, in the shape of `P`; finite unless a probability is exactly 0."""
        if not self.joint:
            return self.cached("log_P", partial(outcome_logs, self.exact, self.P))
        return outcome_logs(self.exact, self.p)  # of many classes, so it is not kept

    def __len__(self) -> int:
        return len(self.p) if self.rows is None else self.rows.n

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """Return a cached value, or compute it once for this view.

        Parameters
        ----------
        key, compute : object, callable
            Key of the cache (unhashable keys are not cached) and function. The value should not hold a view of rows.

        Returns
        -------
        object
            The value.
        """
        try:
            hash(key)
        except TypeError:
            return compute()
        if key not in self._cache:
            self._cache[key] = compute()
        return cast(T, self._cache[key])

    def release(self) -> None:
        """Forget cached values, and the columns that the row source can compute again, which frees their memory."""
        self._cache = {}
        columns = ("w", "n", "partition_values") if self.rows is None else ("p", "y", "w", "n", "partition_values")
        for name in columns:
            if name not in self._given:
                self.__dict__.pop(name, None)

    def sums(self, name: str) -> Array:
        """Return one of the sums per cell, which are derived for rows.

        Parameters
        ----------
        name : str
            A name of `SUMS`; another one raises KeyError.

        Returns
        -------
        ndarray
            The sum of each cell, (n,).
        """
        if callable(self._sums):
            self._sums = self._sums()
        if self._sums is not None:
            return self._sums[name]
        w, y, p = self.w, self.outcomes, self.p.astype(np.float64, copy=False)
        row_sums_by_name: dict[str, Callable[[], Array]] = {
            "ww": lambda: w * w,
            "wpp": lambda: w * p * p,
            "wpy": lambda: w * p * y,
            "wyy": lambda: w * y * y,
            "wwv": lambda: w * w * p * self.q,
            "wwr": lambda: w * w * (y - p) ** 2,
        }
        return row_sums_by_name[name]()

    def assign(self, partition: FittedPartition) -> Array:
        """Assign the rows or cells to the bins of a fitted partition.

        Parameters
        ----------
        partition : FittedPartition
            The bins.

        Returns
        -------
        ndarray
            The number of the bin of each row or cell, (n,) int64.
        """
        if isinstance(partition, Bins) and partition.log_odds_edges is not None and has_rounded_ranks(self):
            return find_bins(rank_scores(self), partition.log_odds_edges, partition.closed)
        return partition.index(self.partition_values)

    def binned(self, partition: FittedPartition) -> View:
        """Return the view of the bins of a fitted partition.

        Parameters
        ----------
        partition : FittedPartition
            The bins.

        Returns
        -------
        View
            One cell per bin of positive weight.
        """
        # The leaves of a tree are looked up once: the object is the key.
        key = partition.key if isinstance(partition, Bins) else partition
        return self.cached(key, lambda: self._sum_rows_in_cells(partition))

    def _sum_rows_in_cells(self, cells: FittedPartition) -> View:
        """Sum single rows in bins from sorted rows, the row source or columns, whichever exists; pool other cells."""
        if not isinstance(cells, Bins) or self.joint or not self.is_rows or cells.log_odds_edges is not None:
            return self.pool(self.assign(cells), cells.size)
        by_score = self._cache.get(SORTED_SCORES_KEY)  # bins are ranges of the cached sorted rows
        table: _Sums | None = by_score.sums_in_bins(cells) if by_score else None
        if table is None and self.rows is not None:
            table = self.rows.sums(cells.edges, cells.closed)
        if table is None:
            return self._sum_columns_in_bins(cells)
        bin_index = np.flatnonzero(table["n"] > 0)
        n, wp, wy, wpy = (table[name][bin_index] for name in ("n", "wp", "wy", "wpy"))
        if "wpp" in table:
            wpp = table["wpp"][bin_index]
            residuals = np.maximum(wy - 2 * wpy + wpp, 0.0)  # a square is not below 0 by rounding
            sums: Any = dict(zip(SUMS, (n, wpp, wpy, wy, wp - wpp, residuals), strict=True))
        else:
            # This view caches the result, so that a reference to it would be circular: another view has the same rows.
            rows = View(self.p, self.outcomes) if self.rows is None else View(rows=self.rows)
            sums = partial(_column_sums, rows, cells)  # called when a sum is read
        return View(wp / n, wy / n, n, n=n, sums=sums, name=self.name, classes=self.classes, bin_index=bin_index)

    def _sum_columns_in_bins(self, bins: Bins) -> View:
        """The view of bins with all sums of `SUMS`, from the columns of single rows."""
        if "partition_values" in self._given:
            return self.pool(self.assign(bins), bins.size)
        table = weighted_bin_sums(self.p, self.y, self.w, self.n, bins.edges, bins.closed)
        bin_index = np.flatnonzero(table[:, 1] > 0)
        n, weight, wp, wy, *columns = table[bin_index].T
        p, y, sums = wp / weight, wy / weight, dict(zip(SUMS, columns, strict=True))
        return View(p, y, weight, n=n, sums=sums, name=self.name, classes=self.classes, bin_index=bin_index)

    def pool(self, index: Array, size: int) -> View:
        """Pool rows or cells into larger cells.

        Parameters
        ----------
        index, size : ndarray (n,), int
            New cell of each cell, and the number of new cells.

        Returns
        -------
        View
            The cells of positive weight. Pooling in several steps gives the same result.
        """
        w = np.bincount(index, self.w, size)
        occupied = np.flatnonzero(w > 0)
        n, weight = np.bincount(index, self.n, size)[occupied], w[occupied]
        divisor = weight[:, None] if self.joint else weight
        p, y = (sums_by_cell(index, x, size, self.w)[occupied] / divisor for x in (self.p, self.outcomes))
        if self.joint:
            sums: Any = {"ww": np.bincount(index, self.sums("ww"), size)[occupied]}
        else:
            sums = partial(self._pool_sums, index, size, occupied)  # often not needed
        return View(p, y, weight, n=n, sums=sums, name=self.name, classes=self.classes, bin_index=occupied)

    def _pool_sums(self, index: Array, size: int, occupied: Array) -> dict[str, Array]:
        """The sums of `SUMS` over the cells with each index, for the occupied ones of `size` new cells."""
        return {name: np.bincount(index, self.sums(name), size)[occupied] for name in SUMS}

    def with_y(self, y: Array) -> View:
        """Replace the outcomes.

        Parameters
        ----------
        y : ndarray
            New outcomes in the shape of `p`.

        Returns
        -------
        View
            The same rows with the new outcomes.
        """
        name, classes = self.name, self.classes
        return View(self.p, y, **self._given, name=name, classes=classes, votes=self.votes, exact=self.exact)

    def take(self, rows: Array) -> View:
        """Select rows.

        Parameters
        ----------
        rows : ndarray
            Row numbers, in any order and with repetition.

        Returns
        -------
        View
            The selected rows.
        """
        assert self.is_rows  # a cell of many rows has sums that would be lost
        votes = None if self.votes is None else self.votes[rows]
        exact = None if self.exact is None else _SelectedExactProbabilities(self, rows)
        given, (name, classes) = {key: x[rows] for key, x in self._given.items()}, (self.name, self.classes)
        return View(self.p[rows], self.y[rows], **given, name=name, classes=classes, votes=votes, exact=exact)


def log_odds(view: View) -> Array | None:
    """Return the log odds of the event of a binary view from its logits, (n,) float64; None if there are none."""
    return view.cached("log odds", view.exact.log_odds) if view.exact is not None and view.has_logs else None


def has_rounded_ranks(view: View) -> bool:
    """Return whether logits are known whose order and ties are not those of the probabilities `p`."""
    if not view.has_logs or view.joint or not len(view):
        return False
    return view.cached("rounded ranks", lambda: bool(view.p.max() > MAX_RANKED_PROB or view.p.min() < MIN_RANKED_PROB))


def rank_scores(view: View) -> Array:
    """Return scores (n,) by which the rows of a binary view are ranked: `p`, or log odds where `p` rounds ranks away.

    Logits beyond 37 all have the probability 1, for instance. Where `p` keeps the order and the ties of the log odds,
    it is faster.
    """
    return cast(Array, log_odds(view)) if has_rounded_ranks(view) else view.p


def _column_sums(view: View, bins: Bins) -> _Sums:
    return cast(_Sums, view._sum_columns_in_bins(bins)._sums)


class _SelectedExactProbabilities:
    """Exact probabilities of selected rows of a view; `rows` are their numbers."""

    def __init__(self, view: View, rows: Array) -> None:
        self.view, self.rows, self.has_logs = view, rows, view.has_logs

    def complement(self, p: Array) -> Array:
        return np.asarray(self.view.q[self.rows])

    def log_odds(self) -> Array | None:
        log_odds_of_view = log_odds(self.view)
        return None if log_odds_of_view is None else np.asarray(log_odds_of_view[self.rows])

    def logs(self, outcomes: int) -> Array:
        return np.asarray(self.view.log_P[self.rows])


def has_vote_shares(view: View) -> bool:
    """Return whether the outcomes of single rows are shares of votes, so that some of them are neither 0 nor 1."""
    y = view.outcomes
    return view.is_rows and y.dtype != bool and bool(((y > 0) & (y < 1)).any())


def count_views(views: Sequence[View]) -> str:
    """Return the number of several views with a noun: what they are, if their names tell.

    >>> count_views([View([0.2], [0], name="class:a"), View([0.8], [1], name="class:b")])
    '2 classes'
    """
    kinds = {view.name.partition(":")[0] for view in views}
    nouns = {"class": "classes", "predicted": "predicted classes"}
    return f"{len(views)} {nouns.get(kinds.pop(), 'views') if len(kinds) == 1 else 'views'}"


def view_title(name: str) -> str:
    """Return the name of a view as texts and pictures show it: the name of the class alone, if it is one class.

    >>> view_title("class:cat"), view_title("confidence")
    ('cat', 'confidence')
    """
    return name.removeprefix("class:")
