"""Compare the predictions with the votes of human annotators, overall and row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.progress import Progress
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.reports.audit_results import AuditResults
from trueodds.reports.furthest_rows import select_furthest_rows
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws
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
    results: AuditResults,
    alpha: float,
    level: float,
    rng: np.random.Generator,
    progress: Progress,
    *,
    has_repeated_rows: bool = False,
) -> tuple[dict[str, Any] | None, list[Note]]:
    """Compare the predictions with the votes of annotators, as the section `people` of an audit.

    Parameters
    ----------
    rows : Predictions or Tally
        The audited data.
    results : AuditResults
        The results of the audit, whose ECE and log loss are those against the vote shares.
    alpha : float
        Significance level of the tests of all rows together.
    level : float
        Confidence level of the intervals.
    rng : numpy.random.Generator
        Random generator of bootstrap resamples and drawn votes.
    progress : Progress
        Called with the fraction of the audit that is done.
    has_repeated_rows : bool, default=False
        Whether a row of weight w stands for w observed rows.

    Returns
    -------
    dict or None
        The section as a JSON object; None if there are no votes or no rows.
    list of Note
        The notes on the comparison.
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
    """Return the estimates as JSON objects, by the name of the estimator."""
    return {estimate.estimator: estimate.to_dict() for estimate in estimates}


def _summarize_vote_counts(rows: Predictions) -> dict[str, Any] | None:
    """Return the median, smallest and largest number of votes per row; None if only shares were given."""
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
