"""Fingerprints of the batches of rows in a tally, to detect rows that are counted twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nsmallest

import numpy as np

from trueodds.data.predictions import Predictions

# Saved: the first four change fingerprints, by which tallies and calibrators recognize rows.
FINGERPRINT_LENGTH = 16  # number of hexadecimal digits
MAX_SAMPLED_ROWS = 1_024  # maximum number of rows of a batch whose probabilities are hashed
MIN_SAMPLED_ROWS = 64  # minimum number of these rows, however many classes there are
MAX_SAMPLED_PROBABILITIES = 65_536  # maximum number of hashed probabilities, to save time with many classes
MAX_FINGERPRINTS = 4_096  # maximum number of fingerprints of a tally: about 100 kB in its file
MIN_INFORMATION = 50.0  # nats: other rows have the same fingerprint with probability e^−50, about 1 in 10²¹


@dataclass(frozen=True, slots=True)
class BatchFingerprints:
    """The batches of rows in a tally, by their fingerprints. Those of two tallies are merged with `+`.

    Of more than `MAX_FINGERPRINTS` batches, only those with the smallest fingerprints are stored. Fingerprints are
    hashes, so these are a random sample of the batches. Two tallies sample their common batches in the same order, so
    that a batch that both contain is mostly stored by both or by neither.

    >>> a, b = BatchFingerprints({"00ab": 500}), BatchFingerprints({"00ab": 500, "17c2": 800})
    >>> a.count_common_rows(b), (a + b).repeated_rows
    (500, 500)
    """

    rows: Mapping[str, int] = field(default_factory=dict)  # number of rows of each batch, by its fingerprint
    repeated_rows: int = 0  # number of rows that were added once more

    @classmethod
    def from_predictions(cls, preds: Predictions) -> BatchFingerprints:
        """Return these rows as one batch, or no batch if the rows are so alike that other rows may be equal to them.

        The fingerprint is a hash of the number of rows, of all outcomes and weights, and of the probabilities of evenly
        spaced rows, in the order of the rows.

        >>> len(BatchFingerprints.from_predictions(Predictions([0, 1], [0.2, 0.9])).rows)
        0
        """
        n_sampled = max(MIN_SAMPLED_ROWS, min(MAX_SAMPLED_ROWS, MAX_SAMPLED_PROBABILITIES // preds.k))
        sampled = slice(None, None, max(1, preds.n // n_sampled))
        outcomes = preds.y if preds.votes is None else preds.votes
        assert outcomes is not None
        columns = [array[sampled].reshape(len(array[sampled]), -1) for array in (outcomes, preds.p)]
        sample = np.ascontiguousarray(np.hstack(columns), dtype=np.float64)
        if _information(sample) < MIN_INFORMATION:
            return cls()
        if preds.votes is None:
            outcomes = outcomes.astype(np.min_scalar_type(preds.k))
        arrays = (outcomes, sample) if preds.weight is None else (outcomes, sample, preds.weight)
        digest = blake2b(str(preds.n).encode(), digest_size=FINGERPRINT_LENGTH // 2)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return cls({digest.hexdigest(): preds.n})

    @property
    def single_name(self) -> str | None:
        return next(iter(self.rows)) if len(self.rows) == 1 else None

    def __add__(self, other: BatchFingerprints) -> BatchFingerprints:
        rows = {**self.rows, **other.rows}
        if len(rows) > MAX_FINGERPRINTS:
            rows = {name: rows[name] for name in nsmallest(MAX_FINGERPRINTS, rows)}
        return BatchFingerprints(rows, self.repeated_rows + other.repeated_rows + self.count_common_rows(other))

    def count_common_rows(self, other: BatchFingerprints) -> int:
        return sum(self.rows[name] for name in self.rows.keys() & other.rows.keys())


def _information(sample: np.ndarray) -> float:
    """Information in a sequence of rows, (n, d), in nats: n times the entropy of the distribution of equal rows.

    If rows are exchangeable, another sequence of them equals this one with probability exp(−information).
    """
    rows = sample.view(np.dtype((np.void, sample.itemsize * sample.shape[1]))).ravel()
    counts = np.unique(rows, return_counts=True)[1]
    return float(-(counts * np.log(counts / len(rows))).sum())
