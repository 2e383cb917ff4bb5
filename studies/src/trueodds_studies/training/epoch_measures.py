"""Log loss, refinement, calibration errors and their tests after every epoch of one training of LeNet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.binning.median_variance import MedianVariance
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds_studies.common.mnist import LabeledImages, MnistSplit
from trueodds_studies.common.network_predictions import groups_lens
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.training.lenet import train_lenet

CONSISTENCY_TESTS: Mapping[str, tuple[str, BinnedError]] = {
    "classes": ("canonical", BinnedError(MedianVariance(min_size=10))),
    "classes, 100": ("canonical", BinnedError(MedianVariance(min_size=100))),
    "groups": (groups_lens(10), BinnedError(MedianVariance(min_size=100))),
    "confidence": ("confidence", BinnedError()),
}
"""Lens and statistic of each consistency test, by its name in the columns."""
TEST_DESCRIPTIONS = {
    "classes": "all classes, trees of at least 10 rows per leaf",
    "classes, 100": "all classes, at least 100 rows per leaf",
    "groups": "three groups of classes, at least 100 rows per leaf",
    "confidence": "the confidence, 15 uniform bins",
}
"""The same tests in words, for sentences and tables."""
ALPHA = 0.05


def as_predictions(rows: LabeledImages, logits: Array) -> Predictions:
    """The labels of the images with the probabilities of the logits (n, K)."""
    return Predictions.from_logits(rows.labels, logits)


def mean_log_loss(preds: Predictions) -> float:
    """Mean log loss in nats."""
    return float(measure(preds, "log_loss", interval=None))


def scale_temperature(validation: Predictions, test_preds: Predictions) -> tuple[float, float, Predictions]:
    """Temperature fitted on validation rows, their log loss after scaling (refinement), and the scaled test rows."""
    scaled = fit(validation, "temperature")
    temperature = 1 / scaled.to_dict()["parameters"]["beta"]
    return temperature, mean_log_loss(scaled.recalibrate(validation)), scaled.recalibrate(test_preds)


def measure_calibration(preds: Predictions, redraws: int, seed: int) -> dict[str, float]:
    """Calibration error, its mean for a calibrated model, and the p-value of each consistency test."""
    row: dict[str, float] = {}
    for name, (lens, statistic) in CONSISTENCY_TESTS.items():
        verdict = test(preds, "consistency", lens=lens, statistic=statistic, resamples=redraws, rng=seed)
        row[f"ECE, {name}"] = float(verdict.statistic)
        row[f"noise floor, {name}"] = float(verdict.statistic) - float(verdict.effect or 0.0)
        row[f"p, {name}"] = float(verdict.pvalue)
    return row


def measure_epochs(
    split: MnistSplit, epochs: int, redraws: int, network_seed: int, test_seed: int
) -> list[dict[str, Any]]:
    """A row of measures of the test rows for each epoch of a LeNet trained with cross entropy."""
    rows: list[dict[str, Any]] = []
    for epoch, predict in enumerate(train_lenet(split, "cross entropy", 0.0, epochs, network_seed), 1):
        validation, preds = (as_predictions(part, predict(part)) for part in (split.validation, split.test))
        temperature, refinement, scaled = scale_temperature(validation, preds)
        rows.append(
            {
                "epoch": epoch,
                "validation log loss": mean_log_loss(validation),
                "validation refinement": refinement,
                "log loss": mean_log_loss(preds),
                "refinement": mean_log_loss(scaled),
                "accuracy": measure_accuracy(preds),
                "confidence": float(np.asarray(preds.P).max(axis=1).mean()),
                "temperature": temperature,
                **measure_calibration(preds, redraws, test_seed),
                **_add_prefix("scaled", measure_calibration(scaled, redraws, test_seed)),
                **_add_prefix("validation", measure_calibration(validation, redraws, test_seed)),
            }
        )
    return rows


def _add_prefix(prefix: str, row: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix} {key}": value for key, value in row.items()}


def measure_accuracy(preds: Predictions) -> float:
    """Share of rows whose most probable class is the label."""
    return float(np.mean(np.asarray(preds.P).argmax(axis=1) == np.asarray(preds.y)))


def argmin_row(rows: Sequence[Row], key: str) -> int:
    """The index of the first row with the smallest value.

    >>> argmin_row([{"loss": 2.0}, {"loss": 1.0}, {"loss": 1.0}], "loss")
    1
    """
    return int(np.argmin([row[key] for row in rows]))


def first_lasting_rejection(rows: Sequence[Row], name: str, prefix: str = "") -> int | None:
    """The first epoch from which on calibration is rejected at every epoch; None if it is not rejected at the last one.

    `prefix` is "scaled " for the p-values after temperature scaling.

    >>> first_lasting_rejection([{"epoch": e, "p, x": p} for e, p in ((1, 0.01), (2, 0.2), (3, 0.01), (4, 0.02))], "x")
    3
    """
    first = None
    for row in reversed(rows):
        if row[f"{prefix}p, {name}"] > ALPHA:
            break
        first = int(row["epoch"])
    return first
