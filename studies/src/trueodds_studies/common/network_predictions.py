"""Stored predictions of neural networks for images, text and speech, and random splits and samples of their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
"""File and array of each network. The first is most like that of Vennos, Xing & Franck (2026), also a VGG16."""

CALIBRATION_SHARE = 0.8  # share of the rows for fitting, as in Vennos, Xing & Franck (2026)


def load_cifar10_softmax(net: str, data: str | None) -> tuple[Array, Array]:
    """Labels (n,) int64 and softmax values (n, 10) float32 of a CIFAR-10 network."""
    return _load_cifar10_softmax(net, data, hash_file(CIFAR10_FILES[net][0], data))


@lru_cache(maxsize=len(CIFAR10_FILES))
def _load_cifar10_softmax(net: str, data: str | None, _file_hash: str) -> tuple[Array, Array]:
    """Cached by the hash of the file."""
    name, key = CIFAR10_FILES[net]
    file = load_npz(name, data, "labels", key)
    return file["labels"].astype(np.int64), file[key]


def split_rows(n: int, seed: int, number: int) -> tuple[Array, Array]:
    """Row numbers for fitting and for evaluation, in increasing order: one random split, the same for every network.

    `number` selects one of many splits.

    >>> learn, held_out = split_rows(10, seed=0, number=0)
    >>> len(learn), len(held_out), sorted([*learn.tolist(), *held_out.tolist()]) == list(range(10))
    (8, 2, True)
    """
    order = np.random.default_rng([seed, number]).permutation(n)
    cut = round(CALIBRATION_SHARE * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def load_cifar10_split(net: str, data: str | None, seed: int, number: int) -> tuple[Predictions, Predictions]:
    """The predictions of a CIFAR-10 network for fitting, and those held out for evaluation."""
    y, P = load_cifar10_softmax(net, data)
    learn, held_out = (Predictions(y[rows], P[rows]) for rows in split_rows(len(y), seed, number))
    return learn, held_out


@dataclass(frozen=True)
class StoredNetwork:
    """File and arrays with the predictions of a network, and its task."""

    task: str
    file: str
    key: str  # array of logits, of probabilities, or (if it begins with conf_) of the largest probability only
    labels: str  # array of class numbers or, beside the largest probability only, of whether the prediction is correct
    classes: int

    @property
    def has_class_probs(self) -> bool:
        """Whether the file has the probabilities of all classes, not only the largest one."""
        return not self.key.startswith("conf_")

    def predictions(self, data: str | None) -> Predictions:
        """Labels and predictions of all rows, which are test rows."""
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
"""Seven networks, evaluated on the same images in the same order."""

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


def check_network(name: str, names: Collection[str] = NETWORKS) -> str:
    """Return a name that is among `names`; raise TO201 with similar names if it is not."""
    if name not in names:
        raise InputError("TO201", "There is no net of that name.", repr(name), suggest_names(name, names))
    return name


def hash_network_files(nets: Sequence[str], data: str | None) -> dict[str, str]:
    """The SHA-256 hash of every file with predictions of these networks."""
    return {name: hash_file(name, data) for name in dict.fromkeys(NETWORKS[net].file for net in nets)}


def three_class_groups(classes: int) -> tuple[tuple[int, ...], ...]:
    """Three groups of neighboring classes, the last one the largest.

    Ten classes are grouped as in Vaicenavicius et al. (2019): {0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9}.

    >>> three_class_groups(10), three_class_groups(4)
    (((0, 1, 2), (3, 4, 5), (6, 7, 8, 9)), ((0,), (1,), (2, 3)))
    """
    size = classes // 3
    cuts = (0, size, 2 * size, classes)
    return tuple(tuple(range(a, b)) for a, b in pairwise(cuts))


def groups_lens(classes: int) -> str:
    """The name of the lens for the three groups of `three_class_groups`.

    >>> groups_lens(4)
    'groups:[[0],[1],[2,3]]'
    """
    return f"groups:{[list(group) for group in three_class_groups(classes)]}".replace(" ", "")


def sample_predictions(preds: Predictions, rows: int | None, seed: int) -> Predictions:
    """All rows, or a random sample of `rows` of them in their order."""
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, 1]).choice(preds.n, rows, replace=False))]


IMAGENET_FILE = "tcal_imagenet_top1.npz"
IMAGENET_NETWORKS = ("densenet161", "efficientnet_b7", "resnet152")


def load_imagenet_top1(net: str, data: str | None, rows: int | None = None, seed: int = 0) -> Predictions:
    """Confidence and correctness of an ImageNet network for all rows, or for a random sample of `rows` of them.

    The sample is the same for every network.
    """
    file = load_npz(IMAGENET_FILE, data, f"conf_{net}", f"correct_{net}")
    preds = Predictions.from_confidence(file[f"conf_{net}"], file[f"correct_{net}"])
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, rows]).choice(preds.n, rows, replace=False))]


def have_equal_labels(data: str | None) -> bool:
    """Whether the labels of all ImageNet networks are equal, as they are if their rows are the same images."""
    file = load_npz(IMAGENET_FILE, data, *(f"label_{net}" for net in IMAGENET_NETWORKS))
    first, *others = file.values()
    return all(np.array_equal(first, other) for other in others)


def split_in_halves(preds: Predictions, seed: int) -> tuple[Predictions, Predictions]:
    """A random half of the rows for fitting, and the other half for evaluation."""
    order = np.random.default_rng([seed, preds.n]).permutation(preds.n)
    cut = preds.n // 2
    return preds[np.sort(order[:cut])], preds[np.sort(order[cut:])]
