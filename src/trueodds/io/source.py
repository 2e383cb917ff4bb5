"""Where do rows come from? A source gives them as Predictions, all at once or in bounded batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from trueodds.core.errors import Note
from trueodds.core.printable import printable
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

Progress = Callable[[int, int | None], None]


class Source(ABC):
    """Rows with one verb, `reduce`; nothing is read before it is asked for, and it can be read again."""

    name: str
    rows: int | None  # where it is known without reading
    notes: tuple[Note, ...] = ()

    @abstractmethod
    def batches(self) -> Iterator[Predictions]:
        """The rows in order, each batch checked; errors name the file and the row of the file."""

    @abstractmethod
    def collect(self, progress: Progress | None = None) -> Predictions:
        """All rows, checked together."""

    @abstractmethod
    def collect_or(self, limit: int, progress: Progress | None = None) -> Predictions | None:
        """All rows if that is at most `limit` probabilities, else None; never reads much more than the limit."""

    @property
    @abstractmethod
    def probabilities(self) -> int | None:
        """Rows times classes, where it is known without reading."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What is read: file, format, rows, columns and notes."""

    @abstractmethod
    def keyed(self) -> Iterator[tuple[Predictions, Array]]:
        """The batches, each with the ids of its rows, (n,) uint64."""

    def reduce(self, step: Callable[..., Any], progress: Progress | None = None, *, keyed: bool = False) -> Any:
        """Run `step` on each batch and add the answers up with +, in the order of the rows.

        With `keyed` the step gets the batch and the ids of its rows.
        """
        total, done = None, 0
        for batch_args in self.keyed() if keyed else ((batch,) for batch in self.batches()):
            part = step(*batch_args)
            total = part if total is None else total + part
            done += batch_args[0].n
            if progress is not None:
                progress(done, self.rows)
        return total

    def __repr__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        return f"Source({printable(self.name)}{rows})"
