"""What is each outcome worth to whoever acts on a prediction? Utilities by name, by table or by function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import call
from trueodds.core.typing import Array
from trueodds.estimators.acting.actions import Cost, Costs
from trueodds.lenses.ranked import descending
from trueodds.lenses.view import View

Utility = str | Sequence[float] | Sequence[Sequence[float]] | Array | Callable[[Array], Array]

_NAMED = re.compile("top(-[1-9][0-9]{0,14})?|class:[0-9]{1,15}")


def checked(utility: Utility) -> Any:
    """A name or a callable as it is, tables of numbers as nested tuples, so that settings compare."""
    if callable(utility) or (isinstance(utility, str) and _NAMED.fullmatch(utility)):
        return utility
    try:
        table = np.asarray(utility, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim not in (1, 2) or table.shape[-1] < 2 or not len(table) or not np.isfinite(table).all():
        raise InputError(
            "TO203",
            "There is no utility of that form.",
            describe(utility),
            "Use 'top', 'top-5', 'class:0', a payoff per class, rows of such payoffs, or a function of P (n, K).",
        )
    return tuple(table.tolist()) if table.ndim == 1 else tuple(map(tuple, table.tolist()))


def payoffs(utility: Any, cost: Cost | None, P: Array, view: View, name: str) -> dict[str, Array]:
    """The payoff of each outcome, (m,) where it is the same for every row, else (n, m); by name of the utility."""
    m = P.shape[1]
    if cost is not None:
        costs = Costs(cost, P, view, name)
        return {"cost": -costs.of(costs.called_for(P))}
    if callable(utility):
        values = np.asarray(call("utility", utility, P), dtype=np.float64)
        if values.shape != P.shape or not np.isfinite(values).all():
            raise _unfit(view, m, f"a function that returns shape {values.shape}", f"Return finite payoffs {P.shape}.")
        return {"utility": values}
    if isinstance(utility, str):
        return {utility: _named(utility, P, view)}
    table = np.asarray(utility)
    if table.shape[-1] != m:
        raise _unfit(view, m, f"{table.shape[-1]} payoffs", f"Give {m}, one per class.")
    if table.ndim == 1:
        return {"utility": table}
    return {f"utility {number}": row for number, row in enumerate(table)}


def _named(utility: str, P: Array, view: View) -> Array:
    m = P.shape[1]
    if utility.startswith("class:"):
        c = int(utility.removeprefix("class:"))
        if c >= m:
            raise _unfit(view, m, describe(utility), f"Classes are numbered from 0 to {m - 1}.")
        return np.eye(m)[c]
    k = int(utility.removeprefix("top-")) if "-" in utility else 1
    if k >= m:
        return np.ones(m)
    if k == 1:
        return np.arange(m) == P.argmax(axis=1)[:, None]
    hit = np.zeros(P.shape, dtype=bool)
    np.put_along_axis(hit, descending(P)[:, :k], True, axis=1)
    return hit


def _unfit(view: View, m: int, got: str, fix: str) -> InputError:
    return InputError("TO205", f"A utility pays for each of the {m} outcomes that the lens {view.name} sees.", got, fix)
