"""Recognize rows that are copies of other rows, such as those of a bootstrap resample, by equal predictions.

Equal predictions alone are no evidence: a forest, or a model of categorical features, predicts the same for many cases.
But the outcomes of different cases with equal predictions differ about as often as those of cases with similar
predictions, and the outcomes of copies never do. Nor do outcomes that are a function of categorical features which the
model uses badly, but categories differ in size, or have many rows each, while copies are spread evenly over the cases.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

# Number of rows in which equal predictions are searched: all rows up to the first number, else a sample of the second.
MAX_SEARCHED, N_SEARCHED = 2**15, 2**13
MIN_EQUAL = 2  # number of rows with equal predictions that is worth an examination
SAMPLE_SIZES = (2**12, 2**16)  # number of rows that are examined then; the second one only if the first do not suffice
MAX_PROBABILITIES = 2**22  # of these rows
# Probability of so few differing outcomes among equal predictions of different cases.
SIGNIFICANCE = 1e-4
# Share of the differences that similar predictions have. Among equal predictions there may be somewhat fewer even of
# different cases, for instance if a model underrates a categorical feature.
MAX_SHARE_OF_DIFFERENCES = 0.5
# Number of other rows that a row equals on average, up to which rows may be a resample: 1 in a bootstrap resample. The
# numbers of copies then have a Poisson distribution, and there may be this many times its number of equal triples.
MAX_RESAMPLED_COPIES, MAX_RATIO_OF_TRIPLES = 2.0, 1.3
# Number of pairs of prediction and outcome that each occur in a multiple of m rows. By chance a pair does with a
# probability of less than 1/2, so that all do with a probability of less than 10⁻⁶.
MIN_PAIRS = 20
MAX_VALUES = 64  # number of predicted values whose rows are counted

_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio


def copied_row_notes(preds: Predictions) -> list[Note]:
    """Return a note if rows are copies of other rows.

    There is none if clusters are given, because rows of a cluster may be equal, or if frequency weights declare equal
    rows. Cost: about a millisecond for any number of rows if predictions are distinct.
    """
    if preds.cluster is not None or preds.is_expanded or not _has_equal_predictions(preds):
        return []
    n_counted = preds.n if preds.weight is None else np.count_nonzero(preds.weight)
    for size in SAMPLE_SIZES:
        rows = _sample_rows(preds, size)
        equal = EqualRows.from_hashes(rows, _hash_rows(preds.p, rows), _hash_rows(_outcomes(preds), rows))
        differences = _compare_outcomes(preds, equal)
        if differences.differ_too_rarely and not equal.is_overdispersed():
            n_copies = int(np.count_nonzero(~equal.starts_pair))
            sample = "" if len(rows) == n_counted else f" of a sample of {len(rows):,}"
            return [_note(f"{n_copies:,} rows{sample} have the same prediction and outcome as another row")]
        if differences.differ_as_usual or len(rows) == n_counted:
            break
    if (multiple := _common_multiple(preds, rows)) > 1:
        return [_note(f"Each prediction occurs with each outcome in a multiple of {multiple} rows")]
    return []


def _has_equal_predictions(preds: Predictions) -> bool:
    """Return whether several of the searched rows have the same prediction as another one.

    Rows whose first or last probability no other row has are left out before all probabilities are compared.
    """
    p, rows = preds.p, _sample_rows(preds, N_SEARCHED if preds.n > MAX_SEARCHED else preds.n)
    for values in (p,) if p.ndim == 1 else (p[:, 0], p[:, -1], p):
        hashes = _hash_rows(values, rows)
        ordered = np.sort(hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]  # each once less often than it occurs
        if len(repeated) < MIN_EQUAL:
            return False
        if len(repeated) < len(rows) // 8:  # with more, the selection takes longer than it saves
            rows = rows[np.isin(hashes, repeated)]
    return True


def _note(fact: str) -> Note:
    return Note(
        "TN144",
        f"{fact}, as if cases had been copied. Drop the copies, or pass ⟨cluster=⟩ with the number of the case:"
        " every row"
        " counts as a new case, so that p-values are too small and intervals too short. Cross-fitting keeps the copies"
        " of a case in one fold.",
    )


def _outcomes(preds: Predictions) -> Array:
    outcomes = preds.y if preds.votes is None else preds.votes
    assert outcomes is not None
    return outcomes


def _sample_rows(preds: Predictions, size: int) -> Array:
    """Return the numbers of the rows with weight, or of a random sample of about this size."""
    rows = None if preds.weight is None else np.flatnonzero(preds.weight > 0)
    n, size = preds.n if rows is None else len(rows), min(size, MAX_PROBABILITIES // preds.k)
    if n <= size:
        return np.arange(n) if rows is None else rows
    sampled = np.sort(np.random.default_rng(0).integers(n, size=size))
    sampled = sampled[np.append(True, sampled[1:] > sampled[:-1])]
    return sampled if rows is None else rows[sampled]


def _hash_rows(values: Array, rows: Array) -> Array:
    """Return a 64-bit hash of each of some rows of an array (n,) or (n, m); equal rows have equal hashes."""
    columns = values if len(rows) == len(values) else values[rows]
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in np.atleast_2d(columns.T):
        bits = (column + column.dtype.type(0)).view(f"u{column.itemsize}") if column.dtype.kind == "f" else column
        hashes ^= hashes >> np.uint64(29)  # above, −0 + 0 is 0
        hashes += bits.astype(np.uint64)
        hashes *= _HASH_MULTIPLIER
    return hashes


class EqualRows(NamedTuple):
    """Rows in an order in which equal ones are neighbors."""

    rows: Array  # (m,) row numbers
    starts_prediction: Array  # (m,) whether a row has another prediction than the one before
    starts_pair: Array  # (m,) whether it has another prediction or outcome
    outcomes: Array  # (m,) hashes of the outcomes

    @classmethod
    def from_hashes(cls, rows: Array, predictions: Array, outcomes: Array) -> EqualRows:
        """Sort the rows by the hashes of their predictions and outcomes."""
        order = np.lexsort((outcomes, predictions))
        predictions, outcomes = predictions[order], outcomes[order]
        starts_prediction = np.append(True, predictions[1:] != predictions[:-1])
        starts_pair = starts_prediction | np.append(True, outcomes[1:] != outcomes[:-1])
        return cls(rows[order], starts_prediction, starts_pair, outcomes)

    def is_overdispersed(self) -> bool:
        """Whether the numbers m of equal rows vary more than those of copies.

        The factorial moments M₁ = E m, M₂ = E m(m − 1), and M₃ = E m(m − 1)(m − 2) have the ratio M₁M₃/M₂² = 1 for a
        Poisson distribution, as in a bootstrap resample, even if 0 is left out or the rows are a sample. It is smaller
        if all cases have about the same number of copies, and larger for categories of different sizes. Moments are
        those of rows with the same outcome, because a rare outcome may have been oversampled.

        >>> p, y = np.repeat(np.arange(100), 5), np.zeros(500)
        >>> EqualRows.from_hashes(np.arange(500), p, y).is_overdispersed()
        False
        >>> p = np.repeat(np.arange(100), np.arange(100) % 10)
        >>> EqualRows.from_hashes(np.arange(450), p, y[:450]).is_overdispersed()
        True
        """
        first = np.flatnonzero(self.starts_pair)
        m = np.diff(np.append(first, len(self.rows)))
        outcome = np.unique(self.outcomes[first], return_inverse=True)[1]
        m1, m2, m3 = (np.bincount(outcome, x) for x in (m, m * (m - 1), m * (m - 1) * (m - 2)))
        main_outcome = np.bincount(outcome).argmax()
        n_copies = m2[main_outcome] / m1[main_outcome]
        n_triples, n_expected = m3.sum() / 6, (m2**2 / m1).sum() / 6
        if n_copies > MAX_RESAMPLED_COPIES:
            return bool(n_triples > (1 - 1 / (2 * n_copies)) * n_expected)
        limit = MAX_RATIO_OF_TRIPLES * n_expected
        return bool(n_triples > limit + 3 * math.sqrt(limit))  # 3 standard errors


def number_cases(preds: Predictions) -> Array:
    """Return a number of the case of each row, if rows with the same prediction and outcome are copies.

    If each prediction occurs with each outcome in a multiple of m rows, m rows of these are one case. Otherwise all of
    them are.
    """
    rows = np.arange(preds.n)
    equal = EqualRows.from_hashes(rows, _hash_rows(preds.p, rows), _hash_rows(_outcomes(preds), rows))
    starts = np.flatnonzero(equal.starts_pair)
    copy_number = rows - np.repeat(starts, np.diff(np.append(starts, preds.n)))
    multiple = _common_multiple(preds, _sample_rows(preds, SAMPLE_SIZES[0]))
    is_new_case = copy_number % multiple == 0 if multiple > 1 else equal.starts_pair
    cases = np.empty(preds.n, dtype=np.int64)
    cases[equal.rows] = np.cumsum(is_new_case) - 1
    return cases


class OutcomeDifferences(NamedTuple):
    """How many of the predictions that several rows share have different outcomes, beside similar predictions."""

    n_different: int  # predictions of several rows that have different outcomes
    n_similar_different: int  # outcomes that differ from that of the next smaller or next larger prediction, of 2 each

    @property
    def differ_too_rarely(self) -> bool:
        """Whether fewer outcomes differ than those of different cases would."""
        n_similar = self.n_similar_different
        return self.n_different <= MAX_SHARE_OF_DIFFERENCES * n_similar / 2 and bool(
            bdtr(self.n_different, self.n_different + n_similar, 1 / 3) <= SIGNIFICANCE
        )

    @property
    def differ_as_usual(self) -> bool:
        """Whether many outcomes differ, so that a larger sample would not change the result."""
        return self.n_different > max(10, MAX_SHARE_OF_DIFFERENCES * self.n_similar_different / 2)


def _compare_outcomes(preds: Predictions, equal: EqualRows) -> OutcomeDifferences:
    """Compare the outcomes of equal predictions with those of similar ones."""
    first = np.flatnonzero(equal.starts_prediction)
    n_outcomes = np.add.reduceat(equal.starts_pair.astype(np.int64), first)
    # The first row of a prediction has its smallest outcome hash, so a random row represents its outcomes.
    sizes = np.diff(np.append(first, len(equal.rows)))
    is_repeated = sizes > 1
    chosen = first + (np.random.default_rng(0).random(len(first)) * sizes).astype(np.int64)
    keys, y = _similarity_keys(preds, equal.rows[chosen])
    order = np.lexsort(keys)
    differs = y[order][1:] != y[order][:-1]
    is_repeated_there = is_repeated[order]
    return OutcomeDifferences(
        int((n_outcomes[is_repeated] > 1).sum()),
        int(differs[is_repeated_there[1:]].sum() + differs[is_repeated_there[:-1]].sum()),
    )


def _similarity_keys(preds: Predictions, rows: Array) -> tuple[tuple[Array, ...], Array]:
    """Return the keys by which similar predictions are neighbors, and a part of the outcome that they predict.

    The part is whether, or with how many votes, the predicted class was observed; of independent labels it is the one
    whose outcomes vary most.
    """
    p, outcomes = preds.p[rows], _outcomes(preds)[rows]
    if p.ndim == 1:
        return (p,), outcomes if outcomes.ndim == 1 else outcomes[:, 1]
    if preds.kind == "multilabel":
        rates = outcomes.clip(0).mean(axis=0)
        label = int((rates * (1 - rates)).argmax())
        return (p[:, label],), outcomes[:, label]
    predicted = p.argmax(axis=1)
    confidence = p[np.arange(len(p)), predicted]
    observed = outcomes == predicted if outcomes.ndim == 1 else outcomes[np.arange(len(p)), predicted]
    return (confidence, predicted), observed


def _common_multiple(preds: Predictions, rows: Array) -> int:
    """Return the largest number of which the rows of each predicted value and outcome are a multiple; 1 for few values.

    `rows` is a sample from which the values are taken. Rows of different cases end the search after a few values.
    """
    rows = rows[: SAMPLE_SIZES[0]]
    p = preds.p if preds.p.ndim == 1 else preds.p[:, preds.p[rows].std(axis=0).argmax()]
    values, multiple, n_pairs = np.unique(p[rows]), 0, 0
    outcomes = _outcomes(preds)
    if outcomes.ndim > 1:
        return 1
    has_weight = None if preds.weight is None else preds.weight > 0
    for value in values[:: -(-len(values) // MAX_VALUES)]:
        is_value = p == value if has_weight is None else (p == value) & has_weight
        counts = np.bincount(outcomes[is_value])
        multiple, n_pairs = math.gcd(multiple, *counts.tolist()), n_pairs + int(np.count_nonzero(counts))
        if multiple == 1:
            break
    return multiple if n_pairs >= MIN_PAIRS else 1
