"""Compute the logarithms of probabilities of classes, events and complements without losing digits.

Logits give logarithms that do not underflow. The probability of a complement is not computed as 1 − p where that would
lose digits, but as the sum over the other classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.probabilities import sigmoid

if TYPE_CHECKING:
    from trueodds.data.predictions import Predictions


def log_softmax(z: Array) -> Array:
    """Return log-probabilities (n, K) float64 of logits (n, K), or of log odds (n,) of the second of two classes.

    A logit of −inf is an exact zero and keeps the logarithm −inf; no other logarithm underflows.

    >>> log_softmax(np.array([[0.0, 2000.0]])).tolist()
    [[-2000.0, 0.0]]
    """
    z = np.asarray(z, dtype=np.float64)
    if z.ndim == 1:
        return -np.logaddexp(0.0, np.stack([z, -z], axis=1))
    return z - log_sum_exp(z)[:, None]


MAX_LOG_ODDS = 1e38  # stands for infinite log odds, so that lines and means between scores stay finite


def log_odds(logits: Array, is_event: Array) -> Array:
    """Return the log odds (n,) float64 of an event from logits (n, K), or from log odds (n,) of the second class.

    `is_event` (n, K) or (1, K) says which classes are the event. Nothing is rounded where the event or its complement
    has a single class and a logit of 0, so scores keep their order and their ties, however large they are. Exact zeros
    and ones are at ∓`MAX_LOG_ODDS`.

    >>> log_odds(np.array([[0.0, 40.0], [0.0, 41.0]]), np.array([[False, True]])).tolist()
    [40.0, 41.0]
    """
    z = np.asarray(logits, dtype=np.float64)
    if z.ndim == 1:
        return np.where(is_event[:, 1], z, -z)
    event, rest = masked_log_sum_exp(z, is_event), masked_log_sum_exp(z, ~is_event)
    return np.clip(event - rest, -MAX_LOG_ODDS, MAX_LOG_ODDS)


def log_probabilities(preds: Predictions, rows: Any = slice(None)) -> Array:
    """Return the log-probability of every class, (n, K) float64, from the logits if known, else from the columns.

    `rows` selects the n rows: a slice, their numbers, or a mask.

    >>> from trueodds.data.predictions import Predictions
    >>> log_probabilities(Predictions([0], [[1e-30, 1.0]])).round(2).tolist()
    [[-69.08, 0.0]]
    """
    if preds.logits is not None:
        return log_softmax(preds.logits[rows])
    with np.errstate(divide="ignore"):
        return np.log(preds.P[rows], dtype=np.float64)


def exact_zeros(preds: Predictions) -> Array:
    """Return a mask (n, K) of probabilities that are exactly 0; for logits, of −inf, regardless of underflow.

    >>> from trueodds.data.predictions import Predictions
    >>> exact_zeros(Predictions([0], [1.0])).tolist(), exact_zeros(Predictions.from_logits([0], [[0, -2000]])).tolist()
    ([[True, False]], [[False, False]])
    """
    if preds.logits is None:
        return np.asarray(preds.P == 0)
    if preds.logits.ndim == 1:  # log odds are finite
        return np.zeros((preds.n, 2), dtype=bool)
    return np.isneginf(preds.logits)


def log_observed(preds: Predictions) -> Array:
    """Return the log-probability of the observed class, (n,) float64; with votes the mean over them."""
    if preds.votes is not None:
        voted = preds.votes > 0
        return (preds.votes * np.where(voted, log_probabilities(preds), 0.0)).sum(axis=1)
    assert preds.y is not None
    row_numbers, logits = np.arange(preds.n), preds.logits
    if logits is None:
        p = preds.p[row_numbers, preds.y] if preds.p.ndim == 2 else np.where(preds.y == 1, preds.p, 1 - preds.p)
        with np.errstate(divide="ignore"):
            return np.log(p, dtype=np.float64)
    if logits.ndim == 1:
        return -np.logaddexp(0.0, np.where(preds.y == 1, -logits, logits), dtype=np.float64)
    return logits[row_numbers, preds.y] - _logit_log_sums(preds)


@dataclass(frozen=True, eq=False)
class InducedProbabilities:
    """Complements and logarithms of the probabilities that a lens induces, with full relative precision.

    `outcome_codes` returns the outcome of each class, as in `OutcomeCodes.code` of the lens: (n, K) or (1, K), 1 for
    the event of a binary view.

    >>> from trueodds.data.predictions import Predictions
    >>> sharp = Predictions([0], np.array([[1e-12, 1.0]], dtype=np.float32))
    >>> p = sharp.p[:, 1]
    >>> float(1 - p[0]), InducedProbabilities(sharp, lambda: np.array([[0, 1]])).complement(p).round(15).tolist()
    (0.0, [1e-12])
    """

    preds: Predictions
    outcome_codes: Callable[[], Array]

    @property
    def has_logs(self) -> bool:
        return self.preds.logits is not None

    def complement(self, p: Array) -> Array:
        """Return the probability (n,) of the complement of an event, summed over the other classes."""
        P, is_event = self.preds.P, self.outcome_codes() == 1
        if P.shape[1] == 2 and len(is_event) == 1:  # two classes, of which one is the event in all rows
            other_class = 0 if is_event[0, 1] else 1
            return P[:, other_class].astype(np.float64)
        sums = self.preds.cached("row sums", lambda: P.sum(axis=1, dtype=np.float64))
        return sum_of_others(P, ~is_event, p, sums)

    def log_odds(self) -> Array | None:
        """Return the log odds (n,) of the event of a binary view from the logits; None if there are none."""
        logits = self.preds.logits
        return None if logits is None else log_odds(logits, self.outcome_codes() == 1)

    def logs(self, outcomes: int) -> Array | None:
        """Return the log-probability of each outcome, (n, outcomes), from the logits; None if there are none."""
        logits = self.preds.logits
        if logits is None:
            return None
        outcome_codes = self.outcome_codes()
        if len(outcome_codes) == 1 and (outcome_codes[0] == np.arange(outcome_codes.shape[1])).all():
            return log_softmax(logits)  # each outcome is one class
        if logits.ndim == 1:
            logits = np.stack([np.zeros_like(logits), logits], axis=1)
        log_sums, event = _logit_log_sums(self.preds), outcome_codes == 1
        if outcomes > 2 or len(outcome_codes) > 1 or event.sum() > 1:
            return np.stack(
                [masked_log_sum_exp(logits, outcome_codes == outcome) - log_sums for outcome in range(outcomes)],
                axis=1,
            )
        log_p = logits[:, int(np.argmax(event[0]))] - log_sums  # one class against the others
        return np.stack([log_complement(logits, ~event, log_p, log_sums), log_p], axis=1)


class LogOdds:
    """Complements and logarithms of the probability of a single label, from its log odds z (n,)."""

    has_logs = True

    def __init__(self, z: Array) -> None:
        self.z = z

    def complement(self, p: Array) -> Array:
        return sigmoid(-self.z)

    def log_odds(self) -> Array:
        return np.asarray(self.z, dtype=np.float64)

    def logs(self, outcomes: int) -> Array:
        return log_softmax(self.z)


def _logit_log_sums(preds: Predictions) -> Array:
    """Return log Σ exp(z) of the logits of each row, (n,), computed once."""
    logits = preds.logits
    assert logits is not None
    return preds.cached("log sums", lambda: np.logaddexp(0.0, logits) if logits.ndim == 1 else log_sum_exp(logits))


MIN_ACCURATE_DIFFERENCE = 1e-3  # a difference from 1 below this has lost more than three digits
_BLOCK_PROBABILITIES = 2**16  # probabilities per block, so that temporaries stay in cache


def sum_of_others(P: Array, others: Array, p: Array, total: Array | float = 1.0) -> Array:
    """Return total − p, where the unmasked columns of P (n, K) sum to p (n,); the result is (n,) float64.

    `others` is the mask, (n, K) or (1, K) for all rows, and `total` the sum of each row. If subtraction would lose
    digits, the masked columns are summed instead.
    """
    complement: Array = total - p.astype(np.float64)
    is_inaccurate = complement < MIN_ACCURATE_DIFFERENCE
    if is_inaccurate.any():
        complement[is_inaccurate] = np.where(_select_mask_rows(others, is_inaccurate), P[is_inaccurate], 0.0).sum(
            axis=1, dtype=np.float64
        )
    return complement


def log_complement(z: Array, others: Array, log_p: Array, log_total: Array | float = 0.0) -> Array:
    """Return log(1 − p), given the log-probability log p (n,) of the unmasked columns of logits z (n, K).

    `others` is the mask, (n, K) or (1, K) for all rows, and `log_total` is log Σ exp z of each row. The result is (n,).
    As in `sum_of_others`, the masked columns are summed if digits would be lost.
    """
    with np.errstate(divide="ignore"):
        complement: Array = np.log1p(-np.exp(np.minimum(log_p, 0.0)))
    is_inaccurate = complement < np.log(MIN_ACCURATE_DIFFERENCE)
    if is_inaccurate.any():
        complement[is_inaccurate] = masked_log_sum_exp(z[is_inaccurate], _select_mask_rows(others, is_inaccurate)) - (
            log_total[is_inaccurate] if isinstance(log_total, np.ndarray) else log_total
        )
    return complement


def log_sum_exp(z: Array) -> Array:
    """Return log Σ_k exp(z_k) of each row of (n, K), (n,) float64; −inf if all are −inf."""
    out = np.empty(len(z))
    block_rows = max(1, _BLOCK_PROBABILITIES // z.shape[1])
    for start in range(0, len(z), block_rows):
        block = z[start : start + block_rows].astype(np.float64)
        largest = block.max(axis=1)
        largest[np.isneginf(largest)] = 0.0
        block -= largest[:, None]
        with np.errstate(divide="ignore"):
            out[start : start + block_rows] = np.log(np.exp(block, out=block).sum(axis=1)) + largest
    return out


def masked_log_sum_exp(z: Array, mask: Array) -> Array:
    """Return log Σ exp of the masked logits of each row, (n,), for logits (n, K) and a mask (n, K) or (1, K)."""
    if len(mask) == 1 and mask.sum() == 1:  # exactly the logit
        return np.asarray(z[:, int(np.argmax(mask[0]))], dtype=np.float64)
    return log_sum_exp(z[:, mask[0]]) if len(mask) == 1 else log_sum_exp(np.where(mask, z, -np.inf))


def _select_mask_rows(mask: Array, rows: Array) -> Array:
    return mask if len(mask) == 1 else mask[rows]
