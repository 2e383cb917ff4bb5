"""The area under the ROC curve (AUC) with the standard error of DeLong."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.reports.wald_intervals import sum_variance


def auc_with_se(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """The area under the ROC curve and its standard error; NaN if only one class occurs.

    The standard error is that of DeLong, DeLong & Clarke-Pearson (1988), from the share of the other class that each
    row is ranked above. It is NaN with fewer than two rows of either class. Rows count by weight; with votes, each row
    belongs partly to both classes.
    """
    event_weights, nonevent_weights = view.w * view.y, view.w * (1 - view.y)
    event_weight, nonevent_weight = float(event_weights.sum()), float(nonevent_weights.sum())
    if event_weight <= 0 or nonevent_weight <= 0:
        return float("nan"), float("nan")
    _, position = np.unique(view.p, return_inverse=True)
    below, above = (np.bincount(position, x) for x in (nonevent_weights, event_weights))
    # Shares of the other class below an event and above a nonevent, with ties by half.
    share_below = (np.cumsum(below) - below / 2)[position] / nonevent_weight
    share_above = (above.sum() - np.cumsum(above) + above / 2)[position] / event_weight
    area = float(event_weights @ share_below) / event_weight
    influence = [
        _unbiased_weights(event_weights) * (share_below - area) / event_weight,
        _unbiased_weights(nonevent_weights) * (share_above - area) / nonevent_weight,
    ]
    if cluster is None:
        return area, float(np.sqrt((sum(influence) ** 2).sum()))
    return area, float(np.sqrt(sum_variance(sum(influence), cluster)))


def _unbiased_weights(weight: Array) -> Array:
    """Scale weights (n,) so that a variance has the denominator n − 1 instead of n; NaN for fewer than two rows."""
    effective_n = float(weight.sum() ** 2 / (weight**2).sum())
    return weight * np.sqrt(effective_n / (effective_n - 1)) if effective_n > 1 + 1e-9 else np.full(len(weight), np.nan)
