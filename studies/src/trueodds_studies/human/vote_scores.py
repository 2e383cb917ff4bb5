"""Votes of annotators with the predictions of models, and scores against gold labels, majority labels and votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.human_calibration import DistributionError, EntropyError, RankAgreement
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.noise_floor import noise_floor_draws
from trueodds_studies.common.data_files import hash_file, load_npz


@dataclass(frozen=True)
class StoredModel:
    """File and arrays with the predictions of a model, and the data set with the annotators of the same rows."""

    crowd: str  # key of CROWDS
    file: str
    key: str  # array of logits (if it begins with logits) or probabilities, (n, K)
    labels: str  # array of gold labels (n,), which must be equal to those of the data set

    @property
    def has_logits(self) -> bool:
        """Whether the file holds logits."""
        return self.key.startswith("logits")


CROWDS = {"CIFAR-10H": ("cifar10h.npz", "counts", "labels"), "ChaosNLI": ("chaosnli_snli.npz", "label_count", "gold")}
"""By data set: the file, and its arrays of votes (n, K) and of gold labels (n,)."""

_NETS, _NLI = "widmann_cifar10_4nets.npz", "chaosnli_snli.npz"
MODELS = {
    "vgg16": StoredModel("CIFAR-10H", "plambda_cifar10_vgg16.npz", "probs", "labels"),
    **{
        net: StoredModel("CIFAR-10H", _NETS, f"probs_{net}", "labels")
        for net in ("densenet121", "inception_v3", "resnet18", "vgg16_bn")
    },
    "resnet50": StoredModel("CIFAR-10H", "aigen_cifar10_resnet50.npz", "logits_test", "labels_test"),
    "wide_resnet_focal": StoredModel("CIFAR-10H", "aigen_focal_cifar10_wide_resnet.npz", "logits_test", "labels_test"),
    **{
        net: StoredModel("ChaosNLI", _NLI, f"logits_{net}", "gold")
        for net in ("roberta_base_0", "roberta_base_1", "roberta_base_2", "bert_base_uncased_0", "bert_base_uncased_1")
    },
}
QUICK_MODELS = ("vgg16", "roberta_base_0")  # of a quick study, one per data set
TARGETS = ("gold", "majority", "votes")


@dataclass(frozen=True, eq=False)
class CrowdPredictions:
    """Predicted probabilities of a model for annotated rows."""

    P: Array  # (n, K)
    votes: Array  # (n, K) counts
    gold: Array  # (n,)

    def with_target(self, target: str) -> Predictions:
        """The predictions with one of TARGETS as outcomes; of tied majorities, the first class."""
        if target == "votes":
            return Predictions(self.votes, self.P)
        return Predictions(self.gold if target == "gold" else self.votes.argmax(axis=1), self.P)


def check_model(name: str) -> str:
    """Return the name; an unknown model is an InputError."""
    if name not in MODELS:
        raise InputError("TO201", "There is no model of that name.", repr(name), suggest_names(name, MODELS))
    return name


def hash_model_files(models: Sequence[str], data: str | None) -> dict[str, str]:
    """The SHA-256 hash of every file that these models require."""
    names = dict.fromkeys(name for model in models for name in (CROWDS[MODELS[model].crowd][0], MODELS[model].file))
    return {name: hash_file(name, data) for name in names}


def load_crowd(name: str, data: str | None, rows: int | None = None, seed: int = 0) -> tuple[Array, Array]:
    """Votes (n, K) and gold labels (n,), int64, of all rows or of a random sample of them."""
    votes, gold = _load_crowd(name, data, hash_file(CROWDS[name][0], data))
    sample = sample_rows(len(gold), rows, seed)
    return votes[sample], gold[sample]


def load_crowd_predictions(model: str, data: str | None, rows: int | None = None, seed: int = 0) -> CrowdPredictions:
    """Predictions of a model with the votes for the same rows: all rows, or a random sample of them.

    Raises TO803 if the labels of model and annotators differ.
    """
    model_files = MODELS[model]
    votes, gold = _load_crowd(model_files.crowd, data, hash_file(CROWDS[model_files.crowd][0], data))
    file = load_npz(model_files.file, data, model_files.labels, model_files.key)
    scores, labels = file[model_files.key], file[model_files.labels]
    if len(labels) != len(gold) or (labels != gold).any():
        differ = (
            f"{int((labels != gold).sum()):,} of {len(gold):,}"
            if len(labels) == len(gold)
            else f"{len(labels):,} rows for"
        )
        raise InputError(
            "TO803",
            "The rows of a model are not the annotated rows.",
            f"{differ} labels of {model_files.file} differ from those of {CROWDS[model_files.crowd][0]}",
            "Both must contain the same items in the same order; see docs/studies.md.",
        )
    sample = sample_rows(len(gold), rows, seed)
    P = Predictions.from_logits(gold, scores).P if model_files.has_logits else scores
    return CrowdPredictions(P[sample], votes[sample], gold[sample])


def sample_rows(n: int, rows: int | None, seed: int) -> Array:
    """Numbers of all rows, or of a random sample of `rows` of them, in increasing order.

    >>> sample_rows(3, None, 0).tolist(), len(sample_rows(100, 7, 0))
    ([0, 1, 2], 7)
    """
    if rows is None or rows >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 1]).choice(n, rows, replace=False))


@lru_cache(maxsize=len(CROWDS))
def _load_crowd(name: str, data: str | None, _file_hash: str) -> tuple[Array, Array]:
    """Cached by the hash of the file."""
    file, votes, gold = CROWDS[name]
    stored = load_npz(file, data, votes, gold)
    return stored[votes].astype(np.int64), stored[gold].astype(np.int64)


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
VOTE_COUNTS = (2, 5, 10, 20)  # numbers of votes per row with which models are also evaluated
MAX_ENTROPY_GAP = 0.05  # nats; entropies that differ by less are regarded as equal
MIN_DISTANCE = 0.2  # total variation from which on distributions are regarded as different


def score_targets(predictions: CrowdPredictions, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per target: confidence, accuracy, and ECE, log loss and Brier score with interval and noise floor."""
    rows = []
    for target in TARGETS:
        preds = predictions.with_target(target)
        row: dict[str, Any] = {"against": target, "n": preds.n}
        predicted = preds.P.argmax(axis=1)
        accuracy = preds.Y[np.arange(preds.n), predicted]  # with votes, the share of them for the predicted class
        row["confidence"] = float(preds.P.max(axis=1).mean())
        row["right"] = float(accuracy.mean())
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
        for label, name, settings in VOTE_MEASURES[-3:]:
            row[label] = measure(preds, name, interval=None, **settings).value
        rows.append(row | {"squared distance": squared})
    return rows


def draw_votes(votes: Array, m: int, rng: np.random.Generator) -> Array:
    """Draw m votes of each row without replacement.

    >>> draw_votes(np.array([[5, 0], [2, 2]]), 4, np.random.default_rng(0)).tolist()
    [[4, 0], [2, 2]]
    """
    return np.stack([rng.multivariate_hypergeometric(row, m) for row in votes])


def check_claims(predictions: CrowdPredictions) -> dict[str, float]:
    """Shares of rows with equal entropy or equal order of the classes, also of those with another distribution.

    Pavlovic (2025), section 3.3.3, describes these as problems of EntCE and RankCS.
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
    return row | {f"{prefix} floor": answer.noise_floor}
