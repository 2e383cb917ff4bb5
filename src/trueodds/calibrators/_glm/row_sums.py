"""Sums over rows in memory or in passes over a data source, so that one fitting routine serves both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

T = TypeVar("T")
# From rows to a result that adds; with streamed rows it is sent to workers, so it must be picklable.
RowFunction = Callable[[Any], Any]


class SummableRows(ABC):
    """Rows from which a fit takes sums only, wherever they are stored."""

    summary: Any  # of the original rows: `FitData` in memory, else `FitDataSummary`
    rows: Any  # rows in memory; None if they are streamed
    n_probabilities: int = 0  # number of probabilities in memory; 0 if rows are streamed

    @abstractmethod
    def map_rows(self, f: RowFunction) -> SummableRows:
        """The rows f(rows): computed once in memory, in each pass if streamed."""

    @abstractmethod
    def sums(self, steps: Iterable[RowFunction]) -> Iterable[Any]:
        """The sums of several steps: lazily one by one in memory, in one pass if streamed."""

    @abstractmethod
    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """The results of several fits whose sums are taken in the same passes."""

    def sum(self, step: RowFunction) -> Any:
        """The sum of a step over the rows."""
        (total,) = self.sums([step])
        return total


@dataclass(frozen=True, slots=True, eq=False)
class InMemory(SummableRows):
    """Rows in memory, as a single batch.

    >>> InMemory([1, 2]).map_rows(lambda rows: [2 * row for row in rows]).sum(sum)
    6
    """

    rows: Any  # as the steps take them, such as `FitData`
    summary: Any = None  # `FitData` of the original rows
    n_probabilities: int = 0

    def map_rows(self, f: RowFunction) -> InMemory:
        """The rows f(rows), stored."""
        return InMemory(f(self.rows), self.summary, self.n_probabilities)

    def sum(self, step: RowFunction) -> Any:
        """The result of the step on all rows."""
        return step(self.rows)

    def sums(self, steps: Iterable[RowFunction]) -> Iterable[Any]:
        """The result of each step, computed lazily."""
        return map(self.sum, steps)

    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """Run the fits one after the other."""
        return [fit(self) for fit in fits]


@dataclass(slots=True, eq=False)
class PassCounter:
    """A function that sums a step over batches, and the number of its calls."""

    reduce: Callable[[RowFunction], Any]  # applies a step to every batch and adds the results
    n_passes: int = 0  # calls so far

    def __call__(self, step: RowFunction) -> Any:
        """Run one pass."""
        self.n_passes += 1
        return self.reduce(step)


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
        """Return these rows with f applied in each pass."""
        return Streamed(self.reducer, self.summary, (*self.transforms, f))

    def sums(self, steps: Iterable[RowFunction]) -> Iterable[Any]:
        """All sums in one pass."""
        return self._sum_compositions([Composition((*self.transforms, step)) for step in steps])

    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """Run the fits until each needs an unknown sum, take these sums in one pass, and repeat.

        A fit is restarted with the sums known so far, which costs nothing compared with a pass and keeps its code
        unchanged.
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
                    requests[i] = missing.chains
            chains = [chain for requested in requests.values() for chain in requested]
            sums = iter(self._sum_compositions(chains) if requests else ())
            for i, requested in requests.items():
                known_sums[i].append([next(sums) for _ in requested])
        return [results[i] for i in range(len(fits))]

    def _sum_compositions(self, chains: Sequence[Composition]) -> tuple[Any, ...]:
        """The sum of each chain over all batches, in one pass."""
        sums: Sums = self.reducer(ParallelSums(tuple(chains)))
        return sums.values


class _MissingSums(Exception):
    """Raised by a fit that needs sums that are not known yet."""

    def __init__(self, chains: tuple[Composition, ...]) -> None:
        self.chains = chains


class _Replayed(SummableRows):
    """Sums for a fit that is restarted, with those of earlier passes."""

    def __init__(self, known_sums: list[Any], summary: Any, transforms: tuple[RowFunction, ...]) -> None:
        self._known_sums = iter(known_sums)
        self.summary, self.rows, self._transforms = summary, None, transforms

    def map_rows(self, f: RowFunction) -> _Replayed:
        """Return these sums with f also applied to the rows; both read the known sums in turn."""
        new = _Replayed([], self.summary, (*self._transforms, f))
        new._known_sums = self._known_sums
        return new

    def sums(self, steps: Iterable[RowFunction]) -> Iterable[Any]:
        """The known sums; the first unknown ones are requested."""
        for known in self._known_sums:
            return list(known)
        raise _MissingSums(tuple(Composition((*self._transforms, step)) for step in steps))

    def fit_jointly(self, fits: Sequence[Callable[[SummableRows], T]]) -> list[T]:
        """Run the fits one after the other."""
        return [fit(self) for fit in fits]


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """A composition of functions, which can be pickled."""

    steps: tuple[RowFunction, ...]  # from the first to the last

    def __call__(self, rows: Any) -> Any:
        """The result of the last function."""
        for step in self.steps:
            rows = step(rows)
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class ParallelSums:
    """Several compositions of functions, whose common first steps are computed once."""

    chains: tuple[Composition, ...]

    def __call__(self, rows: Any) -> Sums:
        """The results of all chains."""
        return Sums(tuple(_evaluate_chains([chain.steps for chain in self.chains], rows)))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Several sums that add elementwise."""

    values: tuple[Any, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


def _evaluate_chains(chains: Sequence[tuple[RowFunction, ...]], rows: Any) -> list[Any]:
    """The result of each chain of functions; the steps with which all chains start run once."""
    max_shared = reduce(min, map(len, chains)) - 1
    n_shared = next((i for i in range(max_shared) if any(chain[i] is not chains[0][i] for chain in chains)), max_shared)
    for step in chains[0][:n_shared]:
        rows = step(rows)
    return [Composition(chain[n_shared:])(rows) for chain in chains]
