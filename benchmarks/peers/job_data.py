"""Simulated data of the jobs, saved once as .npy files and loaded by the process of every tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# Probabilities "P" (n, K), labels "y" (n,), and for one data set the row numbers "rows" (n_samples, n_rows) of samples.
Arrays = dict[str, np.ndarray]

UNIFORM_LABEL_SHARE = 0.05  # share of labels drawn uniformly, which makes an error of a few percent


def draw_labels(P: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return labels (n,) drawn from the predicted probabilities (n, K), except for a share that is uniform.

    If the labels were mostly the predicted class instead, the data would favor some implementations.
    """
    n, k = P.shape
    labels = np.empty(n, dtype=np.int64)
    for start in range(0, n, 1 << 14):  # in blocks, to bound the memory of the cumulative probabilities
        block = P[start : start + (1 << 14)].astype(np.float64)
        cumulative = block.cumsum(axis=1)
        threshold = rng.random((len(block), 1)) * cumulative[:, -1:]
        labels[start : start + len(block)] = (cumulative <= threshold).sum(axis=1)
    is_uniform = rng.random(n) < UNIFORM_LABEL_SHARE
    labels[is_uniform] = rng.integers(0, k, is_uniform.sum())
    return np.minimum(labels, k - 1)


def simulate_predictions(n: int, k: int, dtype: type = np.float32) -> Arrays:
    """Return probabilities (n, k), uncertain in some rows and confident in others, with labels."""
    rng = np.random.default_rng([n, k])
    if k <= 10:
        raw = rng.standard_exponential((n, k), dtype=np.float32) ** 2
    else:  # one dominant class; the others are not so small that an epsilon inside a logarithm would matter
        raw = np.exp(rng.standard_normal((n, k), dtype=np.float32))
        raw[np.arange(n), rng.integers(0, k, n)] *= np.exp(rng.uniform(2, 10, n)).astype(np.float32)
    P = (raw / raw.sum(axis=1, keepdims=True)).astype(dtype)
    P /= P.sum(axis=1, keepdims=True)
    return {"P": P, "y": draw_labels(P, rng)}


def simulate_small_samples(scale: float) -> Arrays:
    """Return predictions of 20,000 rows and the row numbers (200, 115) of samples; `scale` reduces their number."""
    n_sets = max(3, round(200 * scale))
    sample_rows = np.random.default_rng(7).integers(0, 20_000, (n_sets, 115))
    return simulate_predictions(20_000, 5, np.float64) | {"rows": sample_rows}


# Functions that simulate a data set, given the share of the rows to simulate.
DATA_SETS: dict[str, Callable[[float], Arrays]] = {
    "ten": lambda scale: simulate_predictions(round(1_000_000 * scale), 10),
    "thousand": lambda scale: simulate_predictions(round(50_000 * scale), 1000),
    "hundred-thousand": lambda scale: simulate_predictions(round(100_000 * scale), 10),
    "ten-thousand": lambda scale: simulate_predictions(round(10_000 * scale), 10),
    "five-thousand": lambda scale: simulate_predictions(round(5_000 * scale), 10),
    "sets": simulate_small_samples,
}


def save_data_set(name: str, scale: float, folder: Path) -> None:
    """Simulate a data set and save each of its arrays as a file."""
    for key, array in DATA_SETS[name](scale).items():
        np.save(folder / f"{name}.{key}.npy", array)


def load_data_set(name: str, folder: Path) -> Arrays:
    """Load the arrays of a data set."""
    return {path.name.split(".")[1]: np.load(path) for path in sorted(folder.glob(f"{name}.*.npy"))}


def describe_shape(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the shape and type of the probabilities, such as `1,000,000 × 10 float32`."""
    n, k = arrays["P"].shape
    return f"{n:,} × {k} {arrays['P'].dtype}"
