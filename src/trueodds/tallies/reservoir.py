"""Bottom-k sample: a random sample of rows that does not depend on how they are split into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions, concatenate
from trueodds.tallies.tally import Tally

MAX_PROBS = 2_000_000  # maximum number of probabilities in a sample
_MAX_PARTS = 64  # maximum number of parts that are stored separately; more are joined into one


class SamplePart(NamedTuple):
    """Some of the rows of a sample, with their keys."""

    keys: Array  # (m,) uint64, hashes of seed and row id
    rows: Predictions  # the m rows


@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """A simple random sample of rows without replacement: those with the smallest keys, hashes of seed and row id.

    `+` keeps the smallest keys of both samples, so the result does not depend on the order and grouping of additions.
    Both samples must have the same seed and `max_rows`, and no row id in common.

    >>> preds = Predictions([0, 1] * 500, [0.3] * 1000)
    >>> every = Reservoir.from_predictions(preds, np.arange(1000), seed=0, max_probs=20)
    >>> half = Reservoir.from_predictions(preds[:500], np.arange(500), seed=0, max_probs=20)
    >>> other = Reservoir.from_predictions(preds[500:], np.arange(500, 1000), seed=0, max_probs=20)
    >>> every.rows.n, (other + half).keys.tolist() == every.keys.tolist()
    (10, True)
    """

    max_rows: int  # maximum number of rows in the sample
    parts: tuple[SamplePart, ...]  # the sample consists of the `max_rows` rows with the smallest keys of all parts
    max_key: np.uint64  # no row with a larger key is in the sample
    population_size: int  # number of rows from which the sample was drawn

    @classmethod
    def from_predictions(
        cls, preds: Predictions, ids: Array, *, seed: int = 0, max_probs: int | None = None
    ) -> Reservoir:
        """The sample of one batch, of at most `max_probs` probabilities; rows of weight 0 are excluded."""
        if preds.cluster is not None:
            fix = "Collect the rows themselves: ⟨mode='exact'⟩."
            raise InputError("TO404", "A sample of rows would split clusters.", "rows in clusters", fix)
        keys = hash_row_ids(ids, seed)
        if preds.weight is not None and not preds.weight.all():
            keys, preds = keys[preds.weight > 0], preds[preds.weight > 0]
        max_rows = max(1, (MAX_PROBS if max_probs is None else max_probs) // preds.k)
        sample = cls(max_rows, (SamplePart(keys, preds),), np.uint64(2**64 - 1), preds.n)
        return sample._join_parts() if preds.n > max_rows else sample

    def __add__(self, other: Reservoir) -> Reservoir:
        assert self.max_rows == other.max_rows
        max_key = min(self.max_key, other.max_key)
        candidates = (_rows_up_to_key(part, max_key) for part in (*self.parts, *other.parts))
        parts = tuple(part for part in candidates if part is not None)
        sample = Reservoir(self.max_rows, parts, max_key, self.population_size + other.population_size)
        # Joining copies rows, so it is done only occasionally: most batches of a long stream add only a few rows.
        n_rows = sum(len(part.keys) for part in parts)
        return sample._join_parts() if len(parts) > _MAX_PARTS or n_rows > 2 * self.max_rows else sample

    @property
    def keys(self) -> Array:
        return self._join_parts().parts[0].keys

    @property
    def rows(self) -> Predictions:
        return self._join_parts().parts[0].rows

    def _join_parts(self) -> Reservoir:
        """Return this sample as a single part of at most `max_rows` rows, sorted by key."""
        keys = np.concatenate([part.keys for part in self.parts])
        rows = concatenate([part.rows for part in self.parts])
        order = np.argsort(keys, kind="stable")[: self.max_rows]
        max_key = keys[order[-1]] if len(order) == self.max_rows else self.max_key
        return Reservoir(self.max_rows, (SamplePart(keys[order], rows[order]),), max_key, self.population_size)

    @property
    def note(self) -> Note | None:
        """Note on results that use the sample, unless it holds all rows."""
        n = min(self.max_rows, self.population_size)
        if n == self.population_size:
            return None
        share = format_percent(float(f"{n / self.population_size:.2g}"))
        text = (
            f"Fits use a random sample of {n:,} of {self.population_size:,} rows ({share}). Estimates and tests use all"
            " rows."
        )
        return Note("TN171", text)


@dataclass(frozen=True, slots=True, eq=False)
class SampledTally:
    """A tally and a sample of the same rows, computed in one pass."""

    tally: Tally
    sample: Reservoir

    @classmethod
    def from_predictions(
        cls, preds: Predictions, ids: Array, *, seed: int = 0, max_probs: int | None = None
    ) -> SampledTally:
        return cls(
            Tally.from_predictions(preds), Reservoir.from_predictions(preds, ids, seed=seed, max_probs=max_probs)
        )

    def __add__(self, other: SampledTally) -> SampledTally:
        return SampledTally(self.tally + other.tally, self.sample + other.sample)


def _rows_up_to_key(part: SamplePart, max_key: np.uint64) -> SamplePart | None:
    mask = part.keys <= max_key
    if mask.all():
        return part
    return SamplePart(part.keys[mask], part.rows[mask]) if mask.any() else None


def hash_row_ids(ids: Array, seed: int) -> Array:
    """Return a hash of 64 bits of each id (n,), by the finalizer of SplitMix64 (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        x = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
