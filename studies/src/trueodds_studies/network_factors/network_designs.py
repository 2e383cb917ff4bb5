"""Networks that differ from a baseline in one factor, trained and measured on MNIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.mnist import LabeledImages, MnistSplit

LARGEST_BATCH = 64  # fewer rows are divided into 25 batches, so that a quick study learns something


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


def measure_design(design: NetworkDesign, split: MnistSplit, epochs: int, every: int, seed: int) -> dict[str, Any]:
    """Train one network; measures of the test rows after the last epoch, and loss and error by epoch."""
    from trueodds_studies.common.network_training import (
        TrainingSettings,
        build_network,
        one_thread,
        predict_logits,
        train_epochs,
    )
    from trueodds_studies.network_factors.convnet import build_convnet, cross_entropy

    settings = TrainingSettings(
        epochs,
        batch_size=min(LARGEST_BATCH, max(1, len(split.train) // 25)),
        optimizer="sgd",
        learning_rate=0.05,
        weight_decay=design.weight_decay,
        drops=(epochs // 2, 3 * epochs // 4),
    )
    with one_thread():
        network = build_network(lambda: build_convnet(design.depth, design.width, design.batch_norm), seed)
        curve = [
            {"epoch": epoch, **_measure_epoch(network, split, predict_logits)}
            for epoch in train_epochs(network, split.train, cross_entropy, settings, seed)
            if epoch % every == 0 or epoch == epochs
        ]
        logits = [predict_logits(network, rows) for rows in (split.train, split.validation, split.test)]
    learned, validation, test = (
        _as_predictions(rows, part)
        for rows, part in zip((split.train, split.validation, split.test), logits, strict=True)
    )
    return {"weights": sum(p.numel() for p in network.parameters()), "curve": curve} | _measure_last(
        learned, validation, test
    )


def _measure_epoch(network: Any, split: MnistSplit, predict_logits: Any) -> dict[str, float]:
    validation = _as_predictions(split.validation, predict_logits(network, split.validation))
    test = _as_predictions(split.test, predict_logits(network, split.test))
    return {
        "validation log loss": _mean_log_loss(validation),
        "log loss": _mean_log_loss(test),
        "error": _error_rate(test),
    }


def _measure_last(learned: Predictions, validation: Predictions, test: Predictions) -> dict[str, float]:
    """Measures after the last epoch; the temperature is fitted on validation rows."""
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
