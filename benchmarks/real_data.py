"""Published predictions of real models, each split into rows for fitting and rows for evaluation.

The files are not part of this project. `DATA_SETS` has a loader of each, which takes the folder of the files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import trueodds as to


@dataclass(frozen=True)
class Split:
    """Rows for fitting and rows for evaluation of one data set."""

    name: str
    kind: str  # "images", "text", "speech" or "tables"
    fit: to.Predictions
    test: to.Predictions
    description: str  # how the rows were split


SplitLoader = Callable[[Path], Split]


def split_in_halves(name: str, kind: str, preds: to.Predictions) -> Split:
    """Return a random half for fitting, with a fixed seed, and the other half for evaluation."""
    is_fitted = np.random.default_rng(0).permutation(preds.n) < preds.n // 2
    return Split(
        name, kind, preds[is_fitted], preds[~is_fitted], "fitted on a random half, evaluated on the other half"
    )


def validation_and_test_logits(name: str, kind: str, file: str) -> SplitLoader:
    """Return the loader of an .npz file with the logits of validation rows and of test rows."""

    def load_split(folder: Path) -> Split:
        archive = np.load(folder / f"{file}.npz", allow_pickle=False)
        validation, test = (
            to.Predictions.from_logits(archive[f"labels_{part}"], archive[f"logits_{part}"]) for part in ("val", "test")
        )
        return Split(name, kind, validation, test, "fitted on the validation rows, evaluated on the test rows")

    return load_split


def single_part_logits(name: str, kind: str, file: str, part: str) -> SplitLoader:
    """Return the loader of an .npz file whose logits have only one part, such as "test", which is halved."""

    def load_split(folder: Path) -> Split:
        archive = np.load(folder / f"{file}.npz", allow_pickle=False)
        preds = to.Predictions.from_logits(archive[f"labels_{part}"], archive[f"logits_{part}"])
        return split_in_halves(name, kind, preds)

    return load_split


def binary_probabilities(name: str, file: str, label: str, prob: str) -> SplitLoader:
    """Return the loader of a Parquet file with a column of labels and one of probabilities, which is halved."""

    def load_split(folder: Path) -> Split:
        source = to.read(str(folder / f"{file}.parquet"), label=label, probs=prob)
        return split_in_halves(name, "tables", source.collect())

    return load_split


DATA_SETS: dict[str, SplitLoader] = {
    "cifar10": validation_and_test_logits("CIFAR-10, ResNet-50", "images", "aigen_cifar10_resnet50"),
    "cifar10-focal": validation_and_test_logits(
        "CIFAR-10, wide ResNet, focal loss", "images", "aigen_focal_cifar10_wide_resnet"
    ),
    "cifar100": validation_and_test_logits("CIFAR-100, ResNet-110", "images", "aigen_cifar100_resnet110"),
    "pathmnist": single_part_logits("PathMNIST, ResNet-50", "images", "ferrer_pathmnist_resnet50", "test"),
    "agnews": single_part_logits("AG News, GPT-2 zero-shot", "text", "ferrer_agnews_gpt2", "test"),
    "emotion": single_part_logits("Emotion in speech", "speech", "psr_emotion_final", "tst"),
    "adult": binary_probabilities("Adult, random forest", "adult_rf_predictions", "y", "p"),
    "hockey": binary_probabilities("Hockey, published odds", "brcal_hockey", "y", "x"),
}
