"""Would the difference be as large if it were arbitrary which model made which prediction? The swap permutation."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.resampling.comparing.sides import Side
from trueodds.resampling.estimand import Estimand

NULL = (
    "in every {unit} it is arbitrary which model made which prediction "
    "(exchangeable predictions, which says more than equal calibration)"
)


def swapped(a: Side, b: Side, draws: int, rng: np.random.Generator) -> Array:
    """The difference of each draw in which the models exchange the predictions of a row (or cluster) with p = 1/2."""
    if [view.p.shape for view in a.estimand.views] != [view.p.shape for view in b.estimand.views]:
        raise InputError(
            "TO205",
            "Predictions can be exchanged only where both models predict the same classes.",
            f"{a.preds.k} and {b.preds.k} classes",
            "Leave null out.",
        )
    cluster = a.preds.cluster
    units = a.preds.n if cluster is None else int(cluster.max()) + 1
    differences = np.empty(draws)
    for r in range(draws):
        exchanged = rng.random(units) < 0.5
        if cluster is not None:
            exchanged = exchanged[cluster]
        differences[r] = _value(a.estimand, b.estimand, exchanged) - _value(b.estimand, a.estimand, exchanged)
    return differences


def _value(estimand: Estimand, other: Estimand, exchanged: Array) -> float:
    views = [_mixed(*two, exchanged) for two in zip(estimand.views, other.views, strict=True)]
    return float(estimand.combined(estimand.estimator.values(views)))


def _mixed(own: View, other: View, exchanged: Array) -> View:
    rows = exchanged[:, None] if own.joint else exchanged
    p, y, at = (np.where(rows, getattr(other, name), getattr(own, name)) for name in ("p", "y", "at"))
    plain = own.at is own.p and other.at is other.p
    w = np.where(exchanged, other.w, own.w)
    exact = Exchanged(own, other, exchanged)
    return View(p, y, w, at=None if plain else at, name=own.name, classes=own.classes, votes=own.votes, exact=exact)


class Exchanged:
    """The complements and log-probabilities of two views whose rows are exchanged."""

    def __init__(self, own: View, other: View, exchanged: Array) -> None:
        self.own, self.other, self.exchanged = own, other, exchanged

    @property
    def has_logs(self) -> bool:
        """Whether one of the views has."""
        return self.own.has_logs or self.other.has_logs

    def complement(self, p: Array) -> Array:
        """Those of the view that each row is taken from."""
        return np.where(self.exchanged, self.other.q, self.own.q)

    def logs(self, outcomes: int) -> Array:
        """Those of the view that each row is taken from."""
        return np.where(self.exchanged[:, None], self.other.log_P, self.own.log_P)
