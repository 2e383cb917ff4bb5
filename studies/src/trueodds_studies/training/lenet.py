"""LeNet for 28 × 28 images, and the losses that the study trains it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from trueodds.torch import FocalLoss, MMCELoss, SoftBinnedECELoss
from trueodds_studies.common.mnist import CLASSES


def build_lenet() -> Any:
    """LeNet-5 with rectified linear units and maximum pooling: 61,706 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, CLASSES),
    )  # fmt: skip


def make_loss(name: str, strength: float) -> Callable[[Any, Any], Any]:
    """The loss of that name; `strength` is its smoothing, its γ, or the factor of its regularizer."""
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
    cross_entropy = nn.CrossEntropyLoss()
    return lambda logits, labels: cross_entropy(logits, labels) + factor * regularizer(logits, labels)
