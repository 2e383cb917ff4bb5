"""Area under the ROC curve (AUC) with the standard error of DeLong, DeLong and Clarke-Pearson."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.reports.wald_intervals import variance_of_sum


def auc_with_se(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """Return the area under the ROC curve of a view with two classes, and its standard error.

    The area is the probability that an event has a larger predicted probability than a nonevent, ties counted by half.
    It is NaN if only one class occurs. The standard error [1]_ is computed from the share of nonevents that each event
    is ranked above, and the share of events that each nonevent is ranked below; with clusters (n,), these terms are
    summed in each cluster. It is NaN with fewer than two rows of either class. Rows count by weight; with votes, each
    row belongs partly to both classes.

    References
    ----------
    .. [1] DeLong, DeLong & Clarke-Pearson (1988).
    """
    event_weights, nonevent_weights = view.w * view.y, view.w * (1 - view.y)
    event_weight, nonevent_weight = float(event_weights.sum()), float(nonevent_weights.sum())
    if event_weight <= 0 or nonevent_weight <= 0:
        return float("nan"), float("nan")
    _, rank_of_row = np.unique(view.p, return_inverse=True)
    nonevents_at_rank, events_at_rank = (np.bincount(rank_of_row, x) for x in (nonevent_weights, event_weights))
    # For each row, the share of nonevents below it and the share of events above it, with ties counted by half.
    share_below = (np.cumsum(nonevents_at_rank) - nonevents_at_rank / 2)[rank_of_row] / nonevent_weight
    share_above = (events_at_rank.sum() - np.cumsum(events_at_rank) + events_at_rank / 2)[rank_of_row] / event_weight
    auc = float(event_weights @ share_below) / event_weight
    influence = [
        _correct_for_estimated_mean(event_weights) * (share_below - auc) / event_weight,
        _correct_for_estimated_mean(nonevent_weights) * (share_above - auc) / nonevent_weight,
    ]
    if cluster is None:
        return auc, float(np.sqrt((sum(influence) ** 2).sum()))
    return auc, float(np.sqrt(variance_of_sum(sum(influence), cluster)))


def _correct_for_estimated_mean(weight: Array) -> Array:
    """Scale weights (n,) so that a variance has the denominator n − 1 instead of n; NaN for fewer than two rows."""
    effective_n = float(weight.sum() ** 2 / (weight**2).sum())
    return weight * np.sqrt(effective_n / (effective_n - 1)) if effective_n > 1 + 1e-9 else np.full(len(weight), np.nan)
