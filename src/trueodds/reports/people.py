"""Does the model doubt as people do? Held against their votes, against their majority, and row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens import Canonical, accuracy, default_lens
from trueodds.reports.facts import Facts, Progress
from trueodds.reports.people_rows import furthest
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimates
from trueodds.resampling.floors import floors
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.tallies.tally import Tally

MEASURES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("distce", {}),
    ("human_distance", {}),
    ("entce", {}),
    ("entce", {"signed": True}),
    ("rankcs", {}),
)
TIES = "of classes with equally many votes the first counts as the majority"


def beside_people(
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
    measured = estimates(rows, estimands, interval_spec, rng, lambda every: floors(rows, every, rng))
    majority, tied = _majority(rows)
    lens, ece = default_lens(rows), ESTIMATORS.make("ece", {})
    pair = [Estimand.of(ece, lens, majority), Estimand.of(ESTIMATORS.make("log_loss", {}), Canonical(), majority)]
    against = estimates(majority, pair, interval_spec, rng, lambda every: floors(majority, every, rng))
    shares = [facts.errors[0], next(score for score in facts.scores if score.estimator == "log_loss")]
    row_summary, perfect = furthest(rows, alpha, rng, repeated=repeated)
    report = {
        "votes": _votes_per_row(rows),
        "measures": [estimate.to_dict() for estimate in measured],
        "majority": {
            "named": accuracy(majority),
            "tied": tied,
            "rule": TIES,
            "ece_if_right": perfect,
            **_pair(against),
        },
        "distribution": _pair(shares),
        "rows": row_summary,
    }
    notes = [note for estimate in (*measured, *against) for note in estimate.notes]
    if tied:
        text = f"{tied:,} of {rows.n:,} rows have no single majority: {TIES}."
        notes.append(Note("TN160", text))
    if repeated or rows.weight is not None:
        text = "Rows that differ most from people are numbered among the rows that have weight" + (
            ", each counted as often as its weight says." if repeated else "."
        )
        notes.append(Note("TN162", text))
    return report, notes


def _pair(both: list[Estimate]) -> dict[str, Any]:
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
