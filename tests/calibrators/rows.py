"""Rows to calibrate, drawn or given."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.calibrators import CALIBRATORS

# Calibrators of groups, with the setting by which they need no groups, and have only what applies to all rows.
GROUP_SETTINGS: dict[str, dict[str, Any]] = {"group_shift": {"columns": ()}, "multicalibrated": {"columns": ()}}
# What a member must be told before it can be fitted to a handful of rows.
REQUIRED_SETTINGS: dict[str, dict[str, Any]] = {
    "boldness": {"posterior": 0.5},
    **GROUP_SETTINGS,
    "prior_shift": {"priors": "uniform"},
}
# Settings with which maps have a formula for PyTorch and ONNX, where those by default have none.
FORMULA_SETTINGS: dict[str, dict[str, Any]] = {"evidential": {"output": "point"}}


def made(name: str):
    """The member with its defaults, and what it needs beside them."""
    return CALIBRATORS.load(name)(**REQUIRED_SETTINGS.get(name, {}))


def both(p) -> np.ndarray:
    """The pair (1 − p, p) of each probability."""
    p = np.asarray(p, dtype=np.float64)
    return np.stack([1 - p, p], axis=1)


def one_hot(y, k: int = 2) -> np.ndarray:
    """Labels as shares."""
    return np.eye(k)[np.asarray(y, dtype=int)]


def labels(R: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label per row, each class with its probability."""
    return (R.cumsum(axis=1) > rng.random((len(R), 1))).argmax(axis=1)


def powers(P: np.ndarray, beta: float) -> np.ndarray:
    """Rows proportional to p^beta."""
    q = P**beta
    return q / q.sum(axis=1, keepdims=True)


def draw_predictions(n: int, k: int, sharpness: float, seed) -> tuple[np.ndarray, np.ndarray]:
    """Predictions that are too sure by the factor `sharpness` in their log odds (1 is calibrated), and labels."""
    rng = np.random.default_rng(seed)
    R = powers(np.exp(rng.normal(size=(n, k)) * 1.5), 1.0)
    return powers(R, sharpness), labels(R, rng)
