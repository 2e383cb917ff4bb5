"""Scores of predictions against gold labels, majority labels and the votes of annotators."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import DistributionError, EntropyError, RankAgreement
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import noise_floor_draws
from trueodds_studies.human.crowd_predictions import TARGETS, CrowdPredictions

TARGET_SCORES = (("ECE", "ece"), ("log loss", "log_loss"), ("Brier", "brier"))  # column and estimator
VOTE_MEASURES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("EntCE", "entce", {}),
    ("EntCE, corrected", "entce", {"correction": "miller-madow"}),
    ("signed EntCE", "entce", {"signed": True}),
    ("signed EntCE, corrected", "entce", {"signed": True, "correction": "miller-madow"}),
    ("DistCE", "distce", {}),
    ("RankCS", "rankcs", {}),
    ("human_distance", "human_distance", {}),
)
"""Column, estimator and settings of each measure of votes."""
MEASURES_OF_FEWER_VOTES = ("DistCE", "RankCS", "human_distance")  # by column of VOTE_MEASURES
VOTE_COUNTS = (2, 5, 10, 20)  # numbers of votes per row with which models are also evaluated
MAX_ENTROPY_GAP = 0.05  # nats; entropies that differ by less are regarded as equal
MIN_DISTANCE = 0.2  # total variation from which on distributions are regarded as different


def score_targets(predictions: CrowdPredictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per target: confidence, accuracy, and ECE, log loss and Brier score with interval and noise floor."""
    rows = []
    for target in TARGETS:
        preds = predictions.with_target(target)
        row: dict[str, Any] = {"target": target, "n": preds.n}
        predicted = preds.P.argmax(axis=1)
        accuracy = preds.Y[np.arange(preds.n), predicted]  # with votes, the share of them for the predicted class
        row["confidence"] = float(preds.P.max(axis=1).mean())
        row["accuracy"] = float(accuracy.mean())
        for label, name in TARGET_SCORES:
            lens = "confidence" if name == "ece" else "canonical"
            row |= _estimate_row(label, measure(preds, name, lens=lens, resamples=resamples, rng=seed))
        rows.append(row)
    return rows


def score_votes(predictions: CrowdPredictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per measure of votes: value, interval, noise floor, and for `human_distance` its parts."""
    preds = predictions.with_target("votes")
    rows = []
    for label, name, settings in VOTE_MEASURES:
        answer = measure(preds, name, resamples=resamples, rng=seed, **settings)
        row = {"measure": label, **_estimate_row("value", answer)}
        row |= {f"{part} part": answer.parts[part] for part in ("order", "size", "vote_noise") if part in answer.parts}
        rows.append(row)
    return rows


def score_crowd(votes: Array, seed: int) -> dict[str, float]:
    """The measures of vote shares against as many new votes drawn from them: the best possible result of a model."""
    perfect = Predictions(votes, votes / votes.sum(axis=1, keepdims=True))
    estimands = [
        Estimand.from_predictions(ESTIMATORS.make(name, settings), as_lens("canonical"), perfect)
        for _, name, settings in VOTE_MEASURES
    ]
    null_draws = noise_floor_draws(
        perfect, estimands, np.random.default_rng(seed)
    )  # the same new votes for all measures
    expected = [
        estimand.estimator.expected_if_calibrated(estimand.views[0]) if draws is None else draws.mean()
        for estimand, draws in zip(estimands, null_draws, strict=True)
    ]
    return {
        label: float(value) for (label, _, _), value in zip(VOTE_MEASURES, expected, strict=True) if value is not None
    }


def score_fewer_votes(predictions: CrowdPredictions, seed: int) -> list[dict[str, Any]]:
    """One row per number of votes, drawn without replacement: three measures of votes, and the squared distance."""
    rows = []
    min_votes = int(predictions.votes.sum(axis=1).min())
    for m in (*(count for count in VOTE_COUNTS if count < min_votes), None):
        votes = predictions.votes if m is None else draw_votes(predictions.votes, m, np.random.default_rng([seed, m]))
        preds = Predictions(votes, predictions.P)
        squared = float(np.square(preds.P - preds.Y).sum(axis=1).mean())
        row: dict[str, Any] = {"votes": "all" if m is None else str(m)}
        for label, name, settings in VOTE_MEASURES:
            if label in MEASURES_OF_FEWER_VOTES:
                row[label] = measure(preds, name, interval=None, **settings).value
        rows.append(row | {"squared distance": squared})
    return rows


def draw_votes(votes: Array, m: int, rng: np.random.Generator) -> Array:
    """Draw m votes of each row without replacement.

    >>> draw_votes(np.array([[5, 0], [2, 2]]), 4, np.random.default_rng(0)).tolist()
    [[4, 0], [2, 2]]
    """
    return np.stack([rng.multivariate_hypergeometric(row, m) for row in votes])


def shares_of_claims(predictions: CrowdPredictions) -> dict[str, float]:
    """Shares of all rows with equal entropy or equal order of the classes, and of those among them that still differ.

    They differ by a distribution farther from the votes than `MIN_DISTANCE`, or by another most probable class. By
    Pavlovic (2025), section 3.3.3, such rows are a problem of EntCE and RankCS.
    """
    (view,) = as_lens("canonical").views(predictions.with_target("votes"))
    distant = DistributionError().row_scores(view) > MIN_DISTANCE
    equal_entropy = np.abs(EntropyError(signed=True).row_scores(view)) < MAX_ENTROPY_GAP
    equal_order = RankAgreement().row_scores(view) == 1
    other_class = predictions.P.argmax(axis=1) != predictions.votes.argmax(axis=1)
    return {
        "entropy alike": float(equal_entropy.mean()),
        "far though entropy alike": float((distant & equal_entropy).mean()),
        "another class though entropy alike": float((other_class & equal_entropy).mean()),
        "order alike": float(equal_order.mean()),
        "far though order alike": float((distant & equal_order).mean()),
    }


def _estimate_row(prefix: str, answer: Estimate) -> dict[str, Any]:
    """Value, limits of the interval and noise floor of an estimate, as columns that begin with a prefix."""
    row: dict[str, Any] = {prefix: answer.value}
    if answer.interval is not None:
        row |= {f"{prefix} low": answer.interval.low, f"{prefix} high": answer.interval.high}
    return row | {f"{prefix} noise floor": answer.noise_floor}
