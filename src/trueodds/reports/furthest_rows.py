"""Select the rows whose predictions are furthest from the votes of their annotators, and adjust their p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import HumanDistance
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View

MAX_LISTED_ROWS = 10  # number of rows listed, those with the largest distances
POINTWISE_LEVEL = 0.05  # level of the critical value of a single row
MAX_MAJORITY_DRAWS = 99  # draws whose majority vote is computed, because a mean needs fewer draws than a p-value
MAX_DRAWN_SHARES = 10_000_000  # limit of draws × rows × classes, which is 99 draws of 10,000 rows and 10 classes


def select_furthest_rows(
    rows: Predictions,
    alpha: float,
    rng: np.random.Generator,
    *,
    has_repeated_rows: bool = False,
    n_draws: int | None = None,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Select the rows with the largest distances between prediction and votes, and simulate votes for their p-values.

    Parameters
    ----------
    rows : Predictions
        Rows with votes. Without vote counts their noise is unknown, and nothing is simulated.
    alpha : float
        Significance level of all rows together.
    rng : numpy.random.Generator
        Random generator of the votes.
    has_repeated_rows : bool, default=False
        Whether equal neighbors are copies of one row, which is listed once.
    n_draws : int, optional
        Number of simulations of the votes, by default 999 or as many as the size allows.

    Returns
    -------
    dict
        The listed rows, the critical value (`limit`) of their distances, and the number of rows beyond it.
    dict of str to float
        Expected `ece` and `log_loss` against the majority of the votes, if these are drawn from the predicted
        probabilities; empty without vote counts.
    """
    assert rows.votes is not None
    distances = _vote_distances(rows, rows.votes)
    furthest = _select_largest(distances, rows, has_repeated_rows=has_repeated_rows)
    null_distribution: VoteNullDistribution | None = None
    critical_value: float | None = None
    n_beyond: int | None = None
    expected_errors: dict[str, float] = {}
    if rows.counts is not None:
        null_distribution = _draw_votes(rows, furthest, n_draws or _n_vote_draws(rows, alpha), rng)
        critical_value = null_distribution.critical_value(null_distribution.max_distances, alpha)
        n_beyond = int((distances[rows.w > 0] > critical_value + 1e-10 * abs(critical_value)).sum())
        expected_errors = {name: float(draws.mean()) for name, draws in null_distribution.errors.items()}
    summary = {
        "listed": [
            _describe_row(rows, int(i), float(distances[i]), position, null_distribution)
            for position, i in enumerate(furthest)
        ],
        "alpha": alpha,
        "limit": critical_value,
        "beyond": n_beyond,
        "n": int((rows.w > 0).sum()),
        "draws": None if null_distribution is None else null_distribution.n_draws,
    }
    return summary, expected_errors


@dataclass(frozen=True)
class VoteNullDistribution:
    """Null distribution of the distances: votes drawn from the predicted probabilities, as many per row as observed.

    The p-value of a row compares its distance with the largest distance of any row in each draw (single-step max-T), so
    it is adjusted for the number of rows. The votes of a row depend only on its own probabilities, so the probability
    that a row whose votes follow its probabilities is significant at level alpha is at most alpha. Distances are not
    divided by their standard deviation, because a single vote would then dominate where the model is confident.
    """

    listed_distances: Array  # (draws, listed rows) distances of the listed rows
    max_distances: Array  # (draws,) the largest distance of any row
    errors: Mapping[str, Array]  # "ece" and "log_loss" against the majority of the drawn votes, (draws,)

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.max_distances)

    def critical_value(self, draws: Array, level: float) -> float:
        """Return the critical value at this level: a larger distance has a p-value of at most `level`.

        `draws` (draws,) are the simulated distances of one row, or the largest ones of all rows.
        """
        return float(np.sort(draws)[self.n_draws - math.floor(level * (1 + self.n_draws) + 1e-9)])

    def pvalue(self, distance: float) -> float:
        """Return the adjusted p-value: the share of draws in which the largest distance of any row is at least this."""
        is_as_large = self.max_distances >= distance - 1e-10 * abs(distance)  # equal up to rounding counts
        return float(1 + is_as_large.sum()) / (1 + self.n_draws)


def _n_vote_draws(rows: Predictions, alpha: float) -> int:
    """Return the number of draws: up to 999 as the size allows, but as many as a p-value of alpha requires."""
    required = math.ceil(1 / min(alpha, POINTWISE_LEVEL) - 1e-9) - 1
    return max(required, min(999, MAX_DRAWN_SHARES // (rows.n * rows.k) - 1))


def _draw_votes(rows: Predictions, furthest: Array, n_draws: int, rng: np.random.Generator) -> VoteNullDistribution:
    """Draw the votes of all rows `n_draws` times from their predicted probabilities, as many per row as observed.

    `furthest` are the indices of the listed rows.
    """
    assert rows.counts is not None
    has_weight, ece, lens = rows.w > 0, ESTIMATORS.make("ece", {}), default_lens(rows)
    P = np.maximum(rows.P.astype(np.float64), 0.0)  # 1 − p may round below 0
    P /= P.sum(axis=1, keepdims=True)
    n_votes = np.rint(rows.counts).astype(np.int64)
    listed_distances, max_distances = np.empty((n_draws, len(furthest))), np.empty(n_draws)
    errors = {name: np.empty(min(n_draws, MAX_MAJORITY_DRAWS)) for name in ("ece", "log_loss")}
    w = rows.w[has_weight]
    for b in range(n_draws):
        votes = rng.multinomial(n_votes, P)
        distances = _vote_distances(rows, votes / n_votes[:, None])
        listed_distances[b], max_distances[b] = distances[furthest], distances[has_weight].max()
        if b < MAX_MAJORITY_DRAWS:
            majority = votes.argmax(axis=1)
            (view,) = lens.views(rows.with_labels(majority))
            errors["ece"][b] = ece.value(view)
            errors["log_loss"][b] = float(w @ -np.log(P[has_weight, majority[has_weight]]) / w.sum())
    return VoteNullDistribution(listed_distances, max_distances, errors)


def _vote_distances(rows: Predictions, shares: Array) -> Array:
    """Return the squared distance (n,) of each row from vote shares (n, K), minus vote noise if counts are known."""
    return HumanDistance().row_scores(View(rows.P, shares, rows.weight, votes=rows.counts))


def _select_largest(distances: Array, rows: Predictions, *, has_repeated_rows: bool) -> Array:
    """Return the indices of the rows with the largest distances, in decreasing order; ties by row number."""
    order = np.argsort(-distances, kind="stable")
    order = order[rows.w[order] > 0]
    if has_repeated_rows:  # list only the first of equal neighbors
        neighbor = np.maximum(order - 1, 0)
        is_copy = (rows.P[order] == rows.P[neighbor]).all(axis=1) & (rows.Y[order] == rows.Y[neighbor]).all(axis=1)
        if rows.counts is not None:  # 1 of 2 and 5 of 10 are equal shares of different rows
            is_copy &= rows.counts[order] == rows.counts[neighbor]
        order = order[(order == 0) | ~is_copy]
    return order[:MAX_LISTED_ROWS]


def _describe_row(
    rows: Predictions, i: int, distance: float, position: int, null_distribution: VoteNullDistribution | None
) -> dict[str, Any]:
    """Return row i as a JSON object; `position` is its place among the listed rows."""
    predicted, voted = rows.P[i], rows.Y[i]
    model_class, majority_class = int(predicted.argmax()), int(voted.argmax())
    # `model` is the most probable class and `predicted` its probability; `people` is the class with the most votes and
    # `voted` its share of the votes.
    return {
        "row": i,
        "model": str(rows.classes[model_class]),
        "predicted": float(predicted[model_class]),
        "people": str(rows.classes[majority_class]),
        "voted": float(voted[majority_class]),
        "votes": None if rows.counts is None else int(rows.counts[i]),
        "distance": distance,
        "critical_value": None
        if null_distribution is None
        else null_distribution.critical_value(null_distribution.listed_distances[:, position], POINTWISE_LEVEL),
        "pvalue": None if null_distribution is None else null_distribution.pvalue(distance),
    }
