"""Complements and log-probabilities of the rows of a view, without the rounding errors of 1 − p and log p."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trueodds.core.typing import Array


class ExactProbabilities(Protocol):
    """Source of complements that are more exact than 1 − p, and of log-probabilities, such as those of logits."""

    @property
    def has_logs(self) -> bool:
        """Whether log-probabilities are known that do not underflow where a probability does, as from logits."""
        ...

    def complement(self, p: Array) -> Array:
        """Return the probability (n,), float64, of the complement of an event of probability p (n,)."""
        ...

    def log_odds(self) -> Array | None:
        """Return the log odds (n,) of the event of a binary view, from its logits; None if there are none."""
        ...

    def logs(self, outcomes: int) -> Array | None:
        """Return the log-probabilities (n, outcomes); None if they are known only as logarithms of probabilities."""
        ...


class HasOutcomeProbabilities(Protocol):
    """The attributes of a `View` that `SelectedExactProbabilities` reads."""

    @property
    def has_logs(self) -> bool: ...

    @property
    def q(self) -> Array: ...

    @property
    def log_odds(self) -> Array | None: ...

    @property
    def log_P(self) -> Array: ...


class SelectedExactProbabilities:
    """Exact probabilities of selected rows of a view; `rows` are their numbers."""

    def __init__(self, view: HasOutcomeProbabilities, rows: Array) -> None:
        self.view, self.rows = view, rows

    @property
    def has_logs(self) -> bool:
        return self.view.has_logs

    def complement(self, p: Array) -> Array:
        return np.asarray(self.view.q[self.rows])

    def log_odds(self) -> Array | None:
        log_odds = self.view.log_odds
        return None if log_odds is None else np.asarray(log_odds[self.rows])

    def logs(self, outcomes: int) -> Array:
        return np.asarray(self.view.log_P[self.rows])


def outcome_logs(exact: ExactProbabilities | None, P: Array) -> Array:
    """Return the log-probabilities (n, m) from their source if it has them, else the logarithms of P (n, m)."""
    logs = None if exact is None else exact.logs(P.shape[1])
    if logs is not None:
        return logs
    logs = np.maximum(P, 0.0, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.log(logs, out=logs)
