"""Losses that regularize calibration, with and without temperature scaling, compared over repeated trainings."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.compare import compare
from trueodds.api.measure import measure
from trueodds.data.predictions import Predictions
from trueodds_studies.common.mean_intervals import format_mean, interval_sign, mean_interval
from trueodds_studies.common.mnist import MnistSplit
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_count
from trueodds_studies.training.epoch_measures import (
    as_predictions,
    mean_log_loss,
    measure_accuracy,
    scale_temperature,
)
from trueodds_studies.training.lenet import LogitPredictor, train_lenet

LOSSES: Mapping[str, tuple[float, ...]] = {
    "cross entropy": (0.0,),
    "label smoothing": (0.02, 0.1),
    "focal": (1.0, 3.0),
    "MMCE": (1.0, 4.0),
    "soft-binned ECE": (0.1, 0.5),
}
"""Each loss with the strengths that are tried; the one with the lowest validation log loss is used."""
STAGES = ("lowest log loss", "last epoch")
BASELINE = ("cross entropy", True)  # loss, and with temperature scaling


@dataclass(frozen=True)
class TrainedModel:
    """Predictions of one network after one epoch, without and with temperature scaling."""

    strength: float
    epoch: int
    validation_loss: float
    temperature: float
    validation_refinement: float
    scaled: Predictions  # test rows with temperature scaling
    unscaled: Predictions  # test rows without it

    def selection_loss(self, with_temperature: bool) -> float:
        """The validation log loss that chooses among strengths."""
        return self.validation_refinement if with_temperature else self.validation_loss


def measure_losses(
    split: MnistSplit, epochs: int, losses: Mapping[str, Sequence[float]], seed: int
) -> list[dict[str, Any]]:
    """One row per stage and loss, with and without temperature scaling: measures of the test rows.

    Each row is compared with cross entropy and temperature scaling at the same stage.
    """
    trained = {
        name: [_train_stages(split, name, strength, epochs, seed) for strength in strengths]
        for name, strengths in losses.items()
    }
    rows: list[dict[str, Any]] = []
    for stage in STAGES:
        chosen = {
            (name, scaled): min((model[stage] for model in models), key=lambda model: model.selection_loss(scaled))
            for name, models in trained.items()
            for scaled in (False, True)
        }
        baseline = chosen[BASELINE].scaled
        for (name, scaled), model in chosen.items():
            preds = model.scaled if scaled else model.unscaled
            rows.append(
                {
                    "stage": stage,
                    "loss": name,
                    "temperature scaling": scaled,
                    "strength": model.strength,
                    "epoch": model.epoch,
                    "temperature": model.temperature,
                    **_measure_predictions(preds),
                    **({} if (name, scaled) == BASELINE else _compare_rows(preds, baseline, seed)),
                }
            )
    return rows


def _train_stages(split: MnistSplit, loss: str, strength: float, epochs: int, seed: int) -> dict[str, TrainedModel]:
    """The network at the epoch with the lowest validation log loss, and after the last epoch."""
    losses: list[float] = []
    networks: dict[str, tuple[int, LogitPredictor]] = {}
    for epoch, predict in enumerate(train_lenet(split, loss, strength, epochs, seed), 1):
        losses.append(mean_log_loss(as_predictions(split.validation, predict(split.validation))))
        networks["last epoch"] = epoch, predict
        if losses[-1] < min(losses[:-1], default=np.inf):
            networks["lowest log loss"] = epoch, copy.deepcopy(predict)
    return {stage: _scale_model(split, strength, *networks[stage]) for stage in STAGES}


def _scale_model(split: MnistSplit, strength: float, epoch: int, predict: LogitPredictor) -> TrainedModel:
    validation, test = (as_predictions(rows, predict(rows)) for rows in (split.validation, split.test))
    return TrainedModel(strength, epoch, mean_log_loss(validation), *scale_temperature(validation, test), test)


def _measure_predictions(preds: Predictions) -> dict[str, float]:
    ece = float(measure(preds, "ece", lens="confidence", interval=None))
    return {"log loss": mean_log_loss(preds), "ECE": ece, "accuracy": measure_accuracy(preds)}


def _compare_rows(preds: Predictions, baseline: Predictions, seed: int) -> dict[str, Any]:
    """Signs of the differences to the baseline that are significant over the test rows of this one training."""
    return {
        f"{name} by rows": interval_sign(compare(preds, baseline, estimator, rng=seed, **settings).interval)
        for name, estimator, settings in (("log loss", "log_loss", {}), ("ECE", "ece", {"lens": "confidence"}))
    }


def loss_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """Means over the trainings, and paired differences to cross entropy with temperature scaling."""
    first = cells[0]["rows"]
    rows = []
    for i, row in enumerate(first):
        runs = [cell["rows"][i] for cell in cells]
        baseline = next(
            j
            for j, other in enumerate(first)
            if (other["loss"], other["temperature scaling"], other["stage"]) == (*BASELINE, row["stage"])
        )
        entry = {
            "stage": row["stage"],
            "loss": row["loss"],
            "temperature scaling": "yes" if row["temperature scaling"] else "no",
            "log loss": float(np.mean([run["log loss"] for run in runs])),
            "ECE": float(np.mean([run["ECE"] for run in runs])),
            "accuracy %": 100 * float(np.mean([run["accuracy"] for run in runs])),
            "T": float(np.mean([run["temperature"] for run in runs])),
        }
        if i != baseline:
            for name in ("log loss", "ECE"):
                differences = [run[name] - cell["rows"][baseline][name] for run, cell in zip(runs, cells, strict=True)]
                signs = [run[f"{name} by rows"] for run in runs]
                entry[f"difference of {name}"] = format_mean(differences, sign=True)
                entry[f"{name} lower, higher"] = f"{signs.count(-1)}, {signs.count(1)}"
        rows.append(entry)
    return tuple(rows)


def strength_counts(cells: Sequence[Row], losses: Mapping[str, Sequence[float]]) -> str:
    """How often each strength was chosen for the models without temperature at the lowest log loss."""
    phrases = []
    for name, strengths in losses.items():
        if len(strengths) > 1:
            chosen = [row["strength"] for cell in cells for row in cell["rows"] if _is_unscaled_choice(row, name)]
            phrases.append(f"{name} " + ", ".join(f"{strength:g} ({chosen.count(strength)})" for strength in strengths))
    return "; ".join(phrases)


def _is_unscaled_choice(row: Row, loss: str) -> bool:
    """Whether a row belongs to this loss without temperature scaling at the lowest log loss."""
    return row["loss"] == loss and row["stage"] == STAGES[0] and not row["temperature scaling"]


def summarize_losses(cells: Sequence[Row]) -> str:
    """Which losses without temperature scaling are better or worse than cross entropy with it, by stage."""
    sentences = []
    for stage in STAGES:
        verdicts: dict[int, list[str]] = {-1: [], 0: [], 1: []}
        for name, differences in _differences_without_scaling(cells, stage).items():
            mean, interval = mean_interval(differences)
            verdicts[interval_sign(interval)].append(f"{name} ({mean:+.4f})")
        phrases = [
            f"{word} for {', '.join(verdicts[sign])}"
            for sign, word in ((-1, "lower"), (1, "higher"), (0, "not significantly different"))
            if verdicts[sign]
        ]
        sentences.append(f"at the {stage}, {'; '.join(phrases)}")
    return (
        f"Test log loss without temperature scaling, compared with cross entropy and temperature scaling, over"
        f" {format_count(len(cells), 'training')}: {'. '.join(text[0].upper() + text[1:] for text in sentences)}."
    )


def _differences_without_scaling(cells: Sequence[Row], stage: str) -> dict[str, list[float]]:
    """Differences of log loss of each loss without temperature scaling to the baseline, one for each training."""
    differences: dict[str, list[float]] = {}
    for cell in cells:
        stage_rows = [row for row in cell["rows"] if row["stage"] == stage]
        (baseline,) = [row["log loss"] for row in stage_rows if (row["loss"], row["temperature scaling"]) == BASELINE]
        for row in stage_rows:
            if not row["temperature scaling"]:
                differences.setdefault(row["loss"], []).append(row["log loss"] - baseline)
    return differences
