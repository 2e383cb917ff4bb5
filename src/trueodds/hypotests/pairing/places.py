"""Where is a calibration function looked at? Test locations: places on the simplex, each with one outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, numbers
from trueodds.estimators.smoothing.hashed import evenly_by_weight, hashed_order
from trueodds.estimators.smoothing.kernels import matrix
from trueodds.lenses.view import View

ROWS_PER_LOCATION = 10  # rows per place that is chosen here: a covariance of J places needs some rows more than J


@dataclass(frozen=True)
class Places:
    """Test locations of one view."""

    at: Array  # (J, m), or (J, 1) for a binary view
    outcome: Array  # (J,)

    def residuals(self, r: Array) -> Array:
        """The residual of each location's outcome, (…, J), from those of joint (…, m) or binary (…) views."""
        if self.at.shape[1] > 1:
            return r[..., self.outcome]
        return r[..., None] * np.where(self.outcome == 1, 1.0, -1.0)


def choose_places(view: View, count: int) -> Places:
    """Predictions that stand evenly among the rows, whatever their order, and outcomes that were said there.

    The j-th outcome is where (j + ½) / J falls in the cumulative probabilities of its place; equal locations are one.
    """
    mask = view.w > 0
    P, w = matrix(view)[mask], view.w[mask]
    count = max(1, min(count, len(P) // ROWS_PER_LOCATION))
    order = hashed_order(P)
    at = P[order[evenly_by_weight(w[order], count)]]
    outcome = np.ones(count, dtype=np.int64)
    if view.joint:
        u = (np.arange(count) + 0.5) / count
        outcome = np.minimum((np.cumsum(at, axis=1) <= u[:, None]).sum(axis=1), at.shape[1] - 1)
    _, first = np.unique(np.column_stack([at, outcome]), axis=0, return_index=True)
    return Places(at[np.sort(first)], outcome[np.sort(first)])


def as_places(view: View, locations: Any) -> Places:
    """The caller's locations, in the shape of the view."""
    at, outcome = as_array(locations[0], "the places"), as_array(locations[1], "the outcomes")
    m = view.p.shape[1] if view.joint else 1
    if not view.joint and at.ndim == 2 and at.shape[1] == 2:
        at = at[:, 1]
    at = numbers(at.reshape(len(at), -1), "the places").astype(np.float64)
    if at.ndim != 2 or not len(at) or at.shape[1] != m or outcome.shape != (len(at),):
        raise InputError(
            "TO205",
            "The locations do not fit the view.",
            f"places {at.shape} and outcomes {outcome.shape} for {max(m, 2)} outcomes",
            f"Give T {'(J, ' + str(m) + ')' if view.joint else '(J,)'} and s (J,).",
        )
    if not (np.isfinite(at).all() and (at >= 0).all() and (at <= 1).all()):
        raise InputError("TO203", "Places are probabilities.", "a value outside [0, 1]", "Give points of the simplex.")
    if outcome.dtype.kind not in "iu" or (outcome < 0).any() or (outcome >= max(m, 2)).any():
        raise InputError(
            "TO203", "Outcomes are numbers of columns.", describe(outcome.tolist()), f"Count from 0 to {max(m, 2) - 1}."
        )
    return Places(at, outcome.astype(np.int64))
