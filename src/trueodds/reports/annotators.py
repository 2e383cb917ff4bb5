"""Compare the predictions with the votes of human annotators, overall and row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_distance import HumanDistance
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.lenses.view import View
from trueodds.reports.facts import Facts, Progress
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimates
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
TIES_TEXT = "of classes with equally many votes the first counts as the majority"


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
    """What the audit says under `people`, and its notes; None where there are no votes, or no rows.

    `facts` holds what was measured against the votes as shares; `repeated` says that rows of a weight are copies.
    """
    if isinstance(rows, Tally):
        text = "The rows were counted, not held, so the model is not set beside the votes of single rows; use mode='exact' (--mode exact)."
        return None, [Note("TN161", text)] if rows.counts.voted > 0 else []
    if rows.votes is None:
        return None, []
    progress(0.85, "setting the model beside the votes")
    interval_spec = IntervalSpec(level=level)
    estimands = [Estimand.of(ESTIMATORS.make(name, settings), Canonical(), rows) for name, settings in MEASURES]
    measured = estimates(rows, estimands, interval_spec, rng, lambda every: noise_floor_draws(rows, every, rng))
    majority, tied = _majority(rows)
    lens, ece = default_lens(rows), ESTIMATORS.make("ece", {})
    pair = [Estimand.of(ece, lens, majority), Estimand.of(ESTIMATORS.make("log_loss", {}), Canonical(), majority)]
    against = estimates(majority, pair, interval_spec, rng, lambda every: noise_floor_draws(majority, every, rng))
    shares = [facts.errors[0], next(score for score in facts.scores if score.estimator == "log_loss")]
    row_summary, perfect = select_furthest_rows(rows, alpha, rng, repeated=repeated)
    report = {
        "votes": _votes_per_row(rows),
        "measures": [estimate.to_dict() for estimate in measured],
        "majority": {
            "named": accuracy(majority),
            "tied": tied,
            "rule": TIES_TEXT,
            "ece_if_right": perfect,
            **_estimate_pair(against),
        },
        "distribution": _estimate_pair(shares),
        "rows": row_summary,
    }
    notes = [note for estimate in (*measured, *against) for note in estimate.notes]
    if tied:
        text = f"{tied:,} of {rows.n:,} rows have no single majority: {TIES_TEXT}."
        notes.append(Note("TN160", text))
    if repeated or rows.weight is not None:
        text = "Rows that differ most from people are numbered among the rows that have weight" + (
            ", each counted as often as its weight says." if repeated else "."
        )
        notes.append(Note("TN162", text))
    return report, notes


def _estimate_pair(both: list[Estimate]) -> dict[str, Any]:
    return {estimate.estimator: estimate.to_dict() for estimate in both}


def _votes_per_row(rows: Predictions) -> dict[str, Any] | None:
    """How many people were asked per row; None where only shares were given."""
    if rows.counts is None:
        return None
    counts = rows.counts[rows.w > 0]
    return {"median": float(np.median(counts)), "min": int(counts.min()), "max": int(counts.max())}


def _ballots(rows: Predictions) -> Array:
    """Votes as whole counts where they are known: shares may miss a tie by rounding."""
    assert rows.votes is not None
    return rows.votes if rows.counts is None else np.rint(rows.votes * rows.counts[:, None])


def _majority(rows: Predictions) -> tuple[Predictions, int]:
    """The same rows with the class of most votes as their label, and in how many several classes have most."""
    votes = _ballots(rows)
    several = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return rows.with_labels(votes.argmax(axis=1)), int((several & (rows.w > 0)).sum())


MAX_LISTED = 10  # rows, the farthest
TAIL = 0.05  # the share of draws that pass what is said to be the reach of a row's own votes
MAJORITIES = 99  # draws whose majority is looked at: of a mean more are not needed
SHARES_DRAWN = 10_000_000  # over all draws: 99 draws of 10,000 rows and 10 classes


def select_furthest_rows(
    rows: Predictions, alpha: float, rng: np.random.Generator, *, repeated: bool = False, draws: int | None = None
) -> tuple[dict[str, Any], float | None]:
    """The rows where model and people differ most, and the error against the majority of a model that is right.

    `repeated` says that equal neighbors are copies of one row, which is listed once. `draws` is how often votes are drawn
    again, by default 999 times or as often as the size allows. Without the numbers of votes nothing is known of their noise.
    """
    assert rows.votes is not None
    distances = _distances(rows, rows.votes)
    listed = _largest(distances, rows, repeated=repeated)
    drawn = None if rows.counts is None else _draw_votes(rows, listed, draws or _enough(rows, alpha), rng)
    limit = None if drawn is None else drawn.critical_value(drawn.max_distances, alpha)
    summary = {
        "listed": [_row(rows, int(i), float(distances[i]), at, drawn) for at, i in enumerate(listed)],
        "alpha": alpha,
        "limit": limit,
        "beyond": None if limit is None else int((distances[rows.w > 0] > limit + 1e-10 * abs(limit)).sum()),
        "n": int((rows.w > 0).sum()),
        "draws": None if drawn is None else drawn.count,
    }
    return summary, None if drawn is None else float(drawn.errors.mean())


@dataclass(frozen=True)
class VoteDraws:
    """What votes show that are drawn from the model's own probabilities, as many per row as there are.

    A row is judged by the largest distance of any row in each draw: beyond all but a share alpha of these, it is beyond
    what the noise of votes does to any row, however many are looked at (single-step max-T; as the law of a row's votes
    hangs on its own probabilities alone, at most a share alpha of audits names a row whose crowd thinks as the model
    says). Distances are not divided by their spread: where the model is sure a single stray vote would count most.
    """

    own: Array  # (count, listed) distances of the listed rows
    max_distances: Array  # (count,) the largest distance of any row
    errors: Array  # the default error against the majority of the votes, in the first draws

    @property
    def count(self) -> int:
        """How many times votes were drawn."""
        return len(self.max_distances)

    def critical_value(self, draws: Array, share: float) -> float:
        """What at most that share of draws passes: a value above it has p ≤ share."""
        return float(np.sort(draws)[self.count - math.floor(share * (1 + self.count) + 1e-9)])

    def pvalue(self, distance: float) -> float:
        """How often some row is as far off, over all rows."""
        reached = self.max_distances >= distance - 1e-10 * abs(distance)
        return float(1 + reached.sum()) / (1 + self.count)


def _enough(rows: Predictions, alpha: float) -> int:
    """As many draws as a p of alpha needs, and more while they cost little."""
    return max(math.ceil(1 / min(alpha, TAIL) - 1e-9) - 1, min(999, SHARES_DRAWN // (rows.n * rows.k) - 1))


def _draw_votes(rows: Predictions, listed: Array, draws: int, rng: np.random.Generator) -> VoteDraws:
    assert rows.counts is not None
    counted, ece, lens = rows.w > 0, ESTIMATORS.make("ece", {}), default_lens(rows)
    P = np.maximum(rows.P.astype(np.float64), 0.0)  # 1 − p may round below 0
    P /= P.sum(axis=1, keepdims=True)
    count = np.rint(rows.counts).astype(np.int64)
    own, max_distances, errors = np.empty((draws, len(listed))), np.empty(draws), np.empty(min(draws, MAJORITIES))
    for b in range(draws):
        votes = rng.multinomial(count, P)
        distances = _distances(rows, votes / count[:, None])
        own[b], max_distances[b] = distances[listed], distances[counted].max()
        if b < MAJORITIES:
            (view,) = lens.views(rows.with_labels(votes.argmax(axis=1)))
            errors[b] = ece.value(view)
    return VoteDraws(own, max_distances, errors)


def _distances(rows: Predictions, shares: Array) -> Array:
    """Squared distances of each row from the crowd behind its votes, their noise taken off where it is known."""
    return HumanDistance().rows(View(rows.P, shares, rows.weight, votes=rows.counts))


def _largest(distances: Array, rows: Predictions, *, repeated: bool) -> Array:
    """The numbers of the rows that are farthest off, the farthest first, of equal ones the first."""
    order = np.argsort(-distances, kind="stable")
    order = order[rows.w[order] > 0]
    if repeated:
        before = np.maximum(order - 1, 0)
        same = (rows.P[order] == rows.P[before]).all(axis=1) & (rows.Y[order] == rows.Y[before]).all(axis=1)
        if rows.counts is not None:  # 1 of 2 and 5 of 10 are equal shares of two rows
            same &= rows.counts[order] == rows.counts[before]
        order = order[(order == 0) | ~same]
    return order[:MAX_LISTED]


def _row(rows: Predictions, i: int, distance: float, at: int, drawn: VoteDraws | None) -> dict[str, Any]:
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
        "critical_value": None if drawn is None else drawn.critical_value(drawn.own[:, at], TAIL),
        "pvalue": None if drawn is None else drawn.pvalue(distance),
    }
