"""What is kept of judged cohorts: a line for each, and sums that are folded with age, so that the state stays small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.monitoring.evidence import N_TOTALS, EvidenceSums

KEPT_SINGLY = 128  # number of the latest cohorts whose sums are kept singly
FOLDED_TOGETHER = 16  # number of older cohorts whose sums are added


@dataclass(frozen=True, slots=True)
class JudgedCohort:
    """A judged cohort, whose rows do not count again.

    Attributes
    ----------
    number, epoch : int
        Number of the cohort, and of the epoch in which it was judged.
    rows, unlabeled : int
        Number of rows, and of those without a label.
    labels : tuple of int
        Number of rows with each label.
    fingerprint : int
        Sum of hashes of the rows.
    log_evidence : float
        Log e-value after this cohort.
    """

    number: int
    epoch: int
    rows: int
    unlabeled: int
    labels: tuple[int, ...]
    fingerprint: int
    log_evidence: float


@dataclass(frozen=True, slots=True)
class JudgedSums:
    """Sums of one judged cohort, or of several consecutive ones of an epoch.

    Attributes
    ----------
    first, last, epoch : int
        Numbers of the first and the last cohort, and of the epoch.
    n_cohorts : int
        Number of cohorts.
    totals : mapping of str to array (views, 7)
        For all rows and each group: the first columns of `EvidenceSums.cells`, `N_TOTALS` in number.
    log_ratios : mapping of str to array (views, tilts + slopes + discounts)
        Log-likelihood ratios of the alternatives that concern all scores, and factors of the products of cells.
    cell_rows : array (views, cells)
        Number of rows of each score cell.
    """

    first: int
    last: int
    epoch: int
    n_cohorts: int
    totals: Mapping[str, Array]
    log_ratios: Mapping[str, Array]
    cell_rows: Array

    def __add__(self, later: JudgedSums) -> JudgedSums:
        return JudgedSums(
            self.first,
            later.last,
            self.epoch,
            self.n_cohorts + later.n_cohorts,
            _add(self.totals, later.totals),
            _add(self.log_ratios, later.log_ratios),
            self.cell_rows + later.cell_rows,
        )


def fold(history: tuple[JudgedSums, ...]) -> tuple[JudgedSums, ...]:
    """Add the sums of old cohorts, once enough of an epoch are kept singly.

    Which ones are added depends only on the judged cohorts, not on when they were judged.
    """
    singles = [i for i, sums in enumerate(history) if sums.n_cohorts == 1]
    if len(singles) < KEPT_SINGLY + FOLDED_TOGETHER:
        return history
    start = singles[0]
    stop = start + 1
    while stop < start + FOLDED_TOGETHER and history[stop].epoch == history[start].epoch:
        stop += 1
    folded = history[start]
    for sums in history[start + 1 : stop]:
        folded = folded + sums
    if folded.n_cohorts == 1:  # the only cohort of its epoch, which counts as folded
        return fold_rest(history, stop)
    return (*history[:start], folded, *history[stop:])


def fold_rest(history: tuple[JudgedSums, ...], start: int) -> tuple[JudgedSums, ...]:
    """Fold the cohorts from a position on."""
    rest = fold(history[start:])
    return (*history[:start], *rest)


def totals_of(views: tuple[EvidenceSums, ...]) -> Array:
    """Return the totals of each view, (views, 7)."""
    return np.stack([view.totals for view in views]).reshape(-1, N_TOTALS)


def _add(a: Mapping[str, Array], b: Mapping[str, Array]) -> dict[str, Array]:
    return {name: a[name] + b[name] if name in a and name in b else {**a, **b}[name] for name in {**a, **b}}
