"""Convolutional networks that differ from a baseline in one factor, trained and measured on MNIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.mnist import CLASSES, LabeledImages, MnistSplit
from trueodds_studies.common.network_training import (
    TrainingSettings,
    build_network,
    one_thread,
    predict_logits,
    train_epochs,
)

MAX_BATCH_SIZE = 64  # of few rows a batch is one part in 25, so that a quick study still takes enough steps


@dataclass(frozen=True)
class NetworkDesign:
    """Depth, width and normalization of a convolutional network, and the weight decay of its training."""

    depth: int = 4
    width: int = 16
    batch_norm: bool = True
    weight_decay: float = 1e-4

    def __str__(self) -> str:
        normalization = "batch norm" if self.batch_norm else "no batch norm"
        return f"depth {self.depth}, width {self.width}, {normalization}, weight decay {self.weight_decay:g}"


BASELINE = NetworkDesign()
LEVELS: Mapping[str, tuple[Any, ...]] = {
    "depth": (2, 4, 8),
    "width": (8, 16, 32, 64),
    "batch_norm": (False, True),
    "weight_decay": (0.0, 1e-4, 1e-3, 1e-2),
}
"""Factors of Guo et al. (2017), figure 2, with their levels in increasing order; each contains the baseline's."""


def design_at(factor: str, level: Any) -> NetworkDesign:
    """The baseline with another level of one factor.

    >>> str(design_at("depth", 8))
    'depth 8, width 16, batch norm, weight decay 0.0001'
    """
    return replace(BASELINE, **{factor: level})


def list_designs() -> tuple[NetworkDesign, ...]:
    """All designs, the baseline once."""
    designs = (design_at(factor, level) for factor, levels in LEVELS.items() for level in levels)
    return tuple(dict.fromkeys([BASELINE, *designs]))


def build_convnet(depth: int, width: int, batch_norm: bool) -> Any:
    """A convolutional network for 28 × 28 images.

    It has `depth` convolutions of `width` channels, the first half on 14 × 14 and the others on 7 × 7 pixels, then mean
    pooling and a linear layer. PyTorch is optional, so it is imported here.
    """
    from torch import nn

    layers: list[Any] = []
    for i in range(depth):
        channels = 1 if i == 0 else width
        layers.append(nn.Conv2d(channels, width, 3, stride=2 if i == 0 else 1, padding=1, bias=not batch_norm))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        layers.append(nn.ReLU())
        if i == (depth - 1) // 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))


def measure_design(design: NetworkDesign, split: MnistSplit, epochs: int, every: int, seed: int) -> dict[str, Any]:
    """Train one network on MNIST.

    Returns the number of weights, measures of the test rows after the last epoch, and under `curve` log loss and error
    after every `every` epochs and the last one.
    """
    from torch.nn.functional import cross_entropy

    settings = TrainingSettings(
        epochs,
        batch_size=min(MAX_BATCH_SIZE, max(1, len(split.train) // 25)),
        optimizer="sgd",
        learning_rate=0.05,
        weight_decay=design.weight_decay,
        drops=(epochs // 2, 3 * epochs // 4),
    )
    with one_thread():
        network = build_network(lambda: build_convnet(design.depth, design.width, design.batch_norm), seed)
        curve = [
            {"epoch": epoch, **_measure_epoch(network, split)}
            for epoch in train_epochs(network, split.train, cross_entropy, settings, seed)
            if epoch % every == 0 or epoch == epochs
        ]
    learned, validation, test = (
        _as_predictions(rows, predict_logits(network, rows)) for rows in (split.train, split.validation, split.test)
    )
    return {"weights": sum(p.numel() for p in network.parameters()), "curve": curve} | _final_measures(
        learned, validation, test
    )


def _measure_epoch(network: Any, split: MnistSplit) -> dict[str, float]:
    """Log loss of the validation rows, and log loss and error rate of the test rows, with the current weights."""
    validation = _as_predictions(split.validation, predict_logits(network, split.validation))
    test = _as_predictions(split.test, predict_logits(network, split.test))
    return {
        "validation log loss": _mean_log_loss(validation),
        "log loss": _mean_log_loss(test),
        "error": _error_rate(test),
    }


def _final_measures(learned: Predictions, validation: Predictions, test: Predictions) -> dict[str, float]:
    """Measures after the last epoch, by key; `refinement` is log loss with a temperature fitted on validation rows."""
    scaled = fit(validation, "temperature")
    ece = measure(test, "ece", lens="confidence", resamples=200)
    confidence = np.asarray(test.P).max(axis=1)
    return {
        "training error": _error_rate(learned),
        "error": _error_rate(test),
        "ECE": float(ece.value),
        "noise floor": float(ece.noise_floor or 0.0),
        "overconfidence": float(confidence.mean()) - (1 - _error_rate(test)),
        "temperature": 1 / scaled.to_dict()["parameters"]["beta"],
        "log loss": _mean_log_loss(test),
        "refinement": _mean_log_loss(scaled.recalibrate(test)),
    }


def _as_predictions(rows: LabeledImages, logits: Array) -> Predictions:
    return Predictions.from_logits(rows.labels, logits)


def _mean_log_loss(preds: Predictions) -> float:
    return float(measure(preds, "log_loss", interval=None))


def _error_rate(preds: Predictions) -> float:
    return float(np.mean(np.asarray(preds.P).argmax(axis=1) != np.asarray(preds.y)))
