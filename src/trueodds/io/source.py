"""The Source interface: rows as Predictions, all at once or in bounded batches, and the source of rows in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.printable import to_printable
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.columns import ColumnRoles
from trueodds.io.table import ROWS_PER_BATCH

RowProgress = Callable[[int, int | None], None]  # called with the rows done, and all rows if known


class Source(ABC):
    """Rows of predictions that are read on demand, in batches, as often as they are used."""

    name: str
    format: str
    rows: int | None  # number of rows, if known without reading
    files: Sequence[str] = ()  # names of the files, or of a table in memory
    roles: ColumnRoles | None = None  # the columns that are read, if the rows have columns
    notes: tuple[Note, ...] = ()

    @abstractmethod
    def batches(self) -> Iterator[Predictions]:
        """Yield the rows in order in validated batches; errors name the file and the row of the file."""

    def collect(self, progress: RowProgress | None = None) -> Predictions:
        """Return all rows, validated together."""
        preds = self._collect(None, progress)
        assert preds is not None
        return preds

    def collect_within(self, limit: int, progress: RowProgress | None = None) -> Predictions | None:
        """Return all rows if they have at most `limit` probabilities, else None; reads little more than the limit."""
        known = self.n_probabilities
        return None if known is not None and known > limit else self._collect(limit, progress)

    @abstractmethod
    def _collect(self, limit: int | None, progress: RowProgress | None) -> Predictions | None:
        """Return all rows, or None as soon as they have more than `limit` probabilities."""

    @property
    @abstractmethod
    def n_probabilities(self) -> int | None:
        """Number of rows times number of classes, if known without reading."""

    def with_unlabeled(self) -> Source:
        """Return the same rows for a function that takes rows without a label, which are otherwise refused."""
        return self  # `Predictions` refuse to be read without a label

    def with_time_column(self, name: str) -> Source:
        """Return the same rows, with dates and times of a group column as datetime64 if it is not stored as text."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return what is read: file, format, rows, columns and notes."""
        return {
            "file": self.files[0] if len(self.files) == 1 else list(self.files) or None,
            "format": self.format,
            "rows": self.rows,
            "columns": {} if self.roles is None else self.roles.describe(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def batches_with_ids(self) -> Iterator[tuple[Predictions, Array]]:
        """Yield each batch with the ids of its rows, (n,) uint64: by default the numbers of the rows."""
        start = 0
        for batch in self.batches():
            yield batch, np.arange(start, start + batch.n, dtype=np.uint64)
            start += batch.n

    def reduce(self, step: Callable[..., Any], progress: RowProgress | None = None, *, keyed: bool = False) -> Any:
        """Apply `step` to each batch and sum the results with ``+``, in the order of the rows.

        `step` gets a batch of Predictions and, with `keyed`, the ids of its rows, (n,) uint64.
        """
        total, rows_done = None, 0
        for step_args in self.batches_with_ids() if keyed else ((batch,) for batch in self.batches()):
            result = step(*step_args)
            total = result if total is None else total + result
            rows_done += step_args[0].n
            if progress is not None:
                progress(rows_done, self.rows)
        return total

    def __repr__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        return f"Source({to_printable(self.name)}{rows})"


class InMemorySource(Source):
    """A source of predictions in memory."""

    format = "Predictions"

    def __init__(
        self,
        preds: Predictions,
        batch_rows: int = ROWS_PER_BATCH,
        *,
        name: str = "Predictions",
        n_queries: int | None = None,
    ) -> None:
        self.name = name
        self.rows = preds.n
        self.n_queries = n_queries  # including those without an answer; None if the rows are not answers
        self._preds = preds
        self._batch_rows = batch_rows

    def batches(self) -> Iterator[Predictions]:
        """Return consecutive subsets; a subset without any weight is combined with its neighbors."""
        preds, start = self._preds, 0
        for stop in range(self._batch_rows, preds.n + self._batch_rows, self._batch_rows):
            current, remaining = slice(start, stop), slice(stop, None)
            weight = preds.weight if stop < preds.n else None
            if weight is not None and not (weight[current].any() and weight[remaining].any()):
                continue  # the rows become part of the next subset
            has_all_rows = start == 0 and stop >= preds.n
            yield preds if has_all_rows else preds[current]
            start = stop

    def _collect(self, limit: int | None, progress: RowProgress | None) -> Predictions:
        if progress is not None:
            progress(self._preds.n, self._preds.n)
        return self._preds

    @property
    def n_probabilities(self) -> int:
        return self._preds.n * self._preds.k
