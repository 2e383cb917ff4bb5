"""Sums of the rows of each cohort of predictions, which add up over files and machines until the cohort is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.labels import UNKNOWN_LABEL
from trueodds.data.predictions import Predictions
from trueodds.kernels.likelihood_ratio_sums import LEFT_OUT, NOT_OBSERVED, UNKNOWN
from trueodds.kernels.row_fingerprints import sum_fingerprints
from trueodds.monitoring.cohorts import Moment
from trueodds.monitoring.evidence import EvidenceSums, sum_evidence
from trueodds.monitoring.monitor_settings import MonitorSettings
from trueodds.monitoring.monitored_model import MonitoredModel

ALL_ROWS = ""  # name of the sums of all rows, beside those of the groups
_OUTCOME_OF_MISSING = {"refuse": LEFT_OUT, "exclude": LEFT_OUT, "least": UNKNOWN, "no-event": NOT_OBSERVED}
_MAX_NUMBERS_PER_ROW = 8  # largest range of cohort numbers, per row, up to which a table replaces sorting
_MAX_GROUP_NAME = 200


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
        Sum of hashes of the rows, modulo 2⁶⁴.
    as_of : numpy.datetime64 or int
        The moment when the labels were extracted; of parts, the earliest.
    sums : mapping of str to tuple of EvidenceSums
        Sums of each view, of all rows and of each group.
    """

    rows: int
    unlabeled: int
    labels: Array
    fingerprint: int
    as_of: Moment
    sums: Mapping[str, tuple[EvidenceSums, ...]]

    def __add__(self, other: CohortTally) -> CohortTally:
        names = {**self.sums, **other.sums}
        sums = {
            name: tuple(a + b for a, b in zip(self.sums[name], other.sums[name], strict=True))
            if name in self.sums and name in other.sums
            else views
            for name, views in names.items()
        }
        return CohortTally(
            self.rows + other.rows,
            self.unlabeled + other.unlabeled,
            self.labels + other.labels,
            (self.fingerprint + other.fingerprint) % 2**64,
            min(self.as_of, other.as_of),
            sums,
        )


def tally_cohorts(
    preds: Predictions, numbers: Array, as_of: Moment, settings: MonitorSettings, model: MonitoredModel
) -> dict[int, CohortTally]:
    """Return the sums of each cohort, by its number; `numbers` (n,) are those of the rows."""
    if preds.votes is not None:
        raise InputError(
            "TO910", "A monitor needs one label per row.", "votes", "Pass the majority label of each row as `y_true`."
        )
    weight = _check_weights(preds.weight, settings)
    cohorts, key = _number_densely(numbers)
    n_cohorts = len(cohorts)
    _refuse_several_rows_of_a_cluster(preds.cluster, key)
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
    sums: list[dict[str, tuple[EvidenceSums, ...]]] = [{} for _ in range(n_cohorts)]
    views = list(zip(lens.probabilities(preds), outcomes, model.alternatives(settings), strict=True))
    columns: list[tuple[str, list[str] | None, Array | None]] = [
        (name, *_group_codes(preds, name)) for name in settings.group_columns
    ]
    columns = columns or [("", None, None)]
    for column, names, codes_of_groups in columns:
        n_groups = 1 if names is None else len(names)
        group_key = key if codes_of_groups is None else key * n_groups + codes_of_groups
        is_occupied = np.bincount(group_key, minlength=n_cohorts * n_groups) > 0
        by_view = [
            sum_evidence(
                p, outcome, weight, group_key, n_cohorts * n_groups, alternatives,
                squared_weights=settings.weight_kind == "importance", counts_nonevents=len(views) == 1,
                shock_sd=settings.shock_sd,
            )
            for p, outcome, alternatives in views
        ]  # fmt: skip
        for k in np.flatnonzero(is_occupied):
            cohort, group = divmod(int(k), n_groups)
            parts = tuple(view[k] for view in by_view)
            if names is not None:
                sums[cohort][f"{column}={names[group]}"] = parts
            if column == columns[0][0]:
                whole = sums[cohort].get(ALL_ROWS)
                sums[cohort][ALL_ROWS] = (
                    parts if whole is None else tuple(a + b for a, b in zip(whole, parts, strict=True))
                )
    counts_as_rows = weight is not None and settings.weight_kind == "frequency"
    fingerprints, per_label = sum_fingerprints(
        preds.p, labels, weight, key, n_cohorts, preds.k, counts_weights=counts_as_rows
    )
    return {
        int(number): CohortTally(
            int(per_label[i].sum()),
            int(per_label[i, 0]),
            per_label[i, 1:],
            int(fingerprints[i]),
            as_of,
            sums[i],
        )
        for i, number in enumerate(cohorts)
    }


def refuse_repeated_ids(ids: Array) -> None:
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


def _group_codes(preds: Predictions, column: str) -> tuple[list[str], Array]:
    """Return the values of a group column as text, and the position of each row's value among them."""
    if column not in preds.group:
        raise InputError(
            "TO904",
            "The predictions lack a group column of this monitor.",
            f"{describe(list(preds.group))} instead of {describe(column)}",
            f"Pass ⟨Predictions(…, group={{{column!r}: values}})⟩.",
        )
    values, codes = np.unique(preds.group[column], return_inverse=True)
    names = [str(value) for value in values.tolist()]
    if len(set(names)) < len(names) or max(map(len, names)) > _MAX_GROUP_NAME:
        raise InputError(
            "TO112",
            f"The values of a monitored group column must differ as text, and have at most {_MAX_GROUP_NAME} letters.",
            describe(names),
            "Rename them.",
        )
    return names, codes.reshape(-1).astype(np.int64)


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


def _refuse_several_rows_of_a_cluster(cluster: Array | None, key: Array) -> None:
    if cluster is None:
        return
    pairs = key * (int(cluster.max()) + 1) + cluster
    _, counts = np.unique(pairs, return_counts=True)
    if (counts > 1).any():
        raise InputError(
            "TO910",
            "The rows of a cohort must be of different clusters: rows of one cluster are not independent.",
            f"{int(counts.max()):,} rows of a cluster in one cohort ({int((counts > 1).sum()):,} such clusters)",
            "Keep one row of each cluster and cohort, chosen without its label.",
        )
