"""Which networks' predictions can be read, where does each file keep them, and which classes are put together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.data.predictions import Predictions
from trueodds_studies.data import arrays, stamp
from trueodds_studies.imaging.nets import NETS as OF_IMAGES


@dataclass(frozen=True)
class Net:
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
        stored = arrays(self.file, data, self.labels, self.key)
        y, scores = stored[self.labels].astype(np.int64), stored[self.key]
        if not self.has_class_probs:
            return Predictions.from_confidence(scores, y)
        return Predictions.from_logits(y, scores) if self.key.startswith("logits") else Predictions(y, scores)


CIFAR10 = {
    **{name: Net("CIFAR-10", file, key, "labels", 10) for name, (file, key) in OF_IMAGES.items()},
    "resnet50": Net("CIFAR-10", "aigen_cifar10_resnet50.npz", "logits_test", "labels_test", 10),
    "wide_resnet_focal": Net("CIFAR-10", "aigen_focal_cifar10_wide_resnet.npz", "logits_test", "labels_test", 10),
}
"""Seven nets that judged the same images in the same order."""

_NLI = ("roberta_base_0", "roberta_base_1", "roberta_base_2", "bert_base_uncased_0", "bert_base_uncased_1")
NETS = {
    **CIFAR10,
    "resnet110": Net("CIFAR-100", "aigen_cifar100_resnet110.npz", "logits_test", "labels_test", 100),
    **{
        f"imagenet_{net}": Net("ImageNet", "tcal_imagenet_top1.npz", f"conf_{net}", f"correct_{net}", 1000)
        for net in ("densenet161", "efficientnet_b7", "resnet152")
    },
    "pathmnist_resnet50": Net("PathMNIST", "ferrer_pathmnist_resnet50.npz", "logits_test", "labels_test", 9),
    "adrenalmnist_resnet50": Net("AdrenalMNIST", "ferrer_adrenalmnist_resnet50.npz", "logits_test", "labels_test", 2),
    "agnews_gpt2": Net("AG News", "ferrer_agnews_gpt2.npz", "logits_test", "labels_test", 4),
    "emotion": Net("IEMOCAP", "psr_emotion_final.npz", "logits_tst", "labels_tst", 4),
    **{name: Net("ChaosNLI", "chaosnli_snli.npz", f"logits_{name}", "gold", 3) for name in _NLI},
}


def known(name: str, among: dict[str, Net] = NETS) -> str:
    """The name itself; an unknown net is an InputError."""
    if name not in among:
        raise InputError("TO201", "There is no net of that name.", repr(name), near(name, among))
    return name


def files(nets: Sequence[str], data: str | None) -> dict[str, str]:
    """Every file that is read for these nets, with its stamp."""
    return {name: stamp(name, data) for name in dict.fromkeys(NETS[net].file for net in nets)}


def three(classes: int) -> tuple[tuple[int, ...], ...]:
    """Three groups of neighboring classes, the last the largest, as the paper has {0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9}.

    >>> three(10), three(4)
    (((0, 1, 2), (3, 4, 5), (6, 7, 8, 9)), ((0,), (1,), (2, 3)))
    """
    size = classes // 3
    cuts = (0, size, 2 * size, classes)
    return tuple(tuple(range(a, b)) for a, b in pairwise(cuts))


def groups(classes: int) -> str:
    """The same as a lens.

    >>> groups(4)
    'groups:[[0],[1],[2,3]]'
    """
    return f"groups:{[list(group) for group in three(classes)]}".replace(" ", "")


def some(preds: Predictions, rows: int | None, seed: int) -> Predictions:
    """All rows, or some of them in their order."""
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, 1]).choice(preds.n, rows, replace=False))]
