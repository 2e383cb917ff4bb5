"""What is there to say of one model beside its crowd? Against three targets, item by item, and with fewer votes."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.verbs import measure
from trueodds.core.results import Estimate
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human import DistributionError, EntropyError, RankAgreement
from trueodds.lenses.lens import as_lens
from trueodds.resampling.estimand import Estimand as Questions
from trueodds.resampling.floors import floors
from trueodds_studies.people.crowds import TARGETS, CrowdPredictions

SCORES = (("ECE", "ece"), ("log loss", "log_loss"), ("Brier", "brier"))
HUMAN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("EntCE", "entce", {}),
    ("EntCE, corrected", "entce", {"correction": "miller-madow"}),
    ("signed EntCE", "entce", {"signed": True}),
    ("signed EntCE, corrected", "entce", {"signed": True, "correction": "miller-madow"}),
    ("DistCE", "distce", {}),
    ("RankCS", "rankcs", {}),
    ("human_distance", "human_distance", {}),
)
VOTES = (2, 5, 10, 20)
ALIKE = 0.05  # nats: entropies that differ by less are called alike
MIN_DISTANCE = 0.2  # of total variation


def targets(one: CrowdPredictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """ECE of the confidence, log loss and Brier score against gold, majority and all votes."""
    rows = []
    for target in TARGETS:
        preds = one.against(target)
        row: dict[str, Any] = {"against": target, "n": preds.n}
        top = preds.P.argmax(axis=1)
        right = preds.Y[np.arange(preds.n), top]
        row["confidence"] = float(preds.P.max(axis=1).mean())
        row["right"] = float(right.mean())
        for label, name in SCORES:
            lens = "confidence" if name == "ece" else "canonical"
            row |= _estimate_row(label, measure(preds, name, lens=lens, resamples=resamples, rng=seed))
        rows.append(row)
    return rows


def people(one: CrowdPredictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """Every measure of votes: its value, interval and floor; of a distance also its parts."""
    preds = one.against("votes")
    rows = []
    for label, name, settings in HUMAN:
        answer = measure(preds, name, resamples=resamples, rng=seed, **settings)
        row = {"measure": label, **_estimate_row("value", answer)}
        row |= {f"{part} part": answer.parts[part] for part in ("order", "size", "vote_noise") if part in answer.parts}
        rows.append(row)
    return rows


def itself(votes: Array, seed: int) -> dict[str, float]:
    """What the crowd's own shares score against as many fresh votes: the best that votes of this number let one see."""
    perfect = Predictions(votes, votes / votes.sum(axis=1, keepdims=True))
    every = [
        Questions.of(ESTIMATORS.make(name, settings), as_lens("canonical"), perfect) for _, name, settings in HUMAN
    ]
    null_draws = floors(perfect, every, np.random.default_rng(seed))  # one set of fresh votes for all of them
    known = [
        estimand.estimator.expected(estimand.views[0]) if draws is None else draws.mean()
        for estimand, draws in zip(every, null_draws, strict=True)
    ]
    return {label: float(value) for (label, _, _), value in zip(HUMAN, known, strict=True) if value is not None}


def fewer(one: CrowdPredictions, seed: int) -> list[dict[str, Any]]:
    """The same model judged by some of the votes, drawn without replacement from those there are."""
    rows = []
    min_votes = int(one.votes.sum(axis=1).min())
    for m in (*(count for count in VOTES if count < min_votes), None):
        votes = one.votes if m is None else drawn(one.votes, m, np.random.default_rng([seed, m]))
        preds = Predictions(votes, one.P)
        squared = float(np.square(preds.P - preds.Y).sum(axis=1).mean())
        row: dict[str, Any] = {"votes": "all" if m is None else str(m)}
        for label, name, settings in HUMAN[-3:]:
            row[label] = measure(preds, name, interval=None, **settings).value
        rows.append(row | {"squared distance": squared})
    return rows


def drawn(votes: Array, m: int, rng: np.random.Generator) -> Array:
    """m of each row's votes, without replacement.

    >>> drawn(np.array([[5, 0], [2, 2]]), 4, np.random.default_rng(0)).tolist()
    [[4, 0], [2, 2]]
    """
    return np.stack([rng.multivariate_hypergeometric(row, m) for row in votes])


def claims(one: CrowdPredictions) -> dict[str, float]:
    """How often what the paper warns of happens: the same entropy, or the same order, of quite another distribution."""
    (view,) = as_lens("canonical").views(one.against("votes"))
    distant = DistributionError().rows(view) > MIN_DISTANCE
    alike = np.abs(EntropyError(signed=True).rows(view)) < ALIKE
    ordered = RankAgreement().rows(view) == 1
    other = one.P.argmax(axis=1) != one.votes.argmax(axis=1)
    return {
        "entropy alike": float(alike.mean()),
        "far though entropy alike": float((distant & alike).mean()),
        "another class though entropy alike": float((other & alike).mean()),
        "order alike": float(ordered.mean()),
        "far though order alike": float((distant & ordered).mean()),
    }


def _estimate_row(prefix: str, answer: Estimate) -> dict[str, Any]:
    row: dict[str, Any] = {prefix: answer.value}
    if answer.interval is not None:
        row |= {f"{prefix} low": answer.interval.low, f"{prefix} high": answer.interval.high}
    return row | {f"{prefix} floor": answer.noise_floor}
