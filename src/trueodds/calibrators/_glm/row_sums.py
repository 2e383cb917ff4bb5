"""Sums over rows in memory or in passes over a data source, so that one fitting routine serves both.

A fit, such as Newton's method, needs only sums of a function over all rows: a likelihood and its derivatives. It calls
`SummableRows.sum(f)`, where f maps some rows to a result that can be added. `InMemory` evaluates f once, on all rows.
`Streamed` evaluates it on every batch of a source, which takes one pass, and adds the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
# Maps some rows to other rows, or to a result that can be added. With streamed rows it is sent to workers, so it must
# be picklable.
RowFunction = Callable[[Any], Any]


class SummableRows(ABC):
    """Rows, in memory or streamed, of which a fit needs only sums."""

    summary: Any  # of the original rows: `FitData` in memory, else `FitDataSummary`
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
        """Sum a function over the rows."""
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
        """Replace the rows by f(rows)."""
        return InMemory(f(self.rows), self.summary, self.n_probabilities)

    def sum(self, f: RowFunction) -> Any:
        """Evaluate the function on all rows."""
        return f(self.rows)

    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        """Evaluate each function on all rows, lazily."""
        return map(self.sum, functions)


@dataclass(slots=True, eq=False)
class PassCounter:
    """Sums a function over the batches of a source, and counts these passes."""

    reduce: Callable[[RowFunction], Any]  # applies a function to every batch and adds the results
    n_passes: int = 0  # so far

    def __call__(self, f: RowFunction) -> Any:
        """Sum the function over all batches, in one pass."""
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
        """Replace the rows by f(rows), which is computed in each pass."""
        return Streamed(self.reducer, self.summary, (*self.transforms, f))

    def sums(self, functions: Iterable[RowFunction]) -> Iterable[Any]:
        """Sum all functions in one pass."""
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
        """Sum each composition of functions over all batches, in one pass."""
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
        """Apply the functions in turn."""
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
        n_shared = _count_shared_functions(chains)
        shared_rows = Composition(chains[0][:n_shared])(rows)
        return Sums(tuple(Composition(chain[n_shared:])(shared_rows) for chain in chains))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Several sums that add elementwise."""

    values: tuple[Any, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


def _count_shared_functions(chains: Sequence[tuple[RowFunction, ...]]) -> int:
    """Number of functions with which all chains start; the last function of a chain is never shared."""
    max_shared = min(map(len, chains)) - 1
    for i in range(max_shared):
        if any(chain[i] is not chains[0][i] for chain in chains):
            return i
    return max_shared
