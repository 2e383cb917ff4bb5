"""How are Predictions that are in memory already given out in batches?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.source import Progress, Source


class InMemorySource(Source):
    """Predictions that are in memory already."""

    n_queries: int | None = None  # how many answers were asked for, where not all were given

    def __init__(self, preds: Predictions, batch_rows: int) -> None:
        self.name = "Predictions"
        self.rows = preds.n
        self._preds = preds
        self._size = batch_rows

    def batches(self) -> Iterator[Predictions]:
        """Subsets that follow each other; one without any weight goes with its neighbors."""
        preds, start = self._preds, 0
        for stop in range(self._size, preds.n + self._size, self._size):
            current, after = slice(start, stop), slice(stop, None)
            weight = preds.weight if stop < preds.n else None
            if weight is not None and not (weight[current].any() and weight[after].any()):
                continue
            yield preds if (start, stop >= preds.n) == (0, True) else preds[current]
            start = stop

    def keyed(self) -> Iterator[tuple[Predictions, Array]]:
        """The subsets with the numbers of their rows."""
        start = 0
        for batch in self.batches():
            yield batch, np.arange(start, start + batch.n, dtype=np.uint64)
            start += batch.n

    def collect(self, progress: Progress | None = None) -> Predictions:
        """The Predictions themselves."""
        if progress is not None:
            progress(self._preds.n, self._preds.n)
        return self._preds

    def collect_or(self, limit: int, progress: Progress | None = None) -> Predictions | None:
        """The Predictions themselves, unless they are more than the limit."""
        return self.collect(progress) if self.probabilities <= limit else None

    @property
    def probabilities(self) -> int:
        """Rows times classes."""
        return self._preds.n * self._preds.k

    def describe(self) -> dict[str, Any]:
        """What is read."""
        return {"file": None, "format": "Predictions", "rows": self.rows, "columns": {}, "notes": []}
