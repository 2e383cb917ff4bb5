"""The swap permutation test: the errors of two models after they exchange the predictions of random rows."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.estimand import Estimand

SWAP_NULL = (
    "the predictions of both models are exchangeable within every {unit} (a stronger hypothesis than equal calibration)"
)


def swap_differences(a: ComparedModel, b: ComparedModel, draws: int, rng: np.random.Generator) -> Array:
    """Return the differences (draws,) of the errors of two models that exchange the predictions of random rows.

    Each row (or cluster) is exchanged with probability 1/2. The errors are distances if the estimator has a target.
    """
    if [view.p.shape for view in a.estimand.views] != [view.p.shape for view in b.estimand.views]:
        raise InputError(
            "TO205",
            "The swap permutation requires that both models predict the same classes.",
            f"{a.preds.k} and {b.preds.k} classes",
            "Omit null.",
        )
    cluster = a.preds.cluster
    n_units = a.preds.n if cluster is None else int(cluster.max()) + 1
    estimator = a.estimand.estimator
    differences = np.empty(draws)
    for r in range(draws):
        is_exchanged = rng.random(n_units) < 0.5
        if cluster is not None:
            is_exchanged = is_exchanged[cluster]
        values = np.array(
            [
                _value_after_exchange(a.estimand, b.estimand, is_exchanged),
                _value_after_exchange(b.estimand, a.estimand, is_exchanged),
            ]
        )
        error_a, error_b = estimator.as_loss(values) if estimator.has_target else values
        differences[r] = error_a - error_b
    return differences


def _value_after_exchange(estimand: Estimand, other: Estimand, is_exchanged: Array) -> float:
    views = [
        _exchange_rows(own_view, other_view, is_exchanged)
        for own_view, other_view in zip(estimand.views, other.views, strict=True)
    ]
    return float(estimand.combine_views(estimand.estimator.values(views)))


def _exchange_rows(own: View, other: View, is_exchanged: Array) -> View:
    """Return the view with the rows of the mask (n,) from the other view."""
    mask = is_exchanged[:, None] if own.joint else is_exchanged
    p, y = np.where(mask, other.p, own.p), np.where(mask, other.y, own.y)
    partition_values = np.where(mask, other.partition_values, own.partition_values)
    uses_predictions = own.partition_values is own.p and other.partition_values is other.p
    w = np.where(is_exchanged, other.w, own.w)
    exact_rows = ExchangedRows(own, other, is_exchanged)
    return View(
        p,
        y,
        w,
        partition_values=None if uses_predictions else partition_values,
        name=own.name,
        classes=own.classes,
        votes=own.votes,
        exact=exact_rows,
    )


class ExchangedRows:
    """Exact complements and log-probabilities of the rows of `own`, with those of the mask (n,) from `other`.

    A `View` that is constructed from p alone would compute 1 − p and log p, and lose the precision of tiny
    probabilities.
    """

    def __init__(self, own: View, other: View, is_exchanged: Array) -> None:
        self.own, self.other, self.is_exchanged = own, other, is_exchanged

    @property
    def has_logs(self) -> bool:
        return self.own.has_logs or self.other.has_logs

    def complement(self, p: Array) -> Array:
        return np.where(self.is_exchanged, self.other.q, self.own.q)

    def log_odds(self) -> Array | None:
        """Log odds of each row, if both views have them: those of one model and ranks of the other do not compare."""
        own, other = self.own.log_odds, self.other.log_odds
        return None if own is None or other is None else np.where(self.is_exchanged, other, own)

    def logs(self, outcomes: int) -> Array:
        return np.where(self.is_exchanged[:, None], self.other.log_P, self.own.log_P)
