"""Decision regret of an audit: how much recalibration would save at the user's costs, estimated and tested."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.tallies.tally import Tally


def decision_regret(
    rows: Predictions | Tally, cost: Any, actions: Any, level: float, rng: int | np.random.Generator
) -> dict[str, Any] | None:
    """Estimate and test the decision regret, as the section `decisions` of an audit.

    Parameters
    ----------
    rows : Predictions or Tally
        The audited data. A tally is refused, because the regret is estimated by cross-fitting.
    cost : array-like (actions, K) or None
        Cost of each action for each true class.
    actions : sequence of str or None
        Names of the actions.
    level : float
        Confidence level of the interval.
    rng : int or numpy.random.Generator
        Seed or random generator of the folds and the bootstrap.

    Returns
    -------
    dict or None
        The estimate as `regret` and its test as `test`, both as JSON objects; None if `cost` is None.

    Raises
    ------
    InputError
        TO203 for `actions` without `cost`, TO403 for a tally, TO205 for clusters.
    """
    if cost is None:
        if actions is not None:
            raise InputError("TO203", "`actions` names the rows of `cost`.", "actions without cost", "Pass cost=.")
        return None
    if isinstance(rows, Tally):
        raise InputError(
            "TO403", "The decision regret requires the rows.", "a tally", "Use mode='exact', or omit cost."
        )
    if rows.cluster is not None:
        raise InputError(
            "TO205",
            "The decision regret is estimated by cross-fitting, which requires independent rows.",
            "cost= with clusters",
            "Omit cost, or audit one row per cluster.",
        )
    # Frequencies have become rows.
    settings = {"cost": cost, "actions": actions, "rng": rng, "weight_kind": "importance"}
    regret = measure(rows, "decision_regret", level=level, **settings)
    return {"regret": regret.to_dict(), "test": test(rows, "decision_regret", **settings).to_dict()}
