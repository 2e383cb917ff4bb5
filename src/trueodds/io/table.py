"""What must a place with rows offer, so that they can be read in bounded batches?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from trueodds.core.errors import InputError
from trueodds.core.printable import has_surrogates
from trueodds.core.typing import Array
from trueodds.io.values import Place, plain

Batch = Mapping[str, Array]  # column name -> (n,) or, for a column of lists, (n, K)


class Table(ABC):
    """Named columns in a fixed order, read again from the start by each call of `batches`."""

    keyed: ClassVar[bool] = False  # arrays under keys, (n,) or (n, K), rather than columns
    format: ClassVar[str]
    name: str  # the file, or "pandas frame"; errors begin with it
    columns: tuple[str, ...]  # in the order of the file
    rows: int | None = None  # where it is known without reading

    @abstractmethod
    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """The named columns in batches of at most `size` rows, in the order of the file.

        Text formats parse the columns of `numeric` as float64; the types of the others are settled by the
        first batch. Formats with types of their own give those.
        """

    def width(self, name: str) -> int:
        """How many classes a single column speaks of: the length of its lists, two for plain numbers."""
        first = next(iter(self.batches([name], {name}, 1)))[name]
        return first.shape[1] if first.ndim == 2 else 2

    def numbers(self, cells: Any, place: Place) -> Array:
        """A column of a chunk as plain numbers."""
        return plain(cells, place)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every column as the file has it, for writing back: arrays, Arrow arrays or lists."""
        raise InputError(
            "TO314", "Only files can be rewritten.", self.name, "Apply the calibrator with predict_proba instead."
        )


def once(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, each name there once: with two of the same name nobody can say which one is meant."""
    known: set[str] = set()
    for column in columns:
        if column in known:
            raise InputError("TO313", f"{name} has two columns of the same name.", repr(column), "Rename one of them.")
        if has_surrogates(column):
            fix = "Write the names again, as UTF-8."
            raise InputError("TO313", f"{name} has a column whose name is no text.", repr(column), fix)
        known.add(column)
    return tuple(columns)


def sliced(columns: Mapping[str, Array], size: int) -> Iterator[Batch]:
    """Arrays that are in memory, in batches that are views."""
    n = max((len(column) for column in columns.values()), default=0)
    for start in range(0, n, size):
        yield {name: column[start : start + size] for name, column in columns.items()}
