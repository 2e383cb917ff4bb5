"""Sums of the rows of cohorts of predictions, which add up over files and machines until a cohort is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.labels import UNKNOWN_LABEL
from trueodds.data.predictions import Predictions
from trueodds.kernels.cohort_sums import (
    LEFT_OUT,
    NOT_OBSERVED,
    UNKNOWN,
)
from trueodds.kernels.row_fingerprints import NO_HASH, SAMPLED_HASHES, hash_ids, join_samples, sum_fingerprints
from trueodds.monitoring.cohorts import Moment, read_moment, read_times, refuse_future
from trueodds.monitoring.evidence import EvidenceSums, sum_evidence
from trueodds.monitoring.monitor_settings import MonitorSettings, group_name
from trueodds.monitoring.monitored_model import MonitoredModel

ALL_ROWS = ""  # name of the sums of all rows, beside those of the groups
# Rows without ids are taken for the same if so many hashes, and such a share of those that could be common, are common.
# Different rows share less: of the hashes that one row has, at most a share of 1/e is that of one row elsewhere.
MIN_COMMON, MIN_COMMON_SHARE = 16, 0.75
_OUTCOME_OF_MISSING = {"refuse": LEFT_OUT, "exclude": LEFT_OUT, "least": UNKNOWN, "no-event": NOT_OBSERVED}
_MAX_NUMBERS_PER_ROW = 8  # largest range of cohort numbers, per row, up to which a table replaces sorting
_MAX_GROUP_NAME = 200
_MAX_PAIRS = 2**13  # number of pairs of cohort and group whose sums, of 5 kB each, are in memory before they are packed


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


class RowBatch(NamedTuple):
    """Some rows of a call, with the time of each, and with the ids and clusters of all rows if there are any."""

    preds: Predictions
    time: Any
    ids: Array | None = None
    cluster: Array | None = None


class NotInOrder(Exception):
    """A cohort has rows after batches of later cohorts only."""


def tally_batches(
    batches: Iterable[RowBatch],
    as_of: Moment | None,
    settings: MonitorSettings,
    model: MonitoredModel,
    *,
    in_order: bool = False,
) -> Iterator[tuple[dict[int, CohortTally], Moment, int | None]]:
    """Yield the sums of cohorts, by their numbers, the newest prediction time, and the first cohort to come.

    All cohorts are yielded at the end, or with `in_order` each one as soon as a batch has later cohorts only, so that
    few are in memory. `NotInOrder` is raised if such a cohort has more rows.

    Raises TO902 for rows after `as_of`, if it is given, TO909 for repeated ids, and TO910 for repeated clusters.
    """
    first: int | None = None
    tallies: dict[int, CohortTally] = {}
    ids, clusters = [], []
    newest, first_row = None, 0
    for preds, time, batch_ids, cluster in batches:
        times = read_times(time, preds.n, settings.unit, first_row)
        if as_of is not None:
            refuse_future(times, as_of, first_row)
        if batch_ids is not None:
            ids.append(batch_ids)
        if cluster is not None:
            clusters.append((settings.period.numbers(times), cluster))
        latest = read_moment(times.max(), settings.unit)
        newest = latest if newest is None or latest > newest else newest
        tallies_of_batch = _tally_cohorts(preds, times, batch_ids, newest, settings, model)
        if in_order:
            if first is not None and min(tallies_of_batch) < first:
                raise NotInOrder
            first = min(tallies_of_batch)
            yield {number: tallies.pop(number) for number in sorted(tallies) if number < first}, newest, first
        for number, tally in tallies_of_batch.items():
            tallies[number] = tallies[number] + tally if number in tallies else tally
        first_row += preds.n
    if ids:
        _refuse_repeated_ids(np.concatenate(ids))
    if clusters:
        _refuse_several_rows_of_a_cluster(*map(np.concatenate, zip(*clusters, strict=True)))
    assert newest is not None  # a source without rows is an error
    yield tallies, newest, None


def _tally_cohorts(
    preds: Predictions,
    times: Array,
    ids: Array | None,
    as_of: Moment,
    settings: MonitorSettings,
    model: MonitoredModel,
) -> dict[int, CohortTally]:
    """Return the sums of each cohort, by its number; `times` (n,) and `ids` (n,) are those of the rows."""
    if preds.votes is not None:
        raise InputError(
            "TO910", "A monitor needs one label per row.", "votes", "Pass the majority label of each row as `y_true`."
        )
    weight = _check_weights(preds.weight, settings)
    cohorts, key = _number_densely(settings.period.numbers(times))
    n_cohorts = len(cohorts)
    labeled = preds.labeled
    labels = np.full(preds.n, UNKNOWN_LABEL) if preds.partial_y is None else preds.partial_y
    lens = model.check(preds)
    outcomes = []
    for codes in lens.outcome_codes(preds):
        known = labels if labeled is None else np.maximum(labels, 0)
        outcome = codes.outcomes_of_labels(known, 1).view(np.uint8)
        if labeled is not None:
            outcome = np.where(labeled, outcome, np.uint8(_OUTCOME_OF_MISSING[settings.missing]))
        outcomes.append(outcome)
    pieces: list[list[CohortSums]] = [[] for _ in range(n_cohorts)]
    views = list(zip(lens.probabilities(preds), outcomes, model.alternatives(settings), strict=True))
    for names, group_codes in [([ALL_ROWS], None), *(_group_codes(preds, name) for name in settings.group_columns)]:
        group_key = key if group_codes is None else key * len(names) + group_codes
        for pairs, part, part_key in _split_by_pair(group_key):
            by_view = [
                sum_evidence(
                    p[part], outcome[part], None if weight is None else weight[part], part_key, len(pairs),
                    alternatives, squared_weights=settings.weight_kind == "importance",
                    counts_nonevents=len(views) == 1, shock_sd=settings.shock_sd,
                )
                for p, outcome, alternatives in views
            ]  # fmt: skip
            of_cohort: dict[int, dict[str, tuple[EvidenceSums, ...]]] = {}
            for pair, *parts in zip(pairs.tolist(), *by_view, strict=True):
                cohort, group = divmod(pair, len(names))
                of_cohort.setdefault(cohort, {})[names[group]] = tuple(parts)
            for cohort, sums in of_cohort.items():
                pieces[cohort].append(CohortSums.pack(sums))
    identity = hash_ids(ids) if ids is not None else times.astype(np.int64).view(np.uint64)
    fingerprints, per_label, samples = sum_fingerprints(
        preds.p, labels, weight, identity, key, n_cohorts, preds.k,
        counts_weights=weight is not None and settings.weight_kind == "frequency", hashes_ids_only=ids is not None,
    )  # fmt: skip
    return {
        int(number): CohortTally(
            int(per_label[i].sum()),
            int(per_label[i, 0]),
            per_label[i, 1:].copy(),
            int(fingerprints[i]),
            samples[i, samples[i] != NO_HASH],
            ids is not None,
            as_of,
            CohortSums.join(pieces[i]),
        )
        for i, number in enumerate(cohorts)
    }


def _refuse_repeated_ids(ids: Array) -> None:
    """Raise TO909 if two rows of a call have the same id."""
    if ids.dtype.kind == "O":  # ids of several types have no order
        counter = Counter(ids.tolist())
        values = np.fromiter(counter, dtype=object, count=len(counter))
        counts = np.array([*counter.values()])
    else:
        values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(
            "TO909",
            "The ids of the rows in one call must be different; a row that is given twice would count twice.",
            f"{describe(values[counts > 1].tolist()[0])} in {int(counts.max()):,} rows"
            f" ({int((counts > 1).sum()):,} such ids)",
            "Leave out the repeated rows.",
        )


def _number_densely(numbers: Array) -> tuple[Array, Array]:
    """Return the cohort numbers that occur, in order, and the position of each row's cohort among them."""
    first, last = int(numbers.min()), int(numbers.max())
    if first == last:
        return np.array([first]), np.zeros(len(numbers), dtype=np.int64)
    if last - first > _MAX_NUMBERS_PER_ROW * len(numbers) + 1024:
        cohorts, key = np.unique(numbers, return_inverse=True)
        return cohorts, key.reshape(-1).astype(np.int64)
    offsets = numbers - first
    is_occupied = np.bincount(offsets) > 0
    occupied = np.flatnonzero(is_occupied)
    if len(occupied) == len(is_occupied):
        return occupied + first, offsets
    return occupied + first, (np.cumsum(is_occupied) - 1)[offsets]


def _split_by_pair(key: Array) -> Iterator[tuple[Array, slice | Array, Array]]:
    """Yield pairs of cohort and group, in order, with their rows and the position of each row's pair among them."""
    pairs, position = _number_densely(key)
    if len(pairs) <= _MAX_PAIRS:
        yield pairs, slice(None), position
        return
    order = np.argsort(position, kind="stable")
    position = position[order]
    for first in range(0, len(pairs), _MAX_PAIRS):
        start, stop = np.searchsorted(position, [first, first + _MAX_PAIRS])
        yield pairs[first : first + _MAX_PAIRS], order[start:stop], position[start:stop] - first


def _group_codes(preds: Predictions, column: str) -> tuple[list[str], Array]:
    """Return the names of the groups of a column, such as region=north, and the position of each row's among them."""
    if column not in preds.group:
        raise InputError(
            "TO904",
            "The predictions lack a group column of this monitor.",
            f"{describe(list(preds.group))} instead of {describe(column)}",
            f"Pass ⟨Predictions(…, group={{{column!r}: values}})⟩.",
        )
    values = preds.group[column]
    if values.dtype.kind == "O":  # values of several types have no order
        distinct = dict.fromkeys(values.tolist())
        position = {value: i for i, value in enumerate(distinct)}
        codes = np.array([position[value] for value in values.tolist()])
        names = [group_name(value) for value in distinct]
    else:
        distinct_values, codes = np.unique(values, return_inverse=True)
        names = [group_name(value) for value in distinct_values.tolist()]
    if len(set(names)) < len(names) or max(map(len, names)) > _MAX_GROUP_NAME:
        raise InputError(
            "TO112",
            f"The values of a monitored group column must differ as text, and have at most {_MAX_GROUP_NAME} letters.",
            describe(names),
            "Rename them.",
        )
    return [f"{column}={name}" for name in names], codes.reshape(-1).astype(np.int64)


def _check_weights(weight: Array | None, settings: MonitorSettings) -> Array | None:
    """Return the weights; raise TO910 for importance weights above 1, and TO110 for frequencies that are not counts."""
    if weight is None:
        return None
    if settings.weight_kind == "frequency":
        if (weight != np.rint(weight)).any():
            wrong = weight[weight != np.rint(weight)][0]
            raise InputError(
                "TO110", "Frequency weights must be whole numbers.", f"{wrong}", "Use ⟨weight_kind='importance'⟩."
            )
        return weight
    if (weight > 1).any():
        raise InputError(
            "TO910",
            "Importance weights must be at most 1: larger ones raise false alarms.",
            f"{float(weight.max()):g} in row {int(weight.argmax())} ({int((weight > 1).sum()):,} such rows)",
            "Divide them by a constant that no weight will exceed, or pass counts with ⟨weight_kind='frequency'⟩.",
        )
    return weight


def _refuse_several_rows_of_a_cluster(numbers: Array, cluster: Array) -> None:
    """Raise TO910 if rows of a cohort, whose numbers are given, are of the same cluster."""
    codes = np.unique(cluster, return_inverse=True)[1].reshape(-1)
    cohorts, key = _number_densely(numbers)
    _, counts = np.unique(codes * len(cohorts) + key, return_counts=True)
    if (counts > 1).any():
        raise InputError(
            "TO910",
            "The rows of a cohort must be of different clusters: rows of one cluster are not independent.",
            f"{int(counts.max()):,} rows of a cluster in one cohort ({int((counts > 1).sum()):,} such clusters)",
            "Keep one row of each cluster and cohort, chosen without its label.",
        )
