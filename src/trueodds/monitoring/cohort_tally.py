"""Sums of the rows of one cohort of predictions, which add up over files and machines until the cohort is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.row_fingerprints import SAMPLED_HASHES, join_samples
from trueodds.monitoring.cohorts import Moment
from trueodds.monitoring.evidence import EvidenceSums

ALL_ROWS = ""  # name of the sums of all rows, beside those of the groups
# Rows without ids are taken for the same if so many hashes, and such a share of those that could be common, are common.
# Different rows share less: of the hashes that one row has, at most a share of 1/e is that of one row elsewhere.
MIN_COMMON, MIN_COMMON_SHARE = 16, 0.75


class CohortSums(Mapping[str, tuple[EvidenceSums, ...]]):
    """Sums of each view, by the name of a group and of all rows, in arrays without the cells that have no rows."""

    __slots__ = ("_names", "_views")

    def __init__(self, names: tuple[str, ...], views: tuple[_PackedSums, ...]) -> None:
        self._names, self._views = names, views

    @classmethod
    def pack(cls, sums: Mapping[str, tuple[EvidenceSums, ...]]) -> CohortSums:
        """Return these sums, packed."""
        return cls(tuple(sums), tuple(_PackedSums.from_sums(views) for views in zip(*sums.values(), strict=True)))

    @classmethod
    def join(cls, pieces: Sequence[CohortSums]) -> CohortSums:
        """Return the sums of pieces with different names."""
        if len(pieces) == 1:
            return pieces[0]
        names = tuple(name for piece in pieces for name in piece)
        return cls(names, tuple(map(_PackedSums.join, zip(*(piece._views for piece in pieces), strict=True))))

    def __getitem__(self, name: str) -> tuple[EvidenceSums, ...]:
        if name not in self._names:
            raise KeyError(name)
        position = self._names.index(name)
        return tuple(view.unpack(position) for view in self._views)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> Any:
        """Return the names with their sums, one after the other, without looking the names up."""
        return [(name, tuple(view.unpack(i) for view in self._views)) for i, name in enumerate(self._names)]


@dataclass(frozen=True, slots=True)
class _PackedSums:
    """Sums of one view, by position."""

    n_cells: int
    occupied: Array  # (m,) position times number of cells, plus cell, in order
    cells: Array  # (m, columns)
    slopes: Array  # (positions, slopes)
    certain: Array  # (positions, columns)
    tilted: Array | None  # (m, tilts)

    @classmethod
    def from_sums(cls, sums: Sequence[EvidenceSums]) -> _PackedSums:
        n_cells = len(sums[0].cells)
        cells = np.concatenate([part.cells for part in sums])
        occupied = np.flatnonzero(cells.any(axis=1))
        tilted = None
        if sums[0].tilted is not None:
            tilted = np.concatenate([part.tilted for part in sums if part.tilted is not None])[occupied]
        slopes, certain = np.stack([part.slopes for part in sums]), np.stack([part.certain for part in sums])
        return cls(n_cells, occupied, cells[occupied], slopes, certain, tilted)

    @classmethod
    def join(cls, parts: Sequence[_PackedSums]) -> _PackedSums:
        """Return the sums of several parts, whose positions follow each other."""
        starts = np.cumsum([0, *(len(part.slopes) for part in parts)]) * parts[0].n_cells
        tilted = [part.tilted for part in parts if part.tilted is not None]
        return cls(
            parts[0].n_cells,
            np.concatenate([part.occupied + start for part, start in zip(parts, starts, strict=False)]),
            np.concatenate([part.cells for part in parts]),
            np.concatenate([part.slopes for part in parts]),
            np.concatenate([part.certain for part in parts]),
            np.concatenate(tilted) if tilted else None,
        )

    def unpack(self, position: int) -> EvidenceSums:
        """Return the sums at a position."""
        first = position * self.n_cells
        start, stop = np.searchsorted(self.occupied, [first, first + self.n_cells])
        numbers = self.occupied[start:stop] - first

        def spread(packed: Array) -> Array:
            spread_out = np.zeros((self.n_cells, packed.shape[1]))
            spread_out[numbers] = packed[start:stop]
            return spread_out

        tilted = None if self.tilted is None else spread(self.tilted)
        return EvidenceSums(spread(self.cells), self.slopes[position], self.certain[position], tilted)


@dataclass(frozen=True, slots=True)
class CohortTally:
    """Sums of the rows of one cohort.

    Attributes
    ----------
    rows, unlabeled : int
        Number of rows, and of those without a label.
    labels : array (classes,)
        Number of rows with each label.
    fingerprint : int
        Sum of hashes of the rows and their labels, modulo 2⁶⁴.
    sample : array (hashes,)
        The smallest hashes of the rows without their labels, as in `sum_fingerprints`.
    has_ids : bool
        Whether these are hashes of ids, and not of times and predictions.
    as_of : numpy.datetime64 or int
        The moment when the labels were extracted; of parts, the earliest.
    sums : CohortSums
        Sums of each view, of all rows and of each group.
    """

    rows: int
    unlabeled: int
    labels: Array
    fingerprint: int
    sample: Array
    has_ids: bool
    as_of: Moment
    sums: CohortSums

    def __add__(self, other: CohortTally) -> CohortTally:
        sums = dict(self.sums.items())
        for name, views in other.sums.items():
            before = sums.get(name)
            sums[name] = views if before is None else tuple(a + b for a, b in zip(before, views, strict=True))
        return CohortTally(
            self.rows + other.rows,
            self.unlabeled + other.unlabeled,
            self.labels + other.labels,
            (self.fingerprint + other.fingerprint) % 2**64,
            join_samples(self.sample, other.sample),
            self.has_ids,
            min(self.as_of, other.as_of),
            CohortSums.pack(sums),
        )

    @property
    def labeled(self) -> int:
        """Number of rows with a label."""
        return self.rows - self.unlabeled

    def common_hashes(self, other: CohortTally) -> tuple[int, int, bool]:
        """Return how many hashes of single rows are common, how many could be, and whether all rows seem the same."""
        limit = min(_largest_hash(self.sample), _largest_hash(other.sample))
        a, b = ({h for h in tally.sample.tolist() if h <= limit and not h & 1} for tally in (self, other))
        is_equal = self.rows == other.rows and np.array_equal(self.sample, other.sample)
        return len(a & b), min(len(a), len(b)), is_equal


def _largest_hash(sample: Array) -> int:
    """Return the hash up to which a sample holds those of all rows."""
    return int(sample[-1]) if len(sample) == SAMPLED_HASHES else 2**64
