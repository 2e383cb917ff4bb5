"""Sum the rows of a call by cohort and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.labels import UNKNOWN_LABEL
from trueodds.data.predictions import Predictions
from trueodds.data.row_ids import hash_ids
from trueodds.kernels.likelihood_ratio_sums import LEFT_OUT, NOT_OBSERVED, UNKNOWN
from trueodds.kernels.row_fingerprints import NO_HASH, sum_fingerprints
from trueodds.monitoring.cohort_tally import ALL_ROWS, CohortSums, CohortTally
from trueodds.monitoring.cohorts import Moment, read_moment, read_times, refuse_future
from trueodds.monitoring.evidence import EvidenceSums, sum_evidence
from trueodds.monitoring.monitor_settings import MonitorSettings, group_name
from trueodds.monitoring.monitored_model import MonitoredModel

_OUTCOME_OF_MISSING = {"refuse": LEFT_OUT, "exclude": LEFT_OUT, "least": UNKNOWN, "no-event": NOT_OBSERVED}
_MAX_NUMBERS_PER_ROW = 8  # largest range of cohort numbers, per row, up to which a table replaces sorting
_MAX_GROUP_NAME = 200
_MAX_PAIRS = 2**13  # number of pairs of cohort and group whose sums, of 5 kB each, are in memory before they are packed


class RowBatch(NamedTuple):
    """Some rows of a call, with the time of each, and with the ids and clusters of all rows if there are any."""

    preds: Predictions
    time: Any
    ids: Array | None = None
    cluster: Array | None = None


def tally_batches(
    batches: Iterable[RowBatch], as_of: Moment | None, settings: MonitorSettings, model: MonitoredModel
) -> tuple[dict[int, CohortTally], Moment]:
    """Return the sums of each cohort, by its number, and the newest prediction time.

    Raises TO902 for rows after `as_of`, if it is given, TO909 for repeated ids, and TO910 for repeated clusters.
    """
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
        for number, tally in _tally_cohorts(preds, times, batch_ids, newest, settings, model).items():
            tallies[number] = tallies[number] + tally if number in tallies else tally
        first_row += preds.n
    if ids:
        _refuse_repeated_ids(np.concatenate(ids))
    if clusters:
        _refuse_several_rows_of_a_cluster(*map(np.concatenate, zip(*clusters, strict=True)))
    assert newest is not None  # a source without rows is an error
    return tallies, newest


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
