"""Real predictions for the calibrators, each split into rows for fitting and rows for evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import trueodds as to


@dataclass(frozen=True)
class Split:
    """Rows for fitting and rows for evaluation."""

    name: str
    kind: str  # "images", "text", "speech" or "tables"
    fit: to.Predictions
    test: to.Predictions
    how: str


def halves(name: str, kind: str, preds: to.Predictions) -> Split:
    """A random half for fitting, with a fixed seed, and the other half for evaluation."""
    first = np.random.default_rng(0).permutation(preds.n) < preds.n // 2
    return Split(name, kind, preds[first], preds[~first], "fitted on a random half, evaluated on the other half")


def parts(name: str, kind: str, file: str) -> Callable[[Path], Split]:
    """Split of a file with validation and test logits."""

    def made(folder: Path) -> Split:
        archive = np.load(folder / f"{file}.npz", allow_pickle=False)
        fit, test = (
            to.Predictions.from_logits(archive[f"labels_{s}"], archive[f"logits_{s}"]) for s in ("val", "test")
        )
        return Split(name, kind, fit, test, "fitted on the validation rows, evaluated on the test rows")

    return made


def logits(name: str, kind: str, file: str, split: str) -> Callable[[Path], Split]:
    """Split of a file of logits without a validation part."""

    def made(folder: Path) -> Split:
        archive = np.load(folder / f"{file}.npz", allow_pickle=False)
        return halves(name, kind, to.Predictions.from_logits(archive[f"labels_{split}"], archive[f"logits_{split}"]))

    return made


def table(name: str, file: str, label: str, prob: str) -> Callable[[Path], Split]:
    """Split of a table with one column of probabilities."""

    def made(folder: Path) -> Split:
        source = to.read(str(folder / f"{file}.parquet"), label=label, probs=prob)
        return halves(name, "tables", source.collect())

    return made


SETS: dict[str, Callable[[Path], Split]] = {
    "cifar10": parts("CIFAR-10, ResNet-50", "images", "aigen_cifar10_resnet50"),
    "cifar10-focal": parts("CIFAR-10, wide ResNet, focal loss", "images", "aigen_focal_cifar10_wide_resnet"),
    "cifar100": parts("CIFAR-100, ResNet-110", "images", "aigen_cifar100_resnet110"),
    "pathmnist": logits("PathMNIST, ResNet-50", "images", "ferrer_pathmnist_resnet50", "test"),
    "agnews": logits("AG News, GPT-2 zero-shot", "text", "ferrer_agnews_gpt2", "test"),
    "emotion": logits("Emotion in speech", "speech", "psr_emotion_final", "tst"),
    "adult": table("Adult, random forest", "adult_rf_predictions", "y", "p"),
    "hockey": table("Hockey, published odds", "brcal_hockey", "y", "x"),
}
