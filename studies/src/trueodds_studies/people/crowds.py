"""Which people voted on what, which models judged the same, and what was the one label that others took?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.data import arrays, stamp


@dataclass(frozen=True)
class Model:
    """Where a model's word is kept, and which crowd judged the same rows."""

    crowd: str
    file: str
    key: str
    labels: str  # of the same file: they tell that its rows are those of the crowd's

    @property
    def logits(self) -> bool:
        """Whether the file holds logits."""
        return self.key.startswith("logits")


CROWDS = {"CIFAR-10H": ("cifar10h.npz", "counts", "labels"), "ChaosNLI": ("chaosnli_snli.npz", "label_count", "gold")}
"""File, votes (n, K), gold label (n,)."""

_NETS, _NLI = "widmann_cifar10_4nets.npz", "chaosnli_snli.npz"
MODELS = {
    "vgg16": Model("CIFAR-10H", "plambda_cifar10_vgg16.npz", "probs", "labels"),
    **{
        net: Model("CIFAR-10H", _NETS, f"probs_{net}", "labels")
        for net in ("densenet121", "inception_v3", "resnet18", "vgg16_bn")
    },
    "resnet50": Model("CIFAR-10H", "aigen_cifar10_resnet50.npz", "logits_test", "labels_test"),
    "wide_resnet_focal": Model("CIFAR-10H", "aigen_focal_cifar10_wide_resnet.npz", "logits_test", "labels_test"),
    **{
        net: Model("ChaosNLI", _NLI, f"logits_{net}", "gold")
        for net in ("roberta_base_0", "roberta_base_1", "roberta_base_2", "bert_base_uncased_0", "bert_base_uncased_1")
    },
}
QUICK_MODELS = ("vgg16", "roberta_base_0")  # of a quick study: one of each crowd
TARGETS = ("gold", "majority", "votes")


@dataclass(frozen=True, eq=False)
class CrowdPredictions:
    """A model's probabilities for rows that a crowd judged."""

    P: Array  # (n, K)
    votes: Array  # (n, K) counts
    gold: Array  # (n,)

    def against(self, target: str) -> Predictions:
        """The model against the gold label, the label of most votes (the lowest of several), or all votes."""
        if target == "votes":
            return Predictions(self.votes, self.P)
        return Predictions(self.gold if target == "gold" else self.votes.argmax(axis=1), self.P)


def known(name: str) -> str:
    """The name itself; an unknown model is an InputError."""
    if name not in MODELS:
        raise InputError("TO201", "There is no model of that name.", repr(name), near(name, MODELS))
    return name


def files(models: Sequence[str], data: str | None) -> dict[str, str]:
    """Every file that is read for these models, with its stamp."""
    names = dict.fromkeys(name for model in models for name in (CROWDS[MODELS[model].crowd][0], MODELS[model].file))
    return {name: stamp(name, data) for name in names}


def crowd(name: str, data: str | None, rows: int | None = None, seed: int = 0) -> tuple[Array, Array]:
    """Votes (n, K) and gold labels (n,), int64: all rows, or as many as are asked for, drawn by the seed."""
    votes, gold = _crowd(name, data, stamp(CROWDS[name][0], data))
    chosen = sample(len(gold), rows, seed)
    return votes[chosen], gold[chosen]


def load_crowd_predictions(model: str, data: str | None, rows: int | None = None, seed: int = 0) -> CrowdPredictions:
    """The model and the crowd, row for row. TO803 where their labels say that the rows are not the same."""
    one = MODELS[model]
    votes, gold = _crowd(one.crowd, data, stamp(CROWDS[one.crowd][0], data))
    file = arrays(one.file, data, one.labels, one.key)
    scores, own = file[one.key], file[one.labels]
    if len(own) != len(gold) or (own != gold).any():
        differ = f"{int((own != gold).sum()):,} of {len(gold):,}" if len(own) == len(gold) else f"{len(own):,} rows for"
        raise InputError(
            "TO803",
            "The rows of a model are not those that people judged.",
            f"{differ} labels of {one.file} differ from those of {CROWDS[one.crowd][0]}",
            "Both must have the same items in the same order; docs/studies.md says which.",
        )
    chosen = sample(len(gold), rows, seed)
    P = Predictions.from_logits(gold, scores).P if one.logits else scores
    return CrowdPredictions(P[chosen], votes[chosen], gold[chosen])


def sample(n: int, rows: int | None, seed: int) -> Array:
    """Which rows: all of them, or some, in their order.

    >>> sample(3, None, 0).tolist(), len(sample(100, 7, 0))
    ([0, 1, 2], 7)
    """
    if rows is None or rows >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 1]).choice(n, rows, replace=False))


@lru_cache(maxsize=len(CROWDS))
def _crowd(name: str, data: str | None, _stamp: str) -> tuple[Array, Array]:
    """Read once for each file that lay there."""
    file, votes, gold = CROWDS[name]
    stored = arrays(file, data, votes, gold)
    return stored[votes].astype(np.int64), stored[gold].astype(np.int64)
