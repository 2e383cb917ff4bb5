"""Compare the predictions with the votes of human annotators, overall and row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_distance import HumanDistance
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.lenses.view import View
from trueodds.reports.facts import Facts
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws
from trueodds.tallies.tally import Tally

MEASURES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("distce", {}),
    ("human_distance", {}),
    ("entce", {}),
    ("entce", {"signed": True}),
    ("rankcs", {}),
)
TIES_TEXT = "if several classes have the most votes, the first of them counts as the majority"


def compare_with_votes(
    rows: Predictions | Tally,
    facts: Facts,
    alpha: float,
    level: float,
    rng: np.random.Generator,
    progress: Progress,
    *,
    repeated: bool = False,
) -> tuple[dict[str, Any] | None, list[Note]]:
    """The section `people` of an audit, and its notes; None if there are no votes or no rows.

    `facts` holds the estimates against the vote shares. `repeated` means that a row of weight w stands w times.
    """
    if isinstance(rows, Tally):
        text = (
            "A tally holds no rows, so the predictions are not compared with the votes of each row; use mode='exact'"
            " (--mode exact)."
        )
        return None, [Note("TN161", text)] if rows.counts.voted > 0 else []
    if rows.votes is None:
        return None, []
    progress(0.85, "comparing predictions with votes")
    interval_spec = IntervalSpec(level=level)
    estimands = [
        Estimand.from_predictions(ESTIMATORS.make(name, settings), Canonical(), rows) for name, settings in MEASURES
    ]
    measured = estimate_all(rows, estimands, interval_spec, rng, lambda every: noise_floor_draws(rows, every, rng))
    majority, tied = _label_by_majority(rows)
    lens, ece = default_lens(rows), ESTIMATORS.make("ece", {})
    pair = [
        Estimand.from_predictions(ece, lens, majority),
        Estimand.from_predictions(ESTIMATORS.make("log_loss", {}), Canonical(), majority),
    ]
    against = estimate_all(majority, pair, interval_spec, rng, lambda every: noise_floor_draws(majority, every, rng))
    row_summary, expected = select_furthest_rows(rows, alpha, rng, repeated=repeated)
    # A majority is not drawn from the predicted probabilities, so the noise floor is that of drawn votes.
    against = [replace(estimate, noise_floor=expected.get(estimate.estimator), debiased=None) for estimate in against]
    shares = [facts.errors[0], next(score for score in facts.scores if score.estimator == "log_loss")]
    report = {
        "votes": _votes_per_row(rows),
        "measures": [estimate.to_dict() for estimate in measured],
        "majority": {
            "named": accuracy(majority),
            "tied": tied,
            "rule": TIES_TEXT,
            "ece_if_right": expected.get("ece"),
            **_estimate_pair(against),
        },
        "distribution": _estimate_pair(shares),
        "rows": row_summary,
    }
    notes = [note for estimate in (*measured, *against) for note in estimate.notes]
    if tied:
        text = f"{tied:,} of {rows.n:,} rows have a tie for the majority: {TIES_TEXT}."
        notes.append(Note("TN160", text))
    if repeated or rows.weight is not None:
        text = "Listed rows are numbered among the rows of positive weight" + (
            ", with each row repeated as often as its weight." if repeated else "."
        )
        notes.append(Note("TN162", text))
    return report, notes


def _estimate_pair(both: list[Estimate]) -> dict[str, Any]:
    return {estimate.estimator: estimate.to_dict() for estimate in both}


def _votes_per_row(rows: Predictions) -> dict[str, Any] | None:
    """The number of votes per row; None if only shares were given."""
    if rows.counts is None:
        return None
    counts = rows.counts[rows.w > 0]
    return {"median": float(np.median(counts)), "min": int(counts.min()), "max": int(counts.max())}


def _vote_counts(rows: Predictions) -> Array:
    """Votes as integer counts if they are known, because rounded shares may miss a tie."""
    assert rows.votes is not None
    return rows.votes if rows.counts is None else np.rint(rows.votes * rows.counts[:, None])


def _label_by_majority(rows: Predictions) -> tuple[Predictions, int]:
    """Return the rows labeled with the class that has the most votes, and the number of rows with a tie."""
    votes = _vote_counts(rows)
    several = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return rows.with_labels(votes.argmax(axis=1)), int((several & (rows.w > 0)).sum())


MAX_LISTED = 10  # number of rows listed, those with the largest distances
ROW_LIMIT_LEVEL = 0.05  # level of the critical value of a single row
MAX_MAJORITY_DRAWS = 99  # draws whose majority is computed; a mean needs no more
MAX_DRAWN_SHARES = 10_000_000  # limit over all draws: 99 draws of 10,000 rows and 10 classes


def select_furthest_rows(
    rows: Predictions, alpha: float, rng: np.random.Generator, *, repeated: bool = False, draws: int | None = None
) -> tuple[dict[str, Any], dict[str, float]]:
    """The rows with the largest distances between prediction and votes, and the expected errors of a calibrated model.

    The errors are those against the majority of the votes, if these are drawn from the predicted probabilities: `ece`
    and `log_loss`; empty without vote counts.

    `repeated` means that equal neighbors are copies of one row, which is listed once. `draws` is the number of
    simulations of the votes, by default 999 or as many as the size allows. Without vote counts their noise is unknown.
    """
    assert rows.votes is not None
    distances = _distances(rows, rows.votes)
    listed = _largest_distances(distances, rows, repeated=repeated)
    drawn = None if rows.counts is None else _draw_votes(rows, listed, draws or _n_vote_draws(rows, alpha), rng)
    limit = None if drawn is None else drawn.critical_value(drawn.max_distances, alpha)
    summary = {
        "listed": [_describe_row(rows, int(i), float(distances[i]), at, drawn) for at, i in enumerate(listed)],
        "alpha": alpha,
        "limit": limit,
        "beyond": None if limit is None else int((distances[rows.w > 0] > limit + 1e-10 * abs(limit)).sum()),
        "n": int((rows.w > 0).sum()),
        "draws": None if drawn is None else drawn.count,
    }
    expected = {} if drawn is None else {name: float(draws.mean()) for name, draws in drawn.errors.items()}
    return summary, expected


@dataclass(frozen=True)
class VoteDraws:
    """Null distribution of the distances: votes drawn from the predicted probabilities, as many per row as observed.

    The p-value of a row compares its distance with the largest distance of any row in each draw (single-step max-T), so
    it is adjusted for the number of rows. The votes of a row depend only on its own probabilities, so the probability
    that a row whose votes follow its probabilities is significant at level alpha is at most alpha. Distances are not
    divided by their standard deviation, because a single vote would then dominate where the model is confident.
    """

    listed_distances: Array  # (draws, listed) distances of the listed rows
    max_distances: Array  # (draws,) the largest distance of any row
    errors: Mapping[str, Array]  # ECE and log loss against the majority of the votes, in the first draws

    @property
    def count(self) -> int:
        """The number of draws."""
        return len(self.max_distances)

    def critical_value(self, draws: Array, share: float) -> float:
        """The value that at most that share of draws exceeds; a larger one has a p-value of at most `share`."""
        return float(np.sort(draws)[self.count - math.floor(share * (1 + self.count) + 1e-9)])

    def pvalue(self, distance: float) -> float:
        """The adjusted p-value: the share of draws in which the largest distance of any row is at least this one."""
        reached = self.max_distances >= distance - 1e-10 * abs(distance)
        return float(1 + reached.sum()) / (1 + self.count)


def _n_vote_draws(rows: Predictions, alpha: float) -> int:
    """The number of draws: what a p-value of alpha requires, and up to 999 if the size allows."""
    return max(
        math.ceil(1 / min(alpha, ROW_LIMIT_LEVEL) - 1e-9) - 1, min(999, MAX_DRAWN_SHARES // (rows.n * rows.k) - 1)
    )


def _draw_votes(rows: Predictions, listed: Array, draws: int, rng: np.random.Generator) -> VoteDraws:
    assert rows.counts is not None
    counted, ece, lens = rows.w > 0, ESTIMATORS.make("ece", {}), default_lens(rows)
    P = np.maximum(rows.P.astype(np.float64), 0.0)  # 1 − p may round below 0
    P /= P.sum(axis=1, keepdims=True)
    count = np.rint(rows.counts).astype(np.int64)
    listed_distances, max_distances = np.empty((draws, len(listed))), np.empty(draws)
    errors = {name: np.empty(min(draws, MAX_MAJORITY_DRAWS)) for name in ("ece", "log_loss")}
    w = rows.w[counted]
    for b in range(draws):
        votes = rng.multinomial(count, P)
        distances = _distances(rows, votes / count[:, None])
        listed_distances[b], max_distances[b] = distances[listed], distances[counted].max()
        if b < MAX_MAJORITY_DRAWS:
            majority = votes.argmax(axis=1)
            (view,) = lens.views(rows.with_labels(majority))
            errors["ece"][b] = ece.value(view)
            errors["log_loss"][b] = float(w @ -np.log(P[counted, majority[counted]]) / w.sum())
    return VoteDraws(listed_distances, max_distances, errors)


def _distances(rows: Predictions, shares: Array) -> Array:
    """Squared distance of each row from the distribution of its votes, corrected for vote noise where it is known."""
    return HumanDistance().row_scores(View(rows.P, shares, rows.weight, votes=rows.counts))


def _largest_distances(distances: Array, rows: Predictions, *, repeated: bool) -> Array:
    """The indices of the rows with the largest distances, in decreasing order; ties by row number."""
    order = np.argsort(-distances, kind="stable")
    order = order[rows.w[order] > 0]
    if repeated:
        before = np.maximum(order - 1, 0)
        same = (rows.P[order] == rows.P[before]).all(axis=1) & (rows.Y[order] == rows.Y[before]).all(axis=1)
        if rows.counts is not None:  # 1 of 2 and 5 of 10 are equal shares of different rows
            same &= rows.counts[order] == rows.counts[before]
        order = order[(order == 0) | ~same]
    return order[:MAX_LISTED]


def _describe_row(rows: Predictions, i: int, distance: float, at: int, drawn: VoteDraws | None) -> dict[str, Any]:
    predicted, voted = rows.P[i], rows.Y[i]
    model, people = int(predicted.argmax()), int(voted.argmax())
    return {
        "row": i,
        "model": str(rows.classes[model]),
        "predicted": float(predicted[model]),
        "people": str(rows.classes[people]),
        "voted": float(voted[people]),
        "votes": None if rows.counts is None else int(rows.counts[i]),
        "distance": distance,
        "critical_value": None
        if drawn is None
        else drawn.critical_value(drawn.listed_distances[:, at], ROW_LIMIT_LEVEL),
        "pvalue": None if drawn is None else drawn.pvalue(distance),
    }
