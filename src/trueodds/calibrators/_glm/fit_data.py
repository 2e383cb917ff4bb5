"""The rows to which a calibrator is fitted, and sums over them in memory or in passes over a data source.

A fit, such as Newton's method, needs only sums of a function over all rows: a likelihood and its derivatives. It calls
`SummableRows.sum(f)`, where f maps some rows to a result that can be added. `InMemory` evaluates f once, on all rows.
`Streamed` evaluates it on every batch of a source, which takes one pass, and adds the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, LogProbabilities, Probabilities, ReplacedCounts
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks

_EQUALITY_TOLERANCE = 1e-9  # relative difference up to which two weights, or a share of votes and 1, are equal
_PROBABILITIES_PER_BLOCK = 2**18  # so that temporaries stay in a core's cache


@dataclass(frozen=True, eq=False)
class FitData:
    """Rows in memory to which a calibrator is fitted."""

    P: Any  # (n, K) probabilities or their logarithms (`Probabilities`), or an array of logits
    Y: Array  # (n, K) outcome shares, or class numbers (n,)
    w: Array  # (n,) weights above 0
    cluster: Array | None = None  # (n,) labels of clusters
    min_prob: float = MIN_PROB  # smallest probability inside a logarithm
    logits: bool = False  # whether P holds logits

    @classmethod
    def from_rows(
        cls, P: Probabilities, Y: Array, w: Array, cluster: Array | None, *, min_prob: float, logits: bool
    ) -> FitData:
        if not w.all():
            has_weight = w > 0
            P, Y, w = P[has_weight], Y[has_weight], w[has_weight]
            cluster = None if cluster is None else cluster[has_weight]
        return cls(P, Y, w, cluster, min_prob, logits)

    @property
    def k(self) -> int:
        return self.P.shape[1]

    @property
    def n(self) -> int:
        return len(self.w)

    @cached_property
    def total_weight(self) -> float:
        """Total weight; 1 if there are no rows, as a divisor."""
        return float(self.w.sum()) or 1.0

    @cached_property
    def class_totals(self) -> Array:
        """Total weight of the outcomes of each class, (K,)."""
        return np.bincount(self.Y, self.w, self.k) if self.Y.ndim == 1 else np.asarray(weighted_sum(self.w, self.Y))

    @property
    def replaced_counts(self) -> ReplacedCounts:
        """Counts of the probabilities that `min_prob` replaces; of logits, those of exact zeros."""
        P = np.where(np.isneginf(self.P), 0.0, 1.0) if self.logits else self.P
        return ReplacedCounts.from_probabilities(P, self.Y, self.min_prob)

    @cached_property
    def std_error_method(self) -> str:
        return self.homogeneity.std_error_method

    @property
    def row_weight(self) -> float:
        """The weight of a row, if all are equal."""
        return float(self.w[0])

    @cached_property
    def homogeneity(self) -> RowHomogeneity:
        """Whether rows have equal weights, a single outcome each and no clusters."""
        if self.cluster is not None:
            return RowHomogeneity(has_clusters=True)
        has_vote_shares = self.Y.ndim == 2 and bool((self.Y.max(axis=1) < 1 - _EQUALITY_TOLERANCE).any())
        return RowHomogeneity(float(self.w.min()), float(self.w.max()), has_vote_shares=has_vote_shares)


@dataclass(frozen=True, slots=True)
class RowHomogeneity:
    """Whether rows have equal weights, single outcomes and no clusters; summaries of batches add up."""

    min_weight: float = 1.0
    max_weight: float = 1.0
    has_clusters: bool = False
    has_vote_shares: bool = False  # whether some row has votes for several classes

    @property
    def std_error_method(self) -> str:
        """How standard errors are computed, one of `parameter_uncertainty.STD_ERROR_METHODS`."""
        if self.has_clusters or self.has_vote_shares:
            return "clusters" if self.has_clusters else "votes"
        return "curvature" if self.max_weight - self.min_weight <= _EQUALITY_TOLERANCE * self.min_weight else "weights"

    def __add__(self, other: RowHomogeneity) -> RowHomogeneity:
        return RowHomogeneity(
            min(self.min_weight, other.min_weight),
            max(self.max_weight, other.max_weight),
            self.has_clusters or other.has_clusters,
            self.has_vote_shares or other.has_vote_shares,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FitDataSummary:
    """Summary of rows that are not in memory; summaries of batches add up."""

    n: int  # number of rows
    total_weight: float
    class_totals: Array  # (K,) total weight of the outcomes of each class
    replaced_counts: ReplacedCounts
    homogeneity: RowHomogeneity

    @classmethod
    def from_fit_data(cls, data: FitData) -> FitDataSummary:
        return cls(data.n, data.total_weight, data.class_totals, data.replaced_counts, data.homogeneity)

    @property
    def k(self) -> int:
        return len(self.class_totals)

    @property
    def std_error_method(self) -> str:
        return self.homogeneity.std_error_method

    @property
    def row_weight(self) -> float:
        return self.homogeneity.min_weight

    def scale_weights(self, factor: float) -> FitDataSummary:
        homogeneity = replace(
            self.homogeneity,
            min_weight=self.homogeneity.min_weight * factor,
            max_weight=self.homogeneity.max_weight * factor,
        )
        return replace(
            self,
            total_weight=self.total_weight * factor,
            class_totals=self.class_totals * factor,
            homogeneity=homogeneity,
        )

    def __add__(self, other: FitDataSummary) -> FitDataSummary:
        return FitDataSummary(
            self.n + other.n,
            self.total_weight + other.total_weight,
            self.class_totals + other.class_totals,
            self.replaced_counts + other.replaced_counts,
            self.homogeneity + other.homogeneity,
        )


def rows_with_weight(P: Any, Y: Array, w: Array) -> tuple[Any, Array, Array]:
    """P, Y and w without the rows of weight 0."""
    has_weight = w > 0
    return (P, Y, w) if has_weight.all() else (P[has_weight], Y[has_weight], w[has_weight])


def iterate_blocks(P: Probabilities, Y: Array, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    """Iterate over blocks of rows with positive weight: probabilities or their logarithms, outcomes, weights."""
    block_size = max(1, _PROBABILITIES_PER_BLOCK // P.shape[1])
    for start in range(0, len(P), block_size):
        block = slice(start, start + block_size)
        p, y, weights = rows_with_weight(P[block], Y[block], w[block])
        yield p if isinstance(p, LogProbabilities) else p.astype(np.float64, copy=False), y, weights


def one_hot_shares(Y: Array, k: int) -> Array:
    """Outcomes as shares (n, K), from shares or from class numbers (n,).

    >>> one_hot_shares(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if Y.ndim == 2:
        return Y
    shares = np.zeros((len(Y), k))
    shares[np.arange(len(Y)), Y] = 1.0
    return shares


def apply_in_blocks(apply: Callable[[Any], Array], P: Probabilities) -> Array:
    """Apply a function to blocks of the rows of P (n, K), on several threads; returns (n, K) float64."""
    out = np.empty(P.shape)

    def apply_to_block(start: int, stop: int) -> None:
        out[start:stop] = apply(P[start:stop])

    map_blocks(apply_to_block, len(P), max(1, _PROBABILITIES_PER_BLOCK // P.shape[1]))
    return out


T = TypeVar("T")
# Maps some rows to other rows, or to a result that can be added. With streamed rows it is sent to workers, so it must
# be picklable.
RowFunction = Callable[[Any], Any]


class SummableRows(ABC):
    """Rows, in memory or streamed, of which a fit needs only sums."""

    summary: Any  # of the original rows: `FitData` in memory, else `FitDataSummary`, which has its attributes for sums
    rows: Any  # rows in memory; None if they are streamed
    n_probabilities: int = 0  # number of probabilities in memory; 0 if rows are streamed

    @abstractmethod
    def map_rows(self, f: RowFunction) -> SummableRows:
        """Replace the rows by f(rows), which is computed once in memory, and again in each pass if streamed."""

    @abstractmethod
    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        """Sum several functions over the rows: lazily one by one in memory, all in one pass if streamed."""

    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """Run several fits and return their results: one after the other, or if streamed, in common passes."""
        return [fit(self) for fit in fits]

    def sum(self, f: RowFunction) -> Any:
        (total,) = self.sums([f])
        return total


@dataclass(frozen=True, slots=True, eq=False)
class InMemory(SummableRows):
    """Rows in memory, as a single batch.

    >>> InMemory([1, 2]).map_rows(lambda rows: [2 * row for row in rows]).sum(sum)
    6
    """

    rows: Any  # as the functions take them, such as `FitData`
    summary: Any = None  # `FitData` of the original rows
    n_probabilities: int = 0

    def map_rows(self, f: RowFunction) -> InMemory:
        return InMemory(f(self.rows), self.summary, self.n_probabilities)

    def sum(self, f: RowFunction) -> Any:
        return f(self.rows)

    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        return map(self.sum, functions)


@dataclass(slots=True, eq=False)
class PassCounter:
    """Sums a function over the batches of a source, and counts these passes."""

    reduce: Callable[[RowFunction], Any]  # applies a function to every batch and adds the results
    n_passes: int = 0  # so far

    def __call__(self, f: RowFunction) -> Any:
        self.n_passes += 1
        return self.reduce(f)


@dataclass(frozen=True, slots=True, eq=False)
class Streamed(SummableRows):
    """Rows in the batches of a source, none of which is stored.

    >>> streamed = Streamed(PassCounter(lambda step: step([1, 2]) + step([3])))
    >>> streamed.sum(sum), streamed.reducer.n_passes
    (6, 1)
    """

    reducer: PassCounter
    summary: Any = None  # `FitDataSummary` of the original rows
    transforms: tuple[RowFunction, ...] = ()  # functions that are applied to each batch, in order
    rows: Any = field(default=None, init=False)
    n_probabilities: int = field(default=0, init=False)

    def map_rows(self, f: RowFunction) -> Streamed:
        return Streamed(self.reducer, self.summary, (*self.transforms, f))

    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        return self._sum_compositions([Composition((*self.transforms, f)) for f in functions])

    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """Run the fits until each needs an unknown sum, take these sums in one pass, and repeat.

        A fit that needs an unknown sum is interrupted by an exception and later run again from its beginning, with the
        sums that are known by then. Compared with a pass this costs nothing, and fitting routines need not know of it.
        """
        known_sums: list[list[Any]] = [[] for _ in fits]
        results: dict[int, T] = {}
        while len(results) < len(fits):
            requests: dict[int, tuple[Composition, ...]] = {}
            for i, fit in enumerate(fits):
                if i in results:
                    continue
                try:
                    results[i] = fit(_Replayed(known_sums[i], self.summary, self.transforms))
                except _MissingSums as missing:
                    requests[i] = missing.compositions
            requested_sums = [composition for request in requests.values() for composition in request]
            sums = iter(self._sum_compositions(requested_sums) if requests else ())
            for i, request in requests.items():
                known_sums[i].append([next(sums) for _ in request])
        return [results[i] for i in range(len(fits))]

    def _sum_compositions(self, compositions: Sequence[Composition]) -> tuple[Any, ...]:
        sums: Sums = self.reducer(ParallelSums(tuple(compositions)))
        return sums.values


class _MissingSums(Exception):
    """Raised in a fit that needs sums that are not known yet."""

    def __init__(self, compositions: tuple[Composition, ...]) -> None:
        self.compositions = compositions  # functions of a batch whose sums are needed


class _Replayed(SummableRows):
    """Rows for a fit that is run again: the sums that it needs first are known from earlier passes."""

    def __init__(self, known_sums: Iterable[Any], summary: Any, transforms: tuple[RowFunction, ...]) -> None:
        self._known_sums = iter(known_sums)
        self.summary, self.rows, self._transforms = summary, None, transforms

    def map_rows(self, f: RowFunction) -> _Replayed:
        """Replace the rows by f(rows); the sums of both are taken from the same known sums in turn."""
        return _Replayed(self._known_sums, self.summary, (*self._transforms, f))

    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        """Return the next known sums; where there are none, interrupt the fit to request them."""
        known = next(self._known_sums, None)
        if known is not None:
            return list(known)
        raise _MissingSums(tuple(Composition((*self._transforms, f)) for f in functions))


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """A composition of functions, which can be pickled."""

    functions: tuple[RowFunction, ...]  # from the first to the last

    def __call__(self, rows: Any) -> Any:
        for f in self.functions:
            rows = f(rows)
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class ParallelSums:
    """Several compositions of functions of a batch, evaluated together."""

    compositions: tuple[Composition, ...]

    def __call__(self, rows: Any) -> Sums:
        """Return the results of all compositions; the functions with which all of them start are applied once."""
        chains = [composition.functions for composition in self.compositions]
        # The last function of a chain is never shared.
        steps = zip(*(chain[:-1] for chain in chains), strict=False)
        n_shared = len(list(takewhile(lambda functions: all(f is functions[0] for f in functions), steps)))
        shared_rows = Composition(chains[0][:n_shared])(rows)
        return Sums(tuple(Composition(chain[n_shared:])(shared_rows) for chain in chains))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Several sums that add elementwise."""

    values: tuple[Any, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))
