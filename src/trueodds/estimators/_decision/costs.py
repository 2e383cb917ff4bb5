"""Cost tables, the action of least expected cost, and the cost paid at the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import call_user_function
from trueodds.core.typing import Array
from trueodds.data.probabilities import two_columns
from trueodds.lenses.view import View

Cost = Sequence[Sequence[float]] | Array | Callable[[Array], Array]

TIE_TOLERANCE = 1e-12  # costs that differ by less, relative to the largest, or thresholds, are equal but for rounding


def as_vectors(p: Array) -> Array:
    """Probabilities as rows over all outcomes, (n, m) float64: a binary score p is (1 − p, p)."""
    p = p.astype(np.float64, copy=False)
    return two_columns(p) if p.ndim == 1 else p


def check_cost(cost: Cost) -> Any:
    """Validate costs: one table as nested tuples, so that settings are comparable; one table per row; or a callable."""
    if callable(cost):
        return cost
    try:
        table = np.array(cost, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim not in (2, 3) or table.shape[-1] < 2 or not table.size or not np.isfinite(table).all():
        raise InputError(
            "TO203",
            "cost must be a table of finite numbers: one row per action and one column per true class, or one table per"
            " row.",
            describe(cost),
            "For instance cost=[[0, 5], [1, 0]]: doing nothing costs 5 if class 1 occurs, acting costs 1 if not.",
        )
    if table.ndim == 2:
        return tuple(map(tuple, table.tolist()))
    table.flags.writeable = False
    return table


class Costs:
    """Cost of each action and outcome, the same for every row or one table per row.

    P holds the evaluated rows, and `row` their numbers in the view. Without costs every wrong class costs 1.
    """

    def __init__(self, cost: Cost | None, P: Array, view: View, name: str, row: Array | None = None) -> None:
        n, m = P.shape
        table: Any = 1 - np.eye(m) if cost is None else call_user_function("cost", cost, P) if callable(cost) else cost
        self.table = np.asarray(table, dtype=np.float64)  # (A, m) or (n, A, m)
        if row is not None and not callable(cost) and self.table.ndim == 3 and len(self.table) == len(view.w):
            self.table = self.table[row]
        is_valid = self.table.ndim in (2, 3) and self.table.shape[-1] == m and np.isfinite(self.table).all()
        if not is_valid or (self.table.ndim == 3 and len(self.table) != n):
            raise InputError(
                "TO205",
                f"{name} needs a cost for each of the {m} outcomes of the lens {view.name}.",
                f"costs of shape {self.table.shape}",
                f"Give one column per outcome, (actions, {m}), or a table per row, (n, actions, {m}).",
            )
        self.tie_tolerance = TIE_TOLERANCE * max(float(np.abs(self.table).max()), np.finfo(float).tiny)

    @property
    def n_actions(self) -> int:
        """Number of actions, the rows of a cost table."""
        return self.table.shape[-2]

    def optimal_actions(self, P: Array, preferred_action: Array | None = None) -> Array:
        """Action of smallest expected cost, (n,), the lowest in case of ties, under the probabilities P (n, m).

        `preferred_action` (n,) is chosen if it is among the tied ones.
        """
        expected = self._expected_costs(P)
        min_cost = expected.min(axis=1, keepdims=True)
        tied = expected <= min_cost + self.tie_tolerance
        action = tied.argmax(axis=1)
        if preferred_action is None:
            return action
        return np.where(tied[np.arange(len(P)), preferred_action], preferred_action, action)

    def row_costs(self, action: Array, Y: Array) -> Array:
        """Cost of each row's action at its outcome, (n,), averaged over vote shares."""
        return (self.outcome_costs(action) * Y).sum(axis=1)

    def outcome_costs(self, action: Array) -> Array:
        """Cost of each row's action by outcome, (n, m)."""
        return self.table[action] if self.table.ndim == 2 else self.table[np.arange(len(action)), action]

    def action_thresholds(self) -> list[tuple[float, int, int]]:
        """Probabilities of the second of two outcomes at which the optimal action changes: (probability, from, to)."""
        if self.table.ndim != 2 or self.table.shape[1] != 2:
            return []
        # The expected cost at p is intercept + slope · p.
        intercept, slope = self.table[:, 0], self.table[:, 1] - self.table[:, 0]
        changes: list[tuple[float, int, int]] = []
        last_threshold = 0.0
        action = int(self.optimal_actions(np.array([[1.0, 0.0]]))[0])
        while True:
            flatter = np.flatnonzero(slope < slope[action])
            if not len(flatter):
                return changes
            crossings = (intercept[flatter] - intercept[action]) / (slope[action] - slope[flatter])
            next_threshold = max(float(crossings.min()), last_threshold)
            if next_threshold >= 1:
                return changes
            tied = flatter[crossings <= next_threshold + TIE_TOLERANCE]
            next_action = int(tied[slope[tied].argmin()])
            changes.append((next_threshold, action, next_action))
            last_threshold, action = next_threshold, next_action

    def _expected_costs(self, P: Array) -> Array:
        """Expected cost of each action, (n, actions), under the probabilities P (n, m)."""
        return P @ self.table.T if self.table.ndim == 2 else np.einsum("nk,nak->na", P, self.table)
