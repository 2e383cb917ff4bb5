"""Small convolutional networks whose depth, width and normalization vary."""

from __future__ import annotations

from typing import Any

from torch import nn

from trueodds_studies.common.mnist import CLASSES


def build_convnet(depth: int, width: int, batch_norm: bool) -> Any:
    """`depth` convolutions of `width` channels on 14 × 14 and then 7 × 7 pixels, mean pooling, and a linear layer."""
    layers: list[Any] = []
    for i in range(depth):
        channels = 1 if i == 0 else width
        layers.append(nn.Conv2d(channels, width, 3, stride=2 if i == 0 else 1, padding=1, bias=not batch_norm))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        layers.append(nn.ReLU())
        if i == (depth - 1) // 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Mean log loss of a batch."""
    return nn.functional.cross_entropy(logits, labels)
