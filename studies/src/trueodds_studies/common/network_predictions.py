"""Stored predictions of neural networks (CIFAR-10, CIFAR-100, ImageNet and others), and random splits of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.data_files import hash_file, load_npz

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_FILES = {
    "vgg16": ("plambda_cifar10_vgg16.npz", "probs"),
    "densenet121": ("widmann_cifar10_4nets.npz", "probs_densenet121"),
    "inception_v3": ("widmann_cifar10_4nets.npz", "probs_inception_v3"),
    "resnet18": ("widmann_cifar10_4nets.npz", "probs_resnet18"),
    "vgg16_bn": ("widmann_cifar10_4nets.npz", "probs_vgg16_bn"),
}
"""Name, file and key. The first stands nearest to the paper's: a VGG16, though trained by others."""

CALIBRATION_SHARE = 0.8  # of the rows are learned from, as in the paper


def check_cifar10_network(name: str) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in CIFAR10_FILES:
        raise InputError("TO201", "There is no net of that name.", repr(name), suggest_names(name, CIFAR10_FILES))
    return name


def load_softmax(net: str, data: str | None) -> tuple[Array, Array]:
    """Labels (n,) and softmax values (n, 10), float32 as they came."""
    return _load_softmax(net, data, hash_file(CIFAR10_FILES[net][0], data))


@lru_cache(maxsize=len(CIFAR10_FILES))
def _load_softmax(net: str, data: str | None, _stamp: str) -> tuple[Array, Array]:
    """Read once for each file that lay there."""
    name, key = CIFAR10_FILES[net]
    file = load_npz(name, data, "labels", key)
    return file["labels"].astype(np.int64), file[key]


def split_rows(n: int, seed: int, number: int) -> tuple[Array, Array]:
    """Row numbers to learn from and to judge on: one random cut, the same for every net.

    >>> learn, judge = split_rows(10, seed=0, number=0)
    >>> len(learn), len(judge), sorted([*learn.tolist(), *judge.tolist()]) == list(range(10))
    (8, 2, True)
    """
    order = np.random.default_rng([seed, number]).permutation(n)
    cut = round(CALIBRATION_SHARE * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def load_split(net: str, data: str | None, seed: int, number: int) -> tuple[Predictions, Predictions]:
    """The rows of a net that are learned from, and those that are held out."""
    y, P = load_softmax(net, data)
    learn, held_out = (Predictions(y[rows], P[rows]) for rows in split_rows(len(y), seed, number))
    return learn, held_out


@dataclass(frozen=True)
class StoredNetwork:
    """Where a net's word is kept, and for what."""

    task: str
    file: str
    key: str  # logits, probabilities, or the largest probability alone
    labels: str  # class numbers; beside a confidence alone whether it was right
    classes: int

    @property
    def has_class_probs(self) -> bool:
        """Whether the file holds the probability of every class."""
        return not self.key.startswith("conf_")

    def predictions(self, data: str | None) -> Predictions:
        """The rows of the test part."""
        stored = load_npz(self.file, data, self.labels, self.key)
        y, scores = stored[self.labels].astype(np.int64), stored[self.key]
        if not self.has_class_probs:
            return Predictions.from_confidence(scores, y)
        return Predictions.from_logits(y, scores) if self.key.startswith("logits") else Predictions(y, scores)


CIFAR10_NETWORKS = {
    **{name: StoredNetwork("CIFAR-10", file, key, "labels", 10) for name, (file, key) in CIFAR10_FILES.items()},
    "resnet50": StoredNetwork("CIFAR-10", "aigen_cifar10_resnet50.npz", "logits_test", "labels_test", 10),
    "wide_resnet_focal": StoredNetwork(
        "CIFAR-10", "aigen_focal_cifar10_wide_resnet.npz", "logits_test", "labels_test", 10
    ),
}
"""Seven nets that judged the same images in the same order."""

_NLI = ("roberta_base_0", "roberta_base_1", "roberta_base_2", "bert_base_uncased_0", "bert_base_uncased_1")
NETWORKS = {
    **CIFAR10_NETWORKS,
    "resnet110": StoredNetwork("CIFAR-100", "aigen_cifar100_resnet110.npz", "logits_test", "labels_test", 100),
    **{
        f"imagenet_{net}": StoredNetwork("ImageNet", "tcal_imagenet_top1.npz", f"conf_{net}", f"correct_{net}", 1000)
        for net in ("densenet161", "efficientnet_b7", "resnet152")
    },
    "pathmnist_resnet50": StoredNetwork("PathMNIST", "ferrer_pathmnist_resnet50.npz", "logits_test", "labels_test", 9),
    "adrenalmnist_resnet50": StoredNetwork(
        "AdrenalMNIST", "ferrer_adrenalmnist_resnet50.npz", "logits_test", "labels_test", 2
    ),
    "agnews_gpt2": StoredNetwork("AG News", "ferrer_agnews_gpt2.npz", "logits_test", "labels_test", 4),
    "emotion": StoredNetwork("IEMOCAP", "psr_emotion_final.npz", "logits_tst", "labels_tst", 4),
    **{name: StoredNetwork("ChaosNLI", "chaosnli_snli.npz", f"logits_{name}", "gold", 3) for name in _NLI},
}


def check_network(name: str, among: dict[str, StoredNetwork] = NETWORKS) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in among:
        raise InputError("TO201", "There is no net of that name.", repr(name), suggest_names(name, among))
    return name


def hash_network_files(nets: Sequence[str], data: str | None) -> dict[str, str]:
    """Every file that is read for these nets, with its stamp."""
    return {name: hash_file(name, data) for name in dict.fromkeys(NETWORKS[net].file for net in nets)}


def three_class_groups(classes: int) -> tuple[tuple[int, ...], ...]:
    """Three groups of neighboring classes, the last the largest, as the paper has {0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9}.

    >>> three_class_groups(10), three_class_groups(4)
    (((0, 1, 2), (3, 4, 5), (6, 7, 8, 9)), ((0,), (1,), (2, 3)))
    """
    size = classes // 3
    cuts = (0, size, 2 * size, classes)
    return tuple(tuple(range(a, b)) for a, b in pairwise(cuts))


def groups_lens(classes: int) -> str:
    """The same as a lens.

    >>> groups_lens(4)
    'groups:[[0],[1],[2,3]]'
    """
    return f"groups:{[list(group) for group in three_class_groups(classes)]}".replace(" ", "")


def sample_predictions(preds: Predictions, rows: int | None, seed: int) -> Predictions:
    """All rows, or some of them in their order."""
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, 1]).choice(preds.n, rows, replace=False))]


IMAGENET_FILE = "tcal_imagenet_top1.npz"
IMAGENET_NETWORKS = ("densenet161", "efficientnet_b7", "resnet152")


def check_imagenet_network(name: str) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in IMAGENET_NETWORKS:
        raise InputError("TO201", "There is no net of that name.", repr(name), suggest_names(name, IMAGENET_NETWORKS))
    return name


def load_imagenet_top1(net: str, data: str | None, rows: int | None = None, seed: int = 0) -> Predictions:
    """Confidence and correctness: all rows, or `rows` of them drawn with the seed, the same ones for every network."""
    file = load_npz(IMAGENET_FILE, data, f"conf_{net}", f"correct_{net}")
    preds = Predictions.from_confidence(file[f"conf_{net}"], file[f"correct_{net}"])
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, rows]).choice(preds.n, rows, replace=False))]


def has_same_images(data: str | None) -> bool:
    """Whether the labels say that the rows of all nets are those of the same images."""
    file = load_npz(IMAGENET_FILE, data, *(f"label_{net}" for net in IMAGENET_NETWORKS))
    first, *others = file.values()
    return all(np.array_equal(first, other) for other in others)


def split_in_halves(preds: Predictions, seed: int) -> tuple[Predictions, Predictions]:
    """Rows to learn from and rows to judge on, by one random cut."""
    order = np.random.default_rng([seed, preds.n]).permutation(preds.n)
    cut = preds.n // 2
    return preds[np.sort(order[:cut])], preds[np.sort(order[cut:])]
