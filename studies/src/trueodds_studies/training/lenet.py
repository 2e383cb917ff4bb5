"""LeNet for MNIST, the losses that the study trains it with, and its training epoch by epoch.

PyTorch is an optional dependency, so it is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from trueodds.core.typing import Array
from trueodds_studies.common.mnist import CLASSES, LabeledImages, MnistSplit
from trueodds_studies.common.network_training import (
    TrainingSettings,
    build_network,
    one_thread,
    predict_logits,
    train_epochs,
)

LogitPredictor = Callable[[LabeledImages], Array]  # from images to logits (n, K)


def build_lenet() -> Any:
    """LeNet-5 with rectified linear units and maximum pooling for 28 × 28 images: 61,706 weights."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, CLASSES),
    )  # fmt: skip


def make_loss(name: str, strength: float) -> Callable[[Any, Any], Any]:
    """The loss with that name, a function of logits and labels.

    `strength` is the smoothing of label smoothing, γ of the focal loss, or the factor of a regularizer, which is added
    to the cross entropy.
    """
    from torch import nn

    from trueodds.torch import FocalLoss, MMCELoss, SoftBinnedECELoss

    match name:
        case "cross entropy":
            return nn.CrossEntropyLoss()
        case "label smoothing":
            return nn.CrossEntropyLoss(label_smoothing=strength)
        case "focal":
            return FocalLoss(gamma=strength)
        case "MMCE":
            return _add_regularizer(MMCELoss(), strength)
        case "soft-binned ECE":
            return _add_regularizer(SoftBinnedECELoss(), strength)
    raise ValueError(name)


def _add_regularizer(regularizer: Any, factor: float) -> Callable[[Any, Any], Any]:
    """The cross entropy plus `factor` times a regularizer."""
    from torch import nn

    cross_entropy = nn.CrossEntropyLoss()
    return lambda logits, labels: cross_entropy(logits, labels) + factor * regularizer(logits, labels)


def train_lenet(split: MnistSplit, loss: str, strength: float, epochs: int, seed: int) -> Iterator[LogitPredictor]:
    """Train LeNet, and yield after each epoch a function that predicts logits with the current weights.

    The weights change in the next epoch; a deep copy of the function keeps them.
    """
    with one_thread():
        network = build_network(build_lenet, seed)
        for _ in train_epochs(network, split.train, make_loss(loss, strength), TrainingSettings(epochs), seed):
            yield partial(predict_logits, network)
