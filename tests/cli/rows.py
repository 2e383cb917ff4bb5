"""Files of predictions for the command line's tests: calibrated, overconfident, and a single column."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np


def overconfident(folder: Path, n: int = 400) -> str:
    """Three classes; the true probabilities are the square roots of the stated ones, normalized."""
    rng = np.random.default_rng(1)
    honest = rng.dirichlet(np.ones(3), n)
    y = (honest.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    stated = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    return _written(folder / "over.csv", stated, y)


def calibrated(folder: Path, n: int = 400) -> str:
    """Three classes; each label is drawn with its stated probability."""
    rng = np.random.default_rng(2)
    stated = rng.dirichlet(np.ones(3), n)
    y = (stated.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return _written(folder / "honest.csv", stated, y)


def _written(path: Path, P: np.ndarray, y: np.ndarray) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["label", "p_0", "p_1", "p_2", "site"])
        lines.writerows([int(c), *map(float, p), "AB"[i % 2]] for i, (c, p) in enumerate(zip(y, P, strict=True)))
    return str(path)
