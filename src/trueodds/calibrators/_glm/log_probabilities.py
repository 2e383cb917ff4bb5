"""The probabilities that calibrators take, as such or as logarithms, and their limit `min_prob` inside logarithms.

`data/log_probabilities.py` has the formulas of logits, without a limit. A map saves the `min_prob` of its fit, so that
the defaults may be changed, and with them the docstrings that state 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_complement, log_softmax, log_sum_exp, sum_of_others
from trueodds.data.log_probabilities import log_odds as log_odds_of_logits
from trueodds.data.probabilities import prob_columns
from trueodds.data.probabilities import softmax as softmax_of_logits
from trueodds.lenses.view import View

MIN_PROB = 1e-12  # default smallest probability of fits
MIN_PROB_OF_LOGITS = 1e-300  # the same where log-probabilities are known: it replaces exact zeros only
MinProb = Annotated[float, Range(0, 0.5, closed="neither")]
_COUNT_BLOCK_SIZE = 2**16  # probabilities counted at once, so that temporaries stay in cache


@dataclass(frozen=True, slots=True, eq=False)
class LogProbabilities:
    """Log-probabilities of rows, which calibrators that take logarithms accept instead of probabilities.

    They keep the precision of logits, whose probabilities would underflow to 0.

    >>> rows = LogProbabilities(np.array([[0.0, -2000.0], [-1.0, -0.5]]))
    >>> len(rows), rows[1:].values.tolist(), to_probabilities(rows[:1]).tolist()
    (2, [[-1.0, -0.5]], [[1.0, 0.0]])
    """

    values: Array  # (n, K) float64, −inf for an exact zero
    logits: Array | None = None  # (n, K), or log odds (n,), of which they were computed

    @classmethod
    def from_logits(cls, logits: Array) -> LogProbabilities:
        """The log-probabilities of logits (n, K), or of log odds (n,) of the second of two classes."""
        return cls(log_softmax(logits), logits)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> LogProbabilities:
        return LogProbabilities(self.values[rows], None if self.logits is None else self.logits[rows])

    def log_odds(self, c: int) -> Array:
        """The log odds (n,) of class c against the others, which keep the order and the ties of the logits."""
        return log_odds_of_logits(
            self.values if self.logits is None else self.logits, np.arange(self.shape[1])[None] == c
        )


Probabilities = Array | LogProbabilities


def to_probabilities(P: Probabilities) -> Array:
    """The probabilities (n, K); those of log-probabilities may underflow to 0."""
    if not isinstance(P, LogProbabilities):
        return P
    return np.exp(P.values) if P.logits is None else prob_columns(softmax_of_logits(P.logits))


def to_logs(P: Probabilities) -> Array:
    """The logarithms (n, K), −inf of exact zeros."""
    if isinstance(P, LogProbabilities):
        return P.values
    with np.errstate(divide="ignore"):
        return np.log(P, dtype=np.float64)


def exact_zeros(P: Probabilities) -> Array:
    """Mask (n, K) of probabilities that are exactly 0; of log-probabilities, those of −inf, regardless of underflow.

    >>> exact_zeros(LogProbabilities(np.array([[0.0, -2000.0], [0.0, -np.inf]]))).tolist()
    [[False, False], [False, True]]
    """
    return np.asarray(np.isneginf(P.values) if isinstance(P, LogProbabilities) else P == 0)


def predicted_class(P: Probabilities) -> Array:
    """The class of the largest probability of each row, (n,); the first one of ties."""
    return np.asarray((P.values if isinstance(P, LogProbabilities) else P).argmax(axis=1))


def normalized_logs(P: Probabilities) -> Array:
    """Logarithms (n, K) of normalized rows, −inf for exact zeros."""
    logs = to_logs(P)
    return logs - log_sum_exp(logs)[:, None]


def floored_logs(P: Probabilities, min_prob: float) -> Array:
    """log(max(p, `min_prob`)) minus the logarithm of the row's sum before that, (n, K).

    For log-probabilities, `MIN_PROB_OF_LOGITS` replaces exact zeros only.

    >>> floored_logs(np.array([[1.0, 0.0]]), 1e-12).round(2).tolist()
    [[0.0, -27.63]]
    >>> floored_logs(LogProbabilities(np.array([[0.0, -2000.0]])), MIN_PROB_OF_LOGITS).tolist()
    [[0.0, -2000.0]]
    """
    if isinstance(P, LogProbabilities):
        return raise_to_min_prob(P.values, min_prob) - log_sum_exp(P.values)[:, None]
    logs = np.log(np.maximum(P, min_prob, dtype=np.float64))
    logs -= np.log(P.sum(axis=1, keepdims=True, dtype=np.float64))
    return logs


def raise_to_min_prob(logs: Array, min_prob: float) -> Array:
    """Logarithms limited below at log(`min_prob`); `MIN_PROB_OF_LOGITS` and less replace exact zeros only."""
    is_low = np.isneginf(logs) if min_prob <= MIN_PROB_OF_LOGITS else logs < np.log(min_prob)
    return np.where(is_low, np.log(min_prob), logs) if is_low.any() else logs


def min_prob_for_slopes(slopes: Any, min_prob: Any) -> Array:
    """`min_prob` where the slope of a map is negative, else 0: the smallest probability that the map distinguishes.

    With a positive slope an exact zero stays zero. With a negative one it would take the whole row, although the fit
    that found the slope saw `min_prob` in its place.

    >>> min_prob_for_slopes([-1.0, 1.0], 1e-12).tolist()
    [1e-12, 0.0]
    """
    return np.where(np.asarray(slopes) < 0, min_prob, 0.0)


def logs_for_slopes(logs: Array, slopes: Any, min_prob: float) -> Array:
    """Logarithms limited below as `min_prob_for_slopes` says for the slope of the map, a number or (K,).

    >>> logs_for_slopes(np.array([[-np.inf, -np.inf]]), np.array([-1.0, 1.0]), 1e-12).round(2).tolist()
    [[-27.63, -inf]]
    """
    is_limited = min_prob_for_slopes(slopes, min_prob) > 0
    return np.where(is_limited, raise_to_min_prob(logs, min_prob), logs) if is_limited.any() else logs


def one_vs_rest_logs(P: Probabilities, c: int, min_prob: float = 0.0) -> Array:
    """Logarithms of the sum of the other classes and of class c, (n, 2), both limited below at log(`min_prob`).

    With two classes, each has its own column. With more, 1 − p is replaced by the sum of the others where it loses
    digits.

    >>> one_vs_rest_logs(np.array([[1e-30, 1.0]]), 1).round(2).tolist()
    [[-69.08, 0.0]]
    """
    others = np.arange(P.shape[1])[None] != c
    if isinstance(P, LogProbabilities):
        logs = P.values
        rest = log_complement(logs, others, logs[:, c]) if P.shape[1] > 2 else logs[:, 1 - c]
        pair = np.stack([rest, logs[:, c]], axis=1)
        return pair if min_prob == 0 else raise_to_min_prob(pair, min_prob)
    p = P[:, c].astype(np.float64)
    rest = sum_of_others(P, others, p) if P.shape[1] > 2 else P[:, 1 - c].astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.stack([rest, p], axis=1), min_prob))


def log_ratio(P: Probabilities, min_prob: float) -> Array:
    """log(p₁ / p₀) of two columns (n, 2), both limited below at `min_prob`, without loss of digits near 0 and 1."""
    log_p0, log_p1 = one_vs_rest_logs(P, 1, min_prob).T
    return np.asarray(log_p1 - log_p0)


def binary_logs(x: Array) -> Array:
    """Logarithms of 1 − x and of x for single probabilities (n,), as `one_vs_rest_logs` gives them for rows."""
    x = np.clip(x, 0.0, 1.0, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.log(np.stack([1 - x, x], axis=1))


def log_odds(x: Array, min_prob: float) -> Array:
    """log(p / (1 − p)) of single probabilities (n,), with both sides limited below at `min_prob`.

    >>> log_odds(np.array([0.5, 1.0]), 1e-12).round(2).tolist()
    [0.0, 27.63]
    """
    x = np.minimum(x, 1.0, dtype=np.float64)
    return np.log(np.maximum(x, min_prob)) - np.log(np.maximum(1 - x, min_prob))


def probability_pair(eta: Array) -> Array:
    """The probabilities (n, 2) of two classes from the log odds of the second, both with full precision."""
    return np.stack([expit(-eta), expit(eta)], axis=1)


def softmax(eta: Array) -> Array:
    """Rows proportional to exp(η), (n, K); −inf is an exact zero, and +inf takes the whole row."""
    row_max = eta.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        q = np.exp(eta - row_max)
    if np.isposinf(row_max).any():
        q = np.where(np.isposinf(row_max), np.isposinf(eta), q)
    q /= q.sum(axis=1, keepdims=True)
    return q


@dataclass(frozen=True, slots=True)
class ReplacedCounts:
    """Counts of the probabilities that `min_prob` replaced in a fit; counts of batches add up."""

    min_prob: float  # the smallest probability of the fit
    n_probabilities: int = 0  # probabilities in all
    n_replaced: int = 0  # of these, the replaced ones
    n_replaced_events: int = 0  # of the replaced ones, those of observed outcomes
    n_zero_events: int = 0  # rows whose outcome had probability 0

    @classmethod
    def from_probabilities(cls, P: Probabilities, Y: Array, min_prob: float) -> ReplacedCounts:
        """Count in probabilities (n, K) with outcomes: shares (n, K) or labels (n,)."""
        if isinstance(P, LogProbabilities):
            is_zero = exact_zeros(P)
            is_low = is_zero if min_prob <= MIN_PROB_OF_LOGITS else P.values < np.log(min_prob)
            # Only whether a probability is 0 or below `min_prob` matters for the counts, so other numbers replace it.
            P = np.where(is_zero, 0.0, np.where(is_low, min_prob / 2, 1.0))
        block_size = max(1, _COUNT_BLOCK_SIZE // P.shape[1])
        threshold = _round_up_to_dtype(min_prob, P.dtype)
        n_replaced, n_replaced_events, n_zero_events = 0, 0, 0
        for block in (slice(start, start + block_size) for start in range(0, len(P), block_size)):
            is_low = P[block] < threshold
            if (count := int(np.count_nonzero(is_low))) > 0:
                n_replaced += count
                y = Y[block]
                is_replaced_event = is_low[np.arange(len(y)), y][:, None] if y.ndim == 1 else is_low & (y > 0)
                if is_replaced_event.any():
                    n_replaced_events += int(np.count_nonzero(is_replaced_event))
                    is_zero = P[block][np.arange(len(y)), y][:, None] == 0 if y.ndim == 1 else P[block] == 0
                    n_zero_events += int((is_replaced_event & is_zero).any(axis=1).sum())
        return cls(min_prob, P.size, n_replaced, n_replaced_events, n_zero_events)

    def __add__(self, other: ReplacedCounts) -> ReplacedCounts:
        return ReplacedCounts(
            self.min_prob,
            self.n_probabilities + other.n_probabilities,
            self.n_replaced + other.n_replaced,
            self.n_replaced_events + other.n_replaced_events,
            self.n_zero_events + other.n_zero_events,
        )

    def notes(self) -> list[Note]:
        """Note TN502 with the counts."""
        if not self.n_replaced:
            return []
        verb = "was" if self.n_replaced == 1 else "were"
        text = (
            f"{self.n_replaced:,} of {self.n_probabilities:,} probabilities {verb} below {self.min_prob:g} and raised"
            f" to it in the fit, {self.n_replaced_events:,} of them of observed outcomes"
        )
        if self.n_replaced_events:
            text += ". Such outcomes have a large influence, which depends on this limit"
        return [Note("TN502", f"{text}.")]


def resolve_min_prob(view: View, min_prob: float) -> float:
    """The smallest probability for a view: where log-probabilities are known, the default applies to zeros only."""
    return MIN_PROB_OF_LOGITS if min_prob == MIN_PROB and view.has_logs else min_prob


def replacement_notes(P: Probabilities, Y: Array, min_prob: float) -> list[Note]:
    """Note TN502 on the probabilities that `min_prob` replaced; Y are shares (n, K) or labels (n,)."""
    return ReplacedCounts.from_probabilities(P, Y, min_prob).notes()


def _round_up_to_dtype(min_prob: float, dtype: np.dtype[Any]) -> Any:
    """The smallest number of the dtype that is at least `min_prob`: comparing within a dtype takes half the time."""
    threshold = dtype.type(min_prob)
    return threshold if float(threshold) >= min_prob else np.nextafter(threshold, dtype.type(1))
