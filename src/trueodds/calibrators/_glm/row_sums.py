"""Sums over rows in memory or in passes over a data source, so that one fitting routine serves both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

T = TypeVar("T")
Step = Callable[[Any], Any]  # from rows to what adds; where rows are far it is sent to them, so it must be picklable


class RowSums(ABC):
    """Rows of which only sums are taken, so that a fit does not know where they lie."""

    facts: Any  # of the rows as they were given: `FitData` in memory, else `Facts`
    rows: Any  # those in memory; None where they are far
    size: int = 0  # probabilities in memory

    @abstractmethod
    def prepared(self, f: Step) -> RowSums:
        """The rows f(rows): made once in memory, else anew in each pass."""

    @abstractmethod
    def sums(self, steps: Iterable[Step]) -> Iterable[Any]:
        """The sums of several steps: one by one, as they are asked for, in memory; else all in one pass."""

    @abstractmethod
    def side_by_side(self, fits: Sequence[Callable[[RowSums], T]]) -> list[T]:
        """What several fits find, whose sums are taken in the same passes."""

    def sum(self, step: Step) -> Any:
        """The sum of what `step` makes of the rows."""
        (total,) = self.sums([step])
        return total


@dataclass(frozen=True, slots=True, eq=False)
class InMemory(RowSums):
    """Rows in memory, all in one batch.

    >>> InMemory([1, 2]).prepared(lambda rows: [2 * row for row in rows]).sum(sum)
    6
    """

    rows: Any
    facts: Any = None
    size: int = 0

    def prepared(self, f: Step) -> InMemory:
        """The rows f(rows), kept."""
        return InMemory(f(self.rows), self.facts, self.size)

    def sum(self, step: Step) -> Any:
        """What it makes of them."""
        return step(self.rows)

    def sums(self, steps: Iterable[Step]) -> Iterable[Any]:
        """Each when it is asked for."""
        return map(self.sum, steps)

    def side_by_side(self, fits: Sequence[Callable[[RowSums], T]]) -> list[T]:
        """One after the other."""
        return [fit(self) for fit in fits]


@dataclass(slots=True, eq=False)
class PassCounter:
    """A verb that sums over batches, and how often it was used."""

    reduce: Callable[[Step], Any]
    n_passes: int = 0

    def __call__(self, step: Step) -> Any:
        """One pass."""
        self.n_passes += 1
        return self.reduce(step)


@dataclass(frozen=True, slots=True, eq=False)
class Streamed(RowSums):
    """Rows in the batches of a source, of which nothing is kept.

    >>> far = Streamed(PassCounter(lambda step: step([1, 2]) + step([3])))
    >>> far.sum(sum), far.reducer.n_passes
    (6, 1)
    """

    reducer: PassCounter
    facts: Any = None
    made: tuple[Step, ...] = ()
    rows: Any = field(default=None, init=False)
    size: int = field(default=0, init=False)

    def prepared(self, f: Step) -> Streamed:
        """The same with f to be done, too."""
        return Streamed(self.reducer, self.facts, (*self.made, f))

    def sums(self, steps: Iterable[Step]) -> Iterable[Any]:
        """All in one pass."""
        return self._of([Chain((*self.made, step)) for step in steps])

    def side_by_side(self, fits: Sequence[Callable[[RowSums], T]]) -> list[T]:
        """Each fit is run until it asks for a sum that is not known; those of all are taken in one pass, and so on.

        A fit is begun again with the answers it has got so far: beside a pass over the rows that costs nothing, and it
        is written as if it were alone.
        """
        answers: list[list[Any]] = [[] for _ in fits]
        results: dict[int, T] = {}
        while len(results) < len(fits):
            pending: dict[int, tuple[Chain, ...]] = {}
            for i, fit in enumerate(fits):
                if i not in results:
                    try:
                        results[i] = fit(_Replayed(answers[i], self.facts, self.made))
                    except _MissingSums as question:
                        pending[i] = question.chains
            sums = iter(self._of([chain for chains in pending.values() for chain in chains]) if pending else [])
            for i, chains in pending.items():
                answers[i].append([next(sums) for _ in chains])
        return [results[i] for i in range(len(fits))]

    def _of(self, chains: Sequence[Chain]) -> tuple[Any, ...]:
        sums: Sums = self.reducer(ParallelSteps(tuple(chains)))
        return sums.values


class _MissingSums(Exception):
    """A fit asks for sums that are not known yet."""

    def __init__(self, chains: tuple[Chain, ...]) -> None:
        self.chains = chains


class _Replayed(RowSums):
    """A fit that is run again, with the sums it asked for in earlier passes."""

    def __init__(self, answers: list[Any], facts: Any, made: tuple[Step, ...]) -> None:
        self._answers = iter(answers)
        self.facts, self.rows, self._made = facts, None, made

    def prepared(self, f: Step) -> _Replayed:
        """The same with f to be done, too; the answers are read by both in turn."""
        new = _Replayed([], self.facts, (*self._made, f))
        new._answers = self._answers
        return new

    def sums(self, steps: Iterable[Step]) -> Iterable[Any]:
        """Those that are known; the first that are not are asked for."""
        for known in self._answers:
            return list(known)
        raise _MissingSums(tuple(Chain((*self._made, step)) for step in steps))

    def side_by_side(self, fits: Sequence[Callable[[RowSums], T]]) -> list[T]:
        """One after the other."""
        return [fit(self) for fit in fits]


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One function after the other."""

    steps: tuple[Step, ...]

    def __call__(self, rows: Any) -> Any:
        """What the last makes of them."""
        for step in self.steps:
            rows = step(rows)
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class ParallelSteps:
    """Chains whose first steps are the same do them once."""

    chains: tuple[Chain, ...]

    def __call__(self, rows: Any) -> Sums:
        """What each makes of them."""
        return Sums(tuple(_run_chains([chain.steps for chain in self.chains], rows)))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Several sums that are added up side by side."""

    values: tuple[Any, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


def _run_chains(chains: Sequence[tuple[Step, ...]], rows: Any) -> list[Any]:
    shared = reduce(min, map(len, chains)) - 1
    same = next((i for i in range(shared) if any(chain[i] is not chains[0][i] for chain in chains)), shared)
    for step in chains[0][:same]:
        rows = step(rows)
    return [Chain(chain[same:])(rows) for chain in chains]
