"""Compare the predictions with the votes of human annotators, overall and row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import HumanDistance
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.lenses.view import View
from trueodds.reports.analysis import Analysis
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.null_distribution import noise_floor_draws
from trueodds.tallies.tally import Tally

# Estimators of the distance between predictions and votes, with their settings.
VOTE_MEASURES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("distce", {}),
    ("human_distance", {}),
    ("entce", {}),
    ("entce", {"signed": True}),
    ("rankcs", {}),
)
TIES_TEXT = "if several classes have the most votes, the first of them counts as the majority"


def compare_with_votes(
    rows: Predictions | Tally,
    results: Analysis,
    alpha: float,
    level: float,
    rng: np.random.Generator,
    progress: Progress,
    *,
    has_repeated_rows: bool = False,
) -> tuple[dict[str, Any] | None, list[Note]]:
    """Compare the predictions with the votes of annotators, as the section `people` of an audit, and its notes.

    The section is None if there are no votes or no rows. The results of the audit have the ECE and the log loss against
    the vote shares. `alpha` is the level of the tests of all rows together, and `level` that of the intervals;
    `has_repeated_rows` says whether a row of weight w stands for w observed rows.
    """
    if isinstance(rows, Tally):
        text = (
            "A tally holds no rows, so the predictions are not compared with the votes of each row; use"
            " ⟨mode='exact' (--mode exact)⟩."
        )
        return None, [Note("TN161", text)] if rows.counts.voted > 0 else []
    if rows.votes is None:
        return None, []
    progress(0.85, "comparing predictions with votes")
    interval_spec = IntervalSpec(level=level)
    estimands = [
        Estimand.from_predictions(ESTIMATORS.make(name, settings), Canonical(), rows)
        for name, settings in VOTE_MEASURES
    ]
    vote_estimates = estimate_all(
        rows, estimands, interval_spec, rng, lambda estimands: noise_floor_draws(rows, estimands, rng)
    )
    majority, n_tied = _label_by_majority(rows)
    lens, ece = default_lens(rows), ESTIMATORS.make("ece", {})
    majority_estimands = [
        Estimand.from_predictions(ece, lens, majority),
        Estimand.from_predictions(ESTIMATORS.make("log_loss", {}), Canonical(), majority),
    ]
    majority_estimates = estimate_all(
        majority, majority_estimands, interval_spec, rng, lambda estimands: noise_floor_draws(majority, estimands, rng)
    )
    furthest_rows, expected_majority_errors = select_furthest_rows(
        rows, alpha, rng, has_repeated_rows=has_repeated_rows
    )
    # A majority is not drawn from the predicted probabilities, so the noise floor is that of drawn votes.
    majority_estimates = [
        replace(estimate, noise_floor=expected_majority_errors.get(estimate.estimator), debiased=None)
        for estimate in majority_estimates
    ]
    default_lens_ece = results.errors[0]  # the default lens comes first
    share_estimates = [default_lens_ece, next(score for score in results.scores if score.estimator == "log_loss")]
    report = {
        "votes": _summarize_vote_counts(rows),
        "measures": [estimate.to_dict() for estimate in vote_estimates],
        "majority": {
            # `accuracy` and `named`: share of rows whose predicted class is the majority; `ece_if_right`: expected ECE
            # against the majority if votes are drawn from the predicted probabilities.
            "accuracy": accuracy(majority),
            "named": accuracy(majority),
            "tied": n_tied,
            "rule": TIES_TEXT,
            "ece_if_right": expected_majority_errors.get("ece"),
            **_estimates_by_name(majority_estimates),
        },
        "distribution": _estimates_by_name(share_estimates),
        "rows": furthest_rows,
    }
    notes = [note for estimate in (*vote_estimates, *majority_estimates) for note in estimate.notes]
    if n_tied:
        text = f"{n_tied:,} of {rows.n:,} rows have a tie for the majority: {TIES_TEXT}."
        notes.append(Note("TN160", text))
    if has_repeated_rows or rows.weight is not None:
        text = "Listed rows are numbered among the rows of positive weight" + (
            ", with each row repeated as often as its weight." if has_repeated_rows else "."
        )
        notes.append(Note("TN162", text))
    return report, notes


def _estimates_by_name(estimates: list[Estimate]) -> dict[str, Any]:
    return {estimate.estimator: estimate.to_dict() for estimate in estimates}


def _summarize_vote_counts(rows: Predictions) -> dict[str, Any] | None:
    if rows.counts is None:
        return None
    counts = rows.counts[rows.w > 0]
    return {"median": float(np.median(counts)), "min": int(counts.min()), "max": int(counts.max())}


def _votes_per_class(rows: Predictions) -> Array:
    """Return the number of votes for each class (n, K), or the vote shares (n, K) if the numbers are unknown.

    Shares are rounded, so that equal numbers may have different shares.
    """
    assert rows.votes is not None
    return rows.votes if rows.counts is None else np.rint(rows.votes * rows.counts[:, None])


def _label_by_majority(rows: Predictions) -> tuple[Predictions, int]:
    """Return the rows labeled with the class that has the most votes, and the number of rows with a tie."""
    votes = _votes_per_class(rows)
    is_tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return rows.with_labels(votes.argmax(axis=1)), int((is_tied & (rows.w > 0)).sum())


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

    Returns the listed rows with the critical value (`limit`) of their distances and the number of rows beyond it, and
    the expected `ece` and `log_loss` against the majority of the votes if these are drawn from the predicted
    probabilities. Without vote counts their noise is unknown, and nothing is simulated. If `has_repeated_rows`, equal
    neighbors are copies of one row, which is listed once. `n_draws` is by default 999, or as many as the size allows.
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
            errors["log_loss"][b] = float(weighted_sum(w, -np.log(P[has_weight, majority[has_weight]])) / w.sum())
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
