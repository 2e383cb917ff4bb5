"""Predictions of stored models for rows with the votes of several annotators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
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
