"""Row sources of a binary view: its columns and bin sums without copies, and complements without rounding errors.

Exact complements and log-probabilities do not have the rounding errors of 1 − p and log p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import sorting
from trueodds.kernels.bins import bin_sums_by_label, class_bin_sums
from trueodds.kernels.row_statistics import (
    confidence_and_correctness,
    confidence_keys,
    confidence_moments,
    confidence_sums,
    row_maxima,
)
from trueodds.kernels.smoothing import cell_moments, residual_function

SAMPLE_SIZE = 1 << 13  # number of scores of a sample, such as to see whether they are rounded


def sample_rows(n: int, width: int = 1) -> slice:
    """Return evenly spaced rows of n, which have about SAMPLE_SIZE scores if each has `width`, or all rows."""
    return slice(None, None, max(1, n * width // SAMPLE_SIZE))


class RowSource(Protocol):
    """Source of the rows of a binary view, of weight 1 and with one label each: their columns, or sums over them."""

    n: int  # number of rows

    def probabilities(self) -> Array:
        """The probability of each row."""
        ...

    def sample(self) -> Array:
        """The probability of the rows `sample_rows`, without a pass over the others."""
        ...

    def events(self) -> Array:
        """Whether the event of each row occurred, bool."""
        ...

    def sort_keys(self) -> Array:
        """Probability and outcome as one sortable number (see `sorting.encode_rows`)."""
        ...

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        """Return `n`, `wp`, `wy` and `wpy`, which are n, Σp, Σy and Σpy of each bin, and Σp² as `wpp` if free."""
        ...

    def moments(self, cells: int, powers: int) -> Array:
        """Return Σ(y − p)u^k, k < powers, in each uniform cell of [0, 1], (cells, powers), for the position u in it."""
        ...


class LargestProbability:
    """The largest probability of each row and whether its class was observed.

    `record_ties` is called with the number of rows that have several largest probabilities.
    """

    def __init__(self, P: Array, y: Array, record_ties: Callable[[int], None]) -> None:
        self.P, self.y, self.n, self._record_ties = P, y, len(P), record_ties
        self._is_correct: Array | None = None
        self._sample: Array | None = None

    def probabilities(self) -> Array:
        """The largest probabilities. Correctness is computed in the same pass."""
        confidence, self._is_correct, ties = confidence_and_correctness(self.P, self.y)
        self._record_ties(ties)
        return confidence

    def sample(self) -> Array:
        """The largest probabilities of the sampled rows, which `sums` finds in its pass."""
        return row_maxima(self.P[sample_rows(self.n)])[0] if self._sample is None else self._sample

    def events(self) -> Array:
        """Whether the lowest class with the largest probability was observed."""
        if self._is_correct is None:
            self.probabilities()
        assert self._is_correct is not None
        return self._is_correct

    def sort_keys(self) -> Array:
        keys, ties = confidence_keys(self.P, self.y)
        self._record_ties(ties)
        return keys

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        step = sample_rows(self.n).step
        self._sample = np.empty(-(-self.n // step))
        table, ties = confidence_sums(self.P, self.y, edges, closed, self._sample, step)
        self._record_ties(ties)
        return combine_outcome_sums(table)

    def moments(self, cells: int, powers: int) -> Array:
        table, ties = confidence_moments(self.P, self.y, cells, powers)
        self._record_ties(ties)
        return table


class ViewColumn:
    """One column of probabilities p (n,) against whether the labels y (n,) equal `label`."""

    def __init__(self, p: Array, y: Array, label: int) -> None:
        self.p, self.y, self.label, self.n = p, y, label, len(p)

    def probabilities(self) -> Array:
        return self.p

    def sample(self) -> Array:
        return self.p[sample_rows(self.n)]

    def events(self) -> Array:
        return np.asarray(self.y == self.label)

    def sort_keys(self) -> Array:
        encoded = sorting.encode_rows(self.p, self.events())
        assert encoded is not None
        return encoded

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        return combine_outcome_sums(bin_sums_by_label(self.p, self.y, self.label, edges, closed))

    def moments(self, cells: int, powers: int) -> Array:
        return cell_moments(self.p, residual_function(self.p, self.events(), None), cells, powers)


class ClassColumns:
    """Probabilities P (n, K) and labels y (n,), with the bin sums of all classes computed in one pass."""

    def __init__(self, P: Array, y: Array) -> None:
        self.P, self.y = P, y
        self._cache: dict[tuple[bytes, str], Array] = {}

    def sums(self, edges: Array, closed: str) -> Array:
        """Return n, Σp, Σy and Σpy of each class and bin, (K, bins, 4)."""
        key = (edges.tobytes(), closed)
        if key not in self._cache:
            self._cache[key] = class_bin_sums(self.P, self.y, edges, closed)
        return self._cache[key]


class ClassColumn(ViewColumn):
    """One class against the rest, whose bin sums are computed together with those of the other classes."""

    def __init__(self, class_columns: ClassColumns, c: int) -> None:
        super().__init__(class_columns.P[:, c], class_columns.y, c)
        self.class_columns = class_columns

    def sums(self, edges: Array, closed: str) -> Mapping[str, Array]:
        return dict(zip(("n", "wp", "wy", "wpy"), self.class_columns.sums(edges, closed)[self.label].T, strict=True))


def combine_outcome_sums(table: Array) -> Mapping[str, Array]:
    """Return n, wp, wy, wpy and wpp (bins,) from n, Σp and Σp² of the rows without and with the event (bins, 2, 3)."""
    n, wp, wpp = table.sum(axis=1).T
    return {"n": n, "wp": wp, "wy": table[:, 1, 0], "wpy": table[:, 1, 1], "wpp": wpp}


class ExactProbabilities(Protocol):
    """Source of complements that are more exact than 1 − p, and of log-probabilities, such as those of logits."""

    @property
    def has_logs(self) -> bool:
        """Whether log-probabilities are known that do not underflow where a probability does, as from logits."""
        ...

    def complement(self, p: Array) -> Array:
        """Return the probability (n,), float64, of the complement of an event of probability p (n,)."""
        ...

    def log_odds(self) -> Array | None:
        """Return the log odds (n,) of the event of a binary view, from its logits; None if there are none."""
        ...

    def logs(self, outcomes: int) -> Array | None:
        """Return the log-probabilities (n, outcomes); None if they are known only as logarithms of probabilities."""
        ...


def outcome_logs(exact: ExactProbabilities | None, P: Array) -> Array:
    """Return the log-probabilities (n, m) from their source if it has them, else the logarithms of P (n, m)."""
    logs = None if exact is None else exact.logs(P.shape[1])
    if logs is not None:
        return logs
    logs = np.maximum(P, 0.0, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.log(logs, out=logs)
