"""Costs of actions by outcome: validation, the action of least expected cost, and the thresholds between actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import call_user_function
from trueodds.core.typing import Array
from trueodds.lenses.view import View

Cost = Sequence[Sequence[float]] | Array | Callable[[Array], Array]

# Costs are equal if they differ by less, relative to the largest cost, and thresholds are equal if they differ by less.
TIE_TOLERANCE = 1e-12
MAX_COST = 1e100  # squares of sums of larger costs could overflow


def check_cost(cost: Cost) -> Any:
    """Validate costs, and return them as a setting.

    One table (actions, classes) becomes nested tuples, so that settings are comparable. A table per row (n, actions,
    classes) becomes a read-only array. A callable is returned as it is.
    """
    if callable(cost):
        return cost
    try:
        table = np.array(cost, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim not in (2, 3) or table.shape[-1] < 2 or not table.size or not are_costs(table):
        raise InputError(
            "TO203",
            f"cost must be a table of finite numbers of at most {MAX_COST:g}: one row per action and one column per"
            " true class, or one table per row.",
            describe(cost),
            "For instance cost=[[0, 5], [1, 0]]: doing nothing costs 5 if class 1 occurs, acting costs 1 if not.",
        )
    if table.ndim == 2:
        return tuple(map(tuple, table.tolist()))
    table.flags.writeable = False
    return table


def are_costs(table: Array) -> bool:
    """Return whether a table holds finite numbers, none too large for sums of squares.

    >>> are_costs(np.array([0.0, -5.0])), are_costs(np.array([1e308])), are_costs(np.array([np.nan]))
    (True, False, False)
    """
    return bool((np.abs(table) <= MAX_COST).all())


class Costs:
    """Cost of each action and outcome, the same for every row or one table per row.

    Parameters
    ----------
    cost : table, callable or None
        As the setting `cost` (see `check_cost`). None: every wrong class costs 1.
    P : ndarray of shape (n, m)
        Predicted probabilities of the evaluated rows.
    view : View
        The view of these rows.
    name : str
        Name of the estimator, for the error of costs that do not match the outcomes (TO205).
    row : ndarray of shape (n,), optional
        Numbers of the evaluated rows in the view. The default is all rows.
    """

    def __init__(self, cost: Cost | None, P: Array, view: View, name: str, row: Array | None = None) -> None:
        n, m = P.shape
        table: Any = cost
        if cost is None:
            table = 1 - np.eye(m)
        elif callable(cost):
            table = call_user_function("cost", cost, P)
        self.table = np.asarray(table, dtype=np.float64)  # (actions, m) or (n, actions, m)
        has_table_per_row = not callable(cost) and self.table.ndim == 3 and len(self.table) == len(view.w)
        if row is not None and has_table_per_row:
            self.table = self.table[row]
        is_valid = self.table.ndim in (2, 3) and self.table.shape[-1] == m and are_costs(self.table)
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
        """Return the action of smallest expected cost, (n,), under the probabilities P (n, m).

        In case of ties it is `preferred_action` (n,) if that is among them, else the action with the lowest number.
        """
        expected = self._expected_costs(P)
        is_optimal = expected <= expected.min(axis=1, keepdims=True) + self.tie_tolerance
        action = is_optimal.argmax(axis=1)
        if preferred_action is None:
            return action
        return np.where(is_optimal[np.arange(len(P)), preferred_action], preferred_action, action)

    def row_costs(self, action: Array, Y: Array) -> Array:
        """Return the cost of each row's action (n,) at its outcome Y (n, m), (n,), averaged over vote shares."""
        return (self.outcome_costs(action) * Y).sum(axis=1)

    def outcome_costs(self, action: Array) -> Array:
        """Return the cost of each row's action (n,) for each outcome, (n, m)."""
        return self.table[action] if self.table.ndim == 2 else self.table[np.arange(len(action)), action]

    def action_thresholds(self) -> list[tuple[float, int, int]]:
        """Return the thresholds at which the optimal action changes, with the actions below and above each.

        A threshold is a probability of the second of two outcomes. With more outcomes or a table per row there are
        none.
        """
        if self.table.ndim != 2 or self.table.shape[1] != 2:
            return []
        # The expected cost of an action is a line, intercept + slope · p. Follow the lowest line from p = 0 to 1.
        intercept, slope = self.table[:, 0], self.table[:, 1] - self.table[:, 0]
        changes: list[tuple[float, int, int]] = []
        threshold = 0.0
        action = int(self.optimal_actions(np.array([[1.0, 0.0]]))[0])
        while True:
            flatter = np.flatnonzero(slope < slope[action])
            if not len(flatter):
                return changes
            crossings = (intercept[flatter] - intercept[action]) / (slope[action] - slope[flatter])
            threshold = max(float(crossings.min()), threshold)
            if threshold >= 1:
                return changes
            tied = flatter[crossings <= threshold + TIE_TOLERANCE]
            next_action = int(tied[slope[tied].argmin()])
            changes.append((threshold, action, next_action))
            action = next_action

    def _expected_costs(self, P: Array) -> Array:
        """Expected cost of each action, (n, actions), under the probabilities P (n, m)."""
        return P @ self.table.T if self.table.ndim == 2 else np.einsum("nk,nak->na", P, self.table)
